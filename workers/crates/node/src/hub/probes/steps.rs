//! A probe in steps, whichever ends send and count them: its results, its seconds, and its end.
use std::time::Duration;

use downburst_hub::path_probes::{ClockOf, Conclusion, Outcome, PathProbeKind, PathProbeLine, second_line};
use downburst_probe::{Figures, Knee, Step, StepResult, Sweep};
use downburst_session::{ProbeOrder, ProbeSaid, ProbeStep};
use tokio::time::Instant;

use super::SiteOrders;
use super::course::{Course, SILENCE};
use crate::lines::Event;

/// The steps of a probe so far.
pub(super) struct Steps {
    pub(super) course: Course,
    pub(super) results: Vec<StepResult>,
    /// The number of the present step.
    pub(super) number: u16,
    /// The last moment at which something arrived.
    last_life: Instant,
}

/// The steps to come: those that were asked for, or a sweep that adds steps near the knee.
pub(super) enum ToCome {
    Asked(std::vec::IntoIter<Step>),
    Sweep(Sweep),
}

impl Steps {
    pub(super) fn new(course: Course) -> Self {
        Self { course, results: Vec::new(), number: 0, last_life: Instant::now() }
    }

    /// Begins the step behind those with a result.
    pub(super) fn begin(&mut self) {
        self.number = u16::try_from(self.results.len()).unwrap_or(u16::MAX);
        self.last_life = Instant::now();
    }

    /// Orders the step at one end.
    pub(super) fn order(&self, orders: &SiteOrders, step: Step) {
        let duration_ms = step.duration.0 / 1_000;
        orders.tell(ProbeOrder::Step(ProbeStep { step: self.number, rate_bps: step.rate_bps, duration_ms }));
    }

    /// Reports a second of the step that an end counted; returns any other answer.
    pub(super) fn beside_seconds(&mut self, said: ProbeSaid) -> Option<ProbeSaid> {
        let ProbeSaid::Second { step, second, figures } = said else { return Some(said) };
        if step == self.number {
            self.report_second(second, &figures);
        }
        None
    }

    pub(super) fn report_second(&mut self, second: u64, figures: &Figures) {
        if figures.received > 0 {
            self.last_life = Instant::now();
        }
        if self.course.line.seconds {
            let line = second_line(&self.course.line.probe, second, figures, self.course.clock());
            self.course.hub().event(&Event::ProbeSecond(line));
        }
    }

    pub(super) fn check_silence(&self) -> Result<(), Outcome> {
        if self.last_life.elapsed() < SILENCE {
            return Ok(());
        }
        let seconds = SILENCE.as_secs();
        Err(Outcome::Failed(format!("no packet of the probe arrived for {seconds} s; the path carries none")))
    }

    /// Reports the end.
    pub(super) fn end(self, measured: Result<Option<Knee>, Outcome>, frame_bytes: u64) {
        let (outcome, knee) = match measured {
            Ok(knee) => (Outcome::Done, knee),
            Err(outcome) => (outcome, None),
        };
        let clock: ClockOf = self.course.clock();
        let (line, results, trials) = (&self.course.line, &self.results, &[]);
        let ended = Conclusion { line, outcome, results, trials, knee, frame_bytes, clock }.line();
        self.course.end(ended);
    }
}

impl ToCome {
    pub(super) fn of(line: &PathProbeLine, frame_bytes: u64) -> Self {
        match line.kind {
            PathProbeKind::Knee => Self::Sweep(Sweep::new(line.asked(), frame_bytes)),
            _ => Self::Asked(line.asked().into_iter()),
        }
    }

    pub(super) fn next_step(&mut self) -> Option<Step> {
        match self {
            Self::Asked(asked) => asked.next(),
            Self::Sweep(sweep) => sweep.next_step(),
        }
    }

    /// Takes the result of the last step.
    pub(super) fn took(&mut self, results: &[StepResult]) {
        if let (Self::Sweep(sweep), Some(result)) = (self, results.last()) {
            sweep.took(result);
        }
    }

    /// The knee of a sweep.
    pub(super) fn knee(&self) -> Option<Knee> {
        match self {
            Self::Asked(_) => None,
            Self::Sweep(sweep) => Some(sweep.knee()),
        }
    }
}

/// The queues of the path are empty before the next step.
pub(super) const STEP_REST: Duration = Duration::from_millis(100);
