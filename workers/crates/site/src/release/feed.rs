//! One feed's files: which product becomes a file next, and what is kept of that before and after.
//!
//! Each product is written aside, its place is noted as about to be shown, it is put under its name, and the cursor
//! moves on. A restart between the note and the move looks for the file written aside: if it is gone, it was put
//! under its name. Where a subscription asks for order, live products wait here for earlier ones.
use std::collections::{BTreeSet, VecDeque};

use downburst_model::{Machine, Micros, Now, Sequence, WallMicros};
use downburst_session::Missing;

use super::cursor::{Cursor, CursorChange, CursorNumbers, KeptCursor, LastShown, Life};
use super::order::{Arrival, Order, Turn};

/// The files of one feed.
///
/// Its driver carries out one output at a time and answers each with one input; it may be woken meanwhile. Where
/// storage fails, the driver drops the machine and opens it again from what is kept: what waited is read from the log
/// again.
#[derive(Debug)]
pub struct FeedRelease {
    cursor: Cursor,
    /// Read from the log up to here; what is not shown of that waits in `order`.
    read_to: Sequence,
    order: Option<Order>,
    waiting: BTreeSet<Sequence>,
    read: ReadProducts,
    turns: VecDeque<Turn>,
    /// The product that is on its way to its place.
    current: Option<Current>,
    look: Option<Look>,
    /// The next look, once this one is over.
    next: Option<(Option<Micros>, Look)>,
    outputs: VecDeque<ReleaseOutput>,
    /// The last output has no answer yet.
    is_asking: bool,
}

/// What happened to a feed's files.
#[derive(Debug)]
pub enum ReleaseInput {
    /// The log may have grown, or the order that is asked for may be another one.
    Woken {
        /// The log's last place.
        head: Sequence,
        /// How long a missing product holds back later ones; `None`: the log's order is good.
        hold: Option<Micros>,
        /// What a feed with an order still lacks.
        missing: Missing,
    },
    /// Answers [`ReleaseOutput::Read`].
    Read {
        /// In the log's order.
        products: Vec<Candidate>,
        /// Nothing else lies up to here.
        read_to: Sequence,
        /// The log's last place now.
        head: Sequence,
    },
    /// Answers [`ReleaseOutput::Look`].
    Stands(bool),
    /// Answers [`ReleaseOutput::Write`].
    Written,
    /// Answers [`ReleaseOutput::Place`] and [`ReleaseOutput::Discard`].
    Placed,
    /// Answers [`ReleaseOutput::Finish`]: whether the log still has the product.
    Finished(bool),
    /// Answers [`ReleaseOutput::Look`] and [`ReleaseOutput::Write`] of a product whose bytes left the log.
    Gone,
    /// Answers all others.
    Done,
}

/// What storage is to do for a feed's files.
#[derive(Debug, PartialEq, Eq)]
pub enum ReleaseOutput {
    /// The cursor is damaged; for people.
    Damaged(String),
    /// The power was cut: files that were shown since and that the log does not know go aside.
    SetUnprovenAside {
        /// The last moment at which the disk kept everything.
        since: WallMicros,
    },
    /// Keep the cursor's numbers; a power cut may take that back.
    KeepNumbers(CursorNumbers),
    /// Keep [`Cursor::ahead`]; a power cut may take that back.
    KeepAhead,
    /// Have the disk keep the cursor's numbers for good.
    SyncNumbers,
    /// Put the product of this place under its name if it lies aside: the site stopped in between.
    Finish(Sequence),
    /// Read the log.
    Read {
        /// Behind this place.
        after: Sequence,
        /// Up to this one, or as far as is good at once.
        to: Sequence,
    },
    /// Look whether the product of this place stands, whole.
    Look(Sequence),
    /// Write the product of this place aside.
    Write(Sequence),
    /// Put what was written aside under its name.
    Place(Sequence),
    /// Remove what was written aside, and find out whether it could have been put under its name.
    Discard(Sequence),
    /// Report that the product of this place stands.
    Report {
        /// Its place.
        at: Sequence,
        /// A later product of its class went before it, against the order that was asked for.
        late: bool,
    },
}

/// A product in the site's log that may become a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its place in the site's own log.
    pub at: Sequence,
    /// Its place in an order, which live products have.
    pub arrival: Option<Arrival>,
    /// It goes as far as files go, and leaves nothing.
    pub heartbeat: bool,
}

#[derive(Clone, Copy, Debug)]
struct Current {
    at: Sequence,
    late: bool,
    heartbeat: bool,
}

