//! Messages about legs that a relay sends into its network: one copy of a leg's datagrams travels over the relay's
//! session. They are sealed, and a relay has none of the keys.
use std::fmt;

use bytes::Bytes;
use downburst_model::LegId;
use minicbor::{Decode, Encode};

/// Hub to relay: send the datagrams of a leg into your network. A leg that it sends already keeps its receivers, and
/// takes the new number of sites. Answered with [`RelayLegOpen`] or
/// [`RelayLegFailed`].
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct RelayLeg {
    /// The leg.
    #[n(0)]
    pub leg: LegId,
    /// The group's address, IPv4 or IPv6, as text.
    #[n(1)]
    pub group: String,
    /// The group's UDP port.
    #[n(2)]
    pub port: u16,
    /// The leg's maximum rate, in Ethernet-frame bits per second.
    #[n(3)]
    pub rate_bps: u64,
    /// The number of hops that the datagrams may travel (TTL, hop limit).
    #[n(4)]
    pub hops: u8,
    /// Present: not to the group, but by unicast from this port to each site that announces itself there.
    #[n(5)]
    pub unicast: Option<UnicastFanOut>,
}

/// The fan-out of a leg by unicast.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct UnicastFanOut {
    /// The number of sites in the leg: at most so many receive it.
    #[n(0)]
    pub sites: u64,
    /// The proof that a receiver is one of them.
    #[n(1)]
    pub pass: FanOutPass,
}

/// The secret of one life of a leg that hub, relay and sites share. A host without it can't have the relay send to it.
/// It opens no datagram.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(transparent)]
pub struct FanOutPass(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 32]);

impl fmt::Debug for FanOutPass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FanOutPass")
    }
}

/// Hub to relay: the leg ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct RelayLegEnd {
    /// The leg.
    #[n(0)]
    pub leg: LegId,
}

/// Relay to hub: the relay sends the leg's datagrams as they arrive.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct RelayLegOpen {
    /// The leg.
    #[n(0)]
    pub leg: LegId,
    /// The source address of the datagrams, as text: members of a source-specific group name it, and sites of a fan-out
    /// by unicast announce themselves to it.
    #[n(1)]
    pub source: String,
    /// The longest IP packet that leaves the relay in one piece, as far as its host knows.
    #[n(2)]
    pub mtu_bytes: Option<u64>,
}

/// Relay to hub: the relay does not send the leg (any more).
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct RelayLegFailed {
    /// The leg.
    #[n(0)]
    pub leg: LegId,
    /// One sentence with the fault and its remedy.
    #[n(1)]
    pub sentence: String,
}

/// Hub to relay: sealed datagrams of a leg, of equal length except for the last, which may be shorter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagrams {
    /// The leg.
    pub leg: LegId,
    /// The length of a datagram.
    pub segment_bytes: u16,
    /// The datagrams, one after the other: at most [`TRAIN_DATAGRAMS`], and at most 65,535 bytes.
    pub bytes: Bytes,
}

impl Datagrams {
    /// The number of datagrams.
    pub fn count(&self) -> usize {
        self.bytes.len().div_ceil(usize::from(self.segment_bytes).max(1))
    }

    /// True if the fields agree with each other and with the bounds.
    pub(crate) fn is_sound(&self) -> bool {
        let one = usize::from(self.segment_bytes);
        one > 0 && self.bytes.len() >= one && self.count() <= TRAIN_DATAGRAMS
    }
}

/// The most datagrams of one frame: a hub's trains have fewer.
pub const TRAIN_DATAGRAMS: usize = 64;
