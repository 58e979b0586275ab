//! The stage of a conversation: both machines, connected without delay, and the sender of a multicast leg.

use std::collections::{BTreeSet, VecDeque};

use downburst_model::{LegId, Machine, Sequence};
use downburst_vcmtp::{Sender, SenderConfig, SenderInput, SenderOutput};

use crate::file::{Conversation, Event, Hex, HubAct, Offer, Published, Show, What};
use crate::peers::{HubPeer, SitePeer, hub_now, leg_join};
use crate::scripts::LEG;

pub struct Stage {
    at_us: u64,
    hub: HubPeer,
    site: SitePeer,
    leg: Option<(Offer, Sender)>,
    /// The numbers, from 1, of the datagrams that are lost on their way to the site.
    lost_datagrams: BTreeSet<u64>,
    datagrams: u64,
    conversation: Conversation,
}

impl Stage {
    pub fn new(conversation: Conversation) -> Self {
        Self {
            at_us: 0,
            hub: HubPeer::default(),
            site: SitePeer::new(&conversation),
            leg: None,
            lost_datagrams: BTreeSet::new(),
            datagrams: 0,
            conversation,
        }
    }

    /// Lets the site find the bytes of a product damaged this many times.
    pub fn damage(&mut self, feed: &str, sequence: u64, times: u32) {
        self.conversation.damaged.push((feed.to_owned(), sequence, times));
        self.site = SitePeer::new(&self.conversation);
    }

    /// Lets the site already hold these products, under other numbers.
    pub fn hold(&mut self, ids: &[&str]) {
        self.conversation.held = ids.iter().map(|id| (*id).to_owned()).collect();
        self.site = SitePeer::new(&self.conversation);
    }

    pub fn connect(&mut self, show: Show) {
        self.note(What::Connect(show.clone()));
        self.hub.accept(self.at_us);
        self.site.connect(self.at_us, &show);
        self.talk();
    }

    pub fn disconnect(&mut self) {
        self.note(What::Disconnect);
        self.hub.hang_up();
        self.site.hang_up(self.at_us);
        self.talk();
    }

    pub fn hub(&mut self, act: HubAct) {
        let published = if let HubAct::Publish(published) = &act { Some(published.clone()) } else { None };
        self.happen(act);
        if let Some(published) = published {
            self.send_by_leg(&published);
        }
        self.talk();
    }

    /// Offers a leg that carries the products published from now on; its datagrams in `lost` do not arrive.
    pub fn leg(&mut self, offer: Offer, after: u64, lost: &[u64]) {
        let (leg, key) = (LegId(offer.leg), leg_join(&offer).key);
        let mut config = SenderConfig::new(leg, offer.leg_epoch, key, Sequence(after), offer.rate_bps);
        config.datagram_bytes = 1_200;
        self.leg = Some((offer.clone(), Sender::new(config)));
        self.lost_datagrams = lost.iter().copied().collect();
        self.hub(HubAct::OfferLeg(offer));
    }

    /// Ends the leg's sender, which then sends nothing more.
    pub fn silence_leg(&mut self) {
        self.leg = None;
    }

    /// Breaks a data connection; both sides notice.
    pub fn break_stream(&mut self, stream: u32) {
        self.note(What::StreamBreaks(stream));
        self.hub.stream_breaks(self.at_us, stream);
        self.site.stream_breaks(self.at_us, stream);
        self.talk();
    }

    /// Advances time.
    pub fn wait(&mut self, millis: u64) {
        let end = self.at_us + millis * 1_000;
        loop {
            self.talk();
            let leg = self.leg.as_ref().and_then(|(_, sender)| sender.deadline()).map(|at| at.0);
            let due = [self.hub.deadline_us(), self.site.deadline_us(), leg].into_iter().flatten().min();
            match due.filter(|due| *due <= end) {
                Some(due) => self.at_us = due.max(self.at_us),
                None => break self.at_us = end,
            }
        }
        self.talk();
    }

    pub fn end(mut self) -> Conversation {
        assert_eq!((&self.hub.complaints, &self.site.complaints), (&Vec::new(), &Vec::new()));
        self.conversation.outcome = self.site.outcome();
        self.conversation
    }

    /// Runs both until neither has more to send; the sender of the leg gets the requests for it.
    fn talk(&mut self) {
        for _ in 0..TALK_ROUNDS {
            self.carry();
            if !self.run_leg() {
                return;
            }
        }
        panic!("they talk for ever");
    }

    /// Passes one frame after another to the other side, which answers each before the next, as in a replay.
    fn carry(&mut self) {
        let (mut to_site, mut to_hub) = (VecDeque::new(), VecDeque::new());
        loop {
            to_site.extend(self.hub.frames(self.at_us));
            to_hub.extend(self.site.frames(self.at_us));
            if let Some(said) = to_site.pop_front() {
                self.site.hear(self.at_us, &said);
                self.note(What::hub_says(said));
            } else if let Some(said) = to_hub.pop_front() {
                self.hub.hear(self.at_us, &said);
                self.note(What::site_says(said));
            } else if let Some(stream) = self.site.dials() {
                self.site.stream_stands(self.at_us, stream);
                self.note(What::StreamStands(stream));
            } else {
                return;
            }
        }
    }

    /// Runs the leg; returns true if it sent anything.
    fn run_leg(&mut self) -> bool {
        let naks = std::mem::take(&mut self.hub.naks);
        let Some((_, sender)) = &mut self.leg else { return false };
        let now = hub_now(self.at_us);
        for (_, request) in naks {
            sender.handle(now, SenderInput::Nak { site: 1, request });
        }
        let said: Vec<SenderOutput> = std::iter::from_fn(|| sender.poll(now)).collect();
        let spoke = !said.is_empty();
        said.into_iter().for_each(|output| self.take_from_leg(output));
        spoke
    }

    fn take_from_leg(&mut self, output: SenderOutput) {
        let (leg, leg_epoch) = (LEG, self.leg.as_ref().map_or(0, |(offer, _)| offer.leg_epoch));
        match output {
            SenderOutput::Datagram(bytes) => {
                self.datagrams += 1;
                if !self.lost_datagrams.contains(&self.datagrams) {
                    self.site.datagram(self.at_us, leg, &bytes);
                    self.note(What::Datagram { leg, bytes: Hex(bytes.to_vec()) });
                    self.carry();
                }
            }
            SenderOutput::Repair { packet, payload, .. } => {
                self.happen(HubAct::Repair { leg, leg_epoch, packet, payload: Hex(payload.to_vec()) });
            }
            SenderOutput::Gone { packets, .. } => {
                self.happen(HubAct::PacketsGone { leg, leg_epoch, packets: packets.iter().collect() });
            }
            SenderOutput::FirstByte(_) | SenderOutput::Sent(_) => {}
        }
    }

    fn happen(&mut self, act: HubAct) {
        self.hub.act(self.at_us, &act);
        self.note(What::Hub(act));
        self.carry();
    }

    fn send_by_leg(&mut self, published: &Published) {
        let now = hub_now(self.at_us);
        if let Some((offer, sender)) = self.leg.as_mut().filter(|(offer, _)| offer.feed == published.feed) {
            let (info, bytes) = self.hub.product(published);
            assert_eq!(info.key.epoch.0, offer.epoch);
            sender.handle(now, SenderInput::Product { info, bytes: bytes.into() });
        }
    }

    fn note(&mut self, what: What) {
        self.conversation.events.push(Event { at_us: self.at_us, what });
    }
}

/// The maximum number of rounds of answers without a step in time.
const TALK_ROUNDS: usize = 1_000;
