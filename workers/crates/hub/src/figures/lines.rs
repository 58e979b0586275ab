//! Reports of traffic to the agent, each second.
use downburst_model::{FeedName, LegId, Sequence, SiteName, Transport, WallMicros};
use downburst_session::{ActionFailed, HostReading, LineReading, LinkedSpace, SiteClock};
use serde::Serialize;

use crate::leg::LegTrial;
use crate::path_facts::PathFacts;
use crate::tcp_profiles::SessionProfile;

/// Arrivals of a feed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FeedTraffic {
    /// The feed.
    pub feed: FeedName,
    /// The number of products.
    pub products: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The sizes of the first of them.
    pub sizes: Vec<u64>,
    /// The last number in the log.
    pub head: Sequence,
    /// The epoch of the head, as decimal text.
    pub epoch: String,
}

/// The traffic of a leg.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LegTraffic {
    /// The leg.
    pub leg: LegId,
    /// Its feed.
    pub feed: FeedName,
    /// Bytes that left the hub, including repairs.
    pub egress_bytes: u64,
    /// Bytes of all repairs. Those that are not in the next fields went to single sites over their sessions.
    pub repair_bytes: u64,
    /// Bytes of repairs to the group.
    pub group_repair_bytes: u64,
    /// The coded ones among these.
    pub coded_repair_bytes: u64,
    /// Bytes of repairs to single sites as datagrams.
    pub channel_repair_bytes: u64,
    /// The number of products that were sent completely.
    pub products: u64,
    /// Their bytes.
    pub product_bytes: u64,
    /// The number of sites that the leg serves.
    pub sites: u64,
    /// Product bytes that wait in the leg's sender.
    pub backlog_bytes: u64,
    /// The present rate of a multicast leg, in Ethernet-frame bits per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// The losses of its sites while the leg used its whole rate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<LegTrial>,
}

/// The state of a connected site.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionTraffic {
    /// The site.
    pub site: SiteName,
    /// The offset of its clock.
    pub clock_offset_us: Option<i64>,
    /// The bound of the offset's error.
    pub clock_bound_us: Option<u64>,
    /// The round trip of the comparison.
    pub round_trip_us: Option<u64>,
    /// The state of its clock, as the site reports it; absent: not reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site_clock: Option<SiteClockLine>,
    /// The kernel's measurements of all connections of the session together.
    pub path: Option<PathFacts>,
    /// The number of open data connections.
    pub data_connections: usize,
    /// The planned number.
    pub data_connections_planned: usize,
    /// The reason for the planned number.
    pub data_connections_reason: String,
    /// The TCP profile of its connections.
    pub tcp_profile: Option<SessionProfile>,
    /// Single products that had the connections to themselves since the last report; a bounded sample.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transfers: Vec<Transfer>,
    /// Its positions.
    pub feeds: Vec<SessionFeed>,
}

/// The state of a site's own clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SiteClockLine {
    /// True if a daemon keeps it in step.
    pub synchronised: bool,
    /// The largest error.
    pub error_us: u64,
    /// The expected error.
    pub estimated_error_us: u64,
    /// The program that disciplines it; `None`: the site sees none.
    pub daemon: Option<String>,
}

impl From<&SiteClock> for SiteClockLine {
    fn from(clock: &SiteClock) -> Self {
        let SiteClock { synchronised, error_us, estimated_error_us, daemon } = clock.clone();
        Self { synchronised, error_us, estimated_error_us, daemon }
    }
}

/// How a site's host reads the group of a feed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostReadingLine {
    /// The leg.
    pub leg: LegId,
    /// Datagrams that the kernel dropped for want of room, since the receiver started.
    pub dropped: u64,
    /// The receive buffer that the receiver asked for.
    pub asked_bytes: u64,
    /// The receive buffer that the kernel granted.
    pub granted_bytes: u64,
    /// The receive buffer that the leg's rate needs on a busy host.
    pub needed_bytes: u64,
    /// `net.core.rmem_max` at the site; `None`: not known.
    pub limit_bytes: Option<u64>,
    /// The requested real-time priority.
    pub priority: Option<u8>,
    /// `normal`, `real-time`, `lost` or `refused`.
    pub standing: &'static str,
    /// The number of times that a reading thread lost its priority.
    pub demotions: u64,
    /// What the host's line carried when a group of the feed last lost packets; `None`: it is not known.
    pub line: Option<LineReadingLine>,
}

