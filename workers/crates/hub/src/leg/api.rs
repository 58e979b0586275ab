use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use downburst_model::{Content, Micros, ProductInfo, RangeSet, Sequence, SiteName};
use downburst_vcmtp::{LegKey, Request, SenderConfig, SiteSecret, Straggler, Urgency};

use super::trials::LegTrial;

/// The settings of a leg at its start.
#[derive(Clone, Debug)]
pub struct LegSettings {
    /// The sender's settings; the leg itself decides the length of datagrams.
    pub sender: SenderConfig,
    /// The quantile of the sites' losses that the rate follows: 0.5 is the median site.
    pub loss_quantile: f64,
    /// The outgoing interface of datagrams.
    pub interface: LegInterface,
}

/// An input of a leg. `C` is a repair channel: the leg returns it with the repairs that go over it.
#[derive(Clone, Debug)]
pub enum LegInput<C> {
    /// The current head of the log.
    Head(Sequence),
    /// One product of the requested range, in order. Evicted products are left out: sites find the hole and learn
    /// that it expired.
    Product {
        /// Its description.
        info: ProductInfo,
        /// Its bytes, shared with the log.
        bytes: Content,
    },
    /// The requested read is complete up to this sequence.
    ReadTo(Sequence),
    /// The read failed; it is requested again at the next [`LegInput::Head`].
    ReadFailed,
    /// A site requests packets or reports its losses.
    Nak {
        /// The number of the site's session.
        session: u64,
        /// The request.
        request: Request,
        /// The repair channel that it arrived over; `None`: the session.
        channel: Option<C>,
    },
    /// A session is asked to join: from here on, proofs have to convince it.
    Reader {
        /// The number of the session.
        session: u64,
        /// The secret for the MACs of its proofs; without one the site checks signatures.
        secret: Option<SiteSecret>,
    },
    /// A site received packets that this leg did not send.
    Forged,
    /// A site is about to join: the leg must send something soon, even if no product is due.
    Listener,
    /// The rate of the plan, in Ethernet-frame bits per second.
    Rate(u64),
    /// The most that the leg may take at present, in Ethernet-frame bits per second: other traffic comes first.
    Cap(u64),
    /// The deadline of the feed's products, from the hub's stored stamp.
    Deadline(Option<Micros>),
    /// The MTU of the interface that datagrams leave through, which is a relay's.
    Mtu(Option<u64>),
    /// A site received the current keys.
    KeysTold {
        /// The site.
        site: SiteName,
        /// The digest of the site's credential: the right to read may end with it.
        credential: String,
    },
    /// A session changed its credential.
    CredentialRenewed {
        /// The site.
        site: SiteName,
        /// The digest of the former credential.
        former: String,
        /// The digest of the new credential.
        credential: String,
    },
    /// A site confirmed a key that was sent in advance.
    KeyTaken {
        /// The site.
        site: SiteName,
        /// [`LegKey::id`].
        key_id: u8,
    },
    /// Sites or their rights changed.
    RightsChanged,
    /// Answer to [`LegOutput::Draw`]; `None` if the source of randomness failed: the leg asks again.
    Drawn(Option<[u8; 32]>),
}

/// An output of a leg.
#[derive(Clone, Debug, PartialEq)]
pub enum LegOutput<C> {
    /// Send this to the group. Consecutive datagrams of equal size may leave in one train.
    Datagram(BytesMut),
    /// Read the log: [`LegInput::Product`]s and then [`LegInput::ReadTo`], or [`LegInput::ReadFailed`].
    Read(LogRange),
    /// The next datagram contains the first byte of this product.
    FirstByte(Sequence),
    /// All bytes of this product were output once.
    Sent(Sequence),
    /// Send this packet to one site.
    Repair {
        /// The number of the site's session.
        session: u64,
        /// The repair channel; `None`: over the session.
        channel: Option<C>,
        /// The packet's number.
        packet: u64,
        /// The content of the datagram, in clear.
        payload: Bytes,
    },
    /// The leg can't repair these packets any more: the site requests the products from the log.
    Gone {
        /// The number of the site's session.
        session: u64,
        /// Packet numbers.
        packets: RangeSet,
    },
    /// Collect the sessions now and call [`Leg::look`](super::Leg::look) before the next poll.
    Look,
    /// Draw a secret from the system's source of randomness.
    Draw,
    /// The keys for sites that join from here on.
    Keys(CurrentKeys),
    /// Send the next key to a session.
    TellKey {
        /// The site.
        site: SiteName,
        /// The number of the session.
        session: u64,
        /// The key.
        key: LegKey,
    },
    /// A site lost the right to read the leg.
    Barred {
        /// The site.
        site: SiteName,
        /// The urgency of its exclusion.
        urgency: Urgency,
    },
    /// The maximum length of datagrams from here on, as the paths to the sites demand.
    DatagramBytes(usize),
    /// The new rate after losses of the sites, in Ethernet-frame bits per second.
    Rate(u64),
    /// A site loses too much of the leg: move it to unicast.
    TakeOff(Straggler),
    /// The losses of the last interval, in which the leg used its whole rate.
    Trial(LegTrial),
}

/// A range of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRange {
    /// Read after this sequence.
    pub after: Sequence,
    /// Read up to this sequence at most.
    pub to: Sequence,
    /// Stop after about this many bytes.
    pub limit_bytes: usize,
    /// Stop after this many products.
    pub limit_products: usize,
}

/// A leg's view of one session of the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegSession {
    /// Its number.
    pub session: u64,
    /// The digest of its credential.
    pub credential: String,
    /// The site was asked to join this leg, and not asked to leave it.
    pub offered: bool,
    /// The site receives the feed over this leg.
    pub hears: bool,
    /// The MTU of the session's path, as found by TCP: the leg's datagrams take the same path.
    pub path_mtu_bytes: Option<u64>,
}

/// A snapshot of the hub's sessions.
pub struct LegSessions<'a> {
    /// The open sessions.
    pub open: &'a BTreeMap<SiteName, LegSession>,
    /// The urgency of excluding a site with this credential (its digest); `None` if the site may read the leg.
    pub barred: &'a dyn Fn(&SiteName, &str) -> Option<Urgency>,
}

/// The interface that a leg's datagrams leave the hub through.
#[derive(Clone, Copy, Debug)]
pub struct LegInterface {
    /// The MTU of the interface or its route, if the kernel reports it.
    pub mtu_bytes: Option<u64>,
    /// True for a circuit's interface, which is a tunnel of its own.
    pub is_circuit: bool,
    /// True for a relay's interface: the sessions of its sites take another path.
    pub is_relayed: bool,
}

/// The keys that datagrams may be sealed with at the moment: a joining site receives them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurrentKeys {
    /// The key that the sender seals with.
    pub in_use: LegKey,
    /// The key that it will seal with soon; its sites are receiving it.
    pub next: Option<LegKey>,
}

impl CurrentKeys {
    /// The keys of a new leg.
    pub fn first(key: LegKey) -> Self {
        Self { in_use: key, next: None }
    }

    /// The latest key, and the key in use if that is another one.
    pub fn for_join(&self) -> (LegKey, Option<LegKey>) {
        match &self.next {
            Some(next) => (next.clone(), Some(self.in_use.clone())),
            None => (self.in_use.clone(), None),
        }
    }
}
