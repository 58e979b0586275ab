//! Programs that are started once for each product.
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::children::Child;
use super::failure::{Failure, Then};
use super::stop::Stop;
use super::task::{Job, Work};

/// The running programs of one line of actions.
pub(super) struct Programs {
    directory: PathBuf,
    slots: Vec<Slot>,
}

/// A product and its program.
struct Slot {
    job: Job,
    attempts: u32,
    state: State,
}

enum State {
    Runs(Child, Instant),
    /// The last attempt failed; the next one is due at this time.
    Rests(Failure, Instant),
}

impl Programs {
    pub(super) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), slots: Vec::new() }
    }

    /// True if another product has to wait: the limit of programs is reached, or one with `wait` is not over.
    pub(super) fn is_full(&self) -> bool {
        let waited = |slot: &Slot| matches!(slot.job.task.work, Work::Exec { wait: true, .. });
        self.slots.len() >= AT_ONCE || self.slots.iter().any(waited)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.slots.is_empty()
    }

    /// Starts the program for a product.
    pub(super) fn begin(&mut self, job: Job) {
        let state = self.start(&job);
        self.slots.push(Slot { job, attempts: 1, state });
    }

    fn start(&self, job: &Job) -> State {
        let started = match &job.task.work {
            Work::Exec { command, .. } => Child::start(command, &self.directory, false),
            _ => Err(Failure::new(Then::GiveUp, "this is no program")),
        };
        match started {
            Ok(child) => State::Runs(child, Instant::now() + job.task.limit()),
            Err(failure) => State::Rests(failure, Instant::now()),
        }
    }

    /// Returns the jobs that succeeded, failed permanently or were stopped, with the number of attempts.
    pub(super) fn ended(&mut self, stop: &Stop) -> Vec<(Job, u32, Result<(), Failure>)> {
        let mut ended = Vec::new();
        for mut slot in std::mem::take(&mut self.slots) {
            match slot.look(stop) {
                Some(Ok(())) => ended.push((slot.job, slot.attempts, Ok(()))),
                Some(Err(failure)) if slot.is_over(&failure) || stop.is_asked() => {
                    let failure = if stop.is_asked() { Failure::stopped() } else { failure };
                    ended.push((slot.job, slot.attempts, Err(failure)));
                }
                Some(Err(failure)) => {
                    tracing::warn!(
                        rule = slot.job.task.rule,
                        attempt = slot.attempts,
                        "{}",
                        failure.sentence
                    );
                    slot.state = State::Rests(failure, Instant::now() + pause(slot.attempts));
                    self.slots.push(slot);
                }
                None => {
                    if slot.is_due() {
                        slot.attempts += 1;
                        slot.state = self.start(&slot.job);
                    }
                    self.slots.push(slot);
                }
            }
        }
        ended
    }
}

impl Slot {
    /// The outcome of the attempt; `None` while it runs, or until the next one is due.
    fn look(&mut self, stop: &Stop) -> Option<Result<(), Failure>> {
        match &mut self.state {
            State::Runs(child, deadline) => child.result(*deadline, stop),
            State::Rests(failure, _) if stop.is_asked() || failure.then == Then::GiveUp => {
                Some(Err(failure.clone()))
            }
            State::Rests(..) => None,
        }
    }

    fn is_over(&self, failure: &Failure) -> bool {
        failure.then == Then::GiveUp || self.attempts >= self.job.task.attempts
    }

    fn is_due(&self) -> bool {
        matches!(&self.state, State::Rests(_, at) if *at <= Instant::now())
    }
}

/// The pause after an attempt: 1 s, 4 s, 16 s and at most a minute.
pub(super) fn pause(attempts: u32) -> Duration {
    let seconds = 4u64.saturating_pow(attempts.saturating_sub(1));
    Duration::from_secs(seconds.min(60))
}

/// Limit of programs of one line of actions at the same time.
const AT_ONCE: usize = 8;
