//! Searches the files for the receipts of products.
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    ArrowPrimitiveType, Int16Type, Int64Type, TimestampMicrosecondType, UInt32Type, UInt64Type,
};
use arrow_array::{Array as _, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_schema::ArrowError;
use downburst_model::{ProductKey, WallMicros, moment};
use serde::Serialize;

use super::columns::{EPOCH, FEED, FILED, FIRST_BYTE_SENT, SEQUENCE, SITE, SIZE, STORED};
use super::directory::{self, Contents, Kept};

/// A product whose receipts are sought.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) key: ProductKey,
    /// No receipt is older.
    pub(crate) hub_stored: WallMicros,
    /// The number of sites that may have sent a receipt: the search ends when all of them have.
    pub(crate) sites: usize,
}

/// The limits of a search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) time: Duration,
    pub(crate) rows: usize,
}

/// The result of a search.
#[derive(Debug, Default)]
pub(crate) struct FoundReceipts {
    /// In the order of arrival.
    pub(crate) receipts: Vec<KeptReceipt>,
    /// False if the budget ended the search: there may be more receipts.
    pub(crate) complete: bool,
    /// The approximate start of the oldest file; `None` if there are none.
    pub(crate) since: Option<WallMicros>,
}

/// A stored receipt.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct KeptReceipt {
    #[serde(skip)]
    pub(crate) key: ProductKey,
    pub(crate) site: String,
    pub(crate) outcome: String,
    pub(crate) lane: String,
    pub(crate) transport: String,
    pub(crate) leg: u32,
    pub(crate) size: u64,
    pub(crate) repaired: bool,
    #[serde(flatten)]
    pub(crate) stamps: KeptStamps,
    pub(crate) clock_offset_us: Option<i64>,
    pub(crate) clock_bound_us: Option<u64>,
    /// The bytes sent to the site while the product waited; for products that waited long.
    pub(crate) sent_before: Vec<SentBytes>,
}

/// The times of a product on its way; `None`: it did not get there, or nobody told.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct KeptStamps {
    pub(crate) created_us: Option<i64>,
    pub(crate) hub_stored_us: Option<i64>,
    pub(crate) first_byte_us: Option<i64>,
    pub(crate) last_byte_us: Option<i64>,
    pub(crate) site_stored_us: Option<i64>,
    pub(crate) action_done_us: Option<i64>,
}

impl KeptReceipt {
    /// True if the product was stored, and nothing was reported of its file yet.
    fn is_unfiled(&self) -> bool {
        self.outcome == STORED && self.stamps.action_done_us.is_none()
    }
}

/// The bytes sent of one feed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct SentBytes {
    pub(crate) feed: String,
    pub(crate) products: u64,
    pub(crate) bytes: u64,
}

/// Searches the files that were written to after the products were stored, oldest first.
pub(super) fn find(directory: &Path, wanted: &[Wanted], budget: Budget) -> FoundReceipts {
    let give_up = Instant::now() + budget.time;
    let files = directory::list(directory).unwrap_or_default();
    let since = files.first().and_then(|file| file.path.file_stem()?.to_str().and_then(moment_of));
    let mut found = FoundReceipts { receipts: Vec::new(), complete: true, since };
    for file in &files {
        let missing: Vec<&Wanted> =
            wanted.iter().filter(|one| may_be_in(one, file, &found.receipts)).collect();
        if missing.is_empty() {
            continue;
        }
        if Instant::now() >= give_up || found.receipts.len() >= budget.rows {
            found.complete = false;
            break;
        }
        // An unreadable file counts as torn: the files after it may have the answer.
        if let Err(error) = search(&file.path, &missing, &mut found.receipts) {
            tracing::debug!(path = %file.path.display(), %error, "a file of receipts ends early");
        }
    }
    add_late_files(&mut found.receipts);
    found.receipts.truncate(budget.rows);
    explain_waits(&files, &mut found.receipts, give_up);
    found
}

/// Copies the stamps of late files, those completed after their receipts were sent, into these receipts.
fn add_late_files(receipts: &mut Vec<KeptReceipt>) {
    let (late, mut told): (Vec<_>, Vec<_>) =
        std::mem::take(receipts).into_iter().partition(|receipt| receipt.outcome == FILED);
    for file in late {
        let lacks_it = |it: &&mut KeptReceipt| it.is_unfiled() && it.key == file.key && it.site == file.site;
        if let Some(receipt) = told.iter_mut().find(lacks_it) {
            receipt.stamps.action_done_us = file.stamps.action_done_us;
        }
    }
    *receipts = told;
}

