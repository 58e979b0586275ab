//! Who a site is to its hub, kept in one file of the state directory: `identity.json`.
use std::fs;
use std::path::{Path, PathBuf};

use downburst_model::SiteName;
use downburst_session::{Proof, Secrets};
use serde::{Deserialize, Serialize};

use super::HubPlace;
use crate::disk;
use crate::tls::{sha256_hex, write_private};

/// Who the site is to its hub.
#[derive(Clone)]
pub(crate) struct Identity {
    /// SHA-256 of the hub's authority, in hex.
    pub(crate) ca_sha256: String,
    /// Of the credentials, made here; the hub knows their hashes.
    secrets: Secrets,
    /// The site's name, once the hub told it.
    site: Option<SiteName>,
    /// The enrolment token's secret, until the hub accepted it.
    token_secret: Option<String>,
    /// Where the hub was reached last.
    hub: Option<String>,
    /// SHA-256 of the enrolment token that was used last.
    token_sha256: Option<String>,
    path: PathBuf,
}

/// The file. What a node of an earlier release does not know in it, it passes over.
#[derive(Serialize, Deserialize)]
struct Kept {
    ca_sha256: String,
    secret: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next_secret: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    former_secret: Option<String>,
    site: Option<SiteName>,
    token_secret: Option<String>,
    #[serde(default)]
    hub: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token_sha256: Option<String>,
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

    /// The identity that the site has at a hub, for another node of that hub than the one it was given.
    pub(crate) fn known(place: &HubPlace) -> Result<Self, String> {
        Self::load_or_begin(&place.state, || Ok(None), None)
    }

    /// True until the hub accepted the site's token.
    pub(crate) fn is_new(&self) -> bool {
        self.token_secret.is_some()
    }

    /// Takes up what another connection to the same hub has kept. True if the credential is another one since.
    pub(crate) fn take_up(&mut self) -> bool {
        let state = self.path.parent().unwrap_or_else(|| Path::new("."));
        let Ok(kept) = Self::load_or_begin(state, || Ok(None), None) else { return false };
        let changed = kept.secrets.current() != self.secrets.current();
        if changed {
            *self = kept;
        }
        changed
    }

