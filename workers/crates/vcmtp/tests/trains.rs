//! The trains in which a sender's datagrams leave, by what waits.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails stops"
)]
mod common;

use common::*;
use downburst_model::{Class, Machine, Sequence};
use downburst_vcmtp::{Receiver, Sender, SenderConfig, SenderOutput, SigningSeed};
use proptest::prelude::*;

const RATE_BPS: u64 = 100_000_000;
const FRAME_OVERHEAD_BYTES: u64 = 46;
const FULL_BYTES: usize = 1_446;

/// A sender with proofs, at the beginning of its life.
fn sender(rate_bps: u64) -> Sender {
    let mut config = sender_config(rate_bps);
    config.signing_seed = Some(SigningSeed([3; 32]));
    let mut sender = Sender::new(config);
    run(&mut sender, 0, 0);
    sender
}

/// A sender whose backlog of large products without urgency has left in trains for a while.
fn in_bulk(class: Class) -> Sender {
    let mut sender = sender(RATE_BPS);
    (1..=4).for_each(|sequence| sender.handle(at(1), product(sequence, 1_000_000, class)));
    run(&mut sender, 1, 50_000);
    sender
}

/// The numbers of datagrams that left together, without the first, which the full buckets let out.
fn trains(said: &[(u64, SenderOutput)]) -> Vec<usize> {
    let times: Vec<u64> = said
        .iter()
        .filter(|(_, output)| matches!(output, SenderOutput::Datagram(_)))
        .map(|(at, _)| *at)
        .collect();
    times.chunk_by(|one, other| one == other).skip(1).map(<[u64]>::len).collect()
}

fn sent_at(said: &[(u64, SenderOutput)], sequence: u64) -> Option<u64> {
    let sent = SenderOutput::Sent(Sequence(sequence));
    said.iter().find(|(_, output)| *output == sent).map(|(at, _)| *at)
}

#[test]
fn large_products_leave_in_long_trains_and_all_others_in_short_ones() {
    for (class, size, shortest, longest) in [
        (Class::Grid, 1_000_000, 35, 43),
        (Class::Bulk, 1_000_000, 35, 43),
        (Class::Grid, 20_000, 7, 9),
        (Class::Observation, 1_000_000, 7, 9),
        (Class::Warning, 1_000_000, 7, 9),
    ] {
        let mut sender = sender(RATE_BPS);
        (1..=2_000_000 / size as u64)
            .for_each(|sequence| sender.handle(at(1), product(sequence, size, class)));
        let trains = trains(&run(&mut sender, 1, 100_000));
        let mean = trains.iter().sum::<usize>() / trains.len();
        assert!(mean >= shortest, "{class:?} {size}: {mean} on average");
        assert!(trains.iter().all(|train| *train <= longest), "{class:?} {size}: {trains:?}");
    }
}

#[test]
fn the_driver_of_a_leg_wakes_with_its_trains() {
    for (rate_bps, most) in [(30_000_000, 150), (RATE_BPS, 250), (300_000_000, 650)] {
        let mut sender = sender(rate_bps);
        (1..=rate_bps / 8_000_000)
            .for_each(|sequence| sender.handle(at(1), product(sequence, 1_000_000, Class::Grid)));
        let (mut now, mut wakes) = (1, 0);
        while now < 1_000_000 && sender.backlog_bytes() > 0 {
            drain(&mut sender, at(now));
            now = sender.deadline().unwrap().0;
            wakes += 1;
        }
        assert!(wakes * 1_000_000 / now <= most, "{rate_bps}: {wakes} in {now} us");
    }
}

#[test]
fn a_warning_beside_bulk_does_not_wait_for_a_bulk_train() {
    for class in [Class::Grid, Class::Bulk] {
        for after in (0..5_000).step_by(171) {
            let (mut sender, now) = (in_bulk(class), 50_000 + after);
            run(&mut sender, 50_000, now);
            sender.handle(at(now), product(9, 2_000, Class::Warning));
            let said = run(&mut sender, now, now + 20_000);
            let warned = sent_at(&said, 9).unwrap() - now;
            assert!(warned <= 1_050, "{class:?} after {after}: {warned} us");
        }
    }
}

#[test]
fn a_small_product_passes_bulk_as_a_warning_does() {
    let mut sender = in_bulk(Class::Bulk);
    sender.handle(at(50_000), product(9, 5_000, Class::Grid));
    let said = run(&mut sender, 50_000, 60_000);
    assert!(sent_at(&said, 9).unwrap() <= 51_050);
}

#[test]
fn the_proof_of_a_warning_beside_bulk_does_not_wait_for_a_bulk_train() {
    for after in (0..5_000).step_by(171) {
        let (mut sender, now) = (in_bulk(Class::Bulk), 50_000 + after);
        let mut said = run(&mut sender, 50_000, now);
        sender.handle(at(now), product(9, 2_000, Class::Warning));
        said.extend(run(&mut sender, now, now + 20_000));
        let (mut receiver, mut taken) = (proven_receiver(&sender), Taken::default());
        let mut announced = None;
        for (time, output) in said {
            if let SenderOutput::Datagram(datagram) = output {
                taken.feed(&mut receiver, time, &datagram.freeze());
                let is_known = taken.announced.contains_key(&Sequence(9));
                announced = announced.or(is_known.then_some(time));
            }
        }
        let waited = announced.unwrap() - now;
        // Signed at most every 2 ms.
        assert!(waited <= 3_050, "after {after}: {waited} us");
    }
}

