use std::collections::BTreeMap;

use downburst_model::{Machine as _, Micros, Now, SiteName};
use downburst_vcmtp::{LegRate, Request, Sender, SenderInput, Straggler};

use super::api::{LegInterface, LegOutput, LegSession};

/// What a leg makes of its sites: a rate that their paths carry, datagrams that fit through, proofs for those who
/// read.
pub(super) struct Adaptation<C> {
    rate: LegRate,
    interface: LegInterface,
    /// As long as they may be now.
    datagram_bytes: usize,
    /// Sessions whose last request came by a repair channel.
    channels: BTreeMap<u64, C>,
    /// Sessions that were given the key, and when: proofs have to convince them.
    readers: BTreeMap<u64, Micros>,
    /// It was found out how many sites there are: a large group begins as one.
    counted: bool,
}

impl<C: Clone> Adaptation<C> {
    pub(super) fn new(rate: LegRate, interface: LegInterface, datagram_bytes: usize) -> Self {
        let (channels, readers) = (BTreeMap::new(), BTreeMap::new());
        Self { rate, interface, datagram_bytes, channels, readers, counted: false }
    }

    pub(super) fn reader(&mut self, now: Micros, session: u64) {
        self.readers.insert(session, now);
    }

    pub(super) fn ask_rate(&mut self, rate_bps: u64) {
        self.rate.ask(rate_bps);
    }

    /// Packets up to `sent` exist.
    pub(super) fn asked(
        &mut self,
        now: Micros,
        session: u64,
        request: &Request,
        channel: Option<C>,
        sent: u64,
    ) {
        match channel {
            Some(channel) => drop(self.channels.insert(session, channel)),
            None => drop(self.channels.remove(&session)),
        }
        self.rate.lost(now, session, request, sent);
    }

    /// The way of the site's last request; datagrams would only be lost with the others on a link that is too
    /// narrow.
    pub(super) fn channel_of(&self, session: u64) -> Option<C> {
        self.channels.get(&session).filter(|_| !self.rate.is_struggling(session)).cloned()
    }

    pub(super) fn is_due(&self, now: Micros) -> bool {
        !self.counted || self.rate.is_due(now)
    }

    /// Goes slower while the sites lose together, and faster again when they don't.
    pub(super) fn look(
        &mut self,
        now: Now,
        open: &BTreeMap<SiteName, LegSession>,
        sender: &mut Sender,
    ) -> Vec<LegOutput<C>> {
        self.channels.retain(|session, _| open.values().any(|it| it.session == *session));
        self.forget_readers(now, open, sender);
        let mut outputs: Vec<_> = self.fit(now, open, sender).into_iter().collect();
        let members = open.values().filter(|session| session.hears).count();
        sender.handle(now, SenderInput::Members(members as u64));
        self.counted = true;
        if !self.rate.is_due(now.monotonic) {
            return outputs;
        }
        let changed = self.rate.look(now.monotonic, sender.stats().packets, members);
        let stragglers: Vec<Straggler> = self.rate.stragglers();
        outputs.extend(stragglers.into_iter().map(LegOutput::TakeOff));
        if let Some(rate_bps) = changed {
            sender.handle(now, SenderInput::Rate(rate_bps));
            outputs.push(LegOutput::Rate(rate_bps));
        }
        outputs
    }

    /// The way to a site may be narrower than that to the others, and every datagram goes to all.
    fn fit(
        &mut self,
        now: Now,
        open: &BTreeMap<SiteName, LegSession>,
        sender: &mut Sender,
    ) -> Option<LegOutput<C>> {
        let fitting = self.interface.datagram_bytes(open);
        if fitting == self.datagram_bytes {
            return None;
        }
        self.datagram_bytes = fitting;
        sender.handle(now, SenderInput::DatagramBytes(fitting));
        Some(LegOutput::DatagramBytes(fitting))
    }

    /// Who left needs no proofs. One that was told to join a moment ago is not seen to take part yet.
    fn forget_readers(&mut self, now: Now, open: &BTreeMap<SiteName, LegSession>, sender: &mut Sender) {
        let takes_part = |session: u64| open.values().any(|it| it.session == session && it.offered);
        self.readers.retain(|session, told| {
            let stays = now.monotonic.since(*told) < JOIN_TIME || takes_part(*session);
            if !stays {
                sender.handle(now, SenderInput::ReaderLeft(*session));
            }
            stays
        });
    }
}

/// Between the telling and the session's note that the leg is offered.
pub(super) const JOIN_TIME: Micros = Micros::from_secs(10);
