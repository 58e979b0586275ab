use std::collections::BTreeMap;

use downburst_model::{Epoch, FeedName, LegId};

use crate::frame::Message;
use crate::{LegJoin, LegLeave, NextKey};

/// The multicast legs offered to one site.
///
/// | state   | offer of the same leg           | leave asked        | site: joined     | site: left             |
/// |---------|---------------------------------|--------------------|------------------|------------------------|
/// | held    | replaces it                     | forgotten          | -                | -                      |
/// | offered | other life: leave, then offer   | LegLeave, leaving  | joined           | forgotten              |
/// | joined  | other life: leave, then offer   | LegLeave, leaving  | -                | forgotten, unicast     |
/// | leaving | kept, offered when left         | kept offer dropped | counts as joined | forgotten, then offers |
///
/// The site answers every LegJoin with exactly one LegLeft, unless the connection ends. The legs of a feed
/// change make-before-break: the site leaves the older one when it has joined the newer one; it leaves an older
/// one that is not joined yet without delay.
#[derive(Debug, Default)]
pub(crate) struct Offers {
    legs: BTreeMap<LegId, Offer>,
}

#[derive(Debug)]
struct Offer {
    join: LegJoin,
    state: State,
    /// The beginning of the leg's coverage, once the site receives it.
    after: Option<u64>,
    then: Option<LegJoin>,
    /// The end of a stream that repeats a stretch of the log beside the feed's other leg; `None`: no such stream.
    beside_to: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Held back: the feed has not started in the leg's epoch yet.
    Held,
    Offered,
    Joined,
    Leaving,
}

impl Offers {
    /// Takes an offer; [`release`](Self::release) sends it.
    pub(crate) fn offer(&mut self, join: LegJoin) -> Vec<Message> {
        let mut messages = self.leave_others(&join, |state| state != State::Joined);
        match self.legs.get_mut(&join.leg) {
            Some(offer) if offer.state == State::Leaving => offer.then = Some(join),
            Some(offer) if offer.state != State::Held && offer.join.leg_epoch == join.leg_epoch => {}
            Some(offer) if offer.state != State::Held => {
                offer.then = Some(join);
                messages.extend(offer.leave());
            }
            _ => self.hold(join),
        }
        messages
    }

    /// Takes an offer of a stream that repeats the log up to `to`: the site keeps the feed's other leg.
    pub(crate) fn offer_beside(&mut self, join: LegJoin, to: u64) {
        let leg = join.leg;
        if self.legs.contains_key(&leg) {
            return;
        }
        self.hold(join);
        self.legs.entry(leg).and_modify(|offer| offer.beside_to = Some(to));
    }

    /// The end of a stream beside the feed's leg; `None` for other legs.
    pub(crate) fn beside_to(&self, leg: LegId) -> Option<u64> {
        self.legs.get(&leg)?.beside_to
    }

    /// True if the site receives a stream that delivers this number.
    pub(crate) fn repeats(&self, feed: &FeedName, epoch: Epoch, number: u64) -> bool {
        self.legs.values().any(|offer| {
            offer.join.feed == *feed
                && offer.join.epoch == epoch
                && offer.after.is_some_and(|after| number > after)
                && offer.beside_to.is_some_and(|to| number <= to)
        })
    }

    /// Offers the legs that waited for their feed to start in this epoch.
    pub(crate) fn release(&mut self, feed: &FeedName, epoch: Epoch) -> Vec<Message> {
        let waiting = self.legs.values_mut().filter(|offer| {
            offer.state == State::Held && offer.join.feed == *feed && offer.join.epoch == epoch
        });
        waiting
            .map(|offer| {
                offer.state = State::Offered;
                offer.join.clone().into()
            })
            .collect()
    }

