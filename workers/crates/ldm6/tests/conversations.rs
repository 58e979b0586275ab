//! Complete conversations between the machines, in virtual time.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails stops"
)]
mod common;

use bytes::Bytes;
use common::*;
use downburst_ldm6::*;
use downburst_model::{Machine, Micros, Now};
use proptest::prelude::*;

fn queue(sizes: &[u32]) -> Vec<(ProductInfo, Bytes)> {
    sizes.iter().enumerate().map(|(number, size)| product(number as u32, *size)).collect()
}

/// A request and its upstream after a second, when products arrive.
fn fed(mode: Mode, sizes: &[u32]) -> (Client, Server) {
    let mut client = Client::new(DownstreamConfig { mode, ..downstream_config(vec![spec("ANY", ".*")]) });
    let mut server = Server::new(at(0.0), upstream_config(access("ANY", None)), queue(sizes));
    let said = client.connect(at(0.0));
    server.hear(at(0.0), &said);
    talk(at(0.0), &mut client, &mut server, 10_000);
    talk(at(1.0), &mut client, &mut server, 10_000);
    (client, server)
}

fn numbers(client: &Client) -> Vec<u32> {
    client.products.iter().map(|(info, _)| info.sequence).collect()
}

fn lost(client: &Client) -> Option<&Ending> {
    client.events.iter().rev().find_map(|event| match event {
        DownstreamEvent::Lost { why, .. } => Some(why),
        _ => None,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn products_arrive_whole_in_order_in_either_mode_however_the_stream_is_split(
        sizes in proptest::collection::vec(prop_oneof![0_u32..10, 0_u32..40_000], 0..6),
        split in 1_usize..5_000,
        slice in 1_usize..5_000,
        is_primary: bool,
    ) {
        let mode = if is_primary { Mode::Primary } else { Mode::Alternate };
        let mut client = Client::new(DownstreamConfig { mode, ..downstream_config(vec![spec("ANY", ".*")]) });
        let mut server = Server::new(at(0.0), upstream_config(access("ANY", None)), queue(&sizes));
        server.slice = slice;
        let said = client.connect(at(0.0));
        said.chunks(split).for_each(|part| server.hear(at(0.0), part));
        talk(at(0.0), &mut client, &mut server, split);
        talk(at(1.0), &mut client, &mut server, split);
        let wanted: Vec<_> = queue(&sizes).into_iter()
            .map(|(info, bytes)| (info.through("up.example.org"), bytes.to_vec()))
            .collect();
        prop_assert_eq!(&client.products, &wanted);
        prop_assert!(!client.is_closed && !server.is_closed);
    }
}

#[test]
fn what_may_not_be_had_is_taken_out_of_the_request_and_the_rest_is_served() {
    let asked = vec![spec("ANY", ".*"), spec("NGRID", "^Y")];
    let mut client = Client::new(downstream_config(asked));
    let allowed = access("EXP|IDS", Some("00001$"));
    let mut server = Server::new(at(0.0), upstream_config(allowed), queue(&[5, 6, 7]));
    let said = client.connect(at(0.0));
    server.hear(at(0.0), &said);
    talk(at(0.0), &mut client, &mut server, 10_000);
    assert_eq!(client.events[0], DownstreamEvent::Reduced(vec![spec("EXP|IDS", ".*")]));
    talk(at(1.0), &mut client, &mut server, 10_000);
    assert_eq!(numbers(&client), [0, 2], "the line's NOT pattern leaves out the second");
}

#[test]
fn a_stranger_is_refused_and_asks_again_after_a_minute() {
    let mut client = Client::new(downstream_config(vec![spec("ANY", ".*")]));
    let config =
        UpstreamConfig { peer: vec!["198.51.100.1".to_owned()], ..upstream_config(access("ANY", None)) };
    let mut server = Server::new(at(0.0), config, Vec::new());
    let said = client.connect(at(0.0));
    server.hear(at(0.0), &said);
    talk(at(0.0), &mut client, &mut server, 10_000);
    assert_eq!(client.events, [DownstreamEvent::Refused(Refusal::Denied)]);
    assert!(matches!(server.events.as_slice(), [UpstreamEvent::Denied(_)]), "{:?}", server.events);
    assert_eq!(client.machine.deadline(), Some(Micros::from_secs(60)));
    client.poll(at(60.0));
    assert_eq!(client.connects, 2);
}

#[test]
fn a_product_that_comes_while_the_flush_is_unanswered_does_not_wait() {
    let (mut client, mut server) = fed(Mode::Primary, &[]);
    server.machine.handle(at(5.0), UpstreamInput::Product(product(7, 0).0));
    server.poll(at(5.0));
    assert!(server.queue.is_empty() && !server.said.is_empty());
    let first = server.take_said();
    server.machine.handle(at(5.0), UpstreamInput::Product(product(8, 0).0));
    server.poll(at(5.0));
    client.hear(at(5.0), &first);
    let second = server.take_said();
    client.hear(at(5.0), &second);
    assert_eq!(numbers(&client), [7, 8]);
}

#[test]
fn an_idle_upstream_is_heard_every_thirty_seconds() {
    let (mut client, mut server) = fed(Mode::Primary, &[10]);
    assert_eq!(server.machine.deadline(), Some(Micros::from_secs(31)));
    for beat in 1..10 {
        let now = at(1.0 + 30.0 * f64::from(beat));
        server.poll(now);
        assert_eq!(server.said.len(), 44);
        talk(now, &mut client, &mut server, 10_000);
    }
    assert_eq!(lost(&client), None);
    server.poll(at(301.0));
    server.poll(at(361.0));
    assert_eq!(server.events.last(), Some(&UpstreamEvent::Ended(Ending::Unanswered(60))));
    assert!(server.is_closed);
}

#[test]
fn a_silent_upstream_is_left_at_once_and_asked_from_where_it_was() {
    let (mut client, _) = fed(Mode::Primary, &[10, 20]);
    let silent = at(1.0 + 90.0);
    client.poll(silent);
    assert_eq!(lost(&client), Some(&Ending::Silent(90)));
    assert_eq!((client.is_closed, client.connects), (true, 2));
    client.handle(silent, DownstreamInput::Connected);
    let mut next = Server::new(silent, upstream_config(access("ANY", None)), Vec::new());
    next.hear(silent, &client.take_said());
    let UpstreamEvent::Serving(served) = &next.events[0] else { panic!("{:?}", next.events) };
    assert_eq!(served.resume, Some(product(1, 0).0.signature));
}

#[test]
fn a_request_goes_on_behind_what_is_stored_and_not_behind_what_came() {
    let mut downstream = Downstream::new(downstream_config(vec![spec("EXP", "^s")])).unwrap();
    let mut server = Server::new(at(0.0), upstream_config(access("ANY", None)), queue(&[1, 2]));
    let poll = |downstream: &mut Downstream, now: Now| -> Vec<u8> {
        let outputs = std::iter::from_fn(|| downstream.poll(now));
        let said = outputs.filter_map(|output| match output {
            DownstreamOutput::Send(bytes) => Some(bytes.to_vec()),
            _ => None,
        });
        said.flatten().collect()
    };
    poll(&mut downstream, at(0.0));
    downstream.handle(at(0.0), DownstreamInput::Connected);
    let said = poll(&mut downstream, at(0.0));
    server.hear(at(0.0), &said);
    server.poll(at(1.0));
    downstream.handle(at(1.0), DownstreamInput::Received(server.take_said().into()));
    poll(&mut downstream, at(1.0));
    downstream.handle(at(1.0), DownstreamInput::Settled(product(0, 0).0.signature));
    downstream.handle(at(1.0), DownstreamInput::Disconnected);
    poll(&mut downstream, at(2.0));
    downstream.handle(at(2.0), DownstreamInput::Connected);
    let said = poll(&mut downstream, at(2.0));
    let mut next = Server::new(at(2.0), upstream_config(access("ANY", None)), Vec::new());
    next.hear(at(2.0), &said);
    let UpstreamEvent::Serving(served) = &next.events[0] else { panic!("{:?}", next.events) };
    assert_eq!(served.resume, Some(product(0, 0).0.signature), "the second came and was not stored");
}

#[test]
fn products_nobody_wants_are_dropped_with_the_reason_and_passed_over() {
    let config =
        DownstreamConfig { largest_bytes: 100, ..downstream_config(vec![spec("EXP", "s/0000[0-8]$")]) };
    let mut client = Client::new(config);
    client.connect(at(0.0));
    let mut server = Server::new(at(0.0), upstream_config(access("ANY", None)), Vec::new());
    server.queue = [product(1, 200), product(9, 3), product(2, 3), product(3, 3)].into();
    server.queue[2].0.arrival.seconds -= 7_200;
    let ask = Client::new(downstream_config(vec![spec("ANY", ".*")])).connect(at(-0.0));
    // Its request covers more and older products than the downstream accepts.
    let mut older = Downstream::new(DownstreamConfig {
        time_offset: Micros::from_secs(90_000),
        ..downstream_config(vec![spec("ANY", ".*")])
    })
    .unwrap();
    older.poll(at(0.0));
    older.handle(at(0.0), DownstreamInput::Connected);
    let Some(DownstreamOutput::Send(question)) = older.poll(at(0.0)) else { panic!("no question") };
    assert_eq!(ask.len(), question.len());
    server.hear(at(0.0), &question);
    client.hear(at(0.0), &server.take_said());
    talk(at(1.0), &mut client, &mut server, 10_000);
    let dropped = client.events.iter().filter_map(|event| match event {
        DownstreamEvent::Taken(Taken::Dropped(info, why)) => Some((info.sequence, *why)),
        _ => None,
    });
    let dropped: Vec<_> = dropped.collect();
    assert_eq!(dropped, [(1, Dropped::TooLarge), (9, Dropped::OutOfClass), (2, Dropped::TooOld)]);
    assert_eq!(numbers(&client), [3]);
}

#[test]
fn a_product_whose_connection_breaks_is_told_to_be_broken() {
    let (mut client, mut server) = fed(Mode::Primary, &[]);
    server.queue.push_back(product(4, 1_000));
    server.slice = 100;
    server.machine.handle(at(2.0), UpstreamInput::Product(product(4, 1_000).0));
    server.machine.handle(at(2.0), UpstreamInput::Gone);
    server.poll(at(2.0));
    assert_eq!(server.events.last(), Some(&UpstreamEvent::Ended(Ending::Gone)));
    let said = server.take_said();
    client.hear(at(2.0), &said);
    client.handle(at(2.0), DownstreamInput::Disconnected);
    let broken = DownstreamEvent::Taken(Taken::Broken);
    assert!(client.events.contains(&broken), "{:?}", client.events);
    assert_eq!(client.machine.deadline(), Some(Micros::from_secs(3)), "tried again after a second");
}

#[test]
fn shifting_asks_anew_at_once_in_the_other_mode() {
    let (mut client, _) = fed(Mode::Alternate, &[10]);
    client.handle(at(2.0), DownstreamInput::Shift(Mode::Alternate));
    assert!(!client.is_closed, "it is what it was");
    client.handle(at(2.0), DownstreamInput::Shift(Mode::Primary));
    assert_eq!((client.is_closed, client.connects), (true, 2));
    client.handle(at(2.0), DownstreamInput::Connected);
    assert!(client.take_said().ends_with(&[0xff; 4]));
}

#[test]
fn connections_that_come_to_nothing_are_tried_more_and_more_seldom() {
    let mut client = Client::new(downstream_config(vec![spec("ANY", ".*")]));
    let mut now = at(0.0);
    let mut pauses = Vec::new();
    for _ in 0..8 {
        client.poll(now);
        client.handle(now, DownstreamInput::Disconnected);
        let next = client.machine.deadline().unwrap();
        pauses.push(next.since(now.monotonic).0 / 1_000_000);
        now = Now { monotonic: next, ..now };
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
}

#[test]
fn a_version_five_peer_is_answered_call_by_call() {
    let mut server = Server::new(at(0.0), upstream_config(access("ANY", None)), queue(&[40_000, 10]));
    server.slice = usize::MAX;
    let mut client = Client::new(downstream_config(vec![spec("ANY", ".*")]));
    let said = client.connect(at(0.0));
    client.hear(at(0.0), &mismatch(&said));
    client.handle(at(0.0), DownstreamInput::Connected);
    let said = client.take_said();
    assert_eq!(said[23], 5, "the version");
    server.hear(at(0.0), &said);
    talk(at(0.0), &mut client, &mut server, 10_000);
    server.poll(at(1.0));
    let mut calls = 0;
    loop {
        let call = server.take_said();
        if call.is_empty() {
            break;
        }
        calls += 1;
        client.hear(at(1.0), &call);
        let answer = client.take_said();
        assert!(!answer.is_empty(), "each call is answered");
        server.hear(at(1.0), &answer);
    }
    assert_eq!(numbers(&client), [0, 1]);
    assert_eq!(calls, 4 + 2 + 1, "a question and three blocks of 16 KiB, a question and a block, the flush");
}

/// The reply of an upstream that speaks only version 5.
fn mismatch(call: &[u8]) -> Vec<u8> {
    let words = [0x8000_0020_u32, u32::from_be_bytes(call[4..8].try_into().unwrap()), 1, 0, 0, 0, 2, 5, 5];
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

#[test]
fn a_push_ends_when_the_peer_has_read_everything() {
    let class =
        ProductClass { from: Timestamp::ZERO, to: Timestamp::END_OF_TIME, specs: vec![spec("EXP", ".*")] };
    let mut pusher = Pusher::new(at(0.0), PusherConfig { class, first_xid: 1 }).unwrap();
    let config = UpstreamConfig { max_hereis: 100, ..upstream_config(access("EXP", None)) };
    let mut server = Server::new(at(0.0), config, Vec::new());
    let mut todo = vec![product(3, 50), product(2, 5_000), product(1, 0)];
    let (mut current, mut ended) = (Bytes::new(), None);
    while ended.is_none() {
        while let Some(output) = pusher.poll(at(0.0)) {
            match output {
                PusherOutput::Send(bytes) => server.hear(at(0.0), &bytes),
                PusherOutput::Want(Want::Bytes(most)) => {
                    let bytes = current.split_to(current.len().min(most as usize));
                    pusher.handle(at(0.0), PusherInput::Bytes(bytes));
                }
                PusherOutput::Want(Want::Product) => match todo.pop() {
                    Some((info, bytes)) => {
                        current = bytes;
                        pusher.handle(at(0.0), PusherInput::Product(info));
                    }
                    None => pusher.handle(at(0.0), PusherInput::Finish),
                },
                PusherOutput::Taken(_) => {}
                PusherOutput::Ended(why) => ended = Some(why),
            }
        }
        pusher.handle(at(0.0), PusherInput::Received(server.take_said().into()));
    }
    assert_eq!(ended, Some(Ending::Done));
    let ends = server.events.iter().filter(|event| **event == UpstreamEvent::Taken(Taken::Ends)).count();
    let offers =
        server.events.iter().filter(|event| matches!(event, UpstreamEvent::Taken(Taken::Offered(_)))).count();
    assert_eq!((ends, offers), (3, 1), "only the one larger than 100 bytes is asked about");
}

#[test]
fn what_may_not_be_pushed_is_dropped() {
    let class =
        ProductClass { from: Timestamp::ZERO, to: Timestamp::END_OF_TIME, specs: vec![spec("EXP", ".*")] };
    let mut pusher = Pusher::new(at(0.0), PusherConfig { class, first_xid: 1 }).unwrap();
    let mut server = Server::new(at(0.0), upstream_config(access("EXP", None)), Vec::new());
    let mut info = product(1, 0).0;
    info.ident = Ident::new("neither rtstats nor s/").unwrap();
    for _ in 0..4 {
        while let Some(output) = pusher.poll(at(0.0)) {
            match output {
                PusherOutput::Send(bytes) => server.hear(at(0.0), &bytes),
                PusherOutput::Want(_) => pusher.handle(at(0.0), PusherInput::Product(info.clone())),
                _ => {}
            }
            if server.events.len() > 1 {
                break;
            }
        }
        pusher.handle(at(0.0), PusherInput::Received(server.take_said().into()));
    }
    assert!(
        matches!(&server.events[1], UpstreamEvent::Taken(Taken::Dropped(_, Dropped::OutOfClass))),
        "{:?}",
        server.events
    );
}

/// A reply of version 5: `OK`, then a second reply to the same call with PROC_UNAVAIL, as LDM's notifyme sends.
fn answered_twice(call: &[u8]) -> Vec<u8> {
    let xid = u32::from_be_bytes(call[4..8].try_into().unwrap());
    let is_null = call[24..28] == [0; 4];
    let ok: &[u32] =
        if is_null { &[0x8000_0018, xid, 1, 0, 0, 0, 0] } else { &[0x8000_001c, xid, 1, 0, 0, 0, 0, 0] };
    let unavailable: &[u32] = if is_null { &[] } else { &[0x8000_0018, xid, 1, 0, 0, 0, 3] };
    ok.iter().chain(unavailable).flat_map(|word| word.to_be_bytes()).collect()
}

#[test]
fn finding_05_a_peer_that_answers_each_call_twice_gets_every_description() {
    let mut server = Server::new(at(0.0), upstream_config(access("ANY", None)), queue(&[5; 200]));
    let config =
        DownstreamConfig { interest: Interest::Descriptions, ..downstream_config(vec![spec("ANY", ".*")]) };
    let mut client = Client::new(config);
    let said = client.connect(at(0.0));
    client.hear(at(0.0), &mismatch(&said));
    client.handle(at(0.0), DownstreamInput::Connected);
    server.hear(at(0.0), &client.take_said());
    server.take_said();
    server.poll(at(1.0));
    let mut told = 0;
    loop {
        let call = server.take_said();
        if call.is_empty() {
            break;
        }
        told += usize::from(call[27] == 8);
        server.hear(at(1.0), &answered_twice(&call));
    }
    assert_eq!((told, server.is_closed), (200, false), "{:?}", server.events.last());
}

#[test]
fn finding_05_products_go_to_feedme_by_the_calls_that_it_knows() {
    let mut server = Server::new(at(0.0), upstream_config(access("ANY", None)), queue(&[10, 0, 40_000]));
    server.slice = usize::MAX;
    let mut client = Client::new(downstream_config(vec![spec("ANY", ".*")]));
    let said = client.connect(at(0.0));
    client.hear(at(0.0), &mismatch(&said));
    client.handle(at(0.0), DownstreamInput::Connected);
    server.hear(at(0.0), &client.take_said());
    server.take_said();
    server.poll(at(1.0));
    let mut procedures = Vec::new();
    loop {
        let call = server.take_said();
        if call.is_empty() {
            break;
        }
        procedures.push(call[27]);
        server.hear(at(1.0), &answered_twice(&call));
    }
    assert_eq!(
        procedures,
        [12, 13, 12, 13, 12, 13, 13, 13, 0],
        "COMINGSOON, BLKDATA, and NULLPROC at the end"
    );
}

#[test]
fn finding_05_what_answers_nothing_is_passed_over_by_every_machine() {
    let stray: Vec<u8> =
        [0x8000_0018_u32, 0xdead, 1, 0, 0, 0, 3].iter().flat_map(|word| word.to_be_bytes()).collect();
    let (mut client, mut server) = fed(Mode::Alternate, &[10, 20]);
    server.hear(at(2.0), &stray);
    client.hear(at(2.0), &stray);
    server.queue.push_back(product(7, 30));
    server.machine.handle(at(2.0), UpstreamInput::Product(product(8, 0).0));
    talk(at(2.0), &mut client, &mut server, 10_000);
    assert_eq!(numbers(&client), [0, 1, 8, 7]);

    let mut asking = Client::new(downstream_config(vec![spec("ANY", ".*")]));
    asking.connect(at(0.0));
    asking.hear(at(0.0), &stray);
    assert_eq!(lost(&asking), None);

    let mut open = Server::new(at(0.0), upstream_config(access("ANY", None)), Vec::new());
    open.hear(at(0.0), &stray);
    assert!(!open.is_closed);

    let class =
        ProductClass { from: Timestamp::ZERO, to: Timestamp::END_OF_TIME, specs: vec![spec("EXP", ".*")] };
    let mut pusher = Pusher::new(at(0.0), PusherConfig { class, first_xid: 1 }).unwrap();
    pusher.handle(at(0.0), PusherInput::Received(stray.clone().into()));
    let mut probe = Probe::new(at(0.0), 1);
    probe.handle(at(0.0), ProbeInput::Received(stray.into()));
    assert!(!std::iter::from_fn(|| pusher.poll(at(0.0))).any(|said| matches!(said, PusherOutput::Ended(_))));
    assert!(!std::iter::from_fn(|| probe.poll(at(0.0))).any(|said| matches!(said, ProbeOutput::Ended(_))));
}
