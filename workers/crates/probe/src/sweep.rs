//! A sweep of rates, and its knee: the highest rate that the path carries.
use crate::{Figures, Sent, Step};

/// Chooses the steps of a sweep: the asked ones in ascending order, then steps between the last good one and the first
/// that lost.
#[derive(Clone, Debug)]
pub struct Sweep {
    asked: std::vec::IntoIter<Step>,
    frame_bytes: u64,
    ascends: bool,
    /// Steps that lost nothing to speak of, by their rate.
    good: Option<Ran>,
    /// The lowest that lost, above the highest good one.
    bad: Option<Ran>,
    /// The lowest that a host did not send or take in at the asked rate.
    short: Option<Short>,
    refinements: u32,
}

/// The result of one step.
#[derive(Clone, Debug)]
pub struct StepResult {
    /// As asked.
    pub step: Step,
    /// The sender's part.
    pub sent: Sent,
    /// The receiver's.
    pub figures: Figures,
}

/// The highest rate that the path carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knee {
    /// Bits per second of frames that arrived in the highest step without loss; `None`: not known.
    pub bps: Option<u64>,
    /// One sentence, if it is not known, or if the path may carry more.
    pub reason: Option<String>,
}

#[derive(Clone, Copy, Debug)]
struct Ran {
    step: Step,
    sent_bps: u64,
    received_bps: u64,
}

/// A step that says nothing of the path, as one of its hosts was too slow.
#[derive(Clone, Copy, Debug)]
enum Short {
    /// The sender did not reach the rate.
    Sent(Ran),
    /// The receiver's socket dropped packets.
    Dropped(Ran, u64),
}

impl Sweep {
    /// A sweep of steps that [`crate::check_sweep`] accepts.
    pub fn new(asked: Vec<Step>, frame_bytes: u64) -> Self {
        Self {
            asked: asked.into_iter(),
            frame_bytes,
            ascends: true,
            good: None,
            bad: None,
            short: None,
            refinements: 0,
        }
    }

    /// The next step; `None`: the sweep is over.
    pub fn next_step(&mut self) -> Option<Step> {
        if self.ascends
            && let Some(step) = self.asked.next()
        {
            return Some(step);
        }
        self.ascends = false;
        let (good, bad) = (self.good?, self.bad?);
        if bad.is_within(good, CLOSE_PERCENT) || self.refinements >= MOST_REFINEMENTS || good.is_saturated() {
            return None;
        }
        self.refinements += 1;
        let rate_bps = good.step.rate_bps.midpoint(bad.step.rate_bps);
        Some(Step { rate_bps, duration: bad.step.duration })
    }

    /// Takes the result of the last step.
    pub fn took(&mut self, result: &StepResult) {
        let StepResult { step, sent, figures } = result;
        let ran = Ran {
            step: *step,
            sent_bps: sent.bps(self.frame_bytes),
            received_bps: figures.bps(self.frame_bytes),
        };
        if lost_more_than(figures, LOSS_PER_MILLE) {
            self.took_bad(ran);
            // Higher rates would only harm other traffic of the path, and the session's own.
            self.ascends &= !lost_more_than(figures, MUCH_LOSS_PER_MILLE);
        } else if ran.sent_bps.saturating_mul(100) < step.rate_bps.saturating_mul(SENT_PERCENT) {
            self.took_short(Short::Sent(ran));
        } else if dropped_more_than(figures, LOSS_PER_MILLE) {
            self.took_short(Short::Dropped(ran, figures.dropped_here));
        } else {
            self.took_good(ran);
        }
    }

