//! Reads of a [`FeedLog`] by cursor, and searches for products by time and likeness.

use std::sync::{Arc, atomic::Ordering};

use downburst_model::{Content, ProductInfo, ProductKey, Sequence, WallMicros};

use crate::{
    FeedLog, Forgotten, LogEntry, LogError, LogStat, ProductLog, ReadBatch,
    feed_log::keys::{Likeness, is_same},
    log_reader::part::describe,
    segment::index::Row,
    segment::record::Header,
    segment::{Populated, Segment},
};

impl FeedLog {
    pub(crate) fn read_range(
        &self,
        after: Sequence,
        to: Sequence,
        limit_bytes: usize,
        limit_entries: usize,
    ) -> Result<ReadBatch, LogError> {
        let end = to.0.min(self.head.load(Ordering::Acquire));
        let mut batch =
            ReadBatch { entries: Vec::new(), read_to: Sequence(end.max(after.0)), forgotten: None };
        let limit_entries = limit_entries.max(1);
        let mut read_bytes = 0_usize;
        for segment in self.segments_between(after.0, end) {
            let mut populated = Populated::to_read(limit_bytes as u64);
            for row in segment.rows(after.0, end, limit_entries - batch.entries.len()) {
                let Some(entry) = self.entry_of(&segment, &row, &mut populated)? else { continue };
                read_bytes = read_bytes.saturating_add(entry.bytes.as_ref().map_or(0, Content::len));
                if read_bytes > limit_bytes && !batch.entries.is_empty() {
                    return Ok(self.stopped(batch, after));
                }
                batch.entries.push(entry);
            }
            if batch.entries.len() >= limit_entries {
                return Ok(self.stopped(batch, after));
            }
        }
        batch.forgotten = self.forgotten(after, batch.read_to);
        Ok(batch)
    }

    pub(crate) fn read_entry(&self, sequence: Sequence) -> Result<Option<LogEntry>, LogError> {
        match self.locate(sequence.0) {
            Some((segment, row)) => self.entry_of(&segment, &row, &mut Populated::to_read(0)),
            None => Ok(None),
        }
    }

    pub(crate) fn first_with_bytes(&self) -> Sequence {
        let segments = self.segments();
        let first =
            segments.values().filter(|segment| segment.has_bytes()).find_map(|segment| segment.first_row());
        Sequence(first.map_or_else(|| self.head.load(Ordering::Acquire) + 1, |row| row.sequence))
    }

    /// Clocks can step back, so the search is for the first product at or after the time, not for the last before
    /// it.
    pub(crate) fn cursor_before(&self, stored: WallMicros) -> Sequence {
        let head = self.head();
        let segments = self.segments().clone();
        let candidates = segments.values().filter(|segment| segment.newest_stored() >= stored.0);
        let first = candidates.filter_map(|segment| segment.find(|row| row.stored >= stored.0)).next();
        first.map_or(head, |row| Sequence(row.sequence - 1))
    }

    /// The remembered product that is the same under the feed's rule.
    pub(crate) fn same_product(&self, likeness: &Likeness<'_>) -> Result<Option<u64>, LogError> {
        let (rule, candidate) = {
            let keys = self.keys();
            (keys.rule(), keys.product_candidate(likeness))
        };
        self.confirm(candidate, |header| is_same(rule, likeness, &Likeness::from(header)))
    }

    /// The remembered product with an upstream key, as delivered by this resend or by none.
    pub(crate) fn same_source(&self, key: &ProductKey, resend: Option<u64>) -> Result<Option<u64>, LogError> {
        let candidate = self.keys().source_candidate(key, resend);
        self.confirm(candidate, |header| {
            header
                .metadata
                .source
                .as_ref()
                .is_some_and(|source| source.key == *key && source.resend == resend)
        })
    }

