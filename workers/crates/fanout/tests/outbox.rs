//! Order, shares and bounds of an outbox.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // A test may fail.

use std::collections::BTreeMap;

use bytes::Bytes;
use downburst_fanout::{
    Classes, Limits, May, Next, Outbox, PARCEL_OVERHEAD_BYTES, Parcel, SLICE_BYTES, Slice, StreamId,
};
use downburst_model::{Class, FeedName, Lane};
use proptest::prelude::*;

fn feed(name: &str) -> FeedName {
    FeedName::parse(name).unwrap()
}

fn parcel(class: Class, lane: Lane, size: usize) -> Parcel {
    Parcel { feed: feed("F"), class, lane, bytes: vec![7; size].into() }
}

fn outbox() -> Outbox<&'static str> {
    Outbox::new(Limits::default())
}

fn slice(outbox: &mut Outbox<&'static str>) -> Slice {
    match outbox.take(StreamId::FIRST) {
        Some(Next::Slice(slice)) => slice,
        other => panic!("no slice but {other:?}"),
    }
}

/// The bytes of each ticket in the next `count` slices.
fn shares(outbox: &mut Outbox<&'static str>, count: usize) -> BTreeMap<u32, usize> {
    let mut shares = BTreeMap::new();
    for _ in 0..count {
        let slice = slice(outbox);
        *shares.entry(slice.ticket).or_default() += slice.bytes.len();
    }
    shares
}

#[test]
fn control_passes_everything() {
    let mut outbox = outbox();
    outbox.push(parcel(Class::Warning, Lane::Live, 10));
    outbox.push_control(Bytes::from_static(b"hello"), "control");
    assert_eq!(outbox.control_bytes(), 5);
    assert_eq!(outbox.take(StreamId::FIRST), Some(Next::Control(Bytes::from_static(b"hello"), "control")));
    assert_eq!(outbox.control_bytes(), 0);
    assert_eq!(slice(&mut outbox).bytes.len(), 10);
    assert!(outbox.is_empty() && outbox.take(StreamId::FIRST).is_none());
}

#[test]
fn an_empty_product_is_one_slice() {
    let mut outbox = outbox();
    let ticket = outbox.push(parcel(Class::Grid, Lane::Live, 0));
    let expected = Slice { ticket, offset: 0, bytes: Bytes::new(), first: true, last: true, live: true };
    assert_eq!(outbox.take(StreamId::FIRST), Some(Next::Slice(expected)));
}

#[test]
fn an_urgent_product_passes_between_the_slices_of_a_large_one() {
    for (large, urgent) in
        [(Class::Bulk, Class::Observation), (Class::Grid, Class::Warning), (Class::Bulk, Class::Grid)]
    {
        let mut outbox = outbox();
        let first = outbox.push(parcel(large, Lane::Live, 20 * SLICE_BYTES));
        for _ in 0..5 {
            assert_eq!(slice(&mut outbox).ticket, first);
        }
        let second = outbox.push(parcel(urgent, Lane::Live, 100));
        assert_eq!(slice(&mut outbox).ticket, second, "{urgent:?} waits for {large:?}");
        let next = slice(&mut outbox);
        assert_eq!((next.ticket, next.offset), (first, 5 * SLICE_BYTES as u64));
    }
}

#[test]
fn warnings_are_strict_and_the_others_share_by_weight() {
    let mut outbox = outbox();
    let tickets = [Class::Observation, Class::Grid, Class::Bulk]
        .map(|class| outbox.push(parcel(class, Lane::Live, 200 * SLICE_BYTES)));
    let warning = outbox.push(parcel(Class::Warning, Lane::Live, 3 * SLICE_BYTES));
    assert_eq!(shares(&mut outbox, 3).into_keys().collect::<Vec<_>>(), [warning]);
    let shares = shares(&mut outbox, 140);
    let slices = tickets.map(|ticket| shares[&ticket] / SLICE_BYTES);
    assert_eq!(slices, [80, 40, 20]);
}

#[test]
fn backfill_keeps_a_ninth_of_its_class() {
    let mut outbox = outbox();
    let late = outbox.push(parcel(Class::Grid, Lane::Backfill, 100 * SLICE_BYTES));
    let live = outbox.push(parcel(Class::Grid, Lane::Live, 100 * SLICE_BYTES));
    let shares = shares(&mut outbox, 90);
    assert_eq!((shares[&live] / SLICE_BYTES, shares[&late] / SLICE_BYTES), (80, 10));
}

#[test]
fn a_class_that_was_silent_saves_nothing_up() {
    let mut outbox = outbox();
    let bulk = outbox.push(parcel(Class::Bulk, Lane::Live, 400 * SLICE_BYTES));
    shares(&mut outbox, 200);
    let grid = outbox.push(parcel(Class::Grid, Lane::Live, 400 * SLICE_BYTES));
    let shares = shares(&mut outbox, 60);
    assert_eq!((shares[&grid] / SLICE_BYTES, shares[&bulk] / SLICE_BYTES), (41, 19));
}

