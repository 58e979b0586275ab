//! Turns the messages of an LDM into products of the hub's feeds, through each feed's one writer.
use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Bytes, BytesMut};
use downburst_ldm6::{FeedType, ProductInfo, Signature, Taken};
use downburst_log::ProductLog as _;
use tokio::runtime::{Handle, RuntimeFlavor};

use super::context::Context;
use super::description;
use super::hub::{Event, Failure, Feed, Product, ProductBytes, Writing, Written};

/// Receives the products of one connection, and tracks those that are not stored yet.
pub(super) struct Intake {
    context: Context,
    /// The sender's name, for logs and messages.
    sender: String,
    /// The types requested from the sender, or that it may push: a product that claims further types is stored under
    /// these alone.
    granted: FeedType,
    counts: Arc<Counts>,
    begun: Option<Begun>,
    /// In the order of arrival.
    waiting: VecDeque<Waiting>,
    waiting_bytes: u64,
    complained: BTreeSet<FeedType>,
}

/// Counts of received products by outcome.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) stored: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) duplicates: AtomicU64,
    /// Products of types that no feed of the hub accepts.
    pub(super) passed_over: AtomicU64,
    /// Products that are too old or too large, or were refused by the log.
    pub(super) dropped: AtomicU64,
}

/// The outcome of a product.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Settled {
    /// It is stored: this sender was the first.
    First(Signature),
    /// It is a duplicate: another sender was first.
    Again(Signature),
    /// It is not stored: no feed accepts it, or the log refuses it.
    Nothing(Signature),
    /// It can't be stored now, and neither can those after it.
    Unstored,
}

struct Begun {
    info: ProductInfo,
    /// `None` if no feed accepts it.
    feed: Option<Arc<dyn Feed>>,
    room: Room,
}

enum Room {
    AtHand(BytesMut),
    /// Too large for memory.
    File {
        path: PathBuf,
        file: BufWriter<File>,
    },
    Nowhere,
}

struct Waiting {
    signature: Signature,
    bytes: u64,
    /// `None` if there is nothing to wait for.
    written: Option<Writing>,
}

impl Intake {
    pub(super) fn new(context: &Context, sender: &str, granted: FeedType, counts: Arc<Counts>) -> Self {
        Self {
            context: context.clone(),
            sender: sender.to_owned(),
            granted,
            counts,
            begun: None,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            complained: BTreeSet::new(),
        }
    }

    /// Allows the sender to send products of these types from now on.
    pub(super) fn grant(&mut self, feeds: FeedType) {
        self.granted = feeds;
    }

    /// True while the connection should not be read further.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_PRODUCTS || self.waiting_bytes >= WAITING_BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Handles one event of the connection; for an offered product, returns whether the sender is to send it.
    pub(super) fn take(&mut self, taken: Taken) -> io::Result<Option<bool>> {
        match taken {
            Taken::Begins(info) => self.begin(info)?,
            Taken::Bytes(bytes) => self.bytes(&bytes)?,
            Taken::Ends => self.end()?,
            Taken::Offered(info) => return Ok(Some(self.lacks(&info))),
            Taken::Broken => self.forget(),
            Taken::Dropped(..) => {
                self.counts.dropped.fetch_add(1, Ordering::Relaxed);
            }
            Taken::Notified(_) => {}
        }
        Ok(None)
    }

    /// True if an offered product is to be sent: a feed accepts it, and it is not stored yet.
    fn lacks(&mut self, info: &ProductInfo) -> bool {
        let Some(feed) = self.feed(info).filter(|feed| self.can_be(info, &**feed)) else { return false };
        let known = feed.log().find_signature(&info.signature.0).ok().flatten().is_some();
        if known {
            self.counts.duplicates.fetch_add(1, Ordering::Relaxed);
        }
        !known
    }

