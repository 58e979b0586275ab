//! Receipts become sketches; sketches travel to the agent in files that are loaded once each.
use std::collections::BTreeMap;
use std::fs;

use downburst_model::{Epoch, FeedName, Lane, Sequence, SiteName, Transport, WallMicros};
use downburst_session::{ClockOffset, Frontier, Outcome, Receipt};
use serde::Serialize;

use super::{Hub, lock};
use crate::disk;
use crate::lines::Event;
use crate::sketch::Sketch;

/// What gathered since the last batch.
#[derive(Default)]
pub(super) struct Batches {
    prefix: u64,
    written: u64,
    sketches: BTreeMap<SketchKey, Sketch>,
    exceptions: Vec<Exception>,
    settled: BTreeMap<(FeedName, SiteName), Settled>,
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
}

#[derive(Serialize)]
struct SettledLine {
    feed: FeedName,
    site: SiteName,
    #[serde(flatten)]
    settled: Settled,
}

#[derive(Serialize)]
struct BatchFile {
    batch: String,
    sketches: Vec<SketchLine>,
    exceptions: Vec<Exception>,
    settled: Vec<SettledLine>,
}

/// A receipt, and when the hub sent the product's first byte, if it still knows.
pub(super) struct Noted<'a> {
    pub(super) receipt: &'a Receipt,
    pub(super) first_byte: Option<WallMicros>,
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
    pub(super) fn new(prefix: u64) -> Self {
        Self { prefix, ..Self::default() }
    }

    /// Adds a site's receipts. Alike ones that follow each other cost little more than one.
    pub(super) fn receipts(&mut self, site: &SiteName, noted: &[Noted<'_>], clock: Option<ClockOffset>) {
        for run in noted.chunk_by(|one, next| one.is_alike(next)) {
            self.count(site, run);
            match run.first().map(|noted| (noted.receipt.outcome, noted.receipt.lane)) {
                Some((Outcome::Rejected, _)) => self.except(site, run, "rejected"),
                Some((Outcome::Expired, _)) => self.except(site, run, "expired"),
                Some((Outcome::Stored, Lane::Live)) => self.sketch(site, run, clock),
                _ => {}
            }
        }
    }

    /// Remembers where a site stands.
    pub(super) fn frontier(&mut self, site: &SiteName, frontier: &Frontier) {
        let settled = self.settled.entry((frontier.feed.clone(), site.clone())).or_default();
        settled.epoch = epoch_text(frontier.epoch);
        settled.settled_to = frontier.settled_to;
    }

    fn count(&mut self, site: &SiteName, run: &[Noted<'_>]) {
        let [Noted { receipt: first, .. }, ..] = run else { return };
        let settled = self.settled.entry((first.key.feed.clone(), site.clone())).or_default();
        settled.epoch = epoch_text(first.key.epoch);
        let products = run.len() as u64;
        match first.outcome {
            Outcome::Stored => {
                settled.stored += products;
                let bytes = run.iter().fold(0_u64, |sum, noted| sum.saturating_add(noted.receipt.size));
                settled.stored_bytes = settled.stored_bytes.saturating_add(bytes);
            }
            Outcome::Held => settled.duplicates += products,
            Outcome::Rejected => settled.rejected += products,
            Outcome::Expired => settled.expired += products,
        }
    }

    fn except(&mut self, site: &SiteName, run: &[Noted<'_>], outcome: &'static str) {
        self.exceptions.extend(run.iter().map(|Noted { receipt, .. }| Exception {
            feed: receipt.key.feed.clone(),
            epoch: epoch_text(receipt.key.epoch),
            sequence: receipt.key.sequence,
            site: site.clone(),
            outcome,
            at_us: receipt.site_stored,
        }));
    }

    fn sketch(&mut self, site: &SiteName, run: &[Noted<'_>], clock: Option<ClockOffset>) {
        let queueing =
            |noted: &Noted<'_>| Some(noted.first_byte?.0.saturating_sub(noted.receipt.hub_stored.0));
        self.add(site, run, ("queueing", None), queueing);
        let action = |Noted { receipt, .. }: &Noted<'_>| {
            Some(receipt.action_done?.0.saturating_sub(receipt.site_stored.0))
        };
        self.add(site, run, ("action", None), action);
        let Some(clock) = clock else { return };
        let bound_ms = Some(clock.bound_us as f64 / 1_000.0);
        let stored_us = |receipt: &Receipt| receipt.site_stored.0.saturating_sub(clock.offset_us);
        let distribution = |Noted { receipt, .. }: &Noted<'_>| Some(receipt.took_us(clock));
        self.add(site, run, ("distribution", bound_ms), distribution);
        let end_to_end =
            |Noted { receipt, .. }: &Noted<'_>| Some(stored_us(receipt).saturating_sub(receipt.created.0));
        self.add(site, run, ("end-to-end", bound_ms), end_to_end);
    }

    /// Adds one kind of latency of alike receipts, where it is known.
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
        let sketch = self.sketches.entry(key).or_default();
        values.for_each(|value_ms| sketch.add(value_ms, bound_ms));
    }

    fn take(&mut self) -> Option<BatchFile> {
        if self.sketches.is_empty() && self.exceptions.is_empty() && self.settled.is_empty() {
            return None;
        }
        self.written += 1;
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
        })
    }
}

impl Hub {
    /// Writes what gathered as a batch file and names it to the agent.
    pub(super) fn write_batch(&self) {
        let Some(batch) = lock(&self.batches).take() else { return };
        let path = self.start.batch_dir.join(format!("{}.json", batch.batch));
        let aside = path.with_extension("tmp");
        let written = serde_json::to_vec(&batch)
            .map_err(std::io::Error::from)
            .and_then(|bytes| fs::write(&aside, bytes))
            .and_then(|()| fs::rename(&aside, &path));
        match written {
            Ok(()) => self.event(&Event::Batch { batch: batch.batch, path }),
            Err(error) => {
                let sentence = format!(
                    "latency figures could not be written to {}: {error}; {}",
                    path.display(),
                    disk::remedy(&error)
                );
                self.fault(sentence, None);
            }
        }
    }

    /// Forgets a batch that the agent has loaded.
    pub(super) fn batch_loaded(&self, batch: &str) {
        let plain =
            !batch.is_empty() && batch.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if plain {
            let _ = fs::remove_file(self.start.batch_dir.join(format!("{batch}.json")));
        }
    }
}

/// The minute a product counts in.
fn minute(receipt: &Receipt) -> i64 {
    receipt.hub_stored.0.div_euclid(60_000_000)
}

fn epoch_text(epoch: Epoch) -> String {
    epoch.0.to_string()
}

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
        batches.receipts(&site(), &[Noted { receipt, first_byte }], clock);
    }

    fn site() -> SiteName {
        SiteName::parse("unl").unwrap()
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
            Noted { receipt, first_byte }
        });
        let noted: Vec<Noted<'_>> = noted.collect();
        let (mut together, mut single) = (Batches::new(1), Batches::new(1));
        together.receipts(&site(), &noted, clock);
        noted.iter().for_each(|noted| add(&mut single, noted.receipt, clock, noted.first_byte));
        let together = line(&mut together);
        assert_eq!(together, line(&mut single));
        assert!(together["sketches"].as_array().unwrap().len() > 20);
    }
}
