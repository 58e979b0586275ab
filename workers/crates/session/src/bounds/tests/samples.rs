//! One message of each kind, as a correct peer sends it.
use downburst_model::{Digest, ProductId};
use downburst_probe::{Delays, Excess, Figures, Key};

use super::*;
use crate::OtherEnd;

/// One message of each kind that a hub sends, with all optional fields.
pub(super) fn of_hub() -> Vec<Message> {
    let wish = Subscription { feed: feed(), pattern: ".*".to_owned(), not_pattern: None, within: None };
    let head = FeedHead { feed: feed(), epoch: EPOCH, head: Sequence(3) };
    let node = NodeFeeds { address: "a:1".to_owned(), feeds: vec![feed()] };
    let train = CircuitTrain { rate_bps: 1, duration_ms: 600, out: true, frame_bytes: 1_464 };
    let path = Some(StreamPath { to: "a:1".to_owned(), from: "b:1".to_owned() });
    let (leg, leg_epoch) = (LegId(1), 1);
    vec![
        welcome().into(),
        Refused { code: RefusalCode::Version, sentence: "no".to_owned() }.into(),
        Subscriptions { items: vec![wish], heads: vec![head] }.into(),
        FeedStart { feed: feed(), epoch: EPOCH, after: Sequence(0), duplicates: None }.into(),
        begin().into(),
        ResentBegin { resend: 1, begin: ProductBegin { previous: None, ..begin() } }.into(),
        Covered { feed: feed(), epoch: EPOCH, from: Sequence(1), to: Sequence(2) }.into(),
        Expired {
            feed: feed(),
            epoch: EPOCH,
            sequences: near(),
            late: Some(true),
            stored: Some(WallMicros(5)),
        }
        .into(),
        join().into(),
        LegLeave { leg }.into(),
        PacketsGone { leg, leg_epoch, packets: near() }.into(),
        ClockReply { request_sent: WallMicros(1), received: WallMicros(2), sent: WallMicros(3) }.into(),
        Handling {
            items: vec![FeedHandling {
                feed: feed(),
                hold_us: Some(1),
                max_age_us: Some(1),
                deadline_us: None,
            }],
        }
        .into(),
        NextKey { leg, leg_epoch, key: LegKey::new(2, [2; 32]) }.into(),
        circuit().into(),
        CircuitEnd { lease: 1 }.into(),
        CircuitSet { leases: vec![1, u32::MAX] }.into(),
        CircuitProbe { lease: 1, run: 1, train: Some(train) }.into(),
        PathProbe { run: 1, order: probe_open() }.into(),
        Mark { number: 1 }.into(),
        OpenStream { stream: 1, ticket: Ticket([1; 16]), path }.into(),
        Attached { stream: 1 }.into(),
        StreamEnded { stream: 1, reason: "why".to_owned() }.into(),
        CredentialWanted { of: "cd".repeat(32) }.into(),
        CredentialKept { sha256: "cd".repeat(32), ends: Some(WallMicros(1)) }.into(),
        Nodes { version: 1, items: vec![node] }.into(),
        relay_leg().into(),
        RelayLegEnd { leg }.into(),
        Ways { chains: vec!["a:1,b:2".to_owned()] }.into(),
        SiblingTerms { on: true, upload_bytes_per_second: 1, upload_bytes_per_day: 2 }.into(),
        sibling_grant().into(),
        SiblingWithdrawn { tickets: vec![Ticket([1; 16])] }.into(),
        referral().into(),
    ]
}

/// One message of each kind that a site sends, with all optional fields.
pub(super) fn of_site() -> Vec<Message> {
    let reception = Some(Reception { buffer_bytes: 1, path: "lo".to_owned(), advice: None });
    let reach = CircuitReach { sent: 5, received: 5, round_trip_us: Some((1, 2, 3)) };
    let fault = CircuitFault { step: "a".to_owned(), sentence: "b".to_owned(), remedy: "c".to_owned() };
    let (leg, leg_epoch) = (LegId(1), 1);
    vec![
        hello().into(),
        LegJoined { leg, leg_epoch, after: Sequence(1), reception }.into(),
        left().into(),
        nak().into(),
        Want { feed: feed(), epoch: EPOCH, sequences: near() }.into(),
        Filed { items: vec![receipt()] }.into(),
        ClockRequest { sent: WallMicros(1) }.into(),
        Frontier { action_failed: Some(failed()), linked: Some(linked(1, 2)), ..frontier() }.into(),
        ResentEnded { resend: 1, key: key(), outcome: Outcome::Stored, size: 3 }.into(),
        ResentFailed { resend: 1, sequences: near() }.into(),
        Late { feed: feed(), products: 1 }.into(),
        KeyTaken { leg, leg_epoch, key_id: 1 }.into(),
        CircuitState { lease: 1, fault: Some(fault.clone()) }.into(),
        CircuitHeard { lease: 1, fault: Some(fault) }.into(),
        CircuitProbed { lease: 1, run: 1, reach: Some(reach), rate: Some(CircuitRate::default()) }.into(),
        PathProbed { run: 1, said: probe_arrived() }.into(),
        Forged { leg, leg_epoch }.into(),
        Marked { number: 1 }.into(),
        Attach { ticket: Ticket([1; 16]) }.into(),
        StreamEnded { stream: 1, reason: "why".to_owned() }.into(),
        Taken { stream: 1, transfers: 1 }.into(),
        HeartbeatOut { key: key(), at: WallMicros(1) }.into(),
        CredentialOffered { sha256: "cd".repeat(32) }.into(),
        CredentialShown { secret: "s".to_owned() }.into(),
        relay_leg_open().into(),
        RelayLegFailed { leg, sentence: "why".to_owned() }.into(),
        RelayReport { tunnels: vec![tunnel()], legs: vec![relayed()], refused: 1 }.into(),
        site_clock().into(),
        host_reading().into(),
        SiblingPort { port: 7_380, fingerprint: Fingerprint([1; 32]) }.into(),
        ReferralEnded { number: 1, missing: RangeSet::new(), fault: Some(SiblingFault::Slow) }.into(),
    ]
}

