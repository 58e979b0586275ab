//! What sessions read of the logs, kept for the next one that reads the same.
use std::sync::Arc;

use downburst_log::{LogError, ProductLog as _};
use downburst_model::{Micros, Sequence};
use downburst_session::{Entry, Filter, Stretch, stretch_end};

use super::feeds::Feed;
use super::lock;

impl Feed {
    /// What the log holds behind `after` for the sites with this filter. Sessions that ask at the same moment wait for the first of
    /// them, and share what it reads.
    pub(super) fn stretch(
        &self,
        now: Micros,
        after: Sequence,
        filter: &Arc<Filter>,
    ) -> Result<Arc<Stretch>, LogError> {
        let mut stretches = lock(&self.stretches);
        let (epoch, head) = (self.epoch(), self.log.head());
        if let Some(stretch) = stretches.find(epoch, (after, head), filter) {
            return Ok(stretch);
        }
        let batch = self.log.read(after, stretch_end(after, head), READ_BYTES, READ_ENTRIES)?;
        let entries = batch.entries.into_iter().map(|entry| Entry { info: entry.info, bytes: entry.bytes });
        let range = (after, batch.read_to);
        let stretch = Arc::new(Stretch::new((self.name(), epoch), range, entries, Arc::clone(filter)));
        stretches.keep(now, Arc::clone(&stretch));
        Ok(stretch)
    }

    /// What was read may not be handed out any more.
    pub(super) fn forget_stretches(&self) {
        lock(&self.stretches).clear();
    }

    /// Forgets stretches that are too old to be shared.
    pub(super) fn purge_stretches(&self, now: Micros) {
        lock(&self.stretches).purge(now);
    }
}

/// How much one read brings, about: some milliseconds of a fast site's line.
const READ_BYTES: usize = 1 << 20;
const READ_ENTRIES: usize = 256;

/// What a feed keeps of encoded stretches: some sites that are a second apart share them, and idle feeds keep none.
pub(super) const STRETCHES_BYTES: usize = 16 << 20;
