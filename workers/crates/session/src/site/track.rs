use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use downburst_model::{
    Epoch, FeedName, Lane, LegId, Micros, Now, ProductId, ProductInfo, ProductKey, RangeSet, Sequence,
    WallMicros,
};

use self::local::LocalState;
use super::assembly::{Assembly, Source};
use super::complete::Complete;
use super::deadline::Deadline;
use super::log_requests::LogRequests;
use super::resends::Resends;
use super::skipped::Skipped;
use super::waiting::Waiting;
use crate::spans::Spans;
use crate::{FeedPosition, Frontier, SiteOutput};

mod local;
mod losing;
#[cfg(test)]
mod model;
mod resent;
mod siblings;
mod storing;

/// A site's state in one feed.
///
/// A number is *settled* (stored, held, rejected, expired, or not for this site), *pending* (announced, bytes
/// awaited), *waiting* (complete, being stored) or unknown. Only settled numbers outlive a session.
#[derive(Debug)]
pub(crate) struct Track {
    pub(crate) epoch: Epoch,
    /// The hub has started the feed in this session.
    pub(crate) started: bool,
    pub(crate) requests: LogRequests,
    feed: FeedName,
    pub(super) settled: RangeSet,
    newest_stored: WallMicros,
    complete: Complete,
    pub(super) pending: BTreeMap<u64, Assembly>,
    pub(super) waiting: Waiting,
    pub(super) resends: Resends,
    passed: Skipped,
    /// The reason of the driver's last failure to store a product, until it has stored one.
    trouble: Option<String>,
    local: LocalState,
    pub(super) deadline: Deadline,
    reports: Reports,
}

/// The times of reports of the position.
#[derive(Debug, Default)]
struct Reports {
    /// The next one, after a change.
    due_at: Option<Micros>,
    last_at: Option<Micros>,
}

pub(crate) type Outputs = VecDeque<SiteOutput>;

impl Track {
    pub(crate) fn new(feed: FeedName, epoch: Epoch) -> Self {
        Self {
            epoch,
            started: false,
            requests: LogRequests::default(),
            feed,
            settled: RangeSet::new(),
            newest_stored: WallMicros::default(),
            complete: Complete::default(),
            pending: BTreeMap::new(),
            waiting: Waiting::default(),
            resends: Resends::default(),
            passed: Skipped::default(),
            trouble: None,
            local: LocalState::default(),
            deadline: Deadline::default(),
            reports: Reports::default(),
        }
    }

    pub(crate) fn from_position(position: FeedPosition) -> Self {
        let FeedPosition { feed, epoch, settled, newest_stored } = position;
        Self { settled, newest_stored, ..Self::new(feed, epoch) }
    }

    /// The position, which outlives the session.
    pub(crate) fn position(&self) -> FeedPosition {
        FeedPosition {
            feed: self.feed.clone(),
            epoch: self.epoch,
            settled: self.settled.clone(),
            newest_stored: self.newest_stored,
        }
    }

    /// See [`SiteSession::complete_to`](crate::SiteSession::complete_to).
    pub(crate) fn complete_to(&self) -> Option<WallMicros> {
        self.complete.to(self.settled.frontier())
    }

    pub(crate) fn frontier(&self) -> Frontier {
        Frontier {
            feed: self.feed.clone(),
            epoch: self.epoch,
            settled_to: Sequence(self.settled.frontier()),
            pending: (self.pending.len() as u64).saturating_add(self.waiting.count()),
            trouble: self.trouble.clone(),
            action_failed: self.local.action_failed.clone(),
            linked: self.local.linked,
        }
    }

    /// Takes news of local software; `takes` returns true if they are new.
    pub(crate) fn local_news(&mut self, now: Now, takes: impl FnOnce(&mut LocalState) -> bool) {
        if takes(&mut self.local) {
            self.changed(now);
        }
    }

    /// The hub starts the feed at its present head, since the site never had any of it.
    pub(crate) fn begin_fresh(&mut self, now: Now) {
        self.complete.begin(now.wall);
    }

