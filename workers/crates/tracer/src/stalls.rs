//! Spans in which nothing moved.
use downburst_model::{Micros, WallMicros};
use serde::Serialize;

use crate::sample::Sample;
use crate::variable::Variable;
use crate::verdict::interval;

/// A span in which nothing was acknowledged although bytes waited or were in flight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stall {
    /// The last advance, or the moment from which bytes waited.
    pub from_us: WallMicros,
    /// The next advance, or the last look.
    pub until_us: WallMicros,
    /// The most bytes that waited or were in flight.
    pub waiting_bytes: u64,
    /// False: it may last on.
    pub ended: bool,
}

/// The stalls of one connection: of at least 300 ms and three round trips.
pub fn stalls(samples: &[Sample]) -> Vec<Stall> {
    let (mut found, mut open) = (Vec::new(), None);
    for pair in samples.windows(2) {
        let [before, now] = pair else { continue };
        if interval(before, now).is_none() {
            open = None;
        } else if now.since(before, Variable::BytesAcked).unwrap_or(0) > 0 {
            found.extend(open.take().and_then(|stall: Open| stall.over(now.at, true)));
            open = now.waits().then(|| Open::begin(now.at, now));
        } else if now.waits() {
            // An idle connection is recorded once a second, and news at once.
            let from = before.at.max(WallMicros(now.at.0.saturating_sub(TICK.0.cast_signed())));
            open.get_or_insert_with(|| Open::begin(from, now)).look(now);
        } else {
            open = None;
        }
    }
    let last = samples.last().map_or(WallMicros(0), |last| last.at);
    found.extend(open.and_then(|stall| stall.over(last, false)));
    found
}

/// A span that may become a stall.
struct Open {
    from: WallMicros,
    waiting_bytes: u64,
    at_least: Micros,
}

impl Open {
    fn begin(from: WallMicros, first: &Sample) -> Self {
        let round_trips = first.get(Variable::Rtt).unwrap_or(0).saturating_mul(3);
        let mut open = Self { from, waiting_bytes: 0, at_least: SHORTEST.max(Micros(round_trips)) };
        open.look(first);
        open
    }

    fn look(&mut self, sample: &Sample) {
        let of = |variable| sample.get(variable).unwrap_or(0);
        let in_flight = of(Variable::Unacked).saturating_mul(of(Variable::SndMss));
        self.waiting_bytes = self.waiting_bytes.max(in_flight.saturating_add(of(Variable::NotsentBytes)));
    }

    fn over(self, until: WallMicros, ended: bool) -> Option<Stall> {
        let length = u64::try_from(until.0.saturating_sub(self.from.0)).unwrap_or(0);
        let stall = Stall { from_us: self.from, until_us: until, waiting_bytes: self.waiting_bytes, ended };
        (length >= self.at_least.0).then_some(stall)
    }
}

const SHORTEST: Micros = Micros::from_millis(300);

/// The pause between two looks.
const TICK: Micros = Micros::from_millis(100);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A look each 100 ms: acknowledged bytes and segments in flight.
    fn trace(looks: &[(u64, u64)], rtt_us: u64) -> Vec<Sample> {
        let one = |(index, (acked, unacked)): (usize, &(u64, u64))| {
            let mut sample = Sample::empty(WallMicros(1_000_000 + index as i64 * 100_000));
            let values =
                [(Variable::BytesAcked, *acked), (Variable::Unacked, *unacked), (Variable::Rtt, rtt_us)];
            values.into_iter().for_each(|(variable, value)| sample.set(variable, value));
            sample.set(Variable::SndMss, 1_000);
            sample
        };
        looks.iter().enumerate().map(one).collect()
    }

    fn spans(found: &[Stall]) -> Vec<(i64, i64, bool)> {
        found
            .iter()
            .map(|it| ((it.from_us.0 - 1_000_000) / 1_000, (it.until_us.0 - 1_000_000) / 1_000, it.ended))
            .collect()
    }

    #[test]
    fn a_stall_goes_from_the_last_advance_to_the_next() {
        let looks = [(0, 4), (5, 4), (9, 4), (9, 4), (9, 6), (9, 4), (9, 4), (12, 0), (12, 0)];
        let found = stalls(&trace(&looks, 20_000));
        assert_eq!(spans(&found), [(200, 700, true)]);
        assert_eq!(found[0].waiting_bytes, 6_000);
    }

    #[test]
    fn one_that_lasts_is_told_and_silence_is_none() {
        assert_eq!(spans(&stalls(&trace(&[(1, 1), (2, 1), (2, 1), (2, 1), (2, 1)], 0))), [(100, 400, false)]);
        assert_eq!(stalls(&trace(&[(1, 0); 50], 0)), []);
        assert_eq!(stalls(&[]), []);
    }

    #[test]
    fn three_round_trips_are_no_stall() {
        let looks = [(1, 1), (2, 1), (2, 1), (2, 1), (2, 1), (3, 0)];
        assert_eq!(stalls(&trace(&looks, 200_000)), []);
        assert_eq!(stalls(&trace(&looks, 100_000)).len(), 1);
    }

    #[test]
    fn a_stall_after_silence_begins_when_bytes_wait_and_not_at_the_record_before() {
        let mut samples = trace(&[(1, 0), (1, 1), (1, 1), (1, 1), (1, 1), (2, 0)], 0);
        samples[0].at.0 -= 800_000;
        assert_eq!(spans(&stalls(&samples)), [(0, 500, true)]);
    }

    proptest! {
        #[test]
        fn stalls_are_long_in_order_and_apart(looks in prop::collection::vec((0..4_u64, 0..3_u64), 0..80)) {
            let mut acked = 0;
            let grow = |(more, unacked): &(u64, u64)| {
                acked += more / 3;
                (acked, *unacked)
            };
            let grown: Vec<(u64, u64)> = looks.iter().map(grow).collect();
            let found = stalls(&trace(&grown, 1_000));
            for stall in &found {
                prop_assert!(stall.until_us.0 - stall.from_us.0 >= 300_000);
            }
            prop_assert!(found.windows(2).all(|pair| pair[0].until_us <= pair[1].from_us));
        }
    }
}
