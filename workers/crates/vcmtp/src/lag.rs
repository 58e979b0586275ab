use std::collections::VecDeque;

use downburst_model::Micros;

use crate::missing::Missing;

/// Notices that the group brings a receiver more than its link carries, or than repair can make good: it is served better alone.
///
/// The hub notices too, but what it says then travels on the link that the group fills. With at least [`MANY`] packets missing, a
/// receiver is too slow when
/// * of each of the last [`FLOODED_INTERVALS`] intervals two fifths or more did not come: a link of three fifths of the rate.
///   Where all lose alike, the hub goes slower before that time is over;
/// * or a packet that was missed [`PATIENCE`] ago is still missing.
#[derive(Debug, Default)]
pub(crate) struct Lag {
    marks: VecDeque<Mark>,
    told: bool,
}

/// How things stood at some moment.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Micros,
    /// The highest packet.
    highest: u64,
    /// Packets that did not come at first, in all.
    missed: u64,
}

impl Lag {
    /// Looks at how things stand; true once, when the receiver is too slow.
    pub(crate) fn look(&mut self, now: Micros, highest: u64, missed: u64, missing: &Missing) -> bool {
        if self.marks.back().is_some_and(|mark| now.since(mark.at) < INTERVAL) {
            return false;
        }
        self.marks.push_back(Mark { at: now, highest, missed });
        while self.marks.get(1).is_some_and(|mark| now.since(mark.at) >= PATIENCE) {
            self.marks.pop_front();
        }
        let is_behind = missing.count() >= MANY && (self.is_flooded() || self.is_late(now, missing.first()));
        is_behind && !std::mem::replace(&mut self.told, true)
    }

    fn is_flooded(&self) -> bool {
        let latest = || self.marks.iter().rev();
        let mut intervals = latest().zip(latest().skip(1)).take(FLOODED_INTERVALS);
        self.marks.len() > FLOODED_INTERVALS && intervals.all(|(end, start)| end.is_flooded_since(start))
    }

    fn is_late(&self, now: Micros, oldest: Option<u64>) -> bool {
        let then = self.marks.front().filter(|mark| now.since(mark.at) >= PATIENCE);
        then.zip(oldest).is_some_and(|(then, oldest)| oldest <= then.highest)
    }
}

impl Mark {
    fn is_flooded_since(&self, start: &Self) -> bool {
        let sent = self.highest.saturating_sub(start.highest);
        let missed = self.missed.saturating_sub(start.missed);
        sent >= TELLING_PACKETS && missed.saturating_mul(5) >= sent.saturating_mul(2)
    }
}

/// Half a second of a leg of 12 Mb/s. Fewer are repaired before it matters.
const MANY: u64 = 512;

const INTERVAL: Micros = Micros::from_millis(250);

/// More than a second: the hub cuts the rate after three quarters of one.
const FLOODED_INTERVALS: usize = 5;

/// Fewer packets in an interval say nothing about a share.
const TELLING_PACKETS: u64 = 50;

/// A handover or a reboot of a switch, and the repair of what it cost, are over by then.
const PATIENCE: Micros = Micros::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends 1,000 packets in each of these intervals of 250 ms, of which so many are missed; repairs bring what was missed `repaired`
    /// intervals before. Returns the interval in which the receiver was found too slow.
    fn told(missed: impl Fn(u64) -> u64, repaired: u64) -> Option<u64> {
        let (mut lag, mut missing, mut all) = (Lag::default(), Missing::new(Micros(20_000)), 0);
        (0..100).find(|interval| {
            let first = interval * 1_000 + 1;
            if missed(*interval) > 0 {
                missing.insert(first, first + missed(*interval) - 1, Micros(0));
            }
            if let Some(before) = interval.checked_sub(repaired) {
                missing.cut(before * 1_000 + 1, before * 1_000 + 1_000);
            }
            all += missed(*interval);
            lag.look(Micros(interval * INTERVAL.0), first + 999, all, &missing)
        })
    }

    #[test]
    fn a_link_of_half_the_rate_is_noticed_in_a_little_more_than_a_second() {
        assert_eq!(told(|interval| if interval < 10 { 0 } else { 500 }, 100), Some(14));
    }

    #[test]
    fn a_short_outage_and_loss_that_repair_keeps_up_with_are_borne() {
        assert_eq!(told(|interval| if (10..14).contains(&interval) { 999 } else { 0 }, 8), None);
        assert_eq!(told(|_| 300, 4), None);
    }

    #[test]
    fn what_is_missing_for_five_seconds_is_too_old() {
        assert_eq!(told(|interval| if interval == 10 { 600 } else { 0 }, 100), Some(30));
        assert_eq!(told(|interval| if interval == 10 { 500 } else { 0 }, 100), None, "so few are waited for");
        assert_eq!(told(|_| 100, 21), Some(20));
        assert_eq!(told(|_| 100, 18), None);
    }
}
