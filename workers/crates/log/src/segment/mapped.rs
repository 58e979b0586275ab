//! Reading the records of a segment through its mapping, past places that the disk has lost.

use std::{fs::File, io, os::unix::fs::FileExt};

use bytes::Bytes;

use super::{Segment, State};
use crate::{
    LogError,
    segment::index::{Row, slice},
    system,
};

/// The extent to which a reader has verified that the mapped bytes of a segment can be touched.
#[derive(Debug)]
pub(crate) struct Populated {
    to: u64,
    /// The amount verified at a time, because each check is a system call.
    ahead_bytes: u64,
}

impl Populated {
    /// For a reader that continues after its first record for about this many bytes.
    pub(crate) fn to_read(bytes: u64) -> Self {
        Self { to: 0, ahead_bytes: bytes.min(MAX_POPULATED_BYTES) }
    }
}

impl Segment {
    /// The first bytes of a record.
    pub(super) fn stored(
        &self,
        row: &Row,
        length: u64,
        populated: &mut Populated,
    ) -> Result<Option<Bytes>, LogError> {
        let map = self.mapped(row.offset.saturating_add(length))?;
        Ok(map.and_then(|map| self.readable(&map, row.offset, length, populated)))
    }

    /// Mapped bytes that can be touched, or a copy if only reading works; `None` if the disk has lost them.
    pub(super) fn readable(
        &self,
        map: &Bytes,
        offset: u64,
        length: u64,
        populated: &mut Populated,
    ) -> Option<Bytes> {
        let mapped = slice(map, offset, length)?;
        let end = offset.saturating_add(length.min(MAX_POPULATED_BYTES));
        if end <= populated.to {
            return Some(mapped);
        }
        let last = self.read().data_end.min(map.len() as u64);
        let ahead = offset.saturating_add(populated.ahead_bytes).min(last).max(end);
        if system::populate(&slice(map, offset, ahead - offset)?) {
            populated.to = ahead;
            return Some(mapped);
        }
        // Looking at a bad sector again for each record before it would take the disk seconds.
        populated.ahead_bytes = 0;
        if system::populate(&slice(map, offset, end - offset)?) {
            return Some(mapped);
        }
        self.copied(offset, length)
    }

    fn copied(&self, offset: u64, length: u64) -> Option<Bytes> {
        let read = || {
            if length > MAX_COPIED_BYTES {
                return Err(io::Error::from_raw_os_error(libc::EFBIG));
            }
            let mut copy = vec![0; length as usize];
            File::open(&self.path)?.read_exact_at(&mut copy, offset)?;
            Ok(copy)
        };
        match read() {
            Ok(copy) => Some(Bytes::from(copy)),
            Err(error) => {
                let path = self.path.display();
                tracing::error!(%path, offset, length, %error, "the disk can't give back a record of the log");
                None
            }
        }
    }

    /// The mapped file, at least up to `end`; `None` if the bytes are gone or the file is shorter.
    pub(super) fn mapped(&self, end: u64) -> Result<Option<Bytes>, LogError> {
        match &*self.read() {
            State { has_bytes: false, .. } => return Ok(None),
            State { map: Some(map), .. } if map.len() as u64 >= end => return Ok(Some(map.clone())),
            _ => {}
        }
        let opened = File::open(&self.path).and_then(|file| Ok((file.metadata()?.len(), file)));
        match opened.and_then(
            |(length, file)| if length < end { Ok(None) } else { system::map(&file, length).map(Some) },
        ) {
            Ok(map) => {
                let mut state = self.write();
                if state.has_bytes && map.is_some() {
                    state.map.clone_from(&map);
                }
                Ok(map)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(LogError::io("map", &self.path, error)),
        }
    }
}

/// Only the beginning of a longer record is checked before it is served: the rest would delay the reader for as
/// long as the disk takes for all of it.
const MAX_POPULATED_BYTES: u64 = 1 << 20;
/// Bounds the memory for a record that can be read but not mapped.
const MAX_COPIED_BYTES: u64 = 64 << 20;
