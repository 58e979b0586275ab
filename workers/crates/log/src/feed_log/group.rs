//! Appending many products whose bytes are in memory with one write, one synchronisation and one wake-up.
//!
//! In the file, the records of a group follow one another, headers before their bytes. A process that dies during
//! the write leaves some of them complete and the next one torn. Opening the log checks every digest, keeps the
//! complete ones and cuts the rest, none of which was acknowledged.

use std::{collections::VecDeque, io, io::IoSlice, sync::atomic::Ordering};

use downburst_model::{Digest, LdmStamp, Pieces, Sequence, WallMicros};
use md5::{Digest as _, Md5};

use crate::{
    Appended, Clock, DuplicateRule, Durability, FeedLog, LogError, LogOptions, NewProduct,
    feed_log::active::Active,
    feed_log::draft::check_size,
    feed_log::hashing::{ContentHasher, Contents},
    feed_log::keys::{Keys, Likeness, is_same},
    feed_log::room::Room,
    feed_log::writer::{MAX_ROWS, Writer, announced},
    segment::body,
    segment::index::Row,
    segment::record::{self, Body, Header, Place},
    wmo,
};

/// The outcome for each product, by its position in the call.
pub(crate) type Results = Vec<Option<Result<Appended, LogError>>>;

impl FeedLog {
    /// As [`ProductLog::append_all`](crate::ProductLog::append_all), for bytes in pieces.
    pub fn append_pieces(
        &self,
        products: Vec<(NewProduct, Pieces)>,
        clock: Clock<'_>,
    ) -> Vec<Result<Appended, LogError>> {
        let options = self.options();
        let mut results: Results = Vec::with_capacity(products.len());
        let mut waiting = VecDeque::with_capacity(products.len());
        for (at, (product, bytes)) in products.into_iter().enumerate() {
            match Checked::new(at, product, bytes, &options) {
                Ok(checked) => {
                    results.push(None);
                    waiting.push_back(checked);
                }
                Err(error) => results.push(Some(Err(error))),
            }
        }
        let mut writer = self.writer();
        while !waiting.is_empty() {
            self.append_some(&mut writer, &mut waiting, &mut results, clock);
        }
        results.into_iter().map(|result| result.unwrap_or_else(|| Err(self.closed()))).collect()
    }

    /// Appends as many of the waiting products as fit into one write; always takes at least one from the queue.
    pub(crate) fn append_some(
        &self,
        writer: &mut Writer,
        waiting: &mut VecDeque<Checked>,
        results: &mut Results,
        clock: Clock<'_>,
    ) {
        let options = self.options();
        let mut group = Group::default();
        let first = waiting.front().map_or(Room::NONE, Checked::room);
        match self.begin(writer, first, waiting.len(), &options) {
            Ok(limits) => self.stage(writer, waiting, results, &mut group, limits, clock),
            Err(error) => {
                if let Some(refused) = waiting.pop_front() {
                    set(results, refused.at, Err(error));
                }
                return;
            }
        }
        match self.commit(writer, &group, &options) {
            Ok(()) => self.publish_group(writer, group, results),
            Err(Failure::NothingWritten) => self.one_by_one(writer, group, results, clock),
            Err(Failure::Doubtful(error)) => self.give_up(writer, group, results, error),
        }
    }

    /// Makes room in a segment for the first product, and returns how much more the write may take.
    pub(crate) fn begin(
        &self,
        writer: &mut Writer,
        first: Room,
        count: usize,
        options: &LogOptions,
    ) -> Result<Limits, LogError> {
        if writer.is_closed() {
            return Err(self.closed());
        }
        self.make_room(writer, first, options)?;
        let Some(active) = writer.active() else { return Err(self.closed()) };
        let free_rows = MAX_ROWS.saturating_sub(active.segment.row_count());
        let limits = Limits {
            products: count.min(MAX_GROUP_PRODUCTS).min(free_rows).max(1),
            bytes: options.roll_bytes().saturating_sub(active.used_bytes()).min(MAX_GROUP_BYTES),
        };
        self.reservation().cover(writer.next(), limits.products as u64, options.sequence_block)?;
        Ok(limits)
    }

    /// Assigns sequences and places to products that are not duplicates, and encodes their headers.
    pub(crate) fn stage(
        &self,
        writer: &Writer,
        waiting: &mut VecDeque<Checked>,
        results: &mut Results,
        group: &mut Group,
        limits: Limits,
        clock: Clock<'_>,
    ) {
        let Some(active) = writer.active() else { return };
        let stored = clock();
        *group = Group::at(active.tail);
        let mut keys = self.keys();
        while let Some(checked) = waiting.front() {
            if group.is_full(limits, checked.room()) {
                return;
            }
            let Some(checked) = waiting.pop_front() else { return };
            match self.repeated(&keys, group, &checked) {
                Ok(None) => {
                    let sequence = writer.next() + group.members.len() as u64;
                    let at = checked.at;
                    match group.add(checked, sequence, stored, self.identity.salt) {
                        Some(row) => keys.insert(&row),
                        None => set(results, at, Err(active.failed("encode a record for", invalid()))),
                    }
                }
                Ok(Some(of)) => set(results, checked.at, Ok(Appended::Duplicate { of: Sequence(of) })),
                Err(error) => set(results, checked.at, Err(error)),
            }
        }
    }