    /// The hub starts the feed. In a foreign epoch all state is dropped except products that are being stored.
    pub(crate) fn start(&mut self, now: Now, epoch: Epoch, after: u64, out: &mut Outputs) {
        if epoch != self.epoch {
            self.end(now, out);
            self.epoch = epoch;
            self.waiting.turn_to(epoch);
            self.settled = RangeSet::new();
            self.complete = Complete::default();
            self.reports.due_at = None;
        }
        self.started = true;
        self.cover(now, 0, after, out);
    }

    /// The session ended, or the feed was unsubscribed: half-received products are dropped. Numbers recently
    /// settled as unwanted are left for the hub to check again.
    pub(crate) fn end(&mut self, now: Now, out: &mut Outputs) {
        for (_, assembly) in std::mem::take(&mut self.pending) {
            abandon(&assembly, out);
        }
        self.requests.clear();
        self.resends = Resends::default();
        let recent = self.passed.take_recent(now);
        if !recent.is_empty() {
            self.settled.subtract(&recent);
            self.changed(now);
        }
        self.started = false;
    }

    /// Settles the numbers that are not on their way: no product in `from..=to` is for this site except
    /// announced ones.
    pub(crate) fn cover(&mut self, now: Now, from: u64, to: u64, out: &mut Outputs) {
        if from > to {
            return;
        }
        let mut kept: RangeSet = self.waiting.numbers().within(from, to).into_iter().collect();
        let mut dropped = Vec::new();
        for (number, assembly) in self.pending.range(from..=to) {
            let expected =
                assembly.transfers > 0 || (!assembly.legs.is_empty() && !self.requests.has(*number));
            if expected {
                kept.insert(*number, *number);
            } else {
                dropped.push(*number);
            }
        }
        for number in dropped {
            self.drop_pending(number, out);
        }
        for (first, last) in kept.gaps(from, to) {
            self.settled.insert(first, last);
        }
        self.changed(now);
    }

    /// A product that this site wants is announced. Returns it if its bytes are awaited.
    pub(crate) fn announce(
        &mut self,
        now: Now,
        info: ProductInfo,
        lane: Lane,
        source: Source,
        out: &mut Outputs,
    ) -> Option<&mut Assembly> {
        let number = info.key.sequence.0;
        if self.is_over(number) {
            return None;
        }
        let assembly = self.pending.entry(number).or_insert_with(|| Assembly::new(now, info, lane, source));
        if assembly.is_complete() {
            self.complete(number, out);
            return None;
        }
        self.pending.get_mut(&number)
    }

    /// The product is not for this site, by its present subscriptions.
    pub(crate) fn pass(&mut self, now: Now, number: u64, id: ProductId) {
        if !self.is_over(number) && !self.pending.contains_key(&number) {
            self.passed.push(now, number, id);
            self.settled.insert(number, number);
            self.changed(now);
        }
    }

    /// A settled product can't be used any more: it is requested again, now or with the next session.
    pub(crate) fn lack_again(&mut self, now: Now, key: &ProductKey) {
        let number = key.sequence.0;
        if key.epoch != self.epoch || !self.settled.contains(number) {
            return;
        }
        self.settled.remove(number, number);
        if self.started {
            self.requests.add(one(number), now.monotonic);
        }
        self.changed(now);
    }

    /// The subscription changed for everything behind `head`: numbers that a leg announced in between are
    /// requested if they are wanted now.
    pub(crate) fn reconsider(&mut self, now: Now, head: u64, wants: impl Fn(&str) -> bool) {
        let wanted = self.passed.take_wanted(head, wants);
        if self.started && !wanted.is_empty() {
            self.settled.subtract(&wanted);
            self.requests.add(wanted, now.monotonic);
            self.changed(now);
        }
    }

    /// Takes bytes of a pending product; bytes of any other are ignored.
    pub(crate) fn block(
        &mut self,
        now: Now,
        source: Source,
        (number, offset): (u64, u64),
        bytes: &Bytes,
        repaired: bool,
        out: &mut Outputs,
    ) {
        let Some(assembly) = self.pending.get_mut(&number) else {
            return;
        };
        let parts = assembly.add(now, source, offset, bytes);
        if parts.is_empty() {
            return;
        }
        assembly.repaired |= repaired;
        begin(assembly, out);
        for (offset, bytes) in parts {
            out.push_back(SiteOutput::Block { key: assembly.info.key.clone(), offset, bytes });
        }
        if assembly.is_complete() {
            self.complete(number, out);
        }
    }

