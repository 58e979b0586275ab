//! Absurd values in each field of each frame, from both sides: the session continues or ends with a named
//! violation, and nothing panics.
use bytes::Bytes;
use downburst_fanout::StreamId;
use downburst_model::{
    Class, Epoch, FeedName, Lane, LdmStamp, LegId, Machine, Micros, Now, Origin, ProductInfo, ProductKey,
    RangeSet, Sequence, SiteName, Transport, WallMicros,
};
use downburst_vcmtp::{LegKey, Losses};

use super::*;
use crate::frame::{KINDS, receipts_frame, train_header};
use crate::train::{Base, Head, put_car};
use crate::*;
use samples::*;

mod samples;

#[test]
fn every_kind_of_message_has_a_sample() {
    let mut sampled: Vec<u8> = of_hub().iter().chain(&of_site()).map(|message| message.encode()[0]).collect();
    sampled.extend([32, 33, 34, 35, 36]);
    for (kind, name) in KINDS {
        assert!(sampled.contains(kind), "{name} has no sample here");
    }
}

#[test]
fn what_no_sound_hub_says_ends_the_session_as_a_violation_that_names_it() {
    for (field, message) in absurd_of_hub() {
        let (ended, sentence) = site_hears(&message.encode());
        assert!(ended && sentence.contains(&format!("`{field}`")), "{field}: {sentence:?} of {message:?}");
    }
    for (field, frame) in absurd_trains() {
        let (ended, sentence) = site_hears(&frame);
        assert!(ended && sentence.contains(&format!("`{field}`")), "{field}: {sentence:?} of a train");
    }
}

#[test]
fn what_no_sound_site_says_ends_the_session_as_a_violation_that_names_it() {
    for (field, message) in absurd_of_site() {
        let (ended, sentence) = hub_hears(&message.encode());
        assert!(ended && sentence.contains(&format!("`{field}`")), "{field}: {sentence:?} of {message:?}");
    }
    for (field, receipts) in absurd_receipts() {
        let (ended, sentence) = hub_hears(&receipts_frame(&receipts));
        assert!(ended && sentence.contains(&format!("`{field}`")), "{field}: {sentence:?} of {receipts:?}");
    }
}

#[test]
fn samples_as_they_are_end_no_session() {
    for message in of_hub().iter().filter(|message| !ends_a_site(message)) {
        assert_eq!(site_hears(&message.encode()), (false, String::new()), "{message:?}");
    }
    for message in of_site().iter().filter(|message| !ends_at_a_hub(message)) {
        assert_eq!(hub_hears(&message.encode()), (false, String::new()), "{message:?}");
    }
    assert_eq!(site_hears(&train(|_| {})), (false, String::new()));
    let clock = Some(ClockOffset { offset_us: 1, bound_us: 1, round_trip_us: 1 });
    let receipts = receipts_frame(&Receipts { clock, items: vec![receipt()] });
    assert_eq!(hub_hears(&receipts), (false, String::new()));
}

/// Each value of each message is replaced by each absurd one, whatever its type.
#[test]
fn any_value_in_any_field_is_heard_or_ends_the_session_and_nothing_panics() {
    let (mut heard, mut refused) = (0, 0);
    for (messages, hear) in [(of_hub(), site_hears as fn(&[u8]) -> (bool, String)), (of_site(), hub_hears)] {
        for message in messages {
            let frame = message.encode();
            for place in places(&frame[HEADER_BYTES..]) {
                for absurd in absurd_items() {
                    let body = &frame[HEADER_BYTES..];
                    let bent = [&body[..place.start], &absurd, &body[place.end..]].concat();
                    let (ended, sentence) = hear(&framed(frame[0], &bent));
                    let named =
                        !sentence.is_empty() || matches!(message, Message::Refused(_) | Message::Hello(_));
                    assert!(!ended || named, "{message:?} with {absurd:02x?} at {place:?}");
                    *(if ended { &mut refused } else { &mut heard }) += 1;
                }
            }
        }
    }
    assert!(heard > 500 && refused > 4_000, "{heard} were heard, {refused} refused");
}

