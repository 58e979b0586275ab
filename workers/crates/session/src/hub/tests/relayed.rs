//! Datagrams for a relay: messages go before them, and only so many wait.
use super::*;
use crate::{Datagrams, RelayLeg, RelayLegEnd, RelayLegFailed, RelayLegOpen};

const LEG: LegId = LegId(100);

fn train(leg: LegId, fill: u8) -> Datagrams {
    Datagrams { leg, segment_bytes: 1_000, bytes: vec![fill; 9_500].into() }
}

fn leg() -> RelayLeg {
    RelayLeg { leg: LEG, group: "239.0.0.1".to_owned(), port: 5, rate_bps: 8_000_000, hops: 3, unicast: None }
}

impl Bench {
    /// A relay's session whose connection is full.
    fn full() -> Self {
        let mut bench = Self::serving(Vec::new(), 0);
        bench.messages(0);
        let room = bench.hub.line.room_bytes;
        bench.hub.line.room_bytes = 0;
        assert!(room > 0);
        bench
    }

    fn relay(&mut self, train: Datagrams, queue_bytes: usize) {
        self.hub.handle(at(1), HubInput::Datagrams { train, queue_bytes });
    }

    /// The numbers of datagrams that were dropped.
    fn dropped(&mut self) -> Vec<u64> {
        std::iter::from_fn(|| self.hub.poll(at(1)))
            .filter_map(|output| match output {
                HubOutput::Event(HubEvent::RelayDropped { leg: LEG, datagrams }) => Some(datagrams),
                HubOutput::Write { .. } => panic!("there is no room to write"),
                _ => None,
            })
            .collect()
    }

    fn has_room(&mut self) {
        self.hub.handle(at(2), HubInput::Room { stream: StreamId::FIRST, bytes: 1 << 20 });
    }
}

#[test]
fn trains_leave_in_order_behind_every_message() {
    let mut bench = Bench::full();
    bench.relay(train(LEG, 1), 1 << 20);
    bench.relay(train(LEG, 2), 1 << 20);
    bench.hub.handle(at(1), HubInput::RelayLeg(leg()));
    assert!(bench.dropped().is_empty());
    bench.has_room();
    let expected =
        [Frame::Message(leg().into()), Frame::Datagrams(train(LEG, 1)), Frame::Datagrams(train(LEG, 2))];
    assert_eq!(bench.frames(2), expected);
}

#[test]
fn a_connection_that_is_slower_than_the_leg_loses_datagrams_and_counts_them() {
    let mut bench = Bench::full();
    // One train always has room; other legs have a bound of their own.
    for (fill, queue_bytes) in [(1, 0), (2, 0), (3, 19_000), (4, 19_000)] {
        bench.relay(train(LEG, fill), queue_bytes);
    }
    bench.relay(train(LegId(7), 9), 0);
    assert_eq!(bench.dropped(), [10, 10]);
    bench.has_room();
    let arrived = [train(LEG, 1), train(LEG, 3), train(LegId(7), 9)].map(Frame::Datagrams);
    assert_eq!(bench.frames(2), arrived);
    bench.relay(train(LEG, 5), 0);
    assert_eq!(bench.frames(3), [Frame::Datagrams(train(LEG, 5))], "what left makes room");
}

#[test]
fn a_leg_that_ends_takes_its_waiting_datagrams_along() {
    let mut bench = Bench::full();
    bench.relay(train(LEG, 1), 1 << 20);
    bench.relay(train(LegId(7), 2), 1 << 20);
    bench.hub.handle(at(1), HubInput::EndRelayLeg(LEG));
    bench.has_room();
    let end = Frame::Message(RelayLegEnd { leg: LEG }.into());
    assert_eq!(bench.frames(2), [end, Frame::Datagrams(train(LegId(7), 2))]);
}

#[test]
fn the_answers_of_a_relay_are_events() {
    let mut bench = Bench::serving(Vec::new(), 0);
    bench.messages(0);
    let open = RelayLegOpen { leg: LEG, source: "10.0.0.1".to_owned(), mtu_bytes: None };
    let failed = RelayLegFailed { leg: LEG, sentence: "no interface".to_owned() };
    bench.say(1, open.clone());
    bench.say(1, failed.clone());
    let events: Vec<HubEvent> = std::iter::from_fn(|| bench.hub.poll(at(1)))
        .filter_map(|output| match output {
            HubOutput::Event(event) => Some(event),
            _ => None,
        })
        .collect();
    let [HubEvent::RelayLegOpen(said), HubEvent::RelayLegFailed(why)] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!((said, why), (&open, &failed));
}
