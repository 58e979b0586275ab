//! One segment: a file of records and a directory of bodies while its bytes are kept, and the rows that describe them.
pub(crate) mod body;
mod file_header;
pub(crate) mod index;
mod mapped;
pub(crate) mod place;
pub(crate) mod record;
pub(crate) mod scanner;

pub(crate) use file_header::{FILE_HEADER_BYTES, read_file_header};
pub(crate) use index::partition_point;
pub(crate) use mapped::Populated;

use std::{
    cell::RefCell,
    collections::BTreeSet,
    io,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use bytes::Bytes;
use downburst_model::{Content, Epoch};

use crate::{
    LogError, disk, files,
    files::identity::Identity,
    segment::body::OpenBodies,
    segment::file_header::file_header,
    segment::index::{Index, Row, slice},
    segment::record::{Header, Place},
};

/// A segment, shared by the writer and the readers.
#[derive(Debug)]
pub(crate) struct Segment {
    /// No record of the segment has a lower sequence.
    pub(crate) base: u64,
    pub(crate) path: PathBuf,
    index_path: PathBuf,
    state: RwLock<State>,
    open_bodies: OpenBodies,
}

#[derive(Debug)]
struct State {
    rows: Rows,
    map: Option<Bytes>,
    has_bytes: bool,
    being_written: bool,
    /// The end of the last record.
    data_end: u64,
    /// The bytes in bodies.
    body_bytes: u64,
    newest_stored: i64,
    /// Sequences whose bytes were found damaged.
    damaged: BTreeSet<u64>,
}

/// The disk space of an evicted segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evicted {
    pub(crate) freed_bytes: u64,
    /// Of bodies that have a further name: freed when that name goes.
    pub(crate) linked_bytes: u64,
}

#[derive(Debug)]
enum Rows {
    Open(Vec<Row>),
    Sealed(Index),
}

impl Segment {
    /// Creates the file for the writer, with room for `length_bytes` (not allocated yet).
    pub(crate) fn create(
        dir: &Path,
        base: u64,
        identity: &Identity,
        length_bytes: u64,
    ) -> Result<(Arc<Self>, disk::File), LogError> {
        let path = files::segment_path(dir, base);
        let create = || -> io::Result<disk::File> {
            let file = disk::File::create(&path)?;
            file.set_len(length_bytes.max(FILE_HEADER_BYTES))?;
            file.write_all_at(&file_header(identity, base), 0)?;
            Ok(file)
        };
        let file = create().map_err(|error| {
            // A file without records means nothing; the first failure is the one to report.
            let _ = files::remove(&path);
            LogError::io("create", &path, error)
        })?;
        let state = State { being_written: true, ..State::open(Vec::new(), FILE_HEADER_BYTES) };
        Ok((Arc::new(Self::with_state(dir, base, state)), file))
    }

    /// A segment whose rows were found by reading it.
    pub(crate) fn recovered(dir: &Path, base: u64, rows: Vec<Row>, data_end: u64) -> Self {
        Self::with_state(dir, base, State::open(rows, data_end))
    }

    /// A segment with an index, with or without its bytes.
    pub(crate) fn sealed(dir: &Path, base: u64, index: Index, has_bytes: bool) -> Self {
        let (data_end, newest_stored) = (index.data_end, index.newest_stored);
        let rows = Rows::Sealed(index);
        let body_bytes = rows.all().map(|row| row.body_bytes()).sum();
        let state = State {
            rows,
            map: None,
            has_bytes,
            being_written: false,
            data_end,
            body_bytes,
            newest_stored,
            damaged: BTreeSet::new(),
        };
        Self::with_state(dir, base, state)
    }

    /// Adds records that are completely in the file and end at `data_end`.
    pub(crate) fn extend(&self, added: &[Row], data_end: u64) {
        let mut state = self.write();
        let newest = added.iter().map(|row| row.stored).max().unwrap_or(i64::MIN);
        state.newest_stored = state.newest_stored.max(newest);
        state.data_end = data_end;
        state.body_bytes += added.iter().map(Row::body_bytes).sum::<u64>();
        if let Rows::Open(rows) = &mut state.rows {
            rows.extend_from_slice(added);
        }
    }

    /// Records that the writer has left.
    pub(crate) fn leave(&self) {
        self.write().being_written = false;
    }

