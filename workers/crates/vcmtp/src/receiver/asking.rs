//! The requests of a receiver, their way to the sender, and its loss reports.
use downburst_model::{Micros, RangeSet};

use super::Receiver;
use crate::channel::SiteChannel;
use crate::packet::notice::SMALL_GROUP;
use crate::receiver::suppression::Covered;
use crate::{ReceiverOutput, Request};

impl Receiver {
    /// Requests the packets that are due, unless their repair is announced or under way.
    pub(super) fn ask(&mut self, now: Micros) {
        if now < self.suppression.next_request() {
            return;
        }
        // Requests in a large group have random times, and shared steps would synchronize them again.
        let is_large_group = self.suppression.group_size(now) > SMALL_GROUP;
        let Self { missing, shared_losses, payload_store, joined, .. } = self;
        let highest = joined.map_or(0, |joined| joined.highest);
        let due = missing.ask(now, |due| {
            if is_large_group { None } else { shared_losses.later(now, payload_store, highest, due) }
        });
        let mut wanted = self.worth_asking(now, due.clone());
        for covered in self.suppression.covering(now, &due) {
            let all = self.worth_asking(now, self.missing.within(covered.first, covered.last));
            if all.is_empty() {
                continue;
            }
            if covered.brings.is_none_or(|brings| all.count() <= brings) {
                self.put_off(now, &due, &covered, &mut wanted);
            } else {
                // The sender derives a site's losses from its requests.
                all.iter().for_each(|(first, last)| self.missing.note_asked(first, last, now));
                wanted = wanted.iter().chain(all.iter()).collect();
            }
        }
        if !wanted.is_empty() {
            self.suppression.asked(now);
            self.stats.requests += 1;
            self.request(now, wanted);
        }
    }

    /// Requests by the channel if it gets through; packets requested too often are requested over the session.
    fn request(&mut self, now: Micros, wanted: RangeSet) {
        let heard = self.joined.map(|joined| joined.highest);
        let request = |packets: RangeSet| Request {
            heard,
            symbols: self.payload_store.symbols_heard(&packets),
            packets,
            ..Request::default()
        };
        let Some(channel) = &mut self.channel else {
            return self.outputs.push_back(ReceiverOutput::Nak(request(wanted)));
        };
        let vain = if channel.is_open() { self.missing.asked_in_vain(&wanted) } else { RangeSet::new() };
        let mut rest = wanted;
        vain.iter().for_each(|(first, last)| rest.remove(first, last));
        let by_session = [Some(request(vain)), channel.ask(now, request(rest))];
        let by_session = by_session.into_iter().flatten().filter(|request| !request.packets.is_empty());
        self.outputs.extend(by_session.map(ReceiverOutput::Nak));
    }

    fn worth_asking(&self, now: Micros, wanted: RangeSet) -> RangeSet {
        self.payload_store.worth_asking(now, wanted, |first, last| self.missing.within(first, last))
    }

    /// Postpones packets with an announced repair until it expires, plus a random backoff, like other sites.
    fn put_off(&mut self, now: Micros, due: &RangeSet, covered: &Covered, wanted: &mut RangeSet) {
        let again = covered.until.plus(self.suppression.backoff(now));
        for (first, last) in due.iter() {
            let (first, last) = (first.max(covered.first), last.min(covered.last));
            if first <= last {
                let rest = self.missing.put_off(now, (first, last), again);
                rest.gaps(first, last).for_each(|(first, last)| wanted.remove(first, last));
            }
        }
    }

    /// Performs the channel's actions that are due; none while the group is silent, as there is nothing to request.
    pub(super) fn advance_channel(&mut self, now: Micros) {
        let silent = self.joined.is_some_and(|joined| joined.silent);
        let Some(channel) = self.channel.as_mut().filter(|_| !silent) else { return };
        let was_open = channel.is_open();
        let vain = channel.advance(now);
        if was_open && !channel.is_open() {
            self.missing.change_retry_wait(self.config.retry_wait);
            self.outputs.push_back(ReceiverOutput::Channel { open: false });
        }
        self.missing.ask_again(now, &vain);
    }

    pub(super) fn send_requests(&mut self) {
        while let Some(datagram) = self.channel.as_mut().and_then(SiteChannel::next_datagram) {
            self.stats.asked += 1;
            self.outputs.push_back(ReceiverOutput::Ask(datagram));
        }
    }

    /// Reports losses in a large group, where requests do not show them to the sender.
    pub(super) fn tell_losses(&mut self, now: Micros) {
        let Some(joined) = self.joined else { return };
        let members = self.suppression.group_size(now);
        let Some(losses) = self.loss_reports.due(now, members, joined.highest, self.stats.missed) else {
            return;
        };
        let report = Request { heard: Some(joined.highest), losses: Some(losses), ..Request::default() };
        let by_session = match &mut self.channel {
            Some(channel) => channel.ask(now, report),
            None => Some(report),
        };
        self.outputs.extend(by_session.map(ReceiverOutput::Nak));
    }
}
