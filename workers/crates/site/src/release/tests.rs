//! The machine of a feed's files with storage that may end at any step.
use std::collections::{BTreeMap, BTreeSet};

use downburst_model::{Class, Epoch, RangeSet};
use downburst_session::Missing;
use proptest::prelude::*;

use super::order::Arrival;
use super::*;

/// A site's log, its files and the stored cursor.
#[derive(Clone)]
struct Disk {
    /// The products of the log, the first at place 1: the hub's number, or `None` for one without an order.
    log: Vec<Option<u64>>,
    /// Places whose bytes left the log.
    gone: BTreeSet<u64>,
    heartbeats: BTreeSet<u64>,
    aside: BTreeSet<u64>,
    /// The number of times that each product was moved to its name.
    placed: BTreeMap<u64, u32>,
    /// Products whose files are in place and whole.
    standing: BTreeSet<u64>,
    numbers: Kept<CursorNumbers>,
    ahead: Kept<ShownAhead>,
    boot: u64,
    reports: Vec<(u64, bool)>,
    damages: Vec<String>,
    outputs: Vec<&'static str>,
}

impl Disk {
    fn new(log: impl IntoIterator<Item = Option<u64>>) -> Self {
        Self {
            log: log.into_iter().collect(),
            gone: BTreeSet::new(),
            heartbeats: BTreeSet::new(),
            aside: BTreeSet::new(),
            placed: BTreeMap::new(),
            standing: BTreeSet::new(),
            numbers: Kept::Nothing,
            ahead: Kept::Nothing,
            boot: 1,
            reports: Vec::new(),
            damages: Vec::new(),
            outputs: Vec::new(),
        }
    }

    fn head(&self) -> Sequence {
        Sequence(self.log.len() as u64)
    }

    fn open(&self) -> FeedRelease {
        let path = |name: &str| name.to_owned();
        let kept = KeptCursor {
            numbers: self.numbers.clone(),
            numbers_path: path("files/F"),
            ahead: self.ahead.clone(),
            ahead_path: path("order/F"),
        };
        let (head, now) = (self.head(), WallMicros(5));
        FeedRelease::open(kept, Life { epoch: Epoch(3), given_to: head, head, boot: self.boot, now })
    }

    /// Carries out at most `most` outputs; returns the remaining number.
    fn carry_out(&mut self, release: &mut FeedRelease, at: Micros, mut most: usize) -> usize {
        let now = Now { monotonic: at, wall: WallMicros(9) };
        while most > 0
            && let Some(output) = release.poll(now)
        {
            assert_eq!(release.poll(now), None, "one at a time");
            let answer = self.answer(release, output);
            release.handle(now, answer);
            most -= 1;
        }
        most
    }

    fn answer(&mut self, release: &FeedRelease, output: ReleaseOutput) -> ReleaseInput {
        match output {
            ReleaseOutput::Damaged(sentence) => self.damages.push(sentence),
            ReleaseOutput::SetUnprovenAside { .. } => self.outputs.push("set aside"),
            ReleaseOutput::KeepNumbers(numbers) => self.numbers = Kept::Whole(numbers),
            ReleaseOutput::KeepAhead => {
                self.ahead = release.cursor().ahead().cloned().map_or(Kept::Nothing, Kept::Whole);
            }
            ReleaseOutput::SyncNumbers => self.outputs.push("sync"),
            ReleaseOutput::Report { at, late } => self.reports.push((at.0, late)),
            ReleaseOutput::Finish(at) => {
                self.place(at.0);
                return ReleaseInput::Finished(true);
            }
            ReleaseOutput::Read { after, to } => return self.read(after.0, to.0),
            ReleaseOutput::Look(at) | ReleaseOutput::Write(at) if self.gone.contains(&at.0) => {
                return ReleaseInput::Gone;
            }
            ReleaseOutput::Look(at) => return ReleaseInput::Stands(self.standing.contains(&at.0)),
            ReleaseOutput::Write(at) => {
                self.aside.insert(at.0);
                return ReleaseInput::Written;
            }
            ReleaseOutput::Place(at) => {
                self.place(at.0);
                return ReleaseInput::Placed;
            }
            ReleaseOutput::Discard(at) => {
                self.aside.remove(&at.0);
                return ReleaseInput::Placed;
            }
        }
        ReleaseInput::Done
    }

