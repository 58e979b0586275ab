//! The progress of a feed's files, so that each file is written once.
//!
//! A cursor stores places in the site's log: files up to the first are complete; the second was about to be shown;
//! files up to the third are durable on the disk. If files are shown in another order than that of the log, the
//! places shown beyond the first are stored too, and the last one shown of each class.
//!
//! A place that is damaged, of another epoch of the log or beyond the log's highest number is not used: the log is
//! read again, and files that are whole under their names are not written a second time. After a power cut the same
//! holds for everything beyond the third place.
use downburst_model::{Class, Epoch, RangeSet, Sequence, WallMicros};
use minicbor::{Decode, Encode};

/// The numbers of a cursor that change with each file: the epoch of the log, the three places, the time since which
/// the third one holds, and the identifier of the machine's boot.
pub type CursorNumbers = [u64; 6];

/// The position of a feed's files in the site's log.
#[derive(Debug)]
pub struct Cursor {
    life: Life,
    /// Files up to here are in place.
    done: Sequence,
    begun: Sequence,
    /// Files up to here are durable on the disk, since `proven_at`.
    proven: Sequence,
    proven_at: WallMicros,
    ahead: Option<ShownAhead>,
    /// Files up to here may be in place, although the cursor does not record them.
    doubtful_to: Sequence,
}

/// The context of a cursor: one epoch of the log, and one boot of the machine.
#[derive(Clone, Copy, Debug)]
pub struct Life {
    /// The epoch of the log.
    pub epoch: Epoch,
    /// The highest place that was ever assigned.
    pub given_to: Sequence,
    /// The log's last place.
    pub head: Sequence,
    /// Distinguishes boots of the machine.
    pub boot: u64,
    /// The site's wall clock.
    pub now: WallMicros,
}

/// A cursor as read from storage.
#[derive(Clone, Debug)]
pub struct KeptCursor {
    /// Its numbers.
    pub numbers: Kept<CursorNumbers>,
    /// The path of its numbers, for messages.
    pub numbers_path: String,
    /// The products shown out of the log's order.
    pub ahead: Kept<ShownAhead>,
    /// The path of `ahead`, for messages.
    pub ahead_path: String,
}

/// A stored value as read from storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept<T> {
    /// Nothing was stored.
    Nothing,
    /// The last stored value.
    Whole(T),
    /// The last stored value, or the one before it.
    Older(T),
    /// It can't be read.
    Damaged,
}

/// The findings of opening a cursor.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// The place that was about to be shown when the site stopped.
    pub begun: Option<Sequence>,
    /// The reason why part of it is not used: a sentence.
    pub damage: Option<String>,
    /// After a power cut: files shown since this time may be damaged.
    pub unproven_since: Option<WallMicros>,
}

/// The products shown out of the log's order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct ShownAhead {
    #[n(0)]
    shown: RangeSet,
    #[n(1)]
    last: Vec<LastShown>,
}

/// The last product shown of a class.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct LastShown {
    /// The class.
    #[n(0)]
    pub class: Class,
    /// The epoch of the hub's log.
    #[n(1)]
    pub epoch: Epoch,
    /// Its sequence at the hub.
    #[n(2)]
    pub sequence: Sequence,
}

/// The changed parts of a cursor, to be stored in the order of the fields: `ahead` drops the places that the numbers
/// have passed, and a crash between both must not lose them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct CursorChange {
    /// The numbers have changed.
    pub numbers: bool,
    /// The list of products shown ahead has changed.
    pub ahead: bool,
}

impl Cursor {
    /// Opens a stored cursor, as far as it is plausible.
    pub fn open(kept: KeptCursor, life: Life) -> (Self, Opened) {
        let (ahead, ahead_is_damaged) = match kept.ahead {
            Kept::Nothing => (None, false),
            Kept::Whole(ahead) | Kept::Older(ahead) => (Some(ahead), false),
            Kept::Damaged => (Some(ShownAhead::default()), true),
        };
        let (done, begun, proven) = (Sequence(0), Sequence(0), Sequence(0));
        let (proven_at, doubtful_to) = (life.now, Sequence(0));
        let mut cursor = Self { life, done, begun, proven, proven_at, ahead, doubtful_to };
        let mut opened = cursor.believe(&kept.numbers, &kept.numbers_path);
        // After a power cut the files are examined in any case.
        if ahead_is_damaged && opened.unproven_since.is_none() {
            cursor.doubtful_to = life.head;
            let sentence = format!("{} is damaged; {AGAIN}", kept.ahead_path);
            opened.damage = opened.damage.or(Some(sentence));
        }
        if cursor.begun > cursor.done && !cursor.is_shown(cursor.begun) {
            opened.begun = Some(cursor.begun);
        }
        (cursor, opened)
    }