/// Products as they were read, that have not been looked at.
#[derive(Debug, Default)]
struct ReadProducts {
    products: std::vec::IntoIter<Candidate>,
    read_to: Option<Sequence>,
}

/// One look at the log, and then at what waits.
#[derive(Debug)]
struct Look {
    head: Sequence,
    missing: Missing,
    has_taken_due: bool,
    has_turned: bool,
}

impl FeedRelease {
    /// Takes up where the site stopped: the product that was about to be shown is put in its place, unless it is there.
    pub fn open(kept: KeptCursor, life: Life) -> Self {
        let (cursor, opened) = Cursor::open(kept, life);
        let mut outputs = VecDeque::new();
        outputs.extend(opened.damage.map(ReleaseOutput::Damaged));
        outputs.extend(opened.unproven_since.map(|since| ReleaseOutput::SetUnprovenAside { since }));
        // From here on it is believed: what was wrong is made good. After a power cut there is a place to go by,
        // however early the cut came.
        outputs.extend([ReleaseOutput::KeepNumbers(cursor.numbers()), ReleaseOutput::SyncNumbers]);
        outputs.extend(opened.begun.map(ReleaseOutput::Finish));
        Self {
            read_to: cursor.done(),
            current: opened.begun.map(|at| Current { at, late: false, heartbeat: false }),
            cursor,
            order: None,
            waiting: BTreeSet::new(),
            read: ReadProducts::default(),
            turns: VecDeque::new(),
            look: None,
            next: None,
            outputs,
            is_asking: false,
        }
    }

    /// How far its files are.
    pub fn cursor(&self) -> &Cursor {
        &self.cursor
    }

    /// Files up to a place, as they were at that moment, are on the disk for good; the numbers to keep.
    pub(super) fn prove(&mut self, proven: Sequence, at: WallMicros) -> CursorNumbers {
        let _ = self.cursor.prove(proven, at);
        self.cursor.numbers()
    }

    /// Does the next thing that needs no answer; false: there is nothing to do.
    fn advance(&mut self, now: Micros) -> bool {
        if let Some(Turn { at, late }) = self.turns.pop_front() {
            self.waiting.remove(&at);
            self.begin(Current { at, late, heartbeat: false });
            return true;
        }
        if let Some(candidate) = self.read.products.next() {
            self.consider(candidate, now);
            return true;
        }
        if let Some(read_to) = self.read.read_to.take() {
            self.read_to = read_to;
            let change = self.cursor.move_to(self.done_to(read_to));
            self.keep(change);
            return true;
        }
        self.look_on(now)
    }

    fn look_on(&mut self, now: Micros) -> bool {
        let Some(look) = &mut self.look else { return self.begin_look() };
        if !look.has_taken_due {
            if self.read_to < look.head && self.waiting.len() < WAITING_LIMIT {
                self.outputs.push_back(ReleaseOutput::Read { after: self.read_to, to: look.head });
                return true;
            }
            let due = self.order.as_mut().map(|order| order.take_due(&look.missing, now));
            self.turns.extend(due.into_iter().flatten());
            (look.has_taken_due, look.has_turned) = (true, !self.turns.is_empty());
            return true;
        }
        let has_turned = look.has_turned;
        self.look = None;
        if has_turned {
            let shown = self.order.iter().flat_map(Order::shown);
            let last = shown.map(|(class, epoch, sequence)| LastShown { class, epoch, sequence }).collect();
            let change = self.cursor.keep_last(last);
            self.keep(change);
        }
        true
    }

    /// Nothing is on its way: the order may change.
    fn begin_look(&mut self) -> bool {
        let Some((hold, look)) = self.next.take() else { return false };
        self.set_hold(hold);
        self.look = Some(look);
        true
    }

    /// Shows a product, or lets it wait for its turn.
    fn consider(&mut self, candidate: Candidate, now: Micros) {
        let Candidate { at, arrival, heartbeat } = candidate;
        if !self.cursor.is_shown(at) {
            match (&mut self.order, arrival.filter(|_| !heartbeat)) {
                (Some(order), Some(arrival)) => {
                    self.turns.extend(order.arrive(arrival, now));
                    self.waiting.insert(at);
                }
                _ => self.begin(Current { at, late: false, heartbeat }),
            }
        }
        self.read_to = at;
    }

    fn begin(&mut self, current: Current) {
        self.current = Some(current);
        let is_doubtful = self.cursor.is_doubtful(current.at);
        let first = if is_doubtful { ReleaseOutput::Look } else { ReleaseOutput::Write };
        self.outputs.push_back(first(current.at));
    }

