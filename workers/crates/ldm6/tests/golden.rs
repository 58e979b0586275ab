//! Golden bytes in `tests/golden/ldm6/messages.json`: the machines send exactly these bytes, and parse them.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails stops"
)]
mod common;

use common::*;
use downburst_ldm6::*;
use downburst_model::{Machine, Micros};

fn golden(name: &str) -> Vec<u8> {
    let text = include_str!("../../../../tests/golden/ldm6/messages.json");
    let file: serde_json::Value = serde_json::from_str(text).unwrap();
    let message = file["messages"].as_array().unwrap().iter().find(|message| message["name"] == name);
    let hex = message.unwrap_or_else(|| panic!("no {name}"))["bytes"].as_str().unwrap();
    (0..hex.len()).step_by(2).map(|place| u8::from_str_radix(&hex[place..place + 2], 16).unwrap()).collect()
}

fn asking() -> DownstreamConfig {
    let resume = "0123456789abcdeffedcba9876543210".parse().ok();
    DownstreamConfig { resume, ..downstream_config(vec![spec("ANY", ".*")]) }
}

fn accepted(mode: Mode) -> Client {
    let mut client = Client::new(DownstreamConfig { mode, ..asking() });
    client.connect(at(0.0));
    client.hear(at(0.0), &golden("feed-ok"));
    client
}

fn serving(question: &str) -> Server {
    let config = upstream_config(access("ANY", None));
    let mut server = Server::new(at(0.0), config, vec![product(0, 2_000)]);
    server.hear(at(0.0), &golden(question));
    server
}

#[test]
fn requests() {
    for (name, change) in [
        ("feedme-primary", (|config| config) as fn(DownstreamConfig) -> DownstreamConfig),
        ("feedme-alternate", |config| DownstreamConfig { mode: Mode::Alternate, ..config }),
        ("notifyme", |config| DownstreamConfig { interest: Interest::Descriptions, ..config }),
    ] {
        assert_eq!(Client::new(change(asking())).connect(at(0.0)), golden(name), "{name}");
    }
}

#[test]
fn the_older_version_is_asked_for_on_a_connection_of_its_own() {
    let mut client = Client::new(DownstreamConfig { first_xid: 0x10, ..asking() });
    let mut mismatch = golden("program-mismatch");
    mismatch[7] = 0x10;
    client.connect(at(0.0));
    client.hear(at(0.0), &mismatch);
    assert!(client.is_closed);
    assert_eq!(client.connects, 2, "at once");
    client.handle(at(0.0), DownstreamInput::Connected);
    assert_eq!(client.take_said(), golden("feedme-version-5"));
    client.hear(at(0.0), &golden("feed-bad-pattern"));
    assert_eq!(client.events.last(), Some(&DownstreamEvent::Refused(Refusal::BadPattern)));
}

#[test]
fn answers_to_requests() {
    let client = accepted(Mode::Primary);
    let (mode, version) = (Mode::Primary, Version::Six);
    assert_eq!(client.events, [DownstreamEvent::Accepted { mode, version, id: 0x1234 }]);
    for (name, wanted) in [
        ("feed-bad-pattern", DownstreamEvent::Refused(Refusal::BadPattern)),
        ("feed-denied", DownstreamEvent::Refused(Refusal::Denied)),
        ("feed-reclass", DownstreamEvent::Reduced(vec![spec("WMO", ".*")])),
    ] {
        let mut client = Client::new(asking());
        client.connect(at(0.0));
        client.hear(at(0.0), &golden(name));
        assert_eq!(client.events, [wanted], "{name}");
    }
    let mut client = Client::new(asking());
    client.connect(at(0.0));
    client.hear(at(0.0), &golden("not-allowed"));
    let DownstreamEvent::Refused(refusal) = &client.events[0] else { panic!("{:?}", client.events) };
    assert!(refusal.to_string().contains("does not allow this host"), "{refusal}");
}

#[test]
fn a_product_of_two_kilobytes() {
    let mut server = serving("feedme-primary");
    assert_eq!(server.take_said(), golden("feed-ok"));
    let UpstreamEvent::Serving(served) = &server.events[0] else { panic!("{:?}", server.events) };
    assert_eq!(served.resume.unwrap().to_string(), "0123456789abcdeffedcba9876543210");
    server.poll(at(0.999));
    assert!(server.said.is_empty(), "the peer has a second to turn round");
    server.poll(at(1.0));
    assert_eq!(server.take_said(), [golden("hereis"), golden("nullproc")].concat());
    server.hear(at(1.1), &golden("nullproc-reply"));
    assert!(!server.is_closed && server.said.is_empty());

    let mut client = accepted(Mode::Primary);
    client.hear(at(1.0), &golden("hereis"));
    let (info, bytes) = product(0, 2_000);
    assert_eq!(client.products, [(info.through("up.example.org"), bytes.to_vec())]);
    assert!(client.take_said().is_empty(), "a one-way call is not answered");
    client.hear(at(1.0), &golden("nullproc"));
    assert_eq!(client.take_said(), golden("nullproc-reply"));
}

