//! The order of live products for local software, if a subscription requires one.
//!
//! Order is promised per feed, class and lane: a product waits until everything before it in its class is
//! stored, rejected, expired or not for this site, but no longer than the subscription's hold. Then later ones are
//! shown, and late arrivals are marked late.
use std::collections::BTreeMap;

use downburst_model::{Class, Epoch, Micros, RangeSet, Sequence};
use downburst_session::Missing;

/// The products of one feed that arrived before their turn.
#[derive(Debug)]
pub struct Order {
    hold: Micros,
    lines: BTreeMap<Class, Line>,
}

/// A live product in the site's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its place in the site's own log.
    pub at: Sequence,
    /// Its class.
    pub class: Class,
    /// The epoch of the hub's log.
    pub epoch: Epoch,
    /// Its sequence at the hub.
    pub sequence: Sequence,
}

/// A product whose turn has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Its place in the site's own log.
    pub at: Sequence,
    /// True if a later one of its class was shown before it.
    pub late: bool,
}

#[derive(Debug, Default)]
struct Line {
    epoch: Option<Epoch>,
    shown: Sequence,
    waiting: BTreeMap<Sequence, (Sequence, Micros)>,
}

impl Order {
    /// An order in which no product waits longer than `hold` for a missing one.
    pub fn new(hold: Micros) -> Self {
        Self { hold, lines: BTreeMap::new() }
    }

    /// Changes the time for which a missing product holds back later ones.
    pub fn set_hold(&mut self, hold: Micros) {
        self.hold = hold;
    }

    /// Restores the last product shown of a class before a restart.
    pub fn resume(&mut self, class: Class, epoch: Epoch, shown: Sequence) {
        self.lines.insert(class, Line { epoch: Some(epoch), shown, waiting: BTreeMap::new() });
    }

    /// The last product shown of each class, for [`resume`](Self::resume).
    pub fn shown(&self) -> impl Iterator<Item = (Class, Epoch, Sequence)> {
        self.lines.iter().filter_map(|(class, line)| Some((*class, line.epoch?, line.shown)))
    }

    /// Takes an arrival; returns the products to show immediately because of it: itself if it is late, and at a
    /// new epoch all that wait.
    pub fn arrive(&mut self, arrival: Arrival, now: Micros) -> Vec<Turn> {
        let line = self.lines.entry(arrival.class).or_default();
        let mut turns = Vec::new();
        if line.epoch != Some(arrival.epoch) {
            turns = line.take_to(Sequence(u64::MAX));
            *line = Line { epoch: Some(arrival.epoch), ..Line::default() };
        }
        if arrival.sequence <= line.shown {
            turns.push(Turn { at: arrival.at, late: true });
        } else {
            line.waiting.insert(arrival.sequence, (arrival.at, now));
        }
        turns
    }

    /// Takes the products whose turn has come: nothing before them is missing, or they have waited long enough.
    pub fn take_due(&mut self, missing: &Missing, now: Micros) -> Vec<Turn> {
        let hold = self.hold;
        let mut turns = Vec::new();
        for (class, line) in &mut self.lines {
            let known = missing.by_class.get(class).filter(|_| missing.epoch == line.epoch);
            let last = line.due(known, missing.to, now, hold);
            turns.extend(line.take_to(last));
        }
        turns
    }

    /// The time at which the next product has waited long enough.
    pub fn deadline(&self) -> Option<Micros> {
        let waiting = self.lines.values().flat_map(|line| line.waiting.values());
        waiting.map(|(_, since)| since.plus(self.hold)).min()
    }
}

impl Line {
    /// The last sequence that may be shown. A product is shown when nothing between it and the one shown before it is
    /// missing. A product that has waited long enough is shown in any case, with all waiting ones before it.
    fn due(&self, missing: Option<&RangeSet>, known_to: Sequence, now: Micros, hold: Micros) -> Sequence {
        let (mut last, mut reached) = (Sequence(0), self.shown.0);
        for (sequence, (_, since)) in &self.waiting {
            let (from, before) = (reached.saturating_add(1), sequence.0.saturating_sub(1));
            let whole = |missing: &RangeSet| {
                before <= known_to.0 && (from > before || missing.gaps(from, before).eq([(from, before)]))
            };
            let follows = reached == last.0.max(self.shown.0) && missing.is_some_and(whole);
            if follows || now.since(*since) >= hold {
                last = *sequence;
            }
            reached = sequence.0;
        }
        last
    }

