//! The files of a feed's cursor: `state/files/FEED` holds its numbers, in two copies with checksums, and
//! `state/order/FEED` the products shown out of the log's order.
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use downburst_log::disk::{self, Checked, Found, Slots};
use downburst_log::{FeedLog, ProductLog as _};
use downburst_model::{FeedName, WallMicros};
use downburst_site::{CursorNumbers, Kept, KeptCursor, Life, ShownAhead};

use crate::file_names;

/// The files of one feed's cursor.
pub(super) struct CursorFile {
    slots: Slots<6>,
    ahead_path: PathBuf,
}

impl CursorFile {
    /// Opens and reads the files.
    pub(super) fn open(directory: &Path, feed: &FeedName) -> io::Result<(Self, KeptCursor)> {
        let name = file_names::encode(feed.as_str());
        let [path, ahead_path] =
            ["files", "order"].map(|kind| directory.join("state").join(kind).join(&name));
        for path in [&path, &ahead_path] {
            disk::make_directory(path.parent().unwrap_or(directory))?;
        }
        let (slots, found) = Slots::open(&path, MAGIC)?;
        let numbers = match found {
            Found::Nothing => Kept::Nothing,
            Found::Whole(numbers) => Kept::Whole(numbers),
            Found::Older(numbers) => Kept::Older(numbers),
            Found::Damaged => Kept::Damaged,
        };
        let ahead = match disk::read_checked(&ahead_path, ORDER_MAGIC)? {
            Checked::Missing => Kept::Nothing,
            Checked::Whole(ahead) => Kept::Whole(ahead),
            Checked::Damaged | Checked::Newer(_) => Kept::Damaged,
        };
        let [numbers_path, kept_path] = [&path, &ahead_path].map(|path| path.display().to_string());
        let kept = KeptCursor { numbers, numbers_path, ahead, ahead_path: kept_path };
        Ok((Self { slots, ahead_path }, kept))
    }

    /// Writes the numbers, without waiting for the disk.
    pub(super) fn put(&mut self, numbers: CursorNumbers) -> io::Result<()> {
        self.slots.put(numbers)
    }

    /// Waits until the numbers are durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.slots.sync()
    }

    /// Writes the products shown out of the log's order, or removes that file.
    pub(super) fn keep_ahead(&self, ahead: Option<&ShownAhead>) -> io::Result<()> {
        let Some(ahead) = ahead else { return disk::remove_file(&self.ahead_path) };
        // No feed has this name: encoded names contain no blank.
        let aside = self.ahead_path.with_file_name(" aside");
        disk::replace_unsynced(&self.ahead_path, &aside, &disk::checked(ORDER_MAGIC, ahead)?)
    }
}

/// The epoch and state of a log, and the boot of this machine, to which a cursor refers.
pub(super) fn life(log: &FeedLog, now: WallMicros) -> Life {
    Life { epoch: log.epoch(), given_to: log.given_to(), head: log.head(), boot: boot(), now }
}

/// Identifies the current boot of the machine; 0 if the kernel does not report it.
fn boot() -> u64 {
    #[cfg(test)]
    if let Some(boot) = tests::BOOT.get() {
        return boot;
    }
    let text = fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    blake3::hash(&text).as_bytes().first_chunk().copied().map_or(0, u64::from_le_bytes)
}

/// True if a cursor's file is intact.
pub(in crate::site) fn is_whole(path: &Path) -> io::Result<bool> {
    Ok(matches!(Slots::<6>::look(path, MAGIC)?, Found::Whole(_) | Found::Nothing))
}

/// True if the file of the products shown out of order is intact.
pub(in crate::site) fn order_is_whole(path: &Path) -> io::Result<bool> {
    Ok(disk::look_at_checked(path, ORDER_MAGIC)? != Checked::Damaged)
}

const MAGIC: &[u8; 8] = b"DBFILES\n";
const ORDER_MAGIC: &[u8; 8] = b"DBORDER\n";

#[cfg(test)]
pub(super) mod tests {
    use downburst_model::{Class, Epoch, Sequence};
    use downburst_site::{CursorChange, LastShown, Opened};

    use super::*;

