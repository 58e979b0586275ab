//! The whereabouts of a product: everything that the node knows of it and of its way to each site.
//! Conclusions are drawn elsewhere.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use downburst_hub::SessionView;
use downburst_log::{FeedLog, LogEntry, ProductLog as _, SearchLimits, Sought};
use downburst_model::{
    Epoch, FeedName, IdFilter, LegId, Pattern, ProductId, ProductInfo, ProductKey, Sequence, SiteName,
    Transport,
};
use downburst_session::Standing;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::hub::feeds::{failure, unknown_feed};
use crate::hub::legs::leg::Leg;
use crate::hub::receipts::{Budget, FoundReceipts, KeptReceipt, Wanted};
use crate::hub::roster::{Command, Handle};
use crate::hub::{Hub, lock};
use crate::lines::{Failure, SiteLine, SubscriptionLine};

/// See [`Action::Deliveries`](crate::lines::Action::Deliveries): selects the products.
#[derive(Debug, Deserialize)]
pub(crate) struct DeliveriesLine {
    feed: FeedName,
    /// As decimal text; an epoch other than the log's finds nothing.
    epoch: Option<String>,
    sequence: Option<Sequence>,
    product_id: Option<ProductId>,
    /// The first hexadecimal digits of the digest.
    digest: Option<String>,
    /// Only products before this sequence: the next page.
    before: Option<Sequence>,
    #[serde(default = "default_limit")]
    limit: usize,
    /// Only this site.
    site: Option<SiteName>,
}

/// See [`Action::Products`](crate::lines::Action::Products).
#[derive(Debug, Deserialize)]
pub(crate) struct ProductsLine {
    feed: FeedName,
    epoch: Option<String>,
    sequences: Vec<Sequence>,
}

/// Describes the selected products, newest first, with the known facts of their way to each site.
pub(in crate::hub) async fn deliveries(hub: &Arc<Hub>, line: DeliveriesLine) -> Result<Value, Failure> {
    let feed = hub.feeds.find(&line.feed).ok_or_else(|| unknown_feed(line.feed.as_str()))?;
    let (log, site, name) = (Arc::clone(&feed.log), line.site.clone(), line.feed.clone());
    let found = in_a_thread(move || find(&log, &line)).await??;
    let lines: Vec<SiteLine> = hub
        .roster
        .all()
        .into_iter()
        .filter(|line| site.as_ref().is_none_or(|site| line.site == *site))
        .collect();
    let keys: Vec<ProductKey> = found.entries.iter().map(|entry| entry.info.key.clone()).collect();
    let views = ask_sessions(hub, &lines, &keys).await;
    let (wanted, asked) = (wanted(&found.entries, lines.len()), Arc::clone(hub));
    let mut receipts = in_a_thread(move || asked.figures.receipts.find(&wanted, BUDGET)).await?;
    receipts.receipts.retain(|receipt| site.as_ref().is_none_or(|site| receipt.site == site.as_str()));
    let ways = Ways { hub, lines: &lines, views: &views, receipts: &receipts, leg: feed.unicast_leg() };
    let mut patterns = Compiled::default();
    let products: Vec<Value> =
        found.entries.iter().enumerate().map(|(at, entry)| ways.product(at, entry, &mut patterns)).collect();
    Ok(json!({
        "feed": name, "epoch": feed.epoch().0.to_string(), "head": feed.log.head(), "first": feed.log.first(),
        "products": products, "searched_to": found.searched_to, "search_complete": found.complete,
        "receipts_complete": receipts.complete, "receipts_since_us": receipts.since, "at_us": hub.clock.wall(),
    }))
}

/// Describes products by their sequences.
pub(in crate::hub) async fn products(hub: &Arc<Hub>, line: ProductsLine) -> Result<Value, Failure> {
    let feed = hub.feeds.find(&line.feed).ok_or_else(|| unknown_feed(line.feed.as_str()))?;
    let log = Arc::clone(&feed.log);
    let listed = in_a_thread(move || {
        let is_ours = line.epoch.is_none_or(|epoch| epoch.parse() == Ok(log.epoch().0));
        let numbers = line.sequences.iter().filter(|_| is_ours).take(PRODUCTS_AT_ONCE);
        numbers.filter_map(|sequence| log.entry(*sequence).transpose()).collect::<Result<Vec<_>, _>>()
    });
    let entries = listed.await?.map_err(|error| failure(&error))?;
    Ok(json!({"products": entries.iter().map(described).collect::<Vec<Value>>()}))
}

struct Found {
    entries: Vec<LogEntry>,
    searched_to: Sequence,
    complete: bool,
}

