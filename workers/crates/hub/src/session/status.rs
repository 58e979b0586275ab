//! The status of a session for the rest of the hub: its legs, and the facts reported to the agent.
use std::collections::{BTreeMap, BTreeSet};

use downburst_model::{FeedName, LegId, Micros, Sequence, WallMicros};
use downburst_session::{
    ActionFailed, ClockOffset, Frontier, HeartbeatOut, HostReading, LinkedSpace, SiteClock,
};

use crate::feeds::AwaitedHeartbeats;
use crate::known_sites::CredentialChange;
use crate::path_facts::PathFacts;
use crate::tcp_profiles::SessionProfile;
use crate::text::shown;

/// The status of a session.
#[derive(Debug, Default)]
pub struct SessionStatus {
    /// The time of the last message from the site.
    pub heard_at: Micros,
    /// Its state in the hub's accounts.
    pub account: SessionAccount,
    /// The site's clock.
    pub clock: ClockStatus,
    /// The site's frontier in each feed, and the number of known products that are not settled.
    pub frontiers: BTreeMap<FeedName, (Sequence, u64)>,
    /// The reasons why the site stores nothing of a feed.
    pub troubles: BTreeMap<FeedName, String>,
    /// Failed actions of the site with a feed's products.
    pub failed_actions: BTreeMap<FeedName, ActionFailed>,
    /// The site's host.
    pub host: HostStatus,
    /// The number of products that local software received out of its requested order.
    pub late: BTreeMap<FeedName, u64>,
    /// Multicast legs that the site was asked to join, and not asked to leave.
    pub offered: BTreeMap<FeedName, LegId>,
    /// Its data connections.
    pub streams: StreamStatus,
    /// The path facts of its connections together, a few seconds old.
    pub path: Option<PathFacts>,
    /// The TCP profile of its connections.
    pub tcp_profile: Option<SessionProfile>,
    /// Multicast legs that the site receives.
    pub joined: BTreeMap<FeedName, LegId>,
    /// The feeds whose heartbeats the site has to report.
    pub heartbeats: BTreeMap<FeedName, AwaitedHeartbeats>,
    /// The progress of a change of its credential.
    pub credential: CredentialChange,
}

/// The state of a session in the hub's accounts of its sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionAccount {
    /// Its feeds have not begun, so a product stored now may not be owed to the site: no account shows the session.
    #[default]
    Closed,
    /// A fact changed that was not reported to the agent yet.
    Changed,
    /// The agent knows all facts.
    Reported,
}

/// The host of a site, as it reports on itself.
#[derive(Clone, Debug, Default)]
pub struct HostStatus {
    /// Space that products of a feed take after they left the site's log.
    pub linked: BTreeMap<FeedName, LinkedSpace>,
    /// How the host reads, or last read, the group of a feed.
    pub readings: BTreeMap<FeedName, HostReading>,
}

/// A site's clock.
#[derive(Clone, Debug, Default)]
pub struct ClockStatus {
    /// Its comparison with the hub's.
    pub compared: Option<ClockOffset>,
    /// Its state, as reported by the site.
    pub own: Option<SiteClock>,
}

/// The data connections of a session.
#[derive(Clone, Debug, Default)]
pub struct StreamStatus {
    /// The number of open connections.
    pub open: usize,
    /// The planned number.
    pub planned: usize,
    /// The reason for this number, for people.
    pub reason: String,
}

/// A change in a session's status.
#[derive(Debug)]
pub enum StatusChange {
    /// The site's feeds began: every product stored from now on is owed to it.
    Began,
    /// The site's clock was compared with the hub's.
    Clock(ClockOffset),
    /// The site reported the state of its clock.
    SiteClock(SiteClock),
    /// The site reported how its host reads the group of a feed.
    Reads(FeedName, HostReading),
    /// The site reported its position in a feed.
    Stands(Frontier),
    /// A heartbeat reached the consumers at the site.
    HeartbeatOut(HeartbeatOut),
    /// The site has to report heartbeats of exactly these feeds, written after `since`.
    AnswersFor {
        /// The feeds.
        feeds: BTreeSet<FeedName>,
        /// By the hub's wall clock.
        since: WallMicros,
    },
    /// The number of products of a feed that were delivered out of order at the site.
    Late(FeedName, u64),
    /// The site receives a leg.
    Joined(FeedName, LegId),
    /// The site stopped receiving the leg of a feed.
    Left(FeedName),
    /// A data connection opened (1) or ended (-1).
    Streams(isize),
    /// The planned number of data connections, and the reason.
    Planned(usize, String),
    /// The TCP profile of the connections.
    TcpProfile(Option<SessionProfile>),
    /// The kernel's facts about the connections. The agent receives them with the next change or in its turn: they
    /// alone cause no line.
    Path(Option<PathFacts>),
}

