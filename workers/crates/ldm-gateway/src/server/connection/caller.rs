//! The LDM at the other end, with its rights.
use std::sync::Arc;

use downburst_ldm6::Ending;
use downburst_model::SiteName;

use super::super::peers::{Peer, Peers};
use super::super::rules::Rules;
use crate::complaints::Offender;
use crate::context::Context;
use crate::hub::Event;
use crate::lock;

pub(super) struct Caller {
    pub(super) peers: Arc<Peers>,
    pub(super) peer: Arc<Peer>,
    pub(super) name: String,
    /// The rules at the time of its connection.
    pub(super) rules: Arc<Rules>,
}

impl Caller {
    pub(super) fn new(peers: &Arc<Peers>, peer: &Arc<Peer>) -> Self {
        Self { peers: Arc::clone(peers), peer: Arc::clone(peer), name: peer.name(), rules: peers.rules() }
    }

    pub(super) fn names(&self) -> Vec<String> {
        lock(&self.peer.standing).names.clone()
    }

    fn site(&self) -> Option<SiteName> {
        self.rules.site(&lock(&self.peer.standing).names)
    }

    /// Records the peer's request for the status.
    pub(super) fn is_known_as(&self, what: &'static str, mode: &'static str, class: String) {
        let mut standing = lock(&self.peer.standing);
        standing.site = self.rules.site(&standing.names);
        standing.said = self.rules.said(&standing.names);
        (standing.what, standing.mode, standing.class) = (what, mode, class);
        // Changes of the rules between accept and request have not been compared with this peer.
        if standing.said != self.peers.rules().said(&standing.names) {
            self.peer.end.send_replace(Some("its rights to request or push were changed"));
        }
    }

    /// Reports the state of the connection to the agent.
    pub(super) fn tell(&self, context: &Context, state: &'static str, reason: Option<String>) {
        let standing = lock(&self.peer.standing);
        let (peer, site, what) = (self.name.clone(), standing.site.clone(), standing.what);
        context.hub.tell(Event::Peer { peer, site, state, what, reason });
    }

    /// Reports to the agent if the connection ended because of a protocol violation.
    pub(super) fn has_ended(&self, context: &Context, why: &Ending) {
        let from = Offender { peer: &self.name, source: None, site: self.site() };
        context.complaints.ended(&*context.hub, &from, why);
    }
}