    fn begin(&mut self, info: ProductInfo) -> io::Result<()> {
        let feed = if is_report(&info) { self.route(&info) } else { self.feed(&info) };
        let feed = feed.filter(|feed| self.can_be(&info, &**feed));
        let room = match &feed {
            None if !is_report(&info) => Room::Nowhere,
            None => Room::AtHand(BytesMut::new()),
            Some(_) if info.size <= AT_HAND_BYTES => {
                Room::AtHand(BytesMut::with_capacity(info.size as usize))
            }
            Some(_) => self.spool()?,
        };
        self.begun = Some(Begun { info, feed, room });
        Ok(())
    }

    fn bytes(&mut self, bytes: &Bytes) -> io::Result<()> {
        match self.begun.as_mut().map(|begun| &mut begun.room) {
            Some(Room::AtHand(held)) => held.extend_from_slice(bytes),
            Some(Room::File { file, .. }) => write(file, bytes)?,
            Some(Room::Nowhere) | None => {}
        }
        Ok(())
    }

    /// Completes the product and hands it to its feed.
    fn end(&mut self) -> io::Result<()> {
        if let Some(Begun { room: Room::File { file, .. }, .. }) = &mut self.begun {
            beside_the_runtime(|| file.flush())?;
        }
        let Some(Begun { info, feed, room }) = self.begun.take() else { return Ok(()) };
        if let (true, Room::AtHand(text)) = (is_report(&info), &room) {
            self.report(text);
        }
        let written = feed.and_then(|feed| hand_over(&*feed, &info, room));
        let bytes = u64::from(info.size.min(AT_HAND_BYTES));
        self.waiting_bytes += bytes;
        self.waiting.push_back(Waiting { signature: info.signature, bytes, written });
        Ok(())
    }

