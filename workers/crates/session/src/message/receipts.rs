//! A site's reports of product outcomes and of its clock.
use downburst_model::{Class, Lane, LegId, ProductKey, Transport, WallMicros};
use minicbor::{Decode, Encode};

/// The outcome of a product at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(index_only)]
pub enum Outcome {
    /// Stored in the site's log.
    #[n(0)]
    Stored,
    /// Its digest failed three times, or the site can't hold it.
    #[n(1)]
    Rejected,
    /// The hub no longer had it.
    #[n(2)]
    Expired,
    /// The site already had it, by duplicate key, from another epoch.
    #[n(3)]
    Held,
    /// The hub did not send it: it could not meet the feed's deadline.
    #[n(4)]
    LateAtHub,
    /// The site dropped it: it arrived behind the feed's deadline.
    #[n(5)]
    LateAtSite,
}

impl Outcome {
    /// True if it was dropped because of the feed's deadline.
    pub fn is_late(self) -> bool {
        matches!(self, Self::LateAtHub | Self::LateAtSite)
    }
}

/// Site to hub: the outcome of a product here. Stamps are the site's wall clock.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Receipt {
    /// The product.
    #[n(0)]
    pub key: ProductKey,
    /// The outcome.
    #[n(1)]
    pub outcome: Outcome,
    /// Its lane: the reason for the transmission.
    #[n(2)]
    pub lane: Lane,
    /// The leg that delivered most of it.
    #[n(3)]
    pub leg: LegId,
    /// That leg's transport.
    #[n(4)]
    pub transport: Transport,
    /// Its class, so that the hub need not look it up.
    #[n(5)]
    pub class: Class,
    /// Its size in bytes.
    #[n(6)]
    pub size: u64,
    /// Origin's clock.
    #[n(7)]
    pub created: WallMicros,
    /// Hub's clock: complete and verified in the hub's log.
    #[n(8)]
    pub hub_stored: WallMicros,
    /// Site's clock: last byte received.
    #[n(9)]
    pub last_byte: WallMicros,
    /// Site's clock: verified and stored.
    #[n(10)]
    pub site_stored: WallMicros,
    /// True if some of the bytes arrived by repair.
    #[n(11)]
    pub repaired: bool,
    /// Site's clock: local software has it (its file is complete). `None` if the file was not complete when the
    /// receipt was sent: [`Filed`] follows.
    #[n(12)]
    pub action_done: Option<WallMicros>,
}

impl Receipt {
    /// Distribution latency: from the hub's log to the site's, in microseconds, by the hub's clock.
    pub fn took_us(&self, clock: ClockOffset) -> i64 {
        self.site_stored.0.saturating_sub(clock.offset_us).saturating_sub(self.hub_stored.0)
    }
}

impl Receipt {
    /// The receipt of a product of which the site only knows the number: everything else is zero.
    pub fn undescribed(key: ProductKey, outcome: Outcome, at: WallMicros) -> Self {
        Self {
            key,
            outcome,
            lane: Lane::Backfill,
            leg: LegId(0),
            transport: Transport::Unicast,
            class: Class::Bulk,
            size: 0,
            created: WallMicros(0),
            hub_stored: WallMicros(0),
            last_byte: at,
            site_stored: at,
            repaired: false,
            action_done: None,
        }
    }

    /// The report of a completed file alone: the receipt of the stored product was sent in an earlier run of
    /// the site.
    pub fn of_file(key: ProductKey, at: WallMicros) -> Self {
        let never = WallMicros(0);
        let stored = Self::undescribed(key, Outcome::Stored, never);
        Self { action_done: Some(at), ..stored }
    }
}

/// Site to hub: files that became complete after their receipts were sent. The receipts are repeated with
/// `action_done`; if the receipt is from an earlier run of the site, its key is the only other content.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Filed {
    /// The files completed since the last batch.
    #[n(0)]
    pub items: Vec<Receipt>,
}

/// Site to hub: a heartbeat reached the point where products reach consumers, behind everything received before it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct HeartbeatOut {
    /// The heartbeat.
    #[n(0)]
    pub key: ProductKey,
    /// Site's clock.
    #[n(1)]
    pub at: WallMicros,
}

/// Site to hub: the outcomes since the last batch.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Receipts {
    /// The site's clock against the hub's, if measured.
    #[n(0)]
    pub clock: Option<ClockOffset>,
    /// The receipts.
    #[n(1)]
    pub items: Vec<Receipt>,
}

/// The result of clock comparisons by four timestamps (RFC 5905 §8, RFC 8762), for the time of a message's stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ClockOffset {
    /// Site's clock minus the hub's, microseconds.
    #[n(0)]
    pub offset_us: i64,
    /// The error bound of the offset, whatever the path's asymmetry: half of the shortest delays both ways, and the
    /// drift since, microseconds.
    #[n(1)]
    pub bound_us: u64,
    /// The smallest round trip of the window, microseconds.
    #[n(2)]
    pub round_trip_us: u64,
}

/// Site to hub: a clock request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ClockRequest {
    /// Site's wall clock at sending.
    #[n(0)]
    pub sent: WallMicros,
}

/// Hub to site: the answer to a clock request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ClockReply {
    /// From the request.
    #[n(0)]
    pub request_sent: WallMicros,
    /// Hub's wall clock at receipt.
    #[n(1)]
    pub received: WallMicros,
    /// Hub's wall clock at sending.
    #[n(2)]
    pub sent: WallMicros,
}
