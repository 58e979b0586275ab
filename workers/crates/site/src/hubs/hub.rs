//! One hub and its connections: a single one, or one to each of its nodes that serve the site.
use std::collections::VecDeque;

use downburst_model::Micros;
use downburst_session::{Nodes, Receipt};

use super::choice::{Choice, Standing};
use super::nodes::{NodeChoice, Wanted};
use super::status::{HubStatus, NodeStatus};
use super::{ConnectionId, GivenHub, HubsOutput, Listeners};
use crate::role::Role;

/// The site's view of a hub.
#[derive(Debug)]
pub(super) struct Hub {
    at: usize,
    address: String,
    nodes: NodeChoice,
    /// The hub's name, once received.
    name: Option<String>,
    /// The reason for the missing connection.
    sentence: Option<String>,
    connections: Vec<Kept>,
    /// Connections that are no longer needed and have not ended yet.
    leaving: Vec<ConnectionId>,
    /// Unreported receipts of ended connections.
    owed: Vec<Receipt>,
}

/// A planned connection.
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

    /// The plan of a connection, unless it is ending.
    pub(super) fn wanted(&self, id: ConnectionId) -> Option<Wanted> {
        self.connections.iter().find(|it| it.id == id).map(|it| it.wanted.clone())
    }

    /// Notes that a connection was accepted. True if the hub is now connected: the first of several nodes suffices.
    pub(super) fn is_well(&mut self, id: ConnectionId, name: String, role: Role) -> bool {
        let kept = self.connections.iter_mut().find(|it| it.id == id);
        // A connection made for the former role is about to end.
        let Some(kept) = kept.filter(|it| it.wanted.role == role) else { return false };
        kept.well = true;
        (self.name, self.sentence) = (Some(name), None);
        if kept.wanted.is_part() {
            self.nodes.is_well(&kept.wanted.address);
        }
        let parts = self.connections.iter().any(|it| it.wanted.is_part());
        self.connections.iter().any(|it| it.well && (!parts || it.wanted.is_part()))
    }

    /// Notes that a connection is lost or missing. True if the hub is away because of it.
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

    /// Takes the hub's list of its nodes; returns the list to store if it has changed.
    pub(super) fn take_nodes(&mut self, now: Micros, nodes: Nodes) -> Option<Nodes> {
        self.nodes.take(now, nodes).then(|| {
            tracing::info!(hub = self.address, "the hub listed its nodes that serve this site");
            self.nodes.known().clone()
        })
    }

    /// Orders the planned connections once the others have ended.
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

    /// The time at which to ask for the location of the feeds, if no node is connected.
    pub(super) fn ask_at(&self) -> Option<Micros> {
        self.nodes.ask_at()
    }

    /// Orders the end of all connections.
    pub(super) fn end(&mut self, outputs: &mut VecDeque<HubsOutput>) {
        self.leaving.extend(self.connections.drain(..).map(|it| it.id));
        outputs.extend(self.leaving.iter().map(|id| HubsOutput::ChangeRole(*id, Role::End)));
    }

    /// Notes that a connection has ended, and takes its unreported receipts.
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

    /// The connections that receive the news of local software while the hub serves.
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

    /// Takes the receipts of earlier connections that this one is to report.
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

/// The number that a connection keeps; the frontier covers the rest.
const MOST_OWED: usize = 16_384;
