use std::collections::{BTreeMap, BTreeSet};

use downburst_model::{Micros, RangeSet};

/// The missing packets of a receiver, as runs with a common history, and the times of their requests.
///
/// | state of a run | event | next |
/// |---|---|---|
/// | fresh, asked | due, shared (`shared_losses.rs`) | due later |
/// | fresh | `reorder_wait` over, room in the ask window | asked |
/// | asked | retry time over, a packet requested later came over the session | asked again (it was overtaken) |
/// | asked | retry time over, repairs keep coming over the session | asked, one retry wait after the last of them |
/// | asked | retry time over, otherwise, or eight retry waits over | asked again, twice the wait, at most 8 times |
/// | asked | its repair is announced to the group | asked after the announcement expired, [`PATIENCE`] at most |
/// | any | the packet arrives, is gone, or the limit is exceeded | not missing |
#[derive(Debug)]
pub(crate) struct Missing {
    runs: BTreeMap<u64, Run>,
    fresh: BTreeSet<(Micros, u64)>,
    asked: BTreeSet<(Micros, u64)>,
    count: u64,
    open: u64,
    retry_wait: Micros,
    /// The time of the last repair over the session.
    repaired: Option<Micros>,
    /// The latest request with a repair over the session.
    answered: Micros,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    last: u64,
    due: Micros,
    asked: Option<Micros>,
    /// The time of its first request.
    since: Option<Micros>,
    tries: u32,
    /// The time of its first postponement because of an announced repair.
    put_off: Option<Micros>,
}

/// A run that is due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) due: Micros,
    /// The time of its first request.
    pub(crate) since: Option<Micros>,
}

impl Missing {
    pub(crate) fn new(retry_wait: Micros) -> Self {
        Self {
            runs: BTreeMap::new(),
            fresh: BTreeSet::new(),
            asked: BTreeSet::new(),
            count: 0,
            open: 0,
            retry_wait: retry_wait.max(SHORTEST_RETRY),
            repaired: None,
            answered: Micros(0),
        }
    }

    /// Adds a run without earlier requests. Losses of the same moment share a request: `due` is rounded up to a
    /// grid.
    pub(crate) fn insert(&mut self, first: u64, last: u64, due: Micros) {
        let due = Micros(due.0.div_ceil(GRID.0).saturating_mul(GRID.0));
        if first <= last {
            self.put(first, Run { last, due, asked: None, since: None, tries: 0, put_off: None });
        }
    }

    /// Adds the packets from `first` to the one before `packet`, which revealed the gap.
    pub(crate) fn insert_below(&mut self, packet: u64, first: u64, due: Micros) {
        if first < packet {
            self.insert(first, packet - 1, due);
        }
    }

    /// The number of missing packets.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The oldest missing packet.
    pub(crate) fn first(&self) -> Option<u64> {
        self.runs.first_key_value().map(|(first, _)| *first)
    }

    pub(crate) fn contains(&self, packet: u64) -> bool {
        self.run_at(packet).is_some()
    }

    /// Removes a received packet: `None` if it was not missing, else true if it had been requested.
    pub(crate) fn remove(&mut self, packet: u64) -> Option<bool> {
        let asked = self.run_at(packet)?.1.asked.is_some();
        self.cut(packet, packet);
        Some(asked)
    }

    /// Records that the packet came over the session, before it is removed.
    pub(crate) fn note_repair(&mut self, now: Micros, packet: u64) {
        self.repaired = Some(now);
        if let Some(asked) = self.run_at(packet).and_then(|(_, run)| run.asked) {
            self.answered = self.answered.max(asked);
        }
    }

    /// Removes and returns the missing packets of `first..=last`.
    pub(crate) fn cut(&mut self, first: u64, last: u64) -> RangeSet {
        let mut taken = RangeSet::new();
        while let Some((start, run)) = self.run_reaching(first, last) {
            self.take(start);
            if start < first {
                self.put(start, Run { last: first - 1, ..run });
            }
            if run.last > last {
                self.put(last + 1, run);
            }
            taken.insert(start.max(first), run.last.min(last));
        }
        taken
    }

    /// The missing packets of `first..=last`.
    pub(crate) fn within(&self, first: u64, last: u64) -> RangeSet {
        let runs = self.runs_within(first, last);
        runs.map(|(start, run)| (start.max(first), run.last.min(last))).collect()
    }

