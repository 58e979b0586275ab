//! Small files that are replaced as a whole, with a checksum.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use minicbor::{Decode, Encode};

use super::{aside, replace};

/// What reading a checked file found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checked<T> {
    /// There is no such file.
    Missing,
    /// Its contents are not what was written.
    Damaged,
    /// A later release wrote it.
    Newer(u32),
    /// As it was written.
    Whole(T),
}

/// Replaces a file by an encoded value with a checksum. Durable on return; a crash leaves the old contents or the new ones.
///
/// # Errors
/// Those of the system.
pub fn write_checked<T: Encode<()>>(path: &Path, magic: &[u8; 8], value: &T) -> io::Result<()> {
    let contents = checked(magic, value)?;
    replace(path, &aside(path), |file| file.write_all(&contents))
}

/// The contents of a file that [`read_checked`] reads.
///
/// # Errors
/// Where the value can't be encoded.
pub fn checked<T: Encode<()>>(magic: &[u8; 8], value: &T) -> io::Result<Vec<u8>> {
    let body = minicbor::to_vec(value).map_err(io::Error::other)?;
    let [version, crc] = [FORMAT_VERSION, crc32fast::hash(&body)].map(u32::to_le_bytes);
    Ok([magic, version.as_slice(), &crc, &body].concat())
}

/// Reads what [`write_checked`] wrote.
///
/// # Errors
/// Those of the system; a missing or damaged file is none.
pub fn read_checked<T: for<'b> Decode<'b, ()>>(path: &Path, magic: &[u8; 8]) -> io::Result<Checked<T>> {
    let contents = match fs::read(path) {
        Ok(contents) => contents,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Checked::Missing),
        Err(error) => return Err(error),
    };
    let Some((version, crc, body)) = split(&contents, magic) else { return Ok(Checked::Damaged) };
    if crc32fast::hash(body) != crc {
        return Ok(Checked::Damaged);
    }
    if version > FORMAT_VERSION {
        return Ok(Checked::Newer(version));
    }
    Ok(minicbor::decode(body).map_or(Checked::Damaged, Checked::Whole))
}

fn split<'a>(contents: &'a [u8], magic: &[u8; 8]) -> Option<(u32, u32, &'a [u8])> {
    let rest = contents.strip_prefix(magic.as_slice())?;
    let (version, rest) = rest.split_first_chunk::<4>()?;
    let (crc, body) = rest.split_first_chunk::<4>()?;
    Some((u32::from_le_bytes(*version), u32::from_le_bytes(*crc), body))
}

/// The version of every checked file.
const FORMAT_VERSION: u32 = 1;
