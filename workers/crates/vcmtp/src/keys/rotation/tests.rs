use downburst_model::WallMicros;
use proptest::prelude::*;

use super::*;

fn at(micros: u64) -> Now {
    Now { monotonic: Micros(micros), wall: WallMicros(0) }
}

fn site(number: u8) -> SiteName {
    SiteName::parse(&format!("site{number}")).unwrap()
}

fn sites(numbers: &[u8]) -> BTreeSet<SiteName> {
    numbers.iter().copied().map(site).collect()
}

/// A rotation with its driver: draws secrets, and records the keys sent to each site.
struct Bench {
    rotation: Rotation,
    now: u64,
    present: BTreeSet<SiteName>,
    drawn: u8,
    told: Vec<(u64, LegKey, BTreeSet<SiteName>)>,
    used: Vec<(u64, LegKey)>,
}

impl Bench {
    fn new(present: &[u8]) -> Self {
        let key = LegKey::new(1, [0; 32]);
        let mut bench = Self {
            rotation: Rotation::new(Micros(0), key.clone()),
            now: 0,
            present: sites(present),
            drawn: 0,
            told: vec![(0, key.clone(), sites(present))],
            used: vec![(0, key)],
        };
        bench.present.clone().into_iter().for_each(|site| bench.say(RotationInput::Told(site)));
        bench
    }

    fn say(&mut self, input: RotationInput) {
        self.rotation.handle(at(self.now), input);
        self.poll();
    }

    fn poll(&mut self) {
        while let Some(output) = self.rotation.poll(at(self.now)) {
            match output {
                RotationOutput::Draw => {
                    self.drawn += 1;
                    let drawn =
                        RotationInput::Drawn { secret: Some([self.drawn; 32]), live: self.present.clone() };
                    self.rotation.handle(at(self.now), drawn);
                }
                RotationOutput::Tell(key) => self.told.push((self.now, key, self.present.clone())),
                RotationOutput::Use(key) => self.used.push((self.now, key)),
            }
        }
    }

    fn until(&mut self, micros: u64) {
        while let Some(due) = self.rotation.deadline().filter(|due| due.0 <= micros) {
            assert!(due.0 > self.now || due.0 == 0, "a deadline that stays");
            self.now = self.now.max(due.0);
            self.poll();
        }
        self.now = micros;
    }

    fn bar(&mut self, number: u8, urgency: Urgency) {
        self.present.remove(&site(number));
        self.say(RotationInput::Barred { site: site(number), urgency });
    }

    fn confirm(&mut self, number: u8) {
        let key_id = self.told.last().unwrap().1.id;
        self.say(RotationInput::Confirmed { site: site(number), key_id });
    }

    fn used_at(&self) -> Vec<u64> {
        self.used.iter().map(|(at, _)| *at).collect()
    }

    /// The sites that can read newly sealed packets.
    fn readers(&self) -> BTreeSet<SiteName> {
        let key = &self.used.last().unwrap().1;
        self.told.iter().filter(|(_, told, _)| told == key).flat_map(|(.., who)| who.clone()).collect()
    }
}

#[test]
fn a_key_is_used_once_all_have_it() {
    let mut bench = Bench::new(&[1, 2, 3]);
    bench.until(20_000_000);
    bench.bar(3, Urgency::AtOnce);
    assert_eq!(bench.told.len(), 2);
    bench.confirm(1);
    assert_eq!(bench.used.len(), 1);
    bench.now += 5_000;
    bench.confirm(2);
    assert_eq!(bench.used_at(), [0, 20_005_000]);
    assert_eq!(bench.readers(), sites(&[1, 2]));
}

#[test]
fn a_site_that_does_not_answer_holds_a_revocation_for_less_than_a_second() {
    let mut bench = Bench::new(&[1, 2, 3]);
    bench.until(1_000);
    bench.bar(3, Urgency::AtOnce);
    bench.until(60_000_000);
    assert_eq!(bench.used_at(), [0, 1_000 + HURRIED.0]);
}

#[test]
fn a_second_revocation_in_the_hand_over_is_within_the_second_too() {
    let mut bench = Bench::new(&[1, 2, 3]);
    bench.bar(3, Urgency::AtOnce);
    bench.until(100_000);
    bench.bar(2, Urgency::AtOnce);
    bench.until(60_000_000);
    assert_eq!(bench.used_at(), [0, 400_000, 800_000]);
    assert_eq!(bench.readers(), sites(&[1]));
}

#[test]
fn those_who_leave_by_themselves_are_shut_out_together() {
    let mut bench = Bench::new(&[1, 2, 3, 4]);
    bench.until(15_000_000);
    for number in [2, 3, 4] {
        bench.bar(number, Urgency::Soon);
        bench.confirm(1);
        bench.until(bench.now + 500_000);
    }
    bench.until(40_000_000);
    assert_eq!(bench.told.iter().map(|(at, ..)| *at).collect::<Vec<_>>(), [0, 15_000_000, 25_000_000]);
    assert_eq!(bench.readers(), sites(&[1]));
}

#[test]
fn who_leaves_and_is_revoked_meanwhile_is_shut_out_within_the_second() {
    for handing_over in [false, true] {
        let mut bench = Bench::new(&[1, 2, 3]);
        if handing_over {
            bench.bar(3, Urgency::AtOnce);
        }
        bench.until(1_000);
        bench.bar(2, Urgency::Soon);
        assert!(bench.rotation.is_leaving(&site(2)));
        bench.until(100_000);
        bench.bar(2, Urgency::AtOnce);
        bench.until(1_100_000);
        let stay: &[u8] = if handing_over { &[1] } else { &[1, 3] };
        assert_eq!(bench.readers(), sites(stay));
        assert!(!bench.rotation.is_leaving(&site(2)));
    }
}

