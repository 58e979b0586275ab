use bytes::{Bytes, BytesMut};
use downburst_model::{LegId, Micros, ProductInfo, RangeSet, Sequence};
use minicbor::{Decode, Encode};

use crate::sender::pacer::{IPV4_FRAME_OVERHEAD_BYTES, IPV6_FRAME_OVERHEAD_BYTES, default_burst_bytes};
use crate::{RepairChannel, Request};

/// The secret all members of a leg share. A sender start always takes a new one, and a packet number has one
/// content in the life of a leg, so a nonce (leg epoch and packet number) never stands for two contents under
/// a key.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
pub struct LegKey {
    /// Travels in clear in each datagram, so that two keys can be valid at once.
    #[n(0)]
    pub id: u8,
    /// The cipher's key.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub secret: [u8; 32],
    /// What seals the datagrams.
    #[n(2)]
    #[cbor(skip_if = "Cipher::is_usual")]
    pub cipher: Cipher,
}

/// How datagrams are sealed. Both have a key of 32 bytes, a nonce of 12 and a tag of 16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum Cipher {
    /// Where the processor helps with AES.
    #[default]
    #[n(0)]
    Aes256Gcm,
    /// Where it does not: several times faster there, and free of timings that depend on the key.
    #[n(1)]
    ChaCha20Poly1305,
}

impl Cipher {
    /// True for the cipher that messages leave out.
    fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

/// What the sender of a leg signs with, new at every start. Nobody else has it.
#[derive(Clone)]
pub struct SigningSeed(pub [u8; 32]);

/// What receivers check a sender's signatures with (Ed25519).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(transparent)]
pub struct SenderKey(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 32]);

/// The site's key to check that a proof is the sender's, where proofs have MACs for few sites. Only this site
/// and the hub have it.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
pub struct SiteSecret {
    /// Finds the site's MAC among the others.
    #[n(0)]
    pub slot: u16,
    /// Of one session and one life of a leg.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub secret: [u8; 32],
}

/// What a sender needs to know before it starts.
#[derive(Clone, Debug)]
pub struct SenderConfig {
    /// Which leg this is.
    pub leg: LegId,
    /// Random, new at every start of a sender.
    pub leg_epoch: u64,
    /// The first key.
    pub key: LegKey,
    /// With it the sender proves what it says of products; without it receivers believe whoever has the group's key.
    pub signing_seed: Option<SigningSeed>,
    /// The log's head when the leg begins: the leg carries everything after it.
    pub after: Sequence,
    /// The leg's rate, in Ethernet-frame bits per second (headers, trailer, IP and UDP included; no preamble
    /// and gap).
    pub rate_bps: u64,
    /// In Ethernet-frame bytes: over any time `t` at most `rate_bps * t` plus this many leave. A policer must
    /// have room for it, and a driver that wakes late makes up no more.
    pub burst_bytes: u64,
    /// What a datagram takes on the wire beside its payload: [`Self::frame_overhead_bytes_of`].
    pub frame_overhead_bytes: u64,
    /// The largest UDP payload, sealed and with its header.
    pub datagram_bytes: usize,
    /// How long a packet can be repaired after it was first sent.
    pub repair_window: Micros,
    /// How many bytes of sent packets are kept for repair at most (they pin the products' bytes).
    pub repair_window_bytes: u64,
    /// How long the sender waits for a second site to ask for the same packets before it repairs to one site only.
    pub repair_hold: Micros,
    /// A leg with nothing to send says so this often.
    pub head_interval: Micros,
    /// Up to this share of the packets is sent as symbols before any request, as far as blocks were found to
    /// need them; 0: none.
    pub most_parity: f64,
}

/// What a sender is told.
#[derive(Clone, Debug)]
pub enum SenderInput {
    /// The next product of the feed. Sequences rise. `bytes.len()` equals `info.size`.
    Product {
        /// Its description.
        info: ProductInfo,
        /// Its bytes, shared with the log.
        bytes: Bytes,
    },
    /// A site is about to listen: let it hear soon that the leg lives.
    Listener,
    /// The log's head passed without a product for this leg.
    Head(Sequence),
    /// A site lacks these packets.
    Nak {
        /// The driver's number for the site's session.
        site: u64,
        /// What it asks for.
        request: Request,
    },
    /// The leg may send at this rate from here on, in Ethernet-frame bits per second.
    Rate(u64),
    /// Whatever is sealed from here on, repairs too, is sealed with this key. [`Rotation`](crate::Rotation) says when.
    Key(LegKey),
    /// The largest UDP payload from here on, as [`SenderConfig::datagram_bytes`]: the way to a site is
    /// narrower, or such a site left.
    DatagramBytes(usize),
    /// How many sites hear the group.
    Members(u64),
    /// A site is given the key: proofs have to convince it from here on. One without a secret checks signatures.
    Reader {
        /// As in [`SenderInput::Nak`].
        site: u64,
        /// What it was given.
        secret: Option<SiteSecret>,
    },
    /// The site does not listen any more.
    ReaderLeft(u64),
    /// A receiver saw packets that this sender did not make: for a while it tells what every packet hashes to.
    Forged,
}