    fn looked(&mut self, stands: bool) {
        match self.current.take() {
            Some(current) if stands => self.settle(Current { late: false, ..current }),
            Some(current) => {
                self.outputs.push_back(ReleaseOutput::Write(current.at));
                self.current = Some(current);
            }
            None => {}
        }
    }

    fn written(&mut self) {
        let Some(Current { at, heartbeat, .. }) = self.current else { return };
        if heartbeat {
            self.outputs.push_back(ReleaseOutput::Discard(at));
            return;
        }
        let change = self.cursor.note(at);
        self.keep(change);
        self.outputs.push_back(ReleaseOutput::Place(at));
    }

    fn settle(&mut self, current: Current) {
        let Current { at, late, .. } = current;
        let change = self.cursor.shown(at, self.done_to(at));
        self.keep(change);
        self.outputs.push_back(ReleaseOutput::Report { at, late });
    }

    /// The log has the product that was about to be shown when the site stopped, or not.
    fn finished(&mut self, is_there: bool) {
        let Some(Current { at, late, .. }) = self.current.take() else { return };
        let done = if self.cursor.is_ordering() { self.cursor.done() } else { at };
        let change = self.cursor.shown(at, done);
        self.keep(change);
        self.read_to = self.cursor.done();
        self.outputs.extend(is_there.then_some(ReleaseOutput::Report { at, late }));
    }

    fn set_hold(&mut self, hold: Option<Micros>) {
        let change = match (hold, &mut self.order) {
            (Some(hold), Some(order)) => {
                order.set_hold(hold);
                CursorChange::default()
            }
            (Some(hold), None) => {
                let change = self.cursor.begin_ordering();
                let mut order = Order::new(hold);
                for LastShown { class, epoch, sequence } in self.cursor.last() {
                    order.resume(*class, *epoch, *sequence);
                }
                self.order = Some(order);
                change
            }
            (None, Some(_)) => {
                // Read again from the first that was not shown: what waited goes in the log's order.
                (self.order, self.read_to) = (None, self.cursor.done());
                self.waiting.clear();
                CursorChange::default()
            }
            (None, None) => self.cursor.end_ordering(),
        };
        self.keep(change);
    }

    fn keep(&mut self, change: CursorChange) {
        if change.numbers {
            self.outputs.push_back(ReleaseOutput::KeepNumbers(self.cursor.numbers()));
        }
        if change.ahead {
            self.outputs.push_back(ReleaseOutput::KeepAhead);
        }
    }

    /// Nothing up to here waits to be shown, now that `shown` stands.
    fn done_to(&self, shown: Sequence) -> Sequence {
        let read_to = self.read_to.max(shown);
        self.waiting.first().map_or(read_to, |first| Sequence(first.0.saturating_sub(1)).min(read_to))
    }
}

impl Machine for FeedRelease {
    type Input = ReleaseInput;
    type Output = ReleaseOutput;

    fn handle(&mut self, _now: Now, input: ReleaseInput) {
        if let ReleaseInput::Woken { head, hold, missing } = input {
            self.next = Some((hold, Look { head, missing, has_taken_due: false, has_turned: false }));
            return;
        }
        self.is_asking = false;
        match input {
            ReleaseInput::Read { products, read_to, head } => {
                self.read = ReadProducts { products: products.into_iter(), read_to: Some(read_to) };
                self.look.iter_mut().for_each(|look| look.head = head);
            }
            ReleaseInput::Stands(stands) => self.looked(stands),
            ReleaseInput::Written => self.written(),
            ReleaseInput::Placed => {
                if let Some(current) = self.current.take() {
                    self.settle(current);
                }
            }
            ReleaseInput::Finished(is_there) => self.finished(is_there),
            ReleaseInput::Gone => self.current = None,
            ReleaseInput::Done | ReleaseInput::Woken { .. } => {}
        }
    }

    fn poll(&mut self, now: Now) -> Option<ReleaseOutput> {
        if self.is_asking {
            return None;
        }
        while self.outputs.is_empty() {
            if !self.advance(now.monotonic) {
                return None;
            }
        }
        self.is_asking = true;
        self.outputs.pop_front()
    }

    /// When the next product has waited long enough for those before it.
    fn deadline(&self) -> Option<Micros> {
        self.order.as_ref()?.deadline()
    }
}

/// Products that may wait for those before them; beyond it the log is read on when some have gone.
const WAITING_LIMIT: usize = 65_536;
