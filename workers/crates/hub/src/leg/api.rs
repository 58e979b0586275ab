use std::collections::BTreeMap;

use bytes::Bytes;
use downburst_model::{ProductInfo, RangeSet, Sequence, SiteName};
use downburst_vcmtp::{LegKey, Request, SenderConfig, SiteSecret, Straggler, Urgency};

/// What a leg needs to know before it starts.
#[derive(Clone, Debug)]
pub struct LegSettings {
    /// The sender; the length of its datagrams is the leg's own decision.
    pub sender: SenderConfig,
    /// The share of the sites whose losses the rate follows: 0.5 the one in the middle.
    pub loss_quantile: f64,
    /// The interface that datagrams leave by.
    pub interface: LegInterface,
}

/// What a leg is told. `C` stands for a repair channel: the leg hands it back with the repairs that go by it.
#[derive(Clone, Debug)]
pub enum LegInput<C> {
    /// The log's head now.
    Head(Sequence),
    /// One product of the range that was asked for, in order. Evicted ones are left out: sites find the hole and
    /// learn that it expired.
    Product {
        /// Its description.
        info: ProductInfo,
        /// Its bytes, shared with the log.
        bytes: Bytes,
    },
    /// The read that was asked for is complete up to here.
    ReadTo(Sequence),
    /// The read failed: it is asked for again with the next [`LegInput::Head`].
    ReadFailed,
    /// A site lacks packets, or tells what it lost.
    Nak {
        /// The number of the site's session.
        session: u64,
        /// What it says.
        request: Request,
        /// Where it came from; `None`: from the session.
        channel: Option<C>,
    },
    /// A session is told to join: proofs have to convince it from here on.
    Reader {
        /// The number of the session.
        session: u64,
        /// What its proofs have MACs with; without one it checks signatures.
        secret: Option<SiteSecret>,
    },
    /// A site sees packets that this leg did not send.
    Forged,
    /// A site is about to listen: it shall hear the leg soon, although nothing is to be sent.
    Listener,
    /// The plan asks for this rate, in Ethernet-frame bits per second.
    Rate(u64),
    /// A site was given the current keys.
    KeysTold {
        /// Which site.
        site: SiteName,
        /// The digest of the credential it showed: its right may end with that.
        credential: String,
    },
    /// A session goes on with another credential.
    CredentialRenewed {
        /// Whose.
        site: SiteName,
        /// The digest of the former one.
        former: String,
        /// The digest of the new one.
        credential: String,
    },
    /// A site has a key that was told ahead.
    KeyTaken {
        /// Which site.
        site: SiteName,
        /// [`LegKey::id`].
        key_id: u8,
    },
    /// Sites, or what they may have, changed.
    RightsChanged,
    /// Answer to [`LegOutput::Draw`]; `None` if the source of randomness failed, then it is asked again.
    Drawn(Option<[u8; 32]>),
}

/// What a leg asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum LegOutput<C> {
    /// Send this to the group. Consecutive ones of equal size may leave in one train.
    Datagram(Bytes),
    /// Read the log: [`LegInput::Product`]s and then [`LegInput::ReadTo`], or [`LegInput::ReadFailed`].
    Read(LogRange),
    /// The first byte of this product leaves with the datagram that comes next.
    FirstByte(Sequence),
    /// All bytes of this product were handed out once.
    Sent(Sequence),
    /// Carry this packet to one site.
    Repair {
        /// The number of its session.
        session: u64,
        /// Which way: `None` is the session.
        channel: Option<C>,
        /// Packet number.
        packet: u64,
        /// What was inside the datagram, in clear.
        payload: Bytes,
    },
    /// These packets can't be repaired by the leg any more: the site asks the log.
    Gone {
        /// The number of its session.
        session: u64,
        /// Packet numbers.
        packets: RangeSet,
    },
    /// Look at the sessions now and call [`Leg::look`](super::Leg::look) before the next poll.
    Look,
    /// Draw a secret from the system's source of randomness.
    Draw,
    /// Sites that join from here on are given these keys.
    Keys(CurrentKeys),
    /// Tell a session the key that comes next.
    TellKey {
        /// Whose.
        site: SiteName,
        /// The number of the session.
        session: u64,
        /// The key.
        key: LegKey,
    },
    /// A site may not read the leg any more.
    Barred {
        /// Which site.
        site: SiteName,
        /// How soon it is excluded.
        urgency: Urgency,
    },
    /// Datagrams have this length at most from here on: so the ways to the sites demand.
    DatagramBytes(usize),
    /// The rate follows the losses of the sites, in Ethernet-frame bits per second.
    Rate(u64),
    /// A site loses too much of the leg: serve it alone.
    TakeOff(Straggler),
}

/// A part of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRange {
    /// Begin behind this product.
    pub after: Sequence,
    /// Read no further than this.
    pub to: Sequence,
    /// About this many bytes are enough.
    pub limit_bytes: usize,
    /// So are this many products.
    pub limit_products: usize,
}

/// One session of the hub, as a leg sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegSession {
    /// Its number.
    pub session: u64,
    /// The digest of the credential it shows.
    pub credential: String,
    /// The site was told to join this leg, and not told to leave it.
    pub offered: bool,
    /// The site counts on this leg.
    pub hears: bool,
    /// What the session's path carries in one piece, as TCP found it: the leg's datagrams go the same way.
    pub path_mtu_bytes: Option<u64>,
}

/// The hub's sessions at one moment.
pub struct LegSessions<'a> {
    /// Those that are open.
    pub open: &'a BTreeMap<SiteName, LegSession>,
    /// How soon a site with this credential (its digest) has to be excluded; `None` if it may read the leg.
    pub barred: &'a dyn Fn(&SiteName, &str) -> Option<Urgency>,
}

/// The interface that a leg's datagrams leave the hub by.
#[derive(Clone, Copy, Debug)]
pub struct LegInterface {
    /// Of the interface or its route, if the kernel tells.
    pub mtu_bytes: Option<u64>,
    /// It is a circuit's: a tunnel of its own.
    pub is_circuit: bool,
}

/// The keys a datagram may be sealed with at the moment: what a joining site is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurrentKeys {
    /// What the sender seals with.
    pub in_use: LegKey,
    /// What it will seal with soon; its sites are being told.
    pub next: Option<LegKey>,
}

impl CurrentKeys {
    /// Of a leg that begins.
    pub fn first(key: LegKey) -> Self {
        Self { in_use: key, next: None }
    }

    /// The latest key, and the one in use while that is another.
    pub fn for_join(&self) -> (LegKey, Option<LegKey>) {
        match &self.next {
            Some(next) => (next.clone(), Some(self.in_use.clone())),
            None => (self.in_use.clone(), None),
        }
    }
}