    /// The knee, once the sweep is over.
    pub fn knee(&self) -> Knee {
        let Some(good) = self.good else { return self.no_knee() };
        let reason = match (self.bad, self.short) {
            _ if good.is_saturated() => None,
            (Some(bad), _) if bad.is_within(good, KNOWN_PERCENT) => None,
            (Some(bad), _) => Some(format!(
                "the path carries at least {} b/s, and loses packets of a step of {} b/s; ask for steps \
                 between them, when the sender has less to do",
                good.received_bps, bad.step.rate_bps
            )),
            (None, Some(short)) => Some(format!(
                "{}; the path carries at least {} b/s",
                short.sentence("a step"),
                good.received_bps
            )),
            (None, None) => Some(format!(
                "no step lost packets; the path carries at least {} b/s: ask for higher rates to find its knee",
                good.received_bps
            )),
        };
        Knee { bps: Some(good.received_bps), reason }
    }

    fn took_good(&mut self, ran: Ran) {
        if self.good.is_none_or(|good| ran.step.rate_bps > good.step.rate_bps) {
            self.good = Some(ran);
        }
        // A loss below a rate without any was no knee.
        self.bad = self.bad.filter(|bad| bad.step.rate_bps > ran.step.rate_bps);
    }

    fn took_short(&mut self, short: Short) {
        let is_lower = |known: Short| known.rate_bps() <= short.rate_bps();
        self.short = Some(self.short.filter(|known| is_lower(*known)).unwrap_or(short));
        // A host that was busy for a moment may reach the rate of a refining step at the next attempt.
        self.ascends = false;
    }

    fn took_bad(&mut self, ran: Ran) {
        let is_above = self.good.is_none_or(|good| ran.step.rate_bps > good.step.rate_bps);
        if is_above && self.bad.is_none_or(|bad| ran.step.rate_bps < bad.step.rate_bps) {
            self.bad = Some(ran);
        }
    }

    fn no_knee(&self) -> Knee {
        let reason = match (self.bad, self.short) {
            (Some(bad), _) => format!(
                "the step of {} b/s, the lowest, lost more than 0.1 % of its packets already; ask for lower rates",
                bad.step.rate_bps
            ),
            (None, Some(short)) => format!(
                "{}; ask for lower rates, or probe when its host has less to do",
                short.sentence("the lowest step")
            ),
            (None, None) => "no step was run to its end".to_owned(),
        };
        Knee { bps: None, reason: Some(reason) }
    }
}

impl Short {
    fn rate_bps(self) -> u64 {
        match self {
            Self::Sent(ran) | Self::Dropped(ran, _) => ran.step.rate_bps,
        }
    }

    fn sentence(self, step: &str) -> String {
        match self {
            Self::Sent(ran) => {
                format!("the sender reached {} of the {} b/s of {step}", ran.sent_bps, ran.step.rate_bps)
            }
            Self::Dropped(ran, dropped) => format!(
                "the receiver's host dropped {dropped} packets of {step} of {} b/s",
                ran.step.rate_bps
            ),
        }
    }
}

impl Ran {
    /// True if its rate is at most so many percent of the other's.
    fn is_within(&self, other: Self, percent: u64) -> bool {
        self.step.rate_bps.saturating_mul(100) <= other.step.rate_bps.saturating_mul(percent)
    }

    /// True if packets arrived more slowly than they left: a queue of the path took the rest, and would overflow.
    fn is_saturated(&self) -> bool {
        self.received_bps.saturating_mul(100) < self.sent_bps.saturating_mul(SATURATED_PERCENT)
    }
}

fn lost_more_than(figures: &Figures, per_mille: u64) -> bool {
    figures.lost.saturating_mul(1_000) > figures.sent.saturating_mul(per_mille) || figures.received == 0
}

/// True if the receiver's host did not take in more than the path may lose.
fn dropped_more_than(figures: &Figures, per_mille: u64) -> bool {
    let missing = figures.lost.saturating_add(figures.dropped_here);
    figures.dropped_here > 0 && missing.saturating_mul(1_000) > figures.sent.saturating_mul(per_mille)
}

