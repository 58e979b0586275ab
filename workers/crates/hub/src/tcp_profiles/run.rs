//! One profile at work: the options that apply, its trials, and the watch over learnt options.
use std::collections::BTreeSet;

use downburst_model::Micros;

use super::knobs::Knobs;
use super::learner::{Learner, Offer};
use super::lines::{Mode, ProfileLine, ProfileNews, ProfileState, TrialLine, TrialStep};
use super::meter::{ConnectionKey, Interval};
use super::round::{Rates, Round, Side};
use super::trial::{Compared, Trial, Verdict, over_windows};

/// A profile, with the state of its trials.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) line: ProfileLine,
    applied: Knobs,
    /// A trial of the operator's options was kept.
    kept: bool,
    phase: Phase,
    learner: Learner,
    watch_at: Micros,
    /// Comparisons with controls that showed less throughput, in a row.
    poor: Vec<Compared>,
    /// Rotates the parts.
    turn: usize,
    /// Sentences of the kernel that were reported.
    refused: BTreeSet<String>,
}

#[derive(Debug)]
enum Phase {
    Settled,
    Trying(Box<Trial>),
    Watching(Round),
}

/// The facts for a decision.
pub(super) struct Around<'a> {
    pub(super) now: Micros,
    pub(super) offer: &'a Offer,
    /// The connections of the profile that are busy.
    pub(super) busy: &'a dyn Fn() -> Vec<ConnectionKey>,
    /// The size of a site's send buffers together, where they limit it.
    pub(super) limiting_bytes: Option<u64>,
}

impl Run {
    pub(super) fn new(line: ProfileLine) -> Self {
        let kernel = Knobs::default();
        let (applied, phase) = match line.mode {
            Mode::Static => (line.knobs.clone(), Phase::Settled),
            Mode::Trial => (kernel.clone(), Phase::Trying(Box::new(Trial::new(line.knobs.clone(), kernel)))),
            Mode::Learn => (line.learnt.clone().unwrap_or_default(), Phase::Settled),
        };
        Self {
            line,
            applied,
            kept: false,
            phase,
            learner: Learner::default(),
            watch_at: Micros(0),
            poor: Vec::new(),
            turn: 0,
            refused: BTreeSet::new(),
        }
    }

    /// True if the line changes nothing: a trial goes on, and one that is over is not repeated.
    fn is_of(&self, line: &ProfileLine) -> bool {
        let mine = &self.line;
        let is_same = mine.prefix == line.prefix && mine.mode == line.mode && mine.knobs == line.knobs;
        let learnt = line.learnt.clone().unwrap_or_default();
        is_same && (line.mode != Mode::Learn || learnt == self.applied)
    }

    /// Goes on under a line that changes nothing; else begins anew, without the candidates that failed on this path.
    pub(super) fn relisted(mut self, line: ProfileLine) -> Self {
        if self.is_of(&line) {
            self.line = line;
            return self;
        }
        let is_same_path = self.line.prefix == line.prefix;
        let learner = if is_same_path { self.learner } else { Learner::default() };
        Self { learner, ..Self::new(line) }
    }

    /// The options of a connection at present.
    pub(super) fn knobs(&self, key: ConnectionKey) -> Knobs {
        match &self.phase {
            Phase::Trying(trial) if self.is_canary(key) => trial.candidate.clone(),
            Phase::Watching(round) if round.side(key) == Some(Side::Other) => Knobs::default(),
            _ => self.applied.clone(),
        }
    }

    pub(super) fn is_canary(&self, key: ConnectionKey) -> bool {
        matches!(&self.phase, Phase::Trying(trial) if trial.side(key) == Some(Side::Canary))
    }

    /// The state of a connection.
    pub(super) fn state(&self, key: ConnectionKey) -> ProfileState {
        match (&self.phase, self.line.mode) {
            _ if self.is_canary(key) => ProfileState::Canary,
            (Phase::Watching(round), _) if round.side(key) == Some(Side::Other) => ProfileState::Base,
            (_, Mode::Static) => ProfileState::Static,
            (_, Mode::Trial) if self.kept => ProfileState::Static,
            (_, Mode::Learn) if !self.applied.is_empty() => ProfileState::Learnt,
            (_, Mode::Trial | Mode::Learn) => ProfileState::Base,
        }
    }

