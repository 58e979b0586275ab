use std::fmt;

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::{FeedName, Hops, LdmStamp, Origin, ProductId, Properties, WallMicros};

/// Identifies one life of a feed's log: random, new only when the log is created.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, Serialize, Deserialize,
)]
#[cbor(transparent)]
#[serde(transparent)]
pub struct Epoch(#[n(0)] pub u64);

/// A product's number in its feed's log. Increasing, not dense, never assigned twice within an epoch. The first is
/// 1.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, Serialize, Deserialize,
)]
#[cbor(transparent)]
#[serde(transparent)]
pub struct Sequence(#[n(0)] pub u64);

/// Names one leg of one plan on a hub. Never reused while the hub's data directory lives.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, Serialize, Deserialize,
)]
#[cbor(transparent)]
#[serde(transparent)]
pub struct LegId(#[n(0)] pub u32);

/// BLAKE3-256 of a product's bytes: integrity, not identity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct Digest(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Priority of a feed's products, the most urgent first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, Serialize, Deserialize,
)]
#[cbor(index_only)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Warnings.
    #[n(0)]
    Warning,
    /// Observations and bulletins.
    #[n(1)]
    Observation,
    /// Model grids and radar volumes.
    #[n(2)]
    Grid,
    /// Everything without urgency.
    #[n(3)]
    Bulk,
}

/// The reason for sending a product. Only live products count in live latency.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, Serialize, Deserialize,
)]
#[cbor(index_only)]
#[serde(rename_all = "kebab-case")]
pub enum Lane {
    /// Sent on arrival.
    #[n(0)]
    Live,
    /// Sent to a site that catches up.
    #[n(1)]
    Backfill,
    /// Sent again on request.
    #[n(2)]
    Resend,
}

/// The display name of a leg.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, Serialize, Deserialize,
)]
#[cbor(index_only)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// One TCP connection per site.
    #[n(0)]
    Unicast,
    /// VCMTP.
    #[n(1)]
    Multicast,
    /// Unicast over a permanent circuit.
    #[n(2)]
    StaticCircuit,
    /// Unicast over a circuit reserved for a limited time.
    #[n(3)]
    DynamicCircuit,
}

/// Identifies a product at the hub that assigned the sequence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub struct ProductKey {
    /// The feed.
    #[n(0)]
    pub feed: FeedName,
    /// The life of the feed's log at the hub.
    #[n(1)]
    pub epoch: Epoch,
    /// The number in it.
    #[n(2)]
    pub sequence: Sequence,
}

/// Everything about a product except its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ProductInfo {
    /// The product's key at the hub.
    #[n(0)]
    pub key: ProductKey,
    /// The identifier that subscriptions match.
    #[n(1)]
    pub id: ProductId,
    /// The host that first ingested it; its clock made `created`.
    #[n(2)]
    pub origin: Origin,
    /// Set once by the first ingester, never rewritten.
    #[n(3)]
    pub created: WallMicros,
    /// The time at which the hub had it complete and verified in its log.
    #[n(4)]
    pub stored: WallMicros,
    /// The size in bytes. Zero is legal.
    #[n(5)]
    pub size: u64,
    /// BLAKE3-256 of the bytes.
    #[n(6)]
    pub digest: Digest,
    /// The feed's class, or the higher class from a rule on the id.
    #[n(7)]
    pub class: Class,
    /// The hubs that it passed before the one that keeps it. `None`, and then absent from the encoding: that hub
    /// ingested it.
    #[n(8)]
    pub hops: Option<Hops>,
    /// LDM's metadata, if an LDM delivered the product. Otherwise absent from the encoding.
    #[n(9)]
    pub ldm: Option<LdmStamp>,
    /// The statements of its source about it, if there are any. Otherwise absent from the encoding.
    #[n(10)]
    pub properties: Option<Properties>,
}
