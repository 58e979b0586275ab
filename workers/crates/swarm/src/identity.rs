//! Identities of the sites: lines of a file.
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use downburst_model::SiteName;
use downburst_site::Credentials;

/// A site's identity at its hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// SHA-256 of the hub's authority, in hex.
    pub(crate) ca_sha256: String,
    /// The credential's secret.
    secret: String,
    /// The token's secret, until the hub has accepted it.
    token_secret: Option<String>,
    site: Option<SiteName>,
}

/// The file in which admitted sites are recorded.
#[derive(Debug)]
pub(crate) struct Enrolled(Option<Mutex<File>>);

impl Identity {
    /// Reads the first `limit` lines of a file.
    pub(crate) fn load(path: &Path, limit: Option<usize>) -> Result<Vec<Self>, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("{} can't be read: {error}; check the path", path.display()))?;
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let identities: Result<Vec<Self>, String> = lines
            .take(limit.unwrap_or(usize::MAX))
            .map(|(number, line)| {
                Self::parse(line).ok_or_else(|| {
                    format!(
                        "{}, line {}: neither a token (dbt1.FINGERPRINT.SECRET) nor a line of --enrolled-file",
                        path.display(),
                        number + 1
                    )
                })
            })
            .collect();
        let identities = identities?;
        match limit.filter(|limit| *limit > identities.len()) {
            Some(limit) => Err(format!(
                "{} has {} lines, {limit} sites were asked for; make more tokens",
                path.display(),
                identities.len()
            )),
            None => Ok(identities),
        }
    }

    /// The credentials for the site's machine.
    pub(crate) fn credentials(&self) -> Credentials {
        let (ca_sha256, secret) = (self.ca_sha256.clone(), self.secret.clone());
        match (&self.site, &self.token_secret) {
            (Some(site), None) => Credentials::enrolled(site.clone(), ca_sha256, secret),
            (_, token) => Credentials::with_token(ca_sha256, token.clone().unwrap_or_default(), secret),
        }
    }

    /// The site's name and secret, once it was admitted.
    pub(crate) fn enrolled(&self) -> Option<(SiteName, String)> {
        self.site.clone().map(|site| (site, self.secret.clone()))
    }

    /// Records that the hub admitted the site; returns true the first time.
    pub(crate) fn accepted(&mut self, site: SiteName) -> bool {
        self.site = Some(site);
        self.token_secret.take().is_some()
    }

    fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [token] => {
                let mut parts = token.strip_prefix("dbt1.")?.split('.');
                let (ca_sha256, token_secret) = (parts.next()?.to_owned(), parts.next()?.to_owned());
                let secret = format!("{:016x}{:016x}", getrandom::u64().ok()?, getrandom::u64().ok()?);
                Some(Self { ca_sha256, secret, token_secret: Some(token_secret), site: None })
            }
            [site, ca_sha256, secret] => Some(Self {
                ca_sha256: (*ca_sha256).to_owned(),
                secret: (*secret).to_owned(),
                token_secret: None,
                site: Some(SiteName::parse(site).ok()?),
            }),
            _ => None,
        }
    }
}

impl Enrolled {
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, String> {
        use std::os::unix::fs::OpenOptionsExt as _;
        let Some(path) = path else { return Ok(Self(None)) };
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
        file.map(|file| Self(Some(Mutex::new(file))))
            .map_err(|error| format!("{} can't be written: {error}; choose another file", path.display()))
    }

    /// Writes a line that [`Identity::load`] accepts.
    pub(crate) fn note(&self, identity: &Identity) {
        if let (Some(file), Some(site)) = (&self.0, &identity.site) {
            let line = format!("{site} {} {}\n", identity.ca_sha256, identity.secret);
            let _ = file.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use downburst_session::Proof;

    use super::*;

    #[test]
    fn a_token_becomes_a_credential_that_the_next_run_can_read() {
        let dir = tempfile::tempdir().unwrap();
        let (tokens, enrolled) = (dir.path().join("tokens"), dir.path().join("enrolled"));
        std::fs::write(&tokens, format!("dbt1.{}.one\n\ndbt1.{}.two\n", "ab".repeat(32), "ab".repeat(32)))
            .unwrap();
        let mut first = Identity::load(&tokens, None).unwrap();
        assert_eq!(first.len(), 2);
        assert!(matches!(first[0].credentials().proof(), Proof::Token { .. }));
        let note = Enrolled::open(Some(&enrolled)).unwrap();
        for (identity, name) in first.iter_mut().zip(["a", "b"]) {
            assert!(identity.accepted(SiteName::parse(name).unwrap()), "the first time");
            assert!(!identity.accepted(SiteName::parse(name).unwrap()));
            note.note(identity);
        }
        assert_eq!(Identity::load(&enrolled, None).unwrap(), first);
        assert!(matches!(first[1].credentials().proof(), Proof::Credential { .. }));
    }

    #[test]
    fn a_file_that_can_not_serve_is_refused_with_its_line() {
        let dir = tempfile::tempdir().unwrap();
        let tokens = dir.path().join("tokens");
        std::fs::write(&tokens, "dbt1.aa.one\nnonsense of many words\n").unwrap();
        assert!(Identity::load(&tokens, None).unwrap_err().contains("line 2"));
        assert_eq!(Identity::load(&tokens, Some(1)).unwrap().len(), 1);
        std::fs::write(&tokens, "dbt1.aa.one\n").unwrap();
        assert!(Identity::load(&tokens, Some(2)).unwrap_err().contains("make more tokens"));
    }
}
