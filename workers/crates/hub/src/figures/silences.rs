//! Silences of feeds: the first product after one, and the moment at which it has lasted as long as the hold time.
//!
//! Silences are measured between the stamps of products while these agree with the monotonic clock; across a step of
//! the wall clock they are measured by the monotonic one.
use std::collections::{BTreeMap, BTreeSet};

use downburst_model::{FeedName, Micros, Now, WallMicros};
use serde::Deserialize;

/// A feed whose silences count.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SilenceLine {
    /// The feed; it need not exist yet.
    pub feed: FeedName,
    /// The length of a silence that counts.
    pub hold_us: u64,
}

/// A sign of a feed's arrivals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SilenceSign {
    /// A product arrived after a silence, or as the first one since the feed is watched.
    Stirred {
        /// The feed.
        feed: FeedName,
        /// The stamp of the product.
        arrived: WallMicros,
    },
    /// No product has arrived for the hold time.
    Silent {
        /// The feed.
        feed: FeedName,
        /// The stamp of the last product.
        since: WallMicros,
        /// The moment at which the hold time had passed.
        until: WallMicros,
    },
}

/// The watched feeds of a hub.
#[derive(Debug, Default)]
pub struct Silences {
    watched: BTreeMap<FeedName, Watched>,
    /// The time at which each feed's silence is reported.
    due: BTreeSet<(Micros, FeedName)>,
}

#[derive(Clone, Copy, Debug)]
struct Watched {
    hold: Micros,
    /// The last product, unless the feed is silent.
    last: Option<Last>,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    stamp: WallMicros,
    /// The time of the stamp by the monotonic clock.
    at: Micros,
}

/// Checks the whole set of feeds; the error is one sentence.
pub fn check_silences(lines: &[SilenceLine]) -> Result<(), String> {
    if lines.len() > WATCHED_MAX {
        return Err(format!(
            "`feeds` has {} entries; silences of at most {WATCHED_MAX} feeds count",
            lines.len()
        ));
    }
    let mut names = BTreeSet::new();
    for SilenceLine { feed, hold_us } in lines {
        if !(HOLD_MIN_US..=HOLD_MAX_US).contains(hold_us) {
            return Err(format!(
                "`hold_us` of {feed} is {hold_us}; it is a number from {HOLD_MIN_US} to {HOLD_MAX_US}"
            ));
        }
        if !names.insert(feed) {
            return Err(format!("{feed} is named twice; name each feed once"));
        }
    }
    Ok(())
}

impl Silences {
    /// Replaces the watched feeds. Those that were watched before keep their last product.
    pub fn watch(&mut self, lines: Vec<SilenceLine>) {
        let mut before = std::mem::take(&mut self.watched);
        self.due.clear();
        for SilenceLine { feed, hold_us } in lines.into_iter().take(WATCHED_MAX) {
            let last = before.remove(&feed).and_then(|watched| watched.last);
            let watched = Watched { hold: Micros(hold_us), last };
            self.due.extend(watched.due().map(|due| (due, feed.clone())));
            self.watched.insert(feed, watched);
        }
    }

    /// Takes the arrival of a product, and returns its signs.
    pub fn arrived(&mut self, feed: &FeedName, stamp: WallMicros, now: Now) -> Vec<SilenceSign> {
        let Some(watched) = self.watched.get_mut(feed) else { return Vec::new() };
        if let Some(due) = watched.due() {
            self.due.remove(&(due, feed.clone()));
        }
        let mut signs = Vec::new();
        let at = at_of(stamp, now, watched.hold);
        watched.last = Some(match watched.last {
            Some(last) if last.silence(stamp, at) < watched.hold => last.followed_by(stamp, at),
            last => {
                signs.extend(last.map(|last| last.silent(feed, watched.hold)));
                signs.push(SilenceSign::Stirred { feed: feed.clone(), arrived: stamp });
                Last { stamp, at }
            }
        });
        self.due.extend(watched.due().map(|due| (due, feed.clone())));
        signs
    }

    /// Returns the silences that have lasted long enough.
    pub fn passed(&mut self, now: Micros) -> Vec<SilenceSign> {
        let mut signs = Vec::new();
        while self.deadline().is_some_and(|due| due <= now)
            && let Some((_, feed)) = self.due.pop_first()
        {
            let Some(watched) = self.watched.get_mut(&feed) else { continue };
            signs.extend(watched.last.take().map(|last| last.silent(&feed, watched.hold)));
        }
        signs
    }

    /// The monotonic time at which [`passed`](Self::passed) has a sign, without an arrival until then.
    pub fn deadline(&self) -> Option<Micros> {
        self.due.first().map(|(due, _)| *due)
    }
}

impl Watched {
    fn due(&self) -> Option<Micros> {
        self.last.map(|last| last.at.plus(self.hold).plus(UNDER_WAY))
    }
}

impl Last {
    fn silence(self, stamp: WallMicros, at: Micros) -> Micros {
        let passed = at.since(self.at);
        let by_stamps = Micros(u64::try_from(stamp.0.saturating_sub(self.stamp.0)).unwrap_or(0));
        if by_stamps.0.abs_diff(passed.0) <= UNDER_WAY.0 { by_stamps } else { passed }
    }

