use std::collections::BTreeMap;

use downburst_model::WallMicros;

/// The hub's stored stamp up to which a feed is settled. A hub's stamps rise with its numbers, so that the
/// stamp of a product covers everything up to that product, once the frontier has passed it. One product a
/// second is recorded: the stamp may be too early by that much, never too late.
#[derive(Debug, Default)]
pub(crate) struct Complete {
    /// The time at which the feed began here; valid until the frontier has passed a product.
    began: Option<WallMicros>,
    noted: BTreeMap<u64, WallMicros>,
    last: Option<(u64, WallMicros)>,
}

impl Complete {
    /// The feed begins at the hub's head of the time `wall` on this site's clock.
    pub(crate) fn begin(&mut self, wall: WallMicros) {
        self.began = Some(wall);
    }

    /// A product is settled.
    pub(crate) fn note(&mut self, number: u64, stored: WallMicros) {
        let repeats =
            |(at, stamp): (u64, WallMicros)| at < number && stored.0 < stamp.0.saturating_add(SPACING_US);
        if self.last.is_some_and(repeats) {
            return;
        }
        let before = self.noted.range(..number).next_back().map(|(at, stamp)| (*at, *stamp));
        self.last = before.filter(|it| repeats(*it)).or(Some((number, stored)));
        if self.last == Some((number, stored)) {
            self.noted.insert(number, stored);
        }
        if self.noted.len() > NOTED {
            // Stamps far above the frontier are needed last.
            self.noted.pop_last();
            self.last = None;
        }
    }

    /// The stamp if everything up to `frontier` is settled.
    pub(crate) fn to(&self, frontier: u64) -> Option<WallMicros> {
        self.noted.range(..=frontier).next_back().map(|(_, stamp)| *stamp).or(self.began)
    }

    /// Drops the stamps behind the frontier except the last.
    pub(crate) fn passed(&mut self, frontier: u64) {
        if let Some((&last, _)) = self.noted.range(..=frontier).next_back() {
            self.noted = self.noted.split_off(&last);
        }
    }
}

/// Short against the ten minutes that hubs may differ by.
const SPACING_US: i64 = 1_000_000;

/// More than an hour of live products beside a backfill.
const NOTED: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: i64) -> WallMicros {
        WallMicros(seconds * 1_000_000)
    }

    #[test]
    fn a_stamp_counts_once_the_frontier_has_passed_its_product() {
        let mut complete = Complete::default();
        assert_eq!(complete.to(9), None);
        complete.begin(seconds(5));
        complete.note(12, seconds(30));
        complete.note(11, seconds(20));
        assert_eq!(complete.to(10), Some(seconds(5)));
        assert_eq!(complete.to(11), Some(seconds(20)));
        assert_eq!(complete.to(900), Some(seconds(30)));
        complete.passed(11);
        assert_eq!((complete.to(11), complete.noted.len()), (Some(seconds(20)), 2));
    }

    #[test]
    fn a_backfill_holds_the_stamp_back_while_live_products_come() {
        let mut complete = Complete::default();
        for step in 0..20_000_u64 {
            complete.note(100_000 + step, seconds(50_000 + step as i64));
            complete.note(step, seconds(step as i64));
            complete.passed(step);
            let stamp = complete.to(step).unwrap();
            assert!(stamp <= seconds(step as i64), "{step} {stamp:?}");
            assert!(complete.noted.len() <= NOTED + 1);
        }
        assert!(complete.to(19_999).unwrap() >= seconds(19_990));
    }

    #[test]
    fn of_a_fast_feed_one_product_a_second_is_noted() {
        let mut complete = Complete::default();
        for number in 1..=100_000 {
            complete.note(number, WallMicros(number as i64 * 100));
        }
        assert_eq!(complete.noted.len(), 10);
        assert!(complete.to(100_000).unwrap() >= seconds(9));
    }
}
