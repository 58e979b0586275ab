//! Small files that are replaced as a whole, with a checksum.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use minicbor::{Decode, Encode};

use super::{aside, replace};

/// The result of reading a checked file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checked<T> {
    /// There is no such file.
    Missing,
    /// Its contents differ from those written.
    Damaged,
    /// A later release wrote it.
    Newer(u32),
    /// The intact value.
    Whole(T),
}

/// Replaces a file by an encoded value with a checksum. Durable on return; a crash leaves the old contents or
/// the new ones.
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
/// If the value can't be encoded.
pub fn checked<T: Encode<()>>(magic: &[u8; 8], value: &T) -> io::Result<Vec<u8>> {
    let body = minicbor::to_vec(value).map_err(io::Error::other)?;
    let [version, crc] = [FORMAT_VERSION, checksum(FORMAT_VERSION, &body)].map(u32::to_le_bytes);
    Ok([magic, version.as_slice(), &crc, &body].concat())
}

/// Reads a file written by [`write_checked`].
///
/// # Errors
/// Those of the system; a missing or damaged file is not an error.
pub fn read_checked<T: for<'b> Decode<'b, ()>>(path: &Path, magic: &[u8; 8]) -> io::Result<Checked<T>> {
    read(path, magic, |body| minicbor::decode(body).map_or(Checked::Damaged, Checked::Whole))
}

/// The result of [`read_checked`], from the checksum alone.
///
/// # Errors
/// Those of the system; a missing or damaged file is not an error.
pub fn look_at_checked(path: &Path, magic: &[u8; 8]) -> io::Result<Checked<()>> {
    read(path, magic, |_| Checked::Whole(()))
}

fn read<T>(path: &Path, magic: &[u8; 8], decode: impl FnOnce(&[u8]) -> Checked<T>) -> io::Result<Checked<T>> {
    let contents = match fs::read(path) {
        Ok(contents) => contents,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Checked::Missing),
        Err(error) => return Err(error),
    };
    let Some((version, crc, body)) = split(&contents, magic) else { return Ok(Checked::Damaged) };
    if checksum(version, body) != crc {
        return Ok(Checked::Damaged);
    }
    if version > FORMAT_VERSION {
        return Ok(Checked::Newer(version));
    }
    Ok(decode(body))
}

fn split<'a>(contents: &'a [u8], magic: &[u8; 8]) -> Option<(u32, u32, &'a [u8])> {
    let rest = contents.strip_prefix(magic.as_slice())?;
    let (version, rest) = rest.split_first_chunk::<4>()?;
    let (crc, body) = rest.split_first_chunk::<4>()?;
    Some((u32::from_le_bytes(*version), u32::from_le_bytes(*crc), body))
}

/// CRC-32 of the version and the body, so that a flipped bit of the version counts as damage, not as a later
/// release.
fn checksum(version: u32, body: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    if version > FORMAT_WITHOUT_ITS_OWN_CHECKSUM {
        crc.update(&version.to_le_bytes());
    }
    crc.update(body);
    crc.finalize()
}

/// The version of every checked file.
const FORMAT_VERSION: u32 = 2;
/// Its checksum covers the body only.
const FORMAT_WITHOUT_ITS_OWN_CHECKSUM: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    const MAGIC: &[u8; 8] = b"01234567";

    #[test]
    fn every_flipped_bit_is_damage() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let good = checked(MAGIC, &77_777_u64).unwrap();
        for bit in 0..8 * good.len() {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, bad).unwrap();
            assert_eq!(read_checked::<u64>(&path, MAGIC).unwrap(), Checked::Damaged, "bit {bit}");
            assert_eq!(look_at_checked(&path, MAGIC).unwrap(), Checked::Damaged, "bit {bit}");
        }
    }

    #[test]
    fn the_first_format_is_still_read_and_a_later_one_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let body = minicbor::to_vec(5_u64).unwrap();
        for (version, found) in [(1, Checked::Whole(5)), (2, Checked::Whole(5)), (9, Checked::Newer(9))] {
            let header = [version, checksum(version, &body)].map(u32::to_le_bytes).concat();
            fs::write(&path, [MAGIC.as_slice(), &header, &body].concat()).unwrap();
            assert_eq!(read_checked::<u64>(&path, MAGIC).unwrap(), found);
            assert!(!matches!(look_at_checked(&path, MAGIC).unwrap(), Checked::Damaged | Checked::Missing));
        }
    }
}