    fn place(&mut self, at: u64) {
        if self.aside.remove(&at) {
            *self.placed.entry(at).or_default() += 1;
            self.standing.insert(at);
        }
    }

    /// Reads a few products at a time, as a log does.
    fn read(&self, after: u64, to: u64) -> ReleaseInput {
        let read_to = to.min(after + 3);
        let product = |at: u64| {
            let number = self.log[at as usize - 1];
            let arrival = number.map(|number| Arrival {
                at: Sequence(at),
                class: Class::Grid,
                epoch: Epoch(1),
                sequence: Sequence(number),
            });
            Candidate { at: Sequence(at), arrival, heartbeat: self.heartbeats.contains(&at) }
        };
        let products = (after + 1..=read_to).map(product).collect();
        ReleaseInput::Read { products, read_to: Sequence(read_to), head: self.head() }
    }

    /// Wakes the machine and lets it come to rest.
    fn wake(&mut self, release: &mut FeedRelease, at: Micros, hold: Option<Micros>, missing: Missing) {
        self.carry_out(release, at, usize::MAX);
        let now = Now { monotonic: at, wall: WallMicros(9) };
        release.handle(now, ReleaseInput::Woken { head: self.head(), hold, missing });
        self.carry_out(release, at, usize::MAX);
    }

    fn reported(&self) -> Vec<u64> {
        self.reports.iter().map(|(at, _)| *at).collect()
    }
}

/// All of the hub's numbers up to 999 have ended except these.
fn lacking(numbers: impl IntoIterator<Item = u64>) -> Missing {
    let holes: RangeSet = numbers.into_iter().map(|number| (number, number)).collect();
    Missing { epoch: Some(Epoch(1)), by_class: [(Class::Grid, holes)].into(), to: Sequence(999) }
}

const HOLD: Micros = Micros::from_secs(2);

#[test]
fn products_become_files_once_in_the_logs_order() {
    let mut disk = Disk::new((1..=7).map(Some));
    let mut release = disk.open();
    disk.wake(&mut release, Micros(0), None, Missing::default());
    disk.log.push(Some(8));
    disk.wake(&mut release, Micros(0), None, Missing::default());
    disk.wake(&mut release, Micros(0), None, Missing::default());
    assert_eq!(disk.reported(), (1..=8).collect::<Vec<_>>());
    assert!(disk.placed.values().all(|times| *times == 1) && disk.aside.is_empty());
    assert_eq!((release.cursor().done(), disk.outputs), (Sequence(8), vec!["sync"]));
}

#[test]
fn a_product_that_is_gone_is_passed_over_and_a_heartbeat_leaves_nothing() {
    let mut disk = Disk::new((1..=4).map(Some));
    (disk.gone, disk.heartbeats) = ([2, 4].into(), [3].into());
    let mut release = disk.open();
    disk.wake(&mut release, Micros(0), None, Missing::default());
    assert_eq!(disk.reported(), [1, 3]);
    assert_eq!((disk.standing, disk.aside.len()), ([1].into(), 0));
    assert_eq!(release.cursor().done(), Sequence(4), "what is gone is not looked for again");
}

#[test]
fn a_product_waits_for_those_before_it_and_what_was_shown_last_survives_a_restart() {
    let mut disk = Disk::new([Some(12), None, Some(14)]);
    let mut release = disk.open();
    disk.wake(&mut release, Micros(0), Some(HOLD), lacking([11, 13]));
    assert_eq!(disk.reported(), [2], "without a place in the order there is nothing to wait for");
    assert_eq!((release.cursor().done(), release.deadline()), (Sequence(0), Some(HOLD)));
    disk.wake(&mut release, HOLD, Some(HOLD), lacking([11, 13]));
    assert_eq!(disk.reported(), [2, 1, 3]);
    disk.log.push(Some(11));
    let mut release = disk.open();
    disk.wake(&mut release, HOLD, Some(HOLD), lacking([13]));
    assert_eq!(disk.reports.last(), Some(&(4, true)), "late");
    assert_eq!(release.deadline(), None);
}

