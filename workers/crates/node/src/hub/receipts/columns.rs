//! The columns of a file of receipts, filled row by row.
use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Int64Builder, PrimitiveBuilder, TimestampMicrosecondBuilder, UInt64Builder,
};
use arrow_array::types::UInt32Type;
use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use downburst_model::{Lane, SiteName, Transport, WallMicros};
use downburst_session::{ClockOffset, Outcome};

use super::Row;
use super::names::NameColumn;

/// The rows since the last [`take`](Self::take), column by column.
pub(super) struct Columns {
    schema: SchemaRef,
    feeds: NameColumn,
    sites: NameColumn,
    outcomes: NameColumn,
    lanes: NameColumn,
    transports: NameColumn,
    epochs: Vec<u64>,
    sequences: Vec<u64>,
    sizes: Vec<u64>,
    legs: PrimitiveBuilder<UInt32Type>,
    repaired: BooleanBuilder,
    stamps: [TimestampMicrosecondBuilder; STAMPS],
    clock_offsets: Int64Builder,
    clock_bounds: UInt64Builder,
}

impl Columns {
    /// Empty columns for a new file.
    pub(super) fn new() -> Self {
        Self {
            schema: schema(),
            feeds: NameColumn::default(),
            sites: NameColumn::default(),
            outcomes: NameColumn::of(&OUTCOMES),
            lanes: NameColumn::of(&LANES),
            transports: NameColumn::of(&TRANSPORTS),
            epochs: Vec::new(),
            sequences: Vec::new(),
            sizes: Vec::new(),
            legs: PrimitiveBuilder::new(),
            repaired: BooleanBuilder::new(),
            stamps: std::array::from_fn(|_| TimestampMicrosecondBuilder::new().with_timezone(UTC)),
            clock_offsets: Int64Builder::new(),
            clock_bounds: UInt64Builder::new(),
        }
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(super) fn len(&self) -> usize {
        self.sequences.len()
    }

    /// The number of a site in this file; `None` if the file has no room for another name.
    pub(super) fn site(&mut self, site: &SiteName) -> Option<i16> {
        self.sites.number(site.as_str())
    }

    /// Adds a row; false if the file has no room for another name.
    pub(super) fn push(&mut self, site: i16, clock: Option<ClockOffset>, row: &Row) -> bool {
        let receipt = &row.receipt;
        let Some(feed) = self.feeds.number(receipt.key.feed.as_str()) else { return false };
        self.feeds.push(feed);
        self.sites.push(site);
        self.outcomes.push(if row.is_late_file { FILED_NUMBER } else { outcome_number(receipt.outcome) });
        self.lanes.push(lane_number(receipt.lane));
        self.transports.push(transport_number(receipt.transport));
        self.epochs.push(receipt.key.epoch.0);
        self.sequences.push(receipt.key.sequence.0);
        self.sizes.push(receipt.size);
        self.legs.append_value(receipt.leg.0);
        self.repaired.append_value(receipt.repaired);
        let stamps = [
            known(receipt.created),
            known(receipt.hub_stored),
            row.first_byte,
            known(receipt.last_byte),
            known(receipt.site_stored),
            receipt.action_done,
        ];
        for (column, stamp) in self.stamps.iter_mut().zip(stamps) {
            column.append_option(stamp.map(|stamp| stamp.0));
        }
        self.clock_offsets.append_option(clock.map(|clock| clock.offset_us));
        self.clock_bounds.append_option(clock.map(|clock| clock.bound_us));
        true
    }

    /// The rows as one batch; the columns are empty afterwards.
    pub(super) fn take(&mut self) -> Result<RecordBatch, ArrowError> {
        let [created, hub_stored, first_byte, last_byte, site_stored, action_done] =
            self.stamps.each_mut().map(|column| Arc::new(column.finish()) as ArrayRef);
        let numbers = |column: &mut Vec<u64>| Arc::new(UInt64Array::from(std::mem::take(column))) as ArrayRef;
        let columns: Vec<ArrayRef> = vec![
            self.feeds.take()?,
            self.sites.take()?,
            numbers(&mut self.epochs),
            numbers(&mut self.sequences),
            self.outcomes.take()?,
            self.lanes.take()?,
            self.transports.take()?,
            Arc::new(self.legs.finish()),
            numbers(&mut self.sizes),
            Arc::new(self.repaired.finish()),
            created,
            hub_stored,
            first_byte,
            last_byte,
            site_stored,
            action_done,
            Arc::new(self.clock_offsets.finish()),
            Arc::new(self.clock_bounds.finish()),
        ];
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
    }
}

/// The columns of a file, in order. The metadata of a field names the clock of its stamp.
pub(super) fn schema() -> SchemaRef {
    let name = |name: &str| Field::new_dictionary(name, DataType::Int16, DataType::Utf8, false);
    let number = |name: &str| Field::new(name, DataType::UInt64, false);
    let stamp = |name: &str, clock: &str| {
        let kind = DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()));
        let clock = HashMap::from([("clock".to_owned(), clock.to_owned())]);
        Field::new(name, kind, true).with_metadata(clock)
    };
    Arc::new(Schema::new(vec![
        name("feed"),
        name("site"),
        number("epoch"),
        number("sequence"),
        name("outcome"),
        name("lane"),
        name("transport"),
        Field::new("leg", DataType::UInt32, false),
        number("size"),
        Field::new("repaired", DataType::Boolean, false),
        stamp("created", "origin"),
        stamp("hub_stored", "hub"),
        stamp("first_byte_sent", "hub"),
        stamp("last_byte", "site"),
        stamp("site_stored", "site"),
        stamp("action_done", "site"),
        Field::new("clock_offset_us", DataType::Int64, true),
        Field::new("clock_bound_us", DataType::UInt64, true),
    ]))
}