    /// Sends the leg's next key to the site: now if it has the leg, otherwise with the offer.
    pub(crate) fn next_key(&mut self, next: NextKey) -> Option<Message> {
        let offer = self.legs.get_mut(&next.leg)?;
        let of_this_life = |join: &&mut LegJoin| join.leg == next.leg && join.leg_epoch == next.leg_epoch;
        offer.then.iter_mut().filter(of_this_life).for_each(|join| join.take_key(&next.key));
        let join = Some(&mut offer.join).filter(of_this_life)?;
        join.take_key(&next.key);
        (offer.state != State::Held).then(|| next.into())
    }

    /// Removes the site from a leg.
    pub(crate) fn leave(&mut self, leg: LegId) -> Vec<Message> {
        match self.legs.get_mut(&leg) {
            Some(offer) if offer.state == State::Held => {
                self.legs.remove(&leg);
                Vec::new()
            }
            Some(offer) => {
                offer.then = None;
                offer.leave().into_iter().collect()
            }
            None => Vec::new(),
        }
    }

    /// The site receives the leg. Returns the leg's join and the messages to send; `None` if it is not a leg of
    /// this session.
    pub(crate) fn joined(
        &mut self,
        leg: LegId,
        leg_epoch: u64,
        after: u64,
    ) -> Option<(LegJoin, Vec<Message>)> {
        let offer = self.legs.get_mut(&leg).filter(|offer| {
            offer.join.leg_epoch == leg_epoch && offer.state != State::Held && offer.after.is_none()
        })?;
        offer.after = Some(after);
        let join = offer.join.clone();
        if offer.state == State::Leaving {
            return Some((join, Vec::new()));
        }
        offer.state = State::Joined;
        if offer.beside_to.is_some() {
            return Some((join, Vec::new()));
        }
        let messages = self.leave_others(&join, |state| state == State::Joined);
        Some((join, messages))
    }

    /// The site left the leg. Returns its join and the beginning of its coverage.
    pub(crate) fn left(&mut self, leg: LegId) -> Option<(LegJoin, Option<u64>)> {
        let offer = self.legs.remove(&leg).filter(|offer| offer.state != State::Held)?;
        if let Some(next) = offer.then {
            self.hold(next);
        }
        Some((offer.join, offer.after))
    }

    /// True if the leg, in this leg epoch, is offered to the site.
    pub(crate) fn has(&self, leg: LegId, leg_epoch: u64) -> bool {
        self.legs
            .get(&leg)
            .is_some_and(|offer| offer.join.leg_epoch == leg_epoch && offer.state != State::Held)
    }

    /// The sequence behind which the legs that the site receives deliver everything.
    pub(crate) fn coverage(&self, feed: &FeedName, epoch: Epoch) -> Option<u64> {
        self.legs
            .values()
            .filter(|offer| {
                offer.join.feed == *feed && offer.join.epoch == epoch && offer.beside_to.is_none()
            })
            .filter_map(|offer| offer.after)
            .min()
    }

    /// A leg that carries the feed for the site: repairs are counted under it.
    pub(crate) fn of_feed(&self, feed: &FeedName) -> Option<LegId> {
        self.legs
            .iter()
            .find(|(_, offer)| offer.join.feed == *feed && offer.after.is_some() && offer.beside_to.is_none())
            .map(|(leg, _)| *leg)
    }

    fn hold(&mut self, join: LegJoin) {
        self.legs
            .insert(join.leg, Offer { join, state: State::Held, after: None, then: None, beside_to: None });
    }

    fn leave_others(&mut self, join: &LegJoin, which: impl Fn(State) -> bool) -> Vec<Message> {
        let others: Vec<LegId> = self
            .legs
            .values()
            .filter(|offer| offer.join.feed == join.feed && offer.join.leg != join.leg)
            .filter(|offer| offer.beside_to.is_none() && which(offer.state))
            .map(|offer| offer.join.leg)
            .collect();
        others.into_iter().flat_map(|leg| self.leave(leg)).collect()
    }
}

impl Offer {
    fn leave(&mut self) -> Option<Message> {
        let told = std::mem::replace(&mut self.state, State::Leaving) == State::Leaving;
        (!told).then(|| LegLeave { leg: self.join.leg }.into())
    }
}
