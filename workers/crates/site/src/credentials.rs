//! The identity of a site at its hub, and the change of its credential during a session. Each step is on the disk
//! before the hub receives it; products do not wait for the disk, which may be slow.
#[cfg(test)]
mod tests;

use downburst_model::{SiteName, WallMicros};
use downburst_session::{CredentialKept, CredentialOffered, CredentialShown, Proof, Secrets, SiteInput};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

/// The credentials of a site.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// SHA-256 of the hub's authority, in hex.
    ca_sha256: String,
    /// The secrets, generated here; the hub knows their hashes.
    secrets: Secrets,
    /// The site's name, once received from the hub.
    site: Option<SiteName>,
    /// The enrolment token's secret, until the hub has accepted it.
    token_secret: Option<String>,
    /// The last address at which the hub was reached.
    hub: Option<String>,
    /// SHA-256 of the last enrolment token.
    token_sha256: Option<String>,
}

/// The stored form of credentials. Nodes of earlier releases ignore fields that they do not know.
#[derive(Serialize, Deserialize)]
pub struct CredentialsRecord {
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

/// An enrolment token: an invitation to one hub.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    ca_sha256: String,
    secret: String,
}

/// 32 unpredictable bytes, for a credential.
pub type Entropy = [u8; 32];

/// An operation that the exchange requires.
#[derive(Debug, PartialEq, Eq)]
pub enum CredentialsOrder {
    /// Store these atomically; answered by [`CredentialsAnswer::Kept`].
    Keep(Credentials),
    /// Read the stored credentials: another connection to the same hub may have changed them; answered by
    /// [`CredentialsAnswer::Read`].
    Read,
    /// Read the stored credentials, as the only connection to this hub that may change them from now on; answered by
    /// [`CredentialsAnswer::Turn`], unless another connection has the turn.
    TakeTurn,
    /// Other connections may change them again.
    EndTurn,
}

/// The result of an operation.
#[derive(Debug)]
pub enum CredentialsAnswer {
    /// They are stored, or the reason why not: a sentence.
    Kept(Result<(), String>),
    /// The stored credentials; `None` if they can't be read.
    Read(Option<Credentials>),
    /// This connection has the turn.
    Turn {
        /// The stored credentials; `None` if they can't be read.
        kept: Option<Credentials>,
        /// For a new credential.
        entropy: Entropy,
    },
}

/// The next step after an answer.
#[derive(Debug)]
pub(crate) enum Next {
    Nothing,
    Order(CredentialsOrder),
    /// Pass this to the session.
    Tell(SiteInput),
    /// Reconnect and show the present credential.
    HangUp,
    /// The hub accepted the site, and that can't be stored.
    Unkept(String),
    /// No other credential is left that the hub might accept.
    Refused,
}

/// One connection's exchange of credentials, one step at a time.
#[derive(Debug)]
pub(crate) struct CredentialsExchange {
    held: Credentials,
    keeping: Option<Keeping>,
    /// SHA-256 of the credential that the hub wants replaced, while the connection waits for its turn.
    wanted: Option<String>,
    /// True if the hub refused the credential shown, and the stored ones have not been read yet.
    refused: bool,
}

/// The pending storage, with its reason.
#[derive(Debug)]
enum Keeping {
    /// The hub accepted the site.
    Accepted,
    /// Take these into use once they are stored, and pass this input to the session.
    Word(Box<(Credentials, SiteInput)>),
}

impl Token {
    /// Parses a token from the operator.
    ///
    /// # Errors
    ///
    /// Advice if the text is not a token.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = text.trim().split('.');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some("dbt1"), Some(ca), Some(secret), None)
                if ca.len() == 64 && ca.bytes().all(|byte| byte.is_ascii_hexdigit()) && !secret.is_empty() =>
            {
                Ok(Self { ca_sha256: ca.to_ascii_lowercase(), secret: secret.to_owned() })
            }
            _ => Err(
                "this is not an enrolment token (dbt1.FINGERPRINT.SECRET); copy the whole token from the operator"
                    .to_owned(),
            ),
        }
    }

    /// SHA-256 of its secret, which distinguishes tokens.
    pub fn sha256(&self) -> String {
        sha256_hex(self.secret.as_bytes())
    }
}

impl Credentials {
    /// The credentials of a site before its enrolment.
    pub fn enrolling(token: &Token, entropy: &Entropy) -> Self {
        Self::with_token(token.ca_sha256.clone(), token.secret.clone(), hex(entropy))
    }

