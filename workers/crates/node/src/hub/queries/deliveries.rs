//! The whereabouts of products: gathers everything that the node knows of their way to each site.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use downburst_hub::SessionView;
use downburst_hub::queries::{
    DeliveriesLine, DescribedProduct, ProductsLine, Receipt, SearchedLog, SearchedReceipts, Selection,
    SessionTrace, SoughtProduct, TracedProduct, Whereabouts,
};
use downburst_log::{FeedLog, LogEntry, ProductLog as _, SearchLimits, Searched, Sought};
use downburst_model::{FeedName, ProductKey, Sequence, SiteName};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{answer, in_a_thread};
use crate::hub::feeds::failure;
use crate::hub::legs::leg::Leg;
use crate::hub::receipts::{Budget, KeptReceipt, Wanted};
use crate::hub::roster::{Command, Handle};
use crate::hub::{Hub, lock};
use crate::lines::{Failure, SiteLine};

/// Describes the selected products, newest first, with the known facts of their way to each site.
pub(in crate::hub) async fn deliveries(hub: &Arc<Hub>, line: DeliveriesLine) -> Result<Value, Failure> {
    let feed = hub.feeds.known(&line.feed)?;
    let (log, selection) = (Arc::clone(&feed.log), line.selection(feed.epoch())?);
    let found = in_a_thread(move || find(&log, selection)).await??;
    let lines: Vec<SiteLine> =
        hub.roster.all().into_iter().filter(|asked| line.asks_for(&asked.site)).collect();
    let keys: Vec<ProductKey> = found.entries.iter().map(|entry| entry.info.key.clone()).collect();
    let sessions = ask_sessions(hub, &line.feed, &lines, &keys).await;
    let (wanted, asked) = (wanted(&found.entries, lines.len()), Arc::clone(hub));
    let receipts = in_a_thread(move || asked.figures.receipts.find(&wanted, BUDGET)).await?;
    let ways = Whereabouts {
        lines: &lines,
        sessions: &sessions,
        receipts: &receipts.receipts,
        unicast_leg: feed.unicast_leg(),
    };
    let traced: Vec<TracedProduct<'_>> = found.entries.iter().map(traced).collect();
    let searched = SearchedLog {
        feed: line.feed,
        epoch: feed.epoch(),
        head: feed.log.head(),
        first: feed.log.first(),
        searched_to: found.searched_to,
        search_complete: found.complete,
    };
    let searched_receipts =
        SearchedReceipts { receipts_complete: receipts.complete, receipts_since_us: receipts.since };
    answer(&ways.answer(&traced, searched, searched_receipts, hub.clock.wall()))
}

/// Describes products by their sequences.
pub(in crate::hub) async fn products(hub: &Arc<Hub>, line: ProductsLine) -> Result<Value, Failure> {
    let log = Arc::clone(&hub.feeds.known(&line.feed)?.log);
    let listed = in_a_thread(move || {
        let numbers = line.sequences(log.epoch());
        numbers.filter_map(|sequence| log.entry(sequence).transpose()).collect::<Result<Vec<_>, _>>()
    });
    let entries = listed.await?.map_err(|error| failure(&error))?;
    let described = |entry: &LogEntry| DescribedProduct::of(&entry.info, entry.bytes.is_some());
    Ok(json!({"products": entries.iter().map(described).collect::<Vec<_>>()}))
}

fn find(log: &FeedLog, selection: Selection) -> Result<Searched, Failure> {
    let nothing = Searched { entries: Vec::new(), searched_to: Sequence(0), complete: true };
    let found = match selection {
        Selection::Nothing => Ok(nothing),
        Selection::One(sequence) => {
            log.entry(sequence).map(|entry| Searched { entries: entry.into_iter().collect(), ..nothing })
        }
        Selection::Newest { sought, before, products, rows } => {
            let sought = match sought {
                SoughtProduct::Id(id) => Sought::Id(id),
                SoughtProduct::Digest(digits) => Sought::Digest(digits),
            };
            log.search(&sought, before, SearchLimits { entries: products, rows })
        }
    };
    found.map_err(|error| failure(&error))
}

fn traced(entry: &LogEntry) -> TracedProduct<'_> {
    TracedProduct { info: &entry.info, kept: entry.bytes.is_some() }
}

fn wanted(entries: &[LogEntry], sites: usize) -> Vec<Wanted> {
    let one = |entry: &LogEntry| Wanted { key: entry.info.key.clone(), hub_stored: entry.info.stored, sites };
    entries.iter().map(one).collect()
}

/// Queries all sessions in parallel; one that is too busy to answer within a second is described by its status.
async fn ask_sessions(
    hub: &Hub,
    feed: &FeedName,
    lines: &[SiteLine],
    keys: &[ProductKey],
) -> BTreeMap<SiteName, SessionTrace> {
    let mut sessions = hub.roster.sessions();
    sessions.retain(|site, _| lines.iter().any(|line| line.site == *site));
    let mut asked = Vec::new();
    for (site, handle) in sessions {
        let (answer, answered) = oneshot::channel();
        let _ = handle.commands.send(Command::Where { products: keys.to_vec(), answer });
        asked.push((site, handle, answered));
    }
    let give_up = tokio::time::Instant::now() + SESSION_PATIENCE;
    let mut answers = Vec::new();
    for (site, handle, answered) in asked {
        let view = tokio::time::timeout_at(give_up, answered).await.ok().and_then(Result::ok);
        answers.push((site, handle, view));
    }
    answers.into_iter().map(|(site, handle, view)| (site, trace(hub, feed, keys, &handle, view))).collect()
}

fn trace(
    hub: &Hub,
    feed: &FeedName,
    keys: &[ProductKey],
    handle: &Handle,
    view: Option<SessionView>,
) -> SessionTrace {
    let trace = SessionTrace::of(feed, &lock(&handle.status), view);
    let Some(leg) = trace.joined() else { return trace };
    let plans = lock(&hub.legs.plans);
    let leg = plans.find(leg);
    let first_byte = |key: &ProductKey| leg.and_then(|leg| leg.first_byte(key.sequence));
    trace.with_leg(leg.map_or(0, Leg::backlog_bytes), keys.iter().map(first_byte).collect())
}

impl Receipt for KeptReceipt {
    fn key(&self) -> &ProductKey {
        &self.key
    }

    fn site(&self) -> &str {
        &self.site
    }
}

/// A person waits for the answer.
const BUDGET: Budget = Budget { time: Duration::from_secs(5), rows: 100_000 };
const SESSION_PATIENCE: Duration = Duration::from_secs(1);
