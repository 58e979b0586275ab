use super::*;
use crate::packet::request::Losses;

fn asked(ranges: &[(u64, u64)]) -> Request {
    ranges.iter().copied().collect::<RangeSet>().into()
}

/// Quarters of a second of 1,000 packets each; `lost` gives the losses by site and interval.
struct Leg {
    rate: LegRate,
    intervals: u64,
    named: Vec<(u64, u64)>,
}

impl Leg {
    fn new() -> Self {
        Self { rate: LegRate::new(100_000_000, 0.5), intervals: 0, named: Vec::new() }
    }

    fn run(&mut self, intervals: u64, sites: u64, lost: impl Fn(u64, u64) -> f64) {
        for _ in 0..intervals {
            let (first, sent) = (self.intervals * 1_000 + 1, (self.intervals + 1) * 1_000);
            self.intervals += 1;
            for session in 0..sites {
                let packets = (lost(session, self.intervals) * 1_000.0) as u64;
                if packets > 0 {
                    self.rate.lost(self.now(), session, &asked(&[(first, first + packets - 1)]), sent);
                }
            }
            self.look(sites as usize);
        }
    }

    fn now(&self) -> Micros {
        Micros::from_millis(self.intervals * 250)
    }

    fn look(&mut self, sites: usize) {
        self.rate.look(self.now(), self.intervals * 1_000, sites);
        let named = self.rate.stragglers();
        self.named.extend(named.into_iter().map(|straggler| (straggler.session, self.intervals)));
    }
}

/// The stragglers reported among seven sites that lose these shares, with the interval of the report.
fn strike(intervals: u64, loss: impl Fn(u64, u64) -> f64) -> Vec<(u64, u64)> {
    let mut leg = Leg::new();
    leg.run(intervals, 7, loss);
    leg.named
}

#[test]
fn one_lossy_site_slows_nobody() {
    for sites in [2, 3, 7] {
        let mut leg = Leg::new();
        leg.run(40, sites, |session, _| if session == 0 { 0.15 } else { 0.0 });
        assert_eq!(leg.rate.current_bps, 100_000_000, "{sites} sites");
    }
}

#[test]
fn the_operator_says_how_many_sites_may_lose_before_all_go_slower() {
    let rate_after = |quantile: f64| {
        let mut leg = Leg { rate: LegRate::new(100_000_000, quantile), ..Leg::new() };
        leg.run(4, 10, |session, _| if session < 2 { 0.1 } else { 0.0 });
        leg.rate.current_bps
    };
    assert_eq!(rate_after(0.5), 100_000_000, "two of ten say nothing");
    assert!(rate_after(0.9) < 100_000_000, "but they are more than a tenth");
    assert_eq!(rate_after(f64::NAN), 100_000_000);
}

#[test]
fn a_slow_site_does_not_make_the_middle_of_one_that_loses_a_little() {
    let mut leg = Leg::new();
    leg.run(7, 3, |session, _| [0.5, 0.05, 0.0][session as usize]);
    assert_eq!(leg.rate.current_bps, 100_000_000);
}

#[test]
fn bursts_of_loss_now_and_then_leave_the_rate_alone() {
    let mut leg = Leg::new();
    leg.run(400, 3, |session, interval| if session < 2 && interval % 5 < 2 { 0.3 } else { 0.0 });
    assert_eq!(leg.rate.current_bps, 100_000_000);
}

#[test]
fn what_was_lost_before_a_cut_is_not_held_against_the_rate_after_it() {
    let mut leg = Leg::new();
    leg.run(5, 3, |_, _| 0.0);
    for interval in 5..60 {
        leg.intervals += 1;
        for session in 0..3 {
            // They catch up on ten thousand packets, in order, and lose no more.
            let first = 1 + interval * 40;
            leg.rate.lost(leg.now(), session, &asked(&[(first, first + 39)]), leg.intervals * 1_000);
        }
        leg.look(3);
    }
    assert_eq!(leg.rate.current_bps, 100_000_000);
}

#[test]
fn who_waits_for_old_packets_is_named_although_it_asks_for_no_fresh_ones() {
    let mut leg = Leg::new();
    leg.run(8, 3, |_, _| 0.0);
    for interval in 0..40 {
        leg.intervals += 1;
        // As many packets as a site requests at a time, every 800 ms, without an answer.
        if interval % 3 == 0 {
            leg.rate.lost(leg.now(), 1, &asked(&[(1, 3_000)]), leg.intervals * 1_000);
        }
        leg.look(3);
    }
    assert_eq!(leg.named.first().map(|(session, _)| *session), Some(1), "{:?}", leg.named);
    assert!(leg.named[0].1 <= 8 + 12, "within three seconds: {:?}", leg.named);
}