pub(super) fn sibling_grant() -> SiblingGrant {
    SiblingGrant {
        ticket: Ticket([1; 16]),
        sibling: SiteName::parse("bergen").unwrap(),
        fingerprint: Fingerprint([1; 32]),
        feed: feed(),
        epoch: EPOCH,
        sequences: [(1, 3)].into_iter().collect(),
    }
}

pub(super) fn referral() -> Referral {
    Referral {
        number: 1,
        ticket: Ticket([1; 16]),
        sibling: SiteName::parse("bergen").unwrap(),
        address: "bergen:7380".to_owned(),
        fingerprint: Fingerprint([1; 32]),
        leg: LegId(1),
        items: vec![Referred { info: begin().info, previous: Sequence(0), to: Some(Sequence(9)) }],
    }
}

pub(super) fn host_reading() -> HostReading {
    let buffer = ReceiveBuffer {
        asked_bytes: 65_536,
        granted_bytes: 131_072,
        needed_bytes: 5_000_000,
        limit_bytes: Some(212_992),
    };
    let standing = PriorityStanding::RealTime;
    let line = Some(LineReading { arrived_bps: 4, offered_bps: 8, packets: 100, lost: 50, windows: 3 });
    HostReading { leg: LegId(1), dropped: 7, buffer, priority: Some(20), standing, demotions: 1, line }
}

pub(super) fn carried_line(change: impl FnMut(&mut LineReading)) -> Message {
    let mut reading = host_reading();
    reading.line.iter_mut().for_each(change);
    reading.into()
}

pub(super) fn buffered(change: impl FnOnce(&mut ReceiveBuffer)) -> Message {
    let mut reading = host_reading();
    change(&mut reading.buffer);
    reading.into()
}

pub(super) fn site_clock() -> SiteClock {
    let daemon = Some("chrony".to_owned());
    SiteClock { synchronised: true, error_us: 900, estimated_error_us: 20, daemon }
}

pub(super) fn probe_open() -> ProbeOrder {
    let other_end = Some(OtherEnd::Relay);
    ProbeOrder::Open(ProbeOpen {
        key: Key([1; 32]),
        port: 9,
        out: true,
        packet_bytes: 1_200,
        most_bps: 1,
        tcp: None,
        other_end,
    })
}

pub(super) fn probe_arrived() -> ProbeSaid {
    let excess = vec![Excess { at_us: 1, lost: 1, excess_us: 1, recovery_us: Some(1), ..Excess::default() }];
    let delay = Some(Delays { min: 1, median: 2, p99: 3, max: 4 });
    ProbeSaid::Arrived {
        step: 0,
        figures: Figures { delay, jitter_us: Some(1), excess, ..Figures::default() },
    }
}

pub(super) fn begin() -> ProductBegin {
    let ldm = Some(LdmStamp { signature: [7; 16], sequence: 4_711, feed_type: 8, ident: None });
    let info = ProductInfo {
        key: ProductKey { sequence: Sequence(1), ..key() },
        id: ProductId::parse("x").unwrap(),
        origin: Origin::parse("hub").unwrap(),
        created: WallMicros(-1),
        stored: WallMicros(1),
        size: 3,
        digest: Digest([9; 32]),
        class: Class::Grid,
        hops: None,
        ldm,
        properties: None,
    };
    ProductBegin { info, previous: Some(Sequence(0)), lane: Lane::Live, leg: LegId(1), transfer: 1 }
}

pub(super) fn join() -> LegJoin {
    LegJoin {
        leg: LegId(1),
        feed: feed(),
        epoch: EPOCH,
        leg_epoch: 1,
        group: "239.0.0.1".to_owned(),
        port: 5_000,
        key: LegKey::new(1, [1; 32]),
        key_in_use: None,
        sender_key: None,
        proof_secret: None,
        pass: Some(Box::new(FanOutPass([7; 32]))),
        interface: String::new(),
        rate_bps: 1_000_000_000,
        source: Some("10.0.0.1".to_owned()),
        channel: None,
    }
}