/// Six halve a doubling to 2 %; the others repeat steps that were not sent at their rate.
const MOST_REFINEMENTS: u32 = 10;
/// The last good step and the first bad one are as close as a knee needs to be.
const CLOSE_PERCENT: u64 = 103;
/// As close as they must be for the knee to be known.
const KNOWN_PERCENT: u64 = 105;
const LOSS_PER_MILLE: u64 = 1;
const MUCH_LOSS_PER_MILLE: u64 = 100;
const SENT_PERCENT: u64 = 98;
const SATURATED_PERCENT: u64 = 95;

#[cfg(test)]
mod tests {
    use downburst_model::Micros;

    use super::*;

    const FRAME_BYTES: u64 = 1_000;
    const MEGABIT: u64 = 1_000_000;

    fn steps(megabits: &[u64]) -> Vec<Step> {
        let step = |rate: &u64| Step { rate_bps: rate * MEGABIT, duration: Micros::from_secs(1) };
        megabits.iter().map(step).collect()
    }

    /// The result of a step whose sender sends up to a rate on a path that carries a rate.
    fn result(step: Step, sender_bps: u64, path_bps: u64) -> StepResult {
        let second = |rate_bps: u64| rate_bps / 8 / FRAME_BYTES + 1;
        let sent = second(step.rate_bps.min(sender_bps));
        let received = sent.min(second(path_bps));
        let figures =
            Figures { sent, received, lost: sent - received, elapsed_us: 1_000_000, ..Figures::default() };
        StepResult {
            step,
            sent: Sent { packets: sent, elapsed_us: 1_000_000, lag_us: 0, tcp: None },
            figures,
        }
    }

    fn swept(megabits: &[u64], mut run: impl FnMut(Step) -> StepResult) -> (Vec<u64>, Knee) {
        let (mut sweep, mut rates) = (Sweep::new(steps(megabits), FRAME_BYTES), Vec::new());
        while let Some(step) = sweep.next_step() {
            rates.push(step.rate_bps);
            sweep.took(&run(step));
        }
        (rates, sweep.knee())
    }

    #[test]
    fn the_knee_is_within_five_percent_of_the_path_whatever_its_rate() {
        for path in 5..79 {
            let path_bps = path * MEGABIT;
            let (rates, knee) = swept(&[5, 10, 20, 40, 80], |step| result(step, u64::MAX, path_bps));
            let bps = knee.bps.unwrap();
            assert!(bps <= path_bps && bps * 100 >= path_bps * 95, "{path} Mb/s: {bps} after {rates:?}");
            assert_eq!(knee.reason, None, "{path} Mb/s");
        }
    }

    #[test]
    fn a_step_of_which_the_receiver_dropped_packets_is_neither_good_nor_bad() {
        let deaf = |step: Step, from_bps: u64| {
            let mut result = result(step, u64::MAX, u64::MAX);
            if step.rate_bps >= from_bps {
                (result.figures.received, result.figures.dropped_here) = (result.figures.sent - 90, 90);
            }
            result
        };
        let (rates, knee) = swept(&[10, 20, 40], |step| deaf(step, 20 * MEGABIT));
        assert_eq!(rates, [10, 20].map(|rate| rate * MEGABIT));
        assert_eq!(knee.bps, Some(10 * MEGABIT));
        let reason = knee.reason.unwrap();
        assert!(reason.contains("host dropped 90 packets of a step of 20000000 b/s"), "{reason}");
        let (_, none) = swept(&[10, 20], |step| deaf(step, 0));
        assert!(none.bps.is_none() && none.reason.unwrap().contains("dropped 90 packets of the lowest step"));
        let (_, few) = swept(&[10], |step| {
            let figures = Figures { dropped_here: 1, ..result(step, u64::MAX, u64::MAX).figures };
            StepResult { figures, ..result(step, u64::MAX, u64::MAX) }
        });
        assert_eq!(few.bps, Some(10 * MEGABIT));
    }

