//! Several streams of one outbox.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // A test may fail.

use std::collections::BTreeMap;

use bytes::Bytes;
use downburst_fanout::{Classes, Limits, Next, Outbox, Parcel, PathId, SLICE_BYTES, Slice, StreamId};
use downburst_model::{Class, FeedName, Lane};
use proptest::prelude::*;

const A: StreamId = StreamId(1);
const B: StreamId = StreamId(2);

const CIRCUIT: PathId = PathId(1);

fn feed(name: &str) -> FeedName {
    FeedName::parse(name).unwrap()
}

fn parcel(class: Class, lane: Lane, size: usize) -> Parcel {
    Parcel { feed: feed("F"), class, lane, bytes: vec![7; size].into() }
}

/// A grid product of feed G, the feed that tests assign to the circuit.
fn riding(size: usize) -> Parcel {
    Parcel { feed: feed("G"), ..live(Class::Grid, size) }
}

fn ride(outbox: &mut Outbox<()>, names: &[&str]) {
    outbox.ride(names.iter().map(|name| (feed(name), CIRCUIT)).collect());
}

fn live(class: Class, size: usize) -> Parcel {
    parcel(class, Lane::Live, size)
}

/// An outbox in which the given streams carry the given classes, and the first stream the rest.
fn outbox(streams: &[(StreamId, &[Class])]) -> Outbox<()> {
    let mut outbox = Outbox::new(Limits::default());
    let mut taken = Classes::NONE;
    for (stream, classes) in streams {
        let classes: Classes = classes.iter().copied().collect();
        outbox.carry(*stream, PathId::FIRST, classes);
        taken = taken.and(classes);
    }
    outbox.carry(StreamId::FIRST, PathId::FIRST, Classes::all().without(taken));
    outbox
}

fn slice(outbox: &mut Outbox<()>, stream: StreamId) -> Option<Slice> {
    match outbox.take(stream)? {
        Next::Slice(slice) => Some(slice),
        Next::Control(..) => panic!("control was not expected"),
    }
}

fn tickets(outbox: &mut Outbox<()>, stream: StreamId, count: usize) -> Vec<u32> {
    (0..count).map_while(|_| slice(outbox, stream)).map(|slice| slice.ticket).collect()
}

#[test]
fn a_product_stays_whole_on_the_stream_that_began_it() {
    let mut outbox = outbox(&[(A, &[Class::Grid]), (B, &[Class::Grid])]);
    let [first, second, third] = [3, 1, 1].map(|slices| outbox.push(live(Class::Grid, slices * SLICE_BYTES)));
    assert_eq!(tickets(&mut outbox, A, 1), [first]);
    assert_eq!(tickets(&mut outbox, B, 1), [second], "the second stream does not wait for the large one");
    assert_eq!(tickets(&mut outbox, B, 9), [third], "nor does it take a part of it");
    assert!(outbox.has_begun(A) && !outbox.has_begun(B));
    assert_eq!(tickets(&mut outbox, A, 9), [first, first]);
    assert!(outbox.is_empty());
}

#[test]
fn control_goes_on_the_first_stream_alone_and_classes_where_they_are_carried() {
    let mut outbox = outbox(&[(A, &[Class::Bulk])]);
    let bulk = outbox.push(live(Class::Bulk, 10));
    let warning = outbox.push(live(Class::Warning, 10));
    outbox.push_control(Bytes::from_static(b"control"), ());
    assert_eq!(tickets(&mut outbox, A, 9), [bulk]);
    assert!(matches!(outbox.take(StreamId::FIRST), Some(Next::Control(..))));
    assert_eq!(tickets(&mut outbox, StreamId::FIRST, 9), [warning]);
    assert!(outbox.take(B).is_none(), "a stream that is not there carries nothing");
}

#[test]
fn each_stream_shares_between_its_classes_by_weight() {
    let mut outbox =
        outbox(&[(A, &[Class::Observation, Class::Bulk]), (B, &[Class::Observation, Class::Bulk])]);
    let mut class_of = BTreeMap::new();
    for _ in 0..200 {
        class_of.insert(outbox.push(live(Class::Observation, SLICE_BYTES)), Class::Observation);
        class_of.insert(outbox.push(live(Class::Bulk, SLICE_BYTES)), Class::Bulk);
    }
    for stream in [A, B] {
        let tickets = tickets(&mut outbox, stream, 100);
        let urgent = tickets.iter().filter(|ticket| class_of[ticket] == Class::Observation).count();
        assert_eq!(urgent, 80, "{stream:?}");
    }
}

