use super::*;
use crate::membership::{Record, RecordKind, report};

const NOW: Micros = Micros::from_secs(1);

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn relay(settings: RelaySettings) -> Relay {
    Relay::new(settings, &[7; 32])
}

fn plenty() -> RelaySettings {
    RelaySettings { messages_per_second: 100_000, ..RelaySettings::default() }
}

fn channel(group: &str, source: Option<&str>) -> Channel {
    Channel { group: ip(group), source: source.map(ip) }
}

fn ssm() -> Channel {
    channel("232.1.2.3", Some("10.0.0.1"))
}

fn send(
    relay: &mut Relay,
    now: Micros,
    gateway: &str,
    message: Message<'_>,
) -> Result<Option<Vec<u8>>, Refusal> {
    relay.take(now, at(gateway), ip("192.0.2.1"), &message.write())
}

/// A gateway's request, and its update with the code that came back.
fn tell(relay: &mut Relay, now: Micros, gateway: &str, records: &[Record]) -> Result<(), Refusal> {
    let family = records.first().map_or(Family::V4, |record| Family::of(record.group));
    let query = send(relay, now, gateway, Message::Request { nonce: 9, family })?.unwrap();
    let Ok(Message::Query { code, nonce, .. }) = Message::read(&query) else { panic!("{query:?}") };
    let report = report(family, records);
    send(relay, now, gateway, Message::Update { code, nonce, report: &report }).map(drop)
}

fn changes(relay: &mut Relay) -> Vec<Change> {
    std::iter::from_fn(|| relay.poll_change()).collect()
}

fn receivers(relay: &Relay, channel: Channel) -> Vec<SocketAddr> {
    relay.receivers(channel.source.unwrap_or(ip("10.0.0.9")), channel.group).collect()
}

const FIRST: &str = "192.0.2.11:5000";
const SECOND: &str = "192.0.2.12:5000";

#[test]
fn the_first_gateway_has_a_channel_joined_and_the_last_one_left() {
    let mut relay = relay(RelaySettings::default());
    tell(&mut relay, NOW, FIRST, &[ssm().wanted()]).unwrap();
    assert_eq!(changes(&mut relay), [Change::Join(ssm())]);
    tell(&mut relay, NOW, SECOND, &[ssm().wanted()]).unwrap();
    assert_eq!((changes(&mut relay), relay.tunnels(), relay.channels()), (vec![], 2, 1));
    assert_eq!(receivers(&relay, ssm()), [at(FIRST), at(SECOND)]);
    assert_eq!(receivers(&relay, channel("232.1.2.3", Some("10.0.0.2"))), []);
    tell(&mut relay, NOW, FIRST, &[ssm().left()]).unwrap();
    assert_eq!((changes(&mut relay), receivers(&relay, ssm())), (vec![], vec![at(SECOND)]));
    tell(&mut relay, NOW, SECOND, &[ssm().left()]).unwrap();
    assert_eq!((changes(&mut relay), relay.tunnels()), (vec![Change::Leave(ssm())], 0));
}

#[test]
fn a_gateway_that_is_gone_receives_nothing_after_the_membership_time() {
    let settings = RelaySettings { query_interval_s: 2, ..RelaySettings::default() };
    let mut relay = relay(settings);
    tell(&mut relay, NOW, FIRST, &[ssm().wanted()]).unwrap();
    let over = NOW.plus(Micros::from_secs(5));
    relay.wake(Micros(over.0 - 1));
    assert_eq!(relay.tunnels(), 1);
    relay.wake(over.plus(LOOK_INTERVAL));
    assert_eq!((relay.tunnels(), changes(&mut relay).pop()), (0, Some(Change::Leave(ssm()))));
}

#[test]
fn a_forged_message_starts_nothing() {
    let mut relay = relay(plenty());
    let query =
        send(&mut relay, NOW, FIRST, Message::Request { nonce: 9, family: Family::V4 }).unwrap().unwrap();
    let Ok(Message::Query { code, nonce, .. }) = Message::read(&query) else { panic!("{query:?}") };
    assert_eq!((relay.tunnels(), changes(&mut relay)), (0, vec![]), "a request leaves no trace");
    let report = report(Family::V4, &[ssm().wanted()]);
    for (gateway, nonce, code) in [(SECOND, nonce, code), (FIRST, nonce + 1, code), (FIRST, nonce, [0; 6])] {
        let forged = Message::Update { code, nonce, report: &report };
        assert_eq!(send(&mut relay, NOW, gateway, forged), Err(Refusal::NotAuthentic));
    }
    tell(&mut relay, NOW, FIRST, &[ssm().wanted()]).unwrap();
    let forged = Message::Teardown { code: [1; 6], nonce, gateway: at(FIRST) };
    assert_eq!(send(&mut relay, NOW, SECOND, forged), Err(Refusal::NotAuthentic));
    assert_eq!((relay.tunnels(), relay.counts().not_authentic), (1, 4));
    let real = Message::Teardown { code, nonce, gateway: at(FIRST) };
    assert_eq!(send(&mut relay, NOW, SECOND, real), Ok(None), "its endpoint has changed");
    assert_eq!(relay.tunnels(), 0);
}

