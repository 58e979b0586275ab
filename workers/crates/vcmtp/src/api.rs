use bytes::{Bytes, BytesMut};
use downburst_model::{Content, LegId, Micros, ProductInfo, RangeSet, Sequence};
use minicbor::{Decode, Encode};

use crate::sender::pacer::{IPV4_FRAME_OVERHEAD_BYTES, IPV6_FRAME_OVERHEAD_BYTES, default_burst_bytes};
use crate::{Datagram, RepairChannel, Request};

/// The secret shared by all members of a leg. Each start of a sender takes a new one, and a packet number has
/// one content in the life of a leg, so under a key a nonce (leg epoch and packet number) never has two contents.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
pub struct LegKey {
    /// Sent in clear in each datagram, so that two keys can be valid at the same time.
    #[n(0)]
    pub id: u8,
    /// The cipher's key.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub secret: [u8; 32],
    /// The cipher of the datagrams.
    #[n(2)]
    #[cbor(skip_if = "Cipher::is_usual")]
    pub cipher: Cipher,
}

/// The cipher of datagrams. Both have a key of 32 bytes, a nonce of 12 and a tag of 16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum Cipher {
    /// For processors with AES instructions.
    #[default]
    #[n(0)]
    Aes256Gcm,
    /// For processors without: several times faster there, and its timing does not depend on the key.
    #[n(1)]
    ChaCha20Poly1305,
}

impl Cipher {
    /// True for the default cipher, which messages omit.
    fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

/// The seed of a sender's signing key, new at every start. Only the sender has it.
#[derive(Clone)]
pub struct SigningSeed(pub [u8; 32]);

/// The public key of a sender's signatures (Ed25519).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(transparent)]
pub struct SenderKey(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 32]);

/// The site's key to verify the sender's proofs by a MAC, which replaces the signature in groups of few sites.
/// Only this site and the hub have it.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
pub struct SiteSecret {
    /// Finds the site's MAC among the others.
    #[n(0)]
    pub slot: u16,
    /// Valid for one session and one life of a leg.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub secret: [u8; 32],
}

/// The configuration of a sender.
#[derive(Clone, Debug)]
pub struct SenderConfig {
    /// The leg.
    pub leg: LegId,
    /// Random, new at every start of a sender.
    pub leg_epoch: u64,
    /// The first key.
    pub key: LegKey,
    /// With it the sender proves its statements on products; without it receivers trust any holder of the group key.
    pub signing_seed: Option<SigningSeed>,
    /// The log's head at the start of the leg: the leg carries all later products.
    pub after: Sequence,
    /// The leg's rate, in Ethernet-frame bits per second (headers, trailer, IP and UDP included; no preamble
    /// and gap).
    pub rate_bps: u64,
    /// The burst, in Ethernet-frame bytes: over any time `t` at most `rate_bps * t` plus this many are sent. A
    /// policer must have room for it, and it is the most that a driver that wakes late can make up.
    pub burst_bytes: u64,
    /// The overhead of a datagram on the wire beside its payload: [`Self::frame_overhead_bytes_of`].
    pub frame_overhead_bytes: u64,
    /// The largest UDP payload, sealed and with its header.
    pub datagram_bytes: usize,
    /// The time after its first transmission in which a packet can be repaired.
    pub repair_window: Micros,
    /// The maximum number of bytes of sent packets kept for repair (they pin the products' bytes).
    pub repair_window_bytes: u64,
    /// The wait for a request of a second site for the same packets, before the sender repairs to one site only.
    pub repair_hold: Micros,
    /// The interval of heads on an idle leg.
    pub head_interval: Micros,
    /// The maximum share of symbols sent before any request, relative to the packets; within it, their number follows
    /// the measured need of blocks. 0: none.
    pub most_parity: f64,
}

/// The input of a sender.
#[derive(Clone, Debug)]
pub enum SenderInput {
    /// The next product of the feed. Sequences increase. `bytes.len()` equals `info.size`.
    Product {
        /// Its description.
        info: ProductInfo,
        /// Its bytes, shared with the log.
        bytes: Content,
    },
    /// A site is about to listen; the sender announces the head soon, as a sign of life.
    Listener,
    /// The log's head advanced without a product for this leg.
    Head(Sequence),
    /// A site requests lost packets.
    Nak {
        /// The driver's number for the site's session.
        site: u64,
        /// Its request.
        request: Request,
    },
    /// The new rate of the leg, in Ethernet-frame bits per second.
    Rate(u64),
    /// The new key of all datagrams, including repairs. [`Rotation`](crate::Rotation) determines its time.
    Key(LegKey),
    /// The new largest UDP payload, as [`SenderConfig::datagram_bytes`]: the path to a site has a smaller MTU,
    /// or such a site left.
    DatagramBytes(usize),
    /// The deadline of the feed's products, from the hub's stored stamp: later ones are neither sent nor repaired. It
    /// counts for products to come, and for the repair of all packets.
    Deadline(Option<Micros>),
    /// The number of sites in the group.
    Members(u64),
    /// A site gets the key: later proofs must be verifiable by it. A site without a secret verifies signatures.
    Reader {
        /// As in [`SenderInput::Nak`].
        site: u64,
        /// Its secret.
        secret: Option<SiteSecret>,
    },
    /// The site no longer listens.
    ReaderLeft(u64),
    /// A receiver reported forged packets: for a while the sender sends the hash of every packet.
    Forged,
}

