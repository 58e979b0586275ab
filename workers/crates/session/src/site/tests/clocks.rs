//! The comparison of the clocks, at the site.
use super::*;
use crate::site::clock::Clock;

#[test]
fn the_clock_is_compared_four_times_at_once_and_the_shortest_delays_count() {
    let mut bench = Bench::new();
    bench.connect();
    let mut requests = 0;
    for round_trip in [40, 10, 30, 20] {
        let said = bench.messages();
        let request = said.iter().rev().find_map(|message| match message {
            Message::ClockRequest(request) => Some(*request),
            _ => None,
        });
        let Some(request) = request else { break };
        requests += 1;
        // The hub is 2 s behind; all of the delay beyond 5 ms lies on the way back.
        let hub = WallMicros(request.sent.0 - 2_000_000 + 5_000);
        bench.millis += round_trip;
        bench.say(ClockReply { request_sent: request.sent, received: hub, sent: hub });
    }
    bench.messages();
    assert_eq!(requests, 4);
    let last = bench.others.iter().rev().find_map(|output| match output {
        SiteOutput::Event(SiteEvent::Clock(offset)) => Some(*offset),
        _ => None,
    });
    let last = last.unwrap();
    // The clocks may have drifted since the shortest delays: by 10 µs at most.
    assert!(last.offset_us.abs_diff(2_000_000) <= 10, "{last:?}");
    assert!((5_000..5_100).contains(&last.bound_us) && last.round_trip_us == 10_000, "{last:?}");
    let times = exchange_times(&mut bench, 20_000);
    assert_eq!(times, [250, 750, 1_750, 3_750, 7_750, 12_750, 17_750]);
}

#[test]
fn a_step_of_the_sites_clock_starts_the_comparison_again() {
    let mut clock = Clock::default();
    let at = |millis: u64, wall: i64| Now { monotonic: Micros::from_millis(millis), wall: WallMicros(wall) };
    clock.start(at(0, 1_000_000));
    let exchange = |clock: &mut Clock, millis: u64, wall: i64| {
        let request = clock.due(at(millis, wall))?;
        let hub = WallMicros(millis as i64 * 1_000 + 5_000);
        let reply = ClockReply { request_sent: request.sent, received: hub, sent: hub };
        clock.reply(at(millis + 10, wall + 10_000), &reply)
    };
    for millis in [0, 10] {
        let found = exchange(&mut clock, millis, 1_000_000 + millis as i64 * 1_000).unwrap();
        assert!(found.offset_us.abs_diff(1_000_000) <= 1, "{found:?}");
    }
    let request = clock.due(at(20, 1_020_000)).unwrap();
    let stepped = at(30, -2_970_000);
    let reply =
        ClockReply { request_sent: request.sent, received: WallMicros(25_000), sent: WallMicros(25_000) };
    assert_eq!(clock.reply(stepped, &reply), None, "the exchange spans the step");
    assert_eq!((clock.offset_of(&[], stepped), clock.deadline()), (None, Some(stepped.monotonic)));
    let found = exchange(&mut clock, 40, -2_960_000).unwrap();
    assert!(found.offset_us.abs_diff(-3_000_000) <= 1, "{found:?}");
}

#[test]
fn the_offset_of_receipts_is_that_of_their_stamps() {
    let mut clock = Clock::default();
    let at =
        |millis: u64| Now { monotonic: Micros::from_millis(millis), wall: WallMicros(millis as i64 * 1_000) };
    clock.start(at(0));
    for millis in [0, 10, 20] {
        let request = clock.due(at(millis)).unwrap();
        let hub = WallMicros(millis as i64 * 1_000 + 5_000);
        clock.reply(at(millis + 10), &ClockReply { request_sent: request.sent, received: hub, sent: hub });
    }
    let receipt =
        |millis: i64| Receipt::undescribed(info(1, "x", 0).key, Outcome::Stored, WallMicros(millis * 1_000));
    let bound_us = |stamps: &[i64]| {
        let receipts: Vec<Receipt> = stamps.iter().map(|millis| receipt(*millis)).collect();
        let clock = clock.offset_of(&receipts, at(30)).unwrap();
        assert_eq!(clock.round_trip_us, 10_000);
        clock.bound_us
    };
    assert!(bound_us(&[]) < 5_100 && bound_us(&[30]) < 5_100);
    assert!(
        bound_us(&[-3_600_000, 30]) > 3_000_000,
        "a stamp of an hour ago, with a drift of up to 1,000 ppm"
    );
}

/// When the site asks for the hub's time within a span, in milliseconds since its start.
fn exchange_times(bench: &mut Bench, millis: u64) -> Vec<u64> {
    let begin = bench.millis;
    let mut times = Vec::new();
    while bench.millis < begin + millis {
        let never = WallMicros(0);
        bench.say(ClockReply { request_sent: never, received: never, sent: never });
        if bench.wait(10).iter().any(|message| matches!(message, Message::ClockRequest(_))) {
            times.push(bench.millis - begin);
        }
    }
    times
}
