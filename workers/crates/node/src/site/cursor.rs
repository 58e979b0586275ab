//! How far a feed's files are written, kept on disk so that each file is written once.
//!
//! `state/files/FEED` holds two places in the site's log, 8 bytes each: files up to the first stand; the second was about to be
//! shown. Where files are shown in another order than that of the log, `state/order/FEED` holds the places beyond the first that
//! were shown, and what was shown last of each class.
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use downburst_model::{Class, Epoch, FeedName, RangeSet, Sequence};
use minicbor::{Decode, Encode};

use crate::file_names;

/// The place of a feed's files in the site's log.
pub(super) struct Cursor {
    file: File,
    /// Files up to here stand.
    done: Sequence,
    ahead_path: PathBuf,
    ahead: Option<Ahead>,
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
    /// Opens the cursor of a feed; answers also the place that was about to be shown when the site stopped.
    pub(super) fn open(directory: &Path, feed: &FeedName) -> io::Result<(Self, Option<Sequence>)> {
        let name = file_names::encode(feed.as_str());
        let [path, ahead_path] =
            ["files", "order"].map(|kind| directory.join("state").join(kind).join(&name));
        for path in [&path, &ahead_path] {
            fs::create_dir_all(path.parent().unwrap_or(directory))?;
        }
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        let mut bytes = [0; 16];
        let known = file.read_at(&mut bytes, 0)? == bytes.len();
        let (done, begun) = if known { sequences(&bytes) } else { (Sequence(0), Sequence(0)) };
        let ahead = fs::read(&ahead_path).ok().map(|bytes| minicbor::decode(&bytes).unwrap_or_default());
        let cursor = Self { file, done, ahead_path, ahead };
        let begun = (begun > done && !cursor.is_shown(begun)).then_some(begun);
        Ok((cursor, begun))
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
            fs::remove_file(&self.ahead_path)?;
        }
        Ok(())
    }

    /// Notes that the file of this place is about to be shown.
    pub(super) fn note(&self, begun: Sequence) -> io::Result<()> {
        self.file.write_all_at(&begun.0.to_be_bytes(), 8)
    }

    /// Notes that files up to here stand.
    pub(super) fn move_to(&mut self, done: Sequence) -> io::Result<()> {
        self.done = done;
        self.file.write_all_at(&done.0.to_be_bytes(), 0)
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
        fs::write(&aside, minicbor::to_vec(ahead).map_err(io::Error::other)?)?;
        fs::rename(aside, &self.ahead_path)
    }
}

fn sequences(bytes: &[u8; 16]) -> (Sequence, Sequence) {
    let (done, begun) = bytes.split_at(8);
    let number = |half: &[u8]| Sequence(half.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)));
    (number(done), number(begun))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(directory: &Path) -> (Cursor, Option<Sequence>) {
        Cursor::open(directory, &FeedName::parse("IDS|DDPLUS").unwrap()).unwrap()
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