#[test]
fn a_lost_connection_bars_nobody_and_is_not_waited_for() {
    let mut bench = Bench::new(&[1, 2]);
    bench.until(1_000_000);
    bench.say(RotationInput::Gone(site(2)));
    bench.until(30_000_000);
    assert_eq!(bench.told.len(), 1);
    bench.until(OLDEST.0);
    bench.confirm(1);
    bench.say(RotationInput::Gone(site(2)));
    assert_eq!(bench.used_at(), [0, OLDEST.0]);
}

#[test]
fn a_site_that_never_had_the_key_costs_none() {
    let mut bench = Bench::new(&[1]);
    bench.bar(9, Urgency::AtOnce);
    bench.until(60_000_000);
    assert_eq!(bench.told.len(), 1);
}

#[test]
fn keys_wear_out_by_time_and_by_packets() {
    let mut bench = Bench::new(&[]);
    bench.until(OLDEST.0 * 3 + 1_000_000);
    assert_eq!(bench.used_at(), [0, OLDEST.0, OLDEST.0 * 2, OLDEST.0 * 3]);
    bench.say(RotationInput::Sealed(MOST_PACKETS - 1));
    assert_eq!(bench.used.len(), 4);
    bench.say(RotationInput::Sealed(MOST_PACKETS));
    assert_eq!(bench.used.len(), 5);
    bench.say(RotationInput::Sealed(MOST_PACKETS * 2 - 1));
    assert_eq!(bench.used.len(), 5);
}

#[test]
fn randomness_that_fails_is_asked_again() {
    let mut rotation = Rotation::new(Micros(0), LegKey::new(1, [0; 32]));
    rotation.handle(at(0), RotationInput::Told(site(1)));
    rotation.handle(at(5), RotationInput::Barred { site: site(1), urgency: Urgency::AtOnce });
    assert_eq!(rotation.poll(at(5)), Some(RotationOutput::Draw));
    assert_eq!(rotation.poll(at(5)), None);
    rotation.handle(at(5), RotationInput::Drawn { secret: None, live: BTreeSet::new() });
    assert_eq!(rotation.poll(at(5)), None);
    assert_eq!(rotation.deadline(), Some(Micros(5 + DRAW_AGAIN.0)));
    assert_eq!(rotation.poll(at(5 + DRAW_AGAIN.0)), Some(RotationOutput::Draw));
}

#[derive(Clone, Debug)]
enum Op {
    Join(u8),
    Bar(u8, bool),
    Confirm(u8),
    Gone(u8),
    Wait(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (0..6u8).prop_map(Op::Join),
        (0..6u8, any::<bool>()).prop_map(|(site, hurry)| Op::Bar(site, hurry)),
        (0..6u8).prop_map(Op::Confirm),
        (0..6u8).prop_map(Op::Gone),
        (0..700_000u64).prop_map(Op::Wait),
        (0..20_000_000u64).prop_map(Op::Wait),
    ]
}

proptest! {
    /// With any sequence of events, a revoked site can read no packet a second later, a site that left none 16 s
    /// later, and at most three keys are valid at a time.
    #[test]
    fn whoever_is_barred_is_shut_out_in_time(ops in prop::collection::vec(op(), 1..60)) {
        let mut bench = Bench::new(&[0, 1, 2]);
        let mut barred: Vec<(u64, SiteName)> = Vec::new();
        for op in ops.into_iter().chain([Op::Wait(20_000_000)]) {
            match op {
                Op::Join(number) => {
                    bench.present.insert(site(number));
                    barred.retain(|(_, name)| *name != site(number));
                    let (key, next) = bench.rotation.keys();
                    let keys: Vec<LegKey> = [Some(key), next].into_iter().flatten().cloned().collect();
                    let who: BTreeSet<SiteName> = [site(number)].into();
                    keys.into_iter().for_each(|key| bench.told.push((bench.now, key, who.clone())));
                    bench.say(RotationInput::Told(site(number)));
                }
                Op::Bar(number, hurry) => {
                    if hurry || bench.present.contains(&site(number)) {
                        let limit = if hurry { 1_000_000 } else { 16_000_000 };
                        barred.push((bench.now + limit, site(number)));
                    }
                    bench.bar(number, if hurry { Urgency::AtOnce } else { Urgency::Soon });
                }
                Op::Confirm(number) => bench.confirm(number),
                Op::Gone(number) => bench.say(RotationInput::Gone(site(number))),
                Op::Wait(micros) => bench.until(bench.now + micros),
            }
            let readers = bench.readers();
            for (limit, name) in &barred {
                prop_assert!(bench.now < *limit || !readers.contains(name), "{name} reads at {} us", bench.now);
            }
        }
    }

    /// A key is sent before its use, to every site present, and never used twice.
    #[test]
    fn keys_are_told_ahead_and_used_once(ops in prop::collection::vec(op(), 1..40)) {
        let mut bench = Bench::new(&[0]);
        for op in ops {
            match op {
                Op::Bar(number, hurry) => bench.bar(number, if hurry { Urgency::AtOnce } else { Urgency::Soon }),
                Op::Wait(micros) => bench.until(bench.now + micros),
                Op::Join(number) => {
                    bench.present.insert(site(number));
                    bench.say(RotationInput::Told(site(number)));
                }
                Op::Confirm(number) => bench.confirm(number),
                Op::Gone(number) => bench.say(RotationInput::Gone(site(number))),
            }
        }
        for (place, (at, key)) in bench.used.iter().enumerate() {
            prop_assert!(bench.told.iter().any(|(told, it, _)| it == key && told <= at));
            prop_assert!(bench.used[..place].iter().all(|(_, it)| it.secret != key.secret));
        }
    }
}