#[test]
fn where_no_order_is_asked_for_any_more_what_waited_goes_at_once() {
    let mut disk = Disk::new([Some(3), Some(2), Some(5)]);
    let mut release = disk.open();
    disk.wake(&mut release, Micros(0), Some(HOLD), lacking([1, 4]));
    assert_eq!(disk.reported(), []);
    disk.wake(&mut release, Micros(0), None, lacking([1, 4]));
    assert_eq!(disk.reported(), [1, 2, 3]);
    disk.wake(&mut release, Micros(0), None, lacking([1, 4]));
    assert_eq!(disk.ahead, Kept::Nothing, "the log's order is kept by the numbers alone");
}

#[test]
fn a_change_of_the_order_waits_for_what_is_on_its_way() {
    for most in 1..40 {
        let mut disk = Disk::new([Some(3), Some(2), Some(5), Some(6)]);
        let mut release = disk.open();
        disk.wake(&mut release, Micros(0), Some(HOLD), lacking([1, 4]));
        let now = Now { monotonic: Micros(1), wall: WallMicros(9) };
        let woken =
            |disk: &Disk, hold| ReleaseInput::Woken { head: disk.head(), hold, missing: lacking([4]) };
        release.handle(now, woken(&disk, Some(HOLD)));
        for _ in 1..most {
            let Some(output) = release.poll(now) else { break };
            let answer = disk.answer(&release, output);
            release.handle(now, answer);
        }
        let asked = release.poll(now);
        release.handle(now, woken(&disk, None));
        if let Some(asked) = asked {
            let answer = disk.answer(&release, asked);
            release.handle(now, answer);
        }
        disk.carry_out(&mut release, now.monotonic, usize::MAX);
        assert!(disk.placed.values().eq([&1; 4]), "{most} steps: {:?}", disk.placed);
    }
}

#[test]
fn damage_is_said_and_files_that_stand_are_not_written_again() {
    let mut disk = Disk::new((1..=5).map(Some));
    disk.wake(&mut disk.open(), Micros(0), None, Missing::default());
    disk.numbers = Kept::Damaged;
    disk.standing.remove(&4);
    disk.wake(&mut disk.open(), Micros(0), None, Missing::default());
    assert_eq!(disk.damages.len(), 1);
    assert_eq!(disk.placed[&4], 2);
    assert!((1..=5).all(|at| disk.standing.contains(&at) && (at == 4 || disk.placed[&at] == 1)));
}

#[test]
fn the_disk_is_asked_to_keep_what_was_shown_once_at_a_time() {
    let feed = FeedName::parse("F").unwrap();
    let now = |seconds| Now { monotonic: Micros::from_secs(seconds), wall: WallMicros(seconds as i64) };
    let mut release = Release::new(Micros(0));
    assert!(!release.prove(now(60)), "nothing was shown");
    let mut disk = Disk::new((1..=5).map(Some));
    release.open(&feed, disk.open());
    disk.wake(release.feed(&feed).unwrap(), Micros(0), None, Missing::default());
    assert!(!release.prove(now(29)) && release.prove(now(30)) && !release.prove(now(90)));
    disk.log.push(Some(6));
    disk.wake(release.feed(&feed).unwrap(), Micros(0), None, Missing::default());
    let kept = release.proven(true);
    assert_eq!(kept[0].1[1..5], [6, 6, 5, 30], "up to 5, as of the moment of the question");
    assert!(release.prove(now(91)));
    assert_eq!(release.proven(false), [], "the disk did not confirm");
    release.failed(&feed);
    assert!(!release.prove(now(200)) && release.close(WallMicros(7)).is_empty());
}

#[test]
fn the_next_look_is_due_with_the_first_hold_and_soon_in_any_case() {
    let feed = FeedName::parse("F").unwrap();
    let mut release = Release::new(Micros(0));
    assert_eq!(release.patience(Micros(0)), RETRY_INTERVAL);
    let mut disk = Disk::new([Some(2)]);
    release.open(&feed, disk.open());
    disk.wake(release.feed(&feed).unwrap(), Micros(0), Some(Micros::from_secs(1)), lacking([1]));
    assert_eq!(release.patience(Micros::from_millis(900)), Micros::from_millis(100));
    assert_eq!(release.patience(Micros::from_secs(5)), Micros(0));
}

