//! The records of feeds with a deadline, by site and by second of the hub's stored stamps.
use std::collections::BTreeMap;

use downburst_model::{Epoch, FeedName, Lane, Sequence, SiteName, WallMicros};
use downburst_session::{ClockOffset, Outcome, Receipt};
use serde::Serialize;

use super::{Noted, add};
use crate::sketch::Sketch;

/// The seconds since the last batch, and what continues from one to the next.
#[derive(Default)]
pub(super) struct Seconds {
    seconds: BTreeMap<(FeedName, SiteName, i64), Second>,
    streams: BTreeMap<(FeedName, SiteName), Stream>,
}

/// What is to be known of the records that the hub stored within a second.
#[derive(Default, Serialize)]
struct Second {
    stored: u64,
    late_at_hub: u64,
    late_at_site: u64,
    lost: u64,
    reordered: u64,
    jitter_us: Option<u64>,
    delay: Option<Sketch>,
}

#[derive(Serialize)]
pub(super) struct SecondLine {
    feed: FeedName,
    site: SiteName,
    /// Since 1970.
    second: i64,
    #[serde(flatten)]
    counted: Second,
}

/// The arrivals of a feed at a site.
#[derive(Default)]
struct Stream {
    epoch: Option<Epoch>,
    /// The highest number that arrived, and its last byte by the site's clock.
    highest: Option<(Sequence, WallMicros)>,
    transit_us: Option<i64>,
    /// RFC 3550, section 6.4.1, in sixteenths of a microsecond.
    jitter_sixteenths: Option<u64>,
}

