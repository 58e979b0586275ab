//! Fetches products that a copy no longer holds from the shared store, for the sites that request them.
use std::sync::Arc;

use downburst_hub::ReadRequest;
use downburst_hub::feeds::{fill_in, lacking};
use downburst_log::{Lacking, LogEntry, LogError, ProductLog as _, ReadBatch};
use downburst_model::{Sequence, WallMicros};
use downburst_session::Stretch;

use crate::hub::Hub;
use crate::hub::feeds::Feed;

impl Feed {
    /// The products of a read whose bytes have to be fetched: those that the feed still keeps, and that `is_wanted`.
    pub(in crate::hub) fn lacking(
        &self,
        batch: &ReadBatch,
        now: WallMicros,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Vec<Lacking> {
        self.lacking_of(&batch.entries, now, is_wanted)
    }

    /// Those of the entries whose bytes have to be fetched.
    pub(super) fn lacking_of(
        &self,
        entries: &[LogEntry],
        now: WallMicros,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Vec<Lacking> {
        if self.shared.is_none() {
            return Vec::new();
        }
        let line = self.line.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let kept_since = line.kept_since(now);
        let lacks = |entry: &&LogEntry| lacking(&entry.info, entry.bytes.is_some(), kept_since, &is_wanted);
        let lacking = entries.iter().filter(lacks);
        lacking.map(|entry| Lacking { sequence: entry.info.key.sequence, size: entry.info.size }).collect()
    }

    /// Fills in bytes from the store where the copy has none, and waits for them; the read ends before the first
    /// product that the store did not return.
    pub(super) fn complete(
        &self,
        entries: &mut Vec<LogEntry>,
        read_to: &mut Sequence,
        lacking: &[Lacking],
    ) -> Result<(), LogError> {
        let Some(shared) = &self.shared else { return Ok(()) };
        let fetched = shared.fetch(lacking, FETCH_BYTES)?;
        let asked = lacking.iter().map(|asked| asked.sequence);
        if let Some(end) =
            fill_in(entries, asked, fetched, |entry| (entry.info.key.sequence, &mut entry.bytes))
        {
            *read_to = end;
        }
        Ok(())
    }
}

/// Reads a session's next products, fetching where necessary. Sessions that read the same part of a feed wait for
/// the first of them, and share its result. `None`: the feed is closed.
pub(in crate::hub) async fn stretch(
    hub: &Arc<Hub>,
    wanted: &ReadRequest,
) -> Option<Result<Arc<Stretch>, LogError>> {
    let feed = hub.feeds.find(&wanted.feed)?;
    let turn = Arc::clone(&feed.fetching).lock_owned().await;
    let (now, after, filter) = (hub.clock.now(), wanted.after, Arc::clone(&wanted.filter));
    let fetched = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        feed.fetch_stretch(now, after, &filter)
    });
    fetched.await.ok()
}

/// Reads for a resend, fetching where necessary. `None`: the feed is closed.
pub(in crate::hub) async fn read(
    hub: &Arc<Hub>,
    feed: Arc<Feed>,
    (after, to): (Sequence, Sequence),
    (limit_bytes, limit_entries): (usize, usize),
) -> Option<Result<ReadBatch, LogError>> {
    let turn = Arc::clone(&feed.fetching).lock_owned().await;
    let now = hub.clock.wall();
    let fetched = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        let mut batch = feed.log.read(after, to, limit_bytes, limit_entries)?;
        let lacking = feed.lacking(&batch, now, |_| true);
        feed.complete(&mut batch.entries, &mut batch.read_to, &lacking)?;
        Ok(batch)
    });
    fetched.await.ok()
}

/// As much as a read of the copy returns.
const FETCH_BYTES: u64 = 1 << 20;
