//! A site and its hubs: one serves, the others stand by, all products are stored in the same logs.
pub(crate) mod choice;
mod hub;
pub(crate) mod nodes;
mod status;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use downburst_model::{FeedName, Machine, Micros, Now};
use downburst_session::{Nodes, Receipt};

pub use status::{HubStatus, NodeStatus};

use crate::role::{News, Role};
use choice::{Choice, Standing};
use hub::Hub;
use nodes::Wanted;

/// All hubs of a site: the connections to them, and the role of each.
///
/// A hub has one connection, or one to each of its nodes that have a feed for the site. A connection that is no
/// longer needed ends first: its products are in the log before another one reports the site's position.
#[derive(Debug)]
pub struct Hubs {
    choice: Choice,
    hubs: Vec<Hub>,
    next_serial: u64,
    listeners: Option<Listeners>,
    ending: Option<Ending>,
    is_over: bool,
    /// The time of the last poll.
    polled: Micros,
    outputs: VecDeque<HubsOutput>,
}

/// A configured hub of a site.
#[derive(Clone, Debug)]
pub struct GivenHub {
    /// Its address for sites, `HOST:PORT`.
    pub address: String,
    /// Its list of nodes from an earlier run.
    pub nodes: Nodes,
}

/// Identifies one connection; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId {
    /// Index of the hub, in the configured order.
    pub hub: usize,
    serial: u64,
}

/// The connections that receive news of local software.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listeners {
    /// For feeds without a connection of their own.
    pub all: Option<ConnectionId>,
    /// For feeds with a connection of their own.
    pub by_feed: BTreeMap<FeedName, ConnectionId>,
}

/// The reason for a site's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was told to stop.
    Stopped,
    /// The command, the directory or the token is wrong, as the sentence explains.
    BadUse(String),
    /// The hub refused permanently.
    Refused(String),
}

/// An input for [`Hubs`].
#[derive(Debug)]
pub enum HubsInput {
    /// News of a connection.
    News(ConnectionId, News),
    /// A connection ended, with these receipts unreported.
    Over(ConnectionId, Vec<Receipt>),
    /// An output can't be carried out or stored: the sentence gives the reason and the remedy.
    Failed(String),
    /// End the site.
    Stop,
}

/// An output of [`Hubs`].
#[derive(Debug, PartialEq)]
pub enum HubsOutput {
    /// Make a connection.
    Begin {
        /// Its identifier.
        connection: ConnectionId,
        /// Its address, role and feeds.
        wanted: Wanted,
        /// True if a refusal on it counts for the hub.
        decides: bool,
        /// Unreported receipts of other connections.
        owed: Vec<Receipt>,
    },
    /// Change the role of a connection.
    ChangeRole(ConnectionId, Role),
    /// Store the list of a hub's nodes for the next run.
    KeepNodes {
        /// Index of the hub.
        hub: usize,
        /// The list.
        nodes: Nodes,
    },
    /// Report news of local software to these from now on.
    Listen(Listeners),
    /// All connections have ended.
    End(Ending),
}

impl Hubs {
    /// A site of these hubs, the preferred one first, which serves again once it was connected for `return_after`.
    pub fn new(hubs: Vec<GivenHub>, return_after: Micros, now: Micros) -> Self {
        let choice = Choice::new(hubs.len(), return_after, now);
        let hubs = hubs.into_iter().enumerate().map(|(at, given)| Hub::new(at, given, now)).collect();
        Self {
            choice,
            hubs,
            next_serial: 0,
            listeners: None,
            ending: None,
            is_over: false,
            polled: now,
            outputs: VecDeque::new(),
        }
    }

    /// Makes the hub with this address or name the preferred one, on an operator's request.
    ///
    /// # Errors
    ///
    /// There is no such hub, or several have that name.
    pub fn prefer(&mut self, now: Micros, wanted: &str) -> Result<(), String> {
        let hub = self.find(wanted)?;
        let left = self.choice.active();
        if let Some(next) = self.choice.prefer(now, hub) {
            self.log_switch(left, next);
        }
        Ok(())
    }

    /// The status of each hub.
    pub fn status(&self, now: Micros) -> Vec<HubStatus> {
        let status = |hub: &Hub| hub.status(now, &self.choice);
        self.hubs.iter().map(status).collect()
    }

