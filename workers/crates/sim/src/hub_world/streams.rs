use std::collections::BTreeMap;

use bytes::Bytes;
use downburst_hub::SessionInput;
use downburst_model::{Micros, Now};
use downburst_session::{HubInput, Opening, StreamId, Ticket, Tickets};
use downburst_site::Input;

use super::hub::Hub;
use super::site::Site;
use crate::net::Stream;

/// A site's data connections: their delays, the established ones, and the breaks not yet noticed by one side.
#[derive(Default)]
pub(super) struct DataLinks {
    /// The n-th connection of a session takes the n-th of these delays, cyclically.
    delays: Vec<Micros>,
    tickets: Tickets<StreamId>,
    drawn: u64,
    dials: BTreeMap<StreamId, Micros>,
    links: BTreeMap<StreamId, DataLink>,
    /// Breaks that one side has still to notice, each with its time and reason.
    news: BTreeMap<(Micros, StreamId, Side), &'static str>,
}

struct DataLink {
    down: Stream<Bytes>,
    up: Stream<Bytes>,
    /// True if the hub closed it: it ends for the site after everything has arrived.
    closing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Hub,
    Site,
}

impl DataLinks {
    pub(super) fn new(delays: Vec<Micros>) -> Self {
        Self { delays, ..Self::default() }
    }

    /// Ends all data connections after the first connection broke.
    pub(super) fn clear(&mut self) {
        self.dials.clear();
        self.links.clear();
        self.news.clear();
    }

    pub(super) fn standing(&self) -> Vec<StreamId> {
        self.links.keys().copied().collect()
    }

    pub(super) fn deadline(&self) -> Option<Micros> {
        let links = self.links.values().flat_map(|link| [link.down.deadline(), link.up.deadline()]).flatten();
        let news = self.news.keys().map(|(at, ..)| *at);
        links.chain(news).chain(self.dials.values().copied()).min()
    }

    fn delay(&self, stream: StreamId) -> Micros {
        let count = self.delays.len().max(1);
        self.delays.get(stream.0 as usize % count).copied().unwrap_or(Micros(1_000))
    }
}

impl Site {
    pub(super) fn draw_ticket(&mut self, now: Now, hub: &Hub, stream: StreamId) {
        self.data.drawn += 1;
        let ticket = Ticket(u128::from(self.data.drawn).to_be_bytes());
        self.data.tickets.issue(now.monotonic, ticket.clone(), stream);
        self.tell_hub(now, hub, SessionInput::Pass(HubInput::Ticket { stream, ticket }));
    }

    pub(super) fn dial(&mut self, now: Now, stream: StreamId) {
        let at = now.monotonic.plus(self.data.delay(stream)).plus(self.data.delay(stream));
        self.data.dials.insert(stream, at);
    }

    pub(super) fn send_data(&mut self, now: Now, stream: StreamId, bytes: Bytes) {
        if let Some(link) = self.data.links.get_mut(&stream) {
            let length = bytes.len() as u64;
            link.down.send(now.monotonic, bytes, length);
        }
    }

    pub(super) fn send_data_up(&mut self, now: Now, stream: StreamId, bytes: Bytes) {
        if let Some(link) = self.data.links.get_mut(&stream) {
            link.up.send(now.monotonic, bytes, 0);
        }
    }

    /// Closes a connection at the hub: it ends after the arrival of everything sent.
    pub(super) fn close_data(&mut self, stream: StreamId) {
        if let Some(link) = self.data.links.get_mut(&stream) {
            link.closing = true;
        }
    }

    /// Breaks a data connection; each side notices after its own delay.
    pub(super) fn break_data(&mut self, now: Now, stream: StreamId, hub_knows: Micros, site_knows: Micros) {
        if self.data.links.remove(&stream).is_some() {
            let (hub, site) = (now.monotonic.plus(hub_knows), now.monotonic.plus(site_knows));
            self.data.news.insert((hub, stream, Side::Hub), "it broke");
            self.data.news.insert((site, stream, Side::Site), "it broke");
        }
    }

    /// Does the work that is due on the data connections.
    pub(super) fn carry_data(&mut self, now: Now, hub: &Hub) -> bool {
        let mut busy = self.tell_news(now, hub);
        busy |= self.answer_dials(now);
        for stream in self.data.standing() {
            while let Some(bytes) = self.data_arrived(now, stream) {
                self.tell_hub(now, hub, SessionInput::Taken { stream, bytes: bytes.len() });
                self.deliver_pieces(now, stream, bytes);
                busy = true;
            }
            while let Some(bytes) = self.data_arrived_up(now, stream) {
                self.show_ticket(now, hub, stream, &bytes);
                busy = true;
            }
            let over = self
                .data
                .links
                .get(&stream)
                .is_some_and(|link| link.closing && link.down.deadline().is_none());
            if over {
                self.data.links.remove(&stream);
                self.tell_site_closed(now, stream, "the hub closed it");
                busy = true;
            }
        }
        busy
    }

    fn data_arrived(&mut self, now: Now, stream: StreamId) -> Option<Bytes> {
        self.data.links.get_mut(&stream)?.down.receive(now.monotonic)
    }

    fn data_arrived_up(&mut self, now: Now, stream: StreamId) -> Option<Bytes> {
        self.data.links.get_mut(&stream)?.up.receive(now.monotonic)
    }

    fn show_ticket(&mut self, now: Now, hub: &Hub, stream: StreamId, bytes: &[u8]) {
        let Opening::Data(ticket) = Opening::of(bytes) else {
            panic!("a data connection of {} begins with {bytes:?}", self.name);
        };
        match self.data.tickets.redeem(now.monotonic, &ticket) {
            Some(redeemed) => {
                assert_eq!(redeemed, stream, "the ticket of another stream");
                self.tell_hub(now, hub, SessionInput::StreamOpened(stream));
            }
            None => self.close_data(stream),
        }
    }

    /// Answers due attempts to connect; one in eight fails.
    fn answer_dials(&mut self, now: Now) -> bool {
        let due: Vec<StreamId> = self
            .data
            .dials
            .iter()
            .filter(|(_, at)| **at <= now.monotonic)
            .map(|(stream, _)| *stream)
            .collect();
        for stream in &due {
            self.data.dials.remove(stream);
            if self.dice.chance(0.125) {
                self.tell_site_closed(now, *stream, "no route");
                continue;
            }
            let delay = self.data.delay(*stream);
            let (down, up) = (Stream::new(delay, Some(self.config.rate_bps)), Stream::new(delay, None));
            self.data.links.insert(*stream, DataLink { down, up, closing: false });
            self.tell(now, Input::StreamOpened(*stream));
        }
        !due.is_empty()
    }

    fn tell_news(&mut self, now: Now, hub: &Hub) -> bool {
        let mut busy = false;
        while let Some(first) = self.data.news.first_entry().filter(|first| first.key().0 <= now.monotonic) {
            let (_, stream, side) = *first.key();
            let reason = first.remove();
            match side {
                Side::Hub => {
                    let reason = reason.to_owned();
                    self.tell_hub(now, hub, SessionInput::StreamClosed { stream, reason });
                }
                Side::Site => self.tell_site_closed(now, stream, reason),
            }
            busy = true;
        }
        busy
    }

    fn tell_site_closed(&mut self, now: Now, stream: StreamId, reason: &str) {
        self.tell(now, Input::StreamClosed { stream, reason: reason.to_owned() });
    }
}
