//! Profiles on modelled paths: Mathis' formula for reno, the line's rate for BBR.
use std::collections::BTreeMap;
use std::net::IpAddr;

use downburst_model::Micros;
use downburst_session::StreamId;
use serde_json::{Value, json};

use super::*;

/// A site behind a path. Its connections share the line.
#[derive(Clone, Debug)]
struct Path {
    peer: IpAddr,
    round_trip_ms: f64,
    loss: f64,
    line_bps: f64,
    bound_bps: Option<u64>,
    waits: bool,
    buffer_limited: bool,
    streams: BTreeMap<u32, Stream>,
}

#[derive(Clone, Debug, Default)]
struct Stream {
    knobs: Knobs,
    rate_bps: f64,
    acked_bytes: f64,
}

/// A node whose connections use reno without a profile.
struct World {
    profiles: TcpProfiles,
    paths: BTreeMap<u64, Path>,
    looked: BTreeMap<u64, Looked>,
    news: Vec<(u64, ProfileNews)>,
    second: u64,
}

impl Path {
    fn to(peer: &str) -> Self {
        Self {
            peer: peer.parse().unwrap(),
            round_trip_ms: 80.0,
            loss: 1e-4,
            line_bps: 100e6,
            bound_bps: None,
            waits: true,
            buffer_limited: false,
            streams: BTreeMap::from([(0, Stream::default())]),
        }
    }

    fn with_streams(self, count: u32) -> Self {
        Self { streams: (0..count).map(|number| (number, Stream::default())).collect(), ..self }
    }

    /// The rate that a connection tends to (Mathis et al., 1997: MSS / RTT * sqrt(3/2) / sqrt(loss)).
    fn target_bps(&self, knobs: &Knobs) -> f64 {
        let by_loss = 1448.0 * 8.0 / (self.round_trip_ms / 1e3) * 1.5_f64.sqrt() / self.loss.sqrt();
        let rate = match knobs.congestion.as_deref() {
            Some("bbr") => self.line_bps,
            Some("cubic") => by_loss * 1.1,
            Some("poor") => by_loss / 2.0,
            _ => by_loss,
        };
        let larger = if knobs.send_buffer_bytes.is_some() { 3.0 } else { 1.0 };
        let limit = if self.buffer_limited { 5e6 * larger } else { self.line_bps };
        rate.min(limit).min(knobs.pacing_bps.map_or(f64::MAX, |bps| bps as f64))
    }

    fn run(&mut self) {
        let targets: Vec<f64> = self.streams.values().map(|stream| self.target_bps(&stream.knobs)).collect();
        let line_bps = self.bound_bps.map_or(self.line_bps, |bound| self.line_bps.min(bound as f64));
        let share = (line_bps / targets.iter().sum::<f64>()).min(1.0);
        for (stream, target) in self.streams.values_mut().zip(targets) {
            stream.rate_bps = stream.rate_bps.mul_add(0.3, target * share * 0.7);
            if self.waits {
                stream.acked_bytes += stream.rate_bps / 8.0;
            }
        }
    }

    fn look(&self, session: u64, at: Micros) -> SessionLook {
        let look = |(number, stream): (&u32, &Stream)| ConnectionLook {
            stream: StreamId(*number),
            peer: self.peer,
            acked_bytes: stream.acked_bytes as u64,
            queued: self.waits,
            busy_us: at.0,
            buffer_limited_us: if self.buffer_limited { at.0 * 9 / 10 } else { 0 },
            send_buffer_bytes: 100_000,
        };
        let connections = self.streams.iter().map(look).collect();
        let waiting_bytes = if self.waits { 1 << 22 } else { 0 };
        SessionLook { session, at, waiting_bytes, bound_bps: self.bound_bps, connections }
    }
}

impl World {
    fn new(profiles: &Value, paths: Vec<Path>) -> Self {
        let mut world = Self {
            profiles: TcpProfiles::default(),
            paths: (1..).zip(paths).collect(),
            looked: BTreeMap::new(),
            news: Vec::new(),
            second: 0,
        };
        world.profiles.offer(vec!["reno".to_owned(), "bbr".to_owned()], "reno".to_owned());
        world.list(profiles);
        world
    }

