//! Appending: bytes first, header last, so that an interrupted append leaves no record and its place is reused.

use std::{
    io::{self, Read},
    sync::{Arc, atomic::Ordering},
};

use downburst_model::{Digest, LdmStamp, Sequence, WallMicros};

use crate::{
    Appended, Clock, DuplicateRule, Durability, FeedLog, LogError, LogOptions, NewProduct,
    feed_log::active::Active,
    feed_log::draft::{Draft, Source, Target, check_size},
    feed_log::keys::Likeness,
    feed_log::room::Room,
    files,
    segment::index::Row,
    segment::record::{self, Header, Metadata, Place},
    segment::{FILE_HEADER_BYTES, Segment, body},
};

/// The state of the single writer.
#[derive(Debug)]
pub(crate) struct Writer {
    active: Option<Active>,
    next: u64,
    closed: bool,
    buffer: Vec<u8>,
}

impl Writer {
    pub(crate) fn new(next: u64) -> Self {
        Self { active: None, next, closed: false, buffer: Vec::new() }
    }

    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Never assigns this sequence or a lower one.
    pub(crate) fn go_on_after(&mut self, sequence: u64) {
        self.next = sequence + 1;
    }

    pub(crate) fn active(&self) -> Option<&Active> {
        self.active.as_ref()
    }

    pub(crate) fn active_mut(&mut self) -> Option<&mut Active> {
        self.active.as_mut()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Goes on above `last`.
    pub(crate) fn skip_to(&mut self, last: u64) {
        self.next = self.next.max(last.saturating_add(1));
    }

    /// Refuses further appends; true if they were accepted before.
    pub(crate) fn close(&mut self) -> bool {
        !std::mem::replace(&mut self.closed, true)
    }

    /// True if the active segment must be left, because of its size or the age of its first product.
    pub(crate) fn is_due(&self, options: &LogOptions, now: WallMicros) -> bool {
        let Some(active) = &self.active else { return false };
        let oldest = now.0.saturating_sub(options.retention_micros() / 8);
        active.used_bytes() > options.roll_bytes()
            || active.segment.first_row().is_some_and(|row| row.stored < oldest)
    }
}

impl FeedLog {
    /// Appends a product; the caller holds the writer.
    pub(crate) fn append_locked(
        &self,
        writer: &mut Writer,
        product: NewProduct,
        bytes: &mut dyn Read,
        clock: Clock<'_>,
    ) -> Result<Appended, LogError> {
        self.append_as(writer, product, Source::Reader(bytes), clock, Numbers::Own)
    }

    /// Appends a product with a sequence of the log's own or from elsewhere; the caller holds the writer.
    pub(crate) fn append_as(
        &self,
        writer: &mut Writer,
        product: NewProduct,
        source: Source<'_>,
        clock: Clock<'_>,
        numbers: Numbers<'_>,
    ) -> Result<Appended, LogError> {
        let options = self.options();
        if writer.closed {
            return Err(self.closed());
        }
        check_announced_size(&product, &options)?;
        self.reservation().cover(writer.next, 1, options.sequence_block)?;
        let mut metadata = announced(product.clone());
        if options.duplicate_rule == DuplicateRule::Signature && metadata.ldm.is_none() {
            // Has the length of the final one, which is known only with the bytes.
            metadata.ldm = Some(LdmStamp::of_content([0; 16]));
        }
        let size = product.expected_size.unwrap_or(0);
        // The products of a shared store come from memory, and its copy holds few of them.
        let in_body =
            matches!(numbers, Numbers::Own) && options.has_body(size, matches!(source, Source::Spool(_)));
        metadata.in_body = in_body.then_some(());
        self.make_room(writer, Room::of(&metadata, size), &options)?;
        let (outcome, size) = self.write_record(writer, &product, metadata, source, clock, numbers)?;
        let abandon = |writer: &Writer| abandon(writer, size, in_body);
        match outcome {
            Ok(Outcome::Stored(row, header)) => {
                self.publish(writer, &row);
                Ok(Appended::Stored { sequence: Sequence(row.sequence), info: self.info(&header) })
            }
            Ok(Outcome::Duplicate(of)) => {
                abandon(writer);
                Ok(Appended::Duplicate { of: Sequence(of) })
            }
            Ok(Outcome::Doubtful(error)) => {
                writer.next += 1;
                self.retire(writer)?;
                Err(error)
            }
            Err(error) => {
                abandon(writer);
                Err(error)
            }
        }
    }

