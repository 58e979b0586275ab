//! The choice of the hub that serves a site, from times and news alone, without sockets.
use downburst_model::Micros;

/// The preferred hub serves while it can; the others stand by.
#[derive(Debug)]
pub(crate) struct Choice {
    hubs: Vec<Standing>,
    preferred: usize,
    active: usize,
    /// The time for which the preferred hub must be connected before it serves again.
    return_after: Micros,
}

/// The state of the connection to a hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Connected since that time.
    Well { since: Micros },
    /// Not connected since that time. `silent`: detected only after the time limit for a dead hub.
    Away { since: Micros, silent: bool },
    /// The hub refuses this site.
    Refused,
}

impl Choice {
    /// Starts with the first of `count` hubs.
    pub(crate) fn new(count: usize, return_after: Micros, now: Micros) -> Self {
        let hubs = vec![Standing::Away { since: now, silent: false }; count];
        Self { hubs, preferred: 0, active: 0, return_after }
    }

    pub(crate) fn active(&self) -> usize {
        self.active
    }

    pub(crate) fn preferred(&self) -> usize {
        self.preferred
    }

    pub(crate) fn standing(&self, hub: usize) -> Option<Standing> {
        self.hubs.get(hub).copied()
    }

    pub(crate) fn is_refused_by_all(&self) -> bool {
        self.hubs.iter().all(|standing| *standing == Standing::Refused)
    }

    pub(crate) fn is_well(&mut self, now: Micros, hub: usize) {
        self.set(hub, Standing::Well { since: now });
    }

    /// Notes that the connection ended, or could not be made. Only the first report counts.
    pub(crate) fn is_away(&mut self, now: Micros, hub: usize, silent: bool) {
        if !matches!(self.hubs.get(hub), Some(Standing::Away { .. })) {
            self.set(hub, Standing::Away { since: now, silent });
        }
    }

    pub(crate) fn has_refused(&mut self, hub: usize) {
        self.set(hub, Standing::Refused);
    }

    /// Makes this the preferred hub on an operator's request. It serves immediately if it is connected.
    pub(crate) fn prefer(&mut self, now: Micros, hub: usize) -> Option<usize> {
        self.preferred = hub;
        (self.is_standing_by(hub)).then(|| self.switch(now, hub)).flatten()
    }

    /// The hub to switch to, if a switch is due.
    pub(crate) fn decide(&mut self, now: Micros) -> Option<usize> {
        let next = match self.standing(self.active)? {
            Standing::Refused => self.another().or_else(|| self.untried()),
            Standing::Away { since, silent } => {
                let away = now.since(since);
                let well = self.another().filter(|_| silent || away >= RECONNECT_PATIENCE);
                well.or_else(|| self.untried().filter(|_| away >= UNTRIED_PATIENCE))
            }
            Standing::Well { .. } => self.preferred_again(now),
        };
        next.and_then(|next| self.switch(now, next))
    }

    /// The time at which `decide` may return a hub without further news.
    pub(crate) fn deadline(&self) -> Option<Micros> {
        match (self.standing(self.active)?, self.standing(self.preferred)?) {
            (Standing::Away { since, .. }, _) if self.another().is_some() => {
                Some(since.plus(RECONNECT_PATIENCE))
            }
            (Standing::Away { since, .. }, _) => self.untried().map(|_| since.plus(UNTRIED_PATIENCE)),
            (Standing::Well { .. }, Standing::Well { since }) if self.active != self.preferred => {
                Some(since.plus(self.return_after))
            }
            _ => None,
        }
    }

    fn preferred_again(&self, now: Micros) -> Option<usize> {
        match self.standing(self.preferred)? {
            Standing::Well { since } if now.since(since) >= self.return_after => Some(self.preferred),
            _ => None,
        }
    }

    /// The first hub that stands by, in order of preference.
    fn another(&self) -> Option<usize> {
        self.in_order().find(|hub| self.is_standing_by(*hub))
    }

    /// A hub that does not stand by (an older release can't), but may serve.
    fn untried(&self) -> Option<usize> {
        let after = self.in_order().skip_while(|hub| *hub != self.active).skip(1);
        let mut candidates = after.chain(self.in_order()).filter(|hub| *hub != self.active);
        candidates.find(|hub| self.standing(*hub).is_some_and(|standing| standing != Standing::Refused))
    }

