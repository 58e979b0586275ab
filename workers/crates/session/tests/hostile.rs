//! Whatever a peer sends, in any order, both halves of a session continue or end it. Neither panics or loops
//! forever, and neither stores or sends more than a bound that does not depend on the peer.
#![allow(clippy::unwrap_used, clippy::panic)]

use bytes::Bytes;
use downburst_model::{
    Epoch, FeedName, LegId, Machine, Micros, Now, RangeSet, Sequence, SiteName, WallMicros,
};
use downburst_session::{
    Classes, ClockRequest, CredentialKept, CredentialOffered, CredentialShown, CredentialWanted,
    FeedPosition, Frontier, Hello, HubInput, HubOutput, HubSession, LegJoined, LegLeave, LegLeft, Mark,
    Marked, Nak, OpenStream, PacketsGone, Proof, SiteInput, SiteOutput, SiteSession, SiteState, StreamEnded,
    StreamId, StreamPlan, Subscription, Taken, Ticket, VERSIONS, Want, Welcome,
};
use minicbor::Encode;
use proptest::prelude::*;

/// Frames of both sides with extreme numbers, unknown kinds, wrong bodies and noise; each may be cut short.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let number = || prop_oneof![0u64..40, Just(u64::MAX), Just(u64::MAX - 1), any::<u64>()];
    let numbers = (number(), number(), number());
    let sensible =
        (0usize..21, numbers, 0u32..4).prop_map(|(which, numbers, leg)| message(which, numbers, leg));
    let odd =
        (any::<u8>(), prop::collection::vec(any::<u8>(), 0..80)).prop_map(|(kind, body)| raw(kind, &body));
    let binary = (32u8..34, 0u32..4, number(), prop::collection::vec(any::<u8>(), 0..80)).prop_map(
        |(kind, first, second, rest)| {
            raw(kind, &[first.to_be_bytes().as_slice(), &second.to_be_bytes(), &rest].concat())
        },
    );
    let noise = prop::collection::vec(any::<u8>(), 0..60);
    prop_oneof![12 => sensible, 1 => odd, 3 => binary, 1 => noise]
}

fn message(which: usize, (low, high, other): (u64, u64, u64), leg: u32) -> Vec<u8> {
    let (feed, epoch, leg) = (feed(), Epoch(7), LegId(leg));
    let ranges: RangeSet = [(low.min(high), high)].into_iter().collect();
    let reason = String::new();
    match which {
        0 => encoded(1, &hello(ranges)),
        1 => encoded(15, &Want { feed, epoch, sequences: ranges }),
        2 => encoded(
            13,
            &Nak {
                leg,
                leg_epoch: other,
                packets: ranges,
                heard: Some(other),
                symbols: Vec::new(),
                unanswered: None,
                losses: None,
            },
        ),
        3 => encoded(
            19,
            &Frontier {
                feed,
                epoch,
                settled_to: Sequence(low),
                pending: other,
                trouble: None,
                action_failed: None,
                linked: None,
            },
        ),
        4 => encoded(10, &LegJoined { leg, leg_epoch: 1, after: Sequence(low), reception: None }),
        5 => encoded(12, &LegLeft { leg, known_to: Some(Sequence(low)), reason, too_slow: None }),
        6 => encoded(17, &ClockRequest { sent: WallMicros(low as i64) }),
        7 => {
            encoded(2, &Welcome { version: VERSIONS[0], site: site(), hub: "hub".to_owned(), stand_by: None })
        }
        8 => encoded(14, &PacketsGone { leg, leg_epoch: other, packets: ranges }),
        9 => encoded(11, &LegLeave { leg }),
        12 => encoded(40, &Mark { number: low as u32 }),
        13 => encoded(41, &Marked { number: low as u32 }),
        14 => encoded(42, &OpenStream { stream: low as u32, ticket: Ticket([low as u8; 16]), path: None }),
        15 => encoded(45, &StreamEnded { stream: low as u32, reason }),
        16 => encoded(46, &Taken { stream: low as u32, transfers: high }),
        17 => encoded(48, &CredentialWanted { of: "cd".repeat(32) }),
        18 => encoded(49, &CredentialOffered { sha256: reason }),
        19 => encoded(50, &CredentialKept { sha256: reason, ends: Some(WallMicros(low as i64)) }),
        20 => encoded(51, &CredentialShown { secret: reason }),
        10 => encoded(7, &(feed, epoch, Sequence(low), Sequence(high))),
        _ => encoded(5, &(feed, epoch, Sequence(low))),
    }
}