    /// Makes missing packets of `first..=last` due at `due`, without counting earlier requests: their repair has
    /// begun to arrive.
    pub(crate) fn postpone(&mut self, first: u64, last: u64, due: Micros) {
        self.change(first, last, |run| Run { due, tries: 0, ..run });
    }

    /// Makes missing packets of `first..=last` due at `due`, because their repair is announced; returns those
    /// that were postponed for so long that announcements no longer count.
    pub(crate) fn put_off(&mut self, now: Micros, (first, last): (u64, u64), due: Micros) -> RangeSet {
        let tired = |run: &Run| run.put_off.is_some_and(|since| now.since(since) > PATIENCE);
        let runs = self.runs_within(first, last).filter(|(_, run)| tired(run));
        let rest: RangeSet = runs.map(|(start, run)| (start.max(first), run.last.min(last))).collect();
        self.change(first, last, |run| {
            if tired(&run) {
                return run;
            }
            Run { due, tries: 0, put_off: Some(run.put_off.unwrap_or(now)), ..run }
        });
        rest
    }

    /// Records that missing packets of `first..=last` are requested together with others that are due.
    pub(crate) fn note_asked(&mut self, first: u64, last: u64, now: Micros) {
        let retry_wait = self.retry_wait;
        self.change(first, last, |run| run.asked_again(now, retry_wait));
    }

    fn change(&mut self, first: u64, last: u64, change: impl Fn(Run) -> Run) {
        let runs: Vec<(u64, Run)> = self.runs_within(first, last).collect();
        for (start, run) in runs {
            self.take(start);
            if start < first {
                self.put(start, Run { last: first - 1, ..run });
            }
            if run.last > last {
                self.put(last + 1, run);
            }
            self.put(start.max(first), change(Run { last: run.last.min(last), ..run }));
        }
    }

    /// Makes these packets due now, as if for the first time, if they are still missing: their request did not get
    /// through.
    pub(crate) fn ask_again(&mut self, now: Micros, packets: &RangeSet) {
        packets.iter().for_each(|(first, last)| self.postpone(first, last, now));
    }

    /// Sets the time that a repair may take after its request.
    pub(crate) fn change_retry_wait(&mut self, retry_wait: Micros) {
        self.retry_wait = retry_wait.max(SHORTEST_RETRY);
    }

    /// The packets of `wanted` that were requested repeatedly while requests got through.
    pub(crate) fn asked_in_vain(&self, wanted: &RangeSet) -> RangeSet {
        let mut vain = RangeSet::new();
        for (first, last) in wanted.iter() {
            for (start, run) in self.runs_within(first, last).filter(|(_, run)| run.tries > PATIENT_TRIES) {
                vain.insert(start.max(first), run.last.min(last));
            }
        }
        vain
    }

    /// Removes the oldest packets until `limit` are left; returns the removed ones.
    pub(crate) fn shrink(&mut self, limit: u64) -> RangeSet {
        let mut taken = RangeSet::new();
        while let Some(excess) = self.count.checked_sub(limit).filter(|excess| *excess > 0) {
            let Some((&first, run)) = self.runs.first_key_value() else { break };
            let last = run.last.min(first.saturating_add(excess - 1));
            self.cut(first, last);
            taken.insert(first, last);
        }
        taken
    }

    /// The packets to request at `now`; `later` returns a later time for due packets to be postponed instead.
    pub(crate) fn ask(&mut self, now: Micros, later: impl Fn(&Due) -> Option<Micros>) -> RangeSet {
        let mut wanted = RangeSet::new();
        let later = |first: u64, run: &Run| {
            later(&Due { first, last: run.last, due: run.due, since: run.since }).filter(|due| *due > now)
        };
        while let Some(&(due, first)) = self.asked.first().filter(|(due, _)| *due <= now) {
            let Some(run) = self.take(first) else {
                self.asked.remove(&(due, first));
                continue;
            };
            match self.postponed(now, &run).or_else(|| later(first, &run)) {
                Some(due) => self.put(first, Run { due, ..run }),
                None => self.ask_run(now, first, run, &mut wanted),
            }
        }
        while let Some(&(due, first)) = self.fresh.first().filter(|(due, _)| *due <= now && self.room() > 0) {
            let Some(mut run) = self.take(first) else {
                self.fresh.remove(&(due, first));
                continue;
            };
            if let Some(due) = later(first, &run) {
                self.put(first, Run { due, ..run });
                continue;
            }
            let most = first.saturating_add(self.room() - 1);
            if run.last > most {
                self.put(most + 1, run);
                run.last = most;
            }
            self.ask_run(now, first, run, &mut wanted);
        }
        wanted
    }