/// A receipt of a product that the site never saw has zeros for stamps.
fn known(stamp: WallMicros) -> Option<WallMicros> {
    (stamp.0 != 0).then_some(stamp)
}

/// The index of the word in [`OUTCOMES`].
fn outcome_number(outcome: Outcome) -> i16 {
    match outcome {
        Outcome::Stored => 0,
        Outcome::Held => 1,
        Outcome::Rejected => 2,
        Outcome::Expired => 3,
        Outcome::LateAtHub => 5,
        Outcome::LateAtSite => 6,
    }
}

/// The index of the word in [`LANES`].
fn lane_number(lane: Lane) -> i16 {
    match lane {
        Lane::Live => 0,
        Lane::Backfill => 1,
        Lane::Resend => 2,
    }
}

/// The index of the word in [`TRANSPORTS`].
fn transport_number(transport: Transport) -> i16 {
    match transport {
        Transport::Unicast => 0,
        Transport::Multicast => 1,
        Transport::StaticCircuit => 2,
        Transport::DynamicCircuit => 3,
    }
}

/// Indices of the columns that a search reads.
pub(super) const FEED: usize = 0;
pub(super) const SITE: usize = 1;
pub(super) const EPOCH: usize = 2;
pub(super) const SEQUENCE: usize = 3;
pub(super) const SIZE: usize = 8;
pub(super) const FIRST_BYTE_SENT: usize = 12;

pub(super) const STORED: &str = "stored";
/// The outcome of a row that only reports a file, after the row of the receipt.
pub(super) const FILED: &str = "filed";
const FILED_NUMBER: i16 = 4;
const OUTCOMES: [&str; 7] = [STORED, "held", "rejected", "expired", FILED, "late-at-hub", "late-at-site"];
const LANES: [&str; 3] = ["live", "backfill", "resend"];
const TRANSPORTS: [&str; 4] = ["unicast", "multicast", "static-circuit", "dynamic-circuit"];
const STAMPS: usize = 6;
const UTC: &str = "UTC";