fn find(log: &FeedLog, line: &DeliveriesLine) -> Result<Found, Failure> {
    let nothing = Found { entries: Vec::new(), searched_to: Sequence(0), complete: true };
    if line.epoch.as_ref().is_some_and(|epoch| epoch.parse() != Ok(log.epoch().0)) {
        return Ok(nothing);
    }
    let sought = match (&line.sequence, &line.product_id, &line.digest) {
        (Some(sequence), _, _) => {
            let entry = log.entry(*sequence).map_err(|error| failure(&error))?;
            return Ok(Found { entries: entry.into_iter().collect(), ..nothing });
        }
        (None, Some(id), _) => Sought::Id(id.clone()),
        (None, None, Some(digest)) => Sought::Digest(digest.to_lowercase()),
        (None, None, None) => {
            let sentence = "the product is not specified; give a sequence, a product_id or a digest";
            return Err(Failure::new("bad-request", sentence));
        }
    };
    let before = line.before.unwrap_or(Sequence(u64::MAX));
    let limits = SearchLimits { entries: line.limit.clamp(1, LIMIT_MOST), rows: ROWS_SEARCHED };
    let searched = log.search(&sought, before, limits).map_err(|error| failure(&error))?;
    Ok(Found { entries: searched.entries, searched_to: searched.searched_to, complete: searched.complete })
}

fn wanted(entries: &[LogEntry], sites: usize) -> Vec<Wanted> {
    let one = |entry: &LogEntry| Wanted { key: entry.info.key.clone(), hub_stored: entry.info.stored, sites };
    entries.iter().map(one).collect()
}

/// Queries all sessions in parallel; one that is too busy to answer within a second is left out.
async fn ask_sessions(
    hub: &Hub,
    lines: &[SiteLine],
    keys: &[ProductKey],
) -> BTreeMap<SiteName, (Handle, Option<SessionView>)> {
    let mut sessions = hub.roster.sessions();
    sessions.retain(|site, _| lines.iter().any(|line| line.site == *site));
    let mut asked = Vec::new();
    for (site, handle) in sessions {
        let (answer, answered) = oneshot::channel();
        let _ = handle.commands.send(Command::Where { products: keys.to_vec(), answer });
        asked.push((site, handle, answered));
    }
    let give_up = tokio::time::Instant::now() + SESSION_PATIENCE;
    let mut views = BTreeMap::new();
    for (site, handle, answered) in asked {
        let view = tokio::time::timeout_at(give_up, answered).await.ok().and_then(Result::ok);
        views.insert(site, (handle, view));
    }
    views
}

/// Everything known about the deliveries of the products.
struct Ways<'a> {
    hub: &'a Hub,
    lines: &'a [SiteLine],
    views: &'a BTreeMap<SiteName, (Handle, Option<SessionView>)>,
    receipts: &'a FoundReceipts,
    /// The leg under which unicast is counted.
    leg: LegId,
}

impl Ways<'_> {
    fn product(&self, at: usize, entry: &LogEntry, patterns: &mut Compiled) -> Value {
        let sites: Vec<Value> =
            self.lines.iter().filter_map(|line| self.site(at, line, entry, patterns)).collect();
        let mut described = described(entry);
        if let Some(fields) = described.as_object_mut() {
            fields.insert("sites".to_owned(), Value::Array(sites));
        }
        described
    }

    /// `None` for a site that has no part in the feed.
    fn site(&self, at: usize, line: &SiteLine, entry: &LogEntry, patterns: &mut Compiled) -> Option<Value> {
        let key = &entry.info.key;
        let subscriptions: Vec<&SubscriptionLine> =
            line.subscriptions.iter().filter(|wish| wish.feed == key.feed).collect();
        let receipts: Vec<&KeptReceipt> = self
            .receipts
            .receipts
            .iter()
            .filter(|receipt| receipt.key == *key && receipt.site == line.site.as_str())
            .collect();
        if subscriptions.is_empty() && receipts.is_empty() {
            return None;
        }
        let matching: Vec<Value> = subscriptions
            .iter()
            .filter(|wish| patterns.wants(wish, entry.info.id.as_str()))
            .map(|wish| json!({"pattern": wish.pattern, "not_pattern": wish.not_pattern}))
            .collect();
        let session =
            self.views.get(&line.site).map(|(handle, view)| self.session(at, key, handle, view.as_ref()));
        Some(json!({
            "site": line.site, "active": line.active, "subscriptions": subscriptions.len(), "matching": matching,
            "session": session, "receipts": receipts,
        }))
    }

    fn session(&self, at: usize, key: &ProductKey, handle: &Handle, view: Option<&SessionView>) -> Value {
        let (frontier, joined, offered, clock) = {
            let status = lock(&handle.status);
            let of_feed = |legs: &BTreeMap<FeedName, LegId>| legs.get(&key.feed).copied();
            let frontier = status.frontiers.get(&key.feed).copied();
            (frontier, of_feed(&status.joined), of_feed(&status.offered), status.clock)
        };
        let product = view.and_then(|view| view.products.get(at));
        let leg = joined.unwrap_or(self.leg);
        let by_leg = joined.and_then(|leg| lock(&self.hub.legs.plans).find(leg)?.first_byte(key.sequence));
        let (standing, lane, asked, numbers_before) = words(product.map(|product| product.standing));
        json!({
            "standing": standing, "lane": lane, "asked": asked, "numbers_before": numbers_before,
            "transport": if joined.is_some() { Transport::Multicast } else { Transport::Unicast },
            "leg": leg, "joining": joined.is_none() && offered.is_some(),
            "leg_backlog_bytes": joined.map(|leg| lock(&self.hub.legs.plans).find(leg).map_or(0, Leg::backlog_bytes)),
            "first_byte_us": product.and_then(|product| product.first_byte_us).or(by_leg.map(|stamp| stamp.0)),
            "settled_to": frontier.map(|(settled_to, _)| settled_to),
            "pending": frontier.map(|(_, pending)| pending),
            "clock_offset_us": clock.map(|clock| clock.offset_us),
            "clock_bound_us": clock.map(|clock| clock.bound_us),
            "waiting": view.map(|view| view.waiting.as_slice()).unwrap_or_default(),
        })
    }
}