fn absurd_of_hub() -> Vec<(&'static str, Message)> {
    let product = |change: fn(&mut ProductInfo)| {
        let mut begin = begin();
        change(&mut begin.info);
        Message::from(begin)
    };
    let past = WallMicros(-1);
    let covered = |from, to| Covered { feed: feed(), epoch: EPOCH, from: Sequence(from), to: Sequence(to) };
    let offer = |change: fn(&mut CircuitOffer)| {
        let mut offer = circuit();
        change(&mut offer);
        Message::from(offer)
    };
    let transit = |near: u64, far: u64| {
        let [near, far] = [near, far].map(|rate_bps| TransitSide { way: CircuitWay::Tag(7), rate_bps });
        Message::from(CircuitOffer { transit: Some(Box::new(CircuitTransit { near, far })), ..circuit() })
    };
    let handled = |hold_us, max_age_us| {
        Message::from(Handling {
            items: vec![FeedHandling { feed: feed(), hold_us, max_age_us, deadline_us: None }],
        })
    };
    let start = FeedStart { feed: feed(), epoch: EPOCH, after: Sequence(MUCH), duplicates: None };
    let head = FeedHead { feed: feed(), epoch: EPOCH, head: Sequence(MUCH) };
    let gone = PacketsGone { leg: LegId(1), leg_epoch: 1, packets: far() };
    let reply = |received, sent| ClockReply { request_sent: WallMicros(0), received, sent };
    vec![
        ("sequence", product(|info| info.key.sequence = Sequence(MUCH))),
        ("size", product(|info| info.size = MUCH)),
        ("created", product(|info| info.created = WallMicros(i64::MAX))),
        ("created", product(|info| info.created = WallMicros(i64::MIN))),
        ("stored", product(|info| info.stored = WallMicros(i64::MIN))),
        ("stored", product(|info| info.stored = WallMicros(CLOCK_MAX.0 + 1))),
        ("feed_type", product(|info| info.ldm = Some(LdmStamp::of_content([0; 16])))),
        ("origin", product(|info| info.origin = Origin::parse(&"o".repeat(65)).unwrap())),
        ("previous", ProductBegin { previous: Some(Sequence(MUCH)), ..begin() }.into()),
        ("resend", ResentBegin { resend: MUCH, begin: begin() }.into()),
        (
            "previous",
            ResentBegin { resend: 1, begin: ProductBegin { previous: Some(Sequence(MUCH)), ..begin() } }
                .into(),
        ),
        ("head", Subscriptions { items: Vec::new(), heads: vec![head] }.into()),
        ("after", start.into()),
        ("from", covered(MUCH, 1).into()),
        ("to", covered(1, MUCH).into()),
        (
            "sequences",
            Expired { feed: feed(), epoch: EPOCH, sequences: far(), late: None, stored: None }.into(),
        ),
        ("rate_bps", LegJoin { rate_bps: MUCH, ..join() }.into()),
        ("packets", gone.into()),
        ("rate_bps", RelayLeg { rate_bps: MUCH, ..relay_leg() }.into()),
        ("sites", RelayLeg { unicast: Some(by_unicast(MUCH)), ..relay_leg() }.into()),
        ("received", reply(past, WallMicros(0)).into()),
        ("sent", reply(WallMicros(0), past).into()),
        ("hold_us", handled(Some(MUCH), None)),
        ("max_age_us", handled(None, Some(-1))),
        ("max_age_us", handled(None, Some(i64::MAX))),
        ("rate_bps", offer(|offer| offer.rate_bps = MUCH)),
        ("rate_bps", transit(MUCH, 1)),
        ("rate_bps", transit(1, MUCH)),
        ("port_rate_bps", offer(|offer| offer.port_rate_bps = Some(MUCH))),
        ("until", offer(|offer| offer.until = Some(WallMicros(i64::MAX)))),
        ("ends", CredentialKept { sha256: String::new(), ends: Some(past) }.into()),
        ("version", Nodes { version: MUCH, items: Vec::new() }.into()),
        ("packets", PathProbe { run: 1, order: ProbeOrder::Sent { step: 0, packets: MUCH } }.into()),
        ("chains", Ways { chains: vec!["a:1".to_owned(); 9] }.into()),
        ("chains", Ways { chains: vec!["nowhere".to_owned()] }.into()),
    ]
}

fn absurd_trains() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("to", train(|info| info.key.sequence = Sequence(MUCH))),
        ("created", train(|info| info.created = WallMicros(i64::MAX))),
        ("stored", train(|info| info.stored = WallMicros(-1))),
        ("feed_type", train(|info| info.ldm = Some(LdmStamp::of_content([0; 16])))),
        ("origin", train(|info| info.origin = Origin::parse(&"o".repeat(65)).unwrap())),
    ]
}