    fn list(&mut self, profiles: &Value) {
        let lines: Vec<ProfileLine> = serde_json::from_value(profiles.clone()).unwrap();
        check_profiles(&lines).unwrap();
        self.profiles.replace(lines);
    }

    fn run(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.second += 1;
            let at = Micros::from_secs(self.second);
            for (session, path) in &mut self.paths {
                path.run();
                let looked = self.profiles.look(&path.look(*session, at));
                for (number, stream) in &mut path.streams {
                    let given = looked.settings.iter().find(|it| it.stream == StreamId(*number));
                    stream.knobs = given.map(|it| it.knobs.clone()).unwrap_or_default();
                }
                self.looked.insert(*session, looked);
            }
            let news = self.profiles.take_news();
            self.news.extend(news.into_iter().map(|it| (self.second, it)));
        }
    }

    fn run_until(&mut self, step: TrialStep, limit: u64) -> (u64, TrialLine) {
        for _ in 0..limit {
            self.run(1);
            let found = self.steps().find(|(_, line)| line.step == step);
            if let Some((at, line)) = found {
                return (at, line.clone());
            }
        }
        panic!("no {step:?} within {limit} s: {:#?}", self.news);
    }

    fn steps(&self) -> impl Iterator<Item = (u64, &TrialLine)> {
        self.news.iter().filter_map(|(at, news)| match news {
            ProfileNews::Trial(line) => Some((*at, &**line)),
            ProfileNews::Fault(_) => None,
        })
    }

    fn state(&self, session: u64) -> Option<ProfileState> {
        self.looked[&session].profile.as_ref().map(|profile| profile.state)
    }

    /// The sessions with a connection on these options.
    fn on(&self, congestion: &str) -> Vec<u64> {
        let is_on = |path: &Path| {
            path.streams.values().any(|stream| stream.knobs.congestion.as_deref() == Some(congestion))
        };
        self.paths.iter().filter(|(_, path)| is_on(path)).map(|(session, _)| *session).collect()
    }
}

fn profile(mode: &str, knobs: Value) -> Value {
    json!([{"name": "overseas", "prefix": "192.0.2.0/24", "mode": mode, "knobs": knobs}])
}

fn learn() -> Value {
    profile("learn", json!({}))
}

fn sites(count: u8) -> Vec<Path> {
    (1..=count).map(|number| Path::to(&format!("192.0.2.{number}"))).collect()
}

#[test]
fn a_static_profile_applies_to_its_prefix_and_divides_buffers() {
    let outside = Path::to("198.51.100.1").with_streams(2);
    let mapped = Path::to("::ffff:192.0.2.1").with_streams(4);
    let knobs = json!({"congestion": "bbr", "send_buffer_bytes": 4_000_000, "connections": 3});
    let mut world = World::new(&profile("static", knobs), vec![mapped, outside]);
    world.run(1);
    let looked = &world.looked[&1];
    assert_eq!((looked.settings.len(), looked.connections), (4, Some(3)));
    assert!(looked.settings.iter().all(|it| it.knobs.send_buffer_bytes == Some(1_000_000)), "{looked:?}");
    let account = looked.profile.as_ref().unwrap();
    assert_eq!((account.state, account.knobs.send_buffer_bytes), (ProfileState::Static, Some(4_000_000)));
    assert_eq!(world.looked[&2], Looked::default(), "outside of the prefix");
    world.list(&json!([]));
    world.run(1);
    assert_eq!((world.looked[&1].clone(), world.profiles.is_empty()), (Looked::default(), true));
}

#[test]
fn a_single_connection_learns_bbr_on_a_long_lossy_path() {
    let mut world = World::new(&learn(), sites(1));
    let (began, line) = world.run_until(TrialStep::Began, 10);
    assert_eq!((line.canaries, line.others, line.canary_bps), (1, 0, None));
    assert_eq!(
        line.reason,
        "products wait: connections with congestion control bbr are compared with others that have the kernel's own \
         values"
    );
    let (kept, line) = world.run_until(TrialStep::Kept, 600);
    assert!(kept - began < 120, "two pairs of windows: {kept}");
    assert!(line.canary_bps.unwrap() >= 2 * line.others_bps.unwrap(), "{line:?}");
    assert_eq!((line.knobs.congestion.as_deref(), line.windows), (Some("bbr"), 2));
    world.run(1);
    assert_eq!((world.state(1), world.on("bbr")), (Some(ProfileState::Learnt), vec![1]));
    let learnt = json!([{"name": "overseas", "prefix": "192.0.2.0/24", "mode": "learn", "knobs": {},
        "learnt": {"congestion": "bbr"}}]);
    world.list(&learnt);
    world.run(1_200);
    assert_eq!(
        world.steps().count(),
        2,
        "the list that stores it changes nothing, and reno is not tried: {:?}",
        world.news
    );
}

