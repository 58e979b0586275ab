//! The persistent state of a site: the directory of each hub's state, and the site's position in each feed.
mod checks;
mod identity;
pub(super) mod nodes;
mod positions;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use downburst_log::FeedLog;
use downburst_log::disk::{self as layer, Checked};
use downburst_model::{FeedName, Origin};
use downburst_site::{
    BegunFeeds, CHECKPOINT_INTERVAL, Positions, StoredPosition, WaitingCheckpoints, host_of, hub_at_home,
};
use serde::Deserialize;

pub(crate) use checks::checkpoints;
pub(super) use checks::of_site as small_files;
pub(crate) use identity::Identity;
pub(super) use identity::entropy;
pub(super) use positions::recover;

use super::HubChoice;
use crate::disk;

/// A hub of the site, and the directories of its state.
#[derive(Clone, Debug)]
pub(crate) struct HubPlace {
    /// `HOST:PORT`.
    pub(crate) address: String,
    /// The identity at this hub and the positions in its logs.
    pub(crate) state: PathBuf,
    /// Large incoming products.
    pub(crate) spool: PathBuf,
}

impl HubPlace {
    /// Distinguishes the site from others on its host, as the owner of interfaces.
    pub(crate) fn mark(&self) -> String {
        format!("site {}", self.state.display())
    }

    /// The host name under which the hub is called, which an LDM appends to the origins of products; `None` if
    /// it is not a host name.
    pub(super) fn host(&self) -> Option<Origin> {
        host_of(&self.address)
    }
}

/// The address at which an identity's hub was last reached.
#[derive(Deserialize)]
struct KnownHub {
    #[serde(default)]
    hub: Option<String>,
}

/// The directory of each hub's state: the first hub that a site ever had has `state/` itself, the others a
/// directory below it ([`hub_at_home`]).
pub(super) fn places(directory: &Path, hubs: &[HubChoice]) -> Vec<HubPlace> {
    let home = directory.join("state");
    let own = |address: &str| home.join("hubs").join(crate::file_names::encode(address));
    let first = fs::read(home.join("identity.json")).ok();
    let first = first.and_then(|text| serde_json::from_slice::<KnownHub>(&text).ok()?.hub);
    let addresses = hubs.iter().map(|hub| hub.address.as_str());
    let at_home = hub_at_home(addresses, first.as_deref(), |address| own(address).exists());
    let spool = directory.join("spool");
    let place = |(at, hub): (usize, &HubChoice)| {
        let state = if Some(at) == at_home { home.clone() } else { own(&hub.address) };
        HubPlace { address: hub.address.clone(), state, spool: spool.join(format!("hub-{at}")) }
    };
    hubs.iter().enumerate().map(place).collect()
}

/// Reads all checkpoints; a damaged one is logged, and its feed is recovered from the site's log.
pub(super) fn load_positions(state: &Path) -> Positions {
    let mut positions = Positions::default();
    for entry in fs::read_dir(state.join("positions")).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "cbor") {
            continue;
        }
        match layer::read_checked::<StoredPosition>(&path, MAGIC) {
            Ok(Checked::Whole(stored)) => {
                positions.whole.insert(stored.position.feed.clone(), stored);
                continue;
            }
            Ok(_) => {
                tracing::error!(path = %path.display(), "a checkpoint is damaged or of another release; its feed \
                    catches up from the log")
            }
            Err(error) => {
                tracing::error!(path = %path.display(), %error, "a checkpoint can't be read; its feed catches up \
                    from the log")
            }
        }
        let name = path.file_stem().and_then(|stem| crate::file_names::decode(stem.to_str()?));
        positions.damaged.extend(name.and_then(|name| FeedName::parse(&name).ok()));
    }
    positions
}

/// A thread that writes checkpoints. Each reaches the disk after all products that it lists; nothing waits for that.
pub(super) struct Keeper {
    state: PathBuf,
    begun: BegunFeeds,
    waiting: Arc<Waiting>,
    thread: Option<JoinHandle<()>>,
}

/// The last checkpoint of each feed that is not on the disk yet, with the feed's log.
#[derive(Default)]
struct Waiting {
    checkpoints: Mutex<WaitingCheckpoints<Option<Arc<FeedLog>>>>,
    changed: Condvar,
}

impl Keeper {
    /// Starts the thread, which writes checkpoints to this state directory.
    pub(super) fn start(state: &Path) -> Result<Self, String> {
        let begun = BegunFeeds::new(load_positions(state).whole.into_keys());
        let waiting = Arc::new(Waiting::default());
        let (place, theirs) = (state.to_owned(), Arc::clone(&waiting));
        let thread = std::thread::Builder::new()
            .name("checkpoints".to_owned())
            .spawn(move || theirs.keep_all(&place))
            .map_err(|error| format!("no thread to keep checkpoints: {error}"))?;
        Ok(Self { state: state.to_owned(), begun, waiting, thread: Some(thread) })
    }

