//! The cache of log reads, for sessions that read the same.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use downburst_log::{Forgotten, LogError, ProductLog, ReadBatch};
use downburst_model::{Micros, Now, Sequence};
use downburst_session::{Entry, Filter, Stretch, Stretches, stretch_end};

use crate::hub::feeds::Feed;
use crate::hub::lock;

/// The cache of one feed. All feeds share its memory: sites that reconnect together are behind in few of them.
pub(in crate::hub) struct ReadCache {
    stretches: Mutex<Stretches>,
    /// The memory of all feeds' caches.
    all_bytes: Arc<AtomicUsize>,
}

impl ReadCache {
    pub(in crate::hub) fn new(all_bytes: Arc<AtomicUsize>) -> Self {
        Self { stretches: Mutex::new(Stretches::new(ALL_BYTES)), all_bytes }
    }

    /// Changes the cache and the sum over all feeds.
    fn change<T>(&self, stretches: &mut Stretches, change: impl FnOnce(&mut Stretches) -> T) -> T {
        let before = stretches.memory_bytes();
        let changed = change(stretches);
        let after = stretches.memory_bytes();
        self.all_bytes.fetch_add(after, Ordering::Relaxed);
        self.all_bytes.fetch_sub(before, Ordering::Relaxed);
        changed
    }

    fn keep(&self, stretches: &mut Stretches, now: Micros, stretch: Arc<Stretch>) {
        self.change(stretches, |stretches| stretches.keep(now, stretch));
        let own_share = own_share(stretches.memory_bytes(), self.all_bytes.load(Ordering::Relaxed));
        self.change(stretches, |stretches| stretches.shrink_to(own_share));
    }
}

/// The share of a feed that holds `own_bytes` of the `all_bytes` of all caches.
fn own_share(own_bytes: usize, all_bytes: usize) -> usize {
    own_bytes.saturating_sub(all_bytes.saturating_sub(ALL_BYTES))
}

impl Drop for ReadCache {
    fn drop(&mut self) {
        self.change(&mut lock(&self.stretches), Stretches::clear);
    }
}

impl Feed {
    /// The log's content behind `after` for the sites with this filter; `None` if some of it has to be fetched first.
    /// Sessions that read at the same time wait for the first of them, and share its result.
    pub(in crate::hub) fn stretch(
        &self,
        now: Now,
        after: Sequence,
        filter: &Arc<Filter>,
    ) -> Result<Option<Arc<Stretch>>, LogError> {
        let mut stretches = lock(&self.read_cache.stretches);
        let head = self.log.head();
        if let Some(stretch) = stretches.find(self.epoch(), (after, head), filter) {
            return Ok(Some(stretch));
        }
        let batch = read(self.log.as_ref(), after, head)?;
        if !self.lacking(&batch, now.wall, |id| filter.wants(id)).is_empty() {
            return Ok(None);
        }
        Ok(Some(self.share(&mut stretches, now.monotonic, after, batch, filter)))
    }

    /// Like [`stretch`](Self::stretch), but fetches missing bytes. Reads of local content do not wait for the fetch.
    pub(in crate::hub) fn fetch_stretch(
        &self,
        now: Now,
        after: Sequence,
        filter: &Arc<Filter>,
    ) -> Result<Arc<Stretch>, LogError> {
        let head = self.log.head();
        if let Some(stretch) = lock(&self.read_cache.stretches).find(self.epoch(), (after, head), filter) {
            return Ok(stretch);
        }
        let mut batch = read(self.log.as_ref(), after, head)?;
        let lacking = self.lacking(&batch, now.wall, |id| filter.wants(id));
        self.complete(&mut batch, &lacking)?;
        Ok(self.share(&mut lock(&self.read_cache.stretches), now.monotonic, after, batch, filter))
    }

    fn share(
        &self,
        stretches: &mut Stretches,
        now: Micros,
        after: Sequence,
        batch: ReadBatch,
        filter: &Arc<Filter>,
    ) -> Arc<Stretch> {
        let entries = batch.entries.into_iter().map(|entry| Entry { info: entry.info, bytes: entry.bytes });
        let (name, range) = ((self.name(), self.epoch()), (after, batch.read_to));
        let forgotten = batch.forgotten.map(|it| (it.from, it.to));
        let stretch = Stretch::new(name, range, entries, Arc::clone(filter)).forgetting(forgotten);
        let stretch = Arc::new(stretch);
        self.read_cache.keep(stretches, now, Arc::clone(&stretch));
        stretch
    }

