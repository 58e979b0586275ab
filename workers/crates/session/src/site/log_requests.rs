use downburst_model::{Micros, RangeSet};

use crate::spans::Spans;

/// A site's requests to the hub's log, with their times of repetition.
#[derive(Debug, Default)]
pub(crate) struct LogRequests {
    batches: Vec<Batch>,
}

#[derive(Debug)]
struct Batch {
    at: Micros,
    pause: Micros,
    numbers: RangeSet,
}

impl LogRequests {
    /// Requests these numbers at `at`; an earlier request for one of them is replaced.
    pub(crate) fn add(&mut self, numbers: RangeSet, at: Micros) {
        for batch in &mut self.batches {
            batch.numbers.subtract(&numbers);
        }
        self.push(Batch { at, pause: FIRST_PAUSE, numbers });
    }

    /// True if the number was requested, or is scheduled to be.
    pub(crate) fn has(&self, number: u64) -> bool {
        self.batches.iter().any(|batch| batch.numbers.contains(number))
    }

    /// Returns `numbers` without those that were requested or are scheduled to be.
    pub(crate) fn known(&self, mut numbers: RangeSet) -> RangeSet {
        for batch in &self.batches {
            numbers.subtract(&batch.numbers);
        }
        numbers
    }

    /// The numbers to request at `now`. `over` are those that need no more requests, `waiting` those that need
    /// none for now.
    pub(crate) fn due(&mut self, now: Micros, over: &RangeSet, waiting: &RangeSet) -> RangeSet {
        let (due, later): (Vec<Batch>, Vec<Batch>) =
            std::mem::take(&mut self.batches).into_iter().partition(|batch| batch.at <= now);
        self.batches = later;
        let mut asked = RangeSet::new();
        for mut batch in due {
            batch.numbers.subtract(over);
            let mut numbers = batch.numbers.clone();
            numbers.subtract(waiting);
            asked.add(&numbers);
            let pause = batch.pause;
            self.push(Batch { at: now.plus(pause), pause: longer(pause), numbers: batch.numbers });
        }
        self.limit(asked, now)
    }

    pub(crate) fn deadline(&self) -> Option<Micros> {
        self.batches.iter().map(|batch| batch.at).min()
    }

    pub(crate) fn clear(&mut self) {
        self.batches.clear();
    }

    /// Limits a request to one message; the rest follows immediately in the next.
    fn limit(&mut self, asked: RangeSet, now: Micros) -> RangeSet {
        if asked.range_count() <= RANGES_PER_WANT {
            return asked;
        }
        let rest: RangeSet = asked.iter().skip(RANGES_PER_WANT).collect();
        self.add(rest, now.plus(Micros(1)));
        asked.iter().take(RANGES_PER_WANT).collect()
    }

    fn push(&mut self, batch: Batch) {
        self.batches.retain(|known| !known.numbers.is_empty());
        if batch.numbers.is_empty() {
            return;
        }
        let full = self.batches.len() >= BATCHES;
        let alike = |last: &Batch| full || (last.at == batch.at && last.pause == batch.pause);
        match self.batches.last_mut().filter(|last| alike(last)) {
            Some(last) => {
                last.at = last.at.min(batch.at);
                last.numbers.add(&batch.numbers);
            }
            None => self.batches.push(batch),
        }
    }
}

fn longer(pause: Micros) -> Micros {
    Micros(pause.0.saturating_mul(2)).min(LONGEST_PAUSE)
}

/// A hub answers within a round trip unless the line is full; a repeated request is for products lost on this side.
const FIRST_PAUSE: Micros = Micros::from_secs(4);
const LONGEST_PAUSE: Micros = Micros::from_secs(60);
const RANGES_PER_WANT: usize = 1_024;
const BATCHES: usize = 64;