/// The state in the form for programs: a word, the lane, whether the site requested it, and the count before it.
fn words(standing: Option<Standing>) -> (&'static str, Option<downburst_model::Lane>, bool, Option<u64>) {
    match standing {
        None => ("no-answer", None, false, None),
        Some(Standing::NotServed) => ("not-served", None, false, None),
        Some(Standing::Settled) => ("settled", None, false, None),
        Some(Standing::Queued { asked }) => ("queued", None, asked, None),
        Some(Standing::Owed { lane, asked, numbers_before }) => {
            ("owed", Some(lane), asked, Some(numbers_before))
        }
        Some(Standing::LeftToLeg) => ("left-to-leg", None, false, None),
        Some(Standing::Said) => ("said", None, false, None),
    }
}

fn described(entry: &LogEntry) -> Value {
    described_by(&entry.info, entry.bytes.is_some())
}

/// The description of a product for programs.
pub(in crate::hub) fn described_by(info: &ProductInfo, kept: bool) -> Value {
    json!({
        "feed": info.key.feed, "epoch": epoch_text(info.key.epoch), "sequence": info.key.sequence,
        "product_id": info.id.as_str(), "origin": info.origin.as_str(), "created_us": info.created,
        "stored_us": info.stored, "size": info.size, "digest": info.digest.to_string(), "class": info.class,
        "kept": kept,
    })
}

/// Compiled patterns by their text: most sites share a few.
#[derive(Default)]
struct Compiled(BTreeMap<String, Option<Pattern>>);

impl Compiled {
    fn wants(&mut self, wish: &SubscriptionLine, id: &str) -> bool {
        self.matches(&wish.pattern, id)
            && !wish.not_pattern.as_ref().is_some_and(|text| self.matches(text, id))
            && wish.within.as_ref().is_none_or(|limits| limits.iter().any(|limit| self.grants(limit, id)))
    }

    fn grants(&mut self, limit: &IdFilter, id: &str) -> bool {
        self.matches(&limit.pattern, id)
            && !limit.not_pattern.as_ref().is_some_and(|text| self.matches(text, id))
    }

    fn matches(&mut self, text: &str, id: &str) -> bool {
        let pattern = self.0.entry(text.to_owned()).or_insert_with(|| Pattern::parse(text).ok());
        pattern.as_ref().is_some_and(|pattern| pattern.matches(id))
    }
}

fn epoch_text(epoch: Epoch) -> String {
    epoch.0.to_string()
}

pub(in crate::hub) async fn in_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let failed = |_| Failure::new("io", "the search was interrupted; ask again and look at the hub's log");
    tokio::task::spawn_blocking(work).await.map_err(failed)
}

const fn default_limit() -> usize {
    5
}

/// A product sent a hundred times is not to be traced: its feed should be examined instead.
const LIMIT_MOST: usize = 100;
const PRODUCTS_AT_ONCE: usize = 1_000;

/// About two seconds of a cold disk; the answer says where the search ended, and the next page continues there.
const ROWS_SEARCHED: u64 = 20_000_000;

/// A person waits for the answer.
const BUDGET: Budget = Budget { time: Duration::from_secs(5), rows: 100_000 };
const SESSION_PATIENCE: Duration = Duration::from_secs(1);
