//! Messages about multicast legs.
use downburst_model::{Epoch, FeedName, LegId, RangeSet, Sequence};
use downburst_vcmtp::{LegKey, Losses, RepairChannel, SenderKey, SiteSecret, SymbolsHeard};
use minicbor::{Decode, Encode};

use super::FanOutPass;

/// The first number of streams that repeat a stretch of a log for sites which return together. The ledger numbers other
/// legs from 1.
pub const FIRST_CATCH_UP: u32 = 1 << 30;

/// True for the number of a stream that repeats a stretch of a log beside the live leg.
pub fn is_catch_up(leg: LegId) -> bool {
    leg.0 >= FIRST_CATCH_UP
}

/// Hub to site: join a multicast leg.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct LegJoin {
    /// The leg.
    #[n(0)]
    pub leg: LegId,
    /// The feed it carries.
    #[n(1)]
    pub feed: FeedName,
    /// The epoch of its sequences.
    #[n(2)]
    pub epoch: Epoch,
    /// The leg's epoch.
    #[n(3)]
    pub leg_epoch: u64,
    /// The group's address, IPv4 or IPv6, as text.
    #[n(4)]
    pub group: String,
    /// The group's UDP port.
    #[n(5)]
    pub port: u16,
    /// The leg's newest key.
    #[n(6)]
    pub key: LegKey,
    /// Address or name of the interface for the join; empty: the one that reaches the hub.
    #[n(7)]
    pub interface: String,
    /// The leg's maximum rate, in Ethernet-frame bits per second.
    #[n(8)]
    pub rate_bps: u64,
    /// The key in use, if `key` is announced ahead of its use.
    #[n(9)]
    pub key_in_use: Option<LegKey>,
    /// The source address of the leg's datagrams, which a site names to join a source-specific group. Absent:
    /// the hub has none.
    #[n(10)]
    pub source: Option<String>,
    /// The key that proves the sender's manifests; absent: the hub does not prove them.
    #[n(11)]
    pub sender_key: Option<SenderKey>,
    /// The channel for repair requests by datagrams, at the address of the session. Absent: requests only go
    /// over the session.
    #[n(12)]
    pub channel: Option<RepairChannel>,
    /// The site's secret for proofs with MACs in place of a signature. Absent: the sender signs while this site
    /// is in the group.
    #[n(13)]
    pub proof_secret: Option<Box<SiteSecret>>,
    /// Present: a relay sends the leg by unicast. `group` and `port` are the relay's, to which the site announces
    /// itself with this pass.
    #[n(14)]
    pub pass: Option<Box<FanOutPass>>,
}

/// Site to hub: the site receives the leg, which delivers everything after `after`.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct LegJoined {
    /// The leg.
    #[n(0)]
    pub leg: LegId,
    /// The leg's epoch.
    #[n(1)]
    pub leg_epoch: u64,
    /// The leg's coverage begins behind this.
    #[n(2)]
    pub after: Sequence,
    /// The reception of the group at the site's host.
    #[n(3)]
    pub reception: Option<Reception>,
}

/// The reception of a group at a site's host.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Reception {
    /// The receive buffer that the kernel granted, in the kernel's own accounting.
    #[n(0)]
    pub buffer_bytes: u64,
    /// The kernel's receive path in use, in readable form.
    #[n(1)]
    pub path: String,
    /// One sentence of advice to the site's administrator, if there is any.
    #[n(2)]
    pub advice: Option<String>,
}

/// Site to hub: how its host reads the group of a leg (decision 72). Sent when the group is joined, and as this
/// changes, at most once a second.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct HostReading {
    /// The leg.
    #[n(0)]
    pub leg: LegId,
    /// Datagrams of the feed's groups that the kernel dropped since the receiver started, as the receive buffer had
    /// no room for them.
    #[n(1)]
    pub dropped: u64,
    /// The receive buffer.
    #[n(2)]
    pub buffer: ReceiveBuffer,
    /// The requested real-time priority of the thread that reads the group; `None`: none was requested.
    #[n(3)]
    pub priority: Option<u8>,
    /// The thread's priority at present.
    #[n(4)]
    pub standing: PriorityStanding,
    /// The number of times that a thread of the feed lost its priority because it did not pause, since the receiver
    /// started.
    #[n(5)]
    pub demotions: u64,
    /// What the host's line carried when a group of the feed last lost packets on it; `None`: it is not known.
    #[n(6)]
    pub line: Option<LineReading>,
}

/// What a host's line carried while a group lost packets, about a second long: its capacity (decision 71).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct LineReading {
    /// Everything that arrived from the hubs, in Ethernet-frame bits per second.
    #[n(0)]
    pub arrived_bps: u64,
    /// The rate at which the group was sent in that time.
    #[n(1)]
    pub offered_bps: u64,
    /// The packets of the group that were sent in that time.
    #[n(2)]
    pub packets: u64,
    /// Of these, the packets that did not arrive.
    #[n(3)]
    pub lost: u64,
    /// The stretches with losses that were measured, since the receiver started.
    #[n(4)]
    pub windows: u64,
}

