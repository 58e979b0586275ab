//! The progress of each line of actions in each feed, on disk in `state/actions/LINE/FEED`: the epoch of the
//! site's log, and the sequence up to which everything is done, in two copies with checksums.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use downburst_log::disk::{self, Found, Slots};
use downburst_model::{Epoch, FeedName, Sequence, file_names};

/// The positions of all lines.
pub(super) struct Positions {
    directory: PathBuf,
    /// The furthest position of any line: a new line begins there.
    furthest: Mutex<BTreeMap<FeedName, (Epoch, Sequence)>>,
}

/// One line's position in one feed.
#[derive(Debug)]
pub(super) struct Position {
    slots: Slots<2>,
    epoch: Epoch,
    done: Sequence,
}

impl Positions {
    /// Opens the positions of a former run. On the first run, actions begin at the heads of the logs, `heads`.
    pub(super) fn open(
        site: &Path,
        heads: impl IntoIterator<Item = (FeedName, Epoch, Sequence)>,
    ) -> io::Result<Self> {
        let directory = site.join("state").join("actions");
        let is_first = !directory.exists();
        disk::make_directory(&directory)?;
        let mut furthest = BTreeMap::new();
        for (feed, epoch, head) in heads {
            let known = known(&directory, &feed, epoch)?;
            let begin = known.unwrap_or(if is_first { head } else { Sequence(0) });
            furthest.insert(feed, (epoch, begin));
        }
        Ok(Self { directory, furthest: Mutex::new(furthest) })
    }

    /// Gives a line the furthest position of any line, unless it has positions already. A feed without a position
    /// counts as a later addition from then on. Must be called before any line started together with it acts.
    pub(super) fn begin(&self, line: &str) -> io::Result<()> {
        let directory = self.directory.join(line_name(line));
        if directory.exists() {
            return Ok(());
        }
        // All or nothing: a crash in between leaves no directory that looks complete.
        let aside = directory.with_extension("new");
        let _ = disk::remove_directory(&aside);
        disk::make_directory(&aside)?;
        let furthest = self.furthest.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (feed, (epoch, done)) in furthest {
            place(&aside, &feed, epoch)?.move_to(done)?;
        }
        disk::rename(&aside, &directory)?;
        disk::sync_directory(&self.directory)
    }

    /// The position of a line in a feed.
    pub(super) fn of(&self, line: &str, feed: &FeedName, epoch: Epoch) -> io::Result<Position> {
        place(&self.directory.join(line_name(line)), feed, epoch)
    }

    /// Drops the positions of lines that are not in the rules: a line that returns begins at the furthest position.
    pub(super) fn forget_others<'a>(&self, lines: impl Iterator<Item = &'a String>) {
        let kept: BTreeSet<String> = lines.map(|line| line_name(line)).collect();
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            if !entry.file_name().to_str().is_some_and(|name| kept.contains(name)) {
                let _ = disk::remove_directory(&entry.path());
            }
        }
    }

    /// Drops the positions of a line.
    pub(super) fn forget(&self, line: &str) {
        let _ = disk::remove_directory(&self.directory.join(line_name(line)));
    }

    /// Records that a line has done everything up to `done`.
    pub(super) fn reached(&self, feed: &FeedName, epoch: Epoch, done: Sequence) {
        let mut furthest = self.furthest.lock().unwrap_or_else(PoisonError::into_inner);
        let place = furthest.entry(feed.clone()).or_insert((epoch, done));
        if place.0 != epoch || place.1 < done {
            *place = (epoch, done);
        }
    }
}

impl Position {
    pub(super) fn done(&self) -> Sequence {
        self.done
    }

    /// Stores that everything up to `done` is done.
    pub(super) fn move_to(&mut self, done: Sequence) -> io::Result<()> {
        self.done = done;
        self.slots.put([self.epoch.0, done.0])
    }
}

fn place(directory: &Path, feed: &FeedName, epoch: Epoch) -> io::Result<Position> {
    let path = directory.join(file_names::encode(feed.as_str()));
    let (slots, found) = Slots::open(&path, MAGIC)?;
    if matches!(found, Found::Damaged | Found::Older(_)) {
        tracing::error!(
            path = %path.display(),
            "the stored progress of a line of actions was damaged; some of its actions may run a second time"
        );
    }
    Ok(Position { slots, epoch, done: stored(found, epoch).unwrap_or_default() })
}

/// The furthest stored position of any line of a former run.
fn known(directory: &Path, feed: &FeedName, epoch: Epoch) -> io::Result<Option<Sequence>> {
    let mut furthest = None;
    for line in fs::read_dir(directory)? {
        let path = line?.path().join(file_names::encode(feed.as_str()));
        if path.is_file() {
            furthest = furthest.max(stored(Slots::open(&path, MAGIC)?.1, epoch));
        }
    }
    Ok(furthest)
}