    #[test]
    fn a_sweep_that_loses_much_does_not_go_on_to_higher_rates() {
        let (rates, _) = swept(&[10, 20, 40, 80], |step| result(step, u64::MAX, 15 * MEGABIT));
        assert!(rates.iter().all(|rate| *rate <= 20 * MEGABIT), "{rates:?}");
    }

    #[test]
    fn without_a_loss_the_path_carries_at_least_the_highest_rate() {
        let (rates, knee) = swept(&[10, 20], |step| result(step, u64::MAX, u64::MAX));
        assert_eq!((rates.len(), knee.bps), (2, Some(20 * MEGABIT)));
        assert!(knee.reason.unwrap().contains("carries at least 20000000 b/s"));
    }

    #[test]
    fn a_lowest_step_that_loses_leaves_the_knee_unknown() {
        let (_, knee) = swept(&[20, 40], |step| result(step, u64::MAX, 10 * MEGABIT));
        assert_eq!(knee.bps, None);
        assert!(knee.reason.unwrap().contains("the lowest, lost more than 0.1 %"));
    }

    #[test]
    fn a_sender_that_is_too_slow_is_no_knee() {
        let (rates, knee) = swept(&[10, 20, 40], |step| result(step, 15 * MEGABIT, u64::MAX));
        assert_eq!((rates.len(), knee.bps), (2, Some(10 * MEGABIT)));
        assert!(knee.reason.unwrap().contains("reached 15000000 of the 20000000 b/s"));
        let (_, knee) = swept(&[20, 40], |step| result(step, 15 * MEGABIT, u64::MAX));
        assert_eq!(knee.bps, None);
        assert!(knee.reason.unwrap().contains("of the lowest step"));
    }

    #[test]
    fn a_refining_step_that_was_sent_too_slowly_is_repeated() {
        let mut attempts = 0;
        let run = |step: Step| {
            attempts += 1;
            result(step, if attempts % 2 == 1 { 20 * MEGABIT } else { u64::MAX }, 37 * MEGABIT)
        };
        let (rates, knee) = swept(&[20, 40], run);
        assert!(rates.windows(2).any(|pair| pair[0] == pair[1]), "{rates:?}");
        assert!(knee.bps.unwrap() >= 36 * MEGABIT && knee.reason.is_none(), "{knee:?}");
    }

    #[test]
    fn a_knee_between_steps_that_were_never_sent_at_their_rate_has_both_sides() {
        let (_, knee) = swept(&[20, 40], |step| {
            result(step, if step.rate_bps == 40 * MEGABIT { u64::MAX } else { 20 * MEGABIT }, 37 * MEGABIT)
        });
        assert_eq!(knee.bps, Some(20 * MEGABIT));
        assert!(knee.reason.unwrap().contains("loses packets of a step of 40000000 b/s"));
    }

    #[test]
    fn a_queue_that_swallows_the_rest_is_seen_in_the_rate_of_arrivals() {
        let (rates, knee) = swept(&[20, 40], |step| {
            let mut queued = result(step, u64::MAX, u64::MAX);
            queued.figures.elapsed_us = 1_000_000 * step.rate_bps.max(30 * MEGABIT) / (30 * MEGABIT);
            queued
        });
        assert_eq!((rates.len(), knee.reason), (2, None));
        assert!(knee.bps.unwrap().abs_diff(30 * MEGABIT) < MEGABIT / 10);
    }

    #[test]
    fn a_loss_by_chance_below_the_knee_is_no_knee() {
        let (_, knee) = swept(&[10, 20, 40], |step| {
            result(step, u64::MAX, if step.rate_bps == 10 * MEGABIT { 9_900_000 } else { 35 * MEGABIT })
        });
        assert!(knee.bps.unwrap() >= 33 * MEGABIT);
    }

    #[test]
    fn silence_is_never_a_good_step() {
        let (_, knee) = swept(&[10], |step| result(step, 0, 0));
        assert_eq!(knee.bps, None);
        assert!(Sweep::new(Vec::new(), FRAME_BYTES).knee().reason.is_some());
    }
}
