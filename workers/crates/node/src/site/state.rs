//! What a site keeps between starts: where the state of each hub lies, and where the site stands in each feed.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};
use downburst_log::FeedLog;
use downburst_log::disk::{self as layer, Checked};
use downburst_model::{FeedName, Sequence, WallMicros};
use downburst_session::FeedPosition;
use minicbor::{Decode, Encode};
use serde::Deserialize;

use super::HubChoice;
use crate::disk;

/// A hub of the site, and where what concerns it lies.
#[derive(Clone, Debug)]
pub(crate) struct HubPlace {
    /// `HOST:PORT`.
    pub(crate) address: String,
    /// The identity at this hub and the positions in its logs.
    pub(crate) state: PathBuf,
    /// Large products on their way.
    pub(crate) spool: PathBuf,
}

/// What an identity says of where its hub was reached last.
#[derive(Deserialize)]
struct KnownHub {
    #[serde(default)]
    hub: Option<String>,
}

/// A checkpoint as it lies on disk.
#[derive(Clone, Debug, Encode, Decode)]
pub(super) struct StoredPosition {
    #[n(0)]
    pub(super) position: FeedPosition,
    /// Everything in the site's own log up to here is in `position`.
    #[n(1)]
    pub(super) log_head: Sequence,
    /// The hub's log has had another life before this one.
    #[n(2)]
    pub(super) guarded: bool,
    /// The hub's stored stamp up to which nothing is missing.
    #[n(3)]
    pub(super) complete: Option<WallMicros>,
}

/// Where the state of each hub lies: the first hub a site ever had has `state/` itself, the others a directory below it. A hub is known
/// by its address; one at a new address is taken for the first one if that is not named any more.
pub(super) fn places(directory: &Path, hubs: &[HubChoice]) -> Vec<HubPlace> {
    let home = directory.join("state");
    let own = |address: &str| home.join("hubs").join(crate::file_names::encode(address));
    let first = fs::read(home.join("identity.json")).ok();
    let first = first.and_then(|text| serde_json::from_slice::<KnownHub>(&text).ok()?.hub);
    let at_home = hubs.iter().position(|hub| Some(&hub.address) == first.as_ref());
    let at_home = at_home.or_else(|| hubs.iter().position(|hub| !own(&hub.address).exists()));
    let spool = directory.join("spool");
    let place = |(at, hub): (usize, &HubChoice)| {
        let state = if Some(at) == at_home { home.clone() } else { own(&hub.address) };
        HubPlace { address: hub.address.clone(), state, spool: spool.join(format!("hub-{at}")) }
    };
    hubs.iter().enumerate().map(place).collect()
}

/// Reads all checkpoints; a damaged one costs a catch-up and is said.
pub(super) fn load_positions(state: &Path) -> BTreeMap<FeedName, StoredPosition> {
    let mut positions = BTreeMap::new();
    for entry in fs::read_dir(state.join("positions")).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "cbor") {
            continue;
        }
        match layer::read_checked::<StoredPosition>(&path, MAGIC) {
            Ok(Checked::Whole(stored)) => drop(positions.insert(stored.position.feed.clone(), stored)),
            Ok(_) => {
                tracing::error!(path = %path.display(), "a checkpoint is damaged or of another release; its feed catches up from the log")
            }
            Err(error) => {
                tracing::error!(path = %path.display(), %error, "a checkpoint can't be read; its feed catches up from the log")
            }
        }
    }
    positions
}

/// A thread that keeps checkpoints. Each one is on the disk after all that it says is stored: nothing waits for that.
///
/// The first one of a feed does not wait: without any, a start takes the feed for a new one and leaves out what came before.
pub(super) struct Keeper {
    state: PathBuf,
    begun: BTreeSet<FeedName>,
    sender: Option<Sender<Checkpoint>>,
    thread: Option<JoinHandle<()>>,
}

type Checkpoint = (StoredPosition, Option<Arc<FeedLog>>);

impl Keeper {
    /// Keeps checkpoints in this state directory.
    pub(super) fn start(state: &Path) -> Result<Self, String> {
        let (sender, receiver) = unbounded();
        let state = state.to_owned();
        let begun = load_positions(&state).into_keys().collect();
        let place = state.clone();
        let thread = std::thread::Builder::new()
            .name("checkpoints".to_owned())
            .spawn(move || keep(&place, &receiver))
            .map_err(|error| format!("no thread to keep checkpoints: {error}"))?;
        Ok(Self { state, begun, sender: Some(sender), thread: Some(thread) })
    }