    fn load_or_begin(
        state: &Path,
        token: impl FnOnce() -> Result<Option<(String, String)>, String>,
        token_file: Option<&Path>,
    ) -> Result<Self, String> {
        let path = state.join("identity.json");
        match fs::read_to_string(&path) {
            Ok(text) => {
                let kept: Kept = disk::unsealed(&text).map_err(|reason| {
                    format!(
                        "{} is damaged ({reason}); remove it and enrol the site again with a new token",
                        path.display()
                    )
                })?;
                Self::of(kept, path).with_token(token()?)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let (ca_sha256, token_secret) = match (token()?, token_file) {
                    (Some(token), _) => token,
                    (None, Some(file)) => read_token(file)?,
                    (None, None) => return Err(NOT_ENROLLED.to_owned()),
                };
                let identity = Self {
                    ca_sha256,
                    secrets: Secrets::new(random_secret()?, None, None),
                    site: None,
                    token_sha256: Some(sha256_hex(token_secret.as_bytes())),
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
            (Some(site), None) => {
                Proof::Credential { site: site.clone(), secret: self.secrets.shown().to_owned() }
            }
            (_, token) => Proof::Token {
                secret: token.clone().unwrap_or_default(),
                credential_sha256: sha256_hex(self.secrets.current().as_bytes()),
            },
        }
    }

    /// Remembers that the hub accepted the site under this name.
    pub(crate) fn accepted(&mut self, site: &SiteName) -> Result<(), String> {
        let changed = self.secrets.let_in();
        if !changed && self.site.as_ref() == Some(site) && self.token_secret.is_none() {
            return Ok(());
        }
        self.site = Some(site.clone());
        self.token_secret = None;
        self.save()
    }

    /// The hub does not take the credential that was shown. True if the site has another one to show.
    pub(crate) fn refused(&mut self) -> bool {
        self.token_secret.is_none() && self.secrets.refused()
    }

    /// The record to keep before another credential is offered to the hub in the place of the one with this
    /// SHA-256, and the SHA-256 of the other one.
    pub(crate) fn offering(&self, of: &str) -> Result<(Self, String), String> {
        let mut identity = self.clone();
        let is_it = |secret: &str| sha256_hex(secret.as_bytes()) == of;
        let sha256 = sha256_hex(identity.secrets.offer(is_it, random_secret)?.as_bytes());
        Ok((identity, sha256))
    }

    /// As it has to be kept once the hub keeps an offered credential, and the secret that is shown then.
    pub(crate) fn showing(&self, sha256: &str) -> Option<(Self, String)> {
        let mut identity = self.clone();
        let secret = identity.secrets.kept(|secret| sha256_hex(secret.as_bytes()) == sha256)?.to_owned();
        Some((identity, secret))
    }

    /// Keeps it, whole or not at all. Takes as long as the disk does.
    pub(crate) fn save(&self) -> Result<(), String> {
        let sentence = |error: &dyn std::fmt::Display| {
            format!("{} can't be written: {error}; free space or correct permissions", self.path.display())
        };
        let text = disk::sealed(&self.kept()).map_err(|error| sentence(&error))?;
        write_private(&self.path, &text).map_err(|error| sentence(&error))
    }

    /// A token file with another token than the one in use replaces an identity that the hub has not
    /// accepted, or no longer accepts.
    fn with_token(mut self, token: Option<(String, String)>) -> Result<Self, String> {
        let Some((ca_sha256, token_secret)) = token else { return Ok(self) };
        let token_sha256 = sha256_hex(token_secret.as_bytes());
        // Releases that kept no checksum had the hash in a file of its own.
        let former = || fs::read_to_string(self.path.with_file_name("token.sha256")).ok();
        if self.token_sha256.clone().or_else(former).as_ref() == Some(&token_sha256) {
            return Ok(self);
        }
        self.token_sha256 = Some(token_sha256);
        self.ca_sha256 = ca_sha256;
        self.secrets = Secrets::new(random_secret()?, None, None);
        self.token_secret = Some(token_secret);
        self.save()?;
        Ok(self)
    }

    fn of(kept: Kept, path: PathBuf) -> Self {
        let Kept { ca_sha256, secret, next_secret, former_secret, site, token_secret, hub, token_sha256 } =
            kept;
        let secrets = Secrets::new(secret, next_secret, former_secret);
        Self { ca_sha256, secrets, site, token_secret, hub, token_sha256, path }
    }

    fn kept(&self) -> Kept {
        Kept {
            ca_sha256: self.ca_sha256.clone(),
            secret: self.secrets.current().to_owned(),
            next_secret: self.secrets.next().map(str::to_owned),
            former_secret: self.secrets.former().map(str::to_owned),
            site: self.site.clone(),
            token_secret: self.token_secret.clone(),
            hub: self.hub.clone(),
            token_sha256: self.token_sha256.clone(),
        }
    }
}

#[cfg(test)]
impl Identity {
    /// What the site would show.
    pub(crate) fn secret(&self) -> &str {
        self.secrets.shown()
    }

    pub(crate) fn shows(&self, secret: &str) -> bool {
        self.secrets.shown() == secret
    }
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Identity({:?})", self.site)
    }
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
            "this is not an enrolment token (dbt1.FINGERPRINT.SECRET); copy the whole token from the operator"
                .to_owned(),
        ),
    }
}

