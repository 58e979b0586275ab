//! Sharing one synchronisation among callers that append at the same time.
//!
//! If an acknowledgement waits for the disk, a caller queues its product and then waits for the writer. The caller
//! that gets the writer appends the whole queue as one group; the others then find their results.

use std::{
    io::Read,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;

use crate::{
    Appended, Clock, FeedLog, LogError, NewProduct,
    feed_log::group::{Checked, Results},
};

/// Products that wait for the writer, in the order in which they will be appended.
#[derive(Default)]
pub(crate) struct Commits(Mutex<Vec<(Checked, Arc<Outcome>)>>);

/// The slot for the result of a queued product.
#[derive(Default)]
struct Outcome(Mutex<Option<Result<Appended, LogError>>>);

impl FeedLog {
    /// Appends a product together with those of other callers; one too large for that waits for the writer alone.
    pub(crate) fn append_queued(
        &self,
        product: NewProduct,
        bytes: &mut dyn Read,
        clock: Clock<'_>,
    ) -> Result<Appended, LogError> {
        let mut start = Vec::new();
        bytes
            .take(QUEUED_BYTES + 1)
            .read_to_end(&mut start)
            .map_err(|source| LogError::Source { id: product.id.clone(), source })?;
        if start.len() as u64 > QUEUED_BYTES {
            return self.append_locked(
                &mut self.writer(),
                product,
                &mut start.as_slice().chain(bytes),
                clock,
            );
        }
        let checked = Checked::new(0, product, Bytes::from(start), &self.options())?;
        let outcome = Arc::new(Outcome::default());
        self.commits.put(checked, Arc::clone(&outcome));
        let mut writer = self.writer();
        if let Some(result) = outcome.take() {
            return result;
        }
        let (mut waiting, outcomes) = self.commits.take();
        let mut results: Results = outcomes.iter().map(|_| None).collect();
        while !waiting.is_empty() {
            self.append_some(&mut writer, &mut waiting, &mut results, clock);
        }
        for (result, outcome) in results.into_iter().zip(outcomes) {
            outcome.set(result.unwrap_or_else(|| Err(self.closed())));
        }
        outcome.take().unwrap_or_else(|| Err(self.closed()))
    }
}

impl Commits {
    fn put(&self, checked: Checked, outcome: Arc<Outcome>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((checked, outcome));
    }

    /// Takes all waiting products, numbered.
    fn take(&self) -> (std::collections::VecDeque<Checked>, Vec<Arc<Outcome>>) {
        let queued = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        queued.into_iter().enumerate().map(|(at, (checked, outcome))| (checked.numbered(at), outcome)).unzip()
    }
}

impl Outcome {
    fn set(&self, result: Result<Appended, LogError>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    }

    fn take(&self) -> Option<Result<Appended, LogError>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A larger product justifies a synchronisation of its own, and is better copied than held in memory.
const QUEUED_BYTES: u64 = 256 << 10;
