//! The header of a segment file: format, epoch, salt and first sequence.

use std::path::Path;

use downburst_model::Epoch;

use crate::{LogError, files, files::identity::Identity, segment::record::Fields};

/// Reads the header of a segment file: epoch, salt and base. `None` if it is damaged.
pub(crate) fn read_file_header(path: &Path, contents: &[u8]) -> Result<Option<(Epoch, u64, u64)>, LogError> {
    let Some(header) = contents.first_chunk::<{ FILE_HEADER_BYTES as usize }>() else { return Ok(None) };
    let Some((checked, crc)) = header.split_last_chunk::<4>() else { return Ok(None) };
    if u32::from_le_bytes(*crc) != crc32fast::hash(checked) {
        return Ok(None);
    }
    let parse = || {
        let mut fields = Fields(checked.strip_prefix(MAGIC)?);
        Some((fields.u32()?, fields.u64()?, fields.u64()?, fields.u64()?))
    };
    match parse() {
        Some((version, ..)) if version > files::FORMAT_VERSION => {
            Err(LogError::NewerFormat { path: path.to_owned(), version })
        }
        Some((_, epoch, salt, base)) => Ok(Some((Epoch(epoch), salt, base))),
        None => Ok(None),
    }
}

/// The header of a new segment file.
pub(crate) fn file_header(identity: &Identity, base: u64) -> Vec<u8> {
    let mut header = Vec::with_capacity(FILE_HEADER_BYTES as usize);
    header.extend_from_slice(MAGIC);
    header.extend_from_slice(&files::FORMAT_VERSION.to_le_bytes());
    for number in [identity.epoch.0, identity.salt, base] {
        header.extend_from_slice(&number.to_le_bytes());
    }
    let crc = crc32fast::hash(&header);
    header.extend_from_slice(&crc.to_le_bytes());
    header
}

const MAGIC: &[u8; 8] = b"DBLOGSG\n";
/// The first record begins here.
pub(crate) const FILE_HEADER_BYTES: u64 = 40;