    fn find(&self, wanted: &str) -> Result<usize, String> {
        let mut found = self.hubs.iter().filter(|hub| hub.is_called(wanted)).map(Hub::at);
        match (found.next(), found.next()) {
            (Some(hub), None) => Ok(hub),
            (Some(_), Some(_)) => Err(format!("several hubs have the name {wanted}; give the address")),
            (None, _) => {
                let known: String = self.hubs.iter().map(|hub| format!(" {}", hub.address())).collect();
                Err(format!("this site has no hub {wanted:?}; its hubs are{known}"))
            }
        }
    }

    fn decide(&mut self, now: Micros) {
        let left = self.choice.active();
        if let Some(next) = self.choice.decide(now) {
            self.log_switch(left, next);
        }
    }

    fn log_switch(&self, left: usize, next: usize) {
        let address = |hub: usize| self.hubs.get(hub).map(Hub::address);
        tracing::warn!(from = address(left), to = address(next), "another hub serves this site from here on");
    }

    fn take_news(&mut self, now: Micros, from: ConnectionId, news: News) {
        let Some(hub) = self.hubs.get_mut(from.hub) else { return };
        let Some(wanted) = hub.wanted(from) else { return };
        match news {
            News::Well { hub: name, role } => {
                if hub.is_well(from, name, role)
                    && !matches!(self.choice.standing(from.hub), Some(Standing::Well { .. }))
                {
                    self.choice.is_well(now, from.hub);
                }
            }
            News::Away { sentence, silent } => {
                if hub.is_away(now, from, &wanted, sentence) {
                    self.choice.is_away(now, from.hub, silent);
                }
            }
            News::Nodes(nodes) => {
                if let Some(nodes) = hub.take_nodes(now, nodes) {
                    self.outputs.push_back(HubsOutput::KeepNodes { hub: from.hub, nodes });
                }
            }
            News::Refused(sentence) => {
                tracing::error!(hub = hub.address(), "the hub refused: {sentence}");
                hub.is_refused(sentence.clone());
                self.choice.has_refused(from.hub);
                if self.choice.is_refused_by_all() {
                    self.end(Ending::Refused(sentence));
                }
            }
            News::Unkept(sentence) => self.end(Ending::BadUse(sentence)),
        }
    }

    fn end(&mut self, ending: Ending) {
        if self.ending.is_none() {
            self.hubs.iter_mut().for_each(|hub| hub.end(&mut self.outputs));
        }
        self.ending.get_or_insert(ending);
    }

    /// Begins and ends connections to match the hubs' lists of nodes and the choice of the hub.
    fn arrange(&mut self, now: Micros) {
        let active = self.choice.active();
        for hub in &mut self.hubs {
            let serves = hub.at() == active;
            hub.arrange(now, serves, &mut self.next_serial, &mut self.outputs);
        }
        let listeners = self.hubs.get(active).map(Hub::listeners);
        if listeners != self.listeners {
            self.outputs.extend(listeners.clone().map(HubsOutput::Listen));
            self.listeners = listeners;
        }
    }

    fn advance(&mut self, now: Micros) {
        self.polled = now;
        match &self.ending {
            None => {
                self.decide(now);
                self.arrange(now);
            }
            Some(ending) if !self.is_over && self.hubs.iter().all(Hub::is_over) => {
                self.is_over = true;
                self.outputs.push_back(HubsOutput::End(ending.clone()));
            }
            Some(_) => {}
        }
    }
}

impl Machine for Hubs {
    type Input = HubsInput;
    type Output = HubsOutput;

    fn handle(&mut self, now: Now, input: HubsInput) {
        match input {
            HubsInput::News(from, news) => self.take_news(now.monotonic, from, news),
            HubsInput::Over(from, unsaid) => {
                if let Some(hub) = self.hubs.get_mut(from.hub) {
                    hub.is_ended(from, unsaid);
                }
            }
            HubsInput::Failed(sentence) => self.end(Ending::BadUse(sentence)),
            HubsInput::Stop => self.end(Ending::Stopped),
        }
    }

    fn poll(&mut self, now: Now) -> Option<HubsOutput> {
        if self.outputs.is_empty() {
            self.advance(now.monotonic);
        }
        self.outputs.pop_front()
    }

    fn deadline(&self) -> Option<Micros> {
        let asks = self.hubs.iter().filter_map(Hub::ask_at).filter(|at| *at > self.polled);
        self.choice.deadline().into_iter().chain(asks).min().filter(|_| self.ending.is_none())
    }
}