    /// The product, in the log or in the group before it, that this one repeats.
    fn repeated(&self, keys: &Keys, group: &Group, checked: &Checked) -> Result<Option<u64>, LogError> {
        let header = &checked.header;
        if let Some(source) = &header.metadata.source {
            let same =
                |other: &Header| other.metadata.source.as_ref().is_some_and(|it| it.is_same_delivery(source));
            let candidate = keys.source_candidate(&source.key, source.resend);
            let of = self.confirmed(group, candidate, same)?;
            if of.is_some() || source.resend.is_some() {
                return Ok(of);
            }
        }
        if keys.rule() == DuplicateRule::None {
            return Ok(None);
        }
        let likeness = Likeness::from(header);
        let same = |other: &Header| is_same(keys.rule(), &likeness, &Likeness::from(other));
        self.confirmed(group, keys.product_candidate(&likeness), same)
    }

    fn confirmed(
        &self,
        group: &Group,
        candidate: Option<u64>,
        same: impl Fn(&Header) -> bool,
    ) -> Result<Option<u64>, LogError> {
        match candidate.and_then(|sequence| group.header(sequence)) {
            Some(header) => Ok(same(header).then_some(header.sequence)),
            None => self.confirm(candidate, same),
        }
    }

    /// Writes the group at the tail, durably if the feed requires it.
    pub(crate) fn commit(&self, writer: &Writer, group: &Group, options: &LogOptions) -> Result<(), Failure> {
        let Some(active) = writer.active().filter(|_| !group.members.is_empty()) else { return Ok(()) };
        if let Err(error) = group.write_bodies(active, options.durability).and_then(|()| group.write(active))
        {
            tracing::warn!(feed = %self.identity.feed, %error, "a group of products could not be written");
            return Err(match active.wipe_tail() {
                Ok(()) => {
                    group.discard_bodies(active);
                    Failure::NothingWritten
                }
                // A record that may be there needs its body.
                Err(error) => Failure::Doubtful(error),
            });
        }
        match options.durability {
            Durability::Process => Ok(()),
            Durability::Power => active.file.sync_data().map_err(|error| {
                // Best effort: the sequences are given up in any case.
                let _ = active.wipe_tail();
                Failure::Doubtful(error)
            }),
        }
    }

    pub(crate) fn publish_group(&self, writer: &mut Writer, group: Group, results: &mut Results) {
        let Some(last) = group.members.last().map(|member| member.header.sequence) else { return };
        if let Some(active) = writer.active_mut() {
            active.extend(&group.rows, group.end);
        }
        writer.go_on_after(last);
        self.head.store(last, Ordering::Release);
        for Member { at, header, .. } in &group.members {
            let stored = Appended::Stored { sequence: Sequence(header.sequence), info: self.info(header) };
            set(results, *at, Ok(stored));
        }
        self.listeners().iter().for_each(|listener| listener(Sequence(last)));
    }

    /// Appends the products separately: a disk without room for all may have room for some.
    fn one_by_one(&self, writer: &mut Writer, group: Group, results: &mut Results, clock: Clock<'_>) {
        self.forget_keys(&group);
        for member in group.members {
            let (at, bytes) = (member.at, member.bytes.whole());
            let outcome = self.append_locked(writer, member.announced_again(), &mut bytes.as_ref(), clock);
            set(results, at, outcome);
        }
    }

    /// It is unknown whether the records reached the disk, so neither their places nor their sequences are reused.
    fn give_up(&self, writer: &mut Writer, group: Group, results: &mut Results, error: io::Error) {
        self.forget_keys(&group);
        let path = writer.active().map(|active| active.segment.path.clone()).unwrap_or_default();
        if let Some(last) = group.members.last() {
            writer.go_on_after(last.header.sequence);
        }
        if let Err(error) = self.retire(writer) {
            tracing::warn!(feed = %self.identity.feed, %error, "a segment could not be closed after a failed write");
        }
        for member in &group.members {
            let error = io::Error::new(error.kind(), error.to_string());
            set(results, member.at, Err(LogError::io("sync", &path, error)));
        }
    }

    pub(crate) fn forget_keys(&self, group: &Group) {
        let mut keys = self.keys();
        group.rows.iter().for_each(|row| keys.remove(row));
    }
}