    /// Writes a feed's first checkpoint directly and queues later ones; of those queued, only the last is written.
    pub(super) fn keep(&mut self, stored: StoredPosition, log: Option<Arc<FeedLog>>) {
        if self.begun.is_first(&stored) {
            complain(keep_one(&self.state, &stored, log.as_deref()));
        } else {
            self.waiting.put((stored, log));
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.waiting.end();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Waiting {
    fn put(&self, (stored, log): (StoredPosition, Option<Arc<FeedLog>>)) {
        self.checkpoints().put(stored, log);
        self.changed.notify_all();
    }

    /// Has the thread end once the queued checkpoints are written.
    fn end(&self) {
        self.checkpoints().end();
        self.changed.notify_all();
    }

    /// Writes the queued checkpoints, an interval after the first of them was queued.
    fn keep_all(&self, state: &Path) {
        loop {
            let held = self.changed.wait_while(self.checkpoints(), |held| held.is_idle());
            let held = held.unwrap_or_else(PoisonError::into_inner);
            let interval = Duration::from_micros(CHECKPOINT_INTERVAL.0);
            let held = self.changed.wait_timeout_while(held, interval, |held| !held.is_over());
            let last = held.unwrap_or_else(PoisonError::into_inner).0.take();
            let Some(last) = last else { return };
            for (stored, log) in last.values() {
                complain(keep_one(state, stored, log.as_deref()));
            }
        }
    }

    fn checkpoints(&self) -> MutexGuard<'_, WaitingCheckpoints<Option<Arc<FeedLog>>>> {
        self.checkpoints.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn complain(kept: Result<(), String>) {
    if let Err(sentence) = kept {
        tracing::error!("{sentence}");
    }
}

/// Writes a checkpoint once the log to which it refers is on the disk.
pub(super) fn keep_one(state: &Path, stored: &StoredPosition, log: Option<&FeedLog>) -> Result<(), String> {
    log.map_or(Ok(()), |log| log.sync().map_err(|error| error.to_string()))?;
    save_position(state, stored)
}

/// Writes a checkpoint atomically.
fn save_position(state: &Path, stored: &StoredPosition) -> Result<(), String> {
    let positions = state.join("positions");
    let path = positions.join(format!("{}.cbor", crate::file_names::encode(stored.position.feed.as_str())));
    layer::make_directory(&positions)
        .and_then(|()| layer::write_checked(&path, MAGIC, stored))
        .map_err(|error| disk::unwritable(&path, &error))
}

const MAGIC: &[u8; 8] = b"DBPLACE\n";

#[cfg(test)]
mod tests {
    use downburst_model::{Sequence, WallMicros};
    use downburst_session::FeedPosition;

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
        let read = load_positions(dir.path()).whole.into_values().next().map(|it| it.position);
        assert_eq!(read, Some(stored.position));
    }

    #[test]
    fn while_the_disk_stands_still_the_last_checkpoint_of_each_feed_waits_and_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let stored = |feed: &str, to| StoredPosition {
            position: FeedPosition {
                feed: FeedName::parse(feed).unwrap(),
                epoch: downburst_model::Epoch(7),
                settled: [(0, to)].into_iter().collect(),
                newest_stored: WallMicros(3),
            },
            log_head: Sequence(to),
            guarded: false,
            complete: None,
        };
        let waiting = Arc::new(Waiting::default());
        for to in 1..=10_000 {
            for feed in ["NGRID", "HDS"] {
                waiting.put((stored(feed, to), None));
            }
        }
        assert_eq!(waiting.checkpoints().count(), 2, "one for each feed, however many there were");
        waiting.end();
        waiting.keep_all(dir.path());
        let kept: Vec<_> = load_positions(dir.path()).whole.into_values().map(|it| it.log_head).collect();
        assert_eq!(kept, [Sequence(10_000), Sequence(10_000)]);
    }

    #[test]
    fn what_waits_when_the_site_ends_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let position = |to| FeedPosition {
            feed: FeedName::parse("NGRID").unwrap(),
            epoch: downburst_model::Epoch(7),
            settled: [(0, to)].into_iter().collect(),
            newest_stored: WallMicros(3),
        };
        let mut keeper = Keeper::start(dir.path()).unwrap();
        for to in 1..=3 {
            let stored = StoredPosition {
                position: position(to),
                log_head: Sequence(to),
                guarded: false,
                complete: None,
            };
            keeper.keep(stored, None);
        }
        drop(keeper);
        assert_eq!(
            load_positions(dir.path()).whole.into_values().next().map(|it| it.position),
            Some(position(3))
        );
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
        let read = load_positions(dir.path()).whole.into_values().next().unwrap();
        assert_eq!((read.position, read.complete), (stored.position.clone(), complete));
        save_position(dir.path(), &StoredPosition { complete: None, ..stored }).unwrap();
        assert_eq!(load_positions(dir.path()).whole.into_values().next().unwrap().complete, None);
        let path = dir.path().join("positions/IDS%7CDDPLUS.cbor");
        let good = fs::read(&path).unwrap();
        // The bytes that identify the release are not part of the content.
        for at in (0..good.len()).filter(|at| !(8..12).contains(at)) {
            let mut bad = good.clone();
            bad[at] ^= 1;
            fs::write(&path, bad).unwrap();
            let read = load_positions(dir.path());
            assert!(read.whole.is_empty() && read.damaged.len() == 1, "byte {at}");
        }
    }
}
