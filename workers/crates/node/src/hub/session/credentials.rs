//! The site's credential, changed while its session goes on: what the agent is asked and told of it.
use downburst_session::{CredentialKept, CredentialOffered, CredentialShown, CredentialWanted, HubInput};

use super::Session;
use super::admission::Asked;
use crate::hub::lock;
use crate::lines::{EnrolAnswer, Event};
use crate::tls::sha256_hex;
use downburst_hub::is_sha256;

impl Session {
    pub(super) fn want_credential(&mut self) {
        let Some(member) = &self.member else { return };
        let of = member.handle.credential_sha256.clone();
        self.wants_credential = true;
        self.tell(HubInput::WantCredential(CredentialWanted { of }));
    }

    /// One offer each time it is asked: each has the agent write the ledger.
    pub(super) fn credential_offered(&mut self, offered: CredentialOffered) {
        let wanted = std::mem::take(&mut self.wants_credential);
        let Some(member) = self.member.as_ref().filter(|_| wanted) else { return };
        let offered_sha256 = offered.sha256;
        if !is_sha256(&offered_sha256) {
            return;
        }
        let ask = self.hub.next_ask();
        let Ok(answer) = self.hub.roster.ask(ask) else { return };
        let (site, credential_sha256) = (member.site.clone(), member.handle.credential_sha256.clone());
        self.asked = Some(Asked { credential_sha256: offered_sha256.clone(), answer });
        let peer = self.peer.to_string();
        self.hub.event(&Event::CredentialOffered { ask, site, credential_sha256, offered_sha256, peer });
    }

    /// The site goes on as it is where the answer is no: it is asked again, and the operator is warned in time.
    pub(super) fn credential_answered(&mut self, asked: Asked, answer: Option<EnrolAnswer>) {
        let Some(member) = &self.member else { return };
        match answer {
            Some(EnrolAnswer { ok: true, ends_us, .. }) => {
                let kept = CredentialKept { sha256: asked.credential_sha256, ends: ends_us };
                self.tell(HubInput::KeepCredential(kept));
            }
            Some(EnrolAnswer { sentence, .. }) => {
                let sentence = sentence.unwrap_or_default();
                tracing::warn!(site = %member.site, sentence, "another credential of a site was not kept");
            }
            None => {
                tracing::warn!(site = %member.site, "the report of a site's new credential got no answer")
            }
        }
    }

    /// From here on the session is the new credential's, so that the end of the former one does not end it.
    pub(super) fn credential_shown(&mut self, shown: &CredentialShown) {
        let Some(member) = &mut self.member else { return };
        let (sha256, hub) = (sha256_hex(shown.secret.as_bytes()), &self.hub);
        let taken = hub.roster.take_credential(&member.site, member.handle.serial, &sha256, hub.clock.wall());
        let Some(former) = taken else { return };
        member.handle.credential_sha256.clone_from(&sha256);
        lock(&hub.plans).credential_taken(&member.site, &former, &sha256);
        tracing::info!(site = %member.site, "a site shows its next credential");
        self.tell_credential();
    }

    /// The agent lets the former one end. One that is not listening is told again.
    pub(super) fn tell_credential(&self) {
        if let Some(member) = &self.member {
            let (site, credential_sha256) = (member.site.clone(), member.handle.credential_sha256.clone());
            self.hub.event(&Event::CredentialTaken { site, credential_sha256 });
        }
    }
}