fn absurd_of_site() -> Vec<(&'static str, Message)> {
    let late = WallMicros(i64::MAX);
    let failed = |sequence, count, others| {
        let failed =
            ActionFailed { sequence: Sequence(sequence), count, others: vec![Sequence(others)], ..failed() };
        Message::from(Frontier { action_failed: Some(failed), ..frontier() })
    };
    let joined = |after, buffer_bytes| {
        let reception = Some(Reception { buffer_bytes, path: String::new(), advice: None });
        Message::from(LegJoined { leg: LegId(1), leg_epoch: 1, after: Sequence(after), reception })
    };
    let ended = |sequence, size| {
        let key = ProductKey { sequence: Sequence(sequence), ..key() };
        Message::from(ResentEnded { resend: 1, key, outcome: Outcome::Stored, size })
    };
    vec![
        ("size", Filed { items: vec![Receipt { size: MUCH, ..samples::receipt() }] }.into()),
        ("settled_to", Frontier { settled_to: Sequence(MUCH), ..frontier() }.into()),
        ("pending", Frontier { pending: MUCH, ..frontier() }.into()),
        ("sequence", failed(MUCH, 1, 1)),
        ("count", failed(1, MUCH, 1)),
        ("others", failed(1, 1, MUCH)),
        ("bytes", Frontier { linked: Some(samples::linked(MUCH, 1)), ..frontier() }.into()),
        ("free_bytes", Frontier { linked: Some(samples::linked(1, MUCH)), ..frontier() }.into()),
        ("after", joined(MUCH, 1)),
        ("buffer_bytes", joined(1, MUCH)),
        ("known_to", LegLeft { known_to: Some(Sequence(MUCH)), ..left() }.into()),
        ("packets", Nak { packets: far(), ..nak() }.into()),
        ("heard", Nak { heard: Some(MUCH), ..nak() }.into()),
        ("missed", Nak { losses: Some(Losses { missed: MUCH, of: 1 }), ..nak() }.into()),
        ("of", Nak { losses: Some(Losses { missed: 1, of: MUCH }), ..nak() }.into()),
        ("sequences", Want { feed: feed(), epoch: EPOCH, sequences: far() }.into()),
        (
            "sequence",
            HeartbeatOut { key: ProductKey { sequence: Sequence(MUCH), ..key() }, at: WallMicros(1) }.into(),
        ),
        ("at", HeartbeatOut { key: key(), at: late }.into()),
        ("products", Late { feed: feed(), products: MUCH }.into()),
        ("sequence", ended(MUCH, 1)),
        ("size", ended(1, MUCH)),
        ("sequences", ResentFailed { resend: 1, sequences: far() }.into()),
        ("mtu_bytes", RelayLegOpen { mtu_bytes: Some(MUCH), ..relay_leg_open() }.into()),
        ("source", RelayLegOpen { source: "a host".to_owned(), ..relay_leg_open() }.into()),
        ("transfers", Taken { stream: 1, transfers: MUCH }.into()),
        ("refused", RelayReport { refused: MUCH, ..RelayReport::default() }.into()),
        ("tunnels", RelayReport { tunnels: vec![tunnel(); 257], ..RelayReport::default() }.into()),
        ("legs", RelayReport { legs: vec![relayed(); 257], ..RelayReport::default() }.into()),
        ("target", carried(|it| it.target = "t".repeat(262))),
        ("hub_side", carried(|it| it.hub_side = "h".repeat(262))),
        ("seconds", carried(|it| it.seconds = MUCH)),
        ("bytes_from_hub", carried(|it| it.bytes_from_hub = MUCH)),
        ("bytes_from_site", carried(|it| it.bytes_from_site = MUCH)),
        ("rate_from_hub_bps", carried(|it| it.rate_from_hub_bps = MUCH)),
        ("round_trip_us", carried(|it| it.near.round_trip_us = Some(OFFSET_MAX_US + 1))),
        ("loss_ppm", carried(|it| it.onward.loss_ppm = Some(1_000_001))),
        ("congestion", carried(|it| it.near.congestion = "c".repeat(17))),
        ("rate_bps", carried(|it| it.onward.rate_bps = MUCH)),
        ("error_us", SiteClock { error_us: MUCH, ..site_clock() }.into()),
        ("estimated_error_us", SiteClock { estimated_error_us: MUCH, ..site_clock() }.into()),
        ("daemon", SiteClock { daemon: Some("c".repeat(33)), ..site_clock() }.into()),
        ("daemon", SiteClock { daemon: Some("a clock\n".to_owned()), ..site_clock() }.into()),
        ("daemon", SiteClock { daemon: Some(String::new()), ..site_clock() }.into()),
        ("dropped", HostReading { dropped: MUCH, ..host_reading() }.into()),
        ("demotions", HostReading { demotions: MUCH, ..host_reading() }.into()),
        ("priority", HostReading { priority: Some(0), ..host_reading() }.into()),
        ("priority", HostReading { priority: Some(100), ..host_reading() }.into()),
        ("asked_bytes", buffered(|buffer| buffer.asked_bytes = MUCH)),
        ("granted_bytes", buffered(|buffer| buffer.granted_bytes = MUCH)),
        ("needed_bytes", buffered(|buffer| buffer.needed_bytes = MUCH)),
        ("limit_bytes", buffered(|buffer| buffer.limit_bytes = Some(MUCH))),
        ("arrived_bps", carried_line(|line| line.arrived_bps = MUCH)),
        ("offered_bps", carried_line(|line| line.offered_bps = MUCH)),
        ("packets", carried_line(|line| line.packets = MUCH)),
        ("lost", carried_line(|line| line.lost = MUCH)),
        ("windows", carried_line(|line| line.windows = MUCH)),
        ("second", PathProbed { run: 1, said: second_of_probe(MUCH) }.into()),
        ("datagrams", sent_on(|leg| leg.datagrams = MUCH)),
        ("bytes", sent_on(|leg| leg.bytes = MUCH)),
        ("dropped", sent_on(|leg| leg.dropped = MUCH)),
    ]
}

