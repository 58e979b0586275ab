use std::collections::BTreeMap;
use std::sync::Arc;

use downburst_model::{Epoch, RangeSet};

use super::assembly::Assembly;
use crate::Train;
use crate::spans::Spans;

/// Complete products that the driver is storing: they outlive sessions and epochs until the driver reports the
/// outcome.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    products: BTreeMap<(Epoch, u64), Assembly>,
    trains: BTreeMap<(Epoch, u64), Stored>,
    /// The numbers of those in the present epoch.
    numbers: RangeSet,
    count: u64,
}

/// A train that is being stored.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) train: Arc<Train>,
    pub(crate) last_byte: downburst_model::WallMicros,
}

impl Waiting {
    pub(crate) fn insert(&mut self, assembly: Assembly, present: bool) {
        let key = (assembly.info.key.epoch, assembly.info.key.sequence.0);
        if present {
            self.numbers.insert(key.1, key.1);
        }
        self.count = self.count.saturating_add(1);
        self.products.insert(key, assembly);
    }

    pub(crate) fn insert_train(&mut self, stored: Stored) {
        for (first, last) in runs(&stored.train) {
            self.numbers.insert(first, last);
        }
        self.count = self.count.saturating_add(stored.train.cars.len() as u64);
        self.trains.insert((stored.train.epoch, stored.train.first()), stored);
    }

    pub(crate) fn remove(&mut self, key: (Epoch, u64), present: Epoch) -> Option<Assembly> {
        let assembly = self.products.remove(&key)?;
        if key.0 == present {
            self.numbers.remove(key.1, key.1);
        }
        self.count = self.count.saturating_sub(1);
        Some(assembly)
    }

    pub(crate) fn remove_train(&mut self, train: &Train, present: Epoch) -> Option<Stored> {
        let stored = self.trains.remove(&(train.epoch, train.first()))?;
        if train.epoch == present {
            for (first, last) in runs(&stored.train) {
                self.numbers.remove(first, last);
            }
        }
        self.count = self.count.saturating_sub(stored.train.cars.len() as u64);
        Some(stored)
    }

    /// Switches the set of numbers to another epoch.
    pub(crate) fn turn_to(&mut self, epoch: Epoch) {
        let trains = self.trains.iter().filter(|((of, _), _)| *of == epoch);
        let products =
            self.products.keys().filter(|(of, _)| *of == epoch).map(|(_, number)| (*number, *number));
        self.numbers = trains.flat_map(|(_, stored)| runs(&stored.train)).chain(products).collect();
    }

    /// The numbers of the present epoch.
    pub(crate) fn numbers(&self) -> &RangeSet {
        &self.numbers
    }

    pub(crate) fn has_any(&self, first: u64, last: u64) -> bool {
        !self.numbers.within(first, last).is_empty()
    }

    /// The number of products, of all epochs.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }
}

/// The numbers of a train's products, as ranges without a hole.
pub(crate) fn runs(train: &Train) -> impl Iterator<Item = (u64, u64)> + '_ {
    let runs = train.cars.chunk_by(|one, next| one.sequence.0.checked_add(1) == Some(next.sequence.0));
    runs.filter_map(|run| Some((run.first()?.sequence.0, run.last()?.sequence.0)))
}
