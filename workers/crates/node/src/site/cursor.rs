//! How far a feed's files are written, kept on disk so that each file is written once.
//!
//! `state/files/FEED` holds places in the site's log, in two copies with checksums: files up to the first are
//! complete; the second was about to be shown; files up to the third are on the disk for good. Where files
//! are shown in another order than that of the log, `state/order/FEED` holds the places beyond the first that
//! were shown, and the last one shown of each class.
//!
//! A place that is damaged, of another life of the log or beyond the log's highest number is not used: the
//! log is gone through again, and files that are whole under their names are not written a second time. After
//! a power cut the same holds for all beyond the third place.
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use downburst_log::disk::{self, Checked, Found, Slots};
use downburst_log::{FeedLog, ProductLog as _};
use downburst_model::{Class, Epoch, FeedName, RangeSet, Sequence, WallMicros};
use minicbor::{Decode, Encode};

use crate::file_names;

/// The place of a feed's files in the site's log.
pub(super) struct Cursor {
    slots: Slots<6>,
    life: Life,
    /// Files up to here stand.
    done: Sequence,
    begun: Sequence,
    /// Files up to here are on the disk for good, since that moment.
    proven: Sequence,
    proven_at: WallMicros,
    ahead_path: PathBuf,
    ahead: Option<Ahead>,
    /// Files up to here may stand, though the cursor does not say so.
    doubtful_to: Sequence,
}

/// What a cursor is about: a log in one of its lives, on a machine that runs since its last start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    epoch: Epoch,
    /// No place beyond was ever given.
    given_to: Sequence,
    head: Sequence,
    boot: u64,
    now: WallMicros,
}

/// What opening a cursor found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Opened {
    /// The place that was about to be shown when the site stopped.
    pub(super) begun: Option<Sequence>,
    /// Why not all of it is believed: a sentence.
    pub(super) damage: Option<String>,
    /// Files that were shown since this moment may not be whole: the power was cut.
    pub(super) unproven_since: Option<WallMicros>,
}

impl Life {
    /// That of a log, on this machine.
    pub(super) fn of(log: &FeedLog, now: WallMicros) -> Self {
        Self { epoch: log.epoch(), given_to: log.given_to(), head: log.head(), boot: boot(), now }
    }
}

/// What was shown out of the log's order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
struct Ahead {
    #[n(0)]
    shown: RangeSet,
    #[n(1)]
    last: Vec<Last>,
}

/// What was shown last of a class.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(super) struct Last {
    #[n(0)]
    pub(super) class: Class,
    #[n(1)]
    pub(super) epoch: Epoch,
    #[n(2)]
    pub(super) sequence: Sequence,
}

impl Cursor {
    /// Opens the cursor of a feed.
    pub(super) fn open(directory: &Path, feed: &FeedName, life: Life) -> io::Result<(Self, Opened)> {
        let name = file_names::encode(feed.as_str());
        let [path, ahead_path] =
            ["files", "order"].map(|kind| directory.join("state").join(kind).join(&name));
        for path in [&path, &ahead_path] {
            disk::make_directory(path.parent().unwrap_or(directory))?;
        }
        let (slots, found) = Slots::open(&path, MAGIC)?;
        let (ahead, ahead_is_damaged) = match disk::read_checked(&ahead_path, ORDER_MAGIC)? {
            Checked::Missing => (None, false),
            Checked::Whole(ahead) => (Some(ahead), false),
            Checked::Damaged | Checked::Newer(_) => (Some(Ahead::default()), true),
        };
        let (done, begun, proven) = (Sequence(0), Sequence(0), Sequence(0));
        let (proven_at, doubtful_to) = (life.now, Sequence(0));
        let mut cursor = Self { slots, life, done, begun, proven, proven_at, ahead_path, ahead, doubtful_to };
        let mut opened = cursor.believe(found, &path);
        // What a power cut did to it is made good by looking at the files.
        if ahead_is_damaged && opened.unproven_since.is_none() {
            cursor.doubtful_to = life.head;
            let sentence = format!("{} is damaged; {AGAIN}", cursor.ahead_path.display());
            opened.damage = opened.damage.or(Some(sentence));
        }
        if cursor.begun > cursor.done && !cursor.is_shown(cursor.begun) {
            opened.begun = Some(cursor.begun);
        }
        Ok((cursor, opened))
    }