    /// A transfer of the session ended; if the product is still incomplete, it is requested again.
    pub(crate) fn transfer_ended(&mut self, now: Now, number: u64) {
        let Some(assembly) = self.pending.get_mut(&number) else {
            return;
        };
        assembly.transfers = assembly.transfers.saturating_sub(1);
        if assembly.transfers == 0 && (assembly.legs.is_empty() || self.requests.has(number)) {
            self.requests.add(one(number), now.monotonic);
        }
    }

    /// The stream of a transfer ended before the transfer: the hub sends the product again by itself.
    pub(crate) fn transfer_lost(&mut self, number: u64) {
        if let Some(assembly) = self.pending.get_mut(&number) {
            assembly.transfers = assembly.transfers.saturating_sub(1);
        }
    }

    /// A leg that announced everything up to `known_to` ended: its unfinished products are requested, and the
    /// hub sends later ones again.
    pub(crate) fn leg_ended(&mut self, now: Now, leg: LegId, known_to: u64, out: &mut Outputs) {
        let mut orphans = RangeSet::new();
        for (number, assembly) in &mut self.pending {
            if assembly.legs.remove(&leg) && !assembly.has_source() {
                orphans.insert(*number, *number);
            }
        }
        for (first, last) in orphans.within(known_to.saturating_add(1), u64::MAX) {
            (first..=last).for_each(|number| self.drop_pending(number, out));
        }
        self.requests.add(orphans.within(0, known_to).into_iter().collect(), now.monotonic);
    }

    /// Requests products that made no progress after their leg gave up packets, and those without progress for
    /// long.
    pub(crate) fn ask_stalled(&mut self, now: Now, gave_up_at: impl Fn(LegId) -> Option<Micros>) {
        let stalled = |assembly: &Assembly| {
            let quiet = now.monotonic.since(assembly.progressed_at);
            let lost = assembly.legs.iter().filter_map(|leg| gave_up_at(*leg)).max();
            let suspect =
                lost.is_some_and(|lost| now.monotonic.since(lost) >= STALL && lost >= assembly.announced_at);
            assembly.transfers == 0
                && assembly.resend.is_none()
                && (assembly.legs.is_empty() || (suspect && quiet >= STALL) || quiet >= LONG_STALL)
        };
        let numbers = self.pending.iter().filter(|(_, assembly)| stalled(assembly));
        let numbers = numbers.map(|(number, _)| (*number, *number)).collect();
        self.ask_once(now, numbers);
    }

    /// Requests unknown numbers.
    pub(crate) fn ask_unknown(&mut self, now: Now, mut numbers: RangeSet) {
        numbers.subtract(&self.settled);
        numbers.subtract(self.waiting.numbers());
        self.pending.keys().for_each(|number| numbers.remove(*number, *number));
        self.ask_once(now, numbers);
    }

    /// The numbers to request from the hub at `now`.
    pub(crate) fn due_asks(&mut self, now: Now) -> RangeSet {
        if self.requests.deadline().is_none_or(|at| at > now.monotonic) {
            return RangeSet::new();
        }
        let mut over = self.settled.clone();
        over.add(self.waiting.numbers());
        let coming = self.pending.iter().filter(|(_, assembly)| {
            assembly.transfers > 0
                || (!assembly.legs.is_empty() && now.monotonic.since(assembly.progressed_at) < STALL)
        });
        let coming = coming.map(|(number, _)| (*number, *number)).collect();
        let mut asked = self.requests.due(now.monotonic, &over, &coming);
        let Some(first) = asked.first().filter(|_| self.trouble.is_some()) else {
            return asked;
        };
        // One product shows whether the disk works again; the others would be sent in vain.
        asked.remove(first, first);
        self.requests.add(asked, now.monotonic.plus(STORE_PAUSE));
        one(first)
    }

