//! Eviction and forgetting, from the front of the topics.

use downburst_log::{LogError, Retained};
use downburst_model::{Sequence, WallMicros};

use crate::{
    KafkaLog,
    cluster::delete_before,
    index::{Index, Known},
};

/// What is due.
#[derive(Default)]
struct Due {
    retained: Retained,
    /// Products from here on keep their bytes, and where these begin.
    bytes_from: Option<(u64, i64)>,
    /// Products from here on are remembered, and where their descriptions begin.
    memory_from: Option<(u64, i64)>,
}

impl KafkaLog {
    /// Readers are told before the records go: they take a record that is missing without this for a fault.
    pub(crate) fn retain_at(&self, now: WallMicros) -> Result<Retained, LogError> {
        let _writer = self.writer();
        let mut due = Due::default();
        self.evict(&self.index(), now, &mut due);
        self.forget(&self.index(), now, &mut due);
        if let Some((first, offset)) = due.bytes_from {
            self.index_mut().evict_before(first);
            delete_before(&self.admin, &self.topics.products, offset)?;
        }
        if let Some((sequence, offset)) = due.memory_from {
            self.index_mut().forget_before(sequence);
            delete_before(&self.admin, &self.topics.index, offset)?;
        }
        Ok(due.retained)
    }

    fn evict(&self, index: &Index, now: WallMicros, due: &mut Due) {
        let retention = self.options.retention;
        let kept = || index.rows.range(index.first..).map(|(_, known)| &known.row);
        let mut bytes: u64 = kept().map(|row| row.info.size).sum();
        let mut last = None;
        for row in kept() {
            let is_old = is_over(row.info.stored, retention.hours, now);
            if !is_old && bytes <= retention.bytes {
                break;
            }
            bytes -= row.info.size;
            due.retained.products += 1;
            due.retained.bytes += row.info.size;
            due.retained.products_cut_by_ceiling += u64::from(!is_old);
            last = Some(row);
        }
        let Some(last) = last else { return };
        due.retained.evicted.push((Sequence(index.first), last.info.key.sequence));
        due.bytes_from = Some((last.sequence() + 1, last.end()));
    }

    /// The newest description stays: it keeps epoch and head.
    fn forget(&self, index: &Index, now: WallMicros, due: &mut Due) {
        let first = due.bytes_from.map_or(index.first, |(first, _)| first);
        let stays = |known: &&Known| {
            let sequence = known.row.sequence();
            sequence >= first
                || sequence == index.head
                || !is_over(known.row.info.stored, self.options.memory_hours, now)
        };
        let Some(oldest) = index.rows.values().find(stays) else { return };
        if index.rows.keys().next().is_some_and(|sequence| *sequence < oldest.row.sequence()) {
            due.retained.forgotten_to = Some(Sequence(oldest.row.sequence() - 1));
            due.memory_from = Some((oldest.row.sequence(), oldest.noted_at));
        }
    }
}

fn is_over(stored: WallMicros, hours: f64, now: WallMicros) -> bool {
    // The cast saturates: absurdly many hours mean forever.
    now.0.saturating_sub(stored.0) >= (hours.max(0.0) * 3_600e6) as i64
}