    fn in_order(&self) -> impl Iterator<Item = usize> + '_ {
        let others = (0..self.hubs.len()).filter(|hub| *hub != self.preferred);
        std::iter::once(self.preferred).chain(others)
    }

    fn is_standing_by(&self, hub: usize) -> bool {
        hub != self.active && matches!(self.standing(hub), Some(Standing::Well { .. }))
    }

    /// Switches to another hub. Both connections are made anew, so both hubs count as away until they report again.
    fn switch(&mut self, now: Micros, to: usize) -> Option<usize> {
        if to == self.active {
            return None;
        }
        let left = self.active;
        self.active = to;
        for hub in [left, to] {
            if self.standing(hub) != Some(Standing::Refused) {
                self.set(hub, Standing::Away { since: now, silent: false });
            }
        }
        Some(to)
    }

    fn set(&mut self, hub: usize, standing: Standing) {
        if let Some(place) = self.hubs.get_mut(hub) {
            *place = standing;
        }
    }
}

/// A restarted hub is back by then, and the wait stays far below ten seconds.
const RECONNECT_PATIENCE: Micros = Micros::from_secs(2);

/// If no other hub stands by, the one in use gets more time.
const UNTRIED_PATIENCE: Micros = Micros::from_secs(6);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Micros {
        Micros::from_secs(seconds)
    }

    fn two() -> Choice {
        let mut choice = Choice::new(2, at(30), at(0));
        choice.is_well(at(0), 0);
        choice.is_well(at(0), 1);
        choice
    }

    #[test]
    fn a_lost_hub_gets_two_seconds_and_a_silent_one_none() {
        let mut choice = two();
        choice.is_away(at(10), 0, false);
        choice.is_away(at(11), 0, false);
        assert_eq!((choice.decide(at(11)), choice.deadline()), (None, Some(at(12))));
        assert_eq!((choice.decide(at(12)), choice.active()), (Some(1), 1));
        let mut choice = two();
        choice.is_away(at(10), 0, true);
        assert_eq!(choice.decide(at(10)), Some(1));
    }

    #[test]
    fn a_hub_that_comes_back_in_time_stays() {
        let mut choice = two();
        choice.is_away(at(10), 0, false);
        choice.is_well(at(11), 0);
        assert_eq!((choice.decide(at(20)), choice.deadline()), (None, None));
    }

    #[test]
    fn the_preferred_hub_serves_again_after_it_was_well_without_a_break() {
        let mut choice = two();
        choice.is_away(at(10), 0, true);
        assert_eq!(choice.decide(at(10)), Some(1));
        choice.is_well(at(11), 1);
        choice.is_well(at(20), 0);
        choice.is_away(at(30), 0, false);
        choice.is_well(at(40), 0);
        assert_eq!((choice.decide(at(69)), choice.deadline()), (None, Some(at(70))));
        assert_eq!(choice.decide(at(70)), Some(0));
    }

    #[test]
    fn a_person_switches_at_once_to_what_is_well_and_else_when_it_is() {
        let mut choice = two();
        assert_eq!((choice.prefer(at(5), 1), choice.active()), (Some(1), 1));
        choice.is_well(at(6), 1);
        choice.is_well(at(6), 0);
        assert_eq!(choice.decide(at(1_000)), None, "the other one is not preferred any more");
        let mut choice = two();
        choice.is_away(at(1), 1, false);
        assert_eq!((choice.prefer(at(5), 1), choice.active()), (None, 0));
        choice.is_well(at(10), 1);
        assert_eq!(choice.decide(at(40)), Some(1));
    }

    #[test]
    fn without_word_of_another_hub_each_is_tried_in_turn() {
        let mut choice = Choice::new(3, at(30), at(0));
        assert_eq!(choice.decide(at(5)), None);
        let tried: Vec<_> = (1..5).filter_map(|round| choice.decide(at(round * 10))).collect();
        assert_eq!(tried, [1, 2, 0, 1]);
        choice.has_refused(1);
        assert_eq!(choice.decide(at(60)), Some(2));
    }

    #[test]
    fn one_hub_is_never_left() {
        let mut choice = Choice::new(1, at(30), at(0));
        choice.is_away(at(1), 0, true);
        assert_eq!((choice.decide(at(100)), choice.deadline()), (None, None));
        choice.has_refused(0);
        assert!(choice.is_refused_by_all());
        assert_eq!(choice.decide(at(100)), None);
    }
}