    fn take_to(&mut self, last: Sequence) -> Vec<Turn> {
        let mut turns = Vec::new();
        while let Some(first) = self.waiting.first_entry().filter(|first| *first.key() <= last) {
            self.shown = *first.key();
            turns.push(Turn { at: first.remove().0, late: false });
        }
        turns
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOLD: Micros = Micros::from_secs(2);

    fn arrival(at: u64, sequence: u64) -> Arrival {
        Arrival { at: Sequence(at), class: Class::Grid, epoch: Epoch(1), sequence: Sequence(sequence) }
    }

    /// All numbers up to 999 have ended except these.
    fn lacking(numbers: impl IntoIterator<Item = u64>) -> Missing {
        let holes = numbers.into_iter().map(|number| (number, number)).collect();
        Missing { epoch: Some(Epoch(1)), by_class: [(Class::Grid, holes)].into(), to: Sequence(999) }
    }

    fn on_time(at: u64) -> Turn {
        Turn { at: Sequence(at), late: false }
    }

    #[test]
    fn a_product_waits_for_the_one_before_it() {
        let (mut order, now) = (Order::new(HOLD), Micros(0));
        assert_eq!(order.arrive(arrival(1, 12), now), []);
        assert_eq!(order.take_due(&lacking([11]), now), []);
        order.arrive(arrival(2, 11), now);
        assert_eq!(
            order.take_due(&lacking([11, 12]), now),
            [on_time(2), on_time(1)],
            "what is here lacks no more"
        );
        assert_eq!(order.deadline(), None);
    }

    #[test]
    fn what_the_session_does_not_know_yet_holds() {
        let (mut order, now) = (Order::new(HOLD), Micros(0));
        order.arrive(arrival(1, 12), now);
        assert_eq!(order.take_due(&Missing::default(), now), []);
        assert_eq!(order.take_due(&Missing { to: Sequence(10), ..lacking([]) }, now), []);
        assert_eq!(order.take_due(&Missing { to: Sequence(11), ..lacking([]) }, now), [on_time(1)]);
    }

    #[test]
    fn a_number_that_is_not_for_the_site_holds_nothing() {
        let (mut order, now) = (Order::new(HOLD), Micros(0));
        order.arrive(arrival(1, 15), now);
        order.arrive(arrival(2, 20), now);
        assert_eq!(order.take_due(&lacking([17, 21]), now), [on_time(1)]);
    }

    #[test]
    fn after_the_hold_the_later_ones_go_and_the_missing_one_is_late() {
        let (mut order, now) = (Order::new(HOLD), Micros(0));
        order.arrive(arrival(1, 12), now);
        order.arrive(arrival(2, 14), now.plus(Micros::from_secs(1)));
        assert_eq!(order.deadline(), Some(now.plus(HOLD)));
        assert_eq!(
            order.take_due(&lacking([11, 13]), now.plus(HOLD)),
            [on_time(1)],
            "13 is missing since a second"
        );
        assert_eq!(order.arrive(arrival(3, 11), now.plus(HOLD)), [Turn { at: Sequence(3), late: true }]);
        assert_eq!(order.take_due(&lacking([]), now.plus(HOLD)), [on_time(2)]);
    }

    #[test]
    fn one_that_was_given_up_holds_nothing_any_more() {
        let (mut order, now) = (Order::new(HOLD), Micros(0));
        order.arrive(arrival(1, 12), now);
        order.arrive(arrival(2, 13), now.plus(Micros::from_secs(1)));
        assert_eq!(order.take_due(&lacking([11]), now.plus(HOLD)), [on_time(1), on_time(2)]);
    }

    #[test]
    fn classes_do_not_wait_for_each_other() {
        let (mut order, now) = (Order::new(HOLD), Micros(0));
        order.arrive(arrival(1, 12), now);
        order.arrive(Arrival { class: Class::Warning, ..arrival(2, 13) }, now);
        let mut missing = lacking([11]);
        missing.by_class.insert(Class::Warning, RangeSet::new());
        assert_eq!(order.take_due(&missing, now), [on_time(2)]);
    }

    #[test]
    fn another_epoch_lets_go_of_everything() {
        let (mut order, now) = (Order::new(HOLD), Micros(0));
        order.arrive(arrival(1, 12), now);
        order.arrive(arrival(2, 15), now);
        let next = Arrival { epoch: Epoch(2), ..arrival(3, 3) };
        assert_eq!(order.arrive(next, now), [on_time(1), on_time(2)]);
        assert_eq!(order.take_due(&lacking([]), now), [], "that is word of the epoch before");
        assert_eq!(order.take_due(&Missing { epoch: Some(Epoch(2)), ..lacking([]) }, now), [on_time(3)]);
    }

    #[test]
    fn a_restart_remembers_what_was_shown() {
        let (mut order, now) = (Order::new(HOLD), Micros(0));
        order.arrive(arrival(1, 12), now);
        order.take_due(&lacking([]), now);
        let mut resumed = Order::new(HOLD);
        for (class, epoch, shown) in order.shown() {
            resumed.resume(class, epoch, shown);
        }
        assert_eq!(resumed.arrive(arrival(2, 11), now), [Turn { at: Sequence(2), late: true }]);
    }

    proptest! {
        #[test]
        fn whatever_comes_goes_once_and_in_order_unless_late(
            numbers in proptest::sample::subsequence((1u64..200).collect::<Vec<_>>(), 1..100).prop_shuffle(),
            gaps_ms in proptest::collection::vec(0u64..1_500, 100),
        ) {
            let (mut order, mut now) = (Order::new(HOLD), Micros(0));
            let mut turns = Vec::new();
            let mut missing: std::collections::BTreeSet<_> = numbers.iter().copied().collect();
            for (at, (number, gap)) in numbers.iter().zip(&gaps_ms).enumerate() {
                now = now.plus(Micros::from_millis(*gap));
                turns.extend(order.arrive(arrival(at as u64, *number), now));
                missing.remove(number);
                turns.extend(order.take_due(&lacking(missing.iter().copied()), now));
            }
            turns.extend(order.take_due(&lacking([]), now));
            let shown = |turn: &Turn| numbers[turn.at.0 as usize];
            let punctual: Vec<u64> = turns.iter().filter(|turn| !turn.late).map(shown).collect();
            prop_assert!(punctual.is_sorted(), "{punctual:?}");
            let mut all: Vec<u64> = turns.iter().map(shown).collect();
            all.sort_unstable();
            let mut expected = numbers.clone();
            expected.sort_unstable();
            prop_assert_eq!(all, expected);
        }
    }
}
