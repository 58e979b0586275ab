//! Data connections at the hub.
use super::*;
use crate::{
    Attached, Classes, Mark, Marked, OpenStream, Ride, StreamEnded, StreamPath, StreamPlan, TICKET_LIFE,
    Taken, Ticket,
};

const GRID: Classes = Classes::of(Class::Grid);

impl Bench {
    /// A session that serves a feed with an empty log, with `count` established data connections for grids.
    fn with_streams(count: usize) -> Self {
        let mut bench = Self::serving(vec![position(&[(0, 0)])], 0);
        bench.messages(0);
        bench.tell(0, HubInput::PlanStreams(StreamPlan::routed(vec![GRID; count])));
        for number in 1..=count as u32 {
            bench.open(0, number);
        }
        bench.answer_marks(0);
        bench.others.clear();
        bench
    }

    fn tell(&mut self, millis: u64, input: HubInput) {
        self.hub.handle(at(millis), input);
    }

    /// Answers the draw of a ticket and shows it.
    fn open(&mut self, millis: u64, number: u32) {
        let stream = StreamId(number);
        self.frames(millis);
        let ticket = Ticket([number as u8; 16]);
        self.tell(millis, HubInput::Ticket { stream, ticket: ticket.clone() });
        assert_eq!(self.messages(millis), [OpenStream { stream: number, ticket, path: None }.into()]);
        self.tell(millis, HubInput::StreamOpened(stream));
        self.tell(millis, HubInput::Room { stream, bytes: 1 << 20 });
    }

    fn answer_marks(&mut self, millis: u64) {
        for message in self.messages(millis) {
            if let Message::Mark(mark) = message {
                self.say(millis, Marked { number: mark.number });
            }
        }
        self.messages(millis);
    }

    /// Extends the log to `head`, with a product for the site at each of `numbers`.
    fn publish(&mut self, after: u64, head: u64, numbers: &[u64]) {
        self.head(head);
        self.messages(0);
        self.others.retain(|output| !matches!(output, HubOutput::Read { .. }));
        self.answer(after, head, numbers.iter().map(|number| entry(*number, "x")).collect());
    }

    fn drawn(&self) -> Vec<u32> {
        let drawn = self.others.iter().filter_map(|output| match output {
            HubOutput::DrawTicket(stream) => Some(stream.0),
            _ => None,
        });
        drawn.collect()
    }

    fn closed(&self) -> Vec<u32> {
        let closed = self.others.iter().filter_map(|output| match output {
            HubOutput::CloseStream(stream) => Some(stream.0),
            _ => None,
        });
        closed.collect()
    }

    /// The messages written on a data connection so far.
    fn on(&mut self, number: u32) -> Vec<Message> {
        let mut decoder = Decoder::default();
        self.others.retain(|output| match output {
            HubOutput::Write { stream: StreamId(written), bytes, .. } if *written == number => {
                decoder.push(bytes.clone());
                false
            }
            _ => true,
        });
        let frames = std::iter::from_fn(|| decoder.next().unwrap());
        frames
            .filter_map(|frame| if let Frame::Message(message) = frame { Some(message) } else { None })
            .collect()
    }

    /// The products begun on a stream.
    fn begun_on(&mut self, number: u32) -> Vec<u64> {
        begun(&self.on(number))
    }

    fn is_refused(&mut self, millis: u64) -> bool {
        self.messages(millis).iter().any(|message| matches!(message, Message::Refused(_)))
    }
}

fn begun(messages: &[Message]) -> Vec<u64> {
    let begun = messages.iter().filter_map(|message| match message {
        Message::ProductBegin(begin) => Some(begin.info.key.sequence.0),
        _ => None,
    });
    begun.collect()
}