    fn believe(&mut self, found: &Kept<CursorNumbers>, path: &str) -> Opened {
        let life = self.life;
        let mut opened = Opened::default();
        let (Kept::Whole(numbers) | Kept::Older(numbers)) = found else {
            self.doubtful_to = life.head;
            opened.damage = (*found == Kept::Damaged).then(|| format!("{path} is damaged; {AGAIN}"));
            return opened;
        };
        if let Some(reason) = life.refuses(numbers) {
            self.doubtful_to = life.head;
            opened.damage = Some(format!("{path} {reason}; {AGAIN}"));
            return opened;
        }
        let [_, done, begun, proven, proven_at, boot] = *numbers;
        (self.done, self.begun, self.proven) = (Sequence(done), Sequence(begun), Sequence(proven));
        self.proven_at = WallMicros(proven_at.cast_signed());
        if matches!(found, Kept::Older(_)) {
            self.doubtful_to = life.head;
            opened.damage = Some(format!("one of two copies in {path} is damaged; the other one counts"));
        }
        if boot != life.boot {
            // Of the files shown since, the disk may have the name without the bytes, or neither; and the
            // note of `begun` may be lost.
            (self.done, self.begun, self.ahead) = (self.proven.min(self.done), Sequence(0), None);
            self.doubtful_to = life.head;
            opened.unproven_since = Some(self.proven_at);
        }
        opened
    }

    /// The numbers in their stored form.
    pub fn numbers(&self) -> CursorNumbers {
        let (done, begun, proven) = (self.done.0, self.begun.0, self.proven.0);
        let proven_at = self.proven_at.0.cast_unsigned();
        [self.life.epoch.0, done, begun, proven, proven_at, self.life.boot]
    }

    /// The products shown out of the log's order, in stored form; `None`: nothing is stored.
    pub fn ahead(&self) -> Option<&ShownAhead> {
        self.ahead.as_ref()
    }

    /// True if the file of this place may exist although the cursor does not record it: check before writing.
    pub fn is_doubtful(&self, at: Sequence) -> bool {
        at <= self.doubtful_to
    }

    /// Records that files up to here, in their state at that time, are durable on the disk.
    pub fn prove(&mut self, proven: Sequence, at: WallMicros) -> CursorChange {
        (self.proven, self.proven_at) = (proven, at);
        CursorChange { numbers: true, ahead: false }
    }

    /// Files up to here are durable on the disk.
    pub fn proven(&self) -> Sequence {
        self.proven
    }

    /// Files up to here are in place.
    pub fn done(&self) -> Sequence {
        self.done
    }

    /// True if the file of this place is recorded as shown.
    pub fn is_shown(&self, at: Sequence) -> bool {
        at <= self.done || self.ahead.as_ref().is_some_and(|ahead| ahead.shown.contains(at.0))
    }

    /// True while files may be shown in another order than that of the log.
    pub fn is_ordering(&self) -> bool {
        self.ahead.is_some()
    }

    /// The last product shown of each class, as far as recorded.
    pub fn last(&self) -> &[LastShown] {
        self.ahead.as_ref().map_or(&[], |ahead| &ahead.last)
    }

    /// Allows another order than that of the log.
    pub fn begin_ordering(&mut self) -> CursorChange {
        let begins = self.ahead.is_none();
        self.ahead.get_or_insert_default();
        CursorChange { ahead: begins, numbers: false }
    }

    /// Returns to the order of the log, unless a place beyond `done` was shown.
    pub fn end_ordering(&mut self) -> CursorChange {
        let is_ahead = |last: u64| last > self.done.0;
        let ends = self.ahead.as_ref().is_some_and(|ahead| !ahead.shown.last().is_some_and(is_ahead));
        if ends {
            self.ahead = None;
        }
        CursorChange { ahead: ends, numbers: false }
    }

