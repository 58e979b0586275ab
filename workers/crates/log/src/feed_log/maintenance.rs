//! Sealing, evicting and forgetting, by whole segments.

use std::sync::{Arc, atomic::Ordering};

use downburst_model::{Sequence, WallMicros};

use crate::{
    FeedLog, LogError, LogOptions, Retained,
    segment::{Evicted, Segment},
};

impl FeedLog {
    pub(crate) fn retain_at(&self, now: WallMicros) -> Result<Retained, LogError> {
        let options = self.options();
        let retired = self.retire_if_due(&options, now);
        let sealed = retired.and_then(|()| self.seal_all());
        let _maintenance = self.maintenance();
        let mut retained = Retained::default();
        // A full disk can keep a segment from being sealed, and eviction is what frees it.
        let outcome = sealed
            .and(self.evict_by_age(&options, now, &mut retained))
            .and(self.evict_by_ceiling(&options, &mut retained))
            .and(self.forget_by_age(&options, now, &mut retained));
        match outcome {
            Err(error) if retained == Retained::default() => Err(error),
            Err(error) => {
                tracing::warn!(feed = %self.identity.feed, %error, "retention was not completed");
                Ok(retained)
            }
            Ok(()) => Ok(retained),
        }
    }

    /// Seals every segment that the writer has left.
    pub(crate) fn seal_all(&self) -> Result<(), LogError> {
        let _maintenance = self.maintenance();
        self.unsealed().iter().try_for_each(|segment| segment.seal(self.identity.epoch))
    }

    /// Seals segments if `retain` is not called, so that rows in memory stay bounded.
    pub(crate) fn seal_backlog(&self) -> Result<(), LogError> {
        if self.unsealed().len() > MAX_UNSEALED { self.seal_all() } else { Ok(()) }
    }

    fn retire_if_due(&self, options: &LogOptions, now: WallMicros) -> Result<(), LogError> {
        let mut writer = self.writer();
        if writer.is_due(options, now) { self.retire(&mut writer) } else { Ok(()) }
    }

    fn evict_by_age(
        &self,
        options: &LogOptions,
        now: WallMicros,
        retained: &mut Retained,
    ) -> Result<(), LogError> {
        let oldest = now.0.saturating_sub(options.retention_micros());
        let mut old = self.evictable();
        old.retain(|segment| segment.newest_stored() < oldest);
        old.into_iter().try_for_each(|segment| self.evict(&segment, retained).map(|_| ()))
    }

    fn evict_by_ceiling(&self, options: &LogOptions, retained: &mut Retained) -> Result<(), LogError> {
        let (ceiling, held_bytes) = (options.retention.bytes, options.held_bytes());
        let mut used = self.used_bytes();
        let mut held = self.segments().values().map(|segment| segment.data_bytes()).sum::<u64>();
        for segment in self.evictable() {
            if used <= ceiling && held <= held_bytes {
                return Ok(());
            }
            let freed = segment.data_bytes();
            (used, held) = (used.saturating_sub(freed), held.saturating_sub(freed));
            retained.products_cut_by_ceiling += self.evict(&segment, retained)?;
        }
        // The open segment stays, whatever its size.
        let mut gone = Vec::new();
        for segment in self.without_bytes() {
            if used <= ceiling {
                break;
            }
            used = used.saturating_sub(segment.index_bytes());
            gone.push(segment);
        }
        self.forget(&gone, retained)
    }

    fn forget_by_age(
        &self,
        options: &LogOptions,
        now: WallMicros,
        retained: &mut Retained,
    ) -> Result<(), LogError> {
        let oldest = now.0.saturating_sub(options.memory_micros());
        let mut gone = self.without_bytes();
        gone.truncate(gone.iter().take_while(|segment| segment.newest_stored() < oldest).count());
        self.forget(&gone, retained)
    }

    /// Forgets segments, the oldest first. The mark on disk is written first, so that a crash in between forgets
    /// too much instead of claiming that nothing was there.
    fn forget(&self, segments: &[Arc<Segment>], retained: &mut Retained) -> Result<(), LogError> {
        let Some(last) = segments.iter().rev().find_map(|segment| segment.last_row()) else { return Ok(()) };
        self.reservation().forget(last.sequence)?;
        self.forgotten_to.fetch_max(last.sequence, Ordering::AcqRel);
        for segment in segments {
            self.segments_mut().remove(&segment.base);
            let rows = segment.rows_with_prints(self.identity.salt)?;
            let mut keys = self.keys();
            rows.iter().for_each(|row| keys.remove(row));
            drop(keys);
            retained.bytes += segment.index_bytes();
            retained.forgotten_to = retained.forgotten_to.max(Some(Sequence(last.sequence)));
            segment.forget()?;
        }
        Ok(())
    }

    /// Evicts a segment; returns the number of products that lost their bytes.
    fn evict(&self, segment: &Segment, retained: &mut Retained) -> Result<u64, LogError> {
        let (products, last) = (segment.row_count() as u64, segment.last_row());
        let evicted_to = last.map_or(0, |row| row.sequence);
        let noted = self.reservation().evict(evicted_to);
        let Evicted { freed_bytes, linked_bytes } = segment.evict()?;
        retained.bytes += freed_bytes;
        retained.linked_bytes += linked_bytes;
        if noted.is_err() {
            // A full disk now has room for the note.
            self.reservation().evict(evicted_to)?;
        }
        retained.products += products;
        if let (Some(first), Some(last)) = (segment.first_row(), last) {
            retained.evicted.push((Sequence(first.sequence), Sequence(last.sequence)));
        }
        Ok(products)
    }

    fn used_bytes(&self) -> u64 {
        self.segments().values().map(|segment| segment.data_bytes() + segment.index_bytes()).sum()
    }

    pub(crate) fn unsealed(&self) -> Vec<Arc<Segment>> {
        self.segments().values().filter(|segment| !segment.is_sealed()).cloned().collect()
    }

    fn evictable(&self) -> Vec<Arc<Segment>> {
        self.segments()
            .values()
            .filter(|segment| segment.is_sealed() && segment.has_bytes())
            .cloned()
            .collect()
    }

    /// The oldest segments, up to the first one with bytes.
    fn without_bytes(&self) -> Vec<Arc<Segment>> {
        self.segments().values().take_while(|segment| !segment.has_bytes()).cloned().collect()
    }
}

/// Segments that may wait for `retain` to seal them, including the one being written.
const MAX_UNSEALED: usize = 4;