/// The limits of one write.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) products: usize,
    /// The most bytes of records and bodies, except for the first product.
    pub(crate) bytes: u64,
}

/// The reason why a group was not stored.
pub(crate) enum Failure {
    /// The file is as it was before.
    NothingWritten,
    /// The records may have reached the disk.
    Doubtful(io::Error),
}

/// A product that matches its announced size and digest.
pub(crate) struct Checked {
    /// Its position in the call.
    pub(crate) at: usize,
    bytes: Pieces,
    /// Still without sequence, stamp and length.
    header: Header,
}

impl Checked {
    pub(crate) fn is_heartbeat(&self) -> bool {
        self.header.metadata.id.is_heartbeat()
    }

    pub(crate) fn new(
        at: usize,
        product: NewProduct,
        bytes: impl Into<Pieces>,
        options: &LogOptions,
    ) -> Result<Self, LogError> {
        let (bytes, rule) = (bytes.into(), options.duplicate_rule);
        let size = bytes.len() as u64;
        check_size(&product.id, size, options.max_product_bytes, product.expected_size)?;
        let contents = match bytes.as_slice() {
            [whole] => hashed(whole, rule, product.ldm.is_some()),
            [first, ..] if first.len() >= wmo::MAX_STARTING_LINE_BYTES => {
                hashed_in_pieces(&bytes, rule, product.ldm.is_some())
            }
            _ => hashed(&bytes.whole(), rule, product.ldm.is_some()),
        };
        contents.check(&product)?;
        let Contents { digest, body, signature, .. } = contents;
        let ldm = product.ldm.clone().or(signature.map(LdmStamp::of_content));
        let in_body = options.has_body(size, false).then_some(());
        let metadata = record::Metadata { digest, body, ldm, in_body, ..announced(product) };
        Ok(Self { at, bytes, header: Header { sequence: 0, size, header_bytes: 0, metadata } })
    }

    pub(crate) fn numbered(self, at: usize) -> Self {
        Self { at, ..self }
    }

    /// The same product, with its bytes in the segment in any case.
    pub(crate) fn in_segment(mut self) -> Self {
        self.header.metadata.in_body = None;
        self
    }

    /// The most room that it needs.
    pub(crate) fn room(&self) -> Room {
        let properties = self.header.metadata.properties.as_ref().map_or(0, |it| it.as_bytes().len() as u64);
        let header_bytes = u64::from(record::PLAIN_HEADER_BYTES) + properties + record::ALIGNMENT;
        Room {
            record_bytes: self.header.segment_bytes().saturating_add(header_bytes),
            body_bytes: self.header.body_bytes(),
        }
    }
}

/// Records on their way into the tail of the segment.
#[derive(Default)]
pub(crate) struct Group {
    /// The offset of the first record.
    begin: u64,
    /// The end of the last record.
    end: u64,
    body_bytes: u64,
    /// The headers, each with the padding of the record before it.
    headers: Vec<u8>,
    pub(crate) members: Vec<Member>,
    rows: Vec<Row>,
}

/// A record of a group.
pub(crate) struct Member {
    /// Its position in the call.
    pub(crate) at: usize,
    pub(crate) header: Header,
    pub(crate) bytes: Pieces,
    /// The end of its part of the headers.
    headers_end: usize,
}

impl Group {
    /// An empty group that begins at an offset of the segment.
    pub(crate) fn at(begin: u64) -> Self {
        Self { begin, end: begin, ..Self::default() }
    }

    /// The same products with as many other sequences; `None` if a record can't be encoded.
    pub(crate) fn renumbered(self, sequences: &[u64], salt: u64) -> Option<Self> {
        let mut group = Self::at(self.begin);
        for (member, sequence) in self.members.into_iter().zip(sequences) {
            let Member { at, bytes, header, .. } = member;
            let stored = header.metadata.stored;
            let header = Header { header_bytes: 0, ..header };
            group.add(Checked { at, bytes, header }, *sequence, stored, salt)?;
        }
        Some(group)
    }

    /// True if a product that needs this room would exceed a limit.
    pub(crate) fn is_full(&self, limits: Limits, room: Room) -> bool {
        let used_bytes = self.end.saturating_sub(self.begin).saturating_add(self.body_bytes);
        let full = used_bytes.saturating_add(room.bytes()) > limits.bytes;
        self.members.len() >= limits.products || (full && !self.members.is_empty())
    }

    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Adds a product; `None` if its metadata can't be encoded.
    pub(crate) fn add(
        &mut self,
        checked: Checked,
        sequence: u64,
        stored: WallMicros,
        salt: u64,
    ) -> Option<Row> {
        let Checked { at, bytes, mut header } = checked;
        header.sequence = sequence;
        header.metadata.stored = stored;
        let offset = record::padded(self.end);
        let before = self.headers.len();
        self.headers.resize(before + offset.saturating_sub(self.end) as usize, 0);
        if record::encode_onto(&mut self.headers, Place { salt, offset }, &mut header).is_none() {
            self.headers.truncate(before);
            return None;
        }
        let row = Row::new(&header, offset);
        self.end = row.end();
        self.body_bytes += row.body_bytes();
        self.rows.push(row);
        self.members.push(Member { at, header, bytes, headers_end: self.headers.len() });
        Some(row)
    }

