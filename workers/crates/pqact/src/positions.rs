//! The progress of each line of actions in each feed, on disk in `state/actions/LINE/FEED`: the life of the
//! site's log, and the place in it up to which everything is done, in two copies with checksums.
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
    /// The furthest of any line: a line that begins begins there.
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
    /// Opens what a former run left. Where there is nothing, actions begin behind what the logs hold: `heads`.
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

    /// Has a line begin at the position of the others, unless it has places already. From then on a feed
    /// without a place counts as a later addition. To be called before any line that begins with it acts.
    pub(super) fn begin(&self, line: &str) -> io::Result<()> {
        let directory = self.directory.join(line_name(line));
        if directory.exists() {
            return Ok(());
        }
        // Whole or not at all: a crash in between leaves nothing that looks like places.
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

    /// Where a line is in a feed.
    pub(super) fn of(&self, line: &str, feed: &FeedName, epoch: Epoch) -> io::Result<Position> {
        place(&self.directory.join(line_name(line)), feed, epoch)
    }

    /// Drops the places of lines that the rules don't have: one that comes back begins where the others are.
    pub(super) fn forget_others<'a>(&self, lines: impl Iterator<Item = &'a String>) {
        let kept: BTreeSet<String> = lines.map(|line| line_name(line)).collect();
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            if !entry.file_name().to_str().is_some_and(|name| kept.contains(name)) {
                let _ = disk::remove_directory(&entry.path());
            }
        }
    }

    /// Drops the places of a line.
    pub(super) fn forget(&self, line: &str) {
        let _ = disk::remove_directory(&self.directory.join(line_name(line)));
    }

    /// Some line has done everything up to here.
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

    /// Notes that everything up to here is done.
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

/// The furthest position of any line that a former run left.
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

/// Of another life of the log nothing counts.
fn stored(found: Found<2>, epoch: Epoch) -> Option<Sequence> {
    match found {
        Found::Whole([of, done]) | Found::Older([of, done]) if of == epoch.0 => Some(Sequence(done)),
        _ => None,
    }
}

/// A name for a line's words.
fn line_name(line: &str) -> String {
    let hash = blake3::hash(line.as_bytes()).to_hex();
    hash.get(..16).unwrap_or_default().to_owned()
}

/// Whether the file of a place is as it was written.
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