impl Seconds {
    /// Counts the receipts of feeds with a deadline, which arrived at `now`. Resends are no part of the stream.
    pub(super) fn receipts(
        &mut self,
        site: &SiteName,
        noted: &[Noted<'_>],
        clock: Option<ClockOffset>,
        now: WallMicros,
    ) {
        let counts = |noted: &&Noted<'_>| noted.has_deadline && noted.receipt.lane != Lane::Resend;
        let mut receipts: Vec<&Receipt> = noted.iter().filter(counts).map(|noted| noted.receipt).collect();
        // Their order of arrival; those that the site got in one read keep their order.
        receipts.sort_by_key(|receipt| receipt.last_byte);
        for receipt in receipts {
            let Some(second) = second_of(receipt, now) else { continue };
            let feed = &receipt.key.feed;
            let counted = self.seconds.entry((feed.clone(), site.clone(), second)).or_default();
            add(counted.counter(receipt.outcome), 1);
            if receipt.outcome == Outcome::Stored {
                let stream = self.streams.entry((feed.clone(), site.clone())).or_default();
                stream.arrived(receipt, clock, counted);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.seconds.len()
    }

    pub(super) fn take(&mut self) -> Vec<SecondLine> {
        let seconds = std::mem::take(&mut self.seconds).into_iter();
        seconds.map(|((feed, site, second), counted)| SecondLine { feed, site, second, counted }).collect()
    }
}

impl Second {
    fn counter(&mut self, outcome: Outcome) -> &mut u64 {
        match outcome {
            Outcome::Stored | Outcome::Held => &mut self.stored,
            Outcome::LateAtHub => &mut self.late_at_hub,
            Outcome::LateAtSite => &mut self.late_at_site,
            Outcome::Rejected | Outcome::Expired => &mut self.lost,
        }
    }
}

impl Stream {
    fn arrived(&mut self, receipt: &Receipt, clock: Option<ClockOffset>, second: &mut Second) {
        let (number, at) = (receipt.key.sequence, receipt.last_byte);
        if self.epoch.replace(receipt.key.epoch) != Some(receipt.key.epoch) {
            *self = Self { epoch: self.epoch, ..Self::default() };
        }
        match self.highest {
            // Below one that came before it (RFC 4737, section 3). Records of one read have one time.
            Some((highest, earlier)) if number < highest => {
                add(&mut second.reordered, u64::from(earlier < at))
            }
            _ => self.highest = Some((number, at)),
        }
        let transit_us = at.0.saturating_sub(receipt.hub_stored.0);
        if let Some(last_us) = self.transit_us.replace(transit_us) {
            let jitter = self.jitter_sixteenths.unwrap_or(0);
            let change = transit_us.abs_diff(last_us).min(CHANGE_MAX_US);
            self.jitter_sixteenths = Some((jitter - jitter.div_ceil(16)).saturating_add(change));
            second.jitter_us = self.jitter_sixteenths.map(|sixteenths| sixteenths / 16);
        }
        if let Some(clock) = clock {
            let delay_us = transit_us.saturating_sub(clock.offset_us);
            let bound_ms = clock.bound_us as f64 / 1_000.0;
            second.delay.get_or_insert_default().add(delay_us as f64 / 1_000.0, Some(bound_ms));
        }
    }
}

/// The second in which the hub stored a record; of one whose stamp nobody knows any more, that of its receipt. `None`
/// if it is older than what the ledger keeps, or of a clock ahead of this one.
fn second_of(receipt: &Receipt, now: WallMicros) -> Option<i64> {
    let stored = if receipt.hub_stored.0 == 0 { now } else { receipt.hub_stored };
    let ago_us = now.0.saturating_sub(stored.0);
    (-AHEAD_US..=KEPT_US).contains(&ago_us).then(|| stored.0.div_euclid(1_000_000))
}

/// The ledger keeps the newest hour.
const KEPT_US: i64 = 3_600_000_000;

/// The clock of the node that stored a record may be ahead of this one's.
const AHEAD_US: i64 = 60_000_000;

/// Longer changes of the transit are steps of a clock.
const CHANGE_MAX_US: u64 = 3_600_000_000;

#[cfg(test)]
mod tests {
    use downburst_model::ProductKey;

    use super::*;

    const NOW: WallMicros = WallMicros(1_000_000_000_000);

    fn receipt(number: u64, outcome: Outcome, (stored_us, took_us): (i64, i64)) -> Receipt {
        let key = ProductKey {
            feed: FeedName::parse("RADAR").unwrap(),
            epoch: Epoch(9),
            sequence: Sequence(number),
        };
        let stored = NOW.0 - 10_000_000 + stored_us;
        let hub_stored = WallMicros(stored);
        Receipt { hub_stored, ..Receipt::undescribed(key, outcome, WallMicros(stored + took_us)) }
    }

    fn after(
        seconds: &mut Seconds,
        receipts: &[Receipt],
        clock: Option<ClockOffset>,
    ) -> Vec<serde_json::Value> {
        let noted: Vec<_> =
            receipts.iter().map(|receipt| Noted { receipt, first_byte: None, has_deadline: true }).collect();
        seconds.receipts(&SiteName::parse("unl").unwrap(), &noted, clock, NOW);
        seconds.take().into_iter().map(|line| serde_json::to_value(line).unwrap()).collect()
    }

    fn stored(numbers: &[(u64, i64)]) -> Vec<Receipt> {
        numbers.iter().map(|(number, at)| receipt(*number, Outcome::Stored, (*at, 5_000))).collect()
    }

    #[test]
    fn each_outcome_counts_in_the_second_of_its_stamp() {
        use Outcome::{Expired, Held, LateAtHub, LateAtSite, Rejected, Stored};
        let all = [Stored, Held, LateAtHub, LateAtHub, LateAtSite, Rejected, Expired];
        let mut receipts: Vec<_> =
            (0..).zip(all).map(|(n, outcome)| receipt(n, outcome, (n as i64, 5_000))).collect();
        receipts.push(receipt(9, Stored, (1_000_000, 5_000)));
        let lines = after(&mut Seconds::default(), &receipts, None);
        let of = |line: usize, names: &[&str]| -> Vec<u64> {
            names.iter().map(|name| lines[line][name].as_u64().unwrap()).collect()
        };
        let names = ["stored", "late_at_hub", "late_at_site", "lost", "reordered"];
        assert_eq!((of(0, &names), of(1, &names)), (vec![2, 2, 1, 2, 0], vec![1, 0, 0, 0, 0]));
        assert_eq!(lines[1]["second"].as_i64().unwrap(), lines[0]["second"].as_i64().unwrap() + 1);
        assert!(lines[0]["delay"].is_null(), "the clocks were not compared");
    }

    #[test]
    fn a_lower_number_that_comes_later_is_reordered_and_one_of_the_same_read_is_not() {
        let late = [receipt(2, Outcome::Stored, (2_000, 9_000)), receipt(4, Outcome::Stored, (4_000, 5_000))];
        let receipts = [stored(&[(1, 1_000), (3, 3_000)]), late.to_vec()].concat();
        let mut seconds = Seconds::default();
        assert_eq!(after(&mut seconds, &receipts, None)[0]["reordered"], 1);
        let at = |number| Receipt { last_byte: NOW, ..receipt(number, Outcome::Stored, (5_000, 0)) };
        let lines = after(&mut seconds, &[at(9), at(8)], None);
        assert_eq!(lines[0]["reordered"], 0);
        let mut anew = receipt(1, Outcome::Stored, (9_000, 5_000));
        anew.key.epoch = Epoch(10);
        assert_eq!(after(&mut seconds, &[anew], None)[0]["reordered"], 0, "another life of the log");
    }

    #[test]
    fn delays_are_corrected_and_may_be_negative() {
        let clock = ClockOffset { offset_us: 6_000, bound_us: 250, round_trip_us: 500 };
        let mut seconds = Seconds::default();
        let lines = after(&mut seconds, &stored(&[(1, 0), (2, 10)]), Some(clock));
        let delay = &lines[0]["delay"];
        assert_eq!((&delay["count"], &delay["negative"]), (&2.into(), &2.into()));
        assert_eq!((delay["min_ms"].as_f64(), delay["bound_ms"].as_f64()), (Some(-1.0), Some(0.25)));
        assert_eq!(lines[0]["jitter_us"], 0);
    }

    #[test]
    fn jitter_is_that_of_the_standard_and_continues_over_seconds() {
        let mut seconds = Seconds::default();
        let took = |n: u64| receipt(n, Outcome::Stored, (n as i64 * 1_000, 100 + n as i64 % 2 * 160));
        after(&mut seconds, &(0..1_000).map(took).collect::<Vec<_>>(), None);
        let lines = after(&mut seconds, &(1_000..2_000).map(took).collect::<Vec<_>>(), None);
        let jitter = lines[0]["jitter_us"].as_u64().unwrap();
        assert!((158..=160).contains(&jitter), "{jitter}");
    }

    #[test]
    fn stamps_that_no_ledger_keeps_and_resends_and_other_feeds_do_not_count() {
        let old = [-KEPT_US, AHEAD_US + 11_000_000].map(|at| receipt(1, Outcome::Stored, (at, 0)));
        let again = Receipt { lane: Lane::Resend, ..receipt(2, Outcome::Stored, (0, 0)) };
        let receipts = [old.to_vec(), vec![again]].concat();
        assert!(after(&mut Seconds::default(), &receipts, None).is_empty());
        let ordinary = receipt(3, Outcome::Stored, (0, 0));
        let noted = [Noted { receipt: &ordinary, first_byte: None, has_deadline: false }];
        let mut seconds = Seconds::default();
        seconds.receipts(&SiteName::parse("unl").unwrap(), &noted, None, NOW);
        assert_eq!(seconds.len(), 0);
    }

    #[test]
    fn a_record_without_a_stamp_counts_when_its_receipt_comes() {
        let lost = Receipt { hub_stored: WallMicros(0), ..receipt(1, Outcome::Expired, (0, 0)) };
        let lines = after(&mut Seconds::default(), &[lost], None);
        assert_eq!((&lines[0]["lost"], &lines[0]["second"]), (&1.into(), &1_000_000.into()));
    }
}