    /// The last product once this one has arrived. Products whose writers overtook each other count in either order;
    /// an earlier stamp at a later time is a wall clock that was set back.
    fn followed_by(self, stamp: WallMicros, at: Micros) -> Self {
        let is_behind = stamp < self.stamp && at <= self.at;
        if is_behind { self } else { Self { stamp, at: at.max(self.at) } }
    }

    fn silent(self, feed: &FeedName, hold: Micros) -> SilenceSign {
        let until = WallMicros(self.stamp.0.saturating_add_unsigned(hold.0));
        SilenceSign::Silent { feed: feed.clone(), since: self.stamp, until }
    }
}

/// The time of a stamp by the monotonic clock. A stamp that lies ahead, or longer ago than the hold time, was given
/// before a step of the wall clock: it counts as given now.
fn at_of(stamp: WallMicros, now: Now, hold: Micros) -> Micros {
    let ago = Micros(u64::try_from(now.wall.0.saturating_sub(stamp.0)).unwrap_or(0));
    if ago <= hold.plus(UNDER_WAY) { now.monotonic.since(ago) } else { now.monotonic }
}

/// A product has its stamp before it is reported here: a silence is believed once such a product would have come.
const UNDER_WAY: Micros = Micros::from_millis(20);

const WATCHED_MAX: usize = 1_000;
const HOLD_MIN_US: u64 = 10_000;

