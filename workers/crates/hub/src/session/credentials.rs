//! The change of a site's credential during its session: requests and notices to the agent.
use downburst_model::Now;
use downburst_session::{CredentialKept, CredentialOffered, CredentialShown, CredentialWanted, HubInput};

use crate::text::is_sha256;

use super::Session;
use super::api::{CredentialAnswer, IdentityOutput, SessionOutput};

impl Session {
    pub(super) fn want_credential(&mut self, now: Now) {
        if self.identity.site.is_none() {
            return;
        }
        self.identity.wants_credential = true;
        let of = self.identity.credential_sha256.clone();
        self.tell(now, HubInput::WantCredential(CredentialWanted { of }));
    }

    /// Accepts one offer per request, because each makes the agent write to the ledger.
    pub(super) fn credential_offered(&mut self, offered: CredentialOffered) {
        let wanted = std::mem::take(&mut self.identity.wants_credential);
        if wanted && self.identity.site.is_some() && is_sha256(&offered.sha256) {
            let offered_sha256 = offered.sha256;
            self.identity.asked = Some(offered_sha256.clone());
            self.ask(SessionOutput::Identity(IdentityOutput::Offer { offered_sha256 }));
        }
    }

    /// After a negative answer the site keeps its credential: it is asked again, and the operator is warned in
    /// time.
    pub(super) fn credential_answered(&mut self, now: Now, asked: String, answer: Option<CredentialAnswer>) {
        match answer {
            Some(CredentialAnswer { ok: true, ends, .. }) => {
                self.tell(now, HubInput::KeepCredential(CredentialKept { sha256: asked, ends }));
            }
            Some(CredentialAnswer { sentence, .. }) => {
                let sentence = sentence.unwrap_or_default();
                self.ask(SessionOutput::Identity(IdentityOutput::NotKept(Some(sentence))));
            }
            None => self.ask(SessionOutput::Identity(IdentityOutput::NotKept(None))),
        }
    }

    /// Moves the session to the new credential, so that the end of the former one does not end it.
    pub(super) fn credential_shown(&mut self, shown: CredentialShown) {
        if self.identity.site.is_some() {
            self.ask(SessionOutput::Identity(IdentityOutput::Take { secret: shown.secret }));
        }
    }

    /// Notifies the agent, which lets the former credential end. An agent that missed the notice gets it again.
    pub(super) fn tell_credential(&mut self) {
        if self.identity.site.is_some() {
            let credential_sha256 = self.identity.credential_sha256.clone();
            self.ask(SessionOutput::Identity(IdentityOutput::Tell { credential_sha256 }));
        }
    }
}
