//! What an LDM sends becomes products of the hub's feeds, by each feed's one writer.
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

/// Takes the products of one connection, and knows which of them are not stored yet.
pub(super) struct Intake {
    context: Context,
    /// Who sends them, for people.
    sender: String,
    /// The types that it was asked for, or may push: a product that claims others as well is stored under these alone.
    granted: FeedType,
    counts: Arc<Counts>,
    begun: Option<Begun>,
    /// In the order of arrival.
    waiting: VecDeque<Waiting>,
    waiting_bytes: u64,
    complained: BTreeSet<FeedType>,
}

/// What became of what came.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) stored: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) duplicates: AtomicU64,
    /// No feed of the hub takes them.
    pub(super) passed_over: AtomicU64,
    /// Older or larger than what is taken, or refused by the log.
    pub(super) dropped: AtomicU64,
}

/// A product that was dealt with.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Settled {
    /// It is stored: nobody had brought it before.
    First(Signature),
    /// Somebody had.
    Again(Signature),
    /// It is given up.
    Nothing(Signature),
    /// It can't be stored now, nor can what came after it.
    Unstored,
}

struct Begun {
    info: ProductInfo,
    /// None where no feed takes it.
    feed: Option<Arc<dyn Feed>>,
    room: Room,
}

enum Room {
    AtHand(BytesMut),
    /// Too large to stand in memory.
    File {
        path: PathBuf,
        file: BufWriter<File>,
    },
    Nowhere,
}

struct Waiting {
    signature: Signature,
    bytes: u64,
    /// None where there is nothing to wait for.
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

    /// From here on it may send products of these types.
    pub(super) fn grant(&mut self, feeds: FeedType) {
        self.granted = feeds;
    }

    /// True while nothing more should be read from the connection.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_PRODUCTS || self.waiting_bytes >= WAITING_BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Deals with what a connection brought; says whether a product that is only offered is to be sent.
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

    /// Whether a product that is offered is to be sent: not if it is stored already, or nobody takes it.
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

    /// The product is whole.
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

    /// Passes a line of rtstats on, as far as its sender has not told too many.
    fn report(&self, text: &[u8]) {
        if self.context.complaints.may_report(self.context.clock.monotonic(), &self.sender) {
            let line = String::from_utf8_lossy(text).into_owned();
            self.context.hub.tell(Event::Rtstats { line });
        } else {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// It will not become whole.
    pub(super) fn forget(&mut self) {
        if let Some(Begun { room: Room::File { path, .. }, .. }) = self.begun.take() {
            let _ = std::fs::remove_file(path);
        }
    }

    /// Waits until the oldest product is dealt with. It may be given up waiting for.
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

    /// What came behind it may be stored or not; it is asked for again, and then known.
    fn give_up(&mut self) -> Settled {
        self.waiting.clear();
        self.waiting_bytes = 0;
        self.forget();
        Settled::Unstored
    }

    /// The feed that takes a product, by the types that its sender was granted.
    fn route(&self, info: &ProductInfo) -> Option<Arc<dyn Feed>> {
        let granted = ProductInfo { feed: info.feed.common(self.granted), ..info.clone() };
        self.context.routes().of_product(&granted).cloned()
    }

    fn feed(&mut self, info: &ProductInfo) -> Option<Arc<dyn Feed>> {
        let found = self.route(info);
        if found.is_none() {
            self.counts.passed_over.fetch_add(1, Ordering::Relaxed);
            // A sender that makes up types is not listened to for long.
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

    /// Checks the claims of a description before it is used; products that can't be stored are counted and
    /// their sender named.
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

/// Fills the buffer, and goes to the disk when it is full.
fn write(file: &mut BufWriter<File>, bytes: &[u8]) -> io::Result<()> {
    if file.buffer().len() + bytes.len() < file.capacity() {
        return file.write_all(bytes);
    }
    beside_the_runtime(|| file.write_all(bytes))
}

/// Waits for the disk while other threads serve the connections that this one had.
fn beside_the_runtime<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// Lines of rtstats are told to the agent, whether a feed takes them or not.
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

/// Refusals that will be the same the next time.
const GIVEN_UP: &[&str] = &["too-large", "bad-id", "truncated", "digest-mismatch"];

/// As much as the feeds' writers take at once; beyond it the sender waits.
const WAITING_PRODUCTS: usize = 512;
const WAITING_BYTES: u64 = 8 << 20;

const REPORT_BYTES: u32 = 1_024;

/// Feed types that one connection brings and nobody takes, told one by one.
const MOST_COMPLAINTS: usize = 16;

/// Larger products go by a file.
const AT_HAND_BYTES: u32 = 256 << 10;