    /// Records that the file of this place is about to be shown.
    pub fn note(&mut self, begun: Sequence) -> CursorChange {
        self.begun = begun;
        CursorChange { numbers: true, ahead: false }
    }

    /// Records that files up to here are in place.
    pub fn move_to(&mut self, done: Sequence) -> CursorChange {
        let moves = done != self.done;
        self.done = done;
        CursorChange { numbers: moves, ahead: false }
    }

    /// Records that the file of this place is shown, and all files up to `done` are in place.
    pub fn shown(&mut self, at: Sequence, done: Sequence) -> CursorChange {
        let Some(ahead) = &mut self.ahead else { return self.move_to(done) };
        let was_whole = ahead.shown.is_empty();
        ahead.shown.insert(at.0, at.0);
        ahead.shown.remove(0, done.0);
        // In the log's own order the numbers alone are sufficient.
        let changes = !was_whole || !ahead.shown.is_empty();
        CursorChange { ahead: changes, ..self.move_to(done) }
    }

    /// Records the last product shown of each class.
    pub fn keep_last(&mut self, last: Vec<LastShown>) -> CursorChange {
        let changed = self.ahead.as_mut().filter(|ahead| ahead.last != last);
        let changes = changed.is_some();
        if let Some(ahead) = changed {
            ahead.last = last;
        }
        CursorChange { ahead: changes, numbers: false }
    }
}

impl Life {
    /// The reason why the numbers can't belong to this log; `None`: they may.
    fn refuses(&self, numbers: &CursorNumbers) -> Option<&'static str> {
        let [epoch, done, begun, proven, ..] = *numbers;
        if epoch != self.epoch.0 {
            Some("is of a log that is not there any more")
        } else if done.max(begun).max(proven) > self.given_to.0 {
            Some("names a place that the site's log never gave")
        } else {
            None
        }
    }
}

const AGAIN: &str = "the site's log is read again, and files that are whole below received/ are not written a \
    second time";

#[cfg(test)]
mod tests {
    use super::*;

    fn life(epoch: u64, boot: u64) -> Life {
        Life { epoch: Epoch(epoch), given_to: Sequence(1_000), head: Sequence(90), boot, now: WallMicros(5) }
    }

    fn kept(numbers: Kept<CursorNumbers>, ahead: Kept<ShownAhead>) -> KeptCursor {
        KeptCursor { numbers, numbers_path: "files/F".to_owned(), ahead, ahead_path: "order/F".to_owned() }
    }

    /// A cursor after a restart with intact storage.
    fn reopened(cursor: &Cursor, life: Life) -> (Cursor, Opened) {
        let ahead = cursor.ahead().cloned().map_or(Kept::Nothing, Kept::Whole);
        Cursor::open(kept(Kept::Whole(cursor.numbers()), ahead), life)
    }

    fn new() -> Cursor {
        Cursor::open(kept(Kept::Nothing, Kept::Nothing), life(3, 1)).0
    }

    const NOTHING: CursorChange = CursorChange { ahead: false, numbers: false };
    const NUMBERS: CursorChange = CursorChange { ahead: false, numbers: true };
    const AHEAD: CursorChange = CursorChange { ahead: true, numbers: false };

    #[test]
    fn a_feed_that_is_new_begins_at_the_start_and_may_have_files() {
        let (cursor, opened) = Cursor::open(kept(Kept::Nothing, Kept::Nothing), life(3, 1));
        assert_eq!((cursor.done(), opened), (Sequence(0), Opened::default()));
        assert!(cursor.is_doubtful(Sequence(90)) && !cursor.is_doubtful(Sequence(91)));
    }

    #[test]
    fn numbers_that_can_not_be_read_are_said_and_the_log_is_gone_through_again() {
        let (cursor, opened) = Cursor::open(kept(Kept::Damaged, Kept::Nothing), life(3, 1));
        assert!(opened.damage.unwrap().starts_with("files/F is damaged; the site's log is read again"));
        assert_eq!((cursor.done(), cursor.is_doubtful(Sequence(90))), (Sequence(0), true));
        let older = Kept::Older([3, 40, 0, 0, 0, 1]);
        let (cursor, opened) = Cursor::open(kept(older, Kept::Nothing), life(3, 1));
        assert!(opened.damage.unwrap().starts_with("one of two copies in files/F is damaged"));
        assert_eq!((cursor.done(), cursor.is_doubtful(Sequence(90))), (Sequence(40), true));
    }