    /// The credentials of a site before its enrolment, with a given secret.
    pub fn with_token(ca_sha256: String, token_secret: String, secret: String) -> Self {
        let (secrets, token_sha256) = (Secrets::new(secret, None, None), sha256_hex(token_secret.as_bytes()));
        let (token_secret, token_sha256) = (Some(token_secret), Some(token_sha256));
        Self { ca_sha256, secrets, site: None, token_secret, hub: None, token_sha256 }
    }

    /// True if these credentials were made with this token; `former` supplies the SHA-256 of their token if they do
    /// not contain it. Another token replaces credentials that the hub has not accepted, or no longer accepts.
    pub fn are_of(&self, token: &Token, former: impl FnOnce() -> Option<String>) -> bool {
        self.token_sha256.clone().or_else(former) == Some(token.sha256())
    }

    /// The credentials of this site with another token; its former secrets are dropped.
    #[must_use]
    pub fn enrolling_anew(&self, token: &Token, entropy: &Entropy) -> Self {
        Self { site: self.site.clone(), hub: self.hub.clone(), ..Self::enrolling(token, entropy) }
    }

    /// The credentials of an enrolled site.
    pub fn enrolled(site: SiteName, ca_sha256: String, secret: String) -> Self {
        let secrets = Secrets::new(secret, None, None);
        Self { ca_sha256, secrets, site: Some(site), token_secret: None, hub: None, token_sha256: None }
    }

    /// SHA-256 of the hub's authority, in hex.
    pub fn ca_sha256(&self) -> &str {
        &self.ca_sha256
    }

    /// The site's name, once received from the hub.
    pub fn site(&self) -> Option<&SiteName> {
        self.site.as_ref()
    }

    /// SHA-256 of the last enrolment token.
    pub fn token_sha256(&self) -> Option<&str> {
        self.token_sha256.as_deref()
    }

    /// The secret to show unless it is refused.
    pub fn current(&self) -> &str {
        self.secrets.current()
    }

    /// The secret to show in this attempt.
    pub fn shown(&self) -> &str {
        self.secrets.shown()
    }

    /// True until the hub has accepted the site's token.
    pub fn is_new(&self) -> bool {
        self.token_secret.is_some()
    }

    /// Records the hub's address; true if it has changed.
    pub fn hub_is_at(&mut self, address: &str) -> bool {
        let changed = self.hub.as_deref() != Some(address);
        if changed {
            self.hub = Some(address.to_owned());
        }
        changed
    }

    /// The site's proof of identity for the hub.
    pub fn proof(&self) -> Proof {
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

    /// Records that the hub accepted the site under this name. True if the credentials changed and have to be stored.
    pub fn accepted(&mut self, site: &SiteName) -> bool {
        let changed = self.secrets.let_in();
        if !changed && self.site.as_ref() == Some(site) && self.token_secret.is_none() {
            return false;
        }
        self.site = Some(site.clone());
        self.token_secret = None;
        true
    }

    /// Records that the hub refused the credential shown. True if the site has another one to show.
    pub fn refused(&mut self) -> bool {
        self.token_secret.is_none() && self.secrets.refused()
    }

    /// The credentials to store before the hub is offered a replacement of the one with this SHA-256, and the
    /// SHA-256 of the replacement.
    pub fn offering(&self, of: &str, entropy: &Entropy) -> (Self, String) {
        let mut other = self.clone();
        let is_it = |secret: &str| sha256_hex(secret.as_bytes()) == of;
        let Ok(offered) = other.secrets.offer(is_it, || Ok::<_, std::convert::Infallible>(hex(entropy)));
        let sha256 = sha256_hex(offered.as_bytes());
        (other, sha256)
    }

    /// The credentials to store once the hub has stored the offered one with this SHA-256, and
    /// the secret to show then.
    pub fn showing(&self, sha256: &str) -> Option<(Self, String)> {
        let mut other = self.clone();
        let secret = other.secrets.kept(|secret| sha256_hex(secret.as_bytes()) == sha256)?.to_owned();
        Some((other, secret))
    }

    /// Adopts the credentials stored by another connection to the same hub. True if the current secret changed.
    fn take_up(&mut self, kept: Option<Self>) -> bool {
        let changed = kept.filter(|kept| kept.current() != self.current());
        let has_changed = changed.is_some();
        if let Some(kept) = changed {
            *self = kept;
        }
        has_changed
    }
}

impl From<&Credentials> for CredentialsRecord {
    fn from(held: &Credentials) -> Self {
        Self {
            ca_sha256: held.ca_sha256.clone(),
            secret: held.secrets.current().to_owned(),
            next_secret: held.secrets.next().map(str::to_owned),
            former_secret: held.secrets.former().map(str::to_owned),
            site: held.site.clone(),
            token_secret: held.token_secret.clone(),
            hub: held.hub.clone(),
            token_sha256: held.token_sha256.clone(),
        }
    }
}

impl From<CredentialsRecord> for Credentials {
    fn from(kept: CredentialsRecord) -> Self {
        let CredentialsRecord { ca_sha256, secret, next_secret, former_secret, .. } = kept;
        let CredentialsRecord { site, token_secret, hub, token_sha256, .. } = kept;
        let secrets = Secrets::new(secret, next_secret, former_secret);
        Self { ca_sha256, secrets, site, token_secret, hub, token_sha256 }
    }
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credentials({:?})", self.site)
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Token(of {})", self.ca_sha256)
    }
}

