//! The cache of log reads, for sessions that read the same.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use downburst_model::{Epoch, FeedName, Micros, Sequence};
use downburst_session::{Entry, Filter, Stretch, Stretches};

use super::{LogRead, StretchLog};

/// The cache of one feed. All feeds share its memory: sites that reconnect together are behind in few of them.
#[derive(Debug)]
pub struct ReadCache {
    stretches: Stretches,
    /// The memory of all feeds' caches.
    all_bytes: Arc<AtomicUsize>,
}

impl ReadCache {
    /// An empty cache; `all_bytes` is the memory of all feeds' caches.
    pub fn new(all_bytes: Arc<AtomicUsize>) -> Self {
        Self { stretches: Stretches::new(ALL_BYTES), all_bytes }
    }

    /// A cached stretch that answers a read behind `after`, in a log that ends at `head`.
    pub fn find(
        &self,
        epoch: Epoch,
        (after, head): (Sequence, Sequence),
        filter: &Arc<Filter>,
    ) -> Option<Arc<Stretch>> {
        self.stretches.find(epoch, (after, head), filter)
    }

    /// Encodes a read behind `after` for the sites with this filter, and caches it.
    pub fn share<L: StretchLog>(
        &mut self,
        now: Micros,
        name: (FeedName, Epoch),
        (after, read): (Sequence, LogRead<L::Entry>),
        filter: &Arc<Filter>,
    ) -> Arc<Stretch> {
        let entries = read.entries.into_iter().map(|entry| {
            let (info, bytes) = L::parts(entry);
            Entry { info, bytes }
        });
        let stretch = Stretch::new(name, (after, read.read_to), entries, Arc::clone(filter));
        let stretch = Arc::new(stretch.forgetting(read.forgotten));
        self.keep(now, Arc::clone(&stretch));
        stretch
    }

    /// Drops all stretches: they may not be handed out any more.
    pub fn clear(&mut self) {
        self.change(Stretches::clear);
    }

    /// Drops the stretches that are too old to be shared.
    pub fn purge(&mut self, now: Micros) {
        self.change(|stretches| stretches.purge(now));
    }

    fn keep(&mut self, now: Micros, stretch: Arc<Stretch>) {
        self.change(|stretches| stretches.keep(now, stretch));
        let own_share = own_share(self.stretches.memory_bytes(), self.all_bytes.load(Ordering::Relaxed));
        self.change(|stretches| stretches.shrink_to(own_share));
    }

    /// Changes the cache and the sum over all feeds.
    fn change(&mut self, change: impl FnOnce(&mut Stretches)) {
        let before = self.stretches.memory_bytes();
        change(&mut self.stretches);
        let after = self.stretches.memory_bytes();
        self.all_bytes.fetch_add(after, Ordering::Relaxed);
        self.all_bytes.fetch_sub(before, Ordering::Relaxed);
    }
}

impl Drop for ReadCache {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The share of a feed that holds `own_bytes` of the `all_bytes` of all caches.
fn own_share(own_bytes: usize, all_bytes: usize) -> usize {
    own_bytes.saturating_sub(all_bytes.saturating_sub(ALL_BYTES))
}

/// The memory of all feeds for encoded stretches; each feed may have one stretch beyond it. Some seconds of small
/// products at full speed: sites that reconnect within them share the result of a read, and idle feeds keep none.
const ALL_BYTES: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use downburst_session::Subscription;

    use super::super::stretch_reads::tests::TestLog;
    use super::*;
    use crate::feeds::read_stretch;
    use crate::testing::feed;

    fn filter() -> Arc<Filter> {
        let all =
            Subscription { feed: feed("TEST"), pattern: ".*".to_owned(), not_pattern: None, within: None };
        Filter::of_subscriptions(&[all]).remove(&feed("TEST")).unwrap()
    }

    fn shared(cache: &mut ReadCache, now: u64, after: u64, filter: &Arc<Filter>) -> Arc<Stretch> {
        let (log, after) = (TestLog::of(&[1, 2, 3]), Sequence(after));
        let Ok(read) = read_stretch(&log, after, Sequence(3));
        cache.share::<TestLog>(Micros::from_secs(now), (feed("TEST"), Epoch(7)), (after, read), filter)
    }

    #[test]
    fn a_feed_gives_up_what_all_keep_too_much() {
        assert_eq!(own_share(5 << 20, ALL_BYTES), 5 << 20);
        assert_eq!(own_share(5 << 20, ALL_BYTES + 100), (5 << 20) - 100);
        assert_eq!(own_share(100, ALL_BYTES + 200), 0);
    }

    #[test]
    fn a_read_is_shared_until_it_is_old_and_counts_in_the_memory_of_all() {
        let (all_bytes, filter) = (Arc::new(AtomicUsize::new(0)), filter());
        let mut cache = ReadCache::new(Arc::clone(&all_bytes));
        let find = |cache: &ReadCache| cache.find(Epoch(7), (Sequence(0), Sequence(3)), &filter);
        assert!(find(&cache).is_none());
        let stretch = shared(&mut cache, 1, 0, &filter);
        assert_eq!((stretch.after, stretch.read_to), (Sequence(0), Sequence(3)));
        assert!(find(&cache).is_some_and(|found| Arc::ptr_eq(&found, &stretch)));
        assert_eq!(all_bytes.load(Ordering::Relaxed), stretch.memory_bytes());
        assert!(
            cache.find(Epoch(8), (Sequence(0), Sequence(3)), &filter).is_none(),
            "another life of the log"
        );
        cache.purge(Micros::from_secs(1_000));
        assert_eq!((find(&cache).is_none(), all_bytes.load(Ordering::Relaxed)), (true, 0));
    }

    #[test]
    fn a_cache_that_is_dropped_or_cleared_gives_its_memory_back() {
        let (all_bytes, filter) = (Arc::new(AtomicUsize::new(0)), filter());
        let (mut first, mut second) =
            (ReadCache::new(Arc::clone(&all_bytes)), ReadCache::new(Arc::clone(&all_bytes)));
        let bytes = shared(&mut first, 1, 0, &filter).memory_bytes();
        shared(&mut second, 1, 0, &filter);
        assert_eq!(all_bytes.load(Ordering::Relaxed), 2 * bytes);
        first.clear();
        assert_eq!(all_bytes.load(Ordering::Relaxed), bytes);
        drop(second);
        assert_eq!(all_bytes.load(Ordering::Relaxed), 0);
    }
}