#[test]
fn a_single_connection_is_back_after_one_window_of_half_the_throughput() {
    let mut world = World::new(&profile("trial", json!({"pacing_bps": 8_000_000})), sites(1));
    let (at, line) = world.run_until(TrialStep::TakenBack, 60);
    assert!(at <= 25 && line.windows == 1, "a window before, a window with it: {at} s, {line:?}");
    world.run(300);
    assert_eq!((world.state(1), world.steps().count()), (Some(ProfileState::Base), 2), "not tried again");
    assert!(world.paths[&1].streams[&0].knobs.is_empty());
}

#[test]
fn half_the_throughput_is_taken_back_within_two_windows_and_nobody_else_changes() {
    let mut paths = sites(6);
    paths.push(Path::to("198.51.100.1").with_streams(4));
    let mut world = World::new(&profile("trial", json!({"congestion": "poor"})), paths);
    let mut most = 0;
    while world.steps().all(|(_, line)| line.step == TrialStep::Began) && world.second < 60 {
        world.run(1);
        most = most.max(world.on("poor").len());
        assert!(world.paths[&7].streams.values().all(|stream| stream.knobs.is_empty()));
        assert_eq!(world.looked[&7], Looked::default());
    }
    let (at, line) = world.steps().last().unwrap();
    assert_eq!((line.step, line.windows, line.canaries, line.others), (TrialStep::TakenBack, 2, 3, 3));
    assert!(at <= 25 && most <= 5, "{at} s, {most} canaries while they swap");
    world.run(2);
    assert_eq!(world.on("poor"), Vec::<u64>::new());
}

#[test]
fn canaries_swap_so_that_one_bad_site_decides_nothing() {
    for count in [2, 3, 4, 7] {
        for bad in 0..usize::from(count) {
            let mut paths = sites(count);
            paths[bad].loss = 1e-2;
            let mut world = World::new(&profile("trial", json!({"congestion": "other"})), paths);
            let (_, line) = world.run_until(TrialStep::NotBetter, 120);
            assert_eq!(line.windows, 3, "{count} sites, number {bad} is bad");
        }
    }
}

#[test]
fn many_sites_learn_together_and_a_newcomer_has_it_at_once() {
    let mut paths = sites(40);
    for (number, path) in paths.iter_mut().enumerate() {
        path.round_trip_ms = 40.0 + number as f64 * 3.0;
    }
    let mut world = World::new(&learn(), paths);
    let (_, line) = world.run_until(TrialStep::Kept, 600);
    assert_eq!((line.canaries, line.others), (20, 20));
    assert!(line.canary_bps.unwrap() >= 2 * line.others_bps.unwrap(), "{line:?}");
    world.paths.insert(99, Path::to("192.0.2.200").with_streams(3));
    world.run(1);
    assert_eq!(world.looked[&99].settings.len(), 3);
    assert_eq!(world.on("bbr").len(), 41);
}

#[test]
fn connections_of_one_site_are_compared_with_each_other() {
    let mut world = World::new(&learn(), vec![Path::to("192.0.2.1").with_streams(3)]);
    let (_, line) = world.run_until(TrialStep::Began, 10);
    assert_eq!((line.canaries, line.others), (1, 2));
    assert_eq!(world.state(1), Some(ProfileState::Canary));
    world.run_until(TrialStep::Kept, 600);
}

#[test]
fn silent_sites_and_those_at_their_limit_are_left_alone() {
    let (mut silent, mut full) = (Path::to("192.0.2.1"), Path::to("192.0.2.2"));
    silent.waits = false;
    full.bound_bps = Some(8_000_000);
    let mut world = World::new(&learn(), vec![silent, full]);
    world.run(600);
    assert_eq!(world.news, []);
    world.paths.get_mut(&1).unwrap().waits = true;
    let (_, line) = world.run_until(TrialStep::Kept, 600);
    assert_eq!((line.canaries, line.others), (1, 0), "the site at its limit takes no part");
}

