//! Data connections at the site.
use super::*;
use crate::{
    Attach, Attached, CircuitEnd, CircuitHeard, CircuitProbe, CircuitProbed, CircuitReport, CircuitState,
    Covered, Mark, Marked, OpenStream, PathProbe, PathProbed, ProbeOrder, ProbeSaid, StreamEnded, StreamPath,
    Taken, Ticket,
};

impl Bench {
    /// A site that can receive products on stream 1.
    fn with_stream() -> Self {
        let mut bench = Self::started();
        bench.open(1);
        bench.messages();
        bench.others.clear();
        bench
    }

    fn open(&mut self, number: u32) {
        let stream = StreamId(number);
        self.say(OpenStream { stream: number, ticket: Ticket([number as u8; 16]), path: None });
        self.site.handle(at(self.millis), SiteInput::StreamOpened(stream));
        self.say_on(number, Attached { stream: number });
    }

    fn say_on(&mut self, number: u32, message: impl Into<Message>) {
        self.bytes_on(number, message.into().encode());
    }

    fn bytes_on(&mut self, number: u32, bytes: Bytes) {
        self.site.handle(at(self.millis), SiteInput::Bytes { stream: StreamId(number), bytes });
    }

    fn slice_on(&mut self, number: u32, transfer: u32, offset: u64, bytes: &'static [u8]) {
        self.bytes_on(number, slice_header(transfer, offset, bytes.len()));
        self.bytes_on(number, Bytes::from_static(bytes));
    }

    fn lose(&mut self, number: u32) {
        let (stream, reason) = (StreamId(number), "reset".to_owned());
        self.site.handle(at(self.millis), SiteInput::StreamClosed { stream, reason });
    }

    fn violates(&mut self) -> bool {
        self.count(|output| matches!(output, SiteOutput::Event(SiteEvent::Violation(_)))) > 0
    }
}

fn takes(messages: &[Message]) -> Vec<Taken> {
    let takes = messages.iter().filter_map(|message| match message {
        Message::Taken(taken) => Some(taken.clone()),
        _ => None,
    });
    takes.collect()
}

#[test]
fn a_stream_is_opened_with_its_ticket_and_told_when_it_ends() {
    let mut bench = Bench::started();
    let ticket = Ticket([5; 16]);
    bench.say(OpenStream { stream: 1, ticket: ticket.clone(), path: None });
    assert_eq!(bench.count(|output| matches!(output, SiteOutput::OpenStream(StreamId(1)))), 1);
    bench.site.handle(at(0), SiteInput::StreamOpened(StreamId(1)));
    let Some(SiteOutput::Write { stream: StreamId(1), bytes }) = bench.site.poll(at(0)) else {
        panic!("the ticket is not shown");
    };
    assert_eq!(bytes, Message::from(Attach { ticket }).encode());
    bench.say_on(1, Attached { stream: 1 });
    assert_eq!(bench.count(|output| matches!(output, SiteOutput::Event(SiteEvent::StreamAttached(_)))), 1);
    bench.lose(1);
    let ended = StreamEnded { stream: 1, reason: "reset".to_owned() };
    assert_eq!(bench.messages(), [ended.into()]);
    bench.lose(1);
    assert_eq!(bench.messages(), [], "once");
}

#[test]
fn products_come_by_a_stream_and_are_told_as_taken() {
    let mut bench = Bench::with_stream();
    bench.say_on(1, begin(3, 0, 5));
    bench.slice_on(1, 3, 0, b"abcde");
    bench.say_on(1, begin(4, 3, 0));
    assert_eq!(bench.count(is_complete), 2);
    bench.settled(3, StoreResult::Stored);
    bench.settled(4, StoreResult::Stored);
    assert_eq!(takes(&bench.wait(49)), []);
    assert_eq!(takes(&bench.wait(2)), [Taken { stream: 1, transfers: 2 }]);
    assert_eq!(bench.ranges(), [(0, 4)]);
}

#[test]
fn many_transfers_are_told_at_once() {
    let mut bench = Bench::with_stream();
    for number in 1..=64 {
        bench.say_on(1, begin(number, number - 1, 0));
    }
    assert_eq!(takes(&bench.messages()), [Taken { stream: 1, transfers: 64 }]);
}