    /// Makes the segment durable and gives it an index file. Does nothing to one that is sealed or being written.
    pub(crate) fn seal(&self, epoch: Epoch) -> Result<(), LogError> {
        let (rows, data_end) = match &*self.read() {
            State { rows: Rows::Open(rows), being_written: false, data_end, .. } => (rows.clone(), *data_end),
            _ => return Ok(()),
        };
        self.sync()?;
        let map = self.mapped(data_end)?.unwrap_or_default();
        let populated = RefCell::new(Populated::to_read(SEALED_AHEAD_BYTES));
        let header = |row: &Row| {
            self.readable(&map, row.offset, u64::from(row.header_bytes), &mut populated.borrow_mut())
        };
        if let Some(index) = Index::write(&self.index_path, epoch, data_end, &rows, &header)? {
            self.write().rows = Rows::Sealed(index);
        }
        Ok(())
    }

    /// Makes everything written so far durable. A deleted segment needs nothing.
    pub(crate) fn sync(&self) -> Result<(), LogError> {
        let synced = body::sync_all(&self.path, &self.sequences_in_bodies())
            .and_then(|()| disk::File::open_to_read(&self.path)?.sync_all());
        match synced {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            synced => synced.map_err(|error| LogError::io("sync", &self.path, error)),
        }
    }

    /// Stops serving the bytes of a product; true if they were served before.
    pub(crate) fn mark_damaged(&self, sequence: u64) -> bool {
        self.write().damaged.insert(sequence)
    }

    /// Deletes the bytes and keeps the memory.
    pub(crate) fn evict(&self) -> Result<Evicted, LogError> {
        let linked_bytes = self.remove_bytes()?;
        let mut state = self.write();
        state.has_bytes = false;
        state.map = None;
        let bytes = state.data_end.saturating_add(state.body_bytes);
        Ok(Evicted { freed_bytes: bytes.saturating_sub(linked_bytes), linked_bytes })
    }

    /// Deletes the memory too.
    pub(crate) fn forget(&self) -> Result<(), LogError> {
        self.remove_bytes()?;
        files::remove(&self.index_path)
    }

    /// Deletes segment and bodies; returns the bytes that further names of bodies keep on the disk.
    fn remove_bytes(&self) -> Result<u64, LogError> {
        files::remove(&self.path)?;
        if body::directory(&self.path).exists() {
            // After a power cut no segment may come back without its bodies.
            files::sync_directory(self.path.parent().unwrap_or(Path::new(".")))?;
        }
        body::remove_all(&self.path)
    }

    /// The sequences of products with bodies.
    pub(crate) fn sequences_in_bodies(&self) -> Vec<u64> {
        self.read().rows.all().filter(|row| row.in_body).map(|row| row.sequence).collect()
    }

    /// The rows with `after < sequence <= to`, in order, at most `limit`.
    pub(crate) fn rows(&self, after: u64, to: u64, limit: usize) -> Vec<Row> {
        let state = self.read();
        let start = state.rows.partition_point(|row| row.sequence <= after);
        (start..state.rows.len())
            .map_while(|position| state.rows.at(position))
            .take_while(|row| row.sequence <= to)
            .take(limit)
            .collect()
    }

    /// All rows, in order.
    pub(crate) fn all_rows(&self) -> Vec<Row> {
        self.rows(0, u64::MAX, usize::MAX)
    }

    /// All rows, with prints of the current kind.
    pub(crate) fn rows_with_prints(&self, salt: u64) -> Result<Vec<Row>, LogError> {
        let mut rows = self.all_rows();
        if matches!(&self.read().rows, Rows::Sealed(index) if !index.has_rising_prints) {
            for row in rows.iter_mut().filter(|row| row.prints.source != 0) {
                if let Some(header) = self.header(row, salt)? {
                    row.prints = Row::new(&header, row.offset).prints;
                }
            }
        }
        Ok(rows)
    }

    /// The first row that satisfies a condition.
    pub(crate) fn find(&self, mut condition: impl FnMut(&Row) -> bool) -> Option<Row> {
        let state = self.read();
        (0..state.rows.len()).filter_map(|position| state.rows.at(position)).find(|row| condition(row))
    }

    /// Shows the rows before a sequence to `visit`, the last first, until it breaks off.
    pub(crate) fn visit_backwards(
        &self,
        before: u64,
        mut visit: impl FnMut(Row) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let state = self.read();
        let end = state.rows.partition_point(|row| row.sequence < before);
        (0..end).rev().filter_map(|position| state.rows.at(position)).try_for_each(&mut visit)
    }

    pub(crate) fn first_row(&self) -> Option<Row> {
        self.read().rows.at(0)
    }

    pub(crate) fn last_row(&self) -> Option<Row> {
        let state = self.read();
        state.rows.len().checked_sub(1).and_then(|last| state.rows.at(last))
    }

    pub(crate) fn row_count(&self) -> usize {
        self.read().rows.len()
    }

    pub(crate) fn has_bytes(&self) -> bool {
        self.read().has_bytes
    }

