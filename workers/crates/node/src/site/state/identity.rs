//! The identity of a site to its hub, in one file of the state directory: `identity.json`.
use std::fs;
use std::path::{Path, PathBuf};

use downburst_site::{Credentials, CredentialsRecord, Entropy, Token};

use super::HubPlace;
use crate::disk;
use crate::tls::write_private;

/// The site's credentials, and their file.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) credentials: Credentials,
    path: PathBuf,
}

impl Identity {
    /// Reads the identity from the state directory, or creates one with the enrolment token.
    pub(crate) fn load(place: &HubPlace, token_file: Option<&Path>) -> Result<Self, String> {
        let token = || token_file.filter(|file| file.exists()).map(read_token).transpose();
        let mut identity = Self::load_or_begin(&place.state, token, token_file)?;
        if identity.credentials.hub_is_at(&place.address) {
            identity.save()?;
        }
        Ok(identity)
    }

    /// The identity of a hub at another hub, from the text of the token.
    pub(crate) fn load_with_token(place: &HubPlace, token: &str) -> Result<Self, String> {
        Self::load_or_begin(&place.state, || Token::parse(token).map(Some), None)
    }

    /// The existing identity of the site at a hub, for another node of that hub than the configured one.
    pub(crate) fn known(place: &HubPlace) -> Result<Self, String> {
        Self::load_or_begin(&place.state, || Ok(None), None)
    }

    /// Reads the stored credentials; `None` if they can't be read.
    pub(crate) fn read(&self) -> Option<Credentials> {
        let state = self.path.parent().unwrap_or_else(|| Path::new("."));
        Self::load_or_begin(state, || Ok(None), None).ok().map(|kept| kept.credentials)
    }

    fn load_or_begin(
        state: &Path,
        token: impl FnOnce() -> Result<Option<Token>, String>,
        token_file: Option<&Path>,
    ) -> Result<Self, String> {
        let path = state.join("identity.json");
        match fs::read_to_string(&path) {
            Ok(text) => {
                let kept: CredentialsRecord = disk::unsealed(&text).map_err(|reason| {
                    format!(
                        "{} is damaged ({reason}); remove it and enrol the site again with a new token",
                        path.display()
                    )
                })?;
                Self { credentials: kept.into(), path }.with_token(token()?)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let token = match (token()?, token_file) {
                    (Some(token), _) => token,
                    (None, Some(file)) => read_token(file)?,
                    (None, None) => return Err(NOT_ENROLLED.to_owned()),
                };
                let identity = Self { credentials: Credentials::enrolling(&token, &entropy()?), path };
                // Written before it is presented: after a lost answer, the request repeats the same credential.
                identity.save()?;
                Ok(identity)
            }
            Err(error) => Err(format!("{} can't be read: {error}; correct its permissions", path.display())),
        }
    }

    /// Writes it atomically. Takes as long as the disk does.
    pub(crate) fn save(&self) -> Result<(), String> {
        let sentence = |error: &dyn std::fmt::Display| {
            format!("{} can't be written: {error}; free space or correct permissions", self.path.display())
        };
        let text =
            disk::sealed(&CredentialsRecord::from(&self.credentials)).map_err(|error| sentence(&error))?;
        write_private(&self.path, &text).map_err(|error| sentence(&error))
    }

    /// Enrols again if the token differs from the one in use.
    fn with_token(mut self, token: Option<Token>) -> Result<Self, String> {
        let Some(token) = token else { return Ok(self) };
        // Releases without a checksum had the hash in a file of its own.
        let former = || fs::read_to_string(self.path.with_file_name("token.sha256")).ok();
        if self.credentials.are_of(&token, former) {
            return Ok(self);
        }
        self.credentials = self.credentials.enrolling_anew(&token, &entropy()?);
        self.save()?;
        Ok(self)
    }
}

