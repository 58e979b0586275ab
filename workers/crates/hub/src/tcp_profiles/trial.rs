//! The trial of a candidate: windows, one after the other, until there is a verdict.
use downburst_model::Micros;

use super::knobs::Knobs;
use super::meter::ConnectionKey;
use super::round::{Rates, Round, Side};

/// A trial that is running.
#[derive(Debug)]
pub(super) struct Trial {
    pub(super) candidate: Knobs,
    pub(super) before: Knobs,
    round: Option<Round>,
    /// The rate of a connection alone in the window before, without the candidate.
    base: Option<(ConnectionKey, u64)>,
    pub(super) compared: Vec<Compared>,
    /// The connections of the last window on both sides; `None`: none has begun.
    pub(super) counts: Option<(usize, usize)>,
}

/// The result of a window in which both sides were compared, or of a pair of windows of a single connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Compared {
    pub(super) canary_bps: u64,
    pub(super) others_bps: u64,
    /// The candidate brought clearly more.
    rises: bool,
    /// It brought clearly less.
    falls: bool,
    /// It is a pair of windows.
    alone: bool,
}

/// The end of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Kept,
    NotBetter,
    TakenBack,
}

impl Trial {
    pub(super) fn new(candidate: Knobs, before: Knobs) -> Self {
        Self { candidate, before, round: None, base: None, compared: Vec::new(), counts: None }
    }

    /// True if a window can begin.
    pub(super) fn wants_round(&self) -> bool {
        self.round.is_none()
    }

    /// Begins a window with the connections that are busy.
    pub(super) fn begin(&mut self, now: Micros, busy: &[ConnectionKey], turn: usize) {
        self.round = match busy {
            [] => return,
            [key] => {
                let follows = self.base.is_some_and(|(before, _)| before == *key);
                Some(Round::alone(now, *key, if follows { Side::Canary } else { Side::Other }))
            }
            keys => Some(Round::divided(now, keys, (Side::Canary, keys.len() / 2), turn)),
        };
        self.counts = match busy {
            [_] => Some((1, 0)),
            _ => self.round.as_ref().map(Round::counts),
        };
    }

    /// The part of a connection in the present window.
    pub(super) fn side(&self, key: ConnectionKey) -> Option<Side> {
        self.round.as_ref()?.side(key)
    }

    pub(super) fn round(&mut self) -> Option<&mut Round> {
        self.round.as_mut()
    }

    /// Ends the window if it is over; returns the verdict if there is one.
    pub(super) fn judge(&mut self, now: Micros) -> Option<Verdict> {
        let round = self.round.as_ref()?;
        let rates = round.end(now).ok()?;
        let single = round.single();
        self.round = None;
        let base = self.base.take();
        let rates = rates?;
        match single {
            Some((key, Side::Other)) => {
                self.base = rates.others.first().map(|rate| (key, *rate));
                return None;
            }
            Some((_, Side::Canary)) => {
                let pair = Rates { others: base.into_iter().map(|(_, rate)| rate).collect(), ..rates };
                self.compared.push(Compared::of(&pair, true));
            }
            None => self.compared.push(Compared::of(&rates, false)),
        }
        self.verdict()
    }

    fn verdict(&self) -> Option<Verdict> {
        let mut newest = self.compared.iter().rev();
        let last = newest.next()?;
        let before = newest.next();
        if last.falls && (last.alone || before.is_some_and(|it| it.falls)) {
            return Some(Verdict::TakenBack);
        }
        if last.rises && before.is_some_and(|it| it.rises) {
            return Some(Verdict::Kept);
        }
        (self.compared.len() >= MOST_WINDOWS).then_some(Verdict::NotBetter)
    }
}

