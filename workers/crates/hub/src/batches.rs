//! Aggregates receipts into sketches, and sketches into files, each of which the agent loads once.
mod seconds;

use std::collections::BTreeMap;

use downburst_model::bounds::INTEGER_MAX;
use downburst_model::{Epoch, FeedName, Lane, Sequence, SiteName, Transport, WallMicros};
use downburst_session::{ClockOffset, Frontier, Outcome, Receipt};
use serde::Serialize;

use crate::sketch::Sketch;
use seconds::{SecondLine, Seconds};

/// The receipts and positions since the last batch.
#[derive(Default)]
pub struct Batches {
    prefix: u64,
    written: u64,
    sketches: BTreeMap<SketchKey, Sketch>,
    /// The number of sketches that each site caused.
    sketches_of: BTreeMap<SiteName, usize>,
    exceptions: Vec<Exception>,
    settled: BTreeMap<(FeedName, SiteName), Settled>,
    seconds: Seconds,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct SketchKey {
    feed: FeedName,
    site: SiteName,
    transport: Transport,
    minute: i64,
    kind: &'static str,
}

#[derive(Serialize)]
struct SketchLine {
    #[serde(flatten)]
    key: SketchKey,
    #[serde(flatten)]
    sketch: Sketch,
}

#[derive(Serialize)]
struct Exception {
    feed: FeedName,
    epoch: String,
    sequence: Sequence,
    site: SiteName,
    outcome: &'static str,
    at_us: WallMicros,
}

#[derive(Default, Serialize)]
struct Settled {
    epoch: String,
    settled_to: Sequence,
    stored: u64,
    stored_bytes: u64,
    duplicates: u64,
    rejected: u64,
    expired: u64,
    late_at_hub: u64,
    late_at_site: u64,
}

#[derive(Serialize)]
struct SettledLine {
    feed: FeedName,
    site: SiteName,
    #[serde(flatten)]
    settled: Settled,
}

/// The content of one file, as JSON.
#[derive(Serialize)]
pub struct BatchFile {
    /// Its id, which names the file.
    pub batch: String,
    sketches: Vec<SketchLine>,
    exceptions: Vec<Exception>,
    settled: Vec<SettledLine>,
    /// Of feeds with a deadline.
    seconds: Vec<SecondLine>,
}

/// A receipt, with the time at which the hub sent the product's first byte, if still known.
pub struct Noted<'a> {
    /// The site's receipt.
    pub receipt: &'a Receipt,
    /// The time of the first byte, on the reference clock.
    pub first_byte: Option<WallMicros>,
    /// Its feed has a deadline.
    pub has_deadline: bool,
}

impl Noted<'_> {
    /// True if both are counted in the same places.
    fn is_alike(&self, other: &Self) -> bool {
        let (one, other) = (self.receipt, other.receipt);
        (one.outcome, one.lane, one.transport, one.key.epoch)
            == (other.outcome, other.lane, other.transport, other.key.epoch)
            && minute(one) == minute(other)
            && one.key.feed == other.key.feed
    }
}

impl Batches {
    /// A gatherer whose batch ids begin with `prefix`, random at each start of the node.
    pub fn new(prefix: u64) -> Self {
        Self { prefix, ..Self::default() }
    }

