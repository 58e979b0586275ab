use downburst_model::Now;
use downburst_vcmtp::Request;

use super::HubSession;
use crate::frame::Message;
use crate::{
    ClockReply, Frontier, HubEvent, LegJoined, LegLeft, Nak, Outcome, Receipt, Receipts, SiblingNews, Want,
};

impl HubSession {
    /// Takes a message of an admitted site.
    pub(super) fn take_message(&mut self, now: Now, message: Message) {
        match message {
            Message::ClockRequest(request) => {
                self.send(ClockReply { request_sent: request.sent, received: now.wall, sent: now.wall })
            }
            Message::Frontier(frontier) => self.take_frontier(frontier),
            Message::LegJoined(joined) => self.take_leg_joined(joined),
            Message::LegLeft(left) => self.take_leg_left(left),
            Message::KeyTaken(taken) => {
                if self.offers.has(taken.leg, taken.leg_epoch) {
                    self.event(HubEvent::KeyTaken(taken));
                }
            }
            Message::Nak(nak) => self.take_nak(nak),
            Message::Forged(forged) => {
                if self.offers.has(forged.leg, forged.leg_epoch) {
                    self.event(HubEvent::Forged(forged));
                }
            }
            Message::RelayLegOpen(open) => self.event(HubEvent::RelayLegOpen(open)),
            Message::RelayLegFailed(failed) => self.event(HubEvent::RelayLegFailed(failed)),
            Message::Filed(filed) => self.event(HubEvent::Filed(filed.items)),
            Message::Want(want) => self.take_want(&want),
            Message::Taken(taken) => self.take_taken(&taken),
            Message::Marked(marked) => self.take_marked(marked),
            Message::StreamEnded(ended) => self.take_stream_ended(now, ended),
            Message::CircuitState(state) => self.event(HubEvent::Circuit(state)),
            Message::CircuitHeard(heard) => self.event(HubEvent::CircuitHeard(heard)),
            Message::CircuitProbed(probed) => self.event(HubEvent::CircuitProbed(Box::new(probed))),
            Message::PathProbed(probed) => self.event(HubEvent::PathProbed(Box::new(probed))),
            Message::RelayReport(report) => self.event(HubEvent::RelayReport(report)),
            Message::SiteClock(clock) => self.event(HubEvent::SiteClock(clock)),
            Message::HostReading(reading) => self.event(HubEvent::HostReading(reading)),
            Message::HeartbeatOut(out) => self.event(HubEvent::HeartbeatOut(out)),
            Message::CredentialOffered(offered) => self.event(HubEvent::CredentialOffered(offered)),
            Message::CredentialShown(shown) => self.event(HubEvent::CredentialShown(shown)),
            Message::Late(late) => self.event(HubEvent::Late(late)),
            Message::SiblingPort(port) => self.event(HubEvent::Sibling(SiblingNews::Port(port))),
            Message::ReferralEnded(ended) => self.take_referral_ended(&ended),
            Message::ResentEnded(ended) => self.take_resent_ended(&ended),
            Message::ResentFailed(failed) => self.take_resent_failed(now, &failed),
            _ => self.violation("the site sent a frame that only a hub sends, or a second hello".to_owned()),
        }
    }

    fn take_nak(&mut self, nak: Nak) {
        if self.offers.has(nak.leg, nak.leg_epoch) {
            let Nak { leg, leg_epoch, packets, heard, symbols, unanswered, losses } = nak;
            let unanswered = unanswered.unwrap_or_default();
            let request = Request { packets, heard, symbols, unanswered, losses };
            self.event(HubEvent::Nak { leg, leg_epoch, request });
        }
    }

    fn take_frontier(&mut self, frontier: Frontier) {
        if let Some(serve) = self.serving(&frontier.feed, frontier.epoch) {
            serve.acknowledge(0, frontier.settled_to.0);
        }
        self.event(HubEvent::Frontier(frontier));
    }

    fn take_leg_joined(&mut self, joined: LegJoined) {
        let Some((join, messages)) = self.offers.joined(joined.leg, joined.leg_epoch, joined.after.0) else {
            return;
        };
        self.send_all(messages);
        match self.offers.beside_to(join.leg) {
            Some(to) => self.catch_up_joined(&join, (joined.after.0, to)),
            None => {
                self.follow_coverage(&join.feed, join.epoch);
                self.leave_to_leg(&join.feed, join.epoch, joined.after.0);
            }
        }
        self.event(HubEvent::LegJoined { leg: joined.leg, after: joined.after, reception: joined.reception });
    }

    fn take_leg_left(&mut self, left: LegLeft) {
        let beside_to = self.offers.beside_to(left.leg);
        let Some((join, covered_after)) = self.offers.left(left.leg) else {
            return;
        };
        self.follow_coverage(&join.feed, join.epoch);
        if let Some(after) = covered_after
            && let Some(serve) = self.serving(&join.feed, join.epoch)
        {
            let known_to = left.known_to.map_or(after, |known| known.0.max(after));
            match beside_to {
                Some(to) => serve.catch_up_ended(known_to, to),
                None => serve.leg_ended(known_to),
            }
        }
        if let Some(epoch) = self.served_epoch(&join.feed) {
            self.release_offers(&join.feed, epoch);
        }
        self.event(HubEvent::LegLeft(left));
    }

    fn take_want(&mut self, want: &Want) {
        if let Some(serve) = self.serving(&want.feed, want.epoch) {
            serve.want(&want.sequences);
        }
    }

    pub(super) fn take_receipts(&mut self, now: Now, receipts: Receipts) {
        self.serving.deadlines.arrived(now, receipts.clock, &receipts.items);
        let follows = |one: &Receipt, next: &Receipt| {
            one.key.sequence.0.checked_add(1) == Some(next.key.sequence.0)
                && one.key.epoch == next.key.epoch
                && one.key.feed == next.key.feed
        };
        for run in receipts.items.chunk_by(follows) {
            self.note_receipts(run);
        }
        self.event(HubEvent::Receipts { clock: receipts.clock, items: receipts.items });
    }

    /// Records receipts with consecutive numbers.
    fn note_receipts(&mut self, run: &[Receipt]) {
        let [first, ..] = run else {
            return;
        };
        let key = &first.key;
        if let Some(serve) = self.serving(&key.feed, key.epoch) {
            let more = (run.len() as u64).saturating_sub(1);
            serve.acknowledge(key.sequence.0, key.sequence.0.saturating_add(more));
            let kept = run.iter().filter(|it| matches!(it.outcome, Outcome::Stored | Outcome::Held));
            let newest = kept.map(|receipt| receipt.hub_stored).max();
            serve.newest_stored =
                newest.map_or(serve.newest_stored, |newest| newest.max(serve.newest_stored));
        }
    }
}
