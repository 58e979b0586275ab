//! A sender and a reflector over a path of this test's own: known delays, clocks, losses and orders.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that fails stops"
)]
use std::net::SocketAddr;

use downburst_model::Micros;
use downburst_stamp::tlv::Ends;
use downburst_stamp::*;
use proptest::prelude::*;

const START: i64 = 1_790_000_000_000_000_000;
const MILLI: i64 = 1_000_000;

/// A path in virtual time; times in nanoseconds since the start.
struct Path {
    forward: i64,
    backward: i64,
    residence: i64,
    /// The reflector's clock minus the sender's.
    offset: i64,
    sender_estimate: ErrorEstimate,
    reflector_estimate: ErrorEstimate,
}

impl Default for Path {
    fn default() -> Self {
        let known = ErrorEstimate::of(1_000_000, true, Format::Ntp);
        Self {
            forward: 10 * MILLI,
            backward: 60 * MILLI,
            residence: 3 * MILLI,
            offset: 0,
            sender_estimate: known,
            reflector_estimate: known,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Both,
    LostForward,
    LostBackward,
}

impl Path {
    /// One exchange for each fate, a second apart.
    fn run(&self, sender: &mut Sender, reflector: &mut Reflector, fates: &[Fate]) {
        for (number, fate) in fates.iter().enumerate() {
            let sent = i64::try_from(number).unwrap() * 1_000 * MILLI;
            let request =
                sender.request(micros(sent), WallNanos(START + sent), self.sender_estimate).unwrap();
            if *fate == Fate::LostForward {
                continue;
            }
            let answer = self.answer(reflector, &request, sent + self.forward);
            if *fate == Fate::Both {
                let back = sent + self.forward + self.residence + self.backward;
                sender.take(&answer, micros(back), WallNanos(START + back)).unwrap();
            }
        }
    }

    fn answer(&self, reflector: &mut Reflector, request: &[u8], at: i64) -> Vec<u8> {
        let pending = reflector.take(request, &arrival(at, START + at + self.offset)).unwrap();
        let answer =
            pending.send_at(WallNanos(START + at + self.residence + self.offset), self.reflector_estimate);
        assert_eq!(answer.len(), request.len(), "no amplification");
        answer
    }
}

fn micros(nanos: i64) -> Micros {
    Micros(u64::try_from(nanos / 1_000).unwrap())
}

fn arrival(at: i64, wall: i64) -> Arrival {
    let source: SocketAddr = "192.0.2.7:40001".parse().unwrap();
    let ends = Ends { source, destination: "192.0.2.1:862".parse().unwrap() };
    Arrival { ends, at: micros(at), wall: WallNanos(wall), ttl: Some(61) }
}

fn reflector(stateful: bool, key: Option<Key>) -> Reflector {
    Reflector::new(ReflectorSettings {
        key,
        stateful,
        most_sessions: 3,
        session_expiry: Micros::from_secs(60),
        requests_per_second: 10,
    })
}

fn error(report: &Report) -> Option<u64> {
    match report.delays.clocks {
        Clocks::Synchronized { error_ns } => Some(error_ns),
        Clocks::NotKnown { .. } => None,
    }
}

fn near(value: i64, wanted: i64) -> bool {
    value.abs_diff(wanted) <= 4
}

#[test]
fn an_asymmetric_path_of_true_clocks_shows_both_delays() {
    for (key, format) in [(None, Format::Ntp), (Key::new(&[7; 32]).ok(), Format::Ptp)] {
        let settings = SenderSettings {
            key: key.clone(),
            format,
            location: true,
            padding: 40,
            ..SenderSettings::default()
        };
        let (mut sender, mut reflector) = (Sender::new(settings), reflector(false, key));
        Path::default().run(&mut sender, &mut reflector, &[Fate::Both; 5]);
        let report = sender.report();
        assert!(near(report.delays.forward_ns.unwrap().median, 10 * MILLI), "{report:?}");
        assert!(near(report.delays.backward_ns.unwrap().median, 60 * MILLI));
        assert!(near(report.delays.round_trip_ns.unwrap().median, 70 * MILLI));
        assert!(near(report.delays.residence_ns.unwrap().median, 3 * MILLI));
        assert!((2_000_000..2_100_000).contains(&error(&report).unwrap()), "{report:?}");
        let offset = report.delays.offset.unwrap();
        assert!(near(offset.offset_ns, -25 * MILLI) && near(offset.bound_ns, 35 * MILLI));
        assert_eq!(report.seen_as, Some("192.0.2.7:40001".parse().unwrap()));
        assert_eq!((report.sent, report.answered, report.lost), (5, 5, 0));
        assert_eq!(report.directions, Directions::Yes(DirectionFigures::default()));
        assert!(sender.is_answered());
    }
}

#[test]
fn one_way_delays_are_not_known_where_a_clock_does_not_know_itself() {
    let unknown = ErrorEstimate::unknown(Format::Ntp);
    let no_multiplier = ErrorEstimate { multiplier: 0, ..Path::default().reflector_estimate };
    let paths = [
        Path { sender_estimate: unknown, ..Path::default() },
        Path { reflector_estimate: unknown, ..Path::default() },
        Path { reflector_estimate: no_multiplier, ..Path::default() },
        Path { offset: 250 * MILLI, ..Path::default() },
    ];
    for path in paths {
        let (mut sender, mut reflector) = (Sender::new(SenderSettings::default()), reflector(false, None));
        path.run(&mut sender, &mut reflector, &[Fate::Both; 3]);
        let report = sender.report();
        assert_eq!(error(&report), None, "{report:?}");
        // The truth is within the bound all the same, and the round trip is not concerned.
        let offset = report.delays.offset.unwrap();
        assert!(offset.offset_ns.abs_diff(path.offset) <= offset.bound_ns.unsigned_abs() + 4);
        assert!(near(report.delays.round_trip_ns.unwrap().max, 70 * MILLI));
    }
}

#[test]
fn negative_delays_are_shown_as_they_are() {
    let (mut sender, mut reflector) = (Sender::new(SenderSettings::default()), reflector(false, None));
    Path { offset: -90 * MILLI, ..Path::default() }.run(&mut sender, &mut reflector, &[Fate::Both]);
    assert!(near(sender.report().delays.forward_ns.unwrap().min, -80 * MILLI));
}

#[test]
fn a_counting_reflector_shows_the_direction_of_losses() {
    use Fate::{Both, LostBackward, LostForward};
    let fates = [Both, LostForward, Both, LostBackward, LostForward, Both, LostForward];
    let (mut sender, mut counting) = (Sender::new(SenderSettings::default()), reflector(true, None));
    Path::default().run(&mut sender, &mut counting, &fates);
    let report = sender.report();
    let wanted =
        DirectionFigures { forward_lost: 2, backward_lost: 1, either_lost: 1, ..DirectionFigures::default() };
    assert_eq!(report.directions, Directions::Yes(wanted));
    assert_eq!(report.lost, 4);
    let (mut sender, mut stateless) = (Sender::new(SenderSettings::default()), reflector(false, None));
    Path::default().run(&mut sender, &mut stateless, &fates);
    assert!(matches!(sender.report().directions, Directions::No { .. }));
}

#[test]
fn a_count_that_began_before_this_run_shows_nothing() {
    let (mut first, mut second) =
        (Sender::new(SenderSettings::default()), Sender::new(SenderSettings::default()));
    let mut counting = reflector(true, None);
    Path::default().run(&mut first, &mut counting, &[Fate::Both; 3]);
    Path::default().run(&mut second, &mut counting, &[Fate::Both, Fate::LostBackward, Fate::Both]);
    assert!(matches!(second.report().directions, Directions::No { .. }));
}

#[test]
fn late_and_doubled_answers_are_counted() {
    let (mut sender, mut counting) = (Sender::new(SenderSettings::default()), reflector(true, None));
    let path = Path::default();
    let mut request =
        |at: i64| sender.request(micros(at), WallNanos(START + at), path.sender_estimate).unwrap();
    let requests = [request(0), request(MILLI), request(2 * MILLI)];
    // The second reaches the reflector last, and the answer to the first arrives last.
    let first = path.answer(&mut counting, &requests[0], 20 * MILLI);
    let third = path.answer(&mut counting, &requests[2], 21 * MILLI);
    let second = path.answer(&mut counting, &requests[1], 22 * MILLI);
    for (number, answer) in [&third, &second, &first, &first].into_iter().enumerate() {
        let at = (100 + i64::try_from(number).unwrap()) * MILLI;
        let _ = sender.take(answer, micros(at), WallNanos(START + at));
    }
    let report = sender.report();
    assert_eq!((report.duplicated, report.reordered, report.lost), (1, 2, 0));
    let Directions::Yes(figures) = report.directions else { panic!("{report:?}") };
    assert_eq!((figures.forward_reordered, figures.backward_reordered), (1, 1));
}

#[test]
fn a_clock_that_is_set_during_an_exchange_spoils_that_exchange_only() {
    let (mut sender, mut stateless) = (Sender::new(SenderSettings::default()), reflector(false, None));
    let path = Path::default();
    path.run(&mut sender, &mut stateless, &[Fate::Both; 2]);
    let request = sender.request(micros(9_000 * MILLI), WallNanos(START), path.sender_estimate).unwrap();
    let answer = path.answer(&mut stateless, &request, 9_010 * MILLI);
    sender.take(&answer, micros(9_073 * MILLI), WallNanos(START + 3_600_000 * MILLI)).unwrap();
    let report = sender.report();
    assert_eq!((report.answered, report.delays.excluded), (3, 1));
    assert!(near(report.delays.round_trip_ns.unwrap().max, 70 * MILLI));
}

#[test]
fn foreign_answers_are_not_taken() {
    let (mut sender, mut other) =
        (Sender::new(SenderSettings::default()), Sender::new(SenderSettings::default()));
    let (mut stateless, path) = (reflector(false, None), Path::default());
    sender.request(micros(0), WallNanos(START), path.sender_estimate).unwrap();
    let foreign = other.request(micros(0), WallNanos(START + 1_000), path.sender_estimate).unwrap();
    let answer = path.answer(&mut stateless, &foreign, 0);
    assert_eq!(sender.take(&answer, micros(MILLI), WallNanos(START + MILLI)), Err(NotTaken::NotAsked));
    assert_eq!(sender.report().lost, 1);
    assert_eq!(sender.report().delays.clocks, Clocks::default());
}

#[test]
fn a_reflector_refuses_more_than_its_budget_and_its_sessions() {
    let request = Sender::new(SenderSettings::default())
        .request(Micros(0), WallNanos(START), ErrorEstimate::unknown(Format::Ntp))
        .unwrap();
    let mut counting = reflector(true, None);
    let from = |port: u16, host: u8, at: i64| {
        let mut arrival = arrival(at, START + at);
        arrival.ends.source = SocketAddr::from(([192, 0, 2, host], port));
        arrival
    };
    let refusal = |taken: Result<Pending, Refusal>| taken.err();
    for _ in 0..10 {
        assert_eq!(refusal(counting.take(&request, &from(1, 1, 0))), None);
    }
    assert_eq!(refusal(counting.take(&request, &from(2, 1, 0))), Some(Refusal::TooFrequent));
    assert_eq!(refusal(counting.take(&request, &from(2, 1, 100 * MILLI))), None);
    assert_eq!(refusal(counting.take(&request, &from(3, 2, 100 * MILLI))), None);
    assert_eq!(refusal(counting.take(&request, &from(4, 3, 100 * MILLI))), Some(Refusal::NoRoom));
    // Sessions expire.
    assert_eq!(refusal(counting.take(&request, &from(4, 3, 100_000 * MILLI))), None);
    let counts = counting.counts();
    assert_eq!((counts.answered, counts.too_frequent, counts.no_room), (13, 1, 1));
}

#[test]
fn two_reflectors_do_not_answer_each_other() {
    for key in [None, Key::new(&[7; 32]).ok()] {
        let settings = SenderSettings { key: key.clone(), ..SenderSettings::default() };
        let path = Path::default();
        let request =
            Sender::new(settings).request(Micros(0), WallNanos(START), path.sender_estimate).unwrap();
        let mut one = reflector(false, key);
        let answer = path.answer(&mut one, &request, 0);
        assert_eq!(one.take(&answer, &arrival(0, START)).err(), Some(Refusal::IsAnswer));
    }
}

#[test]
fn a_padded_request_of_twamp_light_is_answered_in_its_own_size() {
    let mut stateless = reflector(false, None);
    let request = Sender::new(SenderSettings::default())
        .request(Micros(0), WallNanos(START), ErrorEstimate::unknown(Format::Ntp))
        .unwrap();
    assert_eq!(stateless.take(&request[..40], &arrival(0, START)).err(), Some(Refusal::Shorter));
    let answer = Path::default().answer(&mut stateless, &request[..41], 0);
    assert_eq!(Answer::read(&answer, None).unwrap().ttl, Some(61));
    let mut longer = request.clone();
    longer.extend([0; 500]);
    let answer = Path::default().answer(&mut stateless, &longer, 0);
    assert_eq!(answer[44..], [0; 500]);
}

proptest! {
    #[test]
    fn hostile_datagrams_harm_neither_end(
        octets in prop::collection::vec(any::<u8>(), 0..200),
        wall: i64,
        at: u64,
        sealed: bool,
        stateful: bool,
    ) {
        let key = if sealed { Key::new(&[7; 32]).ok() } else { None };
        let mut reflector = reflector(stateful, key.clone());
        let mut arrival = arrival(0, wall);
        arrival.at = Micros(at);
        if let Ok(pending) = reflector.take(&octets, &arrival) {
            prop_assert_eq!(pending.send_at(WallNanos(wall), ErrorEstimate::from_bits(0xffff)).len(), octets.len());
        }
        let mut sender = Sender::new(SenderSettings { key, ..SenderSettings::default() });
        let request = sender.request(Micros(at), WallNanos(wall), ErrorEstimate::from_bits(0xffff)).unwrap();
        let _ = sender.take(&octets, Micros(0), WallNanos(i64::MIN));
        let mut near = request.clone();
        near.iter_mut().zip(&octets).skip(16).for_each(|(to, from)| *to = *from);
        let _ = sender.take(&near, Micros(u64::MAX), WallNanos(i64::MAX));
        let _ = sender.report();
    }

    #[test]
    fn every_request_is_accounted_for(fates in prop::collection::vec(0..3_u8, 0..60), stateful: bool) {
        let fates: Vec<Fate> = fates
            .into_iter()
            .map(|fate| [Fate::Both, Fate::LostForward, Fate::LostBackward][usize::from(fate)])
            .collect();
        let settings = SenderSettings { stateful, ..SenderSettings::default() };
        let (mut sender, mut reflector) = (Sender::new(settings), reflector(stateful, None));
        Path::default().run(&mut sender, &mut reflector, &fates);
        let report = sender.report();
        prop_assert_eq!(report.answered + report.lost, report.sent);
        if let Directions::Yes(figures) = report.directions {
            prop_assert_eq!(figures.forward_lost + figures.backward_lost + figures.either_lost, report.lost);
            let last = fates.iter().rposition(|fate| *fate == Fate::Both).map_or(0, |last| last + 1);
            let of = |wanted| fates[..last].iter().filter(|fate| **fate == wanted).count() as u64;
            if stateful {
                prop_assert_eq!(figures.forward_lost, of(Fate::LostForward));
                prop_assert_eq!(figures.backward_lost, of(Fate::LostBackward));
            }
        } else {
            prop_assert!(!stateful || report.answered > 0);
        }
    }
}
