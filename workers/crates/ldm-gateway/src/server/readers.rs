//! The product log behind a connection that is served: a cursor for each feed, the more urgent ones first.
use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use downburst_ldm6::{FeedType, ProductInfo, Served, Signature};
use downburst_log::{LogEntry, ProductLog as _};
use downburst_model::{Class, Sequence, WallMicros};
use md5::{Digest as _, Md5};
use tokio::sync::Notify;

use super::positions::{Positions, Reached};
use crate::description;
use crate::hub::{Feed, Hub, LogListener, Sent};
use crate::routes::Route;

/// All feeds of a connection.
pub(super) struct Readers {
    /// Who is served with what.
    key: String,
    readers: Vec<Reader>,
    /// Which of them gave the last product.
    at_hand: usize,
    pub(super) news: Arc<Notify>,
    /// Products that were passed over, with why, since that was asked last.
    pub(super) gone: u64,
    pub(super) too_old: u64,
    pub(super) too_large: u64,
}

struct Reader {
    feed: Arc<dyn Feed>,
    /// Of products that no LDM gave a type: all of the feed's, so that who asks for any of them gets them.
    own_type: FeedType,
    class: Class,
    /// Products stored longer ago are not sent any more.
    max_age_us: Option<i64>,
    /// Everything up to here was read.
    read_to: Sequence,
    batch: VecDeque<LogEntry>,
    /// Everything up to here was handed over.
    sent_to: Sequence,
    /// That, when the peer was asked behind it last, and when it answered.
    asked_to: Sequence,
    answered_to: Sequence,
    listener: Box<dyn LogListener>,
    products: u64,
    bytes: u64,
}

/// A product on its way to the peer.
pub(super) struct Next {
    pub(super) info: ProductInfo,
    pub(super) bytes: Bytes,
}

impl Readers {
    /// Finds where the peer goes on.
    pub(super) fn open<'a>(
        positions: &Positions,
        peer: &str,
        served: &Served,
        allowed: impl Iterator<Item = (&'a Route, Option<i64>)>,
    ) -> Self {
        let specs: Vec<String> =
            served.class.specs.iter().map(|spec| format!("{} {}", spec.feeds, spec.pattern)).collect();
        let key = short(format!("{peer} {:?} {}", served.interest, specs.join(", ")));
        let news = Arc::new(Notify::new());
        let allowed: Vec<(&Route, Option<i64>)> = allowed.collect();
        let known = known(served, allowed.iter().map(|(route, _)| *route));
        let reader = |(route, max_age_us): (&Route, Option<i64>)| {
            let feed = Arc::clone(&route.feed);
            let position = positions.find(&key, feed.log().feed());
            let from = begin(&feed, served, known.as_ref(), position);
            let notified = Arc::clone(&news);
            let listener = feed.listen(Box::new(move || notified.notify_one()));
            Reader {
                own_type: route.types,
                class: feed.class(),
                max_age_us,
                read_to: from,
                batch: VecDeque::new(),
                sent_to: from,
                asked_to: from,
                answered_to: from,
                listener,
                products: 0,
                bytes: 0,
                feed,
            }
        };
        let readers = allowed.into_iter().map(reader).collect();
        Self { key, readers, at_hand: 0, news, gone: 0, too_old: 0, too_large: 0 }
    }

    /// The next product: of the most urgent class, and of that the one that was stored first.
    pub(super) fn next(&mut self, hub: &dyn Hub) -> Option<Next> {
        let now = hub.clock().wall();
        loop {
            for reader in &mut self.readers {
                reader.fill(hub);
            }
            let waiting = self.readers.iter().enumerate().filter_map(|(at, reader)| {
                let front = reader.batch.front()?;
                Some((reader.class, front.info.stored, at))
            });
            let (_, _, at) = waiting.min()?;
            self.at_hand = at;
            let reader = self.readers.get_mut(at)?;
            let entry = reader.batch.pop_front()?;
            reader.sent_to = entry.info.key.sequence;
            if entry.info.id.is_heartbeat() {
                continue;
            }
            if reader.max_age_us.is_some_and(|most| now.0.saturating_sub(entry.info.stored.0) > most) {
                self.too_old += 1;
                continue;
            }
            match (description::description(&entry, reader.own_type), entry.bytes) {
                (Some(info), Some(bytes)) => return Some(Next { info, bytes }),
                (_, None) => self.gone += 1,
                (None, Some(_)) => self.too_large += 1,
            }
        }
    }

    /// Bytes of the product that was handed over last go out.
    pub(super) fn sends(&mut self, bytes: u64, is_begin: bool) {
        if let Some(reader) = self.readers.get_mut(self.at_hand) {
            reader.bytes += bytes;
            reader.products += u64::from(is_begin);
        }
    }