    pub(crate) fn closed(&self) -> LogError {
        LogError::Closed { feed: self.identity.feed.clone() }
    }

    /// Leaves the active segment; deletes one without records.
    pub(crate) fn retire(&self, writer: &mut Writer) -> Result<(), LogError> {
        let Some(Active { segment, .. }) = writer.active.take() else { return Ok(()) };
        segment.leave();
        if segment.row_count() == 0 {
            self.segments_mut().remove(&segment.base);
            segment.forget()?;
        }
        Ok(())
    }

    /// Ensures that there is a segment with room for a product.
    pub(crate) fn make_room(
        &self,
        writer: &mut Writer,
        room: Room,
        options: &LogOptions,
    ) -> Result<(), LogError> {
        if let Some(active) = &writer.active {
            let rows = active.segment.row_count();
            let used_bytes = active.used_bytes().saturating_add(room.bytes());
            if rows == 0 || (rows < MAX_ROWS && used_bytes <= options.roll_bytes()) {
                return Ok(());
            }
            self.retire(writer)?;
            self.seal_backlog()?;
        }
        let length = options.roll_bytes().max(room.record_bytes.saturating_add(FILE_HEADER_BYTES));
        let (segment, file) = Segment::create(&self.dir, writer.next, &self.identity, length)?;
        if options.durability == Durability::Power {
            file.sync_all().map_err(|error| LogError::io("sync", &segment.path, error))?;
            files::sync_directory(&self.dir)?;
        }
        self.segments_mut().insert(segment.base, Arc::clone(&segment));
        writer.active = Some(Active { segment, file, tail: FILE_HEADER_BYTES, body_bytes: 0 });
        Ok(())
    }

    /// Writes the bytes and then the header at the tail; also returns the number of bytes written, whatever the
    /// outcome.
    fn write_record(
        &self,
        writer: &mut Writer,
        product: &NewProduct,
        metadata: Metadata,
        source: Source<'_>,
        clock: Clock<'_>,
        numbers: Numbers<'_>,
    ) -> Result<(Result<Outcome, LogError>, u64), LogError> {
        let options = self.options();
        let Writer { active: Some(active), buffer, next, .. } = writer else {
            return Err(self.closed());
        };
        let header_bytes = record::reserve(&metadata) as u32;
        let target = match metadata.in_body {
            None => Target::Segment { at: active.tail + u64::from(header_bytes) },
            Some(()) => Target::Body { sequence: *next, file: None },
        };
        let mut draft = Draft { active, target, size: 0 };
        let contents = match source {
            Source::Reader(bytes) => draft.copy(product, bytes, buffer, &options),
            Source::Spool(spool) => draft.adopt(spool, &options),
        };
        let outcome = contents.and_then(|contents| {
            let ldm = product.ldm.clone().or(contents.signature.map(LdmStamp::of_content));
            let metadata = Metadata { digest: contents.digest, body: contents.body, ldm, ..metadata };
            let header = Header { sequence: *next, size: contents.size, header_bytes, metadata };
            self.finish(&draft, header, &options, clock, numbers)
        });
        Ok((outcome, draft.size))
    }