#[test]
fn a_stream_that_takes_up_a_class_saves_nothing_up() {
    let mut outbox = outbox(&[(A, &[Class::Grid])]);
    let grid = outbox.push(live(Class::Grid, 100 * SLICE_BYTES));
    tickets(&mut outbox, A, 50);
    let observation = outbox.push(live(Class::Observation, 100 * SLICE_BYTES));
    outbox.carry(A, PathId::FIRST, [Class::Grid, Class::Observation].into_iter().collect());
    let next = tickets(&mut outbox, A, 30);
    let of = |ticket| next.iter().filter(|taken| **taken == ticket).count();
    assert!(of(observation) >= 20 && of(grid) >= 9, "{next:?}");
}

#[test]
fn a_stream_that_ends_names_what_it_had_begun_and_frees_its_room() {
    let mut outbox = outbox(&[(A, &[Class::Grid]), (B, &[Class::Grid])]);
    let feed = FeedName::parse("F").unwrap();
    let begun = outbox.push(live(Class::Grid, 3 * SLICE_BYTES));
    let late = outbox.push(parcel(Class::Grid, Lane::Backfill, 3 * SLICE_BYTES));
    let waiting = outbox.push(live(Class::Grid, SLICE_BYTES));
    tickets(&mut outbox, A, 1);
    assert_eq!(outbox.withdraw(|_| true), [waiting, late]);
    assert_eq!(outbox.end(A), [begun]);
    assert_eq!(outbox.room_bytes(&feed, Lane::Live), Limits::default().live_bytes);
    assert!(outbox.end(A).is_empty() && outbox.is_empty());
}

#[test]
fn what_a_stream_has_begun_goes_on_though_it_carries_the_class_no_more() {
    let mut outbox = outbox(&[(A, &[Class::Grid])]);
    let begun = outbox.push(live(Class::Grid, 2 * SLICE_BYTES));
    let other = outbox.push(live(Class::Grid, 10));
    tickets(&mut outbox, A, 1);
    outbox.carry(A, PathId::FIRST, Classes::NONE);
    outbox.carry(StreamId::FIRST, PathId::FIRST, Classes::all());
    assert_eq!(tickets(&mut outbox, StreamId::FIRST, 9), [other]);
    assert_eq!(tickets(&mut outbox, A, 9), [begun]);
}

#[test]
fn feeds_take_their_own_path_and_what_waits_follows_them() {
    let mut outbox = outbox(&[(A, &[Class::Grid])]);
    outbox.carry(B, CIRCUIT, Classes::all());
    let [first, second] = [riding(2 * SLICE_BYTES), riding(10)].map(|parcel| outbox.push(parcel));
    let routed = outbox.push(live(Class::Grid, 10));
    assert_eq!(tickets(&mut outbox, A, 1), [first], "nobody rides yet");
    ride(&mut outbox, &["G"]);
    let third = outbox.push(riding(10));
    assert_eq!(tickets(&mut outbox, B, 9), [second, third]);
    assert_eq!(tickets(&mut outbox, A, 9), [first, routed], "what has begun goes on where it is");
    let back = outbox.push(riding(10));
    ride(&mut outbox, &[]);
    assert_eq!((tickets(&mut outbox, B, 9), tickets(&mut outbox, A, 9)), (vec![], vec![back]));
}

#[test]
fn a_stream_of_several_paths_keeps_the_order_in_which_products_came() {
    let mut outbox = outbox(&[]);
    outbox.carry(StreamId::FIRST, CIRCUIT, Classes::all());
    ride(&mut outbox, &["G"]);
    let came: Vec<u32> = (0..6)
        .map(|number| outbox.push(if number % 2 == 0 { riding(10) } else { live(Class::Grid, 10) }))
        .collect();
    assert_eq!(tickets(&mut outbox, StreamId::FIRST, 9), came);
}