impl Compared {
    /// Compares medians. Where the number on a side is even, the less favourable of the middle two counts, so that one
    /// unusual connection decides nothing.
    pub(super) fn of(rates: &Rates, alone: bool) -> Self {
        let (canaries, others) = (middle(&rates.canaries), middle(&rates.others));
        Self {
            canary_bps: median(canaries),
            others_bps: median(others),
            rises: canaries.0.saturating_mul(4) >= others.1.saturating_mul(5) && canaries.0 > others.1,
            falls: canaries.1.saturating_mul(4) < others.0.saturating_mul(3),
            alone,
        }
    }

    pub(super) fn falls(&self) -> bool {
        self.falls
    }
}

/// The medians of both sides over several windows; `None`: there were none.
pub(super) fn over_windows(compared: &[Compared]) -> (Option<u64>, Option<u64>) {
    if compared.is_empty() {
        return (None, None);
    }
    let of = |rate: fn(&Compared) -> u64| {
        let mut rates: Vec<u64> = compared.iter().map(rate).collect();
        rates.sort_unstable();
        Some(median(middle(&rates)))
    };
    (of(|it| it.canary_bps), of(|it| it.others_bps))
}

/// The middle two of sorted values, or the middle one twice.
fn middle(sorted: &[u64]) -> (u64, u64) {
    let at = |place: usize| sorted.get(place).copied().unwrap_or(0);
    (at(sorted.len().saturating_sub(1) / 2), at(sorted.len() / 2))
}

fn median((low, high): (u64, u64)) -> u64 {
    low / 2 + high / 2 + (low % 2 + high % 2) / 2
}

/// The windows, or pairs of them, after which a candidate has not proven itself.
const MOST_WINDOWS: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(canaries: &[u64], others: &[u64]) -> Compared {
        Compared::of(&Rates { canaries: canaries.to_vec(), others: others.to_vec() }, false)
    }

    fn verdict(windows: &[(u64, u64)], alone: bool) -> Option<Verdict> {
        let mut trial = Trial::new(Knobs::default(), Knobs::default());
        windows.iter().find_map(|(canary, other)| {
            let rates = Rates { canaries: vec![*canary], others: vec![*other] };
            trial.compared.push(Compared::of(&rates, alone));
            trial.verdict()
        })
    }

    #[test]
    fn a_candidate_is_kept_or_not_by_windows_in_a_row() {
        assert_eq!(verdict(&[(125, 100)], false), None);
        assert_eq!(verdict(&[(125, 100), (125, 100)], false), Some(Verdict::Kept));
        assert_eq!(verdict(&[(200, 100), (50, 100), (200, 100)], false), Some(Verdict::NotBetter));
        assert_eq!(verdict(&[(124, 100); 3], false), Some(Verdict::NotBetter));
        assert_eq!(verdict(&[(74, 100), (74, 100)], false), Some(Verdict::TakenBack));
        assert_eq!(verdict(&[(74, 100), (75, 100)], false), None);
        assert_eq!(verdict(&[(74, 100)], true), Some(Verdict::TakenBack), "a pair is two windows");
        assert_eq!(verdict(&[(0, 0); 3], false), Some(Verdict::NotBetter), "nothing moved");
    }

    #[test]
    fn one_unusual_connection_decides_nothing() {
        let fine = compared(&[100], &[100]);
        assert!(!fine.rises && !fine.falls);
        let of_others = compared(&[100], &[10, 100]);
        assert!(!of_others.rises && !of_others.falls, "the better of two others counts");
        let of_canaries = compared(&[10, 100], &[100, 100]);
        assert!(!of_canaries.rises && !of_canaries.falls, "the better of two canaries counts");
        assert_eq!((of_canaries.canary_bps, of_canaries.others_bps), (55, 100));
    }

    #[test]
    fn medians_of_windows_are_reported() {
        assert_eq!(over_windows(&[]), (None, None));
        let windows = [compared(&[3], &[1]), compared(&[9], &[2]), compared(&[5], &[3])];
        assert_eq!(over_windows(&windows), (Some(5), Some(2)));
        assert_eq!(median((u64::MAX, u64::MAX)), u64::MAX);
    }
}