pub(super) fn relay_leg() -> RelayLeg {
    RelayLeg {
        leg: LegId(1),
        group: "239.0.0.1".to_owned(),
        port: 5_000,
        rate_bps: 1_000_000_000,
        hops: 32,
        unicast: Some(by_unicast(4)),
    }
}

pub(super) fn by_unicast(sites: u64) -> UnicastFanOut {
    UnicastFanOut { sites, pass: FanOutPass([7; 32]) }
}

pub(super) fn relay_leg_open() -> RelayLegOpen {
    RelayLegOpen { leg: LegId(1), source: "10.0.0.1".to_owned(), mtu_bytes: Some(1_500) }
}

pub(super) fn circuit() -> CircuitOffer {
    let side = TransitSide { way: CircuitWay::Declared, rate_bps: 1 };
    CircuitOffer {
        lease: 1,
        port: "eth0".to_owned(),
        way: CircuitWay::Tag(7),
        address: "10.0.0.1/30".to_owned(),
        rate_bps: 1,
        soft: false,
        burst_bytes: Some(1),
        port_rate_bps: Some(1),
        secret: Ticket([1; 16]),
        peer_address: "10.0.0.2".to_owned(),
        until: Some(WallMicros(1)),
        watches: None,
        transit: Some(Box::new(CircuitTransit { near: side.clone(), far: side })),
    }
}

pub(super) fn welcome() -> Welcome {
    Welcome { version: VERSIONS[0], site: site_name(), hub: "hub".to_owned(), stand_by: None }
}

pub(super) fn hello() -> Hello {
    let proof = Proof::Credential { site: site_name(), secret: "s".to_owned() };
    Hello {
        versions: VERSIONS.to_vec(),
        software: "test".to_owned(),
        proof,
        feeds: Vec::new(),
        stand_by: None,
        one_node: None,
    }
}

pub(super) fn receipt() -> Receipt {
    Receipt {
        lane: Lane::Live,
        leg: LegId(1),
        transport: Transport::Unicast,
        class: Class::Grid,
        action_done: Some(WallMicros(1)),
        ..Receipt::undescribed(key(), Outcome::Stored, WallMicros(3))
    }
}

pub(super) fn frontier() -> Frontier {
    let settled_to = Sequence(0);
    Frontier {
        feed: feed(),
        epoch: EPOCH,
        settled_to,
        pending: 0,
        trouble: None,
        action_failed: None,
        linked: None,
    }
}

pub(super) fn linked(bytes: u64, free_bytes: u64) -> LinkedSpace {
    LinkedSpace { bytes, free_bytes }
}

pub(super) fn failed() -> ActionFailed {
    ActionFailed {
        rule: "r".to_owned(),
        exit: Some(1),
        last_error: "e".to_owned(),
        product: "p".to_owned(),
        sequence: Sequence(1),
        epoch: Some(EPOCH),
        count: 1,
        others: vec![Sequence(2)],
    }
}

pub(super) fn left() -> LegLeft {
    LegLeft { leg: LegId(1), known_to: Some(Sequence(1)), reason: "why".to_owned(), too_slow: Some(true) }
}

pub(super) fn nak() -> Nak {
    Nak {
        leg: LegId(1),
        leg_epoch: 1,
        packets: near(),
        heard: Some(1),
        symbols: Vec::new(),
        unanswered: Some(true),
        losses: Some(Losses { missed: 1, of: 2 }),
    }
}

pub(super) fn tunnel() -> TunnelFacts {
    let segment = |congestion: &str| Segment {
        round_trip_us: Some(2_000),
        loss_ppm: Some(100),
        congestion: congestion.to_owned(),
        rate_bps: 8,
    };
    TunnelFacts {
        site_side: "10.0.0.1:1".to_owned(),
        hub_side: "10.0.0.2:2".to_owned(),
        target: "hub:1".to_owned(),
        seconds: 1,
        bytes_from_hub: 2,
        bytes_from_site: 3,
        rate_from_hub_bps: 16,
        near: segment("bbr"),
        onward: segment("cubic"),
        ended: true,
    }
}

pub(super) fn relayed() -> RelayedLeg {
    RelayedLeg { leg: LegId(1), datagrams: 1, bytes: 2, dropped: 0 }
}

pub(super) fn near() -> RangeSet {
    [(1, 2)].into_iter().collect()
}

pub(super) fn far() -> RangeSet {
    [(1, MUCH)].into_iter().collect()
}

pub(super) fn key() -> ProductKey {
    ProductKey { feed: feed(), epoch: EPOCH, sequence: Sequence(1) }
}

pub(super) fn feed() -> FeedName {
    FeedName::parse("NGRID").unwrap()
}

pub(super) fn site_name() -> SiteName {
    SiteName::parse("oslo").unwrap()
}

pub(super) fn at(millis: u64) -> Now {
    Now { monotonic: Micros::from_millis(millis), wall: WallMicros(millis as i64 * 1_000) }
}

pub(super) const EPOCH: Epoch = Epoch(7);
/// One more than the highest integer in the ledger.
pub(super) const MUCH: u64 = INTEGER_MAX + 1;
