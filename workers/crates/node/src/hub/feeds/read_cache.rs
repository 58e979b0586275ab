//! Reads of a log for sessions, through the cache that sessions share.
use std::sync::Arc;

use downburst_hub::feeds::{LogRead, ReadCache, StretchLog, read_stretch};
use downburst_log::{LogEntry, LogError, ProductLog as _, ReadBatch};
use downburst_model::{Content, Micros, Now, ProductInfo, Sequence};
use downburst_session::{Filter, Stretch};

use crate::hub::feeds::Feed;
use crate::hub::lock;

impl Feed {
    /// The log's content behind `after` for the sites with this filter; `None` if some of it has to be fetched first.
    /// Sessions that read at the same time wait for the first of them, and share its result.
    pub(in crate::hub) fn stretch(
        &self,
        now: Now,
        after: Sequence,
        filter: &Arc<Filter>,
    ) -> Result<Option<Arc<Stretch>>, LogError> {
        let mut cache = lock(&self.read_cache);
        let head = self.log.head();
        if let Some(stretch) = cache.find(self.epoch(), (after, head), filter) {
            return Ok(Some(stretch));
        }
        let read = read_stretch(self, after, head)?;
        if !self.lacking_of(&read.entries, now.wall, |id| filter.wants(id)).is_empty() {
            return Ok(None);
        }
        Ok(Some(self.share(&mut cache, now.monotonic, (after, read), filter)))
    }

    /// Like [`stretch`](Self::stretch), but fetches missing bytes. Reads of local content do not wait for the fetch.
    pub(in crate::hub) fn fetch_stretch(
        &self,
        now: Now,
        after: Sequence,
        filter: &Arc<Filter>,
    ) -> Result<Arc<Stretch>, LogError> {
        let head = self.log.head();
        if let Some(stretch) = lock(&self.read_cache).find(self.epoch(), (after, head), filter) {
            return Ok(stretch);
        }
        let mut read = read_stretch(self, after, head)?;
        let lacking = self.lacking_of(&read.entries, now.wall, |id| filter.wants(id));
        self.complete(&mut read.entries, &mut read.read_to, &lacking)?;
        Ok(self.share(&mut lock(&self.read_cache), now.monotonic, (after, read), filter))
    }

    fn share(
        &self,
        cache: &mut ReadCache,
        now: Micros,
        read: (Sequence, LogRead<LogEntry>),
        filter: &Arc<Filter>,
    ) -> Arc<Stretch> {
        cache.share::<Self>(now, (self.name(), self.epoch()), read, filter)
    }

    /// Clears the cache: the stretches may not be handed out any more.
    pub(in crate::hub) fn forget_stretches(&self) {
        lock(&self.read_cache).clear();
    }

    /// Forgets stretches that are too old to be shared.
    pub(in crate::hub) fn purge_stretches(&self, now: Micros) {
        lock(&self.read_cache).purge(now);
    }
}

impl StretchLog for Feed {
    type Entry = LogEntry;
    type Error = LogError;

    fn read(
        &self,
        after: Sequence,
        to: Sequence,
        limit_bytes: usize,
        limit_entries: usize,
    ) -> Result<LogRead<LogEntry>, LogError> {
        let batch = self.log.read(after, to, limit_bytes, limit_entries)?;
        let ReadBatch { entries, read_to, forgotten } = batch;
        Ok(LogRead { entries, read_to, forgotten: forgotten.map(|it| (it.from, it.to)) })
    }

    fn info(entry: &LogEntry) -> &ProductInfo {
        &entry.info
    }

    fn parts(entry: LogEntry) -> (ProductInfo, Option<Content>) {
        (entry.info, entry.bytes)
    }
}

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
        let line = serde_json::from_value(serde_json::json!({
            "feed": "TEST", "class": "grid", "retention_hours": 1.0, "retention_bytes": 1 << 20,
            "durability": "process", "duplicate_rule": "none", "max_product_bytes": 1 << 20, "unicast_leg": 1,
        }));
        let name = FeedName::parse("TEST").unwrap();
        let (log, _) = FeedLog::open(dir.path(), name, LogOptions::default(), 1).unwrap();
        let first = store(&log, "before");
        log.skip_to(Sequence(1_000_000_000)).unwrap();
        let second = store(&log, "after");
        let feed = Feed::own(line.unwrap(), log);
        let (mut after, mut found, mut reads) = (Sequence(0), Vec::new(), 0);
        while after < feed.log.head() {
            let read = read_stretch(&feed, after, feed.log.head()).unwrap();
            assert!(read.read_to > after, "each read goes on");
            found.extend(read.entries.iter().map(|entry| entry.info.key.sequence));
            (after, reads) = (read.read_to, reads + 1);
        }
        assert_eq!(found, [first, second]);
        assert!(reads <= 4, "{reads} reads");
    }
}