#[test]
fn numbers_that_were_never_sent_count_for_nothing() {
    let mut rate = LegRate::new(100_000_000, 0.5);
    for session in 0..4 {
        rate.lost(Micros(1), session, &asked(&[(1_001, u64::MAX)]), 1_000);
        rate.lost(Micros(1), session, &asked(&[(1, 15)]), 1_000);
    }
    assert_eq!(rate.sites.values().map(|losses| losses.lately).sum::<u64>(), 60);
}

#[test]
fn sites_that_are_gone_take_no_memory() {
    let mut leg = Leg::new();
    leg.run(1, 500, |_, _| 0.1);
    assert_eq!(leg.rate.sites.len(), 500);
    leg.run(8, 0, |_, _| 0.0);
    assert_eq!(leg.rate.sites.len(), 0);
}

#[test]
fn a_site_behind_half_a_link_is_named_after_two_seconds_and_a_lossy_one_never() {
    let half = |session, _| if session == 3 { 0.5 } else { 0.0 };
    assert_eq!(strike(9, half), [(3, 8)]);
    let waves = |session, interval: u64| if session == 3 && !interval.is_multiple_of(3) { 0.4 } else { 0.0 };
    assert_eq!(strike(24, waves).len(), 1);
    assert_eq!(strike(200, |session, _| if session == 3 { 0.15 } else { 0.01 }), []);
    let hiccup = |session, interval: u64| if session == 3 && interval < 7 { 0.9 } else { 0.0 };
    assert_eq!(strike(200, hiccup), []);
}

#[test]
fn nobody_is_named_while_most_lose() {
    assert_eq!(strike(100, |session, _| if session < 5 { 0.4 } else { 0.0 }), []);
}

/// Runs a leg of seven sites for `seconds`, with `loss(rate)` at all of them; returns the second half's mean rate.
fn run(seconds: u64, asked_bps: u64, loss: impl Fn(f64) -> f64) -> f64 {
    let (mut rate, mut sent, mut sum, mut counted) = (LegRate::new(asked_bps, 0.5), 0, 0.0, 0);
    for interval in 1..=seconds * 4 {
        let packets = rate.current_bps / 4 / 12_000;
        let lost = (loss(rate.current_bps as f64) * packets as f64) as u64;
        for session in 0..7 {
            rate.lost(Micros(1), session, &asked(&[(sent + 1, sent + lost)]), sent + packets);
        }
        sent += packets;
        rate.look(Micros::from_millis(interval * 250), sent, 7);
        if interval > seconds * 2 {
            sum += rate.current_bps as f64;
            counted += 1;
        }
    }
    sum / f64::from(counted)
}

#[test]
fn noise_on_every_link_does_not_slow_the_leg() {
    for noise in [0.005, 0.03, 0.05, 0.1, 0.3] {
        let mean = run(120, 100_000_000, |_| noise);
        assert!(mean > 95_000_000.0, "{noise}: {mean}");
    }
}

#[test]
fn a_path_that_is_too_narrow_is_found() {
    for capacity in [20_000_000.0, 50_000_000.0, 90_000_000.0] {
        let mean = run(120, 100_000_000, |rate| (1.0 - capacity / rate).max(0.0));
        assert!((0.6..1.06).contains(&(mean / capacity)), "{capacity}: {mean}");
    }
}

#[test]
fn a_narrow_path_with_noise_is_found_too() {
    let mean = run(120, 100_000_000, |rate| (1.0 - 40_000_000.0 / rate).max(0.0) + 0.01);
    assert!((24_000_000.0..44_000_000.0).contains(&mean), "{mean}");
}

#[test]
fn a_shared_loss_that_stays_cuts_and_calm_raises_again() {
    let mut leg = Leg::new();
    let shared = |session, _| if session < 4 { 0.1 } else { 0.0 };
    leg.run(2, 7, shared);
    assert_eq!(leg.rate.current_bps, 100_000_000, "it might be a stall");
    leg.run(1, 7, shared);
    assert_eq!(leg.rate.current_bps, 70_000_000);
    leg.run(8, 7, |_, _| 0.0);
    assert_eq!(leg.rate.current_bps, 70_000_000, "calm first");
    leg.run(1, 7, |_, _| 0.0);
    assert_eq!(leg.rate.current_bps, 75_000_000);
    leg.run(9, 7, |_, _| 0.0);
    assert_eq!(leg.rate.current_bps, 100_000_000);
}

#[test]
fn asking_again_for_the_same_packets_counts_once() {
    let mut rate = LegRate::new(100_000_000, 0.5);
    for interval in 0..8 {
        let packets = asked(&[(interval * 1_000 + 1, interval * 1_000 + 15)]);
        for session in 0..4 {
            rate.lost(Micros(1), session, &packets, (interval + 1) * 1_000);
            rate.lost(Micros(1), session, &packets, (interval + 1) * 1_000);
        }
        let changed = rate.look(Micros::from_millis((interval + 1) * 250), (interval + 1) * 1_000, 7);
        assert_eq!(changed, None, "1.5 % is tolerated, 3 % would not be");
    }
}

