//! Admission of a site: its proof of identity, the agent's answer to a token, and the site's configuration after
//! admission.
use downburst_model::{Now, SiteName, WallMicros};
use downburst_session::{HubInput, Proof, RefusalCode, Refused};

use crate::pace::pace_bps;
use crate::site_config::{handling, nodes, sibling_terms, subscriptions, ways};
use crate::sites::SiteLine;
use crate::text::is_sha256;

use super::api::{CredentialAnswer, HubFacts, IdentityOutput, SessionInput, SessionOutput};
use super::{Session, StatusChange};

/// The site and its credential, as far as they are known.
#[derive(Default)]
pub(super) struct Identity {
    /// The site, after admission.
    pub(super) site: Option<SiteName>,
    /// The session's credential, as SHA-256 in hex.
    pub(super) credential_sha256: String,
    /// The site currently receives its feeds from another hub.
    pub(super) stand_by: bool,
    /// The credential that the agent is checking, as a replacement for a token or for another credential.
    pub(super) asked: Option<String>,
    /// The hub requested another credential, and the site may offer one.
    pub(super) wants_credential: bool,
    /// The configuration of a site with a valid credential that is not registered as a session yet.
    known: Option<Box<SiteLine>>,
    /// True until its feeds are watched.
    arrives: bool,
}

impl Session {
    pub(super) fn identify(&mut self, now: Now, input: SessionInput, hub: &dyn HubFacts) {
        match input {
            SessionInput::Known { line, credential_sha256 } => self.register(now, line, credential_sha256),
            SessionInput::Answered(answer) => self.answered(now, answer, hub),
            SessionInput::Registered => self.admit(now),
            SessionInput::WantCredential => self.want_credential(now),
            SessionInput::TellCredential => self.tell_credential(),
            SessionInput::CredentialTaken(credential_sha256) => {
                self.identity.credential_sha256 = credential_sha256;
                self.tell_credential();
            }
            _ => {}
        }
    }

    pub(super) fn authenticate(&mut self, now: Now, proof: Proof) {
        self.identity.stand_by = self.hub.stands_by();
        match proof {
            Proof::Token { credential_sha256, .. } if !is_sha256(&credential_sha256) => {
                let sentence =
                    "the site's credential is not named by a SHA-256; install a node of this release"
                        .to_owned();
                self.refuse(now, Refused { code: RefusalCode::Protocol, sentence });
            }
            Proof::Token { secret, credential_sha256 } => {
                self.identity.asked = Some(credential_sha256.clone());
                self.ask(SessionOutput::Identity(IdentityOutput::Enrol { secret, credential_sha256 }));
            }
            Proof::Credential { site, secret } => {
                self.ask(SessionOutput::Identity(IdentityOutput::Check { site, secret }));
            }
        }
    }

    fn answered(&mut self, now: Now, answer: Option<CredentialAnswer>, hub: &dyn HubFacts) {
        match self.identity.asked.take() {
            Some(asked) if self.identity.site.is_none() => self.enrolled(now, asked, answer, hub),
            Some(asked) => self.credential_answered(now, asked, answer),
            None => {}
        }
    }

    fn enrolled(&mut self, now: Now, asked: String, answer: Option<CredentialAnswer>, hub: &dyn HubFacts) {
        let refused = |code, sentence: &str| Refused { code, sentence: sentence.to_owned() };
        let Some(answer) = answer else {
            let sentence = "the hub could not check the token; try again in a moment";
            return self.refuse(now, refused(RefusalCode::Unavailable, sentence));
        };
        let line = answer.site.filter(|_| answer.ok).and_then(|site| hub.line(&site));
        match line {
            Some(line) => self.register(now, Box::new(line), asked),
            None => {
                let sentence = answer.sentence.unwrap_or_else(|| {
                    "the token is not valid; ask the hub's operator for a new one".to_owned()
                });
                self.refuse(now, Refused { code: RefusalCode::Token, sentence });
            }
        }
    }