    fn header(&self, sequence: u64) -> Option<&Header> {
        let first = self.members.first()?.header.sequence;
        let at = usize::try_from(sequence.checked_sub(first)?).ok()?;
        self.members.get(at).map(|member| &member.header)
    }

    /// Writes the bodies and, if the feed requires it, waits until the disk has them and their names.
    fn write_bodies(&self, active: &Active, durability: Durability) -> io::Result<()> {
        let (segment, is_durable) = (&active.segment.path, durability == Durability::Power);
        let sequences: Vec<u64> = self.with_bodies().map(|member| member.header.sequence).collect();
        for member in self.with_bodies() {
            let file = body::create(segment, member.header.sequence, is_durable)?;
            file.write_pieces_at(&mut member.pieces().collect::<Vec<_>>(), 0)?;
        }
        if is_durable { body::sync(segment, &sequences) } else { Ok(()) }
    }

    fn discard_bodies(&self, active: &Active) {
        self.with_bodies().for_each(|member| body::discard(&active.segment.path, member.header.sequence));
    }

    fn with_bodies(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.header.metadata.in_body.is_some())
    }

    fn write(&self, active: &Active) -> io::Result<()> {
        let mut pieces = Vec::with_capacity(self.members.len() * 2);
        let mut from = 0;
        for member in &self.members {
            pieces.push(IoSlice::new(self.headers.get(from..member.headers_end).unwrap_or_default()));
            if member.header.metadata.in_body.is_none() {
                pieces.extend(member.pieces());
            }
            from = member.headers_end;
        }
        active.file.write_pieces_at(&mut pieces, self.begin)
    }
}

impl Member {
    fn pieces(&self) -> impl Iterator<Item = IoSlice<'_>> {
        self.bytes.as_slice().iter().filter(|piece| !piece.is_empty()).map(|piece| IoSlice::new(piece))
    }

    fn announced_again(self) -> NewProduct {
        let Header { size, metadata, .. } = self.header;
        NewProduct {
            id: metadata.id,
            origin: metadata.origin,
            created: metadata.created,
            class: metadata.class,
            source: metadata.source,
            hops: metadata.hops,
            ldm: metadata.ldm,
            properties: metadata.properties,
            expected_size: Some(size),
            expected_digest: Some(metadata.digest),
        }
    }
}

/// The digests of bytes in one piece.
fn hashed(bytes: &[u8], rule: DuplicateRule, has_signature: bool) -> Contents {
    let needs_signature = rule == DuplicateRule::Signature && !has_signature;
    Contents {
        size: bytes.len() as u64,
        digest: Digest(*blake3::hash(bytes).as_bytes()),
        body: if rule == DuplicateRule::None { None } else { body_of(bytes, rule) },
        signature: needs_signature.then(|| Md5::digest(bytes).into()),
    }
}

/// The same of bytes in several; the first has the whole starting line of a bulletin.
fn hashed_in_pieces(bytes: &Pieces, rule: DuplicateRule, has_signature: bool) -> Contents {
    let mut hasher = ContentHasher::for_rule(rule, has_signature);
    bytes.as_slice().iter().for_each(|piece| hasher.update(piece));
    hasher.finish()
}

fn body_of(bytes: &[u8], rule: DuplicateRule) -> Option<Body> {
    let line_bytes = wmo::starting_line_bytes(bytes);
    let starting_line_bytes = u8::try_from(line_bytes).ok().filter(|bytes| *bytes > 0)?;
    let digest = Digest(*blake3::hash(bytes.get(line_bytes..)?).as_bytes());
    let compared = (rule == DuplicateRule::ContentWithoutWmoStart).then_some(());
    Some(Body { starting_line_bytes, digest, compared })
}

pub(crate) fn set(results: &mut Results, at: usize, result: Result<Appended, LogError>) {
    if let Some(place) = results.get_mut(at) {
        *place = Some(result);
    }
}

fn invalid() -> io::Error {
    io::Error::from(io::ErrorKind::InvalidInput)
}

/// Products of one piece stay below the 1,024 that the kernel takes in one call.
const MAX_GROUP_PRODUCTS: usize = 500;
/// Bounds the time for which one write blocks other appenders.
const MAX_GROUP_BYTES: u64 = 8 << 20;
