use std::collections::VecDeque;

use downburst_model::Micros;

use crate::packet::notice::SMALL_GROUP;
use crate::receiver::loss_reports::report_period;
use crate::receiver::missing::Missing;

/// Detects that the group sends more than a receiver's link carries, or than repair can restore: the site is
/// then better served alone.
///
/// The hub detects this too, but its message uses the link that the group fills. With at least [`MANY`]
/// packets missing, a receiver is too slow when
/// * two fifths or more of each quarter second of the last [`FLOODED_TIME`] did not arrive: a link with three
///   fifths of the rate. If all sites lose alike, the hub reduces the rate before that time is over;
/// * or a packet that was missed [`PATIENCE`] ago is still missing.
///
/// The hub of a large group learns of losses from reports, so its sites wait some report periods longer.
#[derive(Debug, Default)]
pub(crate) struct Lag {
    marks: VecDeque<Mark>,
    told: bool,
}

/// The counters at some moment.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Micros,
    /// The highest packet.
    highest: u64,
    /// The total of packets that did not arrive at first.
    missed: u64,
}

impl Lag {
    /// Checks the receiver's state in a group of `members` sites: the highest packet, the total missed, and the
    /// missing packets. True once, when the receiver is too slow.
    pub(crate) fn look(
        &mut self,
        now: Micros,
        members: u64,
        (highest, missed): (u64, u64),
        missing: &Missing,
    ) -> bool {
        if self.marks.back().is_some_and(|mark| now.since(mark.at) < INTERVAL) {
            return false;
        }
        self.marks.push_back(Mark { at: now, highest, missed });
        let more = until_heard(members);
        let (flooded, patience) = (FLOODED_TIME.plus(more), PATIENCE.plus(more));
        while self.marks.get(1).is_some_and(|mark| now.since(mark.at) >= patience) {
            self.marks.pop_front();
        }
        let is_late = || self.is_late(now, patience, missing.first());
        let is_behind = missing.count() >= MANY && (self.is_flooded(flooded) || is_late());
        is_behind && !std::mem::replace(&mut self.told, true)
    }

    fn is_flooded(&self, time: Micros) -> bool {
        let enough = usize::try_from(time.0 / INTERVAL.0).unwrap_or(usize::MAX);
        let latest = || self.marks.iter().rev();
        let mut intervals = latest().zip(latest().skip(1)).take(enough);
        self.marks.len() > enough && intervals.all(|(end, start)| end.is_flooded_since(start))
    }

    fn is_late(&self, now: Micros, patience: Micros, oldest: Option<u64>) -> bool {
        let then = self.marks.front().filter(|mark| now.since(mark.at) >= patience);
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

/// Half a second of a leg of 12 Mb/s. Fewer packets are repaired soon enough.
const MANY: u64 = 512;

const INTERVAL: Micros = Micros::from_millis(250);

/// The hub cuts the rate after three quarters of a second.
const FLOODED_TIME: Micros = Micros::from_millis(1_250);

/// Fewer packets in an interval are no evidence of a share.
const TELLING_PACKETS: u64 = 50;

/// A handover or a reboot of a switch, and the repair of its losses, are over by then.
const PATIENCE: Micros = Micros::from_secs(5);

/// The time in which the hub of a large group receives its sites' loss reports and cuts the rate twice.
fn until_heard(members: u64) -> Micros {
    if members > SMALL_GROUP {
        Micros(report_period(members).0.saturating_mul(CUT_PERIODS))
    } else {
        Micros(0)
    }
}

/// Two periods until a cut, one that does not count, and two until the next.
const CUT_PERIODS: u64 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends 1,000 packets in each of these intervals of 250 ms, with the given number missed; repairs bring
    /// the packets missed `repaired` intervals before. Returns the interval in which the receiver was found
    /// too slow.
    fn told(missed: impl Fn(u64) -> u64, repaired: u64) -> Option<u64> {
        told_of(7, missed, repaired)
    }

    fn told_of(members: u64, missed: impl Fn(u64) -> u64, repaired: u64) -> Option<u64> {
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
            lag.look(Micros(interval * INTERVAL.0), members, (first + 999, all), &missing)
        })
    }

    #[test]
    fn a_link_of_half_the_rate_is_noticed_in_a_little_more_than_a_second() {
        assert_eq!(told(|interval| if interval < 10 { 0 } else { 500 }, 100), Some(14));
    }

    #[test]
    fn in_a_large_group_the_hub_gets_the_time_that_its_reports_take() {
        let half = |interval| if interval < 10 { 0 } else { 500 };
        assert_eq!(told_of(200, half, 100), Some(14 + 5 * 4));
        assert_eq!(told_of(400, half, 100), Some(14 + 5 * 8));
        // The time that the hub takes to cut the rate.
        assert_eq!(told_of(200, |interval| if (10..30).contains(&interval) { 500 } else { 0 }, 8), None);
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