    /// Checks whether the product is a duplicate, and if not turns it into a record.
    fn finish(
        &self,
        draft: &Draft<'_>,
        mut header: Header,
        options: &LogOptions,
        clock: Clock<'_>,
        numbers: Numbers<'_>,
    ) -> Result<Outcome, LogError> {
        if !matches!(numbers, Numbers::Given(_))
            && let Some(of) = self.duplicate_of(&header)?
        {
            return Ok(Outcome::Duplicate(of));
        }
        header.metadata.stored = clock();
        header.sequence = match numbers {
            Numbers::Own => header.sequence,
            Numbers::Asked(number) => number(&header)?,
            Numbers::Given(sequence) => sequence,
        };
        let offset = draft.active.tail;
        let encoded =
            record::encode(Place { salt: self.identity.salt, offset }, &mut header).ok_or_else(|| {
                draft.failed("encode a record for", io::Error::from(io::ErrorKind::InvalidInput))
            })?;
        draft.sync_body(options)?;
        draft.write_header(&encoded, offset)?;
        if let Err(error) = draft.sync(options) {
            // It is unknown whether the record reached the disk, so neither its place nor its sequence is reused.
            let _ = draft.write_header(&[0; record::ALIGNMENT as usize], offset);
            return Ok(Outcome::Doubtful(error));
        }
        Ok(Outcome::Stored(Row::new(&header, offset), header))
    }

    fn duplicate_of(&self, header: &Header) -> Result<Option<u64>, LogError> {
        if let Some(source) = &header.metadata.source {
            let same = self.same_source(&source.key, source.resend)?;
            if same.is_some() || source.resend.is_some() {
                return Ok(same);
            }
        }
        self.same_product(&Likeness::from(header))
    }

    fn publish(&self, writer: &mut Writer, row: &Row) {
        if let Some(active) = &mut writer.active {
            active.extend(std::slice::from_ref(row), row.end());
        }
        writer.next = row.sequence + 1;
        self.keys().insert(row);
        self.head.store(row.sequence, Ordering::Release);
        self.listeners().iter().for_each(|listener| listener(Sequence(row.sequence)));
    }
}

/// The source of a product's sequence.
pub(crate) enum Numbers<'a> {
    /// The log's next one.
    Own,
    /// Requested from elsewhere once the product is complete and known not to be a duplicate.
    Asked(&'a mut dyn FnMut(&Header) -> Result<u64, LogError>),
    /// Assigned elsewhere; the product is not a duplicate.
    Given(u64),
}

#[expect(clippy::large_enum_variant, reason = "one at a time, on the stack, for the length of an append")]
enum Outcome {
    Duplicate(u64),
    /// The record is in the file, but the disk refused to confirm it.
    Doubtful(LogError),
    Stored(Row, Header),
}

/// Releases the disk space of an unfinished product, if it is worth a system call.
fn abandon(writer: &Writer, size: u64, in_body: bool) {
    let Some(Active { segment, file, tail, .. }) = &writer.active else { return };
    if in_body {
        body::discard(&segment.path, writer.next);
    } else if size > WORTH_RELEASING_BYTES {
        file.release(*tail, tail.saturating_add(size).saturating_add(u64::from(record::MAX_HEADER_BYTES)));
    }
}

pub(crate) fn announced(product: NewProduct) -> Metadata {
    Metadata {
        id: product.id,
        origin: product.origin,
        created: product.created,
        stored: WallMicros(0),
        class: product.class,
        digest: Digest([0; 32]),
        body: None,
        source: product.source,
        hops: product.hops,
        ldm: product.ldm,
        in_body: None,
        properties: product.properties,
    }
}

fn check_announced_size(product: &NewProduct, options: &LogOptions) -> Result<(), LogError> {
    product
        .expected_size
        .map_or(Ok(()), |size| check_size(&product.id, size, options.max_product_bytes, None))
}

/// Bounds the rows in memory, and the work of sealing, for feeds of tiny products.
pub(crate) const MAX_ROWS: usize = 65_536;
const WORTH_RELEASING_BYTES: u64 = 1 << 20;
