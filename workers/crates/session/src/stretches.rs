use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use downburst_model::{Epoch, Micros, Sequence};

use crate::{Filter, Stretch};

/// The recently read stretches of one feed's log, for all sessions of a hub.
///
/// Sites that read the same stretch with an equal filter share the match and the encoding made for the first of
/// them. Stretches end at multiples of [`STRETCH_NUMBERS`], so that sites that begin at different places read
/// the same ones after their first.
#[derive(Debug)]
pub struct Stretches {
    limit_bytes: usize,
    bytes: usize,
    kept: BTreeMap<Arc<Filter>, BTreeMap<u64, Kept>>,
    /// The cached stretches, oldest first.
    order: VecDeque<(Arc<Filter>, u64)>,
}

#[derive(Debug)]
struct Kept {
    stretch: Arc<Stretch>,
    since: Micros,
}

impl Stretches {
    /// Makes a cache of at most `limit_bytes`.
    pub fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, bytes: 0, kept: BTreeMap::new(), order: VecDeque::new() }
    }

    /// A cached stretch that answers a read behind `after`, in a log that ends at `head`. `None`: read the log
    /// up to [`stretch_end`], and [`keep`](Self::keep) the result.
    pub fn find(
        &self,
        epoch: Epoch,
        (after, head): (Sequence, Sequence),
        filter: &Arc<Filter>,
    ) -> Option<Arc<Stretch>> {
        let begun = self.kept.get(filter)?.range(..=after.0).rev().take(LOOKED_AT);
        let worth = stretch_end(after, head).0.saturating_sub(after.0) / WORTH_READING;
        begun
            .map(|(_, kept)| &kept.stretch)
            .find(|stretch| {
                let brings = stretch.read_to.0.saturating_sub(after.0);
                stretch.epoch == epoch && brings > 0 && brings >= worth
            })
            .map(Arc::clone)
    }

    /// Caches a stretch; drops the oldest ones above the limits.
    pub fn keep(&mut self, now: Micros, stretch: Arc<Stretch>) {
        let (filter, after) = (Arc::clone(&stretch.filter), stretch.after.0);
        self.bytes = self.bytes.saturating_add(stretch.memory_bytes());
        let former =
            self.kept.entry(Arc::clone(&filter)).or_default().insert(after, Kept { stretch, since: now });
        match former {
            Some(former) => self.bytes = self.bytes.saturating_sub(former.stretch.memory_bytes()),
            None => self.order.push_back((filter, after)),
        }
        while self.bytes > self.limit_bytes || self.order.len() > STRETCHES {
            self.drop_oldest();
        }
    }

    /// Drops the stretches that are too old to be of use.
    pub fn purge(&mut self, now: Micros) {
        let old = |kept: &Kept| now.since(kept.since) >= KEPT_FOR;
        while let Some((filter, after)) = self.order.front()
            && self.kept.get(filter).and_then(|of| of.get(after)).is_none_or(old)
        {
            self.drop_oldest();
        }
    }

    /// Drops the oldest until the rest takes at most this many bytes; the last one stays.
    pub fn shrink_to(&mut self, bytes: usize) {
        while self.bytes > bytes && self.order.len() > 1 {
            self.drop_oldest();
        }
    }

    /// The approximate memory use of all stretches.
    pub fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// Drops all stretches.
    pub fn clear(&mut self) {
        *self = Self::new(self.limit_bytes);
    }

    fn drop_oldest(&mut self) {
        let Some((filter, after)) = self.order.pop_front() else {
            self.bytes = 0;
            return;
        };
        let Some(of_filter) = self.kept.get_mut(&filter) else {
            return;
        };
        if let Some(kept) = of_filter.remove(&after) {
            self.bytes = self.bytes.saturating_sub(kept.stretch.memory_bytes());
        }
        if of_filter.is_empty() {
            self.kept.remove(&filter);
        }
    }
}

/// The end of a stretch that begins behind `after`.
pub fn stretch_end(after: Sequence, head: Sequence) -> Sequence {
    let whole = (after.0 / STRETCH_NUMBERS).saturating_add(1).saturating_mul(STRETCH_NUMBERS);
    Sequence(whole.min(head.0))
}

/// The maximum length of a stretch in numbers: half a megabyte of products of 2 kB, a millisecond of work.
const STRETCH_NUMBERS: u64 = 256;

/// Stretches made at the head of the log are short. One that brings less than a quarter of the numbers up to
/// the current [`stretch_end`] is not reused: a site that is behind must not read in small pieces.
const WORTH_READING: u64 = 4;

/// The number of stretches that are tried for a read: those that begin last at or before its place.
const LOOKED_AT: usize = 4;

const STRETCHES: usize = 4_096;