#[test]
fn the_rate_never_falls_to_nothing() {
    assert!(run(60, 100_000_000, |rate| (1.0 - 1_000.0 / rate).max(0.0)) >= 5_000_000.0);
}

#[test]
fn who_loses_a_half_struggles_from_the_first_interval_on_and_who_loses_little_never() {
    let mut rate = LegRate::new(100_000_000, 0.5);
    rate.lost(Micros(1), 3, &asked(&[(1, 500)]), 1_000);
    rate.lost(Micros(1), 4, &asked(&[(1, 50)]), 1_000);
    rate.look(Micros::from_millis(250), 1_000, 7);
    assert!(rate.is_struggling(3) && !rate.is_struggling(4) && !rate.is_struggling(5));
    rate.look(Micros::from_millis(500), 2_000, 7);
    assert!(!rate.is_struggling(3), "its losses are over");
}

/// Three hundred sites, each reporting its losses once in 1.5 s, at its own times; they request nothing. Their
/// shared path carries `capacity_bps`, and each site loses `noise` in addition.
struct Crowd {
    rate: LegRate,
    tick: u64,
    sent: u64,
    /// The packets that each site lost, and those sent, since its last report.
    lost: Vec<(f64, f64)>,
    rates: Vec<u64>,
}

impl Crowd {
    fn new() -> Self {
        let rate = LegRate::new(100_000_000, 0.5);
        Self { rate, tick: 0, sent: 0, lost: vec![(0.0, 0.0); 300], rates: Vec::new() }
    }

    fn run(&mut self, ticks: u64, capacity_bps: f64, noise: impl Fn(usize) -> f64) {
        for _ in 0..ticks {
            self.tick += 1;
            let now = Micros::from_millis(self.tick * 250);
            // A thousand packets in a tick at the full rate.
            let rate = self.rate.current_bps as f64;
            let sent = (rate / 100_000.0).floor();
            self.sent += sent as u64;
            let shared = (1.0 - capacity_bps / rate).max(0.0);
            for (site, (lost, of)) in self.lost.iter_mut().enumerate() {
                *lost += sent * (shared + (1.0 - shared) * noise(site));
                *of += sent;
                if self.tick % 6 == site as u64 % 6 {
                    let losses = Losses { missed: *lost as u64, of: *of as u64 };
                    let request =
                        Request { losses: (losses.missed > 0).then_some(losses), ..Request::default() };
                    self.rate.lost(now, site as u64, &request, self.sent);
                    (*lost, *of) = (0.0, 0.0);
                }
            }
            self.rate.look(now, self.sent, 300);
            self.rates.push(self.rate.current_bps);
        }
    }
}

#[test]
fn a_crowd_that_asks_for_nothing_slows_a_leg_that_its_path_does_not_carry() {
    let mut crowd = Crowd::new();
    crowd.run(240, 60e6, |_| 0.0);
    let last = &crowd.rates[120..];
    assert!(last.iter().all(|rate| *rate <= 75_000_000), "{last:?}");
    assert!(last.iter().all(|rate| *rate >= 40_000_000), "{last:?}");
    crowd.run(200, 200e6, |_| 0.0);
    assert_eq!(crowd.rate.current_bps, 100_000_000, "it goes back when the path does");
}

#[test]
fn noise_on_every_link_of_a_crowd_does_not_slow_the_leg_for_long() {
    let mut crowd = Crowd::new();
    crowd.run(400, 200e6, |_| 0.05);
    let slow = crowd.rates.iter().filter(|rate| **rate < 100_000_000).count();
    assert!(slow < 120, "{slow} of 400 quarters of a second");
}

#[test]
fn the_lossy_few_of_a_crowd_are_named_and_slow_nobody() {
    let mut crowd = Crowd::new();
    crowd.run(30, 200e6, |site| if site < 10 { 0.4 } else { 0.001 });
    assert!(crowd.rates.iter().all(|rate| *rate == 100_000_000));
    let mut named: Vec<u64> =
        crowd.rate.stragglers().into_iter().map(|straggler| straggler.session).collect();
    named.sort_unstable();
    named.dedup();
    assert_eq!(named, (0..10).collect::<Vec<_>>());
}

#[test]
fn a_report_of_few_packets_and_one_of_more_than_were_sent_say_nothing_wrong() {
    let mut rate = LegRate::new(100_000_000, 0.5);
    for session in 0..100 {
        let losses = Losses {
            missed: if session < 40 { u64::MAX } else { 20 },
            of: if session < 40 { 1_000 } else { 40 },
        };
        rate.lost(
            Micros::from_secs(1),
            session,
            &Request { losses: Some(losses), ..Request::default() },
            1_000,
        );
    }
    for second in 2..20 {
        rate.look(Micros::from_secs(second), second * 1_000, 100);
    }
    assert_eq!(rate.current_bps, 100_000_000);
}