    fn register(&mut self, now: Now, line: Box<SiteLine>, credential_sha256: String) {
        if self.settings.sender.is_some() && !self.hub.takes_several_nodes() {
            let sentence = ONE_NODE.to_owned();
            return self.refuse(now, Refused { code: RefusalCode::Unavailable, sentence });
        }
        let (site, stand_by) = (line.site.clone(), self.identity.stand_by);
        self.identity.known = Some(line);
        self.identity.credential_sha256.clone_from(&credential_sha256);
        self.ask(SessionOutput::Identity(IdentityOutput::Register { site, credential_sha256, stand_by }));
    }

    fn admit(&mut self, now: Now) {
        let Some(line) = self.identity.known.take() else { return };
        let site = line.site.clone();
        let part = self.part_of((*line).clone());
        let items = subscriptions(&part);
        self.subscribed = items.iter().map(|item| item.feed.clone()).collect();
        self.tell(now, HubInput::Pace(pace_bps(&line, now.wall)));
        self.tell(now, HubInput::Handling(handling(&part)));
        self.tell(now, HubInput::Ways(ways(&line)));
        if !self.identity.stand_by {
            self.tell(now, HubInput::SiblingTerms(sibling_terms(&line)));
        }
        self.tell(now, HubInput::Admit { site: site.clone(), subscriptions: items });
        self.tell(now, HubInput::Nodes(nodes(&line)));
        self.identity.site = Some(site);
        self.identity.arrives = true;
        self.watch();
    }

    /// Completes the arrival of an admitted site whose feeds are watched: reports its positions to the rest of the
    /// hub.
    pub(super) fn arrive(&mut self, now: Now, hub: &dyn HubFacts) {
        if !std::mem::take(&mut self.identity.arrives) {
            return;
        }
        self.change(StatusChange::Began);
        self.report_settled();
        if !self.identity.stand_by {
            self.ask(SessionOutput::Arrived);
        }
        self.answer_for_heartbeats(now.wall);
        self.find_resends(hub);
    }

    /// Applies a new rate limit after a change of the site's access settings or of the hour.
    pub(super) fn pace(&mut self, now: Now, hub: &dyn HubFacts) {
        if let Some(line) = self.line(hub) {
            self.tell(now, HubInput::Pace(pace_bps(&line, now.wall)));
        }
    }

    /// Applies another choice of relays for the site.
    pub(super) fn ways_changed(&mut self, now: Now, hub: &dyn HubFacts) {
        if let Some(line) = self.line(hub) {
            self.tell(now, HubInput::Ways(ways(&line)));
        }
    }

    /// Applies new subscriptions of the site, or a new assignment to the hub's nodes.
    pub(super) fn subscriptions_changed(&mut self, now: Now, hub: &dyn HubFacts) {
        let Some(line) = self.line(hub) else { return };
        let told = nodes(&line);
        let line = self.part_of(line);
        let items = subscriptions(&line);
        self.subscribed = items.iter().map(|item| item.feed.clone()).collect();
        self.tell(now, HubInput::Nodes(told));
        self.tell(now, HubInput::Handling(handling(&line)));
        self.tell(now, HubInput::Subscriptions(items));
        self.watch();
        self.answer_for_heartbeats(now.wall);
    }

    /// The site's configuration.
    pub(super) fn line(&self, hub: &dyn HubFacts) -> Option<SiteLine> {
        hub.line(self.identity.site.as_ref()?)
    }

    /// This node's part of a site's configuration; all of it if the site is a hub, which receives its feeds from
    /// one node.
    pub(super) fn part_of(&self, line: SiteLine) -> SiteLine {
        let own_address = self.settings.sender.as_deref().unwrap_or_default();
        if self.hub.takes_several_nodes() { line.served_at(own_address) } else { line }
    }

    /// From now on the site has to report the heartbeats of the feeds that it receives, if it supports them.
    fn answer_for_heartbeats(&mut self, now: WallMicros) {
        if self.identity.site.is_some() && self.hub.reports_heartbeats() && !self.identity.stand_by {
            // A copy of the log that catches up contains old heartbeats; the node that writes them knows each one
            // from its creation.
            let copies = self.settings.sender.is_some();
            let since = if copies { now } else { WallMicros(i64::MIN) };
            self.change(StatusChange::AnswersFor { feeds: self.subscribed.clone(), since });
        }
    }
}

const ONE_NODE: &str = "this is one of several nodes that send for a hub, and a hub takes another hub's feeds from one \
    node; give it the address of the hub's own node (downburst upstreams add)";