    /// The end of the known numbers without a hole, from `known` on, the end of a leg's announcements.
    pub(crate) fn known_to(&self, known: u64) -> u64 {
        let mut to = known;
        while let Some(next) = to.checked_add(1) {
            match self.settled.end_of_range_at(next) {
                Some(end) => to = end,
                None if self.is_over(next) || self.pending.contains_key(&next) => to = next,
                None => break,
            }
        }
        to
    }

    pub(crate) fn pending_count(&self) -> usize {
        self.pending.len()
    }

    /// True after a change, at most once in a reporting interval.
    pub(crate) fn take_report(&mut self, now: Now) -> bool {
        let due = self.reports.due_at.take_if(|at| *at <= now.monotonic).is_some();
        if due {
            self.complete.passed(self.settled.frontier());
            self.reports.last_at = Some(now.monotonic);
        }
        due
    }

    /// True if something changed since the last report; clears the change.
    pub(crate) fn take_change(&mut self) -> bool {
        self.reports.due_at.take().is_some()
    }

    pub(crate) fn report_deadline(&self) -> Option<Micros> {
        self.reports.due_at
    }

    pub(super) fn complete(&mut self, number: u64, out: &mut Outputs) {
        let Some(mut assembly) = self.pending.remove(&number) else {
            return;
        };
        if self.deadline.is_missed_by(&assembly) {
            return self.drop_late_product(&assembly, out);
        }
        begin(&mut assembly, out);
        let Assembly { ref info, last_byte, lane, resend, .. } = assembly;
        out.push_back(SiteOutput::Complete { info: info.clone(), last_byte, lane, resend });
        let present = assembly.info.key.epoch == self.epoch;
        self.waiting.insert(assembly, present);
    }

    /// True if no number of a range is settled, pending or waiting.
    pub(super) fn is_unheard_of(&self, first: u64, last: u64) -> bool {
        self.settled.gaps(first, last).next() == Some((first, last))
            && self.pending.range(first..=last).next().is_none()
            && !self.waiting.has_any(first, last)
    }

    fn ask_once(&mut self, now: Now, numbers: RangeSet) {
        let numbers = self.requests.known(numbers);
        if !numbers.is_empty() {
            self.requests.add(numbers, now.monotonic);
        }
    }

    fn drop_pending(&mut self, number: u64, out: &mut Outputs) {
        if let Some(assembly) = self.pending.remove(&number) {
            abandon(&assembly, out);
        }
    }

    /// True if the product is of the present epoch and settled.
    pub(super) fn has_settled(&self, key: &ProductKey) -> bool {
        key.epoch == self.epoch && self.settled.contains(key.sequence.0)
    }

    fn is_over(&self, number: u64) -> bool {
        self.settled.contains(number) || self.waiting.numbers().contains(number)
    }

    fn changed(&mut self, now: Now) {
        let earliest = self.reports.last_at.map_or(now.monotonic, |at| at.plus(REPORT_INTERVAL));
        self.reports.due_at.get_or_insert(earliest.max(now.monotonic));
    }
}

fn begin(assembly: &mut Assembly, out: &mut Outputs) {
    if !std::mem::replace(&mut assembly.begun, true) {
        out.push_back(SiteOutput::Begin(assembly.info.clone()));
    }
}

fn abandon(assembly: &Assembly, out: &mut Outputs) {
    if assembly.begun {
        out.push_back(SiteOutput::Abandon(assembly.info.key.clone()));
    }
}

fn one(number: u64) -> RangeSet {
    [(number, number)].into_iter().collect()
}

/// The interval of checkpoints and frontier reports while something changes.
const REPORT_INTERVAL: Micros = Micros::from_millis(250);

/// The time without progress after which a product is requested over the session if its leg has given up packets.
const STALL: Micros = Micros::from_secs(2);

/// The time without progress after which a product is requested over the session in any case.
const LONG_STALL: Micros = Micros::from_secs(30);

/// The pause before a product that could not be stored is requested again.
const STORE_PAUSE: Micros = Micros::from_secs(5);