/// Adds to the longest waits in the hub's queue the bytes that were sent to the site during the wait.
fn explain_waits(files: &[Kept], receipts: &mut [KeptReceipt], give_up: Instant) {
    let mut waits: Vec<(&mut KeptReceipt, i64, i64)> = receipts
        .iter_mut()
        .filter_map(|receipt| {
            let (from, to) = (receipt.stamps.hub_stored_us?, receipt.stamps.first_byte_us?);
            (to - from >= LONG_WAIT_US).then_some((receipt, from, to))
        })
        .collect();
    waits.sort_by_key(|(_, from, to)| from - to);
    for (receipt, from, to) in waits.into_iter().take(WAITS_EXPLAINED) {
        let mut sent: BTreeMap<String, SentBytes> = BTreeMap::new();
        for file in files.iter().filter(|file| is_about(file, from, to)) {
            if Instant::now() >= give_up {
                return;
            }
            // An unreadable file counts as torn.
            let _ = add_sent(&file.path, &receipt.site, (from, to), &mut sent);
        }
        receipt.sent_before = sent.into_values().collect();
    }
}

/// True if the file may hold receipts of bytes sent in this interval: they arrive within minutes.
fn is_about(file: &Kept, from_us: i64, to_us: i64) -> bool {
    let begun = file.path.file_stem().and_then(|stem| moment_of(stem.to_str()?));
    let begins_in_time = begun.is_none_or(|begun| begun.0 <= to_us.saturating_add(RECEIPTS_WITHIN_US));
    let from = SystemTime::UNIX_EPOCH + Duration::from_micros(u64::try_from(from_us).unwrap_or(0));
    begins_in_time && file.ended + Duration::from_secs(1) >= from
}

fn add_sent(
    path: &Path,
    site: &str,
    (from_us, to_us): (i64, i64),
    sent: &mut BTreeMap<String, SentBytes>,
) -> Result<(), ArrowError> {
    let columns = vec![FEED, SITE, SIZE, FIRST_BYTE_SENT];
    for batch in StreamReader::try_new(BufReader::new(File::open(path)?), Some(columns))? {
        let batch = batch?;
        for row in 0..batch.num_rows() {
            let first_byte = value::<TimestampMicrosecondType>(&batch, "first_byte_sent", row);
            if !first_byte.is_some_and(|at| at >= from_us && at < to_us) {
                continue;
            }
            let (Some(feed), Some(name)) = (word(&batch, "feed", row), word(&batch, "site", row)) else {
                continue;
            };
            if name == site {
                let so_far = sent.entry(feed.clone()).or_insert(SentBytes { feed, products: 0, bytes: 0 });
                so_far.products += 1;
                so_far.bytes += value::<UInt64Type>(&batch, "size", row).unwrap_or(0);
            }
        }
    }
    Ok(())
}

fn may_be_in(wanted: &Wanted, file: &Kept, found: &[KeptReceipt]) -> bool {
    let micros = u64::try_from(wanted.hub_stored.0).unwrap_or(0);
    let stored = SystemTime::UNIX_EPOCH + Duration::from_micros(micros);
    // The clock of the file system may be a tick behind.
    let is_older = file.ended + Duration::from_secs(1) < stored;
    let of_product = || found.iter().filter(|receipt| receipt.key == wanted.key);
    // A late file has a row of its own, after that of the receipt.
    let late = of_product().filter(|receipt| receipt.outcome == FILED).count();
    let unfiled = of_product().filter(|receipt| receipt.is_unfiled()).count();
    let answered = of_product().count() - late - unfiled.saturating_sub(late);
    !is_older
        && answered < wanted.sites
        && Contents::of(&file.path).is_none_or(|contents| contents.may_hold(&wanted.key))
}