    /// Takes up what was kept, as far as it can be true.
    fn believe(&mut self, found: Found<6>, path: &Path) -> Opened {
        let (life, path) = (self.life, path.display());
        let mut opened = Opened::default();
        let (Found::Whole(numbers) | Found::Older(numbers)) = found else {
            self.doubtful_to = life.head;
            opened.damage = (found == Found::Damaged).then(|| format!("{path} is damaged; {AGAIN}"));
            return opened;
        };
        let [epoch, done, begun, proven, proven_at, boot] = numbers;
        let reason = if epoch != life.epoch.0 {
            Some("is of a log that is not there any more")
        } else if done.max(begun).max(proven) > life.given_to.0 {
            Some("names a place that the site's log never gave")
        } else {
            None
        };
        if let Some(reason) = reason {
            self.doubtful_to = life.head;
            opened.damage = Some(format!("{path} {reason}; {AGAIN}"));
            return opened;
        }
        (self.done, self.begun, self.proven) = (Sequence(done), Sequence(begun), Sequence(proven));
        self.proven_at = WallMicros(proven_at.cast_signed());
        if matches!(found, Found::Older(_)) {
            self.doubtful_to = life.head;
            opened.damage = Some(format!("one of two copies in {path} is damaged; the other one counts"));
        }
        if boot != life.boot {
            // Of the files shown since, the disk may have the name and not the bytes, or neither; and the
            // note made here may be gone.
            (self.done, self.begun, self.ahead) = (self.proven.min(self.done), Sequence(0), None);
            self.doubtful_to = life.head;
            opened.unproven_since = Some(self.proven_at);
        }
        opened
    }

    /// From here on it is believed: what was wrong is made good.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        self.put()?;
        // After a power cut there is a place to go by, however early the cut came.
        self.slots.sync()
    }

    /// True if the file of this place may stand, though the cursor does not say so: look before it is written.
    pub(super) fn is_doubtful(&self, at: Sequence) -> bool {
        at <= self.doubtful_to
    }

    /// Files up to here, as they were at that moment, are on the disk for good.
    pub(super) fn prove(&mut self, proven: Sequence, at: WallMicros) -> io::Result<()> {
        (self.proven, self.proven_at) = (proven, at);
        self.put()
    }

    /// How far files are on the disk for good.
    pub(super) fn proven(&self) -> Sequence {
        self.proven
    }

    /// Files up to here stand.
    pub(super) fn done(&self) -> Sequence {
        self.done
    }

    /// True if the file of this place stands already.
    pub(super) fn is_shown(&self, at: Sequence) -> bool {
        at <= self.done || self.ahead.as_ref().is_some_and(|ahead| ahead.shown.contains(at.0))
    }

    /// True while files may be shown in another order than that of the log.
    pub(super) fn is_ordering(&self) -> bool {
        self.ahead.is_some()
    }

    /// What was shown last of each class, as far as that was kept.
    pub(super) fn last(&self) -> &[Last] {
        self.ahead.as_ref().map_or(&[], |ahead| &ahead.last)
    }

    /// Allows another order than that of the log.
    pub(super) fn begin_ordering(&mut self) -> io::Result<()> {
        if self.ahead.is_none() {
            self.ahead = Some(Ahead::default());
            self.save()?;
        }
        Ok(())
    }

    /// Goes back to the order of the log, once nothing beyond `done` was shown.
    pub(super) fn end_ordering(&mut self) -> io::Result<()> {
        if self.ahead.as_ref().is_some_and(|ahead| ahead.shown.last().is_none_or(|last| last <= self.done.0))
        {
            self.ahead = None;
            disk::remove_file(&self.ahead_path)?;
        }
        Ok(())
    }

    /// Notes that the file of this place is about to be shown.
    pub(super) fn note(&mut self, begun: Sequence) -> io::Result<()> {
        self.begun = begun;
        self.put()
    }

    /// Notes that files up to here stand.
    pub(super) fn move_to(&mut self, done: Sequence) -> io::Result<()> {
        if done != self.done {
            self.done = done;
            self.put()?;
        }
        Ok(())
    }

    /// Notes that the file of this place stands, and all files up to `done`.
    pub(super) fn shown(&mut self, at: Sequence, done: Sequence) -> io::Result<()> {
        let Some(ahead) = &mut self.ahead else { return self.move_to(done) };
        let was_whole = ahead.shown.is_empty();
        ahead.shown.insert(at.0, at.0);
        ahead.shown.remove(0, done.0);
        // In the log's own order, the place alone says it all.
        if !was_whole || !ahead.shown.is_empty() {
            self.save()?;
        }
        self.move_to(done)
    }

    /// Keeps what was shown last of each class.
    pub(super) fn keep_last(&mut self, last: Vec<Last>) -> io::Result<()> {
        match &mut self.ahead {
            Some(ahead) if ahead.last != last => {
                ahead.last = last;
                self.save()
            }
            _ => Ok(()),
        }
    }

    fn save(&self) -> io::Result<()> {
        let Some(ahead) = &self.ahead else { return Ok(()) };
        // No feed is named like this: encoded names hold no blank.
        let aside = self.ahead_path.with_file_name(" aside");
        disk::replace_unsynced(&self.ahead_path, &aside, &disk::checked(ORDER_MAGIC, ahead)?)
    }

    fn put(&mut self) -> io::Result<()> {
        let (done, begun, proven) = (self.done.0, self.begun.0, self.proven.0);
        let proven_at = self.proven_at.0.cast_unsigned();
        self.slots.put([self.life.epoch.0, done, begun, proven, proven_at, self.life.boot])
    }
}