    /// The time of the next request.
    pub(crate) fn deadline(&self) -> Option<Micros> {
        let fresh = self.fresh.first().filter(|_| self.room() > 0);
        fresh.into_iter().chain(self.asked.first()).map(|(due, _)| *due).min()
    }

    fn ask_run(&mut self, now: Micros, first: u64, run: Run, wanted: &mut RangeSet) {
        wanted.insert(first, run.last);
        self.put(first, run.asked_again(now, self.retry_wait));
    }

    /// The session is a queue: requested packets are still in it while repairs arrive, and none of them was
    /// requested later.
    fn postponed(&self, now: Micros, run: &Run) -> Option<Micros> {
        let (asked, repaired) = (run.asked?, self.repaired?);
        let patience = asked.plus(Micros(self.retry_wait.0.saturating_mul(1 << LARGEST_DOUBLING)));
        let due = repaired.plus(self.retry_wait).min(patience);
        (due > now && self.answered <= asked).then_some(due)
    }

    fn room(&self) -> u64 {
        ASK_WINDOW.saturating_sub(self.open)
    }

    fn run_at(&self, packet: u64) -> Option<(u64, Run)> {
        self.run_reaching(packet, packet)
    }

    /// The last run that shares a number with `first..=last`.
    fn run_reaching(&self, first: u64, last: u64) -> Option<(u64, Run)> {
        let (start, run) = self.runs.range(..=last).next_back()?;
        (run.last >= first && first <= last).then_some((*start, *run))
    }

    fn runs_within(&self, first: u64, last: u64) -> impl Iterator<Item = (u64, Run)> {
        let before = self.run_at(first).filter(|(start, _)| *start < first);
        let runs = (first <= last).then(|| self.runs.range(first..=last)).into_iter().flatten();
        before.into_iter().chain(runs.map(|(start, run)| (*start, *run)))
    }

    fn put(&mut self, first: u64, run: Run) {
        let length = (run.last - first).saturating_add(1);
        self.count = self.count.saturating_add(length);
        if run.asked.is_some() {
            self.open = self.open.saturating_add(length);
            self.asked.insert((run.due, first));
        } else {
            self.fresh.insert((run.due, first));
        }
        self.runs.insert(first, run);
    }

    fn take(&mut self, first: u64) -> Option<Run> {
        let run = self.runs.remove(&first)?;
        let length = (run.last - first).saturating_add(1);
        self.count = self.count.saturating_sub(length);
        if run.asked.is_some() {
            self.open = self.open.saturating_sub(length);
            self.asked.remove(&(run.due, first));
        } else {
            self.fresh.remove(&(run.due, first));
        }
        Some(run)
    }
}

impl Run {
    fn asked_again(self, now: Micros, retry_wait: Micros) -> Self {
        let wait = Micros(retry_wait.0.saturating_mul(1 << self.tries.min(LARGEST_DOUBLING)));
        let tries = self.tries.saturating_add(1);
        Self { due: now.plus(wait), asked: Some(now), since: self.since.or(Some(now)), tries, ..self }
    }
}

/// The maximum number of requested packets without an answer: those under way in a session at 100 ms and 400 Mbit/s.
const ASK_WINDOW: u64 = 4_096;

/// The number of doublings of the retry wait.
const LARGEST_DOUBLING: u32 = 3;

/// About two seconds on a short path, several times the allowed wait of a block's repair: after that, repairs as
/// datagrams are probably blocked.
const PATIENT_TRIES: u32 = 12;

/// A member of the group may forge announcements: no loss waits longer for an announced repair.
const PATIENCE: Micros = Micros::from_secs(2);

const GRID: Micros = Micros::from_millis(1);

const SHORTEST_RETRY: Micros = Micros::from_millis(1);