    /// Clears the cache: the stretches may not be handed out any more.
    pub(in crate::hub) fn forget_stretches(&self) {
        self.read_cache.change(&mut lock(&self.read_cache.stretches), Stretches::clear);
    }

    /// Forgets stretches that are too old to be shared.
    pub(in crate::hub) fn purge_stretches(&self, now: Micros) {
        self.read_cache.change(&mut lock(&self.read_cache.stretches), |stretches| stretches.purge(now));
    }
}

/// The content of the next stretch. Where the log assigned no sequence up to the stretch's usual end, the stretch
/// ends before the next product: a restored log skips a thousand million sequences, which are not walked through.
fn read(log: &impl ProductLog, after: Sequence, head: Sequence) -> Result<ReadBatch, LogError> {
    let batch = log.read(after, stretch_end(after, head), READ_BYTES, READ_ENTRIES)?;
    if !batch.entries.is_empty() || batch.read_to >= head {
        return Ok(batch);
    }
    let next = log.read(batch.read_to, head, 1, 1)?;
    let before = next.entries.first().map(|entry| Sequence(entry.info.key.sequence.0.saturating_sub(1)));
    let read_to = before.unwrap_or(next.read_to);
    let forgotten = both(batch.forgotten, next.forgotten, read_to);
    Ok(ReadBatch { read_to, forgotten, ..batch })
}

/// The forgotten ranges of two consecutive reads as one, up to the end of the second read that is used.
fn both(one: Option<Forgotten>, next: Option<Forgotten>, to: Sequence) -> Option<Forgotten> {
    let next = next.filter(|it| it.from <= to).map(|it| Forgotten { to: it.to.min(to), ..it });
    match (one, next) {
        (Some(one), Some(next)) => Some(Forgotten { from: one.from, to: next.to }),
        (one, next) => one.or(next),
    }
}

/// The approximate size of one read: some milliseconds of a fast site's link.
const READ_BYTES: usize = 1 << 20;
const READ_ENTRIES: usize = 256;

/// The memory of all feeds for encoded stretches; each feed may have one stretch beyond it. Some seconds of small
/// products at full speed: sites that reconnect within them share the result of a read, and idle feeds keep none.
const ALL_BYTES: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use downburst_log::{Appended, FeedLog, LogOptions, contract};
    use downburst_model::{FeedName, WallMicros};

    use super::*;

    fn store(log: &FeedLog, id: &str) -> Sequence {
        let product = contract::product(id).unwrap();
        match log.append(product, &mut id.as_bytes(), &|| WallMicros(0)).unwrap() {
            Appended::Stored { sequence, .. } => sequence,
            Appended::Duplicate { of } => panic!("{id} is a duplicate of {of:?}"),
        }
    }

    #[test]
    fn numbers_that_were_passed_over_are_one_stretch() {
        let dir = tempfile::tempdir().unwrap();
        let feed = FeedName::parse("TEST").unwrap();
        let (log, _) = FeedLog::open(dir.path(), feed, LogOptions::default(), 1).unwrap();
        let first = store(&log, "before");
        log.skip_to(Sequence(1_000_000_000)).unwrap();
        let second = store(&log, "after");
        let (mut after, mut found, mut reads) = (Sequence(0), Vec::new(), 0);
        while after < log.head() {
            let batch = read(&log, after, log.head()).unwrap();
            assert!(batch.read_to > after, "each read goes on");
            found.extend(batch.entries.iter().map(|entry| entry.info.key.sequence));
            (after, reads) = (batch.read_to, reads + 1);
        }
        assert_eq!(found, [first, second]);
        assert!(reads <= 4, "{reads} reads");
    }

    #[test]
    fn a_feed_gives_up_what_all_keep_too_much() {
        assert_eq!(own_share(5 << 20, ALL_BYTES), 5 << 20);
        assert_eq!(own_share(5 << 20, ALL_BYTES + 100), (5 << 20) - 100);
        assert_eq!(own_share(100, ALL_BYTES + 200), 0);
    }
}