#[test]
fn a_planned_stream_is_offered_opened_marked_and_then_used() {
    let mut bench = Bench::serving(vec![position(&[(0, 0)])], 0);
    bench.messages(0);
    bench.tell(0, HubInput::PlanStreams(StreamPlan::routed(vec![GRID])));
    bench.open(0, 1);
    assert_eq!(bench.messages(0), [Mark { number: 1 }.into()]);
    assert_eq!(bench.on(1), [Attached { stream: 1 }.into()]);
    bench.publish(0, 1, &[1]);
    let first = bench.messages(0);
    assert_eq!((begun(&first), bench.begun_on(1)), (vec![1], vec![]), "the mark was not answered yet");
    bench.say(0, Marked { number: 1 });
    bench.publish(1, 2, &[2]);
    let first = bench.messages(0);
    assert_eq!((begun(&first), bench.begun_on(1)), (vec![], vec![2]));
}

#[test]
fn warnings_and_classes_that_no_stream_carries_stay_on_the_first() {
    let mut bench = Bench::with_streams(1);
    bench.head(3);
    bench.messages(0);
    let of_class = |number, class| {
        let mut entry = entry(number, "x");
        entry.info.class = class;
        entry
    };
    bench.answer(0, 3, vec![of_class(1, Class::Warning), of_class(2, Class::Bulk), of_class(3, Class::Grid)]);
    let first = bench.messages(0);
    assert_eq!((begun(&first), bench.begun_on(1)), (vec![1, 2], vec![3]));
}

#[test]
fn the_stream_with_the_least_on_its_way_takes_the_next_product() {
    let mut bench = Bench::with_streams(2);
    bench.publish(0, 4, &[1, 2, 3, 4]);
    bench.messages(0);
    assert_eq!((bench.begun_on(1), bench.begun_on(2)), (vec![1, 3], vec![2, 4]));
    bench.say(0, Taken { stream: 2, transfers: 2 });
    bench.publish(4, 5, &[5]);
    bench.messages(0);
    assert_eq!((bench.begun_on(1), bench.begun_on(2)), (vec![], vec![5]));
}

#[test]
fn what_a_lost_stream_did_not_bring_is_owed_again_with_what_it_said() {
    let mut bench = Bench::with_streams(2);
    bench.publish(0, 9, &[1, 4, 9]);
    bench.messages(0);
    assert_eq!((bench.begun_on(1), bench.begun_on(2)), (vec![1, 9], vec![4]));
    bench.say(0, Taken { stream: 1, transfers: 1 });
    bench.tell(0, HubInput::StreamClosed { stream: StreamId(1), reason: "reset".to_owned() });
    bench.messages(0);
    assert_eq!(bench.reads(), [(4, 9)], "5 to 8 were said by the begin of 9 alone");
}

/// A number in flight on a data connection still counts as queued: a Want for it causes no new read, so that
/// neither Covered nor Expired can overtake the product on the first stream.
#[test]
fn what_is_on_its_way_by_another_stream_is_neither_covered_nor_expired() {
    let mut bench = Bench::with_streams(1);
    bench.publish(0, 3, &[1, 2, 3]);
    bench.messages(0);
    let want = || Want { feed: feed(), epoch: EPOCH, sequences: [(1, 3)].into_iter().collect() };
    bench.say(0, Taken { stream: 1, transfers: 1 });
    bench.others.clear();
    bench.say(0, want());
    bench.messages(0);
    assert_eq!(bench.reads(), [(0, 1)], "2 and 3 are on their way");
    bench.answer(0, 1, vec![Entry { bytes: None, ..entry(1, "x") }]);
    let expired = bench.messages(0);
    assert!(matches!(&expired[..], [Message::Expired(expired)] if expired.sequences.iter().eq([(1, 1)])));
}

#[test]
fn a_feed_that_begins_anew_waits_until_the_site_knows() {
    let mut bench = Bench::with_streams(1);
    bench.hub.handle(
        at(0),
        HubInput::Feed { feed: feed(), epoch: Epoch(8), head: Sequence(5), unicast_leg: LegId(1) },
    );
    bench.messages(0);
    bench.hub.handle(at(0), HubInput::FoundTime { feed: feed(), after: Sequence(0) });
    let messages = bench.messages(0);
    assert!(
        matches!(messages[..], [Message::FeedStart(_), Message::Mark(Mark { number: 2 })]),
        "{messages:?}"
    );
    assert_eq!(bench.reads(), []);
    bench.say(0, Marked { number: 2 });
    bench.messages(0);
    assert_eq!(bench.reads(), [(0, 5)]);
}

