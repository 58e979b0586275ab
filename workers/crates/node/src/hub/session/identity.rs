//! The site's identity: the verdict of the agent and the roster on its proof and on a replacement credential.
use downburst_hub::{CredentialAnswer, IdentityOutput, SessionInput};
use downburst_model::SiteName;
use downburst_tracer::Role;

use super::Task;
use crate::hub::lock;
use crate::lines::{EnrolAnswer, Event};
use crate::tls::sha256_hex;

/// The agent's answer, converted for the machine.
pub(super) fn said(answer: EnrolAnswer) -> CredentialAnswer {
    let EnrolAnswer { ok, site, sentence, ends_us: ends, .. } = answer;
    CredentialAnswer { ok, site, sentence, ends }
}

impl Task {
    pub(super) fn identify(&mut self, output: IdentityOutput) {
        match output {
            IdentityOutput::Check { site, secret } => {
                let credential_sha256 = sha256_hex(secret.as_bytes());
                match self.hub.roster.check(&site, &credential_sha256, self.hub.clock.wall()) {
                    Ok(line) => {
                        self.tell(SessionInput::Known { line: Box::new(line), credential_sha256 });
                    }
                    Err(refused) => self.tell(SessionInput::Refuse(refused)),
                }
            }
            IdentityOutput::Enrol { secret, credential_sha256 } => self.enrol(&secret, credential_sha256),
            IdentityOutput::Register { site, credential_sha256, stand_by } => {
                self.register(&site, &credential_sha256, stand_by);
            }
            IdentityOutput::Offer { offered_sha256 } => self.offer(offered_sha256),
            IdentityOutput::Take { secret } => self.take_credential(&secret),
            IdentityOutput::Tell { credential_sha256 } => {
                if let Some(site) = self.session.site().cloned() {
                    self.hub.event(&Event::CredentialTaken { site, credential_sha256 });
                }
            }
            IdentityOutput::NotKept(sentence) => self.not_kept(sentence),
        }
    }

    fn enrol(&mut self, secret: &str, credential_sha256: String) {
        let (ask, answer) = match self.hub.roster.ask() {
            Ok(asked) => asked,
            Err(refused) => return self.tell(SessionInput::Refuse(refused)),
        };
        self.answer = Some(answer);
        let (secret_sha256, peer) = (sha256_hex(secret.as_bytes()), self.peer.to_string());
        self.hub.event(&Event::Enrol { ask, secret_sha256, credential_sha256, peer });
    }

    fn register(&mut self, site: &SiteName, credential_sha256: &str, stand_by: bool) {
        let (now, peer) = (self.hub.clock.monotonic(), self.peer.ip().to_canonical());
        match self.hub.roster.register(site, credential_sha256, stand_by, (REPAIR_QUEUE, peer), now) {
            Ok(member) => {
                self.member = Some(member);
                if let Some(ends) = self.socket.connection().ends() {
                    self.hub.figures.tracer.serves(ends, site, Role::Session);
                }
                self.pending = None;
                self.look_at_profile();
                self.tell(SessionInput::Registered);
            }
            Err(refused) => self.tell(SessionInput::Refuse(refused)),
        }
    }

    fn offer(&mut self, offered_sha256: String) {
        let (Some(site), Some(member)) = (self.session.site().cloned(), &self.member) else { return };
        let Ok((ask, answer)) = self.hub.roster.ask() else { return };
        self.answer = Some(answer);
        let (credential_sha256, peer) = (member.handle.credential_sha256.clone(), self.peer.to_string());
        self.hub.event(&Event::CredentialOffered { ask, site, credential_sha256, offered_sha256, peer });
    }

    fn take_credential(&mut self, secret: &str) {
        let (Some(site), Some(member)) = (self.session.site(), &mut self.member) else { return };
        let (sha256, hub) = (sha256_hex(secret.as_bytes()), &self.hub);
        let taken = hub.roster.take_credential(site, member.handle.serial, &sha256, hub.clock.wall());
        let Some(former) = taken else { return };
        member.handle.credential_sha256.clone_from(&sha256);
        lock(&hub.legs.plans).all().for_each(|leg| leg.credential_taken(site, &former, &sha256));
        tracing::info!(%site, "a site shows its next credential");
        self.tell(SessionInput::CredentialTaken(sha256));
    }

    fn not_kept(&self, sentence: Option<String>) {
        let Some(site) = self.session.site() else { return };
        match sentence {
            Some(sentence) => {
                tracing::warn!(%site, sentence, "another credential of a site was not kept");
            }
            None => tracing::warn!(%site, "the report of a site's new credential got no answer"),
        }
    }
}

const REPAIR_QUEUE: usize = 1_024;
