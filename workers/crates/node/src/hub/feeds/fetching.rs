//! Fetches products that a copy no longer holds from the shared store, for the sites that request them.
use std::sync::Arc;

use downburst_hub::ReadRequest;
use downburst_log::{Lacking, LogError, ProductLog as _, ReadBatch};
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
        if self.shared.is_none() {
            return Vec::new();
        }
        let hours = self.line.read().unwrap_or_else(std::sync::PoisonError::into_inner).retention_hours;
        // The cast saturates: absurdly many hours mean forever.
        let oldest = WallMicros(now.0.saturating_sub((hours * 3_600e6) as i64));
        let entries = batch.entries.iter().filter(|entry| {
            let info = &entry.info;
            entry.bytes.is_none()
                && info.stored >= oldest
                && !info.id.is_heartbeat()
                && is_wanted(info.id.as_str())
        });
        entries.map(|entry| Lacking { sequence: entry.info.key.sequence, size: entry.info.size }).collect()
    }

    /// Fills in bytes from the store where the copy has none, and waits for them; the read ends before the first
    /// product that the store did not return.
    pub(in crate::hub) fn complete(
        &self,
        batch: &mut ReadBatch,
        lacking: &[Lacking],
    ) -> Result<(), LogError> {
        let Some(shared) = &self.shared else { return Ok(()) };
        let fetched = shared.fetch(lacking, FETCH_BYTES)?;
        if let Some(unanswered) = lacking.get(fetched.len()) {
            batch.entries.retain(|entry| entry.info.key.sequence < unanswered.sequence);
            batch.read_to = Sequence(unanswered.sequence.0.saturating_sub(1));
        }
        let mut answers = lacking.iter().zip(fetched).peekable();
        for entry in &mut batch.entries {
            if let Some((_, bytes)) = answers.next_if(|(asked, _)| asked.sequence == entry.info.key.sequence)
            {
                entry.bytes = bytes;
            }
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
        feed.complete(&mut batch, &lacking)?;
        Ok(batch)
    });
    fetched.await.ok()
}

/// As much as a read of the copy returns.
const FETCH_BYTES: u64 = 1 << 20;