#[test]
fn a_request_has_at_most_one_query_of_bounded_length() {
    let mut relay = relay(RelaySettings::default());
    for (family, octets) in [(Family::V4, 66), (Family::V6, LONGEST_QUERY)] {
        let query = send(&mut relay, NOW, FIRST, Message::Request { nonce: 1, family }).unwrap().unwrap();
        assert_eq!(query.len(), octets);
    }
    let mut answered = 0;
    for nonce in 0..1_000 {
        answered +=
            usize::from(send(&mut relay, NOW, FIRST, Message::Request { nonce, family: Family::V4 }).is_ok());
    }
    assert_eq!(answered, 18, "twenty a second from one address");
    assert!(send(&mut relay, NOW, SECOND, Message::Request { nonce: 1, family: Family::V4 }).is_ok());
    assert!(send(&mut relay, NOW.plus(NOW), FIRST, Message::Discovery { nonce: 1 }).is_ok());
    assert_eq!(relay.counts().too_frequent, 982);
}

#[test]
fn tunnels_groups_and_channels_are_bounded() {
    let settings = RelaySettings {
        most_tunnels: 3,
        most_tunnels_of_a_network: 2,
        most_channels: 4,
        most_groups_of_a_tunnel: 2,
        ..plenty()
    };
    let mut relay = relay(settings);
    let group = |number: u8| channel(&format!("239.1.0.{number}"), None).wanted();
    for port in [1, 2] {
        tell(&mut relay, NOW, &format!("192.0.2.11:{port}"), &[group(1)]).unwrap();
    }
    assert_eq!(tell(&mut relay, NOW, "192.0.2.11:3", &[group(1)]), Err(Refusal::NoRoom), "of this address");
    assert_eq!(
        tell(&mut relay, NOW, "192.0.2.11:1", &[group(2), group(3)]),
        Err(Refusal::NoRoom),
        "of this tunnel"
    );
    tell(&mut relay, NOW, SECOND, &[group(4), group(5)]).unwrap();
    assert_eq!(tell(&mut relay, NOW, "192.0.2.11:2", &[group(6)]), Err(Refusal::NoRoom), "channels");
    assert_eq!((relay.tunnels(), relay.channels()), (3, 4));
    assert_eq!(tell(&mut relay, NOW, "192.0.2.13:1", &[group(1)]), Err(Refusal::NoRoom), "tunnels");
    let query = send(&mut relay, NOW, "192.0.2.13:1", Message::Request { nonce: 1, family: Family::V4 });
    assert!(matches!(Message::read(&query.unwrap().unwrap()), Ok(Message::Query { is_full: true, .. })));
    let many = (0..3).map(|number| ip(&format!("10.0.0.{number}"))).collect();
    let record = Record { kind: RecordKind::Allow, group: ip("239.1.0.1"), sources: many };
    assert_eq!(tell(&mut relay, NOW, SECOND, &[record]), Err(Refusal::NoRoom), "sources");
}

#[test]
fn groups_that_are_not_carried_are_refused() {
    let mut relay = relay(RelaySettings { groups: vec!["232.1.0.0/16".parse().unwrap()], ..plenty() });
    tell(&mut relay, NOW, FIRST, &[ssm().wanted()]).unwrap();
    for group in ["232.2.0.1", "224.0.0.5", "10.0.0.1"] {
        let wanted = channel(group, Some("10.0.0.1")).wanted();
        assert_eq!(tell(&mut relay, NOW, FIRST, &[wanted]), Err(Refusal::NotCarried), "{group}");
    }
    tell(&mut relay, NOW, SECOND, &[channel("232.1.9.9", None).wanted()]).unwrap();
    assert_eq!(relay.tunnels(), 1, "a source-specific group needs a source");
}

#[test]
fn members_of_any_source_and_of_one_share_a_group() {
    let mut relay = relay(plenty());
    let (any, one) = (channel("239.1.2.3", None), channel("239.1.2.3", Some("10.0.0.1")));
    tell(&mut relay, NOW, FIRST, &[one.wanted()]).unwrap();
    tell(&mut relay, NOW, SECOND, &[any.wanted()]).unwrap();
    assert_eq!(changes(&mut relay), [Change::Join(one), Change::Join(any), Change::Leave(one)]);
    assert_eq!(receivers(&relay, one), [at(FIRST), at(SECOND)]);
    assert_eq!(receivers(&relay, any), [at(SECOND)]);
    let but = Record { kind: RecordKind::Block, ..one.wanted() };
    tell(&mut relay, NOW, SECOND, std::slice::from_ref(&but)).unwrap();
    assert_eq!(receivers(&relay, one), [at(FIRST)]);
    tell(&mut relay, NOW, SECOND, &[Record { kind: RecordKind::Allow, ..but }]).unwrap();
    assert_eq!(receivers(&relay, one), [at(FIRST), at(SECOND)]);
    tell(&mut relay, NOW, SECOND, &[any.left()]).unwrap();
    assert_eq!(changes(&mut relay), [Change::Join(one), Change::Leave(any)]);
}

#[test]
fn groups_of_ipv6_are_as_those_of_ipv4() {
    let mut relay = relay(plenty());
    let channel = channel("ff3e::8000:1", Some("2001:db8::1"));
    for gateway in ["[2001:db8::5]:9", FIRST] {
        tell(&mut relay, NOW, gateway, &[channel.wanted()]).unwrap();
    }
    assert_eq!((changes(&mut relay), receivers(&relay, channel).len()), (vec![Change::Join(channel)], 2));
}

#[test]
fn messages_of_relays_are_no_gateways() {
    let mut relay = relay(plenty());
    for message in [Message::Data(b"x"), Message::Advertisement { nonce: 1, relay: ip("10.0.0.1") }] {
        assert_eq!(send(&mut relay, NOW, FIRST, message), Err(Refusal::Malformed(Malformed::OtherKind)));
    }
    assert_eq!((relay.counts().malformed, relay.counts().refused()), (2, 2));
}
