//! The tracer with real sockets of this process, and its file.
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use downburst_model::WallMicros;
use downburst_tracer::TracerLine;
use serde_json::{Value, json};

use super::*;

struct Scene {
    directory: tempfile::TempDir,
    listener: TcpListener,
    clock: Clock,
}

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { directory, listener: TcpListener::bind("127.0.0.1:0").unwrap(), clock: Clock::start(0) }
    }

    fn ring(&self) -> PathBuf {
        self.directory.path().join(FILE)
    }

    fn start(&self) -> Tracer {
        Tracer::start(self.directory.path(), &[self.listener.local_addr().unwrap()], self.clock)
    }

    /// A connection of a site: the hub's end and the site's.
    fn connect(&self, tracer: &Tracer, site: &str, role: Role) -> (TcpStream, TcpStream) {
        let there = TcpStream::connect(self.listener.local_addr().unwrap()).unwrap();
        let (here, peer) = self.listener.accept().unwrap();
        tracer.serves((here.local_addr().unwrap(), peer), &SiteName::parse(site).unwrap(), role);
        (here, there)
    }

    fn ask(&self, tracer: &Tracer, site: &str) -> Value {
        let line: TracerLine =
            serde_json::from_value(json!({"site": site, "from_us": 0, "to_us": i64::MAX, "points": 50}))
                .unwrap();
        serde_json::to_value(tracer.gather(Gathering::begin(line).unwrap())).unwrap()
    }

    /// Waits until the answer about a site is as it should be.
    fn until(&self, tracer: &Tracer, site: &str, fits: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..200 {
            let answer = self.ask(tracer, site);
            if fits(&answer) {
                return answer;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("{}", self.ask(tracer, site));
    }
}

fn last(answer: &Value, variable: &str) -> i64 {
    let names = answer["variables"].as_array().unwrap();
    let column = names.iter().position(|name| name == variable).unwrap() + 1;
    let samples = answer["connections"][0]["samples"].as_array();
    samples.and_then(|samples| samples.last()?[column].as_i64()).unwrap_or(0)
}

fn samples(answer: &Value) -> usize {
    let connections = answer["connections"].as_array().unwrap();
    connections.iter().map(|it| it["samples"].as_array().unwrap().len()).sum()
}

#[test]
fn bytes_of_a_sites_connection_advance_and_others_are_not_recorded() {
    let scene = Scene::new();
    let tracer = scene.start();
    let (mut here, mut there) = scene.connect(&tracer, "a", Role::Session);
    let _stranger = TcpStream::connect(scene.listener.local_addr().unwrap()).unwrap();
    here.write_all(&[7; 5_000]).unwrap();
    there.read_exact(&mut [0; 5_000]).unwrap();
    let answer = scene.until(&tracer, "a", |answer| last(answer, "bytes_acked") >= 5_000);
    let connection = &answer["connections"][0];
    assert_eq!(connection["peer"], there.local_addr().unwrap().to_string());
    assert_eq!((&connection["role"], &answer["unable"]), (&json!("session"), &Value::Null));
    assert_eq!(answer["connections"].as_array().unwrap().len(), 1);
    assert_eq!(samples(&scene.ask(&tracer, "b")), 0);
    tracer.stop();
}

#[test]
fn a_new_start_goes_on_in_the_old_ring_and_damage_is_counted() {
    let scene = Scene::new();
    let tracer = scene.start();
    let both = scene.connect(&tracer, "a", Role::Session);
    scene.until(&tracer, "a", |answer| samples(answer) >= 2);
    tracer.stop();
    let before = samples(&scene.ask(&tracer, "a"));
    drop((tracer, both));
    let file = std::fs::OpenOptions::new().write(true).open(scene.ring()).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"damage", 300).unwrap();
    let again = scene.start();
    let _both = scene.connect(&again, "a", Role::Data);
    let answer = scene.until(&again, "a", |answer| samples(answer) > before);
    assert_eq!(answer["damaged"], 1);
    assert_eq!(answer["connections"].as_array().unwrap().len(), 2, "the old connection and the new one");
    again.stop();
}