#[test]
fn a_product_ends_as_soon_as_the_rate_allows() {
    for size in [40_000, 100_000, 137_000, 300_000] {
        let mut sender = in_bulk(Class::Bulk);
        run(&mut sender, 50_000, 2_000_000);
        (10..=12).for_each(|sequence| sender.handle(at(2_000_000), product(sequence, size, Class::Grid)));
        let said = run(&mut sender, 2_000_000, 2_100_000);
        let last = said.iter().position(|(_, output)| *output == SenderOutput::Sent(Sequence(12))).unwrap();
        let sent = datagrams(&said[..last]);
        let frames: u64 = sent.iter().map(|bytes| bytes.len() as u64 + FRAME_OVERHEAD_BYTES).sum();
        // Full buckets let 64 KiB out at once, then twice the rate until the burst is used up.
        let time_of = |bytes: u64, bps: u64| bytes * 8_000_000 / bps;
        let ideal = time_of(frames.saturating_sub(65_536), 2 * RATE_BPS);
        let ideal = ideal.max(time_of(frames.saturating_sub(125_000), RATE_BPS));
        let took = said[last].0 - 2_000_000;
        assert!(took <= ideal + 1_100, "{size}: {took} us, at the rate {ideal}");
    }
}

#[test]
fn a_long_train_ends_with_a_proof_that_is_due_before_the_next_one() {
    for (rate_bps, most_waited, trains_each) in [(30_000_000, 0, 1), (RATE_BPS, 5_000, 2)] {
        let mut sender = sender(rate_bps);
        (1..=5).for_each(|sequence| sender.handle(at(1), product(sequence, 1_000_000, Class::Grid)));
        let said = run(&mut sender, 1, 40_000_000_000_000 / rate_bps);
        let (mut receiver, mut taken) = (proven_receiver(&sender), Taken::default());
        let mut whole = Vec::new();
        for (time, output) in &said {
            let SenderOutput::Datagram(datagram) = output else { continue };
            taken.feed(&mut receiver, *time, &datagram.clone().freeze());
            let next = whole.len() as u64 + 1;
            if datagram.len() < FULL_BYTES && taken.is_whole(next, 1_000_000) {
                whole.push(Some(*time));
            }
        }
        let sent: Vec<_> = (1..=4).map(|sequence| sent_at(&said, sequence)).collect();
        whole.truncate(4);
        let proofs = datagrams(&said).iter().filter(|datagram| datagram.len() < FULL_BYTES).count();
        let waited = |(whole, sent): (&Option<u64>, &Option<u64>)| whole.unwrap() - sent.unwrap();
        let longest = whole.iter().zip(&sent).map(waited).max().unwrap();
        assert!(whole.len() == 4 && longest <= most_waited, "{rate_bps}: {longest} us");
        let trains = trains(&said).len();
        assert!(proofs <= trains / trains_each + 8, "{rate_bps}: {proofs} proofs in {trains} trains");
    }
}

fn proven_receiver(sender: &Sender) -> Receiver {
    let mut config = receiver_config();
    config.sender_key = sender.key();
    Receiver::new(config)
}

#[derive(Clone, Debug)]
struct Arrival {
    at: u64,
    size: usize,
    class: Class,
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let class =
        prop_oneof![Just(Class::Warning), Just(Class::Observation), Just(Class::Grid), Just(Class::Bulk)];
    let size = prop_oneof![0usize..5_000, 20_000usize..300_000];
    let arrival = (0u64..150_000, size, class).prop_map(|(at, size, class)| Arrival { at, size, class });
    prop::collection::vec(arrival, 1..30).prop_map(|mut arrivals| {
        arrivals.sort_by_key(|arrival| arrival.at);
        arrivals
    })
}

/// The frames of all arrivals, with their times; the driver comes up to `late` after each deadline.
fn frames(mut config: SenderConfig, arrivals: &[Arrival], late: &[u64]) -> Vec<(u64, u64)> {
    config.signing_seed = Some(SigningSeed([3; 32]));
    let mut sender = Sender::new(config);
    let (mut now, mut wakes, mut frames) = (0, 0, Vec::new());
    let mut coming = (1..).zip(arrivals).peekable();
    while now < 300_000 {
        while let Some((sequence, arrival)) = coming.next_if(|(_, arrival)| arrival.at <= now) {
            sender.handle(at(now), product(sequence, arrival.size, arrival.class));
        }
        for output in drain(&mut sender, at(now)) {
            if let SenderOutput::Datagram(datagram) = output {
                frames.push((now, datagram.len() as u64 + FRAME_OVERHEAD_BYTES));
            }
        }
        let due = sender.deadline().map_or(u64::MAX, |due| due.0);
        assert!(due > now, "a deadline that has passed after polling");
        wakes += 1;
        let next = coming.peek().map_or(u64::MAX, |(_, arrival)| arrival.at);
        now = due.saturating_add(late[wakes % late.len()]).min(next.max(now + 1));
    }
    frames
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn no_stretch_of_time_exceeds_rate_and_burst_whatever_waits(
        rate_bps in 1_000_000u64..400_000_000,
        burst_bytes in 3_000u64..200_000,
        arrivals in arrivals(),
        late in prop::collection::vec(0u64..6_000, 1..20),
    ) {
        let mut config = sender_config(rate_bps);
        config.burst_bytes = burst_bytes;
        let (mut total, mut lowest) = (0i128, i128::MAX);
        for (time, bytes) in frames(config, &arrivals, &late) {
            let allowed = i128::from(rate_bps) * i128::from(time) / 8_000_000;
            lowest = lowest.min(total - allowed);
            total += i128::from(bytes);
            let excess = total - allowed - lowest;
            prop_assert!(excess <= i128::from(burst_bytes) + 1, "{excess} over {burst_bytes}");
        }
    }
}
