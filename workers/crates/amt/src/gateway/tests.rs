use super::*;
use crate::ip::datagram;
use crate::membership::{general_query, read_report};

const TIMES: QueryTimes = QueryTimes { interval_s: 10, robustness: 2 };

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn gateway() -> Gateway {
    let channel = Channel { group: at("232.1.2.3:1").ip(), source: Some(at("10.0.0.1:1").ip()) };
    let relays = vec![at("192.0.2.1:2268"), at("192.0.2.2:2268")];
    Gateway::new(Micros(0), GatewaySettings { relays, channel, port: 17 }, &[7; 32]).unwrap()
}

fn nonce_of(sent: &Outgoing) -> u32 {
    match Message::read(&sent.octets) {
        Ok(Message::Discovery { nonce } | Message::Request { nonce, .. }) => nonce,
        other => panic!("{other:?}"),
    }
}

fn advertisement(sent: &Outgoing, relay: &str) -> Vec<u8> {
    Message::Advertisement { nonce: nonce_of(sent), relay: relay.parse().unwrap() }.write()
}

fn query(sent: &Outgoing, is_full: bool, endpoint: &str) -> Vec<u8> {
    let query = general_query(Family::V4, TIMES);
    let gateway = Some(at(endpoint));
    Message::Query { is_full, code: [5; 6], nonce: nonce_of(sent), query: &query, gateway }.write()
}

fn data(source: &str, group: &str) -> Vec<u8> {
    Message::Data(&datagram(at(source), at(group), 5, b"sealed")).write()
}

fn joined(gateway: &mut Gateway) {
    let discovery = gateway.poll(Micros(0)).unwrap();
    gateway.handle(Micros(0), &advertisement(&discovery, "192.0.2.9"));
    let request = gateway.poll(Micros(0)).unwrap();
    assert_eq!(gateway.handle(Micros(0), &query(&request, false, "10.9.9.9:5000")), Heard::Answer);
}

#[test]
fn a_discovery_a_request_and_an_update_begin_the_reception() {
    let mut gateway = gateway();
    let discovery = gateway.poll(Micros(0)).unwrap();
    assert_eq!((discovery.to, gateway.poll(Micros(0))), (at("192.0.2.1:2268"), None));
    let other = Message::Advertisement { nonce: nonce_of(&discovery) ^ 1, relay: at("192.0.2.9:1").ip() };
    assert_eq!(gateway.handle(Micros(0), &other.write()), Heard::Other, "forged");
    assert_eq!(gateway.handle(Micros(0), &advertisement(&discovery, "239.0.0.1")), Heard::Other, "no host");
    assert_eq!(gateway.handle(Micros(0), &advertisement(&discovery, "192.0.2.9")), Heard::Answer);
    let request = gateway.poll(Micros(0)).unwrap();
    assert_eq!(request.to, at("192.0.2.9:2268"));
    assert_eq!(
        gateway.handle(Micros(0), &data("10.0.0.1:5", "232.1.2.3:17")),
        Heard::Other,
        "not yet joined"
    );
    gateway.handle(Micros(0), &query(&request, false, "10.9.9.9:5000"));
    assert_eq!(gateway.standing(), Standing::Joined);
    let update = gateway.poll(Micros(0)).unwrap();
    let Ok(Message::Update { code, report, .. }) = Message::read(&update.octets) else {
        panic!("{update:?}")
    };
    assert_eq!((code, read_report(report).unwrap()), ([5; 6], vec![gateway.settings.channel.wanted()]));
    assert_eq!(gateway.poll(Micros(0)), None);
    assert_eq!(gateway.poll(UPDATE_AGAIN), Some(update), "once more: it has no answer");
    assert_eq!(gateway.poll(UPDATE_AGAIN.plus(UPDATE_AGAIN)), None);
}

