//! Events: lines to the agent that answer no job.
use std::collections::BTreeSet;
use std::path::PathBuf;

use downburst_hub::SiteBacklog;
use downburst_model::{FeedName, LegId, Sequence, SiteName, WallMicros};
use serde::Serialize;

use super::CircuitTraffic;
pub(crate) use downburst_hub::{FeedTraffic, LegTraffic, SessionTraffic};

/// A report to the agent that answers no job.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(crate) enum Event {
    /// A site presents a token.
    Enrol { ask: u64, secret_sha256: String, credential_sha256: String, peer: String },
    /// A site offers a replacement for the credential that it presents.
    CredentialOffered {
        ask: u64,
        site: SiteName,
        credential_sha256: String,
        offered_sha256: String,
        peer: String,
    },
    /// A site presents a credential that replaced another.
    CredentialTaken { site: SiteName, credential_sha256: String },
    /// The state of a session changed.
    Session {
        site: Option<SiteName>,
        state: &'static str,
        peer: String,
        reason: Option<String>,
        software: Option<String>,
        /// True if another hub serves the site.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        stand_by: bool,
        /// True if its node can change its credential within the session.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        renews: bool,
    },
    /// A site sent an impossible value: its session ends, or only the value is ignored.
    Violation { site: SiteName, sentence: String },
    /// A site joined or left a leg.
    Leg {
        feed: FeedName,
        leg: LegId,
        site: SiteName,
        state: &'static str,
        after: Option<Sequence>,
        reason: Option<String>,
        /// The reception of the group by the site's host.
        #[serde(skip_serializing_if = "Option::is_none")]
        reception: Option<ReceptionLine>,
    },
    /// The state of the connection to an upstream changed.
    Upstream { upstream: String, state: &'static str, hub: Option<String>, reason: Option<String> },
    /// The state of the connection to an upstream LDM changed.
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
    /// An LDM sent an impossible value: its connection ended.
    LdmViolation {
        peer: String,
        /// The source that requests from it.
        source: Option<String>,
        /// The site to which it belongs.
        site: Option<SiteName>,
        sentence: String,
    },
    /// An rtstats line arrived: the latency of products at a host outside Downburst.
    Rtstats { line: String },
    /// A site has received all products of a resend.
    Resend { site: SiteName, resend: u64, products: u64, bytes: u64, expired: u64 },
    /// A log was repaired at its opening.
    Recovered {
        feed: FeedName,
        sentence: String,
        /// True if nothing was cut or lost.
        whole: bool,
    },
    /// Damage was found in a feed's log.
    Damaged { feed: FeedName, sentence: String },
    /// A problem for the operator.
    Fault { sentence: String, feed: Option<FeedName>, site: Option<SiteName> },
    /// The state of an end of a circuit changed.
    Circuit {
        lease: u32,
        site: Option<SiteName>,
        state: &'static str,
        step: Option<String>,
        hop: Option<String>,
        sentence: Option<String>,
        remedy: Option<String>,
    },
    /// The traffic of the last second.
    Traffic(Traffic),
    /// The backlogs of sites, connected or not: those that changed, and a few others.
    Backlog { sites: Vec<SiteBacklog> },
    /// A batch of sketches is ready.
    Batch { batch: String, path: PathBuf },
}

/// The reception of a group by a site's host.
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
    /// Sessions that changed, and a few others.
    pub(crate) sessions: Vec<SessionTraffic>,
    pub(crate) circuits: Vec<CircuitTraffic>,
}