#[test]
fn a_site_that_falls_silent_in_a_window_is_back_on_the_base() {
    let mut world = World::new(&learn(), sites(2));
    world.run_until(TrialStep::Began, 10);
    world.paths.values_mut().for_each(|path| path.waits = false);
    world.run(90);
    assert_eq!(world.on("bbr"), Vec::<u64>::new(), "no window lasts for ever");
    world.paths.values_mut().for_each(|path| path.waits = true);
    world.run_until(TrialStep::Kept, 120);
}

#[test]
fn connections_that_come_and_go_in_a_window_do_not_disturb_it() {
    let mut world = World::new(&learn(), sites(4));
    world.run_until(TrialStep::Began, 10);
    for turn in 0..30 {
        world.profiles.gone(1 + turn);
        world.paths.remove(&(1 + turn));
        world.paths.insert(5 + turn, Path::to(&format!("192.0.2.{}", 5 + turn)));
        world.run(2);
    }
    world.run_until(TrialStep::Kept, 300);
}

#[test]
fn a_trial_that_is_kept_applies_like_a_static_profile() {
    let mut world = World::new(&profile("trial", json!({"congestion": "bbr", "connections": 4})), sites(2));
    world.run_until(TrialStep::Began, 10);
    assert_eq!(world.looked[&1].connections, None, "not while connections are compared");
    world.run_until(TrialStep::Kept, 100);
    world.run(1);
    assert_eq!((world.state(1), world.looked[&1].connections), (Some(ProfileState::Static), Some(4)));
    world.run(3_600);
    assert_eq!(world.steps().count(), 2);
}

#[test]
fn a_trial_of_nothing_that_can_be_compared_ends_with_the_reason() {
    let mut world = World::new(&profile("trial", json!({"connections": 4})), sites(2));
    let (_, line) = world.run_until(TrialStep::NotBetter, 10);
    assert!(line.reason.contains("make it static"), "{}", line.reason);
}

#[test]
fn a_candidate_that_failed_is_not_tried_again_after_a_change_of_the_list() {
    let mut world = World::new(&learn(), sites(2));
    world.profiles.offer(vec!["poor".to_owned()], "reno".to_owned());
    world.run_until(TrialStep::TakenBack, 60);
    let listed = json!([{"name": "overseas", "prefix": "192.0.2.0/24", "mode": "learn", "knobs": {},
        "learnt": {"congestion": "bbr"}}]);
    world.list(&listed);
    world.run(1);
    assert_eq!(world.on("bbr"), vec![2], "the first is a control");
    world.list(&learn());
    world.run(600);
    assert_eq!(world.steps().count(), 2, "{:?}", world.news);
}

#[test]
fn a_buffer_that_limits_is_enlarged() {
    let mut path = Path::to("192.0.2.1").with_streams(2);
    path.buffer_limited = true;
    let mut world = World::new(&learn(), vec![path]);
    let (_, line) = world.run_until(TrialStep::NotBetter, 200);
    assert_eq!(line.knobs.congestion.as_deref(), Some("bbr"), "it does not help against a small buffer");
    let (_, line) = world.run_until(TrialStep::Kept, 200);
    assert_eq!((line.knobs.congestion, line.knobs.send_buffer_bytes), (None, Some(800_000)));
}

#[test]
fn learnt_options_stay_under_watch_and_are_taken_back_when_the_path_changes() {
    let learnt = json!([{"name": "overseas", "prefix": "192.0.2.0/24", "mode": "learn", "knobs": {},
        "learnt": {"congestion": "poor"}}]);
    let mut world = World::new(&learnt, sites(16));
    world.profiles.offer(vec!["poor".to_owned()], "reno".to_owned());
    world.paths.values_mut().for_each(|path| path.loss = 1e-7);
    let (mut least, mut controlled) = (16, 0);
    for _ in 0..1_300 {
        world.run(1);
        least = least.min(world.on("poor").len());
        controlled += usize::from(world.on("poor").len() < 16);
    }
    assert_eq!(least, 14, "one in eight is a control");
    assert!((10..40).contains(&controlled), "in three windows: {controlled} s");
    world.paths.values_mut().for_each(|path| path.loss = 1e-4);
    let (_, line) = world.run_until(TrialStep::TakenBack, 1_500);
    assert_eq!((line.canaries, line.others, line.windows), (14, 2, 2));
    assert_eq!(line.before, Knobs::default());
    world.run(2);
    assert_eq!((world.on("poor"), world.state(1)), (vec![], Some(ProfileState::Base)));
}