/// A day.
const HOLD_MAX_US: u64 = 86_400_000_000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOLD_US: u64 = 1_000_000;

    fn feed(name: &str) -> FeedName {
        FeedName::parse(name).unwrap()
    }

    fn line(name: &str, hold_us: u64) -> SilenceLine {
        SilenceLine { feed: feed(name), hold_us }
    }

    fn watching(hold_us: u64) -> Silences {
        let mut silences = Silences::default();
        silences.watch(vec![line("A", hold_us)]);
        silences
    }

    /// Both clocks at this time; the wall clock is ahead by `step_us`.
    fn now(at_us: u64, step_us: i64) -> Now {
        Now { monotonic: Micros(at_us), wall: WallMicros(at_us.cast_signed() + step_us) }
    }

    /// A product whose stamp is the present time.
    fn put(silences: &mut Silences, at_us: u64) -> Vec<SilenceSign> {
        let now = now(at_us, 0);
        silences.arrived(&feed("A"), now.wall, now)
    }

    fn stirred(at_us: i64) -> SilenceSign {
        SilenceSign::Stirred { feed: feed("A"), arrived: WallMicros(at_us) }
    }

    fn silent(since_us: i64, hold_us: u64) -> SilenceSign {
        let until = WallMicros(since_us + hold_us.cast_signed());
        SilenceSign::Silent { feed: feed("A"), since: WallMicros(since_us), until }
    }

    /// The signs of these stamps, read without a machine: each pair of neighbours is compared.
    fn signs_of(stamps: &[i64], hold_us: u64) -> Vec<SilenceSign> {
        let mut signs: Vec<_> = stamps.first().map(|first| stirred(*first)).into_iter().collect();
        for pair in stamps.windows(2) {
            if pair[1] - pair[0] >= hold_us.cast_signed() {
                signs.extend([silent(pair[0], hold_us), stirred(pair[1])]);
            }
        }
        signs.extend(stamps.last().map(|last| silent(*last, hold_us)));
        signs
    }

    /// The signs of a machine that is told of each product `late_us` after its stamp, and is looked at when it asks.
    fn signs_told(arrivals: &[(i64, u64)], hold_us: u64) -> Vec<SilenceSign> {
        let (mut silences, mut signs) = (watching(hold_us), Vec::new());
        let mut told_us = 0;
        for (stamp, late_us) in arrivals {
            told_us = told_us.max(stamp.cast_unsigned() + late_us);
            while let Some(due) = silences.deadline().filter(|due| due.0 <= told_us) {
                signs.extend(silences.passed(due));
            }
            signs.extend(silences.arrived(&feed("A"), WallMicros(*stamp), now(told_us, 0)));
        }
        while let Some(due) = silences.deadline() {
            signs.extend(silences.passed(due));
        }
        signs
    }

    proptest! {
        #[test]
        fn signs_are_those_that_the_stamps_show(
            hold_us in HOLD_MIN_US..100_000,
            gaps in prop::collection::vec((prop_oneof![0..300_000_i64, 0..2_000_i64], 0..=UNDER_WAY.0), 0..200),
        ) {
            let mut stamp = 5_000_000;
            let arrivals: Vec<(i64, u64)> = gaps.into_iter().map(|(gap, late_us)| {
                stamp += gap;
                (stamp, late_us)
            }).collect();
            let stamps: Vec<i64> = arrivals.iter().map(|(stamp, _)| *stamp).collect();
            prop_assert_eq!(signs_told(&arrivals, hold_us), signs_of(&stamps, hold_us));
        }

        #[test]
        fn steps_of_the_wall_clock_make_no_silence_and_hide_none(
            gaps in prop::collection::vec((0..3_000_000_u64, -9_000_000_000..9_000_000_000_i64), 1..100),
        ) {
            let (mut silences, mut at_us, mut found, mut expected) = (watching(HOLD_US), 0, Vec::new(), Vec::new());
            for (place, (gap, step_us)) in gaps.into_iter().enumerate() {
                at_us += gap;
                found.extend(silences.passed(Micros(at_us)).iter().map(|_| "silent"));
                let now = now(at_us, step_us);
                let signs = silences.arrived(&feed("A"), now.wall, now);
                found.extend(signs.iter().map(|sign| match sign {
                    SilenceSign::Stirred { arrived, .. } if *arrived == now.wall => "stirred",
                    SilenceSign::Stirred { .. } => "another stamp",
                    SilenceSign::Silent { .. } => "silent",
                }));
                match (place, gap >= HOLD_US) {
                    (0, _) => expected.push("stirred"),
                    (_, true) => expected.extend(["silent", "stirred"]),
                    _ => {}
                }
            }
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn no_stamps_make_it_panic(
            arrivals in prop::collection::vec((any::<i64>(), any::<u64>(), any::<i64>()), 0..50),
        ) {
            let mut silences = watching(HOLD_MAX_US);
            for (stamp, monotonic, wall) in arrivals {
                let now = Now { monotonic: Micros(monotonic), wall: WallMicros(wall) };
                silences.arrived(&feed("A"), WallMicros(stamp), now);
                silences.passed(now.monotonic);
                prop_assert!(silences.due.len() <= 1);
            }
        }
    }

    #[test]
    fn the_first_product_stirs_and_no_silence_comes_before_one() {
        let mut silences = watching(HOLD_US);
        assert_eq!((silences.deadline(), silences.passed(Micros(u64::MAX))), (None, vec![]));
        assert_eq!(put(&mut silences, 5_000_000), [stirred(5_000_000)]);
        assert_eq!(put(&mut silences, 5_999_999), []);
        assert_eq!(silences.passed(Micros(6_999_999)), []);
        assert_eq!(silences.deadline(), Some(Micros(7_019_999)));
        assert_eq!(silences.passed(Micros(7_019_999)), [silent(5_999_999, HOLD_US)]);
        assert_eq!((silences.deadline(), put(&mut silences, 9_000_000)), (None, vec![stirred(9_000_000)]));
    }

    #[test]
    fn a_product_after_the_sign_stirs_though_its_stamp_is_earlier() {
        let mut silences = watching(HOLD_US);
        put(&mut silences, 1_000_000);
        silences.passed(Micros(2_020_000));
        let late = silences.arrived(&feed("A"), WallMicros(1_900_000), now(4_000_000, 0));
        assert_eq!(late, [stirred(1_900_000)]);
    }

    #[test]
    fn a_product_just_after_the_wall_clock_was_set_back_begins_the_silence() {
        let mut silences = watching(HOLD_US);
        put(&mut silences, 5_000_000);
        let set_back = now(5_006_000, -6_001);
        assert_eq!(silences.arrived(&feed("A"), set_back.wall, set_back), []);
        let next = now(6_000_000, -20_001);
        assert_eq!(silences.arrived(&feed("A"), next.wall, next), [], "994 ms after the last product");
    }

    #[test]
    fn a_new_set_keeps_the_last_products_and_forgets_feeds_that_are_left_out() {
        let mut silences = watching(HOLD_US);
        put(&mut silences, 1_000_000);
        silences.watch(vec![line("A", 3 * HOLD_US), line("B", HOLD_US)]);
        assert_eq!(silences.deadline(), Some(Micros(4_020_000)));
        assert_eq!(put(&mut silences, 2_500_000), []);
        silences.watch(vec![line("B", HOLD_US)]);
        assert_eq!((silences.deadline(), put(&mut silences, 2_600_000)), (None, vec![]));
        silences.watch(vec![line("A", HOLD_US)]);
        assert_eq!(put(&mut silences, 2_700_000), [stirred(2_700_000)], "newly watched");
    }

    #[test]
    fn impossible_sets_are_refused_with_one_sentence() {
        let refused = |lines: &[SilenceLine]| check_silences(lines).unwrap_err();
        assert_eq!(check_silences(&[line("A", HOLD_MIN_US), line("B", HOLD_MAX_US)]), Ok(()));
        let outside = "`hold_us` of A is 9999; it is a number from 10000 to 86400000000";
        assert_eq!(refused(&[line("A", HOLD_MIN_US - 1)]), outside);
        assert!(refused(&[line("A", HOLD_MAX_US + 1)]).starts_with("`hold_us` of A is 86400000001;"));
        assert_eq!(
            refused(&[line("A", HOLD_US), line("A", HOLD_US)]),
            "A is named twice; name each feed once"
        );
        let many: Vec<_> = (0..=WATCHED_MAX).map(|number| line(&format!("F{number}"), HOLD_US)).collect();
        assert_eq!(refused(&many), "`feeds` has 1001 entries; silences of at most 1000 feeds count");
        assert_eq!(check_silences(&many[1..]), Ok(()));
    }
}
