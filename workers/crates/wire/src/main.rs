//! A wire in user space between two TAP devices, for tests on machines whose kernel has no netem.
//!
//! Frames read from one TAP are written to the other after the rate, the delay, the loss and the buffer of that
//! direction. The wire prints `{"ready":true}` when both devices exist, ends at the end of standard input or on
//! SIGTERM, and then prints one line of JSON with its counters and its own lag. A run whose `lag_p99_us` is above
//! 1,000 says more about the machine than about the wire, and should not be judged.
#![allow(clippy::disallowed_methods)] // The wire is a shell around `Direction` and reads the clock for it.

mod direction;
mod frame;
mod lag;
mod spec;
mod tap;

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::SignalFd;
use nix::sys::time::TimeSpec;

use crate::direction::{Counts, Direction};
use crate::lag::Lags;
use crate::spec::Spec;

/// Carries Ethernet frames between two TAP devices with a rate, a delay, loss and a bounded buffer per direction.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "A direction is KEY=VALUE,...: rate_bps (Ethernet-frame bits per second), delay_us \
    (one way), loss (0 to 1, data frames, random) or every (each n-th data frame), buffer_bytes.\n\
    Example: downburst-wire --left-namespace a --right-namespace b --to-right rate_bps=100000000,delay_us=35000"
)]
struct Arguments {
    /// Network namespace of the left device (a name under /run/netns); empty for the caller's.
    #[arg(long, default_value = "")]
    left_namespace: String,
    /// Name of the left device.
    #[arg(long, default_value = "wire0")]
    left_device: String,
    /// Network namespace of the right device.
    #[arg(long, default_value = "")]
    right_namespace: String,
    /// Name of the right device.
    #[arg(long, default_value = "wire0")]
    right_device: String,
    /// Treatment of frames from left to right.
    #[arg(long, default_value = "")]
    to_right: Spec,
    /// Treatment of frames from right to left.
    #[arg(long, default_value = "")]
    to_left: Spec,
    /// Seed of the random loss.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!(
                "downburst-wire: {error}\nIt needs root, /dev/net/tun and existing network namespaces."
            );
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> io::Result<()> {
    let stop = termination()?;
    let left = tap::open(&arguments.left_namespace, &arguments.left_device)?;
    let right = tap::open(&arguments.right_namespace, &arguments.right_device)?;
    let real_time = tap::ask_for_real_time();
    say(&serde_json::json!({"ready": true}))?;
    let mut wire = Wire {
        to_right: Lane::new(arguments.to_right, arguments.seed),
        to_left: Lane::new(arguments.to_left, arguments.seed.wrapping_add(1)),
        left,
        right,
        started: Instant::now(),
    };
    wire.carry_until_stopped(&stop)?;
    say(&serde_json::to_value(wire.report(real_time)).map_err(io::Error::other)?)
}

/// Events that end a run: SIGTERM or SIGINT, and the end of standard input.
struct Stop {
    signals: SignalFd,
    input: OwnedFd,
}

fn termination() -> io::Result<Stop> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTERM);
    signals.add(Signal::SIGINT);
    signals.thread_block()?;
    Ok(Stop { signals: SignalFd::new(&signals)?, input: tap::standard_input() })
}

struct Lane {
    direction: Direction,
    lags: Lags,
}

impl Lane {
    fn new(spec: Spec, seed: u64) -> Self {
        Self { direction: Direction::new(spec, seed), lags: Lags::default() }
    }

    fn read(&mut self, from: &mut File, now_ns: u64, frame: &mut [u8]) -> io::Result<()> {
        for _ in 0..FRAMES_PER_TURN {
            match from.read(frame) {
                Ok(length) => {
                    self.direction.offer(now_ns, frame.get(..length).unwrap_or_default());
                }
                Err(error) if may_be_passed_over(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn write(&mut self, to: &mut File, started: Instant) -> io::Result<()> {
        while let Some(frame) = self.direction.take_due(elapsed_ns(started)) {
            match to.write(&frame.bytes) {
                Ok(_) => self.lags.add(elapsed_ns(started).saturating_sub(frame.due_ns)),
                Err(error) if may_be_passed_over(&error) => self.direction.refused(),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn report(&self) -> LaneReport {
        LaneReport {
            counts: self.direction.counts,
            lag_p99_us: self.lags.quantile_us(0.99),
            lag_max_us: self.lags.largest_us(),
        }
    }
}

struct Wire {
    to_right: Lane,
    to_left: Lane,
    left: File,
    right: File,
    started: Instant,
}

impl Wire {
    fn carry_until_stopped(&mut self, stop: &Stop) -> io::Result<()> {
        let mut frame = vec![0_u8; LARGEST_FRAME_BYTES];
        loop {
            if self.wait(stop)? {
                return Ok(());
            }
            let now_ns = elapsed_ns(self.started);
            self.to_right.read(&mut self.left, now_ns, &mut frame)?;
            self.to_left.read(&mut self.right, now_ns, &mut frame)?;
            self.to_right.write(&mut self.right, self.started)?;
            self.to_left.write(&mut self.left, self.started)?;
        }
    }

    /// Waits for a frame, the next due time or the end; tells whether it is the end.
    fn wait(&self, stop: &Stop) -> io::Result<bool> {
        let mut watched = [
            watch(stop.signals.as_fd()),
            watch(stop.input.as_fd()),
            watch(self.left.as_fd()),
            watch(self.right.as_fd()),
        ];
        match ppoll(&mut watched, self.until_next_due(), None) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [signals, input, ..] = &watched;
        Ok(signals.any() == Some(true) || (input.any() == Some(true) && has_ended(stop.input.as_fd())?))
    }

    fn until_next_due(&self) -> Option<TimeSpec> {
        let due = [self.to_right.direction.next_due_ns(), self.to_left.direction.next_due_ns()];
        let next_ns = due.into_iter().flatten().min()?;
        let wait_ns = next_ns.saturating_sub(elapsed_ns(self.started));
        Some(TimeSpec::from_duration(std::time::Duration::from_nanos(wait_ns)))
    }

    fn report(&self, real_time: bool) -> Report {
        let (to_right, to_left) = (self.to_right.report(), self.to_left.report());
        Report {
            seconds: self.started.elapsed().as_secs_f64(),
            real_time,
            lag_p99_us: to_right.lag_p99_us.max(to_left.lag_p99_us),
            to_right,
            to_left,
        }
    }
}

#[derive(serde::Serialize)]
struct Report {
    seconds: f64,
    real_time: bool,
    lag_p99_us: u64,
    to_right: LaneReport,
    to_left: LaneReport,
}

#[derive(serde::Serialize)]
struct LaneReport {
    #[serde(flatten)]
    counts: Counts,
    lag_p99_us: u64,
    lag_max_us: u64,
}

fn watch(descriptor: BorrowedFd<'_>) -> PollFd<'_> {
    PollFd::new(descriptor, PollFlags::POLLIN)
}

fn has_ended(input: BorrowedFd<'_>) -> io::Result<bool> {
    let mut ignored = [0_u8; 256];
    Ok(nix::unistd::read(input, &mut ignored)? == 0)
}

/// A TAP that is down answers with EIO and a full one with EAGAIN: both mean that this frame is gone, not the wire.
fn may_be_passed_over(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(libc::EIO)
}

fn elapsed_ns(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

fn say(line: &serde_json::Value) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{line}")?;
    output.flush()
}

const LARGEST_FRAME_BYTES: usize = 65_536;
// Reading is interrupted after this many frames, so that a flood from one side cannot hold up what is due.
const FRAMES_PER_TURN: usize = 64;
