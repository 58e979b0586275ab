//! What nobody asked for: events.
use std::collections::BTreeSet;
use std::path::PathBuf;

use downburst_model::{FeedName, LegId, Sequence, SiteName, Transport, WallMicros};
use downburst_session::ActionFailed;
use serde::Serialize;

use super::CircuitTraffic;
use downburst_hub::{PathFacts, SiteBacklog};

/// Something nobody asked for.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(crate) enum Event {
    /// A site shows a token.
    Enrol { ask: u64, secret_sha256: String, credential_sha256: String, peer: String },
    /// A site offers a credential in the place of the one that it shows.
    CredentialOffered {
        ask: u64,
        site: SiteName,
        credential_sha256: String,
        offered_sha256: String,
        peer: String,
    },
    /// A site shows a credential that took the place of another.
    CredentialTaken { site: SiteName, credential_sha256: String },
    /// A session changed.
    Session {
        site: Option<SiteName>,
        state: &'static str,
        peer: String,
        reason: Option<String>,
        software: Option<String>,
        /// Another hub serves the site.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        stand_by: bool,
        /// Its node can change its credential within the session.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        renews: bool,
    },
    /// A site said what can't be: its session ends, or that one value does not count.
    Violation { site: SiteName, sentence: String },
    /// A site joined or left a leg.
    Leg {
        feed: FeedName,
        leg: LegId,
        site: SiteName,
        state: &'static str,
        after: Option<Sequence>,
        reason: Option<String>,
        /// How the site's host receives the group.
        #[serde(skip_serializing_if = "Option::is_none")]
        reception: Option<ReceptionLine>,
    },
    /// The connection to an upstream changed.
    Upstream { upstream: String, state: &'static str, hub: Option<String>, reason: Option<String> },
    /// The connection to an upstream LDM changed.
    LdmSource {
        source: String,
        upstream: String,
        state: &'static str,
        mode: &'static str,
        reason: Option<String>,
    },
    /// A connection of an LDM to this hub began, ended or was refused.
    LdmPeer {
        peer: String,
        site: Option<SiteName>,
        state: &'static str,
        what: &'static str,
        reason: Option<String>,
    },
    /// An LDM said what can't be: its connection ended.
    LdmViolation {
        peer: String,
        /// The source that asks it.
        source: Option<String>,
        /// The site that it belongs to.
        site: Option<SiteName>,
        sentence: String,
    },
    /// An rtstats line came: how late products are at a host that is none of ours.
    Rtstats { line: String },
    /// A site has everything of a resend.
    Resend { site: SiteName, resend: u64, products: u64, bytes: u64, expired: u64 },
    /// A log was repaired at its start.
    Recovered {
        feed: FeedName,
        sentence: String,
        /// Nothing was cut or lost.
        whole: bool,
    },
    /// Something of a feed's log is not as it was written.
    Damaged { feed: FeedName, sentence: String },
    /// Something an operator should see.
    Fault { sentence: String, feed: Option<FeedName>, site: Option<SiteName> },
    /// An end of a circuit changed.
    Circuit {
        lease: u32,
        site: Option<SiteName>,
        state: &'static str,
        step: Option<String>,
        hop: Option<String>,
        sentence: Option<String>,
        remedy: Option<String>,
    },
    /// What moved in the last second.
    Traffic(Traffic),
    /// What sites lack, connected or not: those of which it changed, and a few others.
    Backlog { sites: Vec<SiteBacklog> },
    /// A batch of sketches is ready.
    Batch { batch: String, path: PathBuf },
}

/// How a site's host receives a group.
#[derive(Debug, Serialize)]
pub(crate) struct ReceptionLine {
    pub(crate) buffer_bytes: u64,
    pub(crate) path: String,
    pub(crate) advice: Option<String>,
}

