use std::sync::Arc;

use downburst_model::{Now, Transport, WallMicros};

use super::SiteSession;
use super::assembly::{Assembly, Source};
use super::track::{Outputs, Track};
use super::waiting::{Stored, runs};
use crate::train::Around;
use crate::{Car, Outcome, Receipt, SiteOutput, StoreResult, Train};

impl SiteSession {
    pub(super) fn take_train(&mut self, now: Now, train: Train, around: Around) {
        let track = self.tracks.get_mut(&train.feed);
        if let Some(track) = track.filter(|track| track.started && track.epoch == train.epoch) {
            track.take_train(now, train, around, &mut self.outputs);
        }
    }

    pub(super) fn settle_train(
        &mut self,
        now: Now,
        train: &Train,
        results: Vec<StoreResult>,
        at: WallMicros,
    ) {
        let Some(track) = self.tracks.get_mut(&train.feed) else {
            return;
        };
        for receipt in track.settle_train(now, train, results, at, &mut self.outputs) {
            self.receipts.push(now, receipt);
        }
    }
}

impl Track {
    /// Takes products that arrived whole. If all of their numbers are unknown, they are stored together;
    /// otherwise each is handled like a product received by itself.
    pub(super) fn take_train(&mut self, now: Now, train: Train, around: Around, out: &mut Outputs) {
        self.cover(now, around.previous.saturating_add(1), train.first().saturating_sub(1), out);
        let gaps: Vec<(u64, u64)> = gaps(&train, around.to).collect();
        for (first, last) in gaps {
            self.cover(now, first, last, out);
        }
        if self.is_unknown(&train) {
            let train = Arc::new(train);
            self.waiting.insert_train(Stored { train: Arc::clone(&train), last_byte: now.wall });
            out.push_back(SiteOutput::Train { train, last_byte: now.wall });
        } else {
            train.cars.iter().for_each(|car| self.take_car(now, &train, car, out));
        }
    }

    /// Takes the results of the driver's attempt to store a train. Returns the receipts of the products with
    /// final results.
    fn settle_train(
        &mut self,
        now: Now,
        train: &Train,
        results: Vec<StoreResult>,
        at: WallMicros,
        out: &mut Outputs,
    ) -> Vec<Receipt> {
        let Some(stored) = self.waiting.remove_train(train, self.epoch) else {
            return Vec::new();
        };
        let all_stored = results.iter().all(|result| *result == StoreResult::Stored);
        if all_stored && results.len() == stored.train.cars.len() {
            return self.settle_whole(now, &stored, at);
        }
        // Missing results count as failures to store.
        let unsaid = || StoreResult::Failed("the driver did not report the outcome".to_owned());
        let results = results.into_iter().chain(std::iter::repeat_with(unsaid));
        let each = stored.train.cars.iter().zip(results).filter_map(|(car, result)| {
            let assembly =
                Assembly::whole(now, stored.train.info(car), source(train), train.lane, stored.last_byte);
            self.conclude(now, assembly, result, at, out)
        });
        each.collect()
    }

    /// Every product of the train was stored.
    fn settle_whole(&mut self, now: Now, stored: &Stored, at: WallMicros) -> Vec<Receipt> {
        let train = &stored.train;
        self.stored(now, train.epoch, train.cars.iter().map(|car| (car.sequence.0, car.stored)));
        train.cars.iter().map(|car| receipt(stored, car, at)).collect()
    }

    /// True if no number of the train is settled, pending or waiting.
    fn is_unknown(&self, train: &Train) -> bool {
        runs(train).all(|(first, last)| self.is_unheard_of(first, last))
    }

    fn take_car(&mut self, now: Now, train: &Train, car: &Car, out: &mut Outputs) {
        let (number, source) = (car.sequence.0, source(train));
        let Some(assembly) = self.announce(now, train.info(car), train.lane, source, out) else {
            return;
        };
        assembly.transfers = assembly.transfers.saturating_add(1);
        assembly.repaired |= !assembly.legs.is_empty();
        self.block(now, source, (number, 0), &car.bytes, false, out);
        self.transfer_ended(now, number);
    }
}

/// The numbers between and behind the cars that, by the train, are not for this site.
fn gaps(train: &Train, to: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
    let ends = train.cars.iter().map(|car| car.sequence.0);
    let begins = ends.clone().skip(1).map(|next| next.saturating_sub(1)).chain([to]);
    ends.map(|end| end.saturating_add(1)).zip(begins).filter(|(first, last)| first <= last)
}

fn source(train: &Train) -> Source {
    Source { leg: train.leg, transport: Transport::Unicast }
}

fn receipt(stored: &Stored, car: &Car, at: WallMicros) -> Receipt {
    let train = &stored.train;
    Receipt {
        key: train.key(car),
        outcome: Outcome::Stored,
        lane: train.lane,
        leg: train.leg,
        transport: Transport::Unicast,
        class: train.class,
        size: car.bytes.len() as u64,
        created: car.created,
        hub_stored: car.stored,
        last_byte: stored.last_byte,
        site_stored: at,
        repaired: false,
        action_done: None,
    }
}

#[cfg(test)]
mod tests;
