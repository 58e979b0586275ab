//! One hub and the connections to it: one, or one to each of its nodes that serve the site.
use std::collections::VecDeque;

use downburst_model::Micros;
use downburst_session::{Nodes, Receipt};

use super::choice::{Choice, Standing};
use super::nodes::{NodeChoice, Wanted};
use super::status::{HubStatus, NodeStatus};
use super::{ConnectionId, GivenHub, HubsOutput, Listeners};
use crate::role::Role;

/// A hub, as the site sees it.
#[derive(Debug)]
pub(super) struct Hub {
    at: usize,
    address: String,
    nodes: NodeChoice,
    /// The hub's name, once it said it.
    name: Option<String>,
    /// Why there is no connection.
    sentence: Option<String>,
    connections: Vec<Kept>,
    /// Those that are not wanted any more and have not ended.
    leaving: Vec<ConnectionId>,
    /// Receipts that ended connections had left to say.
    owed: Vec<Receipt>,
}

/// A connection that is wanted.
#[derive(Debug)]
struct Kept {
    id: ConnectionId,
    wanted: Wanted,
    well: bool,
}

impl Hub {
    pub(super) fn new(at: usize, given: GivenHub, now: Micros) -> Self {
        let GivenHub { address, nodes } = given;
        Self {
            at,
            nodes: NodeChoice::new(address.clone(), nodes, now),
            address,
            name: None,
            sentence: None,
            connections: Vec::new(),
            leaving: Vec::new(),
            owed: Vec::new(),
        }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    pub(super) fn is_called(&self, wanted: &str) -> bool {
        self.address == wanted || self.name.as_deref() == Some(wanted)
    }

    /// What a connection is for, unless it is ended meanwhile.
    pub(super) fn wanted(&self, id: ConnectionId) -> Option<Wanted> {
        self.connections.iter().find(|it| it.id == id).map(|it| it.wanted.clone())
    }

    /// A connection was let in. True if the hub is well by it: the first of several nodes makes the hub well.
    pub(super) fn is_well(&mut self, id: ConnectionId, name: String, role: Role) -> bool {
        let kept = self.connections.iter_mut().find(|it| it.id == id);
        // A connection made for the role before is about to end.
        let Some(kept) = kept.filter(|it| it.wanted.role == role) else { return false };
        kept.well = true;
        (self.name, self.sentence) = (Some(name), None);
        if kept.wanted.is_part() {
            self.nodes.is_well(&kept.wanted.address);
        }
        let parts = self.connections.iter().any(|it| it.wanted.is_part());
        self.connections.iter().any(|it| it.well && (!parts || it.wanted.is_part()))
    }

    /// A connection is not there. True if the hub is away by that.
    pub(super) fn is_away(&mut self, now: Micros, id: ConnectionId, of: &Wanted, sentence: String) -> bool {
        if let Some(kept) = self.connections.iter_mut().find(|it| it.id == id) {
            kept.well = false;
        }
        self.sentence = Some(sentence);
        if of.asks() {
            self.nodes.asked_in_vain(now);
            return false;
        }
        !of.is_part() || self.nodes.is_away(now, &of.address)
    }

    pub(super) fn is_refused(&mut self, sentence: String) {
        self.sentence = Some(sentence);
    }

    /// The hub listed its nodes; what has to be kept of that if it is news.
    pub(super) fn take_nodes(&mut self, now: Micros, nodes: Nodes) -> Option<Nodes> {
        self.nodes.take(now, nodes).then(|| {
            tracing::info!(hub = self.address, "the hub listed its nodes that serve this site");
            self.nodes.known().clone()
        })
    }

    /// Has the planned connections made once the others have ended.
    pub(super) fn arrange(
        &mut self,
        now: Micros,
        serves: bool,
        next_serial: &mut u64,
        outputs: &mut VecDeque<HubsOutput>,
    ) {
        let wanted = self.nodes.wanted(now, serves);
        self.leave_all_but(now, &wanted, outputs);
        for wanted in wanted {
            match self.connections.iter_mut().find(|it| it.leads_to(&wanted)) {
                Some(kept) => kept.take_role(wanted.role, outputs),
                None if self.leaving.is_empty() => {
                    let connection = ConnectionId { hub: self.at, serial: *next_serial };
                    *next_serial += 1;
                    let decides = wanted.only.is_none() || (wanted.asks() && wanted.address == self.address);
                    let owed = self.take_owed(&wanted);
                    self.connections.push(Kept { id: connection, wanted: wanted.clone(), well: false });
                    outputs.push_back(HubsOutput::Begin { connection, wanted, decides, owed });
                }
                None => {}
            }
        }
    }

    /// When it is time to ask another node where the feeds are, if that is to come.
    pub(super) fn ask_at(&self) -> Option<Micros> {
        self.nodes.ask_at()
    }

    /// Has all connections ended.
    pub(super) fn end(&mut self, outputs: &mut VecDeque<HubsOutput>) {
        self.leaving.extend(self.connections.drain(..).map(|it| it.id));
        outputs.extend(self.leaving.iter().map(|id| HubsOutput::ChangeRole(*id, Role::End)));
    }

    /// A connection has ended.
    pub(super) fn is_ended(&mut self, id: ConnectionId, unsaid: Vec<Receipt>) {
        self.leaving.retain(|leaving| *leaving != id);
        self.connections.retain(|it| it.id != id);
        self.owed.extend(unsaid);
        let over = self.owed.len().saturating_sub(MOST_OWED);
        self.owed.drain(..over);
    }

    /// True if it has no connection.
    pub(super) fn is_over(&self) -> bool {
        self.connections.is_empty() && self.leaving.is_empty()
    }

    /// Who is to know of local software while the hub serves.
    pub(super) fn listeners(&self) -> Listeners {
        let all = self.connections.iter().find(|it| it.wanted.only.is_none()).map(|it| it.id);
        let by_feed = self.parts().flat_map(|it| {
            let feeds = it.wanted.only.iter().flatten();
            feeds.map(|feed| (feed.clone(), it.id))
        });
        Listeners { all, by_feed: by_feed.collect() }
    }

    pub(super) fn status(&self, now: Micros, choice: &Choice) -> HubStatus {
        let is_active = self.at == choice.active();
        let (state, since) = match choice.standing(self.at) {
            Some(Standing::Well { since }) if is_active => ("serves", Some(since)),
            Some(Standing::Well { since }) => ("stands by", Some(since)),
            Some(Standing::Away { since, .. }) => ("away", Some(since)),
            Some(Standing::Refused) | None => ("refused", None),
        };
        HubStatus {
            address: self.address.clone(),
            name: self.name.clone(),
            state: state.to_owned(),
            seconds: since.map(|since| now.since(since).0 / 1_000_000),
            active: is_active,
            preferred: self.at == choice.preferred(),
            reason: self.sentence.clone(),
            nodes: self.parts().map(|it| NodeStatus::of(&it.wanted, it.well)).collect(),
        }
    }

    /// The connections to nodes that serve the site.
    fn parts(&self) -> impl Iterator<Item = &Kept> {
        self.connections.iter().filter(|it| it.wanted.is_part())
    }

    fn leave_all_but(&mut self, now: Micros, wanted: &[Wanted], outputs: &mut VecDeque<HubsOutput>) {
        let is_wanted = |kept: &Kept| wanted.iter().any(|wanted| kept.leads_to(wanted));
        let (kept, ended) = std::mem::take(&mut self.connections).into_iter().partition(is_wanted);
        self.connections = kept;
        for Kept { id, wanted, .. } in ended {
            if wanted.is_part() {
                self.nodes.is_away(now, &wanted.address);
            }
            self.leaving.push(id);
            outputs.push_back(HubsOutput::ChangeRole(id, Role::Leave));
        }
    }

    /// The receipts of what others brought that this connection is to say.
    fn take_owed(&mut self, wanted: &Wanted) -> Vec<Receipt> {
        let (taken, left) =
            std::mem::take(&mut self.owed).into_iter().partition(|it| wanted.brings(&it.key.feed));
        self.owed = left;
        taken
    }
}

impl Kept {
    fn leads_to(&self, wanted: &Wanted) -> bool {
        self.wanted.address == wanted.address && self.wanted.only == wanted.only
    }

    fn take_role(&mut self, role: Role, outputs: &mut VecDeque<HubsOutput>) {
        if self.wanted.role != role {
            (self.wanted.role, self.well) = (role, false);
            outputs.push_back(HubsOutput::ChangeRole(self.id, role));
        }
    }
}

/// As many as a connection keeps; the frontier tells the rest.
const MOST_OWED: usize = 16_384;
