//! The processor time of a receiver that blocks, one that polls a little before it blocks, and one that always polls.
//!
//! `DOWNBURST_SPACING_SECONDS=5 cargo test -p downburst-node spacing -- --nocapture` prints the table: datagrams over
//! loopback, 12 µs apart.
use std::net::UdpSocket;

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
    manner: Manner,
    datagrams: u64,
    reads: u64,
    /// Processor time of the receiver over the time that passed.
    cpu_share: f64,
}

/// Sends datagrams at the spacing until told to stop; returns their number.
fn source(socket: &UdpSocket, to: SocketAddr, stop: &AtomicBool) -> u64 {
    let (began, mut sent) = (Instant::now(), 0_u64);
    while !stop.load(Ordering::Relaxed) {
        if began.elapsed() >= SPACING.saturating_mul(u32::try_from(sent).unwrap()) {
            socket.send_to(&[0; 1_000], to).unwrap();
            sent += 1;
        }
    }
    sent
}

fn cpu() -> Duration {
    Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap())
}

fn receive_for(manner: Manner, receiver: &mut GroupReceiver, length: Duration) -> Row {
    let (began, cpu_before) = (Instant::now(), cpu());
    let (mut spinning, mut datagrams, mut reads) = (Spinning::default(), 0, 0);
    while began.elapsed() < length {
        let is_readable = match manner {
            Manner::Blocking => receiver.wait(PATIENCE_MS).unwrap(),
            Manner::Adaptive => {
                polled(receiver, spinning.poll_ns()).unwrap() || receiver.wait(PATIENCE_MS).unwrap()
            }
            Manner::Polling => receiver.wait(0).unwrap(),
        };
        if is_readable {
            let mut count = 0;
            receiver.receive(|_| count += 1).unwrap();
            spinning.read(count, nanos(began.elapsed()));
            datagrams += count as u64;
            reads += 1;
        }
    }
    let used = cpu().saturating_sub(cpu_before);
    Row { manner, datagrams, reads, cpu_share: used.as_secs_f64() / began.elapsed().as_secs_f64() }
}

fn measure(manner: Manner, length: Duration) -> (Row, u64) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut receiver = GroupReceiver::of_relay(socket.local_addr().unwrap(), false).unwrap();
    receiver.tell_relay(b"here");
    let (_, to) = socket.recv_from(&mut [0; 16]).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let source = scope.spawn(|| source(&socket, to, &stop));
        let row = receive_for(manner, &mut receiver, length);
        stop.store(true, Ordering::Relaxed);
        (row, source.join().unwrap())
    })
}

#[test]
fn a_receiver_that_polls_before_it_blocks_takes_what_comes_and_its_cost_is_told() {
    let seconds = std::env::var("DOWNBURST_SPACING_SECONDS").ok().and_then(|text| text.parse().ok());
    let length = Duration::from_secs_f64(seconds.unwrap_or(0.2));
    for manner in [Manner::Blocking, Manner::Adaptive, Manner::Polling] {
        let (row, sent) = measure(manner, length);
        let Row { manner, datagrams, reads, cpu_share } = &row;
        let percent = cpu_share * 100.0;
        println!(
            "{manner:?}: {datagrams} of {sent} datagrams in {reads} reads, {percent:.0} % of a processor"
        );
        assert!(row.datagrams > 0 && row.datagrams <= sent, "{row:?} of {sent}");
        assert!(row.reads <= row.datagrams, "{row:?}");
    }
}

const SPACING: Duration = Duration::from_micros(12);