    /// Keeps a checkpoint of what the log holds; of several of a feed that wait, the last.
    pub(super) fn keep(&mut self, stored: StoredPosition, log: Option<Arc<FeedLog>>) {
        if self.begun.insert(stored.position.feed.clone()) {
            complain(keep_one(&self.state, &stored, log.as_deref()));
        } else if let Some(sender) = &self.sender {
            // The thread lives as long as this.
            let _ = sender.send((stored, log));
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn keep(state: &Path, checkpoints: &Receiver<Checkpoint>) {
    while let Ok(first) = checkpoints.recv() {
        let until = Instant::now() + KEEP_INTERVAL;
        let waiting = std::iter::from_fn(|| checkpoints.recv_deadline(until).ok());
        let last: BTreeMap<FeedName, Checkpoint> =
            std::iter::once(first).chain(waiting).map(|it| (it.0.position.feed.clone(), it)).collect();
        for (stored, log) in last.values() {
            complain(keep_one(state, stored, log.as_deref()));
        }
    }
}

fn complain(kept: Result<(), String>) {
    if let Err(sentence) = kept {
        tracing::error!("{sentence}");
    }
}

/// Keeps a checkpoint once the log that it speaks of is on the disk.
pub(super) fn keep_one(state: &Path, stored: &StoredPosition, log: Option<&FeedLog>) -> Result<(), String> {
    log.map_or(Ok(()), |log| log.sync().map_err(|error| error.to_string()))?;
    save_position(state, stored)
}

/// Keeps a checkpoint, whole or not at all.
fn save_position(state: &Path, stored: &StoredPosition) -> Result<(), String> {
    let positions = state.join("positions");
    let path = positions.join(format!("{}.cbor", crate::file_names::encode(stored.position.feed.as_str())));
    layer::make_directory(&positions)
        .and_then(|()| layer::write_checked(&path, MAGIC, stored))
        .map_err(|error| disk::unwritable(&path, &error))
}

const MAGIC: &[u8; 8] = b"DBPLACE\n";
/// The disk is not made to synchronise more often. What a crash takes back is in the site's log.
const KEEP_INTERVAL: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn hubs(addresses: &[&str]) -> Vec<HubChoice> {
        let hub = |address: &&str| HubChoice { address: (*address).to_owned(), token_file: None };
        addresses.iter().map(hub).collect()
    }

    fn states(directory: &Path, addresses: &[&str]) -> Vec<String> {
        let name = |place: HubPlace| place.state.strip_prefix(directory).unwrap().display().to_string();
        places(directory, &hubs(addresses)).into_iter().map(name).collect()
    }

    #[test]
    fn each_hub_keeps_its_place_in_any_order_and_at_a_new_address() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(states(dir.path(), &["a:1", "b:1"]), ["state", "state/hubs/b%3A1"]);
        fs::create_dir_all(dir.path().join("state")).unwrap();
        fs::write(dir.path().join("state/identity.json"), r#"{"hub":"a:1"}"#).unwrap();
        fs::create_dir_all(dir.path().join("state/hubs/b%3A1")).unwrap();
        assert_eq!(states(dir.path(), &["b:1", "a:1"]), ["state/hubs/b%3A1", "state"]);
        assert_eq!(states(dir.path(), &["b:1"]), ["state/hubs/b%3A1"], "the other hub keeps its place");
        assert_eq!(states(dir.path(), &["moved:1"]), ["state"]);
        assert_eq!(states(dir.path(), &["moved:1", "b:1"]), ["state", "state/hubs/b%3A1"]);
    }

    #[test]
    fn the_first_checkpoint_of_a_feed_is_kept_before_anything_else_happens() {
        let dir = tempfile::tempdir().unwrap();
        let position = FeedPosition {
            feed: FeedName::parse("NGRID").unwrap(),
            epoch: downburst_model::Epoch(7),
            settled: [(1, 3)].into_iter().collect(),
            newest_stored: WallMicros(3),
        };
        let stored = StoredPosition { position, log_head: Sequence(0), guarded: false, complete: None };
        let mut keeper = Keeper::start(dir.path()).unwrap();
        keeper.keep(stored.clone(), None);
        let read = load_positions(dir.path()).into_values().next().map(|it| it.position);
        assert_eq!(read, Some(stored.position));
    }

    #[test]
    fn a_checkpoint_comes_back_as_it_was_and_a_damaged_one_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let position = FeedPosition {
            feed: FeedName::parse("IDS|DDPLUS").unwrap(),
            epoch: downburst_model::Epoch(7),
            settled: [(0, 5), (9, 9)].into_iter().collect(),
            newest_stored: WallMicros(3),
        };
        let complete = Some(WallMicros(2));
        let stored = StoredPosition { position, log_head: Sequence(4), guarded: false, complete };
        save_position(dir.path(), &stored).unwrap();
        let read = load_positions(dir.path()).into_values().next().unwrap();
        assert_eq!((read.position, read.complete), (stored.position.clone(), complete));
        save_position(dir.path(), &StoredPosition { complete: None, ..stored }).unwrap();
        assert_eq!(load_positions(dir.path()).into_values().next().unwrap().complete, None);
        let path = dir.path().join("positions/IDS%7CDDPLUS.cbor");
        let good = fs::read(&path).unwrap();
        // What tells the release apart is no content.
        for at in (0..good.len()).filter(|at| !(8..12).contains(at)) {
            let mut bad = good.clone();
            bad[at] ^= 1;
            fs::write(&path, bad).unwrap();
            assert!(load_positions(dir.path()).is_empty(), "byte {at}");
        }
    }
}