/// Reads three columns first; only a file with a match is read whole.
fn search(path: &Path, wanted: &[&Wanted], found: &mut Vec<KeptReceipt>) -> Result<(), ArrowError> {
    let mut hits: Vec<Vec<(usize, ProductKey)>> = Vec::new();
    let keys = StreamReader::try_new(BufReader::new(File::open(path)?), Some(vec![FEED, EPOCH, SEQUENCE]))?;
    for batch in keys {
        let Ok(batch) = batch else { break };
        hits.push(hits_in(&batch, wanted));
    }
    let Some(last) = hits.iter().rposition(|batch| !batch.is_empty()) else { return Ok(()) };
    let whole = StreamReader::try_new(BufReader::new(File::open(path)?), None)?;
    for (batch, hits) in whole.zip(&hits).take(last + 1) {
        let batch = batch?;
        found.extend(hits.iter().filter_map(|(row, key)| receipt(&batch, *row, key)));
    }
    Ok(())
}

fn hits_in(batch: &RecordBatch, wanted: &[&Wanted]) -> Vec<(usize, ProductKey)> {
    let (Some(epochs), Some(sequences)) =
        (values::<UInt64Type>(batch, "epoch"), values::<UInt64Type>(batch, "sequence"))
    else {
        return Vec::new();
    };
    let rows = sequences.iter().zip(epochs).enumerate();
    let mut hits = Vec::new();
    for (row, (sequence, epoch)) in rows {
        for one in wanted.iter().filter(|one| one.key.sequence.0 == *sequence && one.key.epoch.0 == *epoch) {
            if word(batch, "feed", row).as_deref() == Some(one.key.feed.as_str()) {
                hits.push((row, one.key.clone()));
            }
        }
    }
    hits
}

fn receipt(batch: &RecordBatch, row: usize, key: &ProductKey) -> Option<KeptReceipt> {
    let stamp = |name| value::<TimestampMicrosecondType>(batch, name, row);
    Some(KeptReceipt {
        key: key.clone(),
        site: word(batch, "site", row)?,
        outcome: word(batch, "outcome", row)?,
        lane: word(batch, "lane", row)?,
        transport: word(batch, "transport", row)?,
        leg: value::<UInt32Type>(batch, "leg", row)?,
        size: value::<UInt64Type>(batch, "size", row)?,
        repaired: batch.column_by_name("repaired")?.as_boolean_opt()?.value(row),
        stamps: KeptStamps {
            created_us: stamp("created"),
            hub_stored_us: stamp("hub_stored"),
            first_byte_us: stamp("first_byte_sent"),
            last_byte_us: stamp("last_byte"),
            site_stored_us: stamp("site_stored"),
            action_done_us: stamp("action_done"),
        },
        clock_offset_us: value::<Int64Type>(batch, "clock_offset_us", row),
        clock_bound_us: value::<UInt64Type>(batch, "clock_bound_us", row),
        sent_before: Vec::new(),
    })
}

fn values<'a, T: ArrowPrimitiveType>(batch: &'a RecordBatch, name: &str) -> Option<&'a [T::Native]> {
    Some(batch.column_by_name(name)?.as_primitive_opt::<T>()?.values().as_ref())
}

fn value<T: ArrowPrimitiveType>(batch: &RecordBatch, name: &str, row: usize) -> Option<T::Native> {
    let column = batch.column_by_name(name)?.as_primitive_opt::<T>()?;
    (row < column.len() && column.is_valid(row)).then(|| column.value(row))
}

fn word(batch: &RecordBatch, name: &str, row: usize) -> Option<String> {
    let column = batch.column_by_name(name)?.as_dictionary_opt::<Int16Type>()?;
    let words = column.values().as_string_opt::<i32>()?;
    Some(words.value(column.key(row)?).to_owned())
}

/// The time in a file's name.
fn moment_of(stem: &str) -> Option<WallMicros> {
    let (day, time) = (stem.get(..8)?, stem.get(9..)?);
    let rfc3339 = format!(
        "{}-{}-{}T{}:{}:{}",
        day.get(..4)?,
        day.get(4..6)?,
        day.get(6..8)?,
        time.get(..2)?,
        time.get(2..4)?,
        time.get(4..)?
    );
    moment::parse(&rfc3339).ok()
}

/// The least wait that a user would notice, and the number of waits that an answer explains.
const LONG_WAIT_US: i64 = 200_000;
const WAITS_EXPLAINED: usize = 8;
const RECEIPTS_WITHIN_US: i64 = 120_000_000;
