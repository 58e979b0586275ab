//! Referrals: late and requested products that the site fetches from a sibling (decision 73).
//!
//! | number of a product | becomes             | by                                           |
//! |---------------------|---------------------|----------------------------------------------|
//! | owed                | waiting             | `HubOutput::Refer`, which the driver answers |
//! | waiting             | referred            | a sibling holds it: `Referral`               |
//! | waiting             | queued in the outbox| no sibling holds it                          |
//! | referred            | said                | `ReferralEnded` without it                   |
//! | referred            | owed, by the hub    | `ReferralEnded` with it, or its time is over |
//!
//! A number that a sibling failed to give is sent by the hub itself, and never referred again in this session.
use std::collections::BTreeMap;

use bytes::BytesMut;
use downburst_model::{Epoch, FeedName, Lane, LegId, Micros, Now, RangeSet, Sequence};

use super::HubSession;
use super::serve::{Departure, Reason, Step};
use crate::train::{self, Head};
use crate::{
    HubEvent, HubInput, HubOutput, MOST_REFERRALS, MOST_REFERRED, ReferRequest, Referral, ReferralEnded,
    ReferralReport, Referred, SiblingChoice, SiblingNews,
};

/// The referrals of a session.
#[derive(Debug, Default)]
pub(super) struct Referrals {
    /// The site exchanges products with siblings, and its port is open.
    on: bool,
    /// Until then the site may report its port: late products wait for it.
    port_by: Option<Micros>,
    last: u32,
    /// Waiting for the driver's answer.
    waiting: BTreeMap<u32, Batch>,
    /// Sent to the site.
    open: BTreeMap<u32, Open>,
    /// Numbers that a sibling failed to give.
    direct: BTreeMap<FeedName, RangeSet>,
}

#[derive(Debug)]
struct Batch {
    feed: FeedName,
    epoch: Epoch,
    loads: Vec<Load>,
}

/// A step of the log's reader, with the descriptions of its products.
#[derive(Debug)]
struct Load {
    step: Step,
    items: Vec<Referred>,
}

#[derive(Debug)]
struct Open {
    feed: FeedName,
    epoch: Epoch,
    /// The number before each product, its own, the last that it covers, and its size.
    items: Vec<(u64, u64, u64, u64)>,
    ends: Micros,
}

impl Referrals {
    /// True if no more late products are read until a referral is over, or until the site's port is known.
    pub(super) fn are_full(&self) -> bool {
        self.port_by.is_some() || (self.on && self.count() >= MOST_REFERRALS / 2)
    }

    fn count(&self) -> usize {
        self.open.len().saturating_add(self.waiting.len())
    }

    pub(super) fn forget(&mut self, feed: &FeedName) {
        self.waiting.retain(|_, batch| batch.feed != *feed);
        self.open.retain(|_, open| open.feed != *feed);
        self.direct.remove(feed);
    }

    pub(super) fn deadline(&self) -> Option<Micros> {
        self.open.values().map(|open| open.ends).chain(self.port_by).min()
    }

    fn is_direct(&self, feed: &FeedName, first: u64) -> bool {
        self.direct.get(feed).is_some_and(|numbers| numbers.contains(first))
    }
}

impl HubSession {
    /// Takes the inputs that only apply to siblings.
    pub(super) fn take_for_siblings(&mut self, now: Now, input: HubInput) {
        match input {
            HubInput::Refers(on) => self.set_refers(on),
            HubInput::Referred { number, sibling } => self.take_referred(now, number, sibling),
            HubInput::GrantSibling(grant) => self.send(*grant),
            HubInput::WithdrawSiblings(withdrawn) => self.send(withdrawn),
            input => self.take_for_relay(input),
        }
    }

    /// Switches referrals on or off. Those that are open go on until the site reports their end.
    pub(super) fn set_refers(&mut self, on: bool) {
        (self.referrals.on, self.referrals.port_by) = (on, None);
    }

    /// The site was just told that it exchanges products: its port may be known a round trip from now.
    pub(super) fn await_port(&mut self) {
        self.referrals.port_by =
            self.heard.filter(|_| !self.referrals.on).map(|heard| heard.plus(PORT_PATIENCE));
    }

