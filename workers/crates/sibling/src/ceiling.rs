//! The ceiling of a site's uploads: bytes per second, and bytes in a day.
use downburst_model::{Micros, Now};

/// The uploads of a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// The day, counted from 1970-01-01 (UTC).
    pub day: i64,
    /// The bytes sent in it.
    pub bytes: u64,
}

/// A bucket that fills at the ceiling's rate, and the account of the day.
#[derive(Debug)]
pub(crate) struct Ceiling {
    /// The time at which all bytes sent so far are paid for, less what the bucket holds.
    paid_at: Micros,
    spent: Spent,
}

impl Ceiling {
    pub(crate) fn resumed(spent: Spent) -> Self {
        Self { paid_at: Micros(0), spent }
    }

    pub(crate) fn spent(&self) -> Spent {
        self.spent
    }

    /// True if the day's budget has room for these bytes.
    pub(crate) fn has_room(&mut self, now: Now, bytes: u64, most_per_day: u64) -> bool {
        self.turn_day(now);
        self.spent.bytes.saturating_add(bytes) <= most_per_day
    }

    /// Books these bytes; returns the time before which they must not be sent.
    pub(crate) fn book(&mut self, now: Now, bytes: u64, per_second: u64) -> Micros {
        self.turn_day(now);
        self.spent.bytes = self.spent.bytes.saturating_add(bytes);
        let burst = now.monotonic.since(BURST);
        let from = self.paid_at.max(burst);
        let cost = bytes.saturating_mul(1_000_000).checked_div(per_second).unwrap_or(u64::MAX);
        self.paid_at = from.plus(Micros(cost.min(LONGEST.0)));
        from
    }

    fn turn_day(&mut self, now: Now) {
        let day = now.wall.0.div_euclid(DAY_US);
        // A clock that is set back spends no budget again.
        if day > self.spent.day {
            self.spent = Spent { day, bytes: 0 };
        }
    }
}

/// The bucket holds the bytes of this time.
const BURST: Micros = Micros::from_millis(100);

/// The longest wait for one piece: a slower ceiling than this is as good as none.
const LONGEST: Micros = Micros::from_secs(60);

const DAY_US: i64 = 86_400_000_000;

#[cfg(test)]
mod tests {
    use downburst_model::WallMicros;

    use super::*;

    fn at(millis: u64) -> Now {
        Now { monotonic: Micros::from_millis(millis), wall: WallMicros(millis as i64 * 1_000) }
    }

    #[test]
    fn bytes_leave_at_the_rate_of_the_ceiling() {
        let mut ceiling = Ceiling::resumed(Spent::default());
        let mut now = at(1_000);
        for _ in 0..100 {
            let may = ceiling.book(now, 10_000, 100_000);
            now = at((may.0 / 1_000).max(now.monotonic.0 / 1_000));
        }
        // A million bytes at 100,000 a second, less the bucket and the last piece.
        assert_eq!(now.monotonic, Micros::from_millis(1_000 - 100 + 9_900));
    }

    #[test]
    fn a_day_has_its_budget_and_the_next_one_another() {
        let mut ceiling = Ceiling::resumed(Spent { day: 0, bytes: 90 });
        assert!(ceiling.has_room(at(5), 10, 100) && !ceiling.has_room(at(5), 11, 100));
        ceiling.book(at(5), 10, 1_000);
        assert!(!ceiling.has_room(at(6), 1, 100));
        assert!(ceiling.has_room(at(86_400_000), 100, 100));
        ceiling.book(at(86_400_000), 100, 1_000);
        assert!(!ceiling.has_room(at(5), 1, 100), "the clock was set back");
        assert_eq!(ceiling.spent(), Spent { day: 1, bytes: 100 });
    }

    #[test]
    fn no_rate_at_all_waits_long_and_no_sum_overflows() {
        let mut ceiling = Ceiling::resumed(Spent { day: 0, bytes: u64::MAX });
        ceiling.book(at(5), u64::MAX, 0);
        assert!(ceiling.book(at(5), 1, 0) >= LONGEST);
    }
}
