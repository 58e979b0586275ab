//! Who the site is: its proof, the agent's answer to a token, and its place among the sessions.
use downburst_model::WallMicros;
use downburst_session::{HeartbeatOut, HubInput, HubSession, Proof, RefusalCode, Refused};
use tokio::sync::oneshot;

use super::{Member, REPAIR_QUEUE, Session};
use crate::hub::{Hub, lock};
use crate::lines::{EnrolAnswer, Event, SiteLine};
use crate::tls::sha256_hex;
use downburst_hub::is_sha256;
use downburst_hub::pace_bps;
use downburst_hub::{handling, nodes, subscriptions};

/// What the agent looks at.
pub(super) struct Asked {
    /// The credential that a token, or another credential, is traded for.
    pub(super) credential_sha256: String,
    pub(super) answer: oneshot::Receiver<EnrolAnswer>,
}

/// The hub's half of a session that begins.
pub(super) fn machine(hub: &Hub) -> HubSession {
    let machine = HubSession::new(hub.start.name.clone()).speaking(&hub.start.session_versions);
    if hub.start.heartbeat_seconds > 0.0 { machine.with_heartbeats() } else { machine }
}

impl Session {
    pub(super) fn authenticate(&mut self, proof: Proof) {
        match proof {
            Proof::Token { credential_sha256, .. } if !is_sha256(&credential_sha256) => {
                let sentence =
                    "the site's credential is not named by a SHA-256; install a node of this release"
                        .to_owned();
                self.refuse(Refused { code: RefusalCode::Protocol, sentence });
            }
            Proof::Token { secret, credential_sha256 } => {
                let ask = self.hub.next_ask();
                let answer = match self.hub.roster.ask(ask) {
                    Ok(answer) => answer,
                    Err(refused) => return self.refuse(refused),
                };
                self.asked = Some(Asked { credential_sha256: credential_sha256.clone(), answer });
                let (secret_sha256, peer) = (sha256_hex(secret.as_bytes()), self.peer.to_string());
                self.hub.event(&Event::Enrol { ask, secret_sha256, credential_sha256, peer });
            }
            Proof::Credential { site, secret } => {
                let sha256 = sha256_hex(secret.as_bytes());
                match self.hub.roster.check(&site, &sha256, self.hub.clock.wall()) {
                    Ok(line) => self.admit(&line, &sha256),
                    Err(refused) => self.refuse(refused),
                }
            }
        }
    }

    pub(super) fn answered(&mut self, answer: Option<EnrolAnswer>) {
        match self.asked.take() {
            Some(asked) if self.member.is_none() => self.enrolled(&asked, answer),
            Some(asked) => self.credential_answered(asked, answer),
            None => {}
        }
    }

    fn enrolled(&mut self, asked: &Asked, answer: Option<EnrolAnswer>) {
        let refused = |code, sentence: &str| Refused { code, sentence: sentence.to_owned() };
        let Some(answer) = answer else {
            return self.refuse(refused(
                RefusalCode::Unavailable,
                "the hub could not check the token; try again in a moment",
            ));
        };
        let line = answer.site.filter(|_| answer.ok).and_then(|site| self.hub.roster.site(&site));
        match line {
            Some(line) => self.admit(&line, &asked.credential_sha256),
            None => {
                let sentence = answer.sentence.unwrap_or_else(|| {
                    "the token is not valid; ask the hub's operator for a new one".to_owned()
                });
                self.refuse(Refused { code: RefusalCode::Token, sentence });
            }
        }
    }

    /// What the operator said of the site's access, or the hour, changed.
    pub(super) fn pace(&mut self) {
        let line = self.member.as_ref().and_then(|member| self.hub.roster.site(&member.site));
        if let Some(line) = line {
            self.tell(HubInput::Pace(pace_bps(&line, self.hub.clock.wall())));
        }
    }

    /// From now on the site answers for the heartbeats of what it takes, if it knows them.
    pub(super) fn answer_for_heartbeats(&self) {
        if let Some(member) = &self.member
            && self.machine.reports_heartbeats()
            && !self.stand_by
        {
            // A copy that catches up tells of old ones; who puts them in knows each as it is made.
            let copies = self.hub.start.sender.is_some();
            let since = if copies { self.hub.clock.wall() } else { WallMicros(i64::MIN) };
            lock(&member.handle.status).answers_for(&self.subscribed, since);
        }
    }

    pub(super) fn heartbeat_out(&self, out: &HeartbeatOut) {
        if let Some(member) = &self.member {
            lock(&member.handle.status).heartbeat_out(out);
        }
    }

    /// What the site gets changed, or which node of the hub gives it.
    pub(super) fn subscriptions_changed(&mut self) {
        let line = self.member.as_ref().and_then(|member| self.hub.roster.site(&member.site));
        let Some(line) = line else { return };
        let told = nodes(&line);
        let line = self.part_of(line);
        let items = subscriptions(&line);
        self.subscribed = items.iter().map(|item| item.feed.clone()).collect();
        self.tell_grown();
        self.tell(HubInput::Nodes(told));
        self.tell(HubInput::Handling(handling(&line)));
        self.tell(HubInput::Subscriptions(items));
        self.tell_subscribed();
        self.answer_for_heartbeats();
    }

    /// This node's part of a site's line: all of it for a hub, which takes its feeds from one node.
    pub(super) fn part_of(&self, line: SiteLine) -> SiteLine {
        if self.machine.takes_several_nodes() { line.served_at(self.hub.start.own_address()) } else { line }
    }

    fn admit(&mut self, line: &SiteLine, credential_sha256: &str) {
        if self.hub.start.sender.is_some() && !self.machine.takes_several_nodes() {
            return self.refuse(Refused { code: RefusalCode::Unavailable, sentence: ONE_NODE.to_owned() });
        }
        let now = self.hub.clock.monotonic();
        match self.hub.roster.register(&line.site, credential_sha256, self.stand_by, REPAIR_QUEUE, now) {
            Ok((handle, commands, repairs)) => {
                let site = line.site.clone();
                let part = self.part_of(line.clone());
                let items = subscriptions(&part);
                self.subscribed = items.iter().map(|item| item.feed.clone()).collect();
                self.tell(HubInput::Pace(pace_bps(line, self.hub.clock.wall())));
                self.tell(HubInput::Handling(handling(&part)));
                self.tell(HubInput::Admit { site: site.clone(), subscriptions: items });
                self.tell(HubInput::Nodes(nodes(line)));
                self.tell_subscribed();
                self.note_positions(&site);
                if !self.stand_by {
                    self.hub.place_site(&site, &handle);
                    self.hub.offer_circuits(&site, &handle);
                }
                self.member = Some(Member { site, handle, commands, repairs });
                self.answer_for_heartbeats();
                self.tell_resends();
                self.pending = None;
            }
            Err(refused) => self.refuse(refused),
        }
    }
}

const ONE_NODE: &str = "this is one of several nodes that send for a hub, and a hub takes another hub's feeds from one \
    node; give it the address of the hub's own node (downburst upstreams add)";
