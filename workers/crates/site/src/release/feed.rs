//! One feed's files: the choice of the next product, and the records before and after its file appears.
//!
//! Each product is written aside, its place is recorded as about to be shown, the file is moved to its name, and the
//! cursor advances. A restart between the record and the advance looks for the file written aside: if it is gone, it
//! was moved to its name. If a subscription requires order, live products wait here for earlier ones.
use std::collections::{BTreeSet, VecDeque};

use downburst_model::{Machine, Micros, Now, Sequence, WallMicros};
use downburst_session::Missing;

use super::cursor::{Cursor, CursorChange, CursorNumbers, KeptCursor, LastShown, Life};
use super::order::{Arrival, Order, Turn};

/// The files of one feed.
///
/// Its driver carries out one output at a time and answers each with one input; it may be woken before the answer. If
/// storage fails, the driver drops the machine and opens it again from the stored cursor: waiting products are read
/// from the log again.
#[derive(Debug)]
pub struct FeedRelease {
    cursor: Cursor,
    /// The last place read from the log; products up to here that are not shown wait in `order`.
    read_to: Sequence,
    order: Option<Order>,
    waiting: BTreeSet<Sequence>,
    read: ReadProducts,
    turns: VecDeque<Turn>,
    /// The product whose file is being made.
    current: Option<Current>,
    look: Option<Look>,
    /// The next look, after the current one.
    next: Option<(Option<Micros>, Look)>,
    outputs: VecDeque<ReleaseOutput>,
    /// True while the last output has no answer.
    is_asking: bool,
}

/// An input for a feed's files.
#[derive(Debug)]
pub enum ReleaseInput {
    /// The log may have grown, or the requested order may have changed.
    Woken {
        /// The log's last place.
        head: Sequence,
        /// The time for which a missing product holds back later ones; `None`: the log's order suffices.
        hold: Option<Micros>,
        /// The missing products of a feed with an order.
        missing: Missing,
    },
    /// Answers [`ReleaseOutput::Read`].
    Read {
        /// In the log's order.
        products: Vec<Candidate>,
        /// There are no other products up to here.
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
    /// Answers [`ReleaseOutput::Finish`]: true if the log still has the product.
    Finished(bool),
    /// Answers [`ReleaseOutput::Look`] and [`ReleaseOutput::Write`] if the product's bytes have left the log.
    Gone,
    /// Answers all others.
    Done,
}

/// An operation of storage for a feed's files.
#[derive(Debug, PartialEq, Eq)]
pub enum ReleaseOutput {
    /// Report that the cursor is damaged, with this sentence.
    Damaged(String),
    /// After a power cut: set aside the files shown since that are not in the log.
    SetUnprovenAside {
        /// The last time at which everything was durable.
        since: WallMicros,
    },
    /// Store the cursor's numbers; a power cut may undo this.
    KeepNumbers(CursorNumbers),
    /// Store [`Cursor::ahead`]; a power cut may undo this.
    KeepAhead,
    /// Make the stored numbers of the cursor durable.
    SyncNumbers,
    /// Move the file of this place to its name if it lies aside: the site stopped in between.
    Finish(Sequence),
    /// Read the log.
    Read {
        /// After this place.
        after: Sequence,
        /// Up to this one, or fewer if that is too much for one read.
        to: Sequence,
    },
    /// Check whether the file of this place exists and is whole.
    Look(Sequence),
    /// Write the product of this place aside.
    Write(Sequence),
    /// Move the file written aside to its name.
    Place(Sequence),
    /// Remove the file written aside, after a check whether it could be moved to its name.
    Discard(Sequence),
    /// Report that the file of this place is shown.
    Report {
        /// Its place.
        at: Sequence,
        /// True if a later product of its class was shown before it, against the requested order.
        late: bool,
    },
}

/// A product in the site's log that may become a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its place in the site's own log.
    pub at: Sequence,
    /// Its place in the order; live products have one.
    pub arrival: Option<Arrival>,
    /// True for a heartbeat, which passes all stages up to the file, and leaves none.
    pub heartbeat: bool,
}

#[derive(Clone, Copy, Debug)]
struct Current {
    at: Sequence,
    late: bool,
    heartbeat: bool,
}

/// Products read from the log and not considered yet.
#[derive(Debug, Default)]
struct ReadProducts {
    products: std::vec::IntoIter<Candidate>,
    read_to: Option<Sequence>,
}

/// One look at the log, and then at the waiting products.
#[derive(Debug)]
struct Look {
    head: Sequence,
    missing: Missing,
    has_taken_due: bool,
    has_turned: bool,
}

impl FeedRelease {
    /// Resumes where the site stopped: a product that was about to be shown is moved to its name, unless it is there.
    pub fn open(kept: KeptCursor, life: Life) -> Self {
        let (cursor, opened) = Cursor::open(kept, life);
        let mut outputs = VecDeque::new();
        outputs.extend(opened.damage.map(ReleaseOutput::Damaged));
        outputs.extend(opened.unproven_since.map(|since| ReleaseOutput::SetUnprovenAside { since }));
        // From here on the cursor is valid: defects are repaired. After a power cut, even an early one, there is a
        // stored place to start from.
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

    /// The progress of its files.
    pub fn cursor(&self) -> &Cursor {
        &self.cursor
    }

    /// Records that files up to a place, in their state at that time, are durable; returns the numbers to store.
    pub(super) fn prove(&mut self, proven: Sequence, at: WallMicros) -> CursorNumbers {
        let _ = self.cursor.prove(proven, at);
        self.cursor.numbers()
    }

    /// Takes the next step; false if there is nothing to do.
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

    /// Begins the next look. No file is being made now, so the order may change.
    fn begin_look(&mut self) -> bool {
        let Some((hold, look)) = self.next.take() else { return false };
        self.set_hold(hold);
        self.look = Some(look);
        true
    }

    /// Shows a product, or makes it wait for its turn.
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

    /// Completes the product that was about to be shown when the site stopped; `is_there`: the log still has it.
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
                // Read again from the first product not shown: waiting ones follow in the log's order.
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

    /// The last place up to which no product waits, now that `shown` is in place.
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

    /// The time at which the next product has waited long enough for earlier ones.
    fn deadline(&self) -> Option<Micros> {
        self.order.as_ref()?.deadline()
    }
}

/// Products that may wait for earlier ones; beyond it, reading continues when some have been shown.
const WAITING_LIMIT: usize = 65_536;
