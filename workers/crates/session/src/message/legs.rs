//! What is said about multicast legs.
use downburst_model::{Epoch, FeedName, LegId, RangeSet, Sequence};
use downburst_vcmtp::{LegKey, Losses, RepairChannel, SenderKey, SiteSecret, SymbolsHeard};
use minicbor::{Decode, Encode};

/// Hub to site: take part in a multicast leg.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct LegJoin {
    /// The leg.
    #[n(0)]
    pub leg: LegId,
    /// The feed it carries.
    #[n(1)]
    pub feed: FeedName,
    /// The life of the hub's log that its sequences belong to.
    #[n(2)]
    pub epoch: Epoch,
    /// The life of the leg.
    #[n(3)]
    pub leg_epoch: u64,
    /// The group's address, IPv4 or IPv6, as text.
    #[n(4)]
    pub group: String,
    /// The group's UDP port.
    #[n(5)]
    pub port: u16,
    /// The leg's key: the latest that was made.
    #[n(6)]
    pub key: LegKey,
    /// Address or name of the interface to join on; empty: the one that reaches the hub.
    #[n(7)]
    pub interface: String,
    /// What the leg may send, in Ethernet-frame bits per second.
    #[n(8)]
    pub rate_bps: u64,
    /// The key in use, while `key` is told ahead of its use.
    #[n(9)]
    pub key_in_use: Option<LegKey>,
    /// The source address of the leg's datagrams; a site that joins a source-specific group names it. Absent:
    /// a hub that has none.
    #[n(10)]
    pub source: Option<String>,
    /// What the sender proves its manifests with; absent from a hub that does not.
    #[n(11)]
    pub sender_key: Option<SenderKey>,
    /// How to ask for packets by datagrams, at the address of the session. Absent: only by the session.
    #[n(12)]
    pub channel: Option<RepairChannel>,
    /// With it the site checks proofs that have MACs in the place of a signature. Absent: the sender signs as
    /// long as this site is there.
    #[n(13)]
    pub proof_secret: Option<Box<SiteSecret>>,
}

/// Site to hub: the leg was heard; everything after `after` comes by it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct LegJoined {
    /// The leg.
    #[n(0)]
    pub leg: LegId,
    /// The life of the leg.
    #[n(1)]
    pub leg_epoch: u64,
    /// The leg's coverage begins behind this.
    #[n(2)]
    pub after: Sequence,
    /// How the site's host receives the group.
    #[n(3)]
    pub reception: Option<Reception>,
}

/// How a site's host receives a group.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Reception {
    /// The receive buffer that the kernel granted, as it counts.
    #[n(0)]
    pub buffer_bytes: u64,
    /// Which of the kernel's ways is in use, for people.
    #[n(1)]
    pub path: String,
    /// One sentence on what the site's administrator should change, if anything.
    #[n(2)]
    pub advice: Option<String>,
}

/// Hub to site: the leg ends for this site; it answers [`LegLeft`].
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct LegLeave {
    /// The leg.
    #[n(0)]
    pub leg: LegId,
}

/// Site to hub: the site does not listen to the leg (any more).
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct LegLeft {
    /// The leg.
    #[n(0)]
    pub leg: LegId,
    /// The leg's announcements without a hole end here; the hub serves by unicast from behind it. `None`: the
    /// leg was never heard.
    #[n(1)]
    pub known_to: Option<Sequence>,
    /// Why, for people: asked by the hub, silence, could not join.
    #[n(2)]
    pub reason: String,
    /// The group brings more than the site can take: it is to be served alone for a while.
    #[n(3)]
    pub too_slow: Option<bool>,
}

/// Site to hub: packets of a leg that the site lacks.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Nak {
    /// The leg.
    #[n(0)]
    pub leg: LegId,
    /// The life of the leg.
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

/// Site to hub: somebody who has the leg's key makes packets of it. Said at most each ten seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Forged {
    /// The leg.
    #[n(0)]
    pub leg: LegId,
    /// The life of the leg.
    #[n(1)]
    pub leg_epoch: u64,
}

/// Hub to site: packets the leg can't repair any more.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct PacketsGone {
    /// The leg.
    #[n(0)]
    pub leg: LegId,
    /// The life of the leg.
    #[n(1)]
    pub leg_epoch: u64,
    /// Packet numbers.
    #[n(2)]
    pub packets: RangeSet,
}

/// Hub to site: the leg is about to be sealed with this key; the others stay good for a while.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct NextKey {
    /// The leg.
    #[n(0)]
    pub leg: LegId,
    /// The life of the leg.
    #[n(1)]
    pub leg_epoch: u64,
    /// The key.
    #[n(2)]
    pub key: LegKey,
}

/// Site to hub: the site has the key. The hub begins to use it when all sites of the leg say so, or after a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct KeyTaken {
    /// The leg.
    #[n(0)]
    pub leg: LegId,
    /// The life of the leg.
    #[n(1)]
    pub leg_epoch: u64,
    /// The key's id.
    #[n(2)]
    pub key_id: u8,
}

impl LegJoin {
    /// Takes a key that was told later.
    pub(crate) fn take_key(&mut self, key: &LegKey) {
        if self.key != *key {
            self.key_in_use = Some(std::mem::replace(&mut self.key, key.clone()));
        }
    }
}