fn encoded(kind: u8, body: &impl Encode<()>) -> Vec<u8> {
    raw(kind, &minicbor::to_vec(body).unwrap())
}

fn raw(kind: u8, body: &[u8]) -> Vec<u8> {
    [[kind].as_slice(), &(body.len() as u32).to_be_bytes(), body].concat()
}

fn hello(settled: RangeSet) -> Hello {
    let proof = Proof::Credential { site: site(), secret: "s".to_owned() };
    let position = FeedPosition { feed: feed(), epoch: Epoch(7), settled, newest_stored: WallMicros(0) };
    Hello {
        versions: VERSIONS.to_vec(),
        software: "stranger".to_owned(),
        proof,
        feeds: vec![position],
        stand_by: None,
        one_node: None,
    }
}

fn feed() -> FeedName {
    FeedName::parse("NGRID").unwrap()
}

fn site() -> SiteName {
    SiteName::parse("oslo").unwrap()
}

fn at(millis: u64) -> Now {
    Now { monotonic: Micros::from_millis(millis), wall: WallMicros(millis as i64 * 1_000) }
}

/// A hub that admits every site and has a log without products. Returns the bytes written; panics if its output
/// does not end.
fn answer(hub: &mut HubSession, now: Now) -> usize {
    let mut written = 0;
    for _ in 0..OUTPUTS_LIMIT {
        match hub.poll(now) {
            None => return written,
            Some(HubOutput::Write { bytes, .. }) => written += bytes.len(),
            Some(HubOutput::Authenticate(_)) => {
                let wish =
                    Subscription { feed: feed(), pattern: ".*".to_owned(), not_pattern: None, within: None };
                hub.handle(now, HubInput::Admit { site: site(), subscriptions: vec![wish] });
                let (epoch, unicast_leg) = (Epoch(7), LegId(1));
                hub.handle(now, HubInput::Feed { feed: feed(), epoch, head: Sequence(30), unicast_leg });
                hub.handle(now, HubInput::PlanStreams(StreamPlan::routed(vec![Classes::all(); 3])));
            }
            Some(HubOutput::ReadResend { resend, after, to, .. }) => {
                hub.handle(now, HubInput::ResendEntries { resend, entries: Vec::new(), after, read_to: to });
            }
            Some(HubOutput::Read { feed, after, to, .. }) => {
                assert!(to <= Sequence(30), "nothing is read beyond the log");
                hub.handle(now, HubInput::Entries { feed, after, entries: Vec::new(), read_to: to });
            }
            Some(HubOutput::Refer(request)) => {
                hub.handle(now, HubInput::Referred { number: request.number, sibling: None });
            }
            Some(HubOutput::FindTime { feed, .. }) => {
                hub.handle(now, HubInput::FoundTime { feed, after: Sequence(0) });
            }
            Some(HubOutput::DrawTicket(stream)) => {
                hub.handle(now, HubInput::Ticket { stream, ticket: Ticket([7; 16]) });
                hub.handle(now, HubInput::StreamOpened(stream));
                hub.handle(now, HubInput::Room { stream, bytes: 1 << 10 });
            }
            Some(HubOutput::Event(_) | HubOutput::Close | HubOutput::CloseStream(_)) => {}
        }
    }
    panic!("the hub talks for ever");
}