#[test]
fn a_product_after_a_question() {
    let mut server = serving("feedme-alternate");
    server.poll(at(1.0));
    assert_eq!(server.take_said(), [golden("feed-ok"), golden("comingsoon")].concat());
    server.hear(at(1.0), &golden("comingsoon-ok"));
    assert_eq!(server.said[..golden("blkdata").len()], golden("blkdata"));

    let mut client = accepted(Mode::Alternate);
    client.hear(at(1.0), &golden("comingsoon"));
    assert_eq!(client.take_said(), golden("comingsoon-ok"));
    client.hear(at(1.0), &golden("blkdata"));
    assert_eq!(client.products.len(), 1);
    client.wants = |_| false;
    client.hear(at(1.0), &golden("comingsoon"));
    assert_eq!(client.take_said(), golden("comingsoon-dont-send"));
}

#[test]
fn descriptions() {
    let mut server = serving("notifyme");
    server.poll(at(1.0));
    let said = server.take_said();
    let wanted = [golden("feed-ok"), golden("notification"), golden("nullproc")].concat();
    assert_eq!(said, wanted);
    let mut client = accepted(Mode::Primary);
    client.hear(at(1.0), &golden("notification"));
    let told = DownstreamEvent::Taken(Taken::Notified(product(0, 2_000).0.through("up.example.org")));
    assert_eq!(client.events.last(), Some(&told));
}

#[test]
fn a_probe_asks_in_the_older_version_where_the_newer_is_refused() {
    let asked = |probe: &mut Probe| match probe.poll(at(0.0)) {
        Some(ProbeOutput::Send(bytes)) => bytes.to_vec(),
        other => panic!("{other:?}"),
    };
    let mut probe = Probe::new(at(0.0), 0x22);
    assert_eq!(asked(&mut probe), golden("nullproc"));
    probe.handle(at(0.0), ProbeInput::Received(golden("nullproc-reply").into()));
    assert_eq!(probe.poll(at(0.0)), Some(ProbeOutput::Answers(Version::Six)));
    assert_eq!(probe.deadline(), None);

    let mut probe = Probe::new(at(0.0), 0x11);
    asked(&mut probe);
    probe.handle(at(0.0), ProbeInput::Received(golden("program-mismatch").into()));
    let again = asked(&mut probe);
    assert_eq!((again[7], again[23]), (0x12, 5));
    assert_eq!(probe.poll(at(59.9)), None);
    assert_eq!(probe.poll(at(60.0)), Some(ProbeOutput::Ended(Ending::Unanswered(60))));
}

#[test]
fn pushes_and_probes() {
    let class = ProductClass {
        from: Timestamp { seconds: 0x6b01_190d, micros: 0xe_eca4 },
        to: Timestamp::END_OF_TIME,
        specs: vec![spec("EXP", "^rtstats")],
    };
    let config = PusherConfig { class: class.clone(), first_xid: 0x31 };
    let answered = |name: &str| {
        let mut pusher = Pusher::new(at(0.0), config.clone()).unwrap();
        assert_eq!(pusher.poll(at(0.0)), Some(PusherOutput::Send(golden("hiya").into())));
        pusher.handle(at(0.0), PusherInput::Received(golden(name).into()));
        pusher.poll(at(0.0)).unwrap()
    };
    assert_eq!(answered("hiya-ok"), PusherOutput::Taken(class.clone()));
    assert_eq!(answered("hiya-reclass"), PusherOutput::Taken(class.clone()));
    assert!(matches!(answered("hiya-dont-send"), PusherOutput::Ended(Ending::Failed(_))));

    let mut server = Server::new(at(0.0), upstream_config(access("EXP", None)), Vec::new());
    server.hear(at(0.0), &golden("is-alive"));
    assert_eq!(server.take_said(), golden("is-alive-yes"));
    server.hear(at(0.0), &golden("hiya"));
    assert_eq!(server.take_said(), golden("hiya-ok"));
    assert_eq!(server.events.last(), Some(&UpstreamEvent::Taking(class)));
    assert_eq!(server.machine.deadline(), Some(Micros::from_secs(90)));
}
