//! Positions of downstream LDMs in the feeds, for their next requests.
//!
//! A request names the last received product by one signature, which is exact for the feed of that product. Feeds
//! are sent by priority and not in the order of storage, so the signature says little about the other feeds: in
//! these the hub resumes after the last product that the peer acknowledged by answering a NULLPROC.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use downburst_model::{FeedName, Sequence};
use serde::{Deserialize, Serialize};

use crate::lock;

/// Positions by peer and class.
#[derive(Default)]
pub(crate) struct Positions(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    path: Option<PathBuf>,
    positions: BTreeMap<String, Position>,
    next_use: u64,
    is_changed: bool,
}

#[derive(Clone, Serialize, Deserialize)]
struct Position {
    used: u64,
    feeds: BTreeMap<FeedName, Reached>,
}

/// A peer's position in a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reached {
    pub(super) epoch: u64,
    pub(super) sequence: Sequence,
}

impl Positions {
    /// Reads the positions of an earlier run of the hub; later calls do nothing.
    pub(crate) fn open(&self, data_dir: &Path) {
        let mut kept = lock(&self.0);
        if kept.path.is_some() {
            return;
        }
        let path = data_dir.join("ldm").join("cursors.json");
        let read = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        kept.positions = read.unwrap_or_default();
        kept.next_use = kept.positions.values().map(|position| position.used).max().unwrap_or(0) + 1;
        kept.path = Some(path);
    }

    pub(super) fn find(&self, key: &str, feed: &FeedName) -> Option<Reached> {
        lock(&self.0).positions.get(key)?.feeds.get(feed).copied()
    }

    pub(super) fn reached(&self, key: &str, feeds: impl Iterator<Item = (FeedName, Reached)>) {
        let mut kept = lock(&self.0);
        let used = kept.next_use;
        kept.next_use += 1;
        kept.is_changed = true;
        match kept.positions.get_mut(key) {
            Some(position) => {
                position.used = used;
                position.feeds.extend(feeds);
            }
            None => drop(kept.positions.insert(key.to_owned(), Position { used, feeds: feeds.collect() })),
        }
        if kept.positions.len() > MOST_POSITIONS {
            let oldest =
                kept.positions.iter().min_by_key(|(_, position)| position.used).map(|(key, _)| key.clone());
            oldest.and_then(|key| kept.positions.remove(&key));
        }
    }

    /// Writes the file if positions changed. After a crash the hub resends some products, which receivers drop as
    /// duplicates.
    pub(crate) fn keep(&self) {
        let (path, text) = {
            let mut kept = lock(&self.0);
            if !std::mem::replace(&mut kept.is_changed, false) {
                return;
            }
            let Some(path) = kept.path.clone() else { return };
            (path, serde_json::to_vec(&kept.positions).unwrap_or_default())
        };
        let aside = path.with_extension("aside");
        let written = path
            .parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(&aside, text))
            .and_then(|()| fs::rename(&aside, &path));
        if let Err(error) = written {
            tracing::warn!(path = %path.display(), %error, "the positions of LDMs can't be stored");
        }
    }
}

/// Positions kept; the one unused for longest is dropped first.
const MOST_POSITIONS: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(name: &str) -> FeedName {
        FeedName::parse(name).unwrap()
    }

    #[test]
    fn what_was_reached_outlives_the_hub() {
        let dir = tempfile::tempdir().unwrap();
        let reached = |sequence| Reached { epoch: u64::MAX, sequence: Sequence(sequence) };
        let positions = Positions::default();
        positions.open(dir.path());
        positions.reached("a ANY .*", [(feed("NGRID"), reached(5)), (feed("IDS"), reached(7))].into_iter());
        positions.reached("a ANY .*", [(feed("IDS"), reached(8))].into_iter());
        positions.keep();
        let later = Positions::default();
        later.open(dir.path());
        assert_eq!(later.find("a ANY .*", &feed("NGRID")), Some(reached(5)));
        assert_eq!(later.find("a ANY .*", &feed("IDS")), Some(reached(8)));
        assert_eq!(later.find("b ANY .*", &feed("IDS")), None);
    }

    #[test]
    fn the_number_of_positions_is_bounded() {
        let positions = Positions::default();
        let reached = Reached { epoch: 1, sequence: Sequence(1) };
        for number in 0..=MOST_POSITIONS {
            positions.reached(&format!("peer {number}"), [(feed("IDS"), reached)].into_iter());
        }
        assert_eq!(positions.find("peer 0", &feed("IDS")), None);
        assert_eq!(positions.find("peer 1", &feed("IDS")), Some(reached));
    }
}
