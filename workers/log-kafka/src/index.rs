//! What is known of a feed's products, in memory.

use std::collections::BTreeMap;

use downburst_log::SourceStamp;
use downburst_model::{Digest, Epoch, ProductId, ProductKey};

use crate::record::Row;

/// The remembered products of a log.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) epoch: Epoch,
    pub(crate) head: u64,
    /// The oldest sequence with bytes; beyond the head if there is none.
    pub(crate) first: u64,
    pub(crate) forgotten_to: u64,
    pub(crate) rows: BTreeMap<u64, Known>,
    pub(crate) keys: Keys,
}

/// A product, and where its description is.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) row: Row,
    /// In the index topic.
    pub(crate) noted_at: i64,
}

/// What makes a product a duplicate.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// Empty products are no duplicates of each other.
    contents: BTreeMap<(ProductId, Digest), u64>,
    /// With the number of the resend.
    sources: BTreeMap<(ProductKey, Option<u64>), u64>,
}

impl Index {
    pub(crate) fn new(epoch: Epoch) -> Self {
        Self { epoch, head: 0, first: 1, forgotten_to: 0, rows: BTreeMap::new(), keys: Keys::default() }
    }

    /// Takes what follows the head.
    pub(crate) fn insert(&mut self, row: Row, noted_at: i64) {
        let sequence = row.sequence();
        if self.rows.is_empty() {
            self.forgotten_to = sequence - 1;
            self.first = sequence;
        }
        self.head = sequence;
        self.keys.insert(&row);
        self.rows.insert(sequence, Known { row, noted_at });
    }

    /// Notes that the bytes before a sequence are gone.
    pub(crate) fn evict_before(&mut self, first: u64) {
        self.first = self.first.max(first);
    }

    /// Drops the memory of the products before a sequence.
    pub(crate) fn forget_before(&mut self, sequence: u64) {
        let kept = self.rows.split_off(&sequence);
        for (sequence, known) in std::mem::replace(&mut self.rows, kept) {
            self.keys.remove(&known.row);
            self.forgotten_to = sequence;
        }
    }
}

impl Keys {
    /// A resend is a duplicate of itself only, and everything else of what came from the same place or says the same.
    pub(crate) fn find(
        &self,
        source: Option<&SourceStamp>,
        id: &ProductId,
        size: u64,
        digest: &Digest,
    ) -> Option<u64> {
        let delivered = source.and_then(|source| self.source(&source.key, source.resend));
        if delivered.is_some() || source.is_some_and(|source| source.resend.is_some()) {
            return delivered;
        }
        self.content(id, size, digest)
    }

    pub(crate) fn content(&self, id: &ProductId, size: u64, digest: &Digest) -> Option<u64> {
        if size == 0 {
            return None;
        }
        self.contents.get(&(id.clone(), *digest)).copied()
    }

    pub(crate) fn source(&self, key: &ProductKey, resend: Option<u64>) -> Option<u64> {
        self.sources.get(&(key.clone(), resend)).copied()
    }

    pub(crate) fn insert(&mut self, row: &Row) {
        let sequence = row.sequence();
        if row.info.size > 0 {
            self.contents.insert((row.info.id.clone(), row.info.digest), sequence);
        }
        if let Some(source) = &row.source {
            self.sources.insert((source.key.clone(), source.resend), sequence);
        }
    }

    /// A later product with the same key keeps its place.
    fn remove(&mut self, row: &Row) {
        let sequence = row.sequence();
        let content = (row.info.id.clone(), row.info.digest);
        if self.contents.get(&content) == Some(&sequence) {
            self.contents.remove(&content);
        }
        let Some(source) = &row.source else { return };
        let source = (source.key.clone(), source.resend);
        if self.sources.get(&source) == Some(&sequence) {
            self.sources.remove(&source);
        }
    }
}