#[test]
fn a_refusal_of_the_kernel_ends_a_trial_and_is_one_fault_otherwise() {
    let mut world = World::new(&learn(), sites(2));
    world.run_until(TrialStep::Began, 10);
    let canary = world.on("bbr")[0];
    world.profiles.refused(canary, StreamId::FIRST, Micros::from_secs(world.second), "bbr is not allowed");
    world.run(1);
    let line = world.steps().last().unwrap().1.clone();
    assert_eq!((line.step, line.reason.as_str()), (TrialStep::NotBetter, "bbr is not allowed"));
    world.run(600);
    assert_eq!((world.on("bbr"), world.steps().count()), (vec![], 2), "not again for half an hour");
    world.list(&profile("static", json!({"congestion": "bbr"})));
    world.run(1);
    let before = world.news.len();
    for session in [1, 2, 1] {
        world.profiles.refused(session, StreamId::FIRST, Micros(9), "bbr is not allowed");
    }
    world.run(1);
    let faults = &world.news[before..];
    assert!(
        matches!(faults, [(_, ProfileNews::Fault(said))] if said.ends_with(": bbr is not allowed")),
        "{faults:?}"
    );
}

#[test]
fn in_random_worlds_no_connection_stays_on_a_candidate() {
    for seed in 0..40 {
        let mut random = Random(seed * 2 + 1);
        let mode = ["trial", "learn"][random.below(2)];
        let knobs =
            [json!({"congestion": "bbr"}), json!({"congestion": "poor"}), json!({"pacing_bps": 8_000})];
        let list = profile(mode, knobs[random.below(3)].clone());
        let mut world = World::new(&list, sites(random.below(6) as u8 + 1));
        for turn in 0..400 {
            random.change(&mut world);
            world.run(random.below(4) as u64 + 1);
            assert!(
                world.looked.values().flat_map(|it| &it.settings).count() < 500,
                "seed {seed}, turn {turn}"
            );
        }
        // The end: silence ends every window, and the removal of the profile everything else.
        world.paths.values_mut().for_each(|path| path.waits = false);
        world.run(70);
        let canaries: Vec<u64> = world.paths.keys().copied().collect();
        let canaries = canaries.into_iter().filter(|it| world.state(*it) == Some(ProfileState::Canary));
        assert_eq!(canaries.count(), 0, "seed {seed}");
        world.list(&json!([]));
        world.run(1);
        assert!(world.looked.values().all(|looked| *looked == Looked::default()), "seed {seed}");
    }
}

/// A generator by Marsaglia (xorshift64), enough for tests.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % limit
    }

    fn change(&mut self, world: &mut World) {
        let sessions: Vec<u64> = world.paths.keys().copied().collect();
        let Some(session) = sessions.get(self.below(sessions.len().max(1))).copied() else {
            world.paths.insert(world.second + 100, Path::to("192.0.2.77"));
            return;
        };
        let (kind, amount) = (self.below(8), self.below(100));
        if kind == 0 && sessions.len() < 12 {
            world
                .paths
                .insert(world.second + 100, Path::to("192.0.2.78").with_streams(amount as u32 % 5 + 1));
        }
        if kind == 1 {
            world.paths.remove(&session);
            world.looked.remove(&session);
            world.profiles.gone(session);
            return;
        }
        let Some(path) = world.paths.get_mut(&session) else { return };
        match kind {
            2 => path.waits = !path.waits,
            3 => path.loss = 10_f64.powf(-(amount as f64) / 20.0 - 1.0),
            4 => drop(path.streams.insert(amount as u32 % 8, Stream::default())),
            5 => drop(path.streams.remove(&(amount as u32 % 8))),
            6 => path.bound_bps = (amount > 50).then_some(amount as u64 * 1_000_000),
            7 => world.profiles.refused(session, StreamId(0), Micros::from_secs(world.second), "refused"),
            _ => {}
        }
    }
}