/// The time for which a stretch is cached: sites that read the same numbers further apart than this do not
/// share, and cached stretches must not outlive the log's retention by much, since they keep segments in use.
const KEPT_FOR: Micros = Micros::from_secs(10);

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use downburst_model::{Class, Digest, FeedName, Origin, ProductId, ProductInfo, ProductKey, WallMicros};

    use super::*;
    use crate::patterns::Patterns;
    use crate::{Entry, Subscription};

    const EPOCH: Epoch = Epoch(3);

    fn feed() -> FeedName {
        FeedName::parse("NGRID").unwrap()
    }

    fn filter(pattern: &str, trains: bool) -> Arc<Filter> {
        let wish =
            Subscription { feed: feed(), pattern: pattern.to_owned(), not_pattern: None, within: None };
        Arc::clone(Patterns::compile(&[wish], false, |_| trains).filter(&feed()).unwrap())
    }

    fn stretch(after: u64, read_to: u64, filter: &Arc<Filter>) -> Arc<Stretch> {
        let range = (Sequence(after), Sequence(read_to));
        Arc::new(Stretch::new((feed(), EPOCH), range, [], Arc::clone(filter)))
    }

    /// A stretch of full length with one product.
    fn stretch_of(after: u64, filter: &Arc<Filter>) -> Arc<Stretch> {
        let info = ProductInfo {
            key: ProductKey { feed: feed(), epoch: EPOCH, sequence: Sequence(after + 1) },
            id: ProductId::parse("x").unwrap(),
            origin: Origin::parse("hub").unwrap(),
            created: WallMicros(0),
            stored: WallMicros(0),
            size: 0,
            digest: Digest([0; 32]),
            class: Class::Grid,
            hops: None,
            ldm: None,
            properties: None,
        };
        let range = (Sequence(after), Sequence(after + STRETCH_NUMBERS));
        let entry = Entry { info, bytes: Some(Bytes::new().into()) };
        Arc::new(Stretch::new((feed(), EPOCH), range, [entry], Arc::clone(filter)))
    }

    fn found(stretches: &Stretches, after: u64, head: u64, filter: &Arc<Filter>) -> Option<(u64, u64)> {
        let found = stretches.find(EPOCH, (Sequence(after), Sequence(head)), filter)?;
        Some((found.after.0, found.read_to.0))
    }

    #[test]
    fn sites_that_begin_at_different_places_meet_at_the_next_end() {
        let ends = [0, 7, 255].map(|after| stretch_end(Sequence(after), Sequence(9_000)).0);
        assert_eq!(ends, [256, 256, 256]);
        assert_eq!(stretch_end(Sequence(256), Sequence(300)).0, 300);
        assert_eq!(stretch_end(Sequence(u64::MAX), Sequence(u64::MAX)).0, u64::MAX);
    }

    #[test]
    fn equal_filters_share_and_others_do_not() {
        let mut stretches = Stretches::new(1 << 20);
        let (ours, equal) = (filter("^x", true), filter("^x", true));
        stretches.keep(Micros(0), stretch(0, 256, &ours));
        assert_eq!(found(&stretches, 0, 900, &equal), Some((0, 256)));
        assert_eq!(found(&stretches, 100, 900, &equal), Some((0, 256)), "a part of it will do");
        assert_eq!(found(&stretches, 256, 900, &equal), None);
        assert_eq!(found(&stretches, 0, 900, &filter("^y", true)), None);
        assert_eq!(found(&stretches, 0, 900, &filter("^x", false)), None, "one that takes no trains");
        assert!(stretches.find(Epoch(4), (Sequence(0), Sequence(900)), &ours).is_none());
    }

    #[test]
    fn crumbs_from_the_head_are_not_for_those_who_are_behind() {
        let mut stretches = Stretches::new(1 << 20);
        let ours = filter("x", true);
        stretches.keep(Micros(0), stretch(0, 3, &ours));
        assert_eq!(found(&stretches, 0, 3, &ours), Some((0, 3)));
        assert_eq!(found(&stretches, 0, 10, &ours), Some((0, 3)));
        assert_eq!(found(&stretches, 0, 200, &ours), None);
        stretches.keep(Micros(0), stretch(0, 200, &ours));
        assert_eq!(found(&stretches, 2, 200, &ours), Some((0, 200)));
        assert_eq!(stretches.order.len(), 1, "a longer one takes the place of the shorter");
    }

    #[test]
    fn it_shrinks_oldest_first_and_keeps_the_last() {
        let (ours, mut stretches) = (filter("x", true), Stretches::new(usize::MAX));
        for number in 0..4_u64 {
            let after = number * STRETCH_NUMBERS;
            stretches.keep(Micros(0), stretch_of(after, &ours));
        }
        let each = stretches.memory_bytes() / 4;
        stretches.shrink_to(2 * each);
        assert_eq!(stretches.memory_bytes(), 2 * each);
        assert_eq!(found(&stretches, 0, 9_000, &ours), None);
        stretches.shrink_to(0);
        assert_eq!(stretches.memory_bytes(), each);
        assert_eq!(found(&stretches, 3 * STRETCH_NUMBERS, 9_000, &ours), Some((768, 1_024)));
    }

    #[test]
    fn what_is_kept_is_bounded_in_number_bytes_and_time() {
        let ours = filter("x", true);
        let mut stretches = Stretches::new(usize::MAX);
        for number in 0..2 * STRETCHES as u64 {
            stretches.keep(Micros(number), stretch(number, number + 1, &ours));
        }
        assert_eq!(stretches.order.len(), STRETCHES);
        assert_eq!(stretches.kept[&ours].len(), STRETCHES);
        stretches.purge(Micros(u64::MAX));
        assert!(stretches.order.is_empty() && stretches.kept.is_empty());
        assert_eq!(stretches.bytes, 0);
    }
}