    #[test]
    fn numbers_of_another_log_or_beyond_it_are_not_believed() {
        let mut cursor = new();
        assert_eq!(cursor.move_to(Sequence(400)), NUMBERS);
        for (life, says) in [
            (life(4, 1), "not there any more"),
            (Life { given_to: Sequence(399), ..life(3, 1) }, "never gave"),
        ] {
            let (cursor, opened) = reopened(&cursor, life);
            assert!(opened.damage.unwrap().contains(says));
            assert_eq!((cursor.done(), cursor.is_doubtful(Sequence(90))), (Sequence(0), true));
        }
    }

    #[test]
    fn after_a_power_cut_only_what_is_proven_counts() {
        let mut cursor = new();
        let changes = [
            cursor.move_to(Sequence(5)),
            cursor.prove(Sequence(4), WallMicros(77)),
            cursor.begin_ordering(),
            cursor.note(Sequence(9)),
        ];
        assert_eq!(changes, [NUMBERS, NUMBERS, AHEAD, NUMBERS]);
        let (same, opened) = reopened(&cursor, life(3, 1));
        assert_eq!(
            (same.done(), opened.begun, opened.unproven_since),
            (Sequence(5), Some(Sequence(9)), None)
        );
        let (cut, opened) = reopened(&cursor, life(3, 2));
        assert_eq!((cut.done(), opened.unproven_since), (Sequence(4), Some(WallMicros(77))));
        assert!(cut.is_doubtful(Sequence(9)) && !cut.is_ordering());
        assert_eq!((opened.begun, opened.damage), (None, None));
    }

    #[test]
    fn a_damaged_list_of_what_was_shown_ahead_is_begun_anew_and_said_unless_the_power_was_cut() {
        let numbers = [3, 40, 0, 30, 7, 1];
        let open = |boot| Cursor::open(kept(Kept::Whole(numbers), Kept::Damaged), life(3, boot));
        let (cursor, opened) = open(1);
        assert!(opened.damage.unwrap().starts_with("order/F is damaged"));
        assert!(cursor.is_ordering() && cursor.is_doubtful(Sequence(90)));
        let (cursor, opened) = open(2);
        assert_eq!((cursor.done(), cursor.is_ordering(), opened.damage), (Sequence(30), false, None));
    }

    #[test]
    fn only_what_changed_is_to_be_kept() {
        let mut cursor = new();
        assert_eq!(cursor.move_to(Sequence(0)), NOTHING);
        assert_eq!(cursor.end_ordering(), NOTHING);
        assert_eq!(cursor.begin_ordering(), AHEAD);
        assert_eq!(cursor.begin_ordering(), NOTHING);
        assert_eq!(cursor.shown(Sequence(1), Sequence(1)), NUMBERS, "in the log's own order");
        assert_eq!(cursor.shown(Sequence(3), Sequence(1)), AHEAD);
        let last = vec![LastShown { class: Class::Grid, epoch: Epoch(3), sequence: Sequence(70) }];
        assert_eq!([cursor.keep_last(last.clone()), cursor.keep_last(last)], [AHEAD, NOTHING]);
        assert_eq!(cursor.end_ordering(), NOTHING, "3 would be shown twice");
        assert_eq!(cursor.shown(Sequence(2), Sequence(3)), CursorChange { ahead: true, numbers: true });
        assert_eq!((cursor.end_ordering(), cursor.ahead()), (AHEAD, None));
    }

    #[test]
    fn a_note_of_something_that_was_shown_is_nothing_to_finish() {
        let mut cursor = new();
        let _ = (cursor.begin_ordering(), cursor.note(Sequence(9)));
        assert_eq!(reopened(&cursor, life(3, 1)).1.begun, Some(Sequence(9)));
        let _ = cursor.shown(Sequence(9), Sequence(2));
        assert!(
            cursor.is_shown(Sequence(9)) && !cursor.is_shown(Sequence(5)) && cursor.is_shown(Sequence(2))
        );
        assert_eq!(reopened(&cursor, life(3, 1)).1.begun, None);
    }
}