#[test]
fn only_datagrams_of_the_channel_are_heard() {
    let mut gateway = gateway();
    joined(&mut gateway);
    let ours = data("10.0.0.1:5", "232.1.2.3:17");
    let Heard::Datagram(place) = gateway.handle(Micros(9), &ours) else { panic!("not heard") };
    assert_eq!(&ours[place], b"sealed");
    assert_eq!(gateway.standing(), Standing::Heard);
    for (source, group) in
        [("10.0.0.2:5", "232.1.2.3:17"), ("10.0.0.1:5", "232.1.2.4:17"), ("10.0.0.1:5", "232.1.2.3:18")]
    {
        assert_eq!(gateway.handle(Micros(9), &data(source, group)), Heard::Other, "{source} {group}");
    }
    assert_eq!(gateway.handle(Micros(9), b"\x06\x00cut"), Heard::Other);
}

#[test]
fn a_relay_without_answers_gives_way_to_the_next_one() {
    let mut gateway = gateway();
    let mut asked = Vec::new();
    for _ in 0..9 {
        let now = gateway.deadline();
        asked.push((now.0 / 1_000, gateway.poll(now).unwrap().to));
    }
    let [first, second] = ["192.0.2.1:2268", "192.0.2.2:2268"].map(at);
    let expected =
        [(0, first), (250, first), (750, first), (1_750, second), (2_000, second), (2_500, second)];
    assert_eq!(asked[..6], expected);
    assert_eq!(asked[6], (3_500, first), "and back");
}

#[test]
fn a_full_relay_is_left_for_the_next_one_but_not_by_those_that_have_a_tunnel() {
    let mut gateway = gateway();
    let discovery = gateway.poll(Micros(0)).unwrap();
    gateway.handle(Micros(0), &advertisement(&discovery, "192.0.2.9"));
    let request = gateway.poll(Micros(0)).unwrap();
    gateway.handle(Micros(0), &query(&request, true, "10.9.9.9:5000"));
    assert_eq!((gateway.relay(), gateway.deadline()), (at("192.0.2.2:2268"), FULL_PAUSE));
    let mut member = self::gateway();
    joined(&mut member);
    member.poll(Micros(0));
    member.updates.0 = 0;
    let now = member.deadline();
    let request = member.poll(now).unwrap();
    assert_eq!(member.handle(now, &query(&request, true, "10.9.9.9:5000")), Heard::Answer);
    assert_eq!(member.standing(), Standing::Joined);
}

#[test]
fn requests_come_at_the_relays_interval_and_earlier_in_silence() {
    let mut gateway = gateway();
    joined(&mut gateway);
    gateway.updates.0 = 0;
    assert_eq!(gateway.deadline(), SILENCE, "nothing was heard yet");
    gateway.handle(Micros::from_millis(1_900), &data("10.0.0.1:5", "232.1.2.3:17"));
    let request = gateway.poll(SILENCE).unwrap();
    gateway.handle(SILENCE, &query(&request, false, "10.9.9.9:5000"));
    assert_eq!(gateway.due, Micros::from_secs(12));
}

#[test]
fn another_endpoint_ends_the_tunnel_of_the_former_one() {
    let mut gateway = gateway();
    joined(&mut gateway);
    gateway.updates.0 = 0;
    let now = gateway.deadline();
    let request = gateway.poll(now).unwrap();
    gateway.handle(now, &query(&request, false, "10.9.9.9:6000"));
    let teardown = gateway.poll(now).unwrap();
    let former = at("10.9.9.9:5000");
    assert!(
        matches!(Message::read(&teardown.octets), Ok(Message::Teardown { gateway, .. }) if gateway == former)
    );
    assert!(matches!(Message::read(&gateway.poll(now).unwrap().octets), Ok(Message::Update { .. })));
}

#[test]
fn leaving_names_the_source_no_more() {
    let mut gateway = gateway();
    assert_eq!(gateway.leave(), None);
    joined(&mut gateway);
    let leave = gateway.leave().unwrap();
    let Ok(Message::Update { report, .. }) = Message::read(&leave.octets) else { panic!("{leave:?}") };
    assert_eq!(read_report(report).unwrap(), [gateway.settings.channel.left()]);
}