fn site_answer(site: &mut SiteSession, now: Now) -> usize {
    let mut written = 0;
    for _ in 0..OUTPUTS_LIMIT {
        match site.poll(now) {
            None => return written,
            Some(SiteOutput::Write { bytes, .. }) => written += bytes.len(),
            Some(_) => {}
        }
    }
    panic!("the site talks for ever");
}

proptest! {
    #[test]
    fn a_hub_survives_any_frames(
        greets in any::<bool>(),
        frames in prop::collection::vec(frame(), 0..40),
        cut in 1usize..200,
    ) {
        let mut stream = if greets { encoded(1, &hello(RangeSet::new())) } else { Vec::new() };
        stream.extend(frames.concat());
        let mut hub = HubSession::new("hub".to_owned());
        hub.handle(at(0), HubInput::Room { stream: StreamId::FIRST, bytes: 64 << 10 });
        let mut written = 0;
        for (step, piece) in stream.chunks(cut).enumerate() {
            let now = at(step as u64 * 20);
            hub.handle(now, HubInput::Bytes { stream: StreamId::FIRST, bytes: Bytes::copy_from_slice(piece) });
            written += answer(&mut hub, now);
        }
        prop_assert!(written <= (64 << 10) + LAST_FRAME_BYTES, "{} bytes", written);
        answer(&mut hub, at(10_000_000));
        prop_assert_eq!(hub.deadline(), None, "a silent peer is given up");
    }

    #[test]
    fn a_site_survives_any_frames(frames in prop::collection::vec(frame(), 0..40), cut in 1usize..200) {
        let mut session = SiteSession::new("test".to_owned(), SiteState::default());
        let proof = Proof::Credential { site: site(), secret: "s".to_owned() };
        session.handle(at(0), SiteInput::Connected(proof));
        let welcome = Welcome { version: VERSIONS[0], site: site(), hub: "hub".to_owned(), stand_by: None };
        let welcome = encoded(2, &welcome);
        let stream = [welcome, frames.concat()].concat();
        let mut written = 0;
        for (step, piece) in stream.chunks(cut).enumerate() {
            let now = at(step as u64 * 20);
            session.handle(now, SiteInput::Bytes { stream: StreamId::FIRST, bytes: Bytes::copy_from_slice(piece) });
            written += site_answer(&mut session, now);
        }
        // A clock request, a Want and a frontier per step, at most.
        let steps = stream.len() / cut + 2;
        prop_assert!(written <= 4_096 + steps * 4_096, "{} bytes in {} steps", written, steps);
        site_answer(&mut session, at(10_000_000));
    }
}

/// A peer that sends requests and never reads is disconnected long before it costs the hub much.
#[test]
fn questions_without_reading_are_cut_off() {
    let mut hub = HubSession::new("hub".to_owned());
    hub.handle(at(0), HubInput::Room { stream: StreamId::FIRST, bytes: 1 << 10 });
    hub.handle(
        at(0),
        HubInput::Bytes { stream: StreamId::FIRST, bytes: encoded(1, &hello(RangeSet::new())).into() },
    );
    answer(&mut hub, at(0));
    let question = Bytes::from(encoded(17, &ClockRequest { sent: WallMicros(0) }).repeat(10_000));
    let mut written = 0;
    let asked = (0..200).take_while(|_| {
        hub.handle(at(1), HubInput::Bytes { stream: StreamId::FIRST, bytes: question.clone() });
        written += answer(&mut hub, at(1));
        hub.deadline().is_some()
    });
    let asked = asked.count();
    assert!((10..199).contains(&asked), "cut off after {asked} times ten thousand questions");
    assert!(written < (1 << 10) + LAST_FRAME_BYTES);
}

/// Outputs in answer to one piece of the stream.
const OUTPUTS_LIMIT: usize = 20_000;

/// The frame that may exceed the room granted: a refusal, or the largest control frame of these tests.
const LAST_FRAME_BYTES: usize = 1_024;