    /// Takes the steps of a read: those that siblings may carry out wait for the driver's answer.
    pub(super) fn take_steps(&mut self, feed: &FeedName, epoch: Epoch, steps: Vec<Step>) {
        let mut batch = Batch { feed: feed.clone(), epoch, loads: Vec::new() };
        for step in steps {
            match self.referable(feed, epoch, &step) {
                Some(items) => batch.loads.push(Load { step, items }),
                None => self.take_step(feed, step),
            }
            if batch.products() >= MOST_REFERRED / 2 {
                let empty = Batch { feed: feed.clone(), epoch, loads: Vec::new() };
                self.ask_for_sibling(std::mem::replace(&mut batch, empty));
            }
        }
        self.ask_for_sibling(batch);
    }

    /// Takes the driver's answer.
    fn take_referred(&mut self, now: Now, number: u32, sibling: Option<SiblingChoice>) {
        let Some(Batch { feed, epoch, loads }) = self.referrals.waiting.remove(&number) else { return };
        if self.served_epoch(&feed) != Some(epoch) {
            return;
        }
        let holds = |load: &Load| {
            let has = |choice: &SiblingChoice| {
                load.items.iter().all(|item| choice.holds.contains(item.info.key.sequence.0))
            };
            sibling.as_ref().is_some_and(has)
        };
        let (referred, own): (Vec<Load>, Vec<Load>) = loads.into_iter().partition(holds);
        own.into_iter().for_each(|load| self.take_step(&feed, load.step));
        if let (Some(sibling), Some(leg)) = (sibling, self.unicast_leg(&feed))
            && !referred.is_empty()
        {
            self.refer(now, number, (feed, epoch, leg), sibling, referred);
        }
    }

    /// Takes the site's report of a referral.
    pub(super) fn take_referral_ended(&mut self, ended: &ReferralEnded) {
        let Some(open) = self.referrals.open.remove(&ended.number) else { return };
        let came = open.items.iter().filter(|(_, number, _, _)| !ended.missing.contains(*number));
        let (products, bytes) = came.fold((0_u64, 0_u64), |(products, bytes), (_, _, _, size)| {
            (products.saturating_add(1), bytes.saturating_add(*size))
        });
        let number = ended.number;
        self.event(HubEvent::Sibling(SiblingNews::Ended(ReferralReport {
            number,
            feed: open.feed.clone(),
            products,
            bytes,
            fault: ended.fault,
        })));
        self.give_back(&open, |number| ended.missing.contains(number));
    }

    /// Takes over the referrals that the site has not reported in time.
    pub(super) fn advance_referrals(&mut self, now: Now) {
        self.referrals.port_by = self.referrals.port_by.filter(|by| *by > now.monotonic);
        let due = |open: &Open| open.ends <= now.monotonic;
        let late: Vec<u32> =
            self.referrals.open.iter().filter(|(_, open)| due(open)).map(|(number, _)| *number).collect();
        for number in late {
            if let Some(open) = self.referrals.open.remove(&number) {
                self.give_back(&open, |_| true);
            }
        }
    }

    /// The descriptions of the products of a step, if a sibling may give them.
    fn referable(&self, feed: &FeedName, epoch: Epoch, step: &Step) -> Option<Vec<Referred>> {
        let full = self.referrals.count() >= MOST_REFERRALS;
        if !self.referrals.on || full || self.serving.deadlines.of(feed).is_some() {
            return None;
        }
        let items = match step {
            Step::Product(delivery) if is_late(delivery.reason) => {
                let (info, previous) = (delivery.info.clone(), Sequence(delivery.previous));
                vec![Referred { info, previous, to: None }]
            }
            Step::Train(departure) if is_late(departure.reason) => departure.referred(feed, epoch)?,
            _ => return None,
        };
        let first = items.first()?.info.key.sequence.0;
        (is_worth(&items) && !self.referrals.is_direct(feed, first)).then_some(items)
    }