impl SessionStatus {
    /// The status of a new session.
    pub fn new(now: Micros) -> Self {
        Self { heard_at: now, ..Self::default() }
    }

    /// Applies a change.
    pub fn apply(&mut self, change: StatusChange) {
        match change {
            StatusChange::Began => self.account = SessionAccount::Changed,
            StatusChange::AnswersFor { feeds, since } => return self.answers_for(&feeds, since),
            StatusChange::HeartbeatOut(out) => return self.heartbeat_out(&out),
            StatusChange::Path(path) => {
                self.path = path;
                return;
            }
            StatusChange::TcpProfile(profile) => {
                self.account.changed_if(self.tcp_profile != profile);
                self.tcp_profile = profile;
                return;
            }
            StatusChange::Clock(clock) => self.clock.compared = Some(clock),
            StatusChange::SiteClock(clock) => self.clock.own = Some(clock),
            StatusChange::Reads(feed, reading) => drop(self.host.readings.insert(feed, reading)),
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
        self.account.changed_if(true);
    }

    /// True while the site receives the feed over this leg.
    pub fn hears(&self, leg: LegId) -> bool {
        self.joined.values().any(|joined| *joined == leg)
    }

    fn stands(&mut self, frontier: Frontier) {
        let Frontier { feed, settled_to, pending, trouble, action_failed, linked, .. } = frontier;
        match action_failed {
            Some(failed) => drop(self.failed_actions.insert(feed.clone(), shortened(failed))),
            None => drop(self.failed_actions.remove(&feed)),
        }
        match linked {
            Some(space) => drop(self.host.linked.insert(feed.clone(), space)),
            None => drop(self.host.linked.remove(&feed)),
        }
        match trouble {
            Some(trouble) => drop(self.troubles.insert(feed.clone(), shown(&trouble))),
            None => drop(self.troubles.remove(&feed)),
        }
        self.frontiers.insert(feed, (settled_to, pending));
    }

    /// Records a reported heartbeat; reports for feeds that the site does not receive are ignored.
    fn heartbeat_out(&mut self, out: &HeartbeatOut) {
        if let Some(heartbeats) = self.heartbeats.get_mut(&out.key.feed) {
            self.account.changed_if(heartbeats.came_out(out.key.epoch, out.key.sequence));
        }
    }

    fn answers_for(&mut self, feeds: &BTreeSet<FeedName>, since: WallMicros) {
        self.heartbeats.retain(|feed, _| feeds.contains(feed));
        for feed in feeds {
            self.heartbeats.entry(feed.clone()).or_insert_with(|| AwaitedHeartbeats::since(since));
        }
    }
}

impl SessionAccount {
    /// True if accounts show the session.
    pub fn is_open(self) -> bool {
        self != Self::Closed
    }

    /// Notes a change of a fact. A session that is not shown yet will be reported whole.
    pub fn changed_if(&mut self, is_change: bool) {
        if is_change && self.is_open() {
            *self = Self::Changed;
        }
    }

    /// Takes note of a report to the agent; true if there was a change to report.
    pub fn take_change(&mut self) -> bool {
        let is_change = *self == Self::Changed;
        if is_change {
            *self = Self::Reported;
        }
        is_change
    }
}

/// A site's report is stored and forwarded: it is limited to the length of a trouble's text.
fn shortened(failed: ActionFailed) -> ActionFailed {
    let cut = |text: String| shown(&text);
    let ActionFailed { rule, exit, last_error, product, sequence, epoch, count, mut others } = failed;
    others.truncate(ActionFailed::MOST_OTHERS);
    let (rule, last_error, product) = (cut(rule), cut(last_error), cut(product));
    ActionFailed { rule, exit, last_error, product, sequence, epoch, count, others }
}