    /// The remembered product with a signature. Signatures are searched only under
    /// [`DuplicateRule::Signature`](crate::DuplicateRule::Signature).
    pub fn find_signature(&self, signature: &[u8; 16]) -> Result<Option<Sequence>, LogError> {
        let candidate = self.keys().signature_candidate(signature);
        let same =
            |header: &Header| header.metadata.ldm.as_ref().is_some_and(|ldm| ldm.signature == *signature);
        Ok(self.confirm(candidate, same)?.map(Sequence))
    }

    pub(crate) fn figures(&self) -> LogStat {
        let segments: Vec<Arc<Segment>> = self.segments().values().cloned().collect();
        let count = |with_bytes: bool| -> u64 {
            segments.iter().filter(|it| it.has_bytes() == with_bytes).map(|it| it.row_count() as u64).sum()
        };
        let oldest =
            segments.iter().filter(|segment| segment.has_bytes()).find_map(|segment| segment.first_row());
        let newest = segments.iter().rev().find_map(|segment| segment.last_row());
        LogStat {
            products: count(true),
            remembered: count(false),
            bytes: segments.iter().map(|segment| segment.data_bytes()).sum(),
            memory_bytes: segments.iter().map(|segment| segment.index_bytes()).sum(),
            ceiling_bytes: self.options().held_bytes(),
            first: self.first_with_bytes(),
            head: self.head(),
            segments: segments.iter().filter(|segment| segment.has_bytes()).count(),
            oldest_stored: oldest.map(|row| WallMicros(row.stored)),
            newest_stored: newest.map(|row| WallMicros(row.stored)),
        }
    }

    pub(crate) fn info(&self, header: &Header) -> ProductInfo {
        describe(&self.identity, header)
    }

    fn entry_of(
        &self,
        segment: &Segment,
        row: &Row,
        populated: &mut Populated,
    ) -> Result<Option<LogEntry>, LogError> {
        let record = segment.record(row, self.identity.salt, populated)?;
        Ok(record.map(|(header, bytes): (Header, Option<Content>)| LogEntry {
            info: self.info(&header),
            bytes,
            source: header.metadata.source,
            ldm: header.metadata.ldm,
        }))
    }

    /// The candidate, if its full header confirms the match.
    pub(crate) fn confirm(
        &self,
        candidate: Option<u64>,
        same: impl Fn(&Header) -> bool,
    ) -> Result<Option<u64>, LogError> {
        let Some((segment, row)) = candidate.and_then(|sequence| self.locate(sequence)) else {
            return Ok(None);
        };
        let header = segment.header(&row, self.identity.salt)?;
        Ok(header.filter(|header| same(header)).map(|header| header.sequence))
    }

    pub(crate) fn locate(&self, sequence: u64) -> Option<(Arc<Segment>, Row)> {
        let segment =
            self.segments().range(..=sequence).next_back().map(|(_, segment)| Arc::clone(segment))?;
        let row = segment.rows(sequence.checked_sub(1)?, sequence, 1).pop()?;
        Some((segment, row))
    }

    /// The segments that may hold sequences with `after < sequence <= to`.
    fn segments_between(&self, after: u64, to: u64) -> Vec<Arc<Segment>> {
        if after >= to {
            return Vec::new();
        }
        let segments = self.segments();
        let start = segments.range(..=after.saturating_add(1)).next_back().map_or(0, |(base, _)| *base);
        segments.range(start..=to).map(|(_, segment)| Arc::clone(segment)).collect()
    }

    fn stopped(&self, batch: ReadBatch, after: Sequence) -> ReadBatch {
        let read_to = batch.entries.last().map_or(after, |entry| entry.info.key.sequence);
        let forgotten = self.forgotten(after, read_to);
        ReadBatch { read_to, forgotten, ..batch }
    }

    fn forgotten(&self, after: Sequence, read_to: Sequence) -> Option<Forgotten> {
        let to = self.forgotten_to.load(Ordering::Acquire).min(read_to.0);
        (after.0 < to).then(|| Forgotten { from: Sequence(after.0 + 1), to: Sequence(to) })
    }
}