/// The hub would not answer a Want for products that it counts as in flight.
#[test]
fn what_was_taken_is_told_before_anything_is_asked() {
    let mut bench = Bench::with_stream();
    bench.say_on(1, begin(3, 0, 5));
    bench.slice_on(1, 3, 0, b"abcde");
    bench.settled(3, StoreResult::DigestMismatch);
    let said = bench.messages();
    let place = |which: &dyn Fn(&Message) -> bool| said.iter().position(which).unwrap();
    assert!(
        place(&|said| matches!(said, Message::Taken(_))) < place(&|said| matches!(said, Message::Want(_)))
    );
}

#[test]
fn a_product_whose_stream_is_lost_goes_on_where_it_comes_again() {
    let mut bench = Bench::with_stream();
    bench.open(2);
    bench.say_on(1, begin(3, 0, 5));
    bench.slice_on(1, 3, 0, b"ab");
    bench.lose(1);
    assert_eq!(wants(&bench.messages()), Vec::<Vec<(u64, u64)>>::new(), "the hub knows by itself");
    bench.say_on(2, ProductBegin { transfer: 9, ..begin(3, 0, 5) });
    bench.slice_on(2, 9, 0, b"abcde");
    assert_eq!(bench.count(is_complete), 1);
    assert_eq!(bench.count(|output| matches!(output, SiteOutput::Begin(_))), 1);
}

/// A product in flight on one stream is not settled by a message on another stream about the numbers around it.
#[test]
fn word_on_one_stream_settles_nothing_that_another_brings() {
    let mut bench = Bench::with_stream();
    bench.open(2);
    bench.say_on(1, begin(3, 2, 5));
    bench.say_on(2, begin(9, 5, 0));
    bench.say(Covered { feed: feed(), epoch: EPOCH, from: Sequence(1), to: Sequence(2) });
    bench.settled(9, StoreResult::Stored);
    bench.messages();
    assert_eq!(bench.ranges(), [(0, 2), (6, 9)]);
}

#[test]
fn a_stream_that_the_hub_gave_up_is_closed_here() {
    let mut bench = Bench::with_stream();
    bench.say_on(1, begin(3, 0, 5));
    bench.say(StreamEnded { stream: 1, reason: "it was stuck".to_owned() });
    bench.say(StreamEnded { stream: 1, reason: "it was stuck".to_owned() });
    assert_eq!(bench.messages(), [], "the hub knows");
    assert_eq!(bench.count(|output| matches!(output, SiteOutput::CloseStream(StreamId(1)))), 1);
    bench.slice_on(1, 3, 0, b"abcde");
    assert_eq!(bench.count(is_complete), 0);
}

#[test]
fn a_mark_is_answered_behind_what_came_before_it() {
    let mut bench = Bench::started();
    bench.say(Mark { number: 4 });
    assert_eq!(bench.messages(), [Marked { number: 4 }.into()]);
}

#[test]
fn all_streams_end_with_the_first() {
    let mut bench = Bench::with_stream();
    bench.say_on(1, begin(3, 0, 5));
    bench.slice_on(1, 3, 0, b"ab");
    bench.site.handle(at(0), SiteInput::Disconnected);
    bench.messages();
    bench.connect();
    bench.say(FeedStart { feed: feed(), epoch: EPOCH, after: Sequence(0), duplicates: None });
    bench.messages();
    bench.bytes_on(1, Bytes::from_static(b"what is left of the former session"));
    bench.lose(1);
    assert!(!bench.violates());
    bench.open(1);
    bench.say_on(1, begin(3, 0, 0));
    assert_eq!(bench.count(is_complete), 1, "numbers begin anew with the session");
}

#[test]
fn what_has_no_place_on_a_data_connection_ends_the_session() {
    let frames: [Bytes; 5] = [
        Message::from(Mark { number: 1 }).encode(),
        Message::from(Covered { feed: feed(), epoch: EPOCH, from: Sequence(1), to: Sequence(9) }).encode(),
        Message::from(Attached { stream: 1 }).encode(),
        Bytes::from_static(&[6, 0, 0, 0, 2, 0xff, 0xff]),
        Bytes::from_static(&[1, 0xff, 0xff, 0xff, 0xff]),
    ];
    for frame in frames {
        let mut bench = Bench::with_stream();
        bench.bytes_on(1, frame.clone());
        assert!(bench.violates(), "{frame:?}");
    }
    let mut bench = Bench::with_stream();
    bench.open(2);
    bench.say_on(1, begin(3, 0, 5));
    bench.slice_on(2, 3, 0, b"abcde");
    assert!(bench.violates(), "a slice of a transfer that began on another stream");
}

