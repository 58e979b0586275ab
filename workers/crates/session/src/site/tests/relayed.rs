//! A relay's half: legs that leave here, with datagrams that it can't read.
use super::*;
use crate::frame::datagrams_header;
use crate::{Datagrams, RelayLeg, RelayLegEnd, RelayLegOpen};

const LEG: LegId = LegId(9);

#[test]
fn a_relay_is_given_the_leg_its_datagrams_and_its_end_in_order() {
    let mut bench = Bench::started();
    let leg =
        RelayLeg { leg: LEG, group: "239.0.0.1".to_owned(), port: 5, rate_bps: 1, hops: 1, unicast: None };
    let train = Datagrams { leg: LEG, segment_bytes: 2, bytes: Bytes::from_static(b"sealed") };
    bench.others.clear();
    bench.say(leg.clone());
    bench.bytes(datagrams_header(&train));
    bench.bytes(train.bytes.clone());
    bench.say(RelayLegEnd { leg: LEG });
    bench.messages();
    let [
        SiteOutput::Event(SiteEvent::RelayLeg(told)),
        SiteOutput::Relay(came),
        SiteOutput::Event(SiteEvent::RelayLegEnded(LEG)),
    ] = &bench.others[..]
    else {
        panic!("{:?}", bench.others)
    };
    assert_eq!((told, came), (&leg, &train));
}

#[test]
fn the_answer_of_a_relay_needs_a_connection() {
    let mut bench = Bench::started();
    let open = RelayLegOpen { leg: LEG, source: "10.0.0.1".to_owned(), mtu_bytes: Some(1_400) };
    let now = at(bench.millis);
    bench.site.handle(now, SiteInput::RelayLegOpen(open.clone()));
    assert_eq!(bench.messages(), [Message::from(open.clone())]);
    bench.site.handle(now, SiteInput::Disconnected);
    bench.site.handle(now, SiteInput::RelayLegOpen(open));
    assert_eq!(bench.messages(), [], "the hub asks again in the next session");
}