    /// Enters what went out in the hub's account, under the feeds' unicast legs; returns how many products that were.
    pub(super) fn account(&mut self, hub: &dyn Hub) -> (u64, u64) {
        let (mut all_products, mut all_bytes) = (0, 0);
        for reader in self.readers.iter_mut().filter(|reader| reader.products > 0 || reader.bytes > 0) {
            let (products, bytes) = (std::mem::take(&mut reader.products), std::mem::take(&mut reader.bytes));
            let (feed, leg) = (reader.feed.log().feed().clone(), reader.feed.unicast_leg());
            let wire_bytes = bytes.saturating_add(products.saturating_mul(ENVELOPE_BYTES));
            hub.count_sent(&Sent { feed, leg, products, bytes, wire_bytes });
            all_products += products;
            all_bytes += bytes;
        }
        (all_products, all_bytes)
    }

    /// The peer is asked behind everything that went out.
    pub(super) fn asked(&mut self) {
        self.readers.iter_mut().for_each(|reader| reader.asked_to = reader.sent_to);
    }

    /// It answered.
    pub(super) fn answered(&mut self, positions: &Positions) {
        self.readers.iter_mut().for_each(|reader| reader.answered_to = reader.asked_to);
        let reached = |reader: &Reader| {
            let reached = Reached { epoch: reader.feed.log().epoch().0, sequence: reader.answered_to };
            (reader.feed.log().feed().clone(), reached)
        };
        positions.reached(&self.key, self.readers.iter().map(reached));
    }
}

impl Reader {
    /// Reads on where everything was handed over.
    fn fill(&mut self, hub: &dyn Hub) {
        if !self.batch.is_empty() {
            return;
        }
        self.listener.take();
        let head = self.feed.log().head();
        while self.batch.is_empty() && self.read_to < head {
            match self.feed.log().read(self.read_to, head, READ_BYTES, READ_ENTRIES) {
                Ok(read) => {
                    self.read_to = read.read_to;
                    self.batch.extend(read.entries);
                }
                Err(error) => return hub.unreadable(self.feed.log().feed(), &error),
            }
        }
        if self.batch.is_empty() {
            self.sent_to = self.read_to;
        }
    }
}

/// A key that a long request does not make longer: what it stands for is compared, and read by nobody.
fn short(key: String) -> String {
    if key.len() <= KEY_BYTES {
        return key;
    }
    let digest = Signature(Md5::digest(&key).into());
    let begin: String = key.chars().take(KEY_BYTES / 8).collect();
    format!("{begin}~{digest}")
}

/// The product that the peer received last, if a feed has it.
struct LastReceived {
    feed: Arc<dyn Feed>,
    sequence: Sequence,
    stored: WallMicros,
}

fn known<'a>(served: &Served, mut routes: impl Iterator<Item = &'a Route>) -> Option<LastReceived> {
    let signature = served.resume?;
    routes.find_map(|route| {
        let sequence = route.feed.log().find_signature(&signature.0).ok().flatten()?;
        let stored = route.feed.log().entry(sequence).ok().flatten()?.info.stored;
        Some(LastReceived { feed: Arc::clone(&route.feed), sequence, stored })
    })
}

/// Where a feed begins for a peer.
///
/// Behind the product that it got last in that one's feed; behind its last acknowledged product in the
/// others. Where that is forgotten: products as urgent as the last one were sent before it if they were
/// stored before it, and of the rest nothing is known. The hub sends too much then rather than too little;
/// LDMs drop products that they have.
fn begin(
    feed: &Arc<dyn Feed>,
    served: &Served,
    known: Option<&LastReceived>,
    position: Option<Reached>,
) -> Sequence {
    let from_time = || feed.log().find_time(served.class.from.into());
    let Some(known) = known else { return from_time() };
    if Arc::ptr_eq(&known.feed, feed) {
        return known.sequence;
    }
    match position.filter(|position| position.epoch == feed.log().epoch().0) {
        Some(position) => position.sequence,
        None if feed.class() <= known.feed.class() => {
            feed.log().find_time(WallMicros(known.stored.0.saturating_sub(CLOSE_US)))
        }
        None => from_time(),
    }
}

/// Requests of people are shorter; one with 32 patterns of 255 bytes is not written anew every few seconds.
const KEY_BYTES: usize = 1_024;

/// As much as a session reads at once.
const READ_BYTES: usize = 1 << 20;
const READ_ENTRIES: usize = 256;

/// What a call, its description and TCP take beside a product, about.
const ENVELOPE_BYTES: u64 = 150;

/// Feeds are written side by side: stamps closer than this tell no order.
const CLOSE_US: i64 = 5_000_000;