/// See [`Event::Traffic`].
#[derive(Debug, Default, Serialize)]
pub(crate) struct Traffic {
    pub(crate) from_us: WallMicros,
    pub(crate) to_us: WallMicros,
    pub(crate) feeds: Vec<FeedTraffic>,
    pub(crate) legs: Vec<LegTraffic>,
    pub(crate) control_bytes: u64,
    /// Sites whose session ended.
    pub(crate) gone: BTreeSet<SiteName>,
    /// Sessions of which something changed, and a few others.
    pub(crate) sessions: Vec<SessionTraffic>,
    pub(crate) circuits: Vec<CircuitTraffic>,
}

/// Arrivals of a feed.
#[derive(Debug, Serialize)]
pub(crate) struct FeedTraffic {
    pub(crate) feed: FeedName,
    pub(crate) products: u64,
    pub(crate) bytes: u64,
    pub(crate) sizes: Vec<u64>,
    pub(crate) head: Sequence,
    /// Of the head, as decimal text.
    pub(crate) epoch: String,
}

/// What a leg carried.
#[derive(Debug, Serialize)]
pub(crate) struct LegTraffic {
    pub(crate) leg: LegId,
    pub(crate) feed: FeedName,
    pub(crate) egress_bytes: u64,
    /// All repairs; of these to the group, and of these coded; to single sites as datagrams. The rest went to
    /// single sites by their sessions.
    pub(crate) repair_bytes: u64,
    pub(crate) group_repair_bytes: u64,
    pub(crate) coded_repair_bytes: u64,
    pub(crate) channel_repair_bytes: u64,
    pub(crate) products: u64,
    pub(crate) product_bytes: u64,
    pub(crate) sites: u64,
    pub(crate) backlog_bytes: u64,
}

/// Where a connected site stands.
#[derive(Debug, Serialize)]
pub(crate) struct SessionTraffic {
    pub(crate) site: SiteName,
    pub(crate) clock_offset_us: Option<i64>,
    pub(crate) clock_bound_us: Option<u64>,
    pub(crate) round_trip_us: Option<u64>,
    /// What the kernel knows of the session's connections together.
    pub(crate) path: Option<PathFacts>,
    /// Those that stand, how many there are to be, and why.
    pub(crate) data_connections: usize,
    pub(crate) data_connections_planned: usize,
    pub(crate) data_connections_reason: String,
    pub(crate) feeds: Vec<SessionFeed>,
}

/// Where a site stands in a feed.
#[derive(Debug, Serialize)]
pub(crate) struct SessionFeed {
    pub(crate) feed: FeedName,
    pub(crate) settled_to: Sequence,
    pub(crate) pending: u64,
    pub(crate) late: u64,
    pub(crate) transport: Transport,
    pub(crate) leg: LegId,
    /// Why the site stores nothing of the feed, in its words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trouble: Option<String>,
    /// What the site's own actions could not do with a product of the feed, the newest one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) action_failed: Option<FailedAction>,
    /// When the newest heartbeat was put in that came out at the site; absent: none did yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) heartbeat_us: Option<WallMicros>,
    /// When the oldest heartbeat was put in that did not; absent: all did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) heartbeat_waits_us: Option<WallMicros>,
    /// How long this node has waited for that one, on its own clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) heartbeat_waited_us: Option<u64>,
}

/// What a site's action could not do.
#[derive(Debug, Serialize)]
pub(crate) struct FailedAction {
    pub(crate) rule: String,
    pub(crate) exit: Option<i32>,
    pub(crate) last_error: String,
    pub(crate) product: String,
    pub(crate) sequence: Sequence,
    /// As decimal text; absent: the site does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) epoch: Option<String>,
    pub(crate) count: u64,
    pub(crate) others: Vec<Sequence>,
}

impl From<&ActionFailed> for FailedAction {
    fn from(failed: &ActionFailed) -> Self {
        let ActionFailed { rule, exit, last_error, product, sequence, epoch, count, others } = failed.clone();
        let epoch = epoch.map(|epoch| epoch.0.to_string());
        Self { rule, exit, last_error, product, sequence, epoch, count: count.max(1), others }
    }
}
