//! The processor time of a receiver that blocks, one that polls a little before it blocks, and one that always polls.
//!
//! Datagrams come over loopback, 12 µs apart. `make bench-spacing` runs it for 5 s each and judges the figures, which
//! `cargo test -p downburst-node spacing -- --nocapture` prints for a fifth of a second.
use std::net::{SocketAddr, UdpSocket};

use nix::time::{ClockId, clock_gettime};

use super::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Blocking,
    Adaptive,
    Polling,
}

#[derive(Debug)]
struct Row {
    sent: u64,
    received: u64,
    reads: u64,
    /// Processor time of the receiver over the time that passed.
    cpu_share: f64,
    /// The spacing of datagrams as the source sent them, and as the receiver got them.
    sent_spacing: Spread,
    received_spacing: Spread,
}

/// The mean and the deviation of spacings (Welford 1962).
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    count: f64,
    mean_us: f64,
    squares: f64,
    last: Option<Instant>,
}

impl Spread {
    fn at(&mut self, at: Instant) {
        if let Some(last) = self.last.replace(at) {
            let spacing_us = at.duration_since(last).as_secs_f64() * 1e6;
            self.count += 1.0;
            let off = spacing_us - self.mean_us;
            self.mean_us += off / self.count;
            self.squares += off * (spacing_us - self.mean_us);
        }
    }

    fn sigma_us(&self) -> f64 {
        (self.squares / self.count.max(1.0)).sqrt()
    }
}

/// Sends datagrams at the spacing until `stop`; returns their number and their spacing.
fn source(socket: &UdpSocket, to: SocketAddr, stop: &AtomicBool) -> (u64, Spread) {
    let (began, mut sent, mut spacing) = (Instant::now(), 0_u64, Spread::default());
    while !stop.load(Ordering::Relaxed) {
        if began.elapsed() >= SPACING.saturating_mul(u32::try_from(sent).unwrap()) {
            socket.send_to(&[0; 1_000], to).unwrap();
            spacing.at(Instant::now());
            sent += 1;
        }
    }
    (sent, spacing)
}

fn cpu() -> Duration {
    Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap())
}

struct Reception {
    received: u64,
    reads: u64,
    cpu_share: f64,
    spacing: Spread,
}

fn receive_for(manner: Manner, receiver: &mut GroupReceiver, length: Duration) -> Reception {
    let (began, cpu_before) = (Instant::now(), cpu());
    let (mut spinning, mut received, mut reads) = (Spinning::default(), 0, 0);
    let mut spacing = Spread::default();
    while began.elapsed() < length {
        let is_readable = match manner {
            Manner::Blocking => receiver.wait(PATIENCE_MS).unwrap(),
            Manner::Adaptive => {
                polled(receiver, spinning.poll_ns()).unwrap() || receiver.wait(PATIENCE_MS).unwrap()
            }
            Manner::Polling => receiver.wait(0).unwrap(),
        };
        if is_readable {
            let (mut count, now) = (0, Instant::now());
            receiver
                .receive(|_| {
                    count += 1;
                    spacing.at(now);
                })
                .unwrap();
            spinning.read(count, nanos(began.elapsed()));
            received += count as u64;
            reads += 1;
        }
    }
    let used = cpu().saturating_sub(cpu_before);
    Reception { received, reads, cpu_share: used.as_secs_f64() / began.elapsed().as_secs_f64(), spacing }
}

/// What is still in the socket's buffer when the source has ended.
fn rest_of(receiver: &mut GroupReceiver) -> u64 {
    let mut count = 0;
    while receiver.wait(PATIENCE_MS).unwrap() {
        receiver.receive(|_| count += 1).unwrap();
    }
    count
}

fn measure(manner: Manner, length: Duration) -> Row {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut receiver = GroupReceiver::of_relay(socket.local_addr().unwrap(), false, 16 << 20).unwrap();
    receiver.tell_relay(b"here");
    let (_, to) = socket.recv_from(&mut [0; 16]).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let source = scope.spawn(|| source(&socket, to, &stop));
        let Reception { received, reads, cpu_share, spacing } = receive_for(manner, &mut receiver, length);
        stop.store(true, Ordering::Relaxed);
        let (sent, sent_spacing) = source.join().unwrap();
        let received = received + rest_of(&mut receiver);
        Row { sent, received, reads, cpu_share, sent_spacing, received_spacing: spacing }
    })
}

#[test]
fn a_receiver_that_polls_before_it_blocks_takes_what_comes_and_its_cost_is_told() {
    let seconds = std::env::var("DOWNBURST_SPACING_SECONDS").ok().and_then(|text| text.parse().ok());
    let length = Duration::from_secs_f64(seconds.unwrap_or(0.2));
    for manner in [Manner::Blocking, Manner::Adaptive, Manner::Polling] {
        let row = measure(manner, length);
        // The bench reads this line.
        let line = serde_json::json!({
            "manner": format!("{manner:?}").to_lowercase(), "sent": row.sent, "received": row.received,
            "reads": row.reads, "cpu_share": row.cpu_share, "sigma_us": row.received_spacing.sigma_us(),
            "source_sigma_us": row.sent_spacing.sigma_us(),
        });
        println!("spacing {line}");
        assert!(row.received > 0 && row.received <= row.sent, "{row:?}");
        assert!(row.reads <= row.received, "{row:?}");
    }
}

const SPACING: Duration = Duration::from_micros(12);