#[test]
fn an_offer_that_nobody_takes_is_made_anew_ever_more_slowly() {
    let mut bench = Bench::serving(vec![], 0);
    bench.messages(0);
    bench.tell(0, HubInput::PlanStreams(StreamPlan::routed(vec![GRID])));
    let (mut now, mut draws) = (0, Vec::new());
    while draws.len() < 6 {
        bench.tell(now, HubInput::Bytes { stream: StreamId::FIRST, bytes: Bytes::new() });
        bench.messages(now);
        for stream in bench.drawn().into_iter().map(StreamId) {
            draws.push(now);
            bench.tell(now, HubInput::Ticket { stream, ticket: Ticket([1; 16]) });
        }
        bench.others.clear();
        now += 250;
    }
    let life = TICKET_LIFE.0 / 1_000;
    let pauses: Vec<u64> = draws.windows(2).map(|pair| pair[1] - pair[0] - life).collect();
    assert_eq!(pauses, [500, 1_000, 2_000, 4_000, 8_000]);
    bench.tell(now, HubInput::StreamOpened(StreamId(1)));
    bench.messages(now);
    assert_eq!(bench.closed(), [1], "the ticket of an offer that was given up opens nothing");
}

#[test]
fn a_plan_without_it_ends_a_stream_when_all_it_sent_is_there() {
    let mut bench = Bench::with_streams(2);
    bench.publish(0, 2, &[1, 2]);
    bench.messages(0);
    bench.tell(0, HubInput::PlanStreams(StreamPlan::routed(vec![GRID])));
    bench.publish(2, 4, &[3, 4]);
    bench.messages(0);
    assert_eq!((bench.begun_on(1), bench.begun_on(2), bench.closed()), (vec![1, 3, 4], vec![2], vec![]));
    bench.say(0, Taken { stream: 2, transfers: 1 });
    bench.messages(0);
    assert_eq!(bench.closed(), [2]);
    bench.tell(0, HubInput::StreamClosed { stream: StreamId(2), reason: String::new() });
    bench.messages(5_000);
    assert_eq!(bench.drawn(), Vec::<u32>::new(), "it is not opened again");
}

#[test]
fn a_stream_the_site_lost_is_closed_and_offered_anew() {
    let mut bench = Bench::with_streams(1);
    bench.publish(0, 1, &[1]);
    bench.messages(0);
    bench.say(0, StreamEnded { stream: 1, reason: "reset".to_owned() });
    bench.messages(0);
    assert_eq!((bench.closed(), bench.drawn()), (vec![1], vec![]));
    assert_eq!(bench.reads(), [(0, 1)]);
    bench.messages(500);
    assert_eq!(bench.drawn(), [2], "under another number");
}

#[test]
fn wrong_words_about_streams_end_the_session() {
    let wrong: [Message; 3] = [
        Taken { stream: 1, transfers: 2 }.into(),
        Marked { number: 9 }.into(),
        Attached { stream: 1 }.into(),
    ];
    for message in wrong {
        let mut bench = Bench::with_streams(1);
        bench.publish(0, 1, &[1]);
        bench.messages(0);
        bench.say(0, message.clone());
        assert!(bench.is_refused(0), "{message:?}");
    }
    let mut bench = Bench::with_streams(1);
    bench.tell(0, HubInput::Bytes { stream: StreamId(1), bytes: Bytes::from_static(b"x") });
    assert!(bench.is_refused(0), "a site has nothing to say on a data connection");
    let mut bench = Bench::with_streams(1);
    bench.say(0, Taken { stream: 7, transfers: 2 });
    bench.say(0, StreamEnded { stream: 7, reason: String::new() });
    assert!(!bench.is_refused(0), "words about a stream that ended came late");
}

fn circuit() -> StreamPath {
    StreamPath { to: "10.9.0.0:7370".to_owned(), from: "10.9.0.1".to_owned() }
}

/// A plan in which some feeds take a circuit with one connection.
fn riding(feeds: &[FeedName], routed: Vec<Classes>) -> HubInput {
    let ride =
        Ride { path: circuit(), feeds: feeds.iter().cloned().collect(), streams: vec![Classes::all()] };
    HubInput::PlanStreams(StreamPlan { routed, rides: vec![ride] })
}