    pub(crate) fn is_sealed(&self) -> bool {
        matches!(self.read().rows, Rows::Sealed(_))
    }

    pub(crate) fn newest_stored(&self) -> i64 {
        self.read().newest_stored
    }

    /// Disk in use by records and bodies.
    pub(crate) fn data_bytes(&self) -> u64 {
        let state = self.read();
        if state.has_bytes { state.data_end.saturating_add(state.body_bytes) } else { 0 }
    }

    /// True if the bytes of a product were found damaged or missing.
    pub(crate) fn is_damaged(&self, sequence: u64) -> bool {
        self.read().damaged.contains(&sequence)
    }

    /// Disk in use by the index.
    pub(crate) fn index_bytes(&self) -> u64 {
        match &self.read().rows {
            Rows::Open(_) => 0,
            Rows::Sealed(index) => index.file_bytes(),
        }
    }

    /// The header of a record and, if the product is still there and intact, its bytes.
    pub(crate) fn record(
        &self,
        row: &Row,
        salt: u64,
        populated: &mut Populated,
    ) -> Result<Option<(Header, Option<Content>)>, LogError> {
        if row.in_body {
            let is_kept = self.has_bytes() && !self.is_damaged(row.sequence);
            let content = |()| self.open_bodies.content(&self.path, row.sequence, row.size);
            return Ok(self
                .header(row, salt)?
                .map(|header| (header, is_kept.then_some(()).and_then(content))));
        }
        let place = Place { salt, offset: row.offset };
        let length = u64::from(row.header_bytes).saturating_add(row.size);
        if !self.is_damaged(row.sequence)
            && let Some(record) = self.stored(row, length, populated)?
            && let Some(header) = record::decode(place, &record)
            && header.sequence == row.sequence
            && let Some(bytes) = slice(&record, u64::from(header.header_bytes), header.size)
        {
            return Ok(Some((header, Some(bytes.into()))));
        }
        Ok(self.header(row, salt)?.map(|header| (header, None)))
    }

    /// The header of a record, from the cheapest source.
    pub(crate) fn header(&self, row: &Row, salt: u64) -> Result<Option<Header>, LogError> {
        let place = Place { salt, offset: row.offset };
        match self.remembered_header(row).and_then(|copy| record::decode(place, &copy)) {
            Some(header) => Ok(Some(header)),
            None => {
                let stored = self.stored(row, u64::from(row.header_bytes), &mut Populated::to_read(0))?;
                Ok(stored.and_then(|record| record::decode(place, &record)))
            }
        }
    }

    fn remembered_header(&self, row: &Row) -> Option<Bytes> {
        match &self.read().rows {
            Rows::Open(_) => None,
            Rows::Sealed(index) => {
                let position = self.position(index, row.sequence)?;
                index.header(&index.row(position)?)
            }
        }
    }

    fn position(&self, index: &Index, sequence: u64) -> Option<usize> {
        let position =
            partition_point(index.len(), |at| index.row(at).is_some_and(|row| row.sequence < sequence));
        (index.row(position)?.sequence == sequence).then_some(position)
    }

    fn with_state(dir: &Path, base: u64, state: State) -> Self {
        let (path, index_path) = (files::segment_path(dir, base), files::index_path(dir, base));
        let open_bodies = OpenBodies::default();
        Self { base, path, index_path, state: RwLock::new(state), open_bodies }
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn open(rows: Vec<Row>, data_end: u64) -> Self {
        let newest_stored = rows.iter().map(|row| row.stored).max().unwrap_or(i64::MIN);
        let body_bytes = rows.iter().map(Row::body_bytes).sum();
        Self {
            rows: Rows::Open(rows),
            map: None,
            has_bytes: true,
            being_written: false,
            data_end,
            body_bytes,
            newest_stored,
            damaged: BTreeSet::new(),
        }
    }
}

impl Rows {
    fn len(&self) -> usize {
        match self {
            Self::Open(rows) => rows.len(),
            Self::Sealed(index) => index.len(),
        }
    }

    fn at(&self, position: usize) -> Option<Row> {
        match self {
            Self::Open(rows) => rows.get(position).copied(),
            Self::Sealed(index) => index.row(position),
        }
    }

    fn all(&self) -> impl Iterator<Item = Row> + '_ {
        (0..self.len()).filter_map(|position| self.at(position))
    }

    fn partition_point(&self, before: impl Fn(&Row) -> bool) -> usize {
        partition_point(self.len(), |position| self.at(position).is_some_and(|row| before(&row)))
    }
}

/// Headers of small products lie close together.
const SEALED_AHEAD_BYTES: u64 = 256 << 10;
