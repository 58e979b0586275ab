//! The place of a product's bytes: in the segment, behind the header, or in a body.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::segment::{body, index::Row};

/// An open file, and the offset of a product's bytes in it.
#[derive(Debug)]
pub(crate) struct BytesPlace {
    pub(crate) file: Arc<File>,
    pub(crate) path: PathBuf,
    pub(crate) offset: u64,
}

impl BytesPlace {
    /// The place of a product of an open segment; `None` if it has a body that is missing or has another length.
    pub(crate) fn find(segment: &Arc<File>, path: &Path, row: &Row) -> io::Result<Option<Self>> {
        if row.in_body {
            let body = body::open(path, row.sequence, row.size)?;
            return Ok(body.map(|(file, path)| Self { file: Arc::new(file), path, offset: 0 }));
        }
        let offset = row.offset.saturating_add(u64::from(row.header_bytes));
        Ok(Some(Self { file: Arc::clone(segment), path: path.to_owned(), offset }))
    }
}