impl Bench {
    /// A session with one connection by the routed path, and another by a circuit for the feed.
    fn with_ride() -> Self {
        let mut bench = Self::with_streams(1);
        bench.tell(0, riding(&[feed()], vec![GRID]));
        bench.frames(0);
        bench.others.clear();
        let ticket = Ticket([2; 16]);
        bench.tell(0, HubInput::Ticket { stream: StreamId(2), ticket: ticket.clone() });
        let opened = OpenStream { stream: 2, ticket, path: Some(circuit()) };
        assert_eq!(bench.messages(0), [opened.into()]);
        bench.tell(0, HubInput::StreamOpened(StreamId(2)));
        bench.tell(0, HubInput::Room { stream: StreamId(2), bytes: 1 << 20 });
        bench.answer_marks(0);
        bench.others.clear();
        bench
    }
}

#[test]
fn a_feed_that_rides_goes_by_its_path_alone_warnings_as_well() {
    let mut bench = Bench::with_ride();
    let mut warning = entry(2, "x");
    warning.info.class = Class::Warning;
    bench.head(3);
    bench.messages(0);
    bench.answer(0, 3, vec![entry(1, "x"), warning, entry(3, "x")]);
    let first = bench.messages(0);
    assert_eq!((begun(&first), bench.begun_on(1), bench.begun_on(2)), (vec![], vec![], vec![2, 1, 3]));
}

#[test]
fn a_feed_that_does_not_ride_keeps_the_routed_path() {
    let mut bench = Bench::with_ride();
    let another = FeedName::parse("NEXRAD2").unwrap();
    bench.tell(0, riding(&[another], vec![GRID]));
    bench.publish(0, 2, &[1, 2]);
    let first = bench.messages(0);
    assert_eq!((begun(&first), bench.begun_on(1), bench.begun_on(2)), (vec![], vec![1, 2], vec![]));
}

#[test]
fn a_dead_path_is_left_at_once_and_what_was_on_it_is_owed_again() {
    let mut bench = Bench::with_ride();
    bench.publish(0, 2, &[1, 2]);
    bench.messages(0);
    assert_eq!(bench.begun_on(2), [1, 2]);
    bench.tell(1, HubInput::PlanStreams(StreamPlan::routed(vec![GRID])));
    bench.messages(1);
    assert_eq!(bench.closed(), [2], "the connection by the routed path stays");
    assert_eq!(bench.reads(), [(0, 2)]);
    bench.answer(0, 2, vec![entry(1, "x"), entry(2, "x")]);
    let first = bench.messages(1);
    assert_eq!((begun(&first), bench.begun_on(1)), (vec![], vec![1, 2]));
    // When the circuit is back, its connection is opened immediately, without the pause after a failure.
    bench.tell(2, riding(&[feed()], vec![GRID]));
    bench.messages(2);
    assert_eq!(bench.drawn(), [3]);
}

#[test]
fn while_no_connection_by_its_path_stands_a_feed_goes_by_the_first() {
    let mut bench = Bench::with_streams(1);
    bench.tell(0, riding(&[feed()], vec![GRID]));
    bench.publish(0, 1, &[1]);
    let first = bench.messages(0);
    assert_eq!((begun(&first), bench.begun_on(1)), (vec![1], vec![]));
}

#[test]
fn the_routed_path_that_all_feeds_leave_finishes_what_it_began() {
    let mut bench = Bench::with_streams(1);
    bench.publish(0, 2, &[1, 2]);
    bench.messages(0);
    assert_eq!(bench.begun_on(1), [1, 2]);
    bench.tell(1, riding(&[feed()], vec![]));
    bench.messages(1);
    assert_eq!(bench.closed(), []);
    bench.say(2, Taken { stream: 1, transfers: 2 });
    bench.messages(2);
    assert_eq!(bench.closed(), [1]);
    assert!(
        !bench.others.iter().any(|output| matches!(output, HubOutput::Read { .. })),
        "nothing is sent twice"
    );
}