/// What a host's line carried while a group lost packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LineReadingLine {
    /// Everything that arrived, in Ethernet-frame bits per second.
    pub arrived_bps: u64,
    /// The rate at which the group was sent.
    pub offered_bps: u64,
    /// The packets of the group that were sent.
    pub packets: u64,
    /// Of these, the packets that did not arrive.
    pub lost: u64,
    /// The measured stretches, since the receiver started.
    pub windows: u64,
}

impl From<&HostReading> for HostReadingLine {
    fn from(reading: &HostReading) -> Self {
        let HostReading { leg, dropped, buffer, priority, standing, demotions, line } = *reading;
        Self {
            leg,
            dropped,
            asked_bytes: buffer.asked_bytes,
            granted_bytes: buffer.granted_bytes,
            needed_bytes: buffer.needed_bytes,
            limit_bytes: buffer.limit_bytes,
            priority,
            standing: standing.word(),
            demotions,
            line: line.map(LineReadingLine::from),
        }
    }
}

impl From<LineReading> for LineReadingLine {
    fn from(line: LineReading) -> Self {
        let LineReading { arrived_bps, offered_bps, packets, lost, windows } = line;
        Self { arrived_bps, offered_bps, packets, lost, windows }
    }
}

/// A product that had the connections of a session to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Transfer {
    /// Its size.
    pub bytes: u64,
    /// From its first byte at the hub to its last byte at the site.
    pub took_us: u64,
}

/// The position of a site in a feed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionFeed {
    /// The feed.
    pub feed: FeedName,
    /// Everything up to this sequence is settled.
    pub settled_to: Sequence,
    /// The number of known products that are not settled.
    pub pending: u64,
    /// The number of products that local software received out of its requested order.
    pub late: u64,
    /// The transport that brings the feed to the site.
    pub transport: Transport,
    /// The leg that brings it.
    pub leg: LegId,
    /// The reason why the site stores nothing of the feed, in its words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// The newest failure of the site's own actions on a product of the feed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_failed: Option<FailedAction>,
    /// The space of products that left the site's log, and whose files still link it; absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linked: Option<LinkedFiles>,
    /// How the site's host reads the feed's group; absent: it has read none in this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reading: Option<HostReadingLine>,
    /// The time of the newest heartbeat that came out at the site; absent: none has yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat_us: Option<WallMicros>,
    /// The time of the oldest heartbeat that did not come out; absent: all did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat_waits_us: Option<WallMicros>,
    /// The time for which this node has waited for that heartbeat, on its own clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat_waited_us: Option<u64>,
}

/// Files at a site that are all that is left of products of its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LinkedFiles {
    /// Their bytes at present.
    pub bytes: u64,
    /// The bytes that are free on their disk.
    pub free_bytes: u64,
}

impl From<&LinkedSpace> for LinkedFiles {
    fn from(space: &LinkedSpace) -> Self {
        Self { bytes: space.bytes, free_bytes: space.free_bytes }
    }
}

/// A failure of a site's action.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FailedAction {
    /// The rule's file and line.
    pub rule: String,
    /// The exit status of its program, or minus the signal that ended it.
    pub exit: Option<i32>,
    /// The error, in one sentence.
    pub last_error: String,
    /// The product's identifier.
    pub product: String,
    /// Its number at the hub.
    pub sequence: Sequence,
    /// As decimal text; absent: the site does not report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<String>,
    /// The number of products of the feed for which rules failed, including this one.
    pub count: u64,
    /// The sequences of the newest of the others, in rising order.
    pub others: Vec<Sequence>,
}

impl From<&ActionFailed> for FailedAction {
    fn from(failed: &ActionFailed) -> Self {
        let ActionFailed { rule, exit, last_error, product, sequence, epoch, count, others } = failed.clone();
        let epoch = epoch.map(|epoch| epoch.0.to_string());
        Self { rule, exit, last_error, product, sequence, epoch, count: count.max(1), others }
    }
}