    fn ask_for_sibling(&mut self, batch: Batch) {
        if batch.loads.is_empty() {
            return;
        }
        self.referrals.last = self.referrals.last.wrapping_add(1);
        let number = self.referrals.last;
        let mut sequences = RangeSet::new();
        for item in batch.loads.iter().flat_map(|load| &load.items) {
            sequences.insert(item.info.key.sequence.0, item.info.key.sequence.0);
        }
        let (feed, epoch) = (batch.feed.clone(), batch.epoch);
        self.referrals.waiting.insert(number, batch);
        self.outputs.push_back(HubOutput::Refer(ReferRequest { number, feed, epoch, sequences }));
    }

    fn refer(
        &mut self,
        now: Now,
        number: u32,
        (feed, epoch, leg): (FeedName, Epoch, LegId),
        sibling: SiblingChoice,
        loads: Vec<Load>,
    ) {
        let items: Vec<Referred> = loads.into_iter().flat_map(|load| load.items).collect();
        let kept = |item: &Referred| {
            let own = item.info.key.sequence.0;
            (item.previous.0, own, item.to.map_or(own, |to| to.0), item.info.size)
        };
        let ends = now.monotonic.plus(REFERRAL_LIMIT);
        let open = Open { feed, epoch, items: items.iter().map(kept).collect(), ends };
        self.referrals.open.insert(number, open);
        let SiblingChoice { site, address, fingerprint, ticket, .. } = sibling;
        self.send(Referral { number, ticket, sibling: site, address, fingerprint, leg, items });
    }

    /// Ends a referral: the numbers for which `is_missing` holds are owed by the hub itself.
    fn give_back(&mut self, open: &Open, is_missing: impl Fn(u64) -> bool) {
        let Open { feed, epoch, items, .. } = open;
        if self.served_epoch(feed) != Some(*epoch) {
            return;
        }
        for (previous, number, to, _) in items {
            let missing = is_missing(*number);
            if missing {
                self.referrals.direct.entry(feed.clone()).or_default().insert(*number, *number);
            }
            match self.serving(feed, *epoch) {
                Some(serve) if missing => serve.taken_back(*previous, *number, *to),
                Some(serve) => serve.sent(*number, *to),
                None => {}
            }
        }
    }
}

impl Batch {
    fn products(&self) -> usize {
        self.loads.iter().map(|load| load.items.len()).sum()
    }
}

impl Departure {
    /// The descriptions of its products, read from their encoded form.
    fn referred(&self, feed: &FeedName, epoch: Epoch) -> Option<Vec<Referred>> {
        let (class, lane, base) = (self.part.cars.class, self.reason.lane, self.part.cars.base.clone());
        let (feed, leg) = (feed.clone(), LegId(0));
        let head = Head { feed, epoch, class, lane, leg, previous: self.previous, to: self.to, base };
        let mut body = BytesMut::with_capacity(self.part.bytes.len());
        head.encode(&mut body);
        body.extend_from_slice(&self.part.bytes);
        let (train, around) = train::decode(&body.freeze())?;
        let mut previous = Sequence(around.previous);
        let mut items: Vec<Referred> = Vec::with_capacity(train.cars.len());
        for car in &train.cars {
            items.push(Referred { info: train.info(car), previous, to: None });
            previous = car.sequence;
        }
        if let Some(last) = items.last_mut() {
            last.to = Some(Sequence(around.to));
        }
        Some(items)
    }
}

/// Live products come from the hub, unless the site lost and requested them.
fn is_late(reason: Reason) -> bool {
    reason.wanted || reason.lane == Lane::Backfill
}

/// True if the products are large beside their descriptions.
fn is_worth(items: &[Referred]) -> bool {
    let products = items.iter().map(|item| &item.info).filter(|info| !info.id.is_heartbeat());
    let bytes = products.map(|info| info.size).fold(0, u64::saturating_add);
    bytes >= REFER_BYTES.saturating_mul(items.len() as u64)
}

/// The mean size from which products are referred: a description takes about 130 bytes, a fifteenth of this.
const REFER_BYTES: u64 = 2_048;

/// A site without a port for siblings waits this long for late products, once a session.
const PORT_PATIENCE: Micros = Micros::from_millis(1_000);

/// The time after which the hub sends the products of a referral itself. A site gives up earlier.
const REFERRAL_LIMIT: Micros = Micros::from_secs(90);