    thread_local! {
        /// Simulates a reboot of the machine, in tests of power cuts.
        pub(in crate::site) static BOOT: std::cell::Cell<Option<u64>> = const { std::cell::Cell::new(None) };
    }

    /// A cursor whose files follow each change, as in the thread.
    struct Cursor {
        cursor: downburst_site::Cursor,
        file: CursorFile,
    }

    impl Cursor {
        fn open(directory: &Path, feed: &FeedName, life: Life) -> io::Result<(Self, Opened)> {
            let (file, kept) = CursorFile::open(directory, feed)?;
            let (cursor, opened) = downburst_site::Cursor::open(kept, life);
            Ok((Self { cursor, file }, opened))
        }

        fn begin(&mut self) -> io::Result<()> {
            self.file.put(self.cursor.numbers())?;
            self.file.sync()
        }

        fn keep(
            &mut self,
            change: impl FnOnce(&mut downburst_site::Cursor) -> CursorChange,
        ) -> io::Result<()> {
            let CursorChange { ahead, numbers } = change(&mut self.cursor);
            if numbers {
                self.file.put(self.cursor.numbers())?;
            }
            if ahead { self.file.keep_ahead(self.cursor.ahead()) } else { Ok(()) }
        }
    }

    impl std::ops::Deref for Cursor {
        type Target = downburst_site::Cursor;

        fn deref(&self) -> &Self::Target {
            &self.cursor
        }
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
        open(directory.path()).0.keep(|it| it.move_to(Sequence(40))).unwrap();
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
        open(directory.path()).0.keep(|it| it.move_to(Sequence(400))).unwrap();
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
        cursor.keep(|it| it.move_to(Sequence(5))).unwrap();
        cursor.keep(|it| it.prove(Sequence(4), WallMicros(77))).unwrap();
        cursor.keep(|it| it.move_to(Sequence(9))).unwrap();
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
        cursor.keep(|it| it.note(Sequence(4))).unwrap();
        assert_eq!(open(directory.path()).1, Some(Sequence(4)));
        cursor.keep(|it| it.shown(Sequence(4), Sequence(4))).unwrap();
        let (cursor, begun) = open(directory.path());
        assert_eq!((cursor.done(), begun, cursor.is_ordering()), (Sequence(4), None, false));
    }

    #[test]
    fn what_was_shown_ahead_is_remembered_until_the_place_passes_it() {
        let directory = tempfile::tempdir().unwrap();
        let (mut cursor, _) = open(directory.path());
        cursor.keep(|it| it.begin_ordering()).unwrap();
        cursor.keep(|it| it.note(Sequence(7))).unwrap();
        cursor.keep(|it| it.shown(Sequence(7), Sequence(4))).unwrap();
        let last = vec![LastShown { class: Class::Grid, epoch: Epoch(3), sequence: Sequence(70) }];
        cursor.keep(|it| it.keep_last(last.clone())).unwrap();
        let (mut cursor, begun) = open(directory.path());
        assert_eq!((cursor.done(), begun, cursor.last()), (Sequence(4), None, last.as_slice()));
        assert!(
            cursor.is_shown(Sequence(7)) && !cursor.is_shown(Sequence(5)) && cursor.is_shown(Sequence(4))
        );
        cursor.keep(|it| it.end_ordering()).unwrap();
        assert!(cursor.is_ordering(), "7 would be shown twice");
        cursor.keep(|it| it.shown(Sequence(5), Sequence(8))).unwrap();
        cursor.keep(|it| it.end_ordering()).unwrap();
        assert!(!open(directory.path()).0.is_ordering());
    }

    #[test]
    fn a_note_of_something_shown_ahead_is_nothing_to_finish() {
        let directory = tempfile::tempdir().unwrap();
        let (mut cursor, _) = open(directory.path());
        cursor.keep(|it| it.begin_ordering()).unwrap();
        cursor.keep(|it| it.note(Sequence(9))).unwrap();
        assert_eq!(open(directory.path()).1, Some(Sequence(9)));
        cursor.keep(|it| it.shown(Sequence(9), Sequence(2))).unwrap();
        assert_eq!(open(directory.path()).1, None);
    }
}