#[test]
fn a_file_that_is_no_ring_begins_anew() {
    let scene = Scene::new();
    std::fs::write(scene.ring(), [9; 5_000]).unwrap();
    let tracer = scene.start();
    let _both = scene.connect(&tracer, "a", Role::Session);
    assert_eq!(scene.until(&tracer, "a", |answer| samples(answer) > 0)["damaged"], 0);
    tracer.stop();
}

#[test]
fn a_node_that_can_not_keep_samples_says_so() {
    let scene = Scene::new();
    std::fs::create_dir(scene.ring()).unwrap();
    let tracer = scene.start();
    let answer = scene.until(&tracer, "a", |answer| !answer["unable"].is_null());
    assert!(answer["unable"].as_str().unwrap().contains("tracer.ring"), "{answer}");
    std::fs::remove_dir(scene.ring()).unwrap();
    scene.until(&tracer, "a", |answer| answer["unable"].is_null());
    tracer.stop();
}

#[test]
fn a_peer_whose_connection_is_gone_is_forgotten() {
    let mut known = Known::default();
    let ends = ("10.0.0.9:7370".parse().unwrap(), "[::ffff:10.0.0.1]:5".parse().unwrap());
    known.serves(ends, &SiteName::parse("a").unwrap(), Role::Data);
    assert_eq!(known.ends(), [("10.0.0.9:7370".parse().unwrap(), "10.0.0.1:5".parse().unwrap())]);
    let socket = downburst_host::TcpSocket {
        local: "10.0.0.9:7370".parse().unwrap(),
        peer: "10.0.0.1:5".parse().unwrap(),
        inode: 1,
        info: vec![0; 240],
    };
    let mut look = |sockets: &[downburst_host::TcpSocket]| known.of(WallMicros(1), sockets).len();
    assert_eq!([look(&[]), look(&[]), look(std::slice::from_ref(&socket))], [0, 0, 1]);
    assert_eq!([look(&[]), look(&[]), look(&[]), look(&[socket])], [0; 4]);
}

/// Prints the share of a processor that the sampler takes; run with `--nocapture`.
#[test]
fn each_connection_costs_as_much_and_all_are_recorded_however_many() {
    let scene = Scene::new();
    let [one, hundred, many] = [1, 100, 200].map(|connections| cost_of_a_look(&scene, connections));
    assert!(one * 3 < hundred, "a single connection costs {one:?}: all sockets are walked through for it");
    println!("200 connections: {many:?}");
}

/// Processor time, in the mean of some looks at busy connections.
fn cost_of_a_look(scene: &Scene, connections: usize) -> Duration {
    let shared = Arc::new(Shared::default());
    let place = scene.listener.local_addr().unwrap();
    let mut sampler = Sampler::new(Arc::clone(&shared), &scene.ring(), &[place], scene.clock);
    let mut open = Vec::new();
    for _ in 0..connections {
        let there = TcpStream::connect(place).unwrap();
        let (here, peer) = scene.listener.accept().unwrap();
        let ends = (here.local_addr().unwrap(), peer);
        lock(&shared.known).serves(ends, &SiteName::parse("a").unwrap(), Role::Session);
        open.push((here, there));
    }
    let mut spent = Duration::ZERO;
    for _ in 0..LOOKS {
        open.iter_mut().for_each(|(here, _)| here.write_all(&[1]).unwrap());
        let before = processor_time();
        let (looked, outcome) = sampler.look();
        spent += processor_time() - before;
        assert_eq!((looked, outcome), (connections, Ok(())));
    }
    let mut recorded = 0;
    scan(&shared.file, |record| {
        recorded +=
            usize::from(open.iter().any(|(_, there)| there.local_addr().unwrap() == record.connection.peer));
    });
    assert_eq!(recorded, connections * LOOKS as usize);
    let look = spent / LOOKS;
    println!(
        "{connections} busy connections: {look:?} a look, {:.2} % of a processor",
        look.as_secs_f64() * 1e3
    );
    look
}

fn processor_time() -> Duration {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
    Duration::from(time)
}

const LOOKS: u32 = 30;