impl CredentialsExchange {
    pub(crate) fn new(held: Credentials) -> Self {
        Self { held, keeping: None, wanted: None, refused: false }
    }

    pub(crate) fn held(&self) -> &Credentials {
        &self.held
    }

    /// True while the next credential to show depends on an answer.
    pub(crate) fn is_busy(&self) -> bool {
        self.keeping.is_some() || self.refused
    }

    /// The hub accepted the site.
    pub(crate) fn accepted(&mut self, site: &SiteName) -> Next {
        if !self.held.accepted(site) {
            return Next::Nothing;
        }
        self.keeping = Some(Keeping::Accepted);
        Next::Order(CredentialsOrder::Keep(self.held.clone()))
    }

    /// The hub refused the credential shown.
    pub(crate) fn refused(&mut self) -> Next {
        self.refused = true;
        Next::Order(CredentialsOrder::Read)
    }

    /// The hub requests a replacement of the credential with this SHA-256. It repeats unanswered requests.
    pub(crate) fn wanted(&mut self, of: String) -> Next {
        if self.is_busy() {
            return Next::Nothing;
        }
        self.wanted = Some(of);
        Next::Order(CredentialsOrder::TakeTurn)
    }

    /// The hub has stored the offered credential.
    pub(crate) fn kept(&mut self, kept: &CredentialKept, wall: WallMicros) -> Next {
        if self.is_busy() {
            return Next::Nothing;
        }
        match self.held.showing(&kept.sha256) {
            Some((held, secret)) => {
                let days = kept.ends.map(|ends| ends.0.saturating_sub(wall.0) / MICROS_A_DAY);
                tracing::info!(days, "the site has another credential");
                self.keep(held, SiteInput::ShowCredential(CredentialShown { secret }))
            }
            None => Next::Nothing,
        }
    }

    /// The connection ended.
    pub(crate) fn end(&mut self) {
        self.wanted = None;
    }

    pub(crate) fn answer(&mut self, answer: CredentialsAnswer) -> Next {
        match answer {
            CredentialsAnswer::Kept(result) => self.is_kept(result),
            CredentialsAnswer::Read(kept) if std::mem::take(&mut self.refused) => self.show_another(kept),
            CredentialsAnswer::Read(_) => Next::Nothing,
            CredentialsAnswer::Turn { kept, entropy } => match self.wanted.take() {
                Some(_) if self.held.take_up(kept) => Next::HangUp,
                Some(of) => {
                    let (held, sha256) = self.held.offering(&of, &entropy);
                    self.keep(held, SiteInput::OfferCredential(CredentialOffered { sha256 }))
                }
                None => Next::Order(CredentialsOrder::EndTurn),
            },
        }
    }

    /// Continues after the storage. A credential that can't be stored is neither offered nor shown: the
    /// site keeps the present one.
    fn is_kept(&mut self, result: Result<(), String>) -> Next {
        match (self.keeping.take(), result) {
            (Some(Keeping::Word(word)), Ok(())) => {
                self.held = word.0;
                Next::Tell(word.1)
            }
            (Some(Keeping::Accepted), Err(sentence)) => Next::Unkept(sentence),
            (_, Err(sentence)) => {
                tracing::error!("{sentence}; the site keeps the credential that it has");
                Next::Nothing
            }
            (_, Ok(())) => Next::Nothing,
        }
    }

    fn show_another(&mut self, kept: Option<Credentials>) -> Next {
        if self.held.take_up(kept) {
            tracing::info!(
                "the credential was replaced at another node of the hub; connecting with the new one"
            );
            Next::HangUp
        } else if self.held.refused() {
            tracing::info!("the site shows another of its credentials");
            Next::HangUp
        } else {
            Next::Refused
        }
    }

    fn keep(&mut self, held: Credentials, word: SiteInput) -> Next {
        let order = CredentialsOrder::Keep(held.clone());
        self.keeping = Some(Keeping::Word(Box::new((held, word))));
        Next::Order(order)
    }
}

fn sha256_hex(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

const MICROS_A_DAY: i64 = 86_400_000_000;