/// The output of a sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SenderOutput {
    /// Send this to the group. Consecutive datagrams of equal size may be sent in one train; they lie side by side in
    /// memory as far as possible.
    Datagram(BytesMut),
    /// The first byte of this product is in the next datagram.
    FirstByte(Sequence),
    /// All bytes of this product have been output once.
    Sent(Sequence),
    /// Send this packet to one site over its session.
    Repair {
        /// As in [`SenderInput::Nak`].
        site: u64,
        /// Packet number.
        packet: u64,
        /// The payload of the datagram, in clear.
        payload: Bytes,
    },
    /// The leg can no longer repair these packets: notify the site, which requests the products from the log.
    Gone {
        /// As in [`SenderInput::Nak`].
        site: u64,
        /// Packet numbers.
        packets: RangeSet,
    },
}

/// Counters of a sender, all since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderStats {
    /// Products accepted.
    pub products: u64,
    /// Their bytes.
    pub product_bytes: u64,
    /// UDP payload sent, including repairs to the group.
    pub datagram_bytes: u64,
    /// Datagrams sent.
    pub datagrams: u64,
    /// The last packet number assigned; repairs have none of their own.
    pub packets: u64,
    /// UDP payload of repairs to the group, including coded ones.
    pub group_repair_bytes: u64,
    /// UDP payload of coded repairs to the group.
    pub coded_repair_bytes: u64,
    /// Payload of repairs sent over sessions.
    pub site_repair_bytes: u64,
    /// Product bytes accepted and not yet sent.
    pub backlog_bytes: u64,
    /// Requests of sites.
    pub requests: u64,
    /// Notices of pending repairs to a large group.
    pub notices: u64,
}

/// The configuration of a receiver.
#[derive(Clone, Debug)]
pub struct ReceiverConfig {
    /// The leg.
    pub leg: LegId,
    /// The life of the leg; packets of another are ignored.
    pub leg_epoch: u64,
    /// The first key.
    pub key: LegKey,
    /// The key of a sender that proves its statements; with it, unproven statements are not trusted.
    pub sender_key: Option<SenderKey>,
    /// The site's secret, if proofs may have a MAC for this site instead of a signature.
    pub proof_secret: Option<SiteSecret>,
    /// The time for which a gap in the packet numbers may be reordering.
    pub reorder_wait: Micros,
    /// The time after a request until the receiver repeats it; the driver sets it from the measured round trip.
    pub retry_wait: Micros,
    /// The silence of the group after which the receiver outputs [`ReceiverOutput::Silent`].
    pub silence_limit: Micros,
    /// The maximum number of missing packets; beyond it the receiver leaves the oldest to the session.
    pub missing_limit: u64,
    /// The repair channel for requests by datagrams, if the hub offers it.
    pub channel: Option<RepairChannel>,
    /// Random, different for each site: in large groups it determines the times of a site's requests.
    pub seed: u64,
}

/// The input of a receiver.
#[derive(Clone, Debug)]
pub enum ReceiverInput {
    /// A datagram from the group or the repair channel.
    Datagram(Datagram),
    /// A repaired packet received over the session.
    Repair {
        /// Packet number.
        packet: u64,
        /// As in [`SenderOutput::Repair`].
        payload: Bytes,
    },
    /// The sender can no longer repair these packets.
    Gone(RangeSet),
    /// A key that the sender is about to use; the others stay valid for a while.
    Key(LegKey),
    /// The round trip to the sender was measured.
    RoundTrip(Micros),
}

