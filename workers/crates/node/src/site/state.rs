//! What a site keeps between starts: who it is, and where it stands in each feed.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use downburst_model::{FeedName, Sequence, SiteName};
use downburst_session::{FeedPosition, Proof};
use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use super::Receive;
use crate::tls::{sha256_hex, write_private};

/// Who the site is to its hub.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Identity {
    /// SHA-256 of the hub's authority, in hex.
    pub(super) ca_sha256: String,
    /// The credential's secret, made here; the hub knows its hash.
    secret: String,
    /// The site's name, once the hub told it.
    pub(super) site: Option<SiteName>,
    /// The enrolment token's secret, until the hub accepted it.
    token_secret: Option<String>,
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
}

impl Identity {
    /// Reads the identity from the state directory, or begins one with the enrolment token.
    pub(super) fn load(receive: &Receive) -> Result<Self, String> {
        let path = receive.directory.join("state").join("identity.json");
        match fs::read_to_string(&path) {
            Ok(text) => {
                let identity: Self = serde_json::from_str(&text).map_err(|error| {
                    format!(
                        "{} is damaged ({error}); remove it and enrol the site again with a new token",
                        path.display()
                    )
                })?;
                let identity = Self { path, ..identity };
                identity.with_token_of(receive)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let file = receive.token_file.as_ref().ok_or_else(|| {
                    "the site is not enrolled yet; give --token-file with a token from the hub's operator (downburst sites token SITE)".to_owned()
                })?;
                let (ca_sha256, token_secret) = read_token(file)?;
                let identity = Self {
                    ca_sha256,
                    secret: random_secret()?,
                    site: None,
                    token_secret: Some(token_secret),
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
    pub(super) fn proof(&self) -> Proof {
        match (&self.site, &self.token_secret) {
            (Some(site), None) => Proof::Credential { site: site.clone(), secret: self.secret.clone() },
            (_, token) => Proof::Token {
                secret: token.clone().unwrap_or_default(),
                credential_sha256: sha256_hex(self.secret.as_bytes()),
            },
        }
    }

    /// Remembers that the hub accepted the site under this name.
    pub(super) fn accepted(&mut self, site: &SiteName) -> Result<(), String> {
        if self.site.as_ref() == Some(site) && self.token_secret.is_none() {
            return Ok(());
        }
        self.site = Some(site.clone());
        self.token_secret = None;
        self.save()
    }

    /// A token file with another token than the one in use replaces an identity that the hub has not accepted, or does not accept
    /// any more.
    fn with_token_of(mut self, receive: &Receive) -> Result<Self, String> {
        let seen = self.path.with_file_name("token.sha256");
        let Some(file) = receive.token_file.as_ref().filter(|file| file.exists()) else { return Ok(self) };
        let (ca_sha256, token_secret) = read_token(file)?;
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
pub(super) fn load_positions(directory: &Path) -> BTreeMap<FeedName, StoredPosition> {
    let mut positions = BTreeMap::new();
    for entry in fs::read_dir(positions_directory(directory)).into_iter().flatten().flatten() {
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
pub(super) fn save_position(directory: &Path, stored: &StoredPosition) -> Result<(), String> {
    let positions = positions_directory(directory);
    let path = positions.join(format!("{}.cbor", crate::file_names::encode(stored.position.feed.as_str())));
    let aside = path.with_extension("tmp");
    fs::create_dir_all(&positions)
        .and_then(|()| fs::write(&aside, minicbor::to_vec(stored).unwrap_or_default()))
        .and_then(|()| fs::rename(&aside, &path))
        .map_err(|error| {
            format!("{} can't be written: {error}; free space or correct permissions", path.display())
        })
}

fn positions_directory(directory: &Path) -> PathBuf {
    directory.join("state").join("positions")
}

fn read_token(file: &Path) -> Result<(String, String), String> {
    let text = fs::read_to_string(file).map_err(|error| {
        format!("the token file {} can't be read: {error}; check the path", file.display())
    })?;
    let mut parts = text.trim().split('.');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some("dbt1"), Some(ca), Some(secret), None)
            if ca.len() == 64 && ca.bytes().all(|byte| byte.is_ascii_hexdigit()) && !secret.is_empty() =>
        {
            Ok((ca.to_ascii_lowercase(), secret.to_owned()))
        }
        _ => Err(format!(
            "{} holds no enrolment token (dbt1.FINGERPRINT.SECRET); copy the whole token from the operator into it",
            file.display()
        )),
    }
}

fn random_secret() -> Result<String, String> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| format!("the system gives no random numbers: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receive(directory: &Path, token: Option<&str>) -> Receive {
        fs::create_dir_all(directory.join("state")).unwrap();
        let token_file = token.map(|text| {
            let path = directory.join("token");
            fs::write(&path, text).unwrap();
            path
        });
        Receive {
            hub: String::new(),
            token_file,
            directory: directory.to_owned(),
            retention_hours: 1.0,
            retention_bytes: 1,
            files: true,
            wall_shift_us: 0,
        }
    }

    fn token(secret: &str) -> String {
        format!("dbt1.{}.{secret}\n", "ab".repeat(32))
    }

    #[test]
    fn the_credential_is_made_once_and_survives_until_a_new_token_comes() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = Identity::load(&receive(dir.path(), Some(&token("one")))).unwrap();
        let again = Identity::load(&receive(dir.path(), Some(&token("one")))).unwrap();
        assert_eq!(first.secret, again.secret, "a lost answer is asked for with the same credential");
        first.accepted(&SiteName::parse("unl").unwrap()).unwrap();
        let enrolled = Identity::load(&receive(dir.path(), Some(&token("one")))).unwrap();
        assert!(matches!(enrolled.proof(), Proof::Credential { .. }));
        let renewed = Identity::load(&receive(dir.path(), Some(&token("two")))).unwrap();
        assert!(matches!(renewed.proof(), Proof::Token { .. }));
        assert_ne!(renewed.secret, first.secret);
    }

    #[test]
    fn bad_tokens_are_refused_with_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        for bad in ["", "dbt1.xx.yy", "hello", "dbt2.aa.bb"] {
            let error = Identity::load(&receive(dir.path(), Some(bad))).unwrap_err();
            assert!(error.contains("copy the whole token"), "{error}");
        }
        let error = Identity::load(&receive(dir.path(), None)).unwrap_err();
        assert!(error.contains("--token-file"), "{error}");
    }
}