/// A class that was idle on a path gains no credit for the bytes that its stream sent.
#[test]
fn feeds_that_come_over_to_a_path_save_nothing_up() {
    let mut outbox = outbox(&[]);
    outbox.carry(A, CIRCUIT, Classes::all());
    ride(&mut outbox, &["G"]);
    let grid = outbox.push(riding(100 * SLICE_BYTES));
    tickets(&mut outbox, A, 50);
    let observation = outbox.push(live(Class::Observation, 100 * SLICE_BYTES));
    ride(&mut outbox, &["F", "G"]);
    let next = tickets(&mut outbox, A, 30);
    let of = |ticket| next.iter().filter(|taken| **taken == ticket).count();
    assert!(of(observation) >= 20 && of(grid) >= 9, "{next:?}");
}

#[derive(Clone, Debug)]
enum Step {
    Push(usize, bool, usize),
    Take(u32, usize),
    Carry(u32, bool, Vec<usize>),
    Ride(bool, bool),
    End(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0usize..4, any::<bool>(), 0usize..200_000).prop_map(|(c, live, size)| Step::Push(c, live, size)),
        4 => (0u32..4, 1usize..6).prop_map(|(stream, count)| Step::Take(stream, count)),
        1 => (1u32..4, any::<bool>(), prop::collection::vec(0usize..4, 0..4))
            .prop_map(|(stream, rides, classes)| Step::Carry(stream, rides, classes)),
        1 => (any::<bool>(), any::<bool>()).prop_map(|(f, g)| Step::Ride(f, g)),
        1 => (1u32..4).prop_map(Step::End),
    ]
}

proptest! {
    /// With any sequence of steps, each product is sent whole on one stream, or is returned when its stream ends.
    /// Its slices are contiguous, and at the end all room is free.
    #[test]
    fn nothing_is_lost_between_streams(steps in prop::collection::vec(step(), 1..120)) {
        let classes = [Class::Warning, Class::Observation, Class::Grid, Class::Bulk];
        let mut outbox = Outbox::<()>::new(Limits::default());
        outbox.carry(StreamId::FIRST, CIRCUIT, Classes::all());
        let mut sent: BTreeMap<u32, (StreamId, usize)> = BTreeMap::new();
        let mut open: BTreeMap<u32, usize> = BTreeMap::new();
        let mut take = |outbox: &mut Outbox<()>, open: &mut BTreeMap<u32, usize>, stream: StreamId| {
            let Some(slice) = slice(outbox, stream) else { return false };
            let (on, bytes) = sent.entry(slice.ticket).or_insert((stream, 0));
            assert_eq!((*on, *bytes as u64), (stream, slice.offset));
            *bytes += slice.bytes.len();
            if slice.last {
                assert_eq!(open.remove(&slice.ticket), Some(*bytes));
            }
            true
        };
        for step in steps {
            match step {
                Step::Push(class, live, size) => {
                    let lane = if live { Lane::Live } else { Lane::Resend };
                    let name = if size % 2 == 0 { "F" } else { "G" };
                    let parcel = Parcel { feed: feed(name), ..parcel(classes[class], lane, size) };
                    open.insert(outbox.push(parcel), size);
                }
                Step::Take(stream, count) => {
                    for _ in 0..count {
                        take(&mut outbox, &mut open, StreamId(stream));
                    }
                }
                Step::Carry(stream, rides, some) => {
                    let path = if rides { CIRCUIT } else { PathId::FIRST };
                    outbox.carry(StreamId(stream), path, some.into_iter().map(|class| classes[class]).collect());
                }
                Step::Ride(f, g) => {
                    let names = [(f, "F"), (g, "G")];
                    let names: Vec<&str> =
                        names.iter().filter(|(rides, _)| *rides).map(|(_, name)| *name).collect();
                    ride(&mut outbox, &names);
                }
                Step::End(stream) => {
                    for ticket in outbox.end(StreamId(stream)) {
                        prop_assert!(open.remove(&ticket).is_some());
                    }
                }
            }
        }
        while (0..4).any(|stream| take(&mut outbox, &mut open, StreamId(stream))) {}
        prop_assert!(open.is_empty() && outbox.is_empty(), "{:?}", open);
        for name in ["F", "G"] {
            prop_assert_eq!(outbox.room_bytes(&feed(name), Lane::Live), Limits::default().live_bytes);
            prop_assert_eq!(outbox.room_bytes(&feed(name), Lane::Backfill), Limits::default().late_bytes);
        }
    }
}