    /// Adds a site's receipts, which arrived at `now`. A run of similar ones costs little more than one. Returns
    /// the number of receipts whose latency does not count: their times on the hub's own clock are impossible, or
    /// too many different ones would fill the ledger.
    pub fn receipts(
        &mut self,
        site: &SiteName,
        noted: &[Noted<'_>],
        clock: Option<ClockOffset>,
        now: WallMicros,
    ) -> usize {
        self.seconds.receipts(site, noted, clock, now);
        let mut passed_over = 0;
        for run in noted.chunk_by(|one, next| one.is_alike(next)) {
            self.count(site, run);
            let Some(Noted { receipt, .. }) = run.first() else { continue };
            match (receipt.outcome, receipt.lane) {
                (Outcome::Rejected, _) => self.except(site, run, "rejected", now),
                (Outcome::Expired, _) => self.except(site, run, "expired", now),
                (Outcome::Stored, Lane::Live) if self.can_count(site, receipt, now) => {
                    self.sketch(site, run, clock);
                }
                (Outcome::Stored, Lane::Live) => passed_over += run.len(),
                _ => {}
            }
        }
        passed_over
    }

    /// Adds the times of files that were complete only after their receipts had left: the slowest are among
    /// them.
    pub fn filed(&mut self, site: &SiteName, items: &[Receipt], now: WallMicros) {
        let of_file = |receipt| Noted { receipt, first_byte: None, has_deadline: false };
        let noted: Vec<Noted<'_>> = items.iter().map(of_file).collect();
        for run in noted.chunk_by(|one, next| one.is_alike(next)) {
            let Some(Noted { receipt, .. }) = run.first() else { continue };
            let is_live = (receipt.outcome, receipt.lane) == (Outcome::Stored, Lane::Live);
            if is_live && self.can_count(site, receipt, now) {
                self.add(site, run, ("action", None), took_file_us);
            }
        }
    }

    /// True if the batch is so large that it should be handed over.
    pub fn is_large(&self) -> bool {
        self.sketches.len().saturating_add(self.seconds.len()) >= LARGE_SKETCHES
            || self.exceptions.len() >= LARGE_EXCEPTIONS
    }

    /// Records a site's position.
    pub fn frontier(&mut self, site: &SiteName, frontier: &Frontier) {
        let settled = self.settled.entry((frontier.feed.clone(), site.clone())).or_default();
        settled.epoch = epoch_text(frontier.epoch);
        settled.settled_to = frontier.settled_to;
    }

    fn count(&mut self, site: &SiteName, run: &[Noted<'_>]) {
        let [Noted { receipt: first, .. }, ..] = run else { return };
        let settled = self.settled.entry((first.key.feed.clone(), site.clone())).or_default();
        settled.epoch = epoch_text(first.key.epoch);
        let counted = match first.outcome {
            Outcome::Stored => {
                run.iter().for_each(|noted| add(&mut settled.stored_bytes, noted.receipt.size));
                &mut settled.stored
            }
            Outcome::Held => &mut settled.duplicates,
            Outcome::Rejected => &mut settled.rejected,
            Outcome::Expired => &mut settled.expired,
            Outcome::LateAtHub => &mut settled.late_at_hub,
            Outcome::LateAtSite => &mut settled.late_at_site,
        };
        add(counted, run.len() as u64);
    }

    /// True if the hub stored a live product recently and not in the future, and the site has not caused too many
    /// sketches: other times of a site must not reach the ledger.
    fn can_count(&self, site: &SiteName, receipt: &Receipt, now: WallMicros) -> bool {
        let ago_us = now.0.saturating_sub(receipt.hub_stored.0);
        let has_room = self.sketches_of.get(site).is_none_or(|count| *count < SKETCHES_OF_A_SITE);
        (-AHEAD_US..=LATE_US).contains(&ago_us) && has_room
    }

    fn except(&mut self, site: &SiteName, run: &[Noted<'_>], outcome: &'static str, now: WallMicros) {
        self.exceptions.extend(run.iter().map(|Noted { receipt, .. }| Exception {
            feed: receipt.key.feed.clone(),
            epoch: epoch_text(receipt.key.epoch),
            sequence: receipt.key.sequence,
            site: site.clone(),
            outcome,
            // No product is settled in the hub's future, whatever the site's clock shows.
            at_us: receipt.site_stored.min(now),
        }));
    }

    fn sketch(&mut self, site: &SiteName, run: &[Noted<'_>], clock: Option<ClockOffset>) {
        let queueing =
            |noted: &Noted<'_>| Some(noted.first_byte?.0.saturating_sub(noted.receipt.hub_stored.0));
        self.add(site, run, ("queueing", None), queueing);
        self.add(site, run, ("action", None), took_file_us);
        let Some(clock) = clock else { return };
        let bound_ms = Some(clock.bound_us as f64 / 1_000.0);
        let stored_us = |receipt: &Receipt| receipt.site_stored.0.saturating_sub(clock.offset_us);
        let distribution = |Noted { receipt, .. }: &Noted<'_>| Some(receipt.took_us(clock));
        self.add(site, run, ("distribution", bound_ms), distribution);
        let end_to_end =
            |Noted { receipt, .. }: &Noted<'_>| Some(stored_us(receipt).saturating_sub(receipt.created.0));
        self.add(site, run, ("end-to-end", bound_ms), end_to_end);
    }

    /// Adds one kind of latency of alike receipts, if known.
    fn add(
        &mut self,
        site: &SiteName,
        run: &[Noted<'_>],
        (kind, bound_ms): (&'static str, Option<f64>),
        value_us: impl Fn(&Noted<'_>) -> Option<i64>,
    ) {
        let mut values = run.iter().filter_map(value_us).map(|us| us as f64 / 1_000.0).peekable();
        let (Some(Noted { receipt, .. }), Some(_)) = (run.first(), values.peek()) else { return };
        let key = SketchKey {
            feed: receipt.key.feed.clone(),
            site: site.clone(),
            transport: receipt.transport,
            minute: minute(receipt),
            kind,
        };
        let sketch = self.sketches.entry(key).or_insert_with(|| {
            *self.sketches_of.entry(site.clone()).or_default() += 1;
            Sketch::default()
        });
        values.for_each(|value_ms| sketch.add(value_ms, bound_ms));
    }

    /// The batch since the last call; `None` if it is empty.
    pub fn take(&mut self) -> Option<BatchFile> {
        if self.sketches.is_empty() && self.exceptions.is_empty() && self.settled.is_empty() {
            return None;
        }
        self.written += 1;
        self.sketches_of.clear();
        let sketches = std::mem::take(&mut self.sketches);
        let settled = std::mem::take(&mut self.settled);
        Some(BatchFile {
            batch: format!("{:016x}-{:08}", self.prefix, self.written),
            sketches: sketches.into_iter().map(|(key, sketch)| SketchLine { key, sketch }).collect(),
            exceptions: std::mem::take(&mut self.exceptions),
            settled: settled
                .into_iter()
                .map(|((feed, site), settled)| SettledLine { feed, site, settled })
                .collect(),
            seconds: self.seconds.take(),
        })
    }
}

/// Increases a counter, up to the ledger's maximum.
fn add(counter: &mut u64, more: u64) {
    *counter = counter.saturating_add(more).min(INTEGER_MAX);
}

/// The time from the site's log to the file, if the file was completed.
fn took_file_us(Noted { receipt, .. }: &Noted<'_>) -> Option<i64> {
    Some(receipt.action_done?.0.saturating_sub(receipt.site_stored.0))
}

/// The minute a product counts in.
fn minute(receipt: &Receipt) -> i64 {
    receipt.hub_stored.0.div_euclid(60_000_000)
}

fn epoch_text(epoch: Epoch) -> String {
    epoch.0.to_string()
}

/// True for the form of a batch's name, which becomes a part of a path.
pub fn is_batch_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// A live product waits in a slow site's queue for as long as the log keeps it: a week and a day.
const LATE_US: i64 = 8 * 86_400_000_000;

/// The clock of the node that ingested a product may be ahead of this one's, or this one was set back.
const AHEAD_US: i64 = 86_400_000_000;

/// A site of thirty feeds that catches up half an hour within a second causes about as many.
const SKETCHES_OF_A_SITE: usize = 4_096;

/// A batch stays below [`BATCH_BYTES_MAX`](downburst_model::bounds::BATCH_BYTES_MAX): the largest sketch takes
/// about 12 kB.
const LARGE_SKETCHES: usize = 10_000;
const LARGE_EXCEPTIONS: usize = 200_000;

#[cfg(test)]
mod tests {
    use downburst_model::{Class, LegId, ProductKey};

    use super::*;

    fn receipt(outcome: Outcome, lane: Lane) -> Receipt {
        Receipt {
            key: ProductKey {
                feed: FeedName::parse("NGRID").unwrap(),
                epoch: Epoch(9),
                sequence: Sequence(4),
            },
            outcome,
            lane,
            leg: LegId(1),
            transport: Transport::Multicast,
            class: Class::Grid,
            size: 1_000,
            created: WallMicros(60_000_000),
            hub_stored: WallMicros(60_500_000),
            last_byte: WallMicros(60_700_000),
            site_stored: WallMicros(60_800_000),
            repaired: false,
            action_done: Some(WallMicros(60_803_000)),
        }
    }

    fn line(batches: &mut Batches) -> serde_json::Value {
        serde_json::to_value(batches.take().unwrap()).unwrap()
    }

    fn add(
        batches: &mut Batches,
        receipt: &Receipt,
        clock: Option<ClockOffset>,
        first_byte: Option<WallMicros>,
    ) {
        batches.receipts(&site(), &[Noted { receipt, first_byte, has_deadline: false }], clock, NOW);
    }

    fn site() -> SiteName {
        SiteName::parse("unl").unwrap()
    }

    /// An hour after all of these products.
    const NOW: WallMicros = WallMicros(3_600_000_000);

    #[test]
    fn finding_01_sums_of_what_a_site_claims_stay_within_what_the_ledger_counts() {
        let mut batches = Batches::new(1);
        let most = Receipt { size: INTEGER_MAX, ..receipt(Outcome::Stored, Lane::Backfill) };
        for _ in 0..3 {
            add(&mut batches, &most, None, None);
        }
        let line = line(&mut batches);
        assert_eq!(line["settled"][0]["stored_bytes"], INTEGER_MAX);
        assert_eq!(line["settled"][0]["stored"], 3);
    }

    #[test]
    fn finding_02_what_a_site_says_of_the_hubs_past_reaches_no_further_than_products_wait() {
        let now = WallMicros(20 * 86_400_000_000);
        let mut batches = Batches::new(1);
        let at = |hub_stored| Receipt { hub_stored, ..receipt(Outcome::Stored, Lane::Live) };
        let said = [now.0 + AHEAD_US, now.0 + AHEAD_US + 1, now.0 - LATE_US, now.0 - LATE_US - 1];
        let passed_over = said.map(|stored| {
            let receipt = at(WallMicros(stored));
            let noted = [Noted { receipt: &receipt, first_byte: None, has_deadline: false }];
            batches.receipts(&site(), &noted, None, now)
        });
        assert_eq!(passed_over, [0, 1, 0, 1]);
        let line = line(&mut batches);
        assert_eq!(line["settled"][0]["stored"], 4, "it is stored all the same");
        let minutes: BTreeMap<i64, ()> = line["sketches"]
            .as_array()
            .unwrap()
            .iter()
            .map(|sketch| (sketch["minute"].as_i64().unwrap(), ()))
            .collect();
        assert_eq!(minutes.len(), 2);
    }

    #[test]
    fn one_site_brings_about_so_many_sketches_and_no_more() {
        let now = WallMicros(20 * 86_400_000_000);
        let mut batches = Batches::new(1);
        let passed_over: usize = (0..6_000_i64)
            .map(|minute| {
                let hub_stored = WallMicros(now.0 - minute * 60_000_000);
                let receipt =
                    Receipt { hub_stored, action_done: None, ..receipt(Outcome::Stored, Lane::Live) };
                let noted = [Noted { receipt: &receipt, first_byte: Some(hub_stored), has_deadline: false }];
                batches.receipts(&site(), &noted, None, now)
            })
            .sum();
        assert_eq!(batches.sketches.len(), SKETCHES_OF_A_SITE);
        assert_eq!(passed_over, 6_000 - SKETCHES_OF_A_SITE);
        line(&mut batches);
        add(&mut batches, &receipt(Outcome::Stored, Lane::Live), None, None);
        assert_eq!(batches.sketches.len(), 1, "the next batch has room again");
    }

    #[test]
    fn nothing_ends_in_the_hubs_future() {
        let mut batches = Batches::new(1);
        let later = WallMicros(NOW.0 + 5);
        let lost = Receipt { site_stored: later, ..receipt(Outcome::Expired, Lane::Live) };
        add(&mut batches, &lost, None, None);
        assert_eq!(line(&mut batches)["exceptions"][0]["at_us"], NOW.0);
    }

    #[test]
    fn latencies_are_corrected_by_the_offset_and_carry_its_bound() {
        let mut batches = Batches::new(1);
        let clock = ClockOffset { offset_us: 100_000, bound_us: 2_000, round_trip_us: 4_000 };
        let first_byte = Some(WallMicros(60_510_000));
        add(&mut batches, &receipt(Outcome::Stored, Lane::Live), Some(clock), first_byte);
        let line = line(&mut batches);
        let sketches = line["sketches"].as_array().unwrap();
        let of = |kind: &str| sketches.iter().find(|sketch| sketch["kind"] == kind).unwrap();
        assert_eq!(of("distribution")["max_ms"], 200.0);
        assert_eq!(of("distribution")["bound_ms"], 2.0);
        assert_eq!(of("end-to-end")["max_ms"], 700.0);
        assert_eq!(of("queueing")["max_ms"], 10.0);
        assert_eq!(of("action")["max_ms"], 3.0);
        assert_eq!(of("distribution")["minute"], 1);
        assert_eq!(of("distribution")["transport"], "multicast");
        assert!(batches.take().is_none(), "a batch is handed over once");
    }

    #[test]
    fn without_a_compared_clock_or_off_the_live_lane_there_is_no_distribution_latency() {
        let mut batches = Batches::new(1);
        let unfinished = Receipt { action_done: None, ..receipt(Outcome::Stored, Lane::Live) };
        add(&mut batches, &unfinished, None, None);
        let clock = ClockOffset { offset_us: 0, bound_us: 1, round_trip_us: 2 };
        add(&mut batches, &receipt(Outcome::Stored, Lane::Backfill), Some(clock), None);
        let line = line(&mut batches);
        assert!(line["sketches"].as_array().unwrap().is_empty());
        assert_eq!(line["settled"][0]["stored"], 2);
    }

    #[test]
    fn what_was_lost_is_listed_and_doubles_are_counted() {
        let mut batches = Batches::new(1);
        for outcome in [Outcome::Rejected, Outcome::Expired, Outcome::Held] {
            add(&mut batches, &receipt(outcome, Lane::Live), None, None);
        }
        let line = line(&mut batches);
        let outcomes: Vec<&str> = line["exceptions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["outcome"].as_str().unwrap())
            .collect();
        assert_eq!(outcomes, ["rejected", "expired"]);
        assert_eq!(line["settled"][0]["duplicates"], 1);
        assert_eq!(line["settled"][0]["epoch"], "9");
    }

    #[test]
    fn many_at_once_count_as_one_by_one() {
        let clock = Some(ClockOffset { offset_us: -3, bound_us: 2, round_trip_us: 4 });
        let mut receipts = Vec::new();
        for n in 0..400_i64 {
            let mut receipt = receipt([Outcome::Stored, Outcome::Held][usize::from(n % 50 == 7)], Lane::Live);
            receipt.key.feed = FeedName::parse(["A", "B"][usize::from(n % 90 > 60)]).unwrap();
            receipt.hub_stored = WallMicros(n * 700_000);
            receipt.site_stored = WallMicros(n * 700_000 + 1_000 * n);
            receipt.action_done = (n % 3 == 0).then_some(WallMicros(n * 701_000));
            receipts.push(receipt);
        }
        let noted = receipts.iter().enumerate().map(|(n, receipt)| {
            let first_byte = (n % 4 > 0).then(|| WallMicros(receipt.hub_stored.0 + n as i64));
            Noted { receipt, first_byte, has_deadline: false }
        });
        let noted: Vec<Noted<'_>> = noted.collect();
        let (mut together, mut single) = (Batches::new(1), Batches::new(1));
        together.receipts(&site(), &noted, clock, NOW);
        noted.iter().for_each(|noted| add(&mut single, noted.receipt, clock, noted.first_byte));
        let together = line(&mut together);
        assert_eq!(together, line(&mut single));
        assert!(together["sketches"].as_array().unwrap().len() > 20);
    }

    #[test]
    fn a_name_leads_out_of_no_folder() {
        assert!(is_batch_name("00ff-12"));
        for bad in ["", "..", "a/b", "a.json", "a\0", "ä"] {
            assert!(!is_batch_name(bad), "{bad:?}");
        }
    }
}
