//! Where a session stands, for the rest of the hub: its legs, and what the agent is told.
use std::collections::{BTreeMap, BTreeSet};

use downburst_model::{FeedName, LegId, Micros, Sequence, WallMicros};
use downburst_session::{ActionFailed, ClockOffset, Frontier, HeartbeatOut};

use crate::heartbeats::AwaitedHeartbeats;
use crate::known_sites::CredentialChange;
use crate::path_facts::PathFacts;
use crate::text::shown;

/// Where a session stands.
#[derive(Debug, Default)]
pub struct SessionStatus {
    /// When the site was last heard.
    pub heard_at: Micros,
    /// The agent was not told since something changed that it is told of.
    pub changed: bool,
    /// The site's clock.
    pub clock: Option<ClockOffset>,
    /// How far the site is with each feed, and how many numbers it lacks.
    pub frontiers: BTreeMap<FeedName, (Sequence, u64)>,
    /// Why the site stores nothing of a feed.
    pub troubles: BTreeMap<FeedName, String>,
    /// What the site's own actions could not do with a feed's products.
    pub failed_actions: BTreeMap<FeedName, ActionFailed>,
    /// Products that local software saw out of the order it asked for.
    pub late: BTreeMap<FeedName, u64>,
    /// Multicast legs the site was told to join and not told to leave.
    pub offered: BTreeMap<FeedName, LegId>,
    /// Its data connections.
    pub streams: StreamStatus,
    /// Of its connections together, a few seconds old.
    pub path: Option<PathFacts>,
    /// Multicast legs the site hears.
    pub joined: BTreeMap<FeedName, LegId>,
    /// The feeds for whose heartbeats the site answers.
    pub heartbeats: BTreeMap<FeedName, AwaitedHeartbeats>,
    /// How a change of its credential goes on.
    pub credential: CredentialChange,
}

/// The data connections of a session.
#[derive(Clone, Debug, Default)]
pub struct StreamStatus {
    /// Those that stand.
    pub open: usize,
    /// How many there are to be.
    pub planned: usize,
    /// Why so many, for people.
    pub reason: String,
}

/// What changed in a session's status.
#[derive(Debug)]
pub enum StatusChange {
    /// The site's clock was compared.
    Clock(ClockOffset),
    /// The site said where it stands in a feed.
    Stands(Frontier),
    /// A heartbeat came out at the site.
    HeartbeatOut(HeartbeatOut),
    /// The site answers for heartbeats of these feeds, put in after `since`, and of no others.
    AnswersFor {
        /// The feeds.
        feeds: BTreeSet<FeedName>,
        /// By the hub's wall clock.
        since: WallMicros,
    },
    /// So many products of a feed came out of order at the site.
    Late(FeedName, u64),
    /// The site hears a leg.
    Joined(FeedName, LegId),
    /// The site hears the leg of a feed no more.
    Left(FeedName),
    /// A data connection stands (1), or ended (-1).
    Streams(isize),
    /// So many data connections are planned, and why.
    Planned(usize, String),
    /// What the kernel knows of the connections; the agent gets it with the next change, or in its turn: no line is
    /// due to this alone.
    Path(Option<PathFacts>),
}

impl SessionStatus {
    /// Of a session that begins.
    pub fn new(now: Micros) -> Self {
        Self { heard_at: now, changed: true, ..Self::default() }
    }

    /// Takes a change in.
    pub fn apply(&mut self, change: StatusChange) {
        match change {
            StatusChange::AnswersFor { feeds, since } => return self.answers_for(&feeds, since),
            StatusChange::HeartbeatOut(out) => return self.heartbeat_out(&out),
            StatusChange::Path(path) => {
                self.path = path;
                return;
            }
            StatusChange::Clock(clock) => self.clock = Some(clock),
            StatusChange::Stands(frontier) => self.stands(frontier),
            StatusChange::Late(feed, products) => drop(self.late.insert(feed, products)),
            StatusChange::Joined(feed, leg) => drop(self.joined.insert(feed, leg)),
            StatusChange::Left(feed) => drop(self.joined.remove(&feed)),
            StatusChange::Streams(more) => {
                self.streams.open = self.streams.open.saturating_add_signed(more);
            }
            StatusChange::Planned(count, reason) => {
                (self.streams.planned, self.streams.reason) = (count, reason);
            }
        }
        self.changed = true;
    }

    /// True while the site counts on this leg.
    pub fn hears(&self, leg: LegId) -> bool {
        self.joined.values().any(|joined| *joined == leg)
    }

    fn stands(&mut self, frontier: Frontier) {
        let Frontier { feed, settled_to, pending, trouble, action_failed, .. } = frontier;
        match action_failed {
            Some(failed) => drop(self.failed_actions.insert(feed.clone(), shortened(failed))),
            None => drop(self.failed_actions.remove(&feed)),
        }
        match trouble {
            Some(trouble) => drop(self.troubles.insert(feed.clone(), shown(&trouble))),
            None => drop(self.troubles.remove(&feed)),
        }
        self.frontiers.insert(feed, (settled_to, pending));
    }

    /// The site said that a heartbeat came out; of a feed that it does not take nothing is kept.
    fn heartbeat_out(&mut self, out: &HeartbeatOut) {
        if let Some(heartbeats) = self.heartbeats.get_mut(&out.key.feed) {
            self.changed |= heartbeats.came_out(out.key.epoch, out.key.sequence);
        }
    }

    fn answers_for(&mut self, feeds: &BTreeSet<FeedName>, since: WallMicros) {
        self.heartbeats.retain(|feed, _| feeds.contains(feed));
        for feed in feeds {
            self.heartbeats.entry(feed.clone()).or_insert_with(|| AwaitedHeartbeats::since(since));
        }
    }
}

/// What a site says is kept and told on: no more of it than of a trouble.
fn shortened(failed: ActionFailed) -> ActionFailed {
    let cut = |text: String| shown(&text);
    let ActionFailed { rule, exit, last_error, product, sequence, epoch, count, mut others } = failed;
    others.truncate(ActionFailed::MOST_OTHERS);
    let (rule, last_error, product) = (cut(rule), cut(last_error), cut(product));
    ActionFailed { rule, exit, last_error, product, sequence, epoch, count, others }
}