/// Random bytes for a credential.
pub(in crate::site) fn entropy() -> Result<Entropy, String> {
    let mut entropy = Entropy::default();
    getrandom::fill(&mut entropy).map_err(|error| format!("the system gives no random numbers: {error}"))?;
    Ok(entropy)
}

fn read_token(file: &Path) -> Result<Token, String> {
    let text = fs::read_to_string(file).map_err(|error| {
        format!("the token file {} can't be read: {error}; check the path", file.display())
    })?;
    Token::parse(&text).map_err(|sentence| format!("{}: {sentence}", file.display()))
}

const NOT_ENROLLED: &str = "the site is not enrolled yet; give --token-file with a token from the hub's operator \
    (downburst sites token SITE)";

#[cfg(test)]
mod tests {
    use downburst_model::SiteName;
    use downburst_session::Proof;

    use super::*;
    use crate::tls::sha256_hex;

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
        accept(&mut identity);
        identity
    }

    fn shown(identity: &Identity) -> String {
        match identity.credentials.proof() {
            Proof::Credential { secret, .. } => secret,
            Proof::Token { .. } => panic!("a token is shown"),
        }
    }

    fn accept(identity: &mut Identity) {
        assert!(identity.credentials.accepted(&SiteName::parse("unl").unwrap()));
        identity.save().unwrap();
    }

    /// The identity as stored before a replacement credential is offered, and the SHA-256 of the replacement.
    fn offering(identity: &Identity) -> (Identity, String) {
        let of = sha256_hex(identity.credentials.current().as_bytes());
        let (credentials, sha256) = identity.credentials.offering(&of, &entropy().unwrap());
        (Identity { credentials, ..identity.clone() }, sha256)
    }

    #[test]
    fn the_credential_is_made_once_and_survives_until_a_new_token_comes() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = load(dir.path(), Some(&token("one"))).unwrap();
        let again = load(dir.path(), Some(&token("one"))).unwrap();
        assert_eq!(
            first.credentials.current(),
            again.credentials.current(),
            "a lost answer is asked for with the same credential"
        );
        accept(&mut first);
        let enrolled = load(dir.path(), Some(&token("one"))).unwrap();
        assert!(matches!(enrolled.credentials.proof(), Proof::Credential { .. }));
        let renewed = load(dir.path(), Some(&token("two"))).unwrap();
        assert!(matches!(renewed.credentials.proof(), Proof::Token { .. }));
        assert_ne!(renewed.credentials.current(), first.credentials.current());
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
        let first_shown = shown(&first);
        let (offered, sha256) = offering(&first);
        offered.save().unwrap();
        let mut crashed = load(dir.path(), None).unwrap();
        assert_eq!(shown(&crashed), shown(&first), "the hub may not know the other one");
        assert!(crashed.credentials.refused(), "or it may, and the first one's time may be over");
        assert_eq!(sha256_hex(shown(&crashed).as_bytes()), sha256);
        assert_eq!(offering(&crashed).1, sha256, "what was offered is offered again");
        let (credentials, secret) = offered.credentials.showing(&sha256).unwrap();
        assert!(offered.credentials.showing(&"00".repeat(32)).is_none());
        Identity { credentials, ..first }.save().unwrap();
        let mut later = load(dir.path(), None).unwrap();
        assert_eq!(shown(&later), secret);
        assert!(later.credentials.refused(), "a hub that was restored knows the first one alone");
        assert_eq!(shown(&later), first_shown);
        accept(&mut later);
        assert_eq!(shown(&load(dir.path(), None).unwrap()), first_shown);
    }

    #[test]
    fn a_new_token_takes_the_place_of_all_credentials() {
        let dir = tempfile::tempdir().unwrap();
        let identity = enrolled(dir.path());
        let (offered, _) = offering(&identity);
        offered.save().unwrap();
        let mut renewed = load(dir.path(), Some(&token("two"))).unwrap();
        assert!(matches!(renewed.credentials.proof(), Proof::Token { .. }) && !renewed.credentials.refused());
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