#[test]
fn room_is_taken_and_given_back_by_feed_and_lane() {
    let mut outbox = Outbox::<()>::new(Limits { live_bytes: 10_000, late_bytes: 5_000 });
    let name = feed("F");
    outbox.push(parcel(Class::Grid, Lane::Live, 2_000));
    assert_eq!(outbox.room_bytes(&name, Lane::Live), 8_000 - PARCEL_OVERHEAD_BYTES);
    assert_eq!(outbox.room_bytes(&name, Lane::Backfill), 5_000);
    assert_eq!(outbox.room_bytes(&feed("G"), Lane::Live), 10_000);
    outbox.push(parcel(Class::Grid, Lane::Resend, 100_000));
    assert_eq!(outbox.room_bytes(&name, Lane::Backfill), 0);
    while outbox.take(StreamId::FIRST).is_some() {}
    assert_eq!(outbox.room_bytes(&name, Lane::Live), 10_000);
    assert_eq!(outbox.room_bytes(&name, Lane::Backfill), 5_000);
}

#[test]
fn only_what_was_not_begun_is_withdrawn() {
    let mut outbox = outbox();
    let begun = outbox.push(parcel(Class::Grid, Lane::Live, 3 * SLICE_BYTES));
    let waiting = outbox.push(parcel(Class::Grid, Lane::Live, 10));
    let kept = outbox.push(parcel(Class::Bulk, Lane::Backfill, 10));
    slice(&mut outbox);
    assert_eq!(outbox.withdraw(|ticket| ticket != kept), [waiting]);
    let rest = shares(&mut outbox, 3);
    assert_eq!(rest, BTreeMap::from([(begun, 2 * SLICE_BYTES), (kept, 10)]));
    assert_eq!(outbox.room_bytes(&feed("F"), Lane::Live), Limits::default().live_bytes);
}

proptest! {
    /// All products pushed are taken whole, in order within class and lane, and all room is free afterwards.
    #[test]
    fn everything_comes_out_whole_and_in_order(
        parcels in prop::collection::vec((0usize..4, any::<bool>(), 0usize..200_000, 0usize..3), 1..40),
    ) {
        let classes = [Class::Warning, Class::Observation, Class::Grid, Class::Bulk];
        let mut outbox = outbox();
        let mut sent: BTreeMap<u32, (usize, bool)> = BTreeMap::new();
        let mut line_of = BTreeMap::new();
        let mut sizes = BTreeMap::new();
        let mut finished: BTreeMap<(usize, bool), Vec<u32>> = BTreeMap::new();
        let mut take = |outbox: &mut Outbox<&'static str>, line_of: &BTreeMap<u32, (usize, bool)>| {
            let Some(Next::Slice(slice)) = outbox.take(StreamId::FIRST) else { return false };
            let (bytes, _) = sent.entry(slice.ticket).or_default();
            assert_eq!((slice.offset as usize, slice.first), (*bytes, *bytes == 0));
            assert!(slice.bytes.len() <= SLICE_BYTES);
            *bytes += slice.bytes.len();
            if slice.last {
                finished.entry(line_of[&slice.ticket]).or_default().push(slice.ticket);
            }
            true
        };
        for (class, live, size, takes) in parcels {
            let lane = if live { Lane::Live } else { Lane::Backfill };
            let ticket = outbox.push(parcel(classes[class], lane, size));
            line_of.insert(ticket, (class, live));
            sizes.insert(ticket, size);
            for _ in 0..takes {
                take(&mut outbox, &line_of);
            }
        }
        while take(&mut outbox, &line_of) {}
        prop_assert!(finished.values().all(|tickets| tickets.is_sorted()));
        prop_assert_eq!(finished.values().map(Vec::len).sum::<usize>(), sizes.len());
        let sent: BTreeMap<_, _> = sent.into_iter().map(|(ticket, (bytes, _))| (ticket, bytes)).collect();
        prop_assert_eq!(sent, sizes);
        for lane in [Lane::Live, Lane::Backfill] {
            let limit = if lane == Lane::Live { Limits::default().live_bytes } else { Limits::default().late_bytes };
            prop_assert_eq!(outbox.room_bytes(&feed("F"), lane), limit);
        }
    }
}

#[test]
fn late_products_wait_where_they_may_not_go_and_one_that_has_begun_goes_on_later() {
    let mut outbox = outbox();
    let late = outbox.push(parcel(Class::Grid, Lane::Backfill, 3 * SLICE_BYTES));
    assert_eq!(slice(&mut outbox).ticket, late);
    let live = outbox.push(parcel(Class::Bulk, Lane::Live, 10));
    let only_live = May { classes: Classes::all(), late: false };
    let next = outbox.take_of(StreamId::FIRST, only_live);
    assert!(matches!(next, Some(Next::Slice(Slice { ticket, live: true, .. })) if ticket == live));
    assert!(outbox.take_of(StreamId::FIRST, only_live).is_none() && outbox.has_late());
    assert!(slice(&mut outbox).offset > 0);
    assert!(slice(&mut outbox).last && !outbox.has_late());
}