/// The output of a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiverOutput {
    /// The first packet has arrived. All products after this sequence will be announced here; earlier products
    /// belong to the old leg.
    Joined {
        /// The last sequence announced before the first packet received.
        after: Sequence,
    },
    /// A manifest entry: product `info` exists, and the leg carries none between `previous` and it.
    Announce {
        /// The product announced before it on this leg.
        previous: Sequence,
        /// The product.
        info: ProductInfo,
    },
    /// Bytes of an announced product. Blocks may repeat, in any order. A member of the group can cause blocks
    /// with sequences of no product.
    Block {
        /// The sequence of the product.
        sequence: Sequence,
        /// The offset in the product.
        offset: u64,
        /// The bytes.
        bytes: Bytes,
    },
    /// The leg carries no product between `previous` and `head`.
    Head {
        /// The last announced product.
        previous: Sequence,
        /// The log's head.
        head: Sequence,
    },
    /// Request packets from the hub over the session.
    Nak(Request),
    /// Send this datagram to the hub's port of the repair channel.
    Ask(Bytes),
    /// Requests are sent as datagrams from now on, or (`false`) over the session, as datagrams do not get through.
    Channel {
        /// True if datagrams get through.
        open: bool,
    },
    /// The group sends more than the receiver's link carries, or than repair can restore. Reported once.
    TooSlow,
    /// The leg will not deliver these packets: incomplete products must be requested from the log.
    GaveUp(RangeSet),
    /// Nothing was received for the silence limit. Reported once per silence.
    Silent,
    /// A holder of the group's key forges packets: the sender should help to identify them. Reported at most
    /// every 10 s.
    Forged,
}

/// Counters of a receiver, all since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverStats {
    /// Datagrams that opened and belonged to the leg.
    pub datagrams: u64,
    /// Datagrams that did not open, were malformed, or belonged to another leg or life.
    pub refused: u64,
    /// Packets received more than once.
    pub repeated: u64,
    /// Packets detected as missing (each counted once).
    pub missed: u64,
    /// Packets received as repairs.
    pub repaired: u64,
    /// Packets restored from coded repairs.
    pub decoded: u64,
    /// Coded repairs received.
    pub symbols: u64,
    /// Packets given up.
    pub given_up: u64,
    /// Packets and proofs forged by a member of the group.
    pub forged: u64,
    /// Requests as datagrams, including probes.
    pub asked: u64,
    /// Repairs received as datagrams.
    pub channel_repairs: u64,
    /// Repairs received over the session.
    pub session_repairs: u64,
    /// Requests made.
    pub requests: u64,
}

impl LegKey {
    /// A key for AES-256-GCM.
    pub fn new(id: u8, secret: [u8; 32]) -> Self {
        Self { id, secret, cipher: Cipher::default() }
    }
}

impl std::fmt::Debug for SigningSeed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SigningSeed(..)")
    }
}

impl std::fmt::Debug for SiteSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SiteSecret({})", self.slot)
    }
}

impl std::fmt::Debug for LegKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LegKey({})", self.id)
    }
}

impl SenderConfig {
    /// The defaults of a leg over IPv4 on a network with Ethernet's MTU: 60 s or 256 MiB of repair, 5 ms for the
    /// request of a second site, a head every 250 ms, bursts of 10 ms of the rate or 64 KiB.
    pub fn new(leg: LegId, leg_epoch: u64, key: LegKey, after: Sequence, rate_bps: u64) -> Self {
        Self {
            leg,
            leg_epoch,
            key,
            signing_seed: None,
            after,
            rate_bps,
            burst_bytes: default_burst_bytes(rate_bps),
            frame_overhead_bytes: Self::frame_overhead_bytes_of(false),
            datagram_bytes: 1_452,
            repair_window: Micros::from_secs(60),
            repair_window_bytes: 256 << 20,
            repair_hold: Micros::from_millis(5),
            head_interval: Micros::from_millis(250),
            most_parity: 0.0,
        }
    }

    /// The overhead of a datagram over IPv4 or IPv6 on an Ethernet, beside its payload.
    pub fn frame_overhead_bytes_of(ipv6: bool) -> u64 {
        if ipv6 { IPV6_FRAME_OVERHEAD_BYTES } else { IPV4_FRAME_OVERHEAD_BYTES }
    }
}

impl ReceiverConfig {
    /// The defaults of a receiver: 10 ms for reordering, 100 ms until a repeated request, 3 s of silence, 65,536
    /// missing packets.
    pub fn new(leg: LegId, leg_epoch: u64, key: LegKey, seed: u64) -> Self {
        Self {
            leg,
            leg_epoch,
            key,
            sender_key: None,
            proof_secret: None,
            reorder_wait: Micros::from_millis(10),
            retry_wait: Micros::from_millis(100),
            silence_limit: Micros::from_secs(3),
            missing_limit: 65_536,
            channel: None,
            seed,
        }
    }
}