#[test]
fn a_hub_can_not_have_any_number_of_streams_opened() {
    let mut bench = Bench::started();
    for number in 1..=40 {
        bench.say(OpenStream { stream: number, ticket: Ticket([1; 16]), path: None });
    }
    assert!(bench.violates());
    assert_eq!(bench.count(|output| matches!(output, SiteOutput::OpenStream(_))), 32);
    for number in [0, 1] {
        let mut bench = Bench::with_stream();
        bench.say(OpenStream { stream: number, ticket: Ticket([1; 16]), path: None });
        assert!(bench.violates(), "the stream {number} is there already");
    }
}

proptest! {
    #[test]
    fn garbage_on_a_data_connection_ends_it_and_nothing_else(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut bench = Bench::with_stream();
        bench.bytes_on(1, bytes.into());
        bench.messages();
        prop_assert_eq!(bench.ranges(), [(0, 0)]);
    }
}

#[test]
fn a_data_connection_is_opened_by_the_path_that_the_hub_names() {
    let mut bench = Bench::started();
    let path = StreamPath { to: "10.9.0.0:7370".to_owned(), from: "10.9.0.1".to_owned() };
    bench.say(OpenStream { stream: 1, ticket: Ticket([1; 16]), path: Some(path.clone()) });
    bench.say(OpenStream { stream: 2, ticket: Ticket([2; 16]), path: None });
    assert_eq!(bench.site.stream_path(StreamId(1)), Some(&path));
    assert_eq!(bench.site.stream_path(StreamId(2)), None);
}

#[test]
fn what_the_hub_says_of_circuits_reaches_the_driver_and_its_answer_the_hub() {
    let mut bench = Bench::started();
    bench.say(CircuitEnd { lease: 7 });
    assert_eq!(bench.count(|output| matches!(output, SiteOutput::Event(SiteEvent::CircuitEnded(_)))), 1);
    let state = CircuitState { lease: 7, fault: None };
    bench.site.handle(at(0), SiteInput::Circuit(CircuitReport::State(state.clone())));
    let heard = CircuitHeard { lease: 7, fault: None };
    bench.site.handle(at(0), SiteInput::Circuit(CircuitReport::Heard(heard.clone())));
    let said = bench.messages();
    assert!(said.contains(&state.into()) && said.contains(&heard.into()));
}

#[test]
fn an_order_in_a_probe_of_the_path_reaches_the_driver_and_its_answer_the_hub() {
    let mut bench = Bench::started();
    let probe = PathProbe { run: 3, order: ProbeOrder::Hold };
    bench.say(probe.clone());
    let is_asked =
        |it: &SiteOutput| matches!(it, SiteOutput::Event(SiteEvent::PathProbe(got)) if *got == probe);
    assert_eq!(bench.count(is_asked), 1);
    let probed = PathProbed { run: 3, said: ProbeSaid::Refused("no".to_owned()) };
    bench.site.handle(at(0), SiteInput::PathProbed(Box::new(probed.clone())));
    assert!(bench.messages().contains(&probed.into()));
}

#[test]
fn a_measurement_of_a_circuit_reaches_the_driver_and_its_result_the_hub() {
    let mut bench = Bench::started();
    let probe = CircuitProbe { lease: 7, run: 3, train: None };
    bench.say(probe);
    let is_asked =
        |it: &SiteOutput| matches!(it, SiteOutput::Event(SiteEvent::CircuitProbe(got)) if *got == probe);
    assert_eq!(bench.count(is_asked), 1);
    let probed = CircuitProbed { lease: 7, run: 3, reach: None, rate: None };
    let report = CircuitReport::Probed(Box::new(probed.clone()));
    bench.site.handle(at(0), SiteInput::Circuit(report));
    assert!(bench.messages().contains(&probed.into()));
}