    /// Passes an rtstats line on, unless its sender exceeds the limit.
    fn report(&self, text: &[u8]) {
        if self.context.complaints.may_report(self.context.clock.monotonic(), &self.sender) {
            let line = String::from_utf8_lossy(text).into_owned();
            self.context.hub.tell(Event::Rtstats { line });
        } else {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Drops the incomplete product and its spool file.
    pub(super) fn forget(&mut self) {
        if let Some(Begun { room: Room::File { path, .. }, .. }) = self.begun.take() {
            let _ = std::fs::remove_file(path);
        }
    }

    /// Waits for the outcome of the oldest product. Safe to cancel.
    pub(super) async fn settled(&mut self) -> Settled {
        let Some(front) = self.waiting.front_mut() else { return std::future::pending().await };
        let (signature, bytes) = (front.signature, front.bytes);
        let outcome = match &mut front.written {
            None => None,
            Some(written) => Some(written.as_mut().await),
        };
        self.waiting.pop_front();
        self.waiting_bytes -= bytes;
        match outcome {
            None => Settled::Nothing(signature),
            Some(Some(Ok(written))) => self.written(signature, written),
            Some(Some(Err(failure))) => self.failed(signature, &failure),
            // The log is being closed.
            Some(None) => self.give_up(),
        }
    }

    fn written(&self, signature: Signature, written: Written) -> Settled {
        match written {
            Written::Stored { bytes } => {
                self.counts.stored.fetch_add(1, Ordering::Relaxed);
                self.counts.bytes.fetch_add(bytes, Ordering::Relaxed);
                Settled::First(signature)
            }
            Written::Duplicate => {
                self.counts.duplicates.fetch_add(1, Ordering::Relaxed);
                Settled::Again(signature)
            }
        }
    }

    fn failed(&mut self, signature: Signature, failure: &Failure) -> Settled {
        self.context.complaints.complain(&*self.context.hub, &self.sender, failure.code, || {
            format!("a product from {} was not stored: {}", self.sender, failure.sentence)
        });
        if GIVEN_UP.contains(&failure.code) {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
            return Settled::Nothing(signature);
        }
        self.give_up()
    }

    /// Drops everything that is waiting. The later products may be stored or not; they are requested again, and those
    /// that are stored turn out as duplicates.
    fn give_up(&mut self) -> Settled {
        self.waiting.clear();
        self.waiting_bytes = 0;
        self.forget();
        Settled::Unstored
    }

    /// The feed that accepts a product, by the types granted to its sender.
    fn route(&self, info: &ProductInfo) -> Option<Arc<dyn Feed>> {
        let granted = ProductInfo { feed: info.feed.common(self.granted), ..info.clone() };
        self.context.routes().of_product(&granted).cloned()
    }

    fn feed(&mut self, info: &ProductInfo) -> Option<Arc<dyn Feed>> {
        let found = self.route(info);
        if found.is_none() {
            self.counts.passed_over.fetch_add(1, Ordering::Relaxed);
            // Bounds the complaints about a sender that invents types.
            if self.complained.len() < MOST_COMPLAINTS && self.complained.insert(info.feed) {
                let Self { context, sender, .. } = &*self;
                let types = info.feed;
                context.complaints.complain(&*context.hub, sender, &format!("type {types}"), || format!(
                    "products of LDM's feed type {types} from {sender} are ignored, because no feed here takes \
                     that type: downburst feeds set FEED --ldm-feed-type {types}",
                ));
            }
        }
        found
    }

    /// Checks the claims of a description before their use. Products that can't be stored are counted, and the
    /// complaint names their sender.
    fn can_be(&self, info: &ProductInfo, feed: &dyn Feed) -> bool {
        let (size, most) = (u64::from(info.size), feed.largest_bytes());
        let why = if size > most {
            (
                "too-large",
                format!(
                    "it is too large: it has {size} bytes, and feed {} takes at most {most}",
                    feed.log().feed()
                ),
            )
        } else if description::product_id(&info.ident).is_none()
            || description::origin(&info.origin).is_none()
        {
            ("bad-id", "its identifier is one that the hub gives to products of its own".to_owned())
        } else {
            return true;
        };
        self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        self.context.complaints.complain(&*self.context.hub, &self.sender, why.0, || {
            format!("a product from the LDM {} was not taken: {}", self.sender, why.1)
        });
        false
    }

    fn spool(&self) -> io::Result<Room> {
        let directory = self.context.hub.data_dir().join("ldm").join("spool");
        let path = directory.join(format!("{}.part", self.context.next_spool()));
        let file = beside_the_runtime(|| {
            std::fs::create_dir_all(&directory)?;
            File::create(&path)
        })?;
        Ok(Room::File { path, file: BufWriter::with_capacity(AT_HAND_BYTES as usize, file) })
    }
}

impl Drop for Intake {
    fn drop(&mut self) {
        self.forget();
    }
}

/// Fills the buffer, and writes it to the disk when it is full.
fn write(file: &mut BufWriter<File>, bytes: &[u8]) -> io::Result<()> {
    if file.buffer().len() + bytes.len() < file.capacity() {
        return file.write_all(bytes);
    }
    beside_the_runtime(|| file.write_all(bytes))
}

/// Does blocking work on the disk, while other threads take over the connections of this one.
fn beside_the_runtime<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// True for an rtstats line, which goes to the agent whether a feed accepts it or not.
fn is_report(info: &ProductInfo) -> bool {
    info.ident.as_bytes().starts_with(b"rtstats-") && info.size <= REPORT_BYTES
}

fn hand_over(feed: &dyn Feed, info: &ProductInfo, room: Room) -> Option<Writing> {
    let (id, origin) = (description::product_id(&info.ident)?, description::origin(&info.origin)?);
    let bytes = match room {
        Room::AtHand(held) => ProductBytes::AtHand(held.freeze()),
        Room::File { path, .. } => ProductBytes::File(path),
        Room::Nowhere => return None,
    };
    let (stamp, created) = (description::stamp(info, &id), info.arrival.into());
    Some(feed.write(Product { id, origin, created, stamp, bytes }))
}

/// Codes of permanent failures: another attempt would fail in the same way.
const GIVEN_UP: &[&str] = &["too-large", "bad-id", "truncated", "digest-mismatch"];

/// The amount that feeds' writers take in one go; beyond it the sender waits.
const WAITING_PRODUCTS: usize = 512;
const WAITING_BYTES: u64 = 8 << 20;

const REPORT_BYTES: u32 = 1_024;

/// Feed types of one connection without a feed that are reported one by one.
const MOST_COMPLAINTS: usize = 16;

/// Larger products go through a spool file.
const AT_HAND_BYTES: u32 = 256 << 10;