fn random_secret() -> Result<String, String> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| format!("the system gives no random numbers: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

const NOT_ENROLLED: &str = "the site is not enrolled yet; give --token-file with a token from the hub's operator \
    (downburst sites token SITE)";

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

    fn token(secret: &str) -> String {
        format!("dbt1.{}.{secret}\n", "ab".repeat(32))
    }

    fn enrolled(directory: &Path) -> Identity {
        let mut identity = load(directory, Some(&token("one"))).unwrap();
        identity.accepted(&SiteName::parse("unl").unwrap()).unwrap();
        identity
    }

    fn shown(identity: &Identity) -> String {
        match identity.proof() {
            Proof::Credential { secret, .. } => secret,
            Proof::Token { .. } => panic!("a token is shown"),
        }
    }

    fn current(identity: &Identity) -> String {
        sha256_hex(identity.secrets.current().as_bytes())
    }

    #[test]
    fn the_credential_is_made_once_and_survives_until_a_new_token_comes() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = load(dir.path(), Some(&token("one"))).unwrap();
        let again = load(dir.path(), Some(&token("one"))).unwrap();
        assert_eq!(
            first.secrets.current(),
            again.secrets.current(),
            "a lost answer is asked for with the same credential"
        );
        first.accepted(&SiteName::parse("unl").unwrap()).unwrap();
        let enrolled = load(dir.path(), Some(&token("one"))).unwrap();
        assert!(matches!(enrolled.proof(), Proof::Credential { .. }));
        let renewed = load(dir.path(), Some(&token("two"))).unwrap();
        assert!(matches!(renewed.proof(), Proof::Token { .. }));
        assert_ne!(renewed.secrets.current(), first.secrets.current());
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
    fn what_is_offered_is_on_the_disk_and_after_a_crash_one_of_them_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let first = enrolled(dir.path());
        let (offering, sha256) = first.offering(&current(&first)).unwrap();
        offering.save().unwrap();
        let mut crashed = load(dir.path(), None).unwrap();
        assert_eq!(shown(&crashed), shown(&first), "the hub may not know the other one");
        assert!(crashed.refused(), "or it may, and the first one's time may be over");
        assert_eq!(sha256_hex(shown(&crashed).as_bytes()), sha256);
        assert_eq!(
            crashed.offering(&current(&crashed)).unwrap().1,
            sha256,
            "what was offered is offered again"
        );
        let (showing, secret) = offering.showing(&sha256).unwrap();
        assert!(offering.showing(&"00".repeat(32)).is_none());
        showing.save().unwrap();
        let mut later = load(dir.path(), None).unwrap();
        assert_eq!(shown(&later), secret);
        assert!(later.refused(), "a hub that was restored knows the first one alone");
        assert_eq!(shown(&later), shown(&first));
        later.accepted(&SiteName::parse("unl").unwrap()).unwrap();
        assert_eq!(shown(&load(dir.path(), None).unwrap()), shown(&first));
    }

    #[test]
    fn what_one_connection_to_a_hub_changed_another_one_takes_up() {
        let dir = tempfile::tempdir().unwrap();
        let (one, mut other) = (enrolled(dir.path()), load(dir.path(), None).unwrap());
        let (offering, sha256) = one.offering(&current(&one)).unwrap();
        offering.save().unwrap();
        assert!(!other.take_up(), "what was offered may not be known to the hub");
        let (showing, secret) = offering.showing(&sha256).unwrap();
        showing.save().unwrap();
        assert!(other.take_up() && !other.take_up());
        assert_eq!(shown(&other), secret);
    }

    #[test]
    fn a_new_token_takes_the_place_of_all_credentials() {
        let dir = tempfile::tempdir().unwrap();
        let identity = enrolled(dir.path());
        let (offering, _) = identity.offering(&current(&identity)).unwrap();
        offering.save().unwrap();
        let mut renewed = load(dir.path(), Some(&token("two"))).unwrap();
        assert!(matches!(renewed.proof(), Proof::Token { .. }) && !renewed.refused());
        assert!(!fs::read_to_string(dir.path().join("state/identity.json")).unwrap().contains("next_secret"));
    }

    #[test]
    fn a_file_of_an_earlier_release_is_read_and_nothing_secret_is_printed() {
        let dir = tempfile::tempdir().unwrap();
        let identity = enrolled(dir.path());
        let text = fs::read_to_string(dir.path().join("state/identity.json")).unwrap();
        assert!(!text.contains("next_secret") && !text.contains("former_secret"), "as it was written then");
        assert!(!format!("{identity:?}").contains(&shown(&identity)));
    }
}
