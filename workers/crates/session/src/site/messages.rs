use downburst_model::Now;
use downburst_vcmtp::ReceiverInput;

use super::SiteSession;
use super::track::Track;
use crate::frame::Message;
use crate::{Covered, Expired, FeedStart, Marked, Outcome, SiteEvent, SiteOutput, StreamId};

impl SiteSession {
    /// Takes a message of a hub that has admitted the site.
    pub(super) fn take_message(&mut self, now: Now, message: Message) {
        match message {
            Message::Subscriptions(subscriptions) => self.subscribed(now, subscriptions),
            Message::Nodes(nodes) => self.event(SiteEvent::Nodes(nodes)),
            Message::Ways(ways) => self.event(SiteEvent::Ways(ways.chains)),
            Message::SiblingTerms(terms) => self.event(SiteEvent::SiblingTerms(terms)),
            Message::SiblingGrant(grant) => self.event(SiteEvent::SiblingGrant(Box::new(grant))),
            Message::SiblingWithdrawn(gone) => self.event(SiteEvent::SiblingWithdrawn(gone.tickets)),
            Message::Referral(referral) => self.take_referral(now, referral),
            Message::Handling(handling) => self.take_handling(now, handling),
            Message::FeedStart(start) => self.start_feed(now, start),
            Message::ProductBegin(begin) => self.begin_product(now, StreamId::FIRST, begin, None),
            Message::ResentBegin(resent) => {
                self.begin_product(now, StreamId::FIRST, resent.begin, Some(resent.resend));
            }
            Message::Covered(covered) => self.take_covered(now, &covered),
            Message::Expired(expired) => self.take_expired(now, &expired),
            Message::Mark(mark) => self.send(Marked { number: mark.number }),
            Message::OpenStream(open) => self.open_stream(now, open),
            Message::StreamEnded(ended) => self.take_stream_ended(ended),
            Message::CircuitOffer(offer) => self.event(SiteEvent::CircuitOffered(Box::new(offer))),
            Message::CircuitEnd(end) => self.event(SiteEvent::CircuitEnded(end)),
            Message::CircuitSet(set) => self.event(SiteEvent::CircuitSet(set.leases)),
            Message::CircuitProbe(probe) => self.event(SiteEvent::CircuitProbe(probe)),
            Message::PathProbe(probe) => self.event(SiteEvent::PathProbe(probe)),
            Message::RelayLeg(leg) => self.event(SiteEvent::RelayLeg(leg)),
            Message::RelayLegEnd(end) => self.event(SiteEvent::RelayLegEnded(end.leg)),
            Message::CredentialWanted(wanted) => self.event(SiteEvent::CredentialWanted(wanted)),
            Message::CredentialKept(kept) => self.event(SiteEvent::CredentialKept(kept)),
            Message::LegJoin(join) => self.join_leg(now, join),
            Message::NextKey(next) => self.take_leg_key(now, next),
            Message::LegLeave(leave) => self.end_leg(now, leave.leg, "the hub asked"),
            Message::PacketsGone(gone) => {
                self.tell_leg(now, gone.leg, Some(gone.leg_epoch), ReceiverInput::Gone(gone.packets));
            }
            Message::ClockReply(reply) => {
                if let Some(estimate) = self.clock.reply(now, &reply) {
                    self.receipts.clock_compared(now);
                    self.tell_round_trip(now);
                    self.apply_deadlines(now);
                    self.event(SiteEvent::Clock(estimate));
                }
            }
            _ => self.violation(
                now,
                "the hub sent a frame that only a site sends, or a second welcome".to_owned(),
            ),
        }
    }

    fn start_feed(&mut self, now: Now, start: FeedStart) {
        let FeedStart { feed, epoch, after, duplicates } = start;
        if !self.patterns.has(&feed) {
            return;
        }
        let rule = duplicates.unwrap_or_default();
        self.event(SiteEvent::Duplicates { feed: feed.clone(), rule });
        let known = self.tracks.get(&feed).map(|track| track.epoch);
        let fresh = known.is_none() && !self.terms.resume_at.contains_key(&feed);
        if known.is_some_and(|known| known != epoch) {
            self.transfers.forget(&feed);
            self.end_legs(now, |name| *name == feed, "the hub's log of the feed was started anew");
        }
        let track = self.tracks.entry(feed.clone()).or_insert_with(|| Track::new(feed, epoch));
        track.start(now, epoch, after.0, &mut self.outputs);
        if fresh {
            track.begin_fresh(now);
        }
        let position = track.position();
        self.apply_deadlines(now);
        if known != Some(epoch) {
            self.outputs.push_back(SiteOutput::Checkpoint(position));
        }
    }

    fn take_covered(&mut self, now: Now, covered: &Covered) {
        let track =
            self.tracks.get_mut(&covered.feed).filter(|track| track.started && track.epoch == covered.epoch);
        if let Some(track) = track {
            track.cover(now, covered.from.0, covered.to.0, &mut self.outputs);
        }
    }

    fn take_expired(&mut self, now: Now, expired: &Expired) {
        let track =
            self.tracks.get_mut(&expired.feed).filter(|track| track.started && track.epoch == expired.epoch);
        let Some(track) = track else {
            return;
        };
        let outcome = if expired.late == Some(true) { Outcome::LateAtHub } else { Outcome::Expired };
        for mut receipt in track.expire(now, (&expired.sequences, outcome), &mut self.outputs) {
            if receipt.hub_stored.0 == 0 {
                receipt.hub_stored = expired.stored.unwrap_or_default();
            }
            self.receipts.push(now, receipt);
        }
    }
}
