//! What a site keeps between starts: where the state of each hub lies, and where the site stands in each feed.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

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
        match fs::read(&path)
            .map_err(|error| error.to_string())
            .and_then(|bytes| minicbor::decode::<StoredPosition>(&bytes).map_err(|error| error.to_string()))
        {
            Ok(stored) => {
                positions.insert(stored.position.feed.clone(), stored);
            }
            Err(error) => {
                tracing::warn!(path = %path.display(), error, "a checkpoint is damaged; its feed catches up from the log")
            }
        }
    }
    positions
}

/// Keeps a checkpoint, whole or not at all.
pub(super) fn save_position(state: &Path, stored: &StoredPosition) -> Result<(), String> {
    let positions = state.join("positions");
    let path = positions.join(format!("{}.cbor", crate::file_names::encode(stored.position.feed.as_str())));
    let aside = path.with_extension("tmp");
    fs::create_dir_all(&positions)
        .and_then(|()| fs::write(&aside, minicbor::to_vec(stored).unwrap_or_default()))
        .and_then(|()| fs::rename(&aside, &path))
        .map_err(|error| disk::unwritable(&path, &error))
}

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
    fn a_checkpoint_comes_back_as_it_was_and_one_of_a_former_release_is_read() {
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
    }
}
