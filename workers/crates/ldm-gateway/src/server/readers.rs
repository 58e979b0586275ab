//! Cursors of a served connection in the product logs: one for each feed, more urgent feeds first.
use std::collections::VecDeque;
use std::sync::Arc;

use downburst_ldm6::{FeedType, ProductInfo, Served, Signature};
use downburst_log::{LogEntry, ProductLog as _};
use downburst_model::{Class, Content, Sequence, WallMicros};
use md5::{Digest as _, Md5};
use tokio::sync::Notify;

use super::positions::{Positions, Reached};
use crate::description;
use crate::hub::{Feed, Hub, LogListener, Sent};
use crate::routes::Route;

/// All feeds of a connection.
pub(super) struct Readers {
    /// Peer and request, as the key of the positions.
    key: String,
    readers: Vec<Reader>,
    /// Index of the reader that gave the last product.
    at_hand: usize,
    pub(super) news: Arc<Notify>,
    /// Skipped products, by reason, since the counts were last taken.
    pub(super) gone: u64,
    pub(super) too_old: u64,
    pub(super) too_large: u64,
}

struct Reader {
    feed: Arc<dyn Feed>,
    /// The type of products without one from an LDM: all types of the feed, so that a request for any of them
    /// matches.
    own_type: FeedType,
    class: Class,
    /// Products stored longer ago are not sent.
    max_age_us: Option<i64>,
    /// The last sequence read from the log.
    read_to: Sequence,
    batch: VecDeque<LogEntry>,
    /// The last sequence handed over for sending.
    sent_to: Sequence,
    /// `sent_to` at the last question to the peer; `answered_to` takes this value with the answer.
    asked_to: Sequence,
    answered_to: Sequence,
    listener: Box<dyn LogListener>,
    products: u64,
    bytes: u64,
}

/// A product on its way to the peer.
pub(super) struct Next {
    pub(super) info: ProductInfo,
    pub(super) content: Content,
}

impl Readers {
    /// Opens a reader for each feed where the peer resumes.
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

    /// The next product: the one stored first in the most urgent class.
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
                (Some(info), Some(content)) => return Some(Next { info, content }),
                (_, None) => self.gone += 1,
                (None, Some(_)) => self.too_large += 1,
            }
        }
    }

    /// Counts sent bytes of the product that was handed over last.
    pub(super) fn sends(&mut self, bytes: u64, is_begin: bool) {
        if let Some(reader) = self.readers.get_mut(self.at_hand) {
            reader.bytes += bytes;
            reader.products += u64::from(is_begin);
        }
    }

    /// Reports the sent products to the hub, under the feeds' unicast legs; returns the numbers of products and
    /// bytes.
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

    /// Notes that a question was sent after all products so far.
    pub(super) fn asked(&mut self) {
        self.readers.iter_mut().for_each(|reader| reader.asked_to = reader.sent_to);
    }

    /// Notes the peer's answer to the last question, and its positions.
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
    /// Reads on in the log if all earlier entries were handed over.
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

/// A key of bounded length for a request of any length: keys are compared only, so a digest may replace the end.
fn short(key: String) -> String {
    if key.len() <= KEY_BYTES {
        return key;
    }
    let digest = Signature(Md5::digest(&key).into());
    let begin: String = key.chars().take(KEY_BYTES / 8).collect();
    format!("{begin}~{digest}")
}

/// The product that the peer received last, found in a feed.
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

/// The sequence after which a feed begins for a peer.
///
/// In the feed of the last received product: that product. In the other feeds: the last acknowledged product. If its
/// position is lost: products at least as urgent as the last one and stored before it were sent before it; nothing
/// is known about the rest. The hub then sends too much rather than too little; LDMs drop duplicates.
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

/// Requests written by hand are shorter. The limit keeps a request with 32 patterns of 255 bytes out of the file,
/// which is rewritten every few seconds.
const KEY_BYTES: usize = 1_024;

/// The amount that a session reads in one go.
const READ_BYTES: usize = 1 << 20;
const READ_ENTRIES: usize = 256;

/// Approximate overhead of a product: call, description and TCP.
const ENVELOPE_BYTES: u64 = 150;

/// Feeds are written concurrently: stamps closer than this do not define an order.
const CLOSE_US: i64 = 5_000_000;