fn second_of_probe(second: u64) -> ProbeSaid {
    ProbeSaid::Second { step: 0, second, figures: Default::default() }
}

fn carried(change: fn(&mut TunnelFacts)) -> Message {
    let mut facts = tunnel();
    change(&mut facts);
    RelayReport { tunnels: vec![facts], ..RelayReport::default() }.into()
}

fn sent_on(change: fn(&mut RelayedLeg)) -> Message {
    let mut leg = relayed();
    change(&mut leg);
    RelayReport { legs: vec![leg], ..RelayReport::default() }.into()
}

fn absurd_receipts() -> Vec<(&'static str, Receipts)> {
    let receipt = |change: fn(&mut Receipt)| {
        let mut receipt = receipt();
        change(&mut receipt);
        Receipts { clock: None, items: vec![receipt] }
    };
    let clock = |offset_us, bound_us, round_trip_us| {
        let clock = Some(ClockOffset { offset_us, bound_us, round_trip_us });
        Receipts { clock, items: Vec::new() }
    };
    let far_off = OFFSET_MAX_US + 1;
    vec![
        ("sequence", receipt(|receipt| receipt.key.sequence = Sequence(MUCH))),
        ("size", receipt(|receipt| receipt.size = MUCH)),
        ("created", receipt(|receipt| receipt.created = WallMicros(i64::MIN))),
        ("hub_stored", receipt(|receipt| receipt.hub_stored = WallMicros(-1))),
        ("last_byte", receipt(|receipt| receipt.last_byte = WallMicros(-1))),
        ("site_stored", receipt(|receipt| receipt.site_stored = WallMicros(i64::MAX))),
        ("action_done", receipt(|receipt| receipt.action_done = Some(WallMicros(-1)))),
        ("offset_us", clock(i64::MIN, 0, 0)),
        ("bound_us", clock(0, far_off, 0)),
        ("round_trip_us", clock(0, 0, far_off)),
    ]
}

/// True for messages that end an established session, whatever their content.
fn ends_a_site(message: &Message) -> bool {
    matches!(message, Message::Welcome(_) | Message::Refused(_) | Message::Attached(_))
}

fn ends_at_a_hub(message: &Message) -> bool {
    matches!(message, Message::Hello(_) | Message::Attach(_) | Message::Marked(_))
}

/// A site's reaction to a frame: true if it closes, and the violation.
fn site_hears(frame: &[u8]) -> (bool, String) {
    let mut site = SiteSession::new("test".to_owned(), SiteState::default());
    site.handle(at(0), SiteInput::Connected(hello().proof));
    let wish = Subscription { feed: feed(), pattern: ".*".to_owned(), not_pattern: None, within: None };
    let before: [Message; 3] = [
        welcome().into(),
        Subscriptions { items: vec![wish], heads: Vec::new() }.into(),
        FeedStart { feed: feed(), epoch: EPOCH, after: Sequence(0), duplicates: None }.into(),
    ];
    let before = before.map(|message| message.encode()).concat();
    let mut ended = (false, String::new());
    for (step, bytes) in [before.as_slice(), frame].into_iter().enumerate() {
        let now = at(step as u64);
        site.handle(now, SiteInput::Bytes { stream: StreamId::FIRST, bytes: Bytes::copy_from_slice(bytes) });
        while let Some(output) = site.poll(now) {
            match output {
                SiteOutput::Close => ended.0 = true,
                SiteOutput::Event(SiteEvent::Violation(sentence)) => ended.1 = sentence,
                _ => {}
            }
        }
        assert!(step > 0 || !ended.0, "{}", ended.1);
    }
    site.poll(at(100_000));
    ended
}