    /// The number of data connections of a site. It applies only outside of trials: a comparison is between
    /// connections, and their number changes the rate of each.
    pub(super) fn connections(&self) -> Option<usize> {
        self.applied.connections
    }

    /// Takes a look at one of its connections.
    pub(super) fn look(
        &mut self,
        key: ConnectionKey,
        interval: Option<Interval>,
        around: &Around<'_>,
        news: &mut Vec<ProfileNews>,
    ) {
        match &mut self.phase {
            Phase::Settled => {}
            Phase::Trying(trial) => {
                if let Some(round) = trial.round() {
                    round.look(key, interval);
                }
                if let Some(verdict) = trial.judge(around.now) {
                    self.conclude(verdict, around, news);
                }
            }
            Phase::Watching(round) => {
                round.look(key, interval);
                if let Ok(rates) = round.end(around.now) {
                    self.controlled(rates, around.now, news);
                }
            }
        }
        if interval.is_some() {
            self.begin(around, news);
        }
    }

    pub(super) fn gone(&mut self, key: ConnectionKey) {
        let round = match &mut self.phase {
            Phase::Settled => None,
            Phase::Trying(trial) => trial.round(),
            Phase::Watching(round) => Some(round),
        };
        if let Some(round) = round {
            round.gone(key);
        }
    }

    /// The kernel refused options of a connection: that ends their trial; of options that apply, it is a fault, once.
    pub(super) fn refused(&mut self, key: ConnectionKey, now: Micros, sentence: &str) -> Option<ProfileNews> {
        if self.is_canary(key) {
            let Phase::Trying(trial) = std::mem::replace(&mut self.phase, Phase::Settled) else {
                return None;
            };
            self.learner.failed(now, &trial.candidate, &trial.before);
            return Some(self.step(TrialStep::NotBetter, &trial, sentence.to_owned()));
        }
        let is_news = self.refused.len() < REFUSALS_MAX && self.refused.insert(sentence.to_owned());
        let name = &self.line.name;
        is_news.then(|| {
            ProfileNews::Fault(format!("the TCP profile {name:?} does not apply in full: {sentence}"))
        })
    }

    /// Begins the next window, if it is time for one.
    fn begin(&mut self, around: &Around<'_>, news: &mut Vec<ProfileNews>) {
        if matches!(self.phase, Phase::Settled) && self.line.mode == Mode::Learn {
            let next = self.learner.next(around.now, &self.applied, around.offer, around.limiting_bytes);
            match next {
                Some(candidate) => {
                    self.phase = Phase::Trying(Box::new(Trial::new(candidate, self.applied.clone())));
                }
                None => return self.watch(around),
            }
        }
        let Phase::Trying(trial) = &mut self.phase else { return };
        if trial.candidate.of_one(1) == trial.before.of_one(1) {
            return self.conclude(Verdict::NotBetter, around, news);
        }
        if !trial.wants_round() {
            return;
        }
        let is_first = trial.counts.is_none();
        trial.begin(around.now, &(around.busy)(), self.turn);
        self.turn = self.turn.wrapping_add(1);
        if is_first && trial.counts.is_some() {
            let (knobs, before) = (trial.candidate.in_words(), trial.before.in_words());
            let reason = format!(
                "products wait: connections with {knobs} are compared with others that have {before}"
            );
            news.push(began(&self.line.name, trial, reason));
        }
    }

    /// Begins a window in which some connections go back to the kernel's values, as controls.
    fn watch(&mut self, around: &Around<'_>) {
        if self.applied.is_empty() || around.now < self.watch_at {
            return;
        }
        let busy = (around.busy)();
        if busy.len() < 2 {
            return;
        }
        let controls = (busy.len() / CONNECTIONS_A_CONTROL).max(1);
        self.phase = Phase::Watching(Round::divided(around.now, &busy, (Side::Other, controls), self.turn));
        self.turn = self.turn.wrapping_add(1);
    }