/// What a sender asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SenderOutput {
    /// Send this to the group. Consecutive ones of equal size may leave in one train.
    Datagram(Bytes),
    /// The first byte of this product leaves with the datagram that comes next.
    FirstByte(Sequence),
    /// All bytes of this product were handed out once.
    Sent(Sequence),
    /// Carry this packet to one site in its session.
    Repair {
        /// As in [`SenderInput::Nak`].
        site: u64,
        /// Packet number.
        packet: u64,
        /// What was inside the datagram, in clear.
        payload: Bytes,
    },
    /// These packets can't be repaired by the leg any more: tell the site, it asks the log.
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
    /// Products taken in.
    pub products: u64,
    /// Their bytes.
    pub product_bytes: u64,
    /// UDP payload handed out, repairs to the group included.
    pub datagram_bytes: u64,
    /// Datagrams handed out.
    pub datagrams: u64,
    /// The last packet number handed out; repairs have none of their own.
    pub packets: u64,
    /// UDP payload of repairs to the group, coded ones included.
    pub group_repair_bytes: u64,
    /// UDP payload of coded repairs to the group.
    pub coded_repair_bytes: u64,
    /// Payload of repairs that went through sessions.
    pub site_repair_bytes: u64,
    /// Product bytes taken in and not yet sent.
    pub backlog_bytes: u64,
    /// Requests of sites.
    pub requests: u64,
    /// Datagrams that told a large group of repairs on their way.
    pub notices: u64,
}

/// What a receiver needs to know before it starts.
#[derive(Clone, Debug)]
pub struct ReceiverConfig {
    /// Which leg.
    pub leg: LegId,
    /// Which life of it; packets of another are ignored.
    pub leg_epoch: u64,
    /// The first key.
    pub key: LegKey,
    /// The key of a sender that proves what it says; then nothing else is believed.
    pub sender_key: Option<SenderKey>,
    /// Where proofs may have a MAC for this site in the place of a signature.
    pub proof_secret: Option<SiteSecret>,
    /// How long a hole in the packet numbers may be mere reordering.
    pub reorder_wait: Micros,
    /// How long after a request the receiver asks again; the driver sets it from the measured round trip.
    pub retry_wait: Micros,
    /// How long the group may be silent before [`ReceiverOutput::Silent`].
    pub silence_limit: Micros,
    /// How many packets may be missing at once before the receiver gives the oldest up to the session.
    pub missing_limit: u64,
    /// How to ask by datagrams, if the hub offers it.
    pub channel: Option<RepairChannel>,
    /// Random, another for each site: in large groups it decides when a site asks.
    pub seed: u64,
}

/// What a receiver is told.
#[derive(Clone, Debug)]
pub enum ReceiverInput {
    /// A datagram from the group or the repair channel.
    Datagram(BytesMut),
    /// A repaired packet from the session.
    Repair {
        /// Packet number.
        packet: u64,
        /// As in [`SenderOutput::Repair`].
        payload: Bytes,
    },
    /// The sender can't repair these any more.
    Gone(RangeSet),
    /// A key that the sender is about to use; the others stay good for a while.
    Key(LegKey),
    /// The round trip to the sender was measured.
    RoundTrip(Micros),
}

/// What a receiver found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiverOutput {
    /// The first packet came. Everything after this sequence will be announced here; earlier products belong
    /// to the old leg.
    Joined {
        /// The last sequence announced before the first packet heard.
        after: Sequence,
    },
    /// A manifest entry: product `info` exists, and between `previous` and it the leg carries nothing.
    Announce {
        /// The product announced before it on this leg.
        previous: Sequence,
        /// The product.
        info: ProductInfo,
    },
    /// Bytes of an announced product. May repeat; may come in any order. A member of the group can cause
    /// blocks with sequences of no product.
    Block {
        /// Which product.
        sequence: Sequence,
        /// Where in it.
        offset: u64,
        /// The bytes.
        bytes: Bytes,
    },
    /// Between the product `previous` and `head` the leg carries nothing.
    Head {
        /// The last announced product.
        previous: Sequence,
        /// The log's head.
        head: Sequence,
    },
    /// Ask the hub for packets by the session.
    Nak(Request),
    /// Send this datagram to the hub, at the port of the repair channel.
    Ask(Bytes),
    /// Requests go by datagrams from here on, or (`false`) datagrams do not get through, and they go by the session.
    Channel {
        /// Whether datagrams get through.
        open: bool,
    },
    /// The group brings more than comes through, or than repair makes good. Said once.
    TooSlow,
    /// These packets will not come by the leg: products that lack bytes must be asked from the log.
    GaveUp(RangeSet),
    /// Nothing was heard for the silence limit. Said once per silence.
    Silent,
    /// A holder of the group's key forges packets: the sender should help to tell them apart. Reported at
    /// most every 10 s.
    Forged,
}

/// Counters of a receiver, all since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverStats {
    /// Datagrams that opened and belonged to the leg.
    pub datagrams: u64,
    /// Datagrams that did not open, were malformed, or belonged to another leg or life.
    pub refused: u64,
    /// Packets that came more than once.
    pub repeated: u64,
    /// Packets seen missing (each counted once).
    pub missed: u64,
    /// Packets that came by repair.
    pub repaired: u64,
    /// Packets restored from coded repairs.
    pub decoded: u64,
    /// Coded repairs that came.
    pub symbols: u64,
    /// Packets given up.
    pub given_up: u64,
    /// Packets and proofs that only a member of the group can have made.
    pub forged: u64,
    /// Requests by datagrams, probes included.
    pub asked: u64,
    /// Repairs that came by datagrams.
    pub channel_repairs: u64,
    /// Repairs that came by the session.
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
    /// The defaults of a leg over IPv4 on a network with Ethernet's MTU: 60 s or 256 MiB of repair, 5 ms for
    /// a second asker, a head each 250 ms, bursts of 10 ms of the rate or 64 KiB.
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

    /// What a datagram over IPv4 or IPv6 takes on an Ethernet beside its payload.
    pub fn frame_overhead_bytes_of(ipv6: bool) -> u64 {
        if ipv6 { IPV6_FRAME_OVERHEAD_BYTES } else { IPV4_FRAME_OVERHEAD_BYTES }
    }
}

impl ReceiverConfig {
    /// The defaults of a receiver: 10 ms for reordering, 100 ms until it asks again, 3 s of silence, 65,536
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