/// A hub's reaction to a frame: true if it closes, and the violation.
fn hub_hears(frame: &[u8]) -> (bool, String) {
    let mut hub = HubSession::new("hub".to_owned());
    let mut ended = (false, String::new());
    hub.handle(at(0), HubInput::Room { stream: StreamId::FIRST, bytes: 1 << 20 });
    for (step, bytes) in [&Message::from(hello()).encode(), frame].into_iter().enumerate() {
        let now = at(step as u64);
        hub.handle(now, HubInput::Bytes { stream: StreamId::FIRST, bytes: Bytes::copy_from_slice(bytes) });
        while let Some(output) = hub.poll(now) {
            match output {
                HubOutput::Authenticate(_) => {
                    let wish = Subscription {
                        feed: feed(),
                        pattern: ".*".to_owned(),
                        not_pattern: None,
                        within: None,
                    };
                    hub.handle(now, HubInput::Admit { site: site_name(), subscriptions: vec![wish] });
                    let (head, unicast_leg) = (Sequence(0), LegId(1));
                    hub.handle(now, HubInput::Feed { feed: feed(), epoch: EPOCH, head, unicast_leg });
                }
                HubOutput::Close => ended.0 = true,
                HubOutput::Event(HubEvent::Violation(sentence)) => ended.1 = sentence,
                _ => {}
            }
        }
        assert!(step > 0 || !ended.0, "{}", ended.1);
    }
    hub.poll(at(100_000));
    ended
}

/// The byte range of each value in a CBOR body, including whole arrays.
fn places(body: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut decoder = minicbor::Decoder::new(body);
    let mut found = Vec::new();
    while decoder.position() < body.len() {
        let start = decoder.position();
        let mut whole = minicbor::Decoder::new(&body[start..]);
        whole.skip().unwrap();
        found.push(start..start + whole.position());
        match decoder.datatype().unwrap() {
            minicbor::data::Type::Array => drop(decoder.array().unwrap()),
            minicbor::data::Type::Map => drop(decoder.map().unwrap()),
            _ => decoder.skip().unwrap(),
        }
    }
    found
}

/// Extreme values of number types, texts and bytes of unusual lengths, null, and arrays with too many items or
/// too high a count.
fn absurd_items() -> Vec<Vec<u8>> {
    let numbers = [u64::MAX, i64::MAX as u64 + 1, i64::MAX as u64, u64::from(u32::MAX) + 1, 70_000, 256];
    let mut items: Vec<Vec<u8>> = numbers.iter().map(|number| minicbor::to_vec(number).unwrap()).collect();
    items.extend([i64::MIN, -1].map(|number| minicbor::to_vec(number).unwrap()));
    items.push(minicbor::to_vec("").unwrap());
    items.push(minicbor::to_vec("../\u{1}".repeat(100)).unwrap());
    items.push(minicbor::to_vec(minicbor::bytes::ByteVec::from(vec![0xff; 300])).unwrap());
    items.push(minicbor::to_vec([u64::MAX; 40]).unwrap());
    // Null, an empty array, an array with a count of 2^64 - 1 items, a floating-point number.
    items.extend([vec![0xf6], vec![0x80], [vec![0x9b], vec![0xff; 8]].concat(), vec![0xfb; 9]]);
    items
}

fn train(change: fn(&mut ProductInfo)) -> Vec<u8> {
    let ProductBegin { mut info, .. } = begin();
    let base = Base {
        sequence: 1,
        created: info.created,
        stored: info.stored,
        origin: info.origin.clone(),
        hops: None,
    };
    change(&mut info);
    let mut run = bytes::BytesMut::new();
    put_car(&mut run, &base, &info, b"abc");
    let (lane, leg, to) = (Lane::Live, LegId(1), info.key.sequence.0);
    let head = Head { feed: feed(), epoch: EPOCH, class: Class::Grid, lane, leg, previous: 0, to, base };
    [train_header(&head, run.len()).to_vec(), run.to_vec()].concat()
}

fn framed(kind: u8, body: &[u8]) -> Vec<u8> {
    [[kind].as_slice(), &(body.len() as u32).to_be_bytes(), body].concat()
}

const HEADER_BYTES: usize = 5;