    fn conclude(&mut self, verdict: Verdict, around: &Around<'_>, news: &mut Vec<ProfileNews>) {
        let Phase::Trying(trial) = std::mem::replace(&mut self.phase, Phase::Settled) else { return };
        let step = match verdict {
            Verdict::Kept => {
                self.applied = trial.candidate.clone();
                self.kept = true;
                self.poor.clear();
                self.watch_at = around.now.plus(BETWEEN_CONTROLS);
                let former = trial.before.congestion.as_ref().unwrap_or(&around.offer.usual).clone();
                let former = Knobs { congestion: Some(former), ..trial.candidate.clone() };
                self.learner.failed(around.now, &former, &trial.candidate);
                TrialStep::Kept
            }
            Verdict::NotBetter | Verdict::TakenBack => {
                self.learner.failed(around.now, &trial.candidate, &trial.before);
                if verdict == Verdict::NotBetter { TrialStep::NotBetter } else { TrialStep::TakenBack }
            }
        };
        let reason = reason(&trial.candidate, &trial.before, &trial.compared);
        news.push(self.step(step, &trial, reason));
    }

    /// Takes the result of a comparison with controls.
    fn controlled(&mut self, rates: Option<Rates>, now: Micros, news: &mut Vec<ProfileNews>) {
        let Phase::Watching(round) = std::mem::replace(&mut self.phase, Phase::Settled) else { return };
        self.watch_at = now.plus(BETWEEN_CONTROLS);
        let Some(compared) = rates.map(|rates| Compared::of(&rates, false)) else { return };
        if !compared.falls() {
            return self.poor.clear();
        }
        self.poor.push(compared);
        if self.poor.len() < CONTROLS_AGAINST {
            return;
        }
        let mut trial = Trial::new(std::mem::take(&mut self.applied), Knobs::default());
        trial.compared = std::mem::take(&mut self.poor);
        trial.counts = Some(round.counts());
        self.learner.failed(now, &trial.candidate, &trial.before);
        let reason = reason(&trial.candidate, &trial.before, &trial.compared);
        news.push(self.step(TrialStep::TakenBack, &trial, reason));
    }

    fn step(&self, step: TrialStep, trial: &Trial, reason: String) -> ProfileNews {
        line(&self.line.name, step, trial, reason)
    }
}

fn began(name: &str, trial: &Trial, reason: String) -> ProfileNews {
    line(name, TrialStep::Began, trial, reason)
}

fn line(name: &str, step: TrialStep, trial: &Trial, reason: String) -> ProfileNews {
    let (canary_bps, others_bps) = over_windows(&trial.compared);
    let (canaries, others) = trial.counts.unwrap_or_default();
    ProfileNews::Trial(Box::new(TrialLine {
        name: name.to_owned(),
        step,
        knobs: trial.candidate.clone(),
        before: trial.before.clone(),
        canaries,
        others,
        canary_bps,
        others_bps,
        windows: u32::try_from(trial.compared.len()).unwrap_or(u32::MAX),
        reason,
    }))
}

fn reason(candidate: &Knobs, before: &Knobs, compared: &[Compared]) -> String {
    let (Some(canary_bps), Some(others_bps)) = over_windows(compared) else {
        return "the profile sets nothing that connections can be compared by; make it static".to_owned();
    };
    format!(
        "a connection with {} brought {:.1} Mb/s, where one with {} brought {:.1} Mb/s",
        candidate.in_words(),
        canary_bps as f64 / 1e6,
        before.in_words(),
        others_bps as f64 / 1e6,
    )
}

/// One control costs the throughput of a connection at worst: it says enough.
const CONNECTIONS_A_CONTROL: usize = 8;
const BETWEEN_CONTROLS: Micros = Micros::from_secs(600);
const CONTROLS_AGAINST: usize = 2;

/// Sentences differ by option and size; more would be a flood.
const REFUSALS_MAX: usize = 16;