/// The stored position; a position of another epoch of the log does not count.
fn stored(found: Found<2>, epoch: Epoch) -> Option<Sequence> {
    match found {
        Found::Whole([of, done]) | Found::Older([of, done]) if of == epoch.0 => Some(Sequence(done)),
        _ => None,
    }
}

/// The directory name of a line: a hash.
fn line_name(line: &str) -> String {
    let hash = blake3::hash(line.as_bytes()).to_hex();
    hash.get(..16).unwrap_or_default().to_owned()
}

/// True if the file of a position is undamaged or absent.
///
/// # Errors
/// Those of the system.
pub fn is_whole(path: &Path) -> io::Result<bool> {
    Ok(matches!(Slots::<2>::look(path, MAGIC)?, Found::Whole(_) | Found::Nothing))
}

const MAGIC: &[u8; 8] = b"DBACTED\n";

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Epoch = Epoch(7);

    fn feed() -> FeedName {
        FeedName::parse("IDS|DDPLUS").unwrap()
    }

    fn open(site: &Path, head: u64) -> Positions {
        Positions::open(site, [(feed(), LIFE, Sequence(head))]).unwrap()
    }

    fn at(positions: &Positions, line: &str) -> Position {
        positions.begin(line).unwrap();
        positions.of(line, &feed(), LIFE).unwrap()
    }

    #[test]
    fn the_first_actions_begin_behind_what_is_there() {
        let site = tempfile::tempdir().unwrap();
        let positions = open(site.path(), 40);
        assert_eq!(at(&positions, "file").done(), Sequence(40));
        let other = FeedName::parse("NGRID").unwrap();
        assert_eq!(positions.of("file", &other, LIFE).unwrap().done(), Sequence(0), "it began later");
    }

    #[test]
    fn a_line_goes_on_where_it_was_and_another_begins_where_the_furthest_is() {
        let site = tempfile::tempdir().unwrap();
        let positions = open(site.path(), 0);
        at(&positions, "file").move_to(Sequence(9)).unwrap();
        at(&positions, "pipe").move_to(Sequence(5)).unwrap();
        let positions = open(site.path(), 50);
        assert_eq!(at(&positions, "pipe").done(), Sequence(5));
        assert_eq!(at(&positions, "exec").done(), Sequence(9), "what came meanwhile is done");
        positions.reached(&feed(), LIFE, Sequence(30));
        assert_eq!(at(&positions, "another").done(), Sequence(30));
        positions.forget_others(["pipe".to_owned()].iter());
        assert_eq!(at(&positions, "file").done(), Sequence(30), "it came back");
    }

    #[test]
    fn lines_that_begin_together_leave_nothing_of_a_feed_that_comes_later_out() {
        let site = tempfile::tempdir().unwrap();
        let positions = Positions::open(site.path(), []).unwrap();
        positions.begin("file").unwrap();
        positions.begin("exec").unwrap();
        at(&positions, "file").move_to(Sequence(3)).unwrap();
        positions.reached(&feed(), LIFE, Sequence(3));
        assert_eq!(at(&positions, "exec").done(), Sequence(0));
        let positions = open(site.path(), 3);
        assert_eq!(at(&positions, "exec").done(), Sequence(0), "also after a crash before it had looked");
    }

    #[test]
    fn a_damaged_copy_of_a_place_costs_one_step_and_both_begin_again() {
        let site = tempfile::tempdir().unwrap();
        let mut place = at(&open(site.path(), 0), "file");
        place.move_to(Sequence(8)).unwrap();
        place.move_to(Sequence(9)).unwrap();
        let path = site.path().join("state/actions").join(line_name("file")).join("IDS%7CDDPLUS");
        let flip = |at: usize| {
            let mut contents = fs::read(&path).unwrap();
            contents[at] ^= 1;
            fs::write(&path, contents).unwrap();
        };
        flip(20);
        let left = at(&open(site.path(), 0), "file").done();
        assert!(left == Sequence(8) || left == Sequence(9), "{left:?}");
        flip(540);
        assert_eq!(at(&open(site.path(), 0), "file").done(), Sequence(0));
    }

    #[test]
    fn another_life_of_the_log_begins_at_its_start() {
        let site = tempfile::tempdir().unwrap();
        at(&open(site.path(), 0), "file").move_to(Sequence(9)).unwrap();
        let positions = Positions::open(site.path(), [(feed(), Epoch(8), Sequence(3))]).unwrap();
        positions.begin("file").unwrap();
        assert_eq!(positions.of("file", &feed(), Epoch(8)).unwrap().done(), Sequence(0));
    }
}