#[test]
fn closing_in_order_proves_all() {
    let feed = FeedName::parse("F").unwrap();
    let mut release = Release::new(Micros(0));
    let mut disk = Disk::new((1..=3).map(Some));
    release.open(&feed, disk.open());
    disk.wake(release.feed(&feed).unwrap(), Micros(0), None, Missing::default());
    assert_eq!(release.close(WallMicros(7)), [(feed, [3, 3, 3, 3, 7, 1])]);
}

#[test]
fn an_end_between_the_numbers_and_what_was_shown_ahead_shows_nothing_twice() {
    for most in 1..60 {
        let mut disk = Disk::new([Some(2), Some(1), Some(4), Some(3), Some(5)]);
        let mut release = disk.open();
        let left = disk.carry_out(&mut release, Micros(0), most);
        let woken = ReleaseInput::Woken { head: disk.head(), hold: Some(HOLD), missing: lacking([]) };
        if left > 0 {
            release.handle(Now::default(), woken);
            disk.carry_out(&mut release, Micros(0), left);
        }
        let mut release = disk.open();
        disk.wake(&mut release, Micros(0), Some(HOLD), lacking([]));
        assert!(disk.placed.values().eq([&1; 5]), "{most} steps: {:?}", disk.placed);
    }
}

proptest! {
    /// A process that ends at any step and starts again shows each product once, with and without an order.
    #[test]
    fn whatever_step_is_the_last_each_product_is_put_in_its_place_once(
        numbers in proptest::sample::subsequence((1u64..60).collect::<Vec<_>>(), 1..25).prop_shuffle(),
        steps in proptest::collection::vec((1usize..30, proptest::bool::ANY), 0..12),
    ) {
        let mut disk = Disk::new(numbers.iter().copied().map(Some));
        for (at, (most, is_ordered)) in steps.into_iter().enumerate() {
            let mut release = disk.open();
            let now = Micros::from_secs(at as u64 * 3);
            let hold = is_ordered.then_some(HOLD);
            let left = disk.carry_out(&mut release, now, most);
            let woken = ReleaseInput::Woken { head: disk.head(), hold, missing: lacking([]) };
            if left > 0 {
                release.handle(Now { monotonic: now, wall: WallMicros(9) }, woken);
                disk.carry_out(&mut release, now, left);
            }
        }
        let mut release = disk.open();
        disk.wake(&mut release, Micros::from_secs(100), None, Missing::default());
        prop_assert!(disk.aside.is_empty(), "{:?}", disk.aside);
        for at in 1..=numbers.len() as u64 {
            prop_assert_eq!(disk.placed.get(&at), Some(&1), "place {}", at);
        }
    }

    /// After a power cut all products of the log have whole files, whatever the disk lost since the last proof.
    #[test]
    fn after_a_power_cut_everything_stands_and_what_is_proven_is_not_written_again(
        count in 1u64..20,
        proven in 0u64..20,
        lost in proptest::collection::btree_set(1u64..20, 0..20),
        numbers_are_lost in proptest::bool::ANY,
    ) {
        let mut disk = Disk::new((1..=count).map(Some));
        let mut release = disk.open();
        disk.wake(&mut release, Micros(0), None, Missing::default());
        let proven = proven.min(count);
        let kept = release.prove(Sequence(proven), WallMicros(7));
        let before = [3, proven, 0, proven, 7, 1];
        disk.numbers = Kept::Whole(if numbers_are_lost { before } else { kept });
        disk.standing.retain(|at| *at <= proven || !lost.contains(at));
        disk.boot = 2;
        disk.wake(&mut disk.open(), Micros(0), None, Missing::default());
        prop_assert_eq!(disk.standing.len() as u64, count);
        for at in 1..=count {
            let times = 1 + u32::from(at > proven && lost.contains(&at));
            prop_assert_eq!(disk.placed[&at], times, "place {}", at);
        }
        prop_assert!(disk.outputs.contains(&"set aside") && disk.damages.is_empty());
    }
}
