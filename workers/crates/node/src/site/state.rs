//! What a site keeps between starts: who it is, and where it stands in each feed.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use downburst_model::{FeedName, Sequence, SiteName, WallMicros};
use downburst_session::{FeedPosition, Proof};
use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use super::HubChoice;
use crate::disk;
use crate::tls::{sha256_hex, write_private};

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

/// Who the site is to its hub.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Identity {
    /// SHA-256 of the hub's authority, in hex.
    pub(crate) ca_sha256: String,
    /// The credential's secret, made here; the hub knows its hash.
    secret: String,
    /// The site's name, once the hub told it.
    pub(super) site: Option<SiteName>,
    /// The enrolment token's secret, until the hub accepted it.
    token_secret: Option<String>,
    /// Where the hub was reached last.
    #[serde(default)]
    hub: Option<String>,
    #[serde(skip)]
    path: PathBuf,
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
    let first = first.and_then(|text| serde_json::from_slice::<Identity>(&text).ok()?.hub);
    let at_home = hubs.iter().position(|hub| Some(&hub.address) == first.as_ref());
    let at_home = at_home.or_else(|| hubs.iter().position(|hub| !own(&hub.address).exists()));
    let spool = directory.join("spool");
    let place = |(at, hub): (usize, &HubChoice)| {
        let state = if Some(at) == at_home { home.clone() } else { own(&hub.address) };
        HubPlace { address: hub.address.clone(), state, spool: spool.join(format!("hub-{at}")) }
    };
    hubs.iter().enumerate().map(place).collect()
}

impl Identity {
    /// Reads the identity from the state directory, or begins one with the enrolment token.
    pub(crate) fn load(place: &HubPlace, token_file: Option<&Path>) -> Result<Self, String> {
        let token = || token_file.filter(|file| file.exists()).map(read_token).transpose();
        let mut identity = Self::load_or_begin(&place.state, token, token_file)?;
        if identity.hub.as_ref() != Some(&place.address) {
            identity.hub = Some(place.address.clone());
            identity.save()?;
        }
        Ok(identity)
    }

    /// The identity of a hub at another hub, with the token's text itself.
    pub(crate) fn load_with_token(place: &HubPlace, token: &str) -> Result<Self, String> {
        Self::load_or_begin(&place.state, || parse_token(token).map(Some), None)
    }

    fn load_or_begin(
        state: &Path,
        token: impl FnOnce() -> Result<Option<(String, String)>, String>,
        token_file: Option<&Path>,
    ) -> Result<Self, String> {
        let path = state.join("identity.json");
        match fs::read_to_string(&path) {
            Ok(text) => {
                let identity: Self = serde_json::from_str(&text).map_err(|error| {
                    format!(
                        "{} is damaged ({error}); remove it and enrol the site again with a new token",
                        path.display()
                    )
                })?;
                Self { path, ..identity }.with_token(token()?)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let (ca_sha256, token_secret) = match (token()?, token_file) {
                    (Some(token), _) => token,
                    (None, Some(file)) => read_token(file)?,
                    (None, None) => return Err(NOT_ENROLLED.to_owned()),
                };
                let identity = Self {
                    ca_sha256,
                    secret: random_secret()?,
                    site: None,
                    token_secret: Some(token_secret),
                    hub: None,
                    path,
                };
                // Kept before it is shown: an answer that gets lost is asked for again with the same credential.
                identity.save()?;
                Ok(identity)
            }
            Err(error) => Err(format!("{} can't be read: {error}; correct its permissions", path.display())),
        }
    }

    /// What the site shows the hub.
    pub(crate) fn proof(&self) -> Proof {
        match (&self.site, &self.token_secret) {
            (Some(site), None) => Proof::Credential { site: site.clone(), secret: self.secret.clone() },
            (_, token) => Proof::Token {
                secret: token.clone().unwrap_or_default(),
                credential_sha256: sha256_hex(self.secret.as_bytes()),
            },
        }
    }

    /// Remembers that the hub accepted the site under this name.
    pub(crate) fn accepted(&mut self, site: &SiteName) -> Result<(), String> {
        if self.site.as_ref() == Some(site) && self.token_secret.is_none() {
            return Ok(());
        }
        self.site = Some(site.clone());
        self.token_secret = None;
        self.save()
    }