/// The receive buffer of a group's socket, in bytes of the kernel's own accounting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct ReceiveBuffer {
    /// Requested by the receiver; the kernel grants and accounts the double.
    #[n(0)]
    pub asked_bytes: u64,
    /// Granted by the kernel.
    #[n(1)]
    pub granted_bytes: u64,
    /// Needed on a busy host at the leg's rate.
    #[n(2)]
    pub needed_bytes: u64,
    /// The most that can be requested without CAP_NET_ADMIN (`net.core.rmem_max`), of which the kernel grants the
    /// double; `None`: it can't be read.
    #[n(3)]
    pub limit_bytes: Option<u64>,
}

/// The priority of a thread that reads a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum PriorityStanding {
    /// That of any thread, as requested.
    #[default]
    #[n(0)]
    Normal,
    /// Real-time.
    #[n(1)]
    RealTime,
    /// Normal until it pauses again: it ran without a pause for too long.
    #[n(2)]
    Lost,
    /// Normal: the system refused real-time priority.
    #[n(3)]
    Refused,
}

/// Hub to site: the leg ends for this site, which answers [`LegLeft`].
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct LegLeave {
    /// The leg.
    #[n(0)]
    pub leg: LegId,
}

/// Site to hub: the site does not receive the leg (any more).
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct LegLeft {
    /// The leg.
    #[n(0)]
    pub leg: LegId,
    /// The end of the leg's announcements without a hole; the hub serves later numbers by unicast. `None`:
    /// nothing was ever received from the leg.
    #[n(1)]
    pub known_to: Option<Sequence>,
    /// The reason, in readable form: request of the hub, silence, failed join.
    #[n(2)]
    pub reason: String,
    /// The group's rate exceeds the site's capacity: the site asks for unicast for a while.
    #[n(3)]
    pub too_slow: Option<bool>,
}

/// Site to hub: a request for lost packets of a leg.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Nak {
    /// The leg.
    #[n(0)]
    pub leg: LegId,
    /// The leg's epoch.
    #[n(1)]
    pub leg_epoch: u64,
    /// Packet numbers.
    #[n(2)]
    pub packets: RangeSet,
    /// As in [`Request`](downburst_vcmtp::Request).
    #[n(3)]
    pub heard: Option<u64>,
    /// As in [`Request`](downburst_vcmtp::Request).
    #[n(4)]
    #[cbor(default, skip_if = "Vec::is_empty")]
    pub symbols: Vec<SymbolsHeard>,
    /// As in [`Request`](downburst_vcmtp::Request).
    #[n(5)]
    pub unanswered: Option<bool>,
    /// As in [`Request`](downburst_vcmtp::Request).
    #[n(6)]
    pub losses: Option<Losses>,
}

/// Site to hub: a holder of the leg's key forges its packets. Sent at most every ten seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Forged {
    /// The leg.
    #[n(0)]
    pub leg: LegId,
    /// The leg's epoch.
    #[n(1)]
    pub leg_epoch: u64,
}

/// Hub to site: packets that the leg can no longer repair.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct PacketsGone {
    /// The leg.
    #[n(0)]
    pub leg: LegId,
    /// The leg's epoch.
    #[n(1)]
    pub leg_epoch: u64,
    /// Packet numbers.
    #[n(2)]
    pub packets: RangeSet,
}

/// Hub to site: the leg is about to be sealed with this key; the previous keys stay valid for a while.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct NextKey {
    /// The leg.
    #[n(0)]
    pub leg: LegId,
    /// The leg's epoch.
    #[n(1)]
    pub leg_epoch: u64,
    /// The key.
    #[n(2)]
    pub key: LegKey,
}

/// Site to hub: the site has the key. The hub begins to use it once all sites of the leg have confirmed it, or
/// after a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct KeyTaken {
    /// The leg.
    #[n(0)]
    pub leg: LegId,
    /// The leg's epoch.
    #[n(1)]
    pub leg_epoch: u64,
    /// The key's id.
    #[n(2)]
    pub key_id: u8,
}

impl PriorityStanding {
    /// Its name for programs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::RealTime => "real-time",
            Self::Lost => "lost",
            Self::Refused => "refused",
        }
    }
}

/// The highest real-time priority of Linux (sched(7)); the lowest is 1.
pub const MAX_PRIORITY: u8 = 99;

impl LegJoin {
    /// Takes a key that was announced after the join.
    pub(crate) fn take_key(&mut self, key: &LegKey) {
        if self.key != *key {
            self.key_in_use = Some(std::mem::replace(&mut self.key, key.clone()));
        }
    }
}