/// Tells one start of the machine from another; 0 where the kernel does not say.
fn boot() -> u64 {
    #[cfg(test)]
    if let Some(boot) = tests::BOOT.get() {
        return boot;
    }
    let text = fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    blake3::hash(&text).as_bytes().first_chunk().copied().map_or(0, u64::from_le_bytes)
}

/// Whether the file of a cursor is as it was written.
pub(super) fn is_whole(path: &Path) -> io::Result<bool> {
    Ok(matches!(Slots::<6>::look(path, MAGIC)?, Found::Whole(_) | Found::Nothing))
}

/// Whether the file about what was shown out of order is as it was written.
pub(super) fn order_is_whole(path: &Path) -> io::Result<bool> {
    Ok(disk::look_at_checked(path, ORDER_MAGIC)? != Checked::Damaged)
}

const MAGIC: &[u8; 8] = b"DBFILES\n";
const ORDER_MAGIC: &[u8; 8] = b"DBORDER\n";
const AGAIN: &str = "the site's log is read again, and files that are whole below received/ are not written a \
    second time";

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    thread_local! {
        /// Stands for a start of the machine, in tests of power cuts.
        pub(in super::super) static BOOT: std::cell::Cell<Option<u64>> = const { std::cell::Cell::new(None) };
    }

    fn life(epoch: u64, boot: u64) -> Life {
        Life { epoch: Epoch(epoch), given_to: Sequence(1_000), head: Sequence(90), boot, now: WallMicros(5) }
    }

    fn open_in(directory: &Path, life: Life) -> (Cursor, Opened) {
        Cursor::open(directory, &FeedName::parse("IDS|DDPLUS").unwrap(), life).unwrap()
    }

    fn open(directory: &Path) -> (Cursor, Option<Sequence>) {
        let (mut cursor, opened) = open_in(directory, life(3, 1));
        cursor.begin().unwrap();
        assert_eq!((opened.damage, opened.unproven_since), (None, None));
        (cursor, opened.begun)
    }

    #[test]
    fn finding_10_a_flipped_bit_anywhere_in_the_cursor_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state/files/IDS%7CDDPLUS");
        open(directory.path()).0.move_to(Sequence(40)).unwrap();
        let good = fs::read(&path).unwrap();
        for at in (0..good.len()).filter(|at| at % 512 < 68) {
            let mut bad = good.clone();
            bad[at] ^= 1;
            fs::write(&path, &bad).unwrap();
            let (cursor, opened) = open_in(directory.path(), life(3, 1));
            assert!(opened.damage.unwrap().contains("state/files/IDS%7CDDPLUS"), "byte {at}");
            assert!(cursor.done() <= Sequence(40) && cursor.is_doubtful(Sequence(90)), "byte {at}");
        }
        let mut bad = good.clone();
        (bad[20], bad[532]) = (bad[20] ^ 1, bad[532] ^ 1);
        fs::write(&path, &bad).unwrap();
        let (cursor, opened) = open_in(directory.path(), life(3, 1));
        assert!(opened.damage.is_some() && cursor.done() == Sequence(0));
    }

    #[test]
    fn finding_10_a_cursor_of_another_log_or_beyond_it_is_not_believed() {
        let directory = tempfile::tempdir().unwrap();
        open(directory.path()).0.move_to(Sequence(400)).unwrap();
        for (life, says) in [
            (life(4, 1), "not there any more"),
            (Life { given_to: Sequence(399), ..life(3, 1) }, "never gave"),
        ] {
            let kept = fs::read(directory.path().join("state/files/IDS%7CDDPLUS")).unwrap();
            let (cursor, opened) = open_in(directory.path(), life);
            assert!(opened.damage.unwrap().contains(says));
            assert_eq!((cursor.done(), cursor.is_doubtful(Sequence(90))), (Sequence(0), true));
            fs::write(directory.path().join("state/files/IDS%7CDDPLUS"), kept).unwrap();
        }
    }

    #[test]
    fn a_file_of_an_earlier_format_counts_as_damaged() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("state/files")).unwrap();
        fs::write(directory.path().join("state/files/IDS%7CDDPLUS"), [1; 16]).unwrap();
        assert!(open_in(directory.path(), life(3, 1)).1.damage.unwrap().contains("is damaged"));
    }

    #[test]
    fn after_a_power_cut_only_what_is_proven_counts() {
        let directory = tempfile::tempdir().unwrap();
        let mut cursor = open(directory.path()).0;
        cursor.move_to(Sequence(5)).unwrap();
        cursor.prove(Sequence(4), WallMicros(77)).unwrap();
        cursor.move_to(Sequence(9)).unwrap();
        let (cursor, opened) = open_in(directory.path(), life(3, 1));
        assert_eq!((cursor.done(), opened), (Sequence(9), Opened::default()), "the machine runs on");
        let (cursor, opened) = open_in(directory.path(), life(3, 2));
        assert_eq!((cursor.done(), opened.unproven_since), (Sequence(4), Some(WallMicros(77))));
        assert!(cursor.is_doubtful(Sequence(9)) && opened.damage.is_none());
    }

    #[test]
    fn a_place_is_remembered_with_what_was_begun() {
        let directory = tempfile::tempdir().unwrap();
        let (mut cursor, begun) = open(directory.path());
        assert_eq!((cursor.done(), begun), (Sequence(0), None));
        cursor.note(Sequence(4)).unwrap();
        assert_eq!(open(directory.path()).1, Some(Sequence(4)));
        cursor.shown(Sequence(4), Sequence(4)).unwrap();
        let (cursor, begun) = open(directory.path());
        assert_eq!((cursor.done(), begun, cursor.is_ordering()), (Sequence(4), None, false));
    }

    #[test]
    fn what_was_shown_ahead_is_remembered_until_the_place_passes_it() {
        let directory = tempfile::tempdir().unwrap();
        let (mut cursor, _) = open(directory.path());
        cursor.begin_ordering().unwrap();
        cursor.note(Sequence(7)).unwrap();
        cursor.shown(Sequence(7), Sequence(4)).unwrap();
        let last = vec![Last { class: Class::Grid, epoch: Epoch(3), sequence: Sequence(70) }];
        cursor.keep_last(last.clone()).unwrap();
        let (mut cursor, begun) = open(directory.path());
        assert_eq!((cursor.done(), begun, cursor.last()), (Sequence(4), None, last.as_slice()));
        assert!(
            cursor.is_shown(Sequence(7)) && !cursor.is_shown(Sequence(5)) && cursor.is_shown(Sequence(4))
        );
        cursor.end_ordering().unwrap();
        assert!(cursor.is_ordering(), "7 would be shown twice");
        cursor.shown(Sequence(5), Sequence(8)).unwrap();
        cursor.end_ordering().unwrap();
        assert!(!open(directory.path()).0.is_ordering());
    }

    #[test]
    fn a_note_of_something_shown_ahead_is_nothing_to_finish() {
        let directory = tempfile::tempdir().unwrap();
        let (mut cursor, _) = open(directory.path());
        cursor.begin_ordering().unwrap();
        cursor.note(Sequence(9)).unwrap();
        assert_eq!(open(directory.path()).1, Some(Sequence(9)));
        cursor.shown(Sequence(9), Sequence(2)).unwrap();
        assert_eq!(open(directory.path()).1, None);
    }
}