    /// A token file with another token than the one in use replaces an identity that the hub has not accepted, or does not accept
    /// any more.
    fn with_token(mut self, token: Option<(String, String)>) -> Result<Self, String> {
        let seen = self.path.with_file_name("token.sha256");
        let Some((ca_sha256, token_secret)) = token else { return Ok(self) };
        let used = fs::read_to_string(&seen).unwrap_or_default();
        if used == sha256_hex(token_secret.as_bytes()) {
            return Ok(self);
        }
        self.ca_sha256 = ca_sha256;
        self.secret = random_secret()?;
        self.token_secret = Some(token_secret);
        self.save()?;
        Ok(self)
    }

    fn save(&self) -> Result<(), String> {
        let sentence = |error: &dyn std::fmt::Display| {
            format!("{} can't be written: {error}; free space or correct permissions", self.path.display())
        };
        let text = serde_json::to_vec_pretty(self).map_err(|error| sentence(&error))?;
        write_private(&self.path, &text).map_err(|error| sentence(&error))?;
        if let Some(token) = &self.token_secret {
            let seen = self.path.with_file_name("token.sha256");
            write_private(&seen, sha256_hex(token.as_bytes()).as_bytes())
                .map_err(|error| sentence(&error))?;
        }
        Ok(())
    }
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

fn read_token(file: &Path) -> Result<(String, String), String> {
    let text = fs::read_to_string(file).map_err(|error| {
        format!("the token file {} can't be read: {error}; check the path", file.display())
    })?;
    parse_token(&text).map_err(|sentence| format!("{}: {sentence}", file.display()))
}

fn parse_token(text: &str) -> Result<(String, String), String> {
    let mut parts = text.trim().split('.');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some("dbt1"), Some(ca), Some(secret), None)
            if ca.len() == 64 && ca.bytes().all(|byte| byte.is_ascii_hexdigit()) && !secret.is_empty() =>
        {
            Ok((ca.to_ascii_lowercase(), secret.to_owned()))
        }
        _ => Err(
            "this is no enrolment token (dbt1.FINGERPRINT.SECRET); copy the whole token from the operator"
                .to_owned(),
        ),
    }
}

fn random_secret() -> Result<String, String> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| format!("the system gives no random numbers: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

const NOT_ENROLLED: &str = "the site is not enrolled yet; give --token-file with a token from the hub's operator (downburst sites token SITE)";

#[cfg(test)]
mod tests {
    use super::*;

    fn load(directory: &Path, token: Option<&str>) -> Result<Identity, String> {
        let state = directory.join("state");
        fs::create_dir_all(&state).unwrap();
        let token_file = token.map(|text| {
            let path = directory.join("token");
            fs::write(&path, text).unwrap();
            path
        });
        let place = HubPlace { address: "a:1".to_owned(), state, spool: PathBuf::new() };
        Identity::load(&place, token_file.as_deref())
    }

    fn hubs(addresses: &[&str]) -> Vec<HubChoice> {
        let hub = |address: &&str| HubChoice { address: (*address).to_owned(), token_file: None };
        addresses.iter().map(hub).collect()
    }

    fn states(directory: &Path, addresses: &[&str]) -> Vec<String> {
        let name = |place: HubPlace| place.state.strip_prefix(directory).unwrap().display().to_string();
        places(directory, &hubs(addresses)).into_iter().map(name).collect()
    }

    fn token(secret: &str) -> String {
        format!("dbt1.{}.{secret}\n", "ab".repeat(32))
    }

    #[test]
    fn the_credential_is_made_once_and_survives_until_a_new_token_comes() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = load(dir.path(), Some(&token("one"))).unwrap();
        let again = load(dir.path(), Some(&token("one"))).unwrap();
        assert_eq!(first.secret, again.secret, "a lost answer is asked for with the same credential");
        first.accepted(&SiteName::parse("unl").unwrap()).unwrap();
        let enrolled = load(dir.path(), Some(&token("one"))).unwrap();
        assert!(matches!(enrolled.proof(), Proof::Credential { .. }));
        let renewed = load(dir.path(), Some(&token("two"))).unwrap();
        assert!(matches!(renewed.proof(), Proof::Token { .. }));
        assert_ne!(renewed.secret, first.secret);
    }

    #[test]
    fn bad_tokens_are_refused_with_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        for bad in ["", "dbt1.xx.yy", "hello", "dbt2.aa.bb"] {
            let error = load(dir.path(), Some(bad)).unwrap_err();
            assert!(error.contains("copy the whole token"), "{error}");
        }
        let error = load(dir.path(), None).unwrap_err();
        assert!(error.contains("--token-file"), "{error}");
    }

    #[test]
    fn each_hub_keeps_its_place_in_any_order_and_at_a_new_address() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(states(dir.path(), &["a:1", "b:1"]), ["state", "state/hubs/b%3A1"]);
        load(dir.path(), Some(&token("one"))).unwrap();
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
