use std::collections::BTreeMap;

use downburst_model::{Machine as _, Micros, Now, SiteName};
use downburst_vcmtp::{LegRate, Request, Sender, SenderInput, Straggler};

use super::api::{LegInterface, LegOutput, LegSession};
use super::intervals::{Intervals, Tried};
use super::trials::{LegTrial, SiteLoss};

/// A leg's adaptation to its sites: the rate follows their losses, datagrams fit their paths, and proofs cover all
/// readers.
pub(super) struct Adaptation<C> {
    rate: LegRate,
    intervals: Intervals,
    interface: LegInterface,
    /// The current maximum length.
    datagram_bytes: usize,
    /// Repair channels of the sessions whose last request arrived over one.
    channels: BTreeMap<u64, C>,
    /// Sessions that received the key, with the time: proofs have to convince them.
    readers: BTreeMap<u64, Micros>,
    /// The most that the leg may take at present.
    cap_bps: u64,
    /// True once the sites were counted: a large group starts as one.
    counted: bool,
}

impl<C: Clone> Adaptation<C> {
    pub(super) fn new(rate: LegRate, interface: LegInterface, datagram_bytes: usize) -> Self {
        let (channels, readers, intervals) = (BTreeMap::new(), BTreeMap::new(), Intervals::default());
        Self {
            rate,
            intervals,
            interface,
            datagram_bytes,
            channels,
            readers,
            cap_bps: u64::MAX,
            counted: false,
        }
    }

    pub(super) fn reader(&mut self, now: Micros, session: u64) {
        self.readers.insert(session, now);
    }

    /// Changes the interface's MTU; the next look fits the datagrams to it.
    pub(super) fn mtu(&mut self, mtu_bytes: Option<u64>) {
        self.interface.mtu_bytes = mtu_bytes;
        self.counted = false;
    }

    pub(super) fn rate_bps(&self) -> u64 {
        self.rate.current_bps()
    }

    pub(super) fn ask_rate(&mut self, rate_bps: u64) {
        self.rate.ask(rate_bps);
    }

    /// Limits the rate from here on; returns the rate to take.
    pub(super) fn cap(&mut self, rate_bps: u64) -> u64 {
        self.cap_bps = rate_bps;
        self.rate.current_bps().min(rate_bps)
    }

    /// Handles a request of a session. Packets up to `sent` exist.
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
        self.intervals.asked(session, &request.packets, sent);
        self.rate.lost(now, session, request, sent);
    }

    /// The channel of the site's last request. None for a struggling site: on a link that is too narrow, datagrams
    /// would be lost like the others.
    pub(super) fn channel_of(&self, session: u64) -> Option<C> {
        self.channels.get(&session).filter(|_| !self.rate.is_struggling(session)).cloned()
    }

    pub(super) fn is_due(&self, now: Micros) -> bool {
        !self.counted || self.rate.is_due(now)
    }

    /// Lowers the rate while the sites lose together, and raises it when they don't.
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
        outputs.extend(self.trials(now.monotonic, open, sender).into_iter().map(LegOutput::Trial));
        let changed = self.rate.look(now.monotonic, sender.stats().packets, members);
        let stragglers: Vec<Straggler> = self.rate.stragglers();
        outputs.extend(stragglers.into_iter().map(LegOutput::TakeOff));
        if let Some(rate_bps) = changed {
            sender.handle(now, SenderInput::Rate(rate_bps.min(self.cap_bps)));
            outputs.push(LegOutput::Rate(rate_bps));
        }
        self.intervals.begin(now.monotonic, self.sent_bps(), &sender.stats());
        outputs
    }

    /// The rate at which packets leave.
    fn sent_bps(&self) -> u64 {
        self.rate.current_bps().min(self.cap_bps)
    }

    /// Ends the present interval; the trials whose losses are known by now.
    fn trials(
        &mut self,
        now: Micros,
        open: &BTreeMap<SiteName, LegSession>,
        sender: &Sender,
    ) -> Vec<LegTrial> {
        let shares = self.rate.reported_shares();
        let found = self.intervals.end(now, self.sent_bps(), &sender.stats(), shares.as_ref());
        let named = |Tried { rate_bps, packets, lost: by_session }: Tried| {
            let lost = open.iter().filter_map(|(site, it)| {
                let packets = *by_session.get(&it.session)?;
                Some(SiteLoss { site: site.clone(), packets })
            });
            LegTrial { rate_bps, packets, lost: lost.collect() }
        };
        found.into_iter().map(named).collect()
    }

    /// Fits the length of datagrams to the narrowest path: the path to one site may be narrower than the others,
    /// and every datagram goes to all.
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

    /// Drops readers that left, which need no proofs. A session that was asked to join recently is kept, as it is
    /// not marked as offered yet.
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

/// Time between the request to join and the session's note that the leg is offered.
pub(super) const JOIN_TIME: Micros = Micros::from_secs(10);
