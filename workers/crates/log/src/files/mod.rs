//! Small files that are replaced as a whole, and names of the files of a log.
pub(crate) mod file_window;
pub(crate) mod identity;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use minicbor::{Decode, Encode};

use crate::{
    LogError,
    disk::{self, Checked, File},
};

/// The files of one log, by the first sequence they may hold.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) segments: Vec<u64>,
    pub(crate) indexes: Vec<u64>,
    /// Directories of bodies.
    pub(crate) bodies: Vec<u64>,
}

impl Listing {
    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.indexes.is_empty()
    }

    /// The first sequences of all parts of the log, in order.
    pub(crate) fn bases(&self) -> Vec<u64> {
        let mut bases: Vec<u64> = self.segments.iter().chain(&self.indexes).copied().collect();
        bases.sort_unstable();
        bases.dedup();
        bases
    }
}

/// Lists segments and indexes in order and deletes the remains of an interrupted replacement.
pub(crate) fn list(dir: &Path) -> Result<Listing, LogError> {
    let (listing, leftovers) = look(dir)?;
    leftovers.iter().try_for_each(|path| remove(path))?;
    Ok(listing)
}

/// Lists segments and indexes in order, and the files of interrupted or current replacements; changes nothing.
pub(crate) fn look(dir: &Path) -> Result<(Listing, Vec<PathBuf>), LogError> {
    let (mut listing, mut leftovers) = (Listing::default(), Vec::new());
    let entries = fs::read_dir(dir).map_err(|error| LogError::io("list", dir, error))?;
    for entry in entries {
        let path = entry.map_err(|error| LogError::io("list", dir, error))?.path();
        match (path.extension().and_then(|it| it.to_str()), base_of(&path)) {
            (Some(SEGMENT), Some(base)) => listing.segments.push(base),
            (Some(INDEX), Some(base)) => listing.indexes.push(base),
            (Some(BODIES), Some(base)) => listing.bodies.push(base),
            (Some(ASIDE), _) => leftovers.push(path),
            _ => {}
        }
    }
    listing.segments.sort_unstable();
    listing.indexes.sort_unstable();
    Ok((listing, leftovers))
}

/// The segment file that begins with `base`.
pub(crate) fn segment_path(dir: &Path, base: u64) -> PathBuf {
    dir.join(format!("{base:020}.{SEGMENT}"))
}

/// The index file of the segment that begins with `base`.
pub(crate) fn index_path(dir: &Path, base: u64) -> PathBuf {
    dir.join(format!("{base:020}.{INDEX}"))
}

/// Deletes a file that may be gone already.
pub(crate) fn remove(path: &Path) -> Result<(), LogError> {
    match disk::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(LogError::io("delete", path, error)),
        _ => Ok(()),
    }
}

/// Sets a file aside for inspection; returns its new path.
pub(crate) fn quarantine(path: &Path) -> Result<PathBuf, LogError> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".quarantined");
    let mut target = PathBuf::from(&aside);
    let mut attempt = 1;
    while target.exists() {
        target = PathBuf::from(format!("{}.{attempt}", aside.to_string_lossy()));
        attempt += 1;
    }
    disk::rename(path, &target).map_err(|error| LogError::io("set aside", path, error))?;
    Ok(target)
}

/// Writes `value` so that a crash at any moment leaves the old contents or the new ones.
pub(crate) fn write_checked<T: Encode<()>>(path: &Path, magic: &[u8; 8], value: &T) -> Result<(), LogError> {
    disk::write_checked(path, magic, value).map_err(|error| LogError::io("write", path, error))
}

/// Reads a file written by [`write_checked`]; `None` if the file is missing or damaged.
pub(crate) fn read_checked<T: for<'b> Decode<'b, ()>>(
    path: &Path,
    magic: &[u8; 8],
) -> Result<Option<T>, LogError> {
    match disk::read_checked(path, magic).map_err(|error| LogError::io("read", path, error))? {
        Checked::Missing | Checked::Damaged => Ok(None),
        Checked::Newer(version) => Err(LogError::NewerFormat { path: path.to_owned(), version }),
        Checked::Whole(value) => Ok(Some(value)),
    }
}

/// Replaces a file as a whole and durably.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<(), LogError> {
    disk::replace(path, &disk::aside(path), write).map_err(|error| LogError::io("write", path, error))
}

/// Makes created, renamed and deleted names durable.
pub(crate) fn sync_directory(dir: &Path) -> Result<(), LogError> {
    disk::sync_directory(dir).map_err(|error| LogError::io("sync", dir, error))
}

fn base_of(path: &Path) -> Option<u64> {
    path.file_stem()?.to_str()?.parse().ok()
}

/// The version of the indexes and segments of a log. Version 1 has no bodies.
pub(crate) const FORMAT_VERSION: u32 = 2;
const SEGMENT: &str = "segment";
const INDEX: &str = "index";
pub(crate) const BODIES: &str = "bodies";
const ASIDE: &str = "aside";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checked_files_survive_and_damage_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        assert_eq!(read_checked::<u64>(&path, b"01234567").unwrap(), None);
        write_checked(&path, b"01234567", &77_777_u64).unwrap();
        assert_eq!(read_checked::<u64>(&path, b"01234567").unwrap(), Some(77_777));
        assert_eq!(read_checked::<u64>(&path, b"other...").unwrap(), None);
        let good = fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            fs::write(&path, bad).unwrap();
            assert_eq!(read_checked::<u64>(&path, b"01234567").unwrap(), None, "byte {at}");
        }
    }

    #[test]
    fn a_later_format_is_an_error_and_no_damage() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let body = minicbor::to_vec(1_u64).unwrap();
        let version = 9_u32.to_le_bytes();
        let crc = crc32fast::hash(&[version.as_slice(), &body].concat()).to_le_bytes();
        fs::write(&path, [b"01234567".as_slice(), &version, &crc, &body].concat()).unwrap();
        let error = read_checked::<u64>(&path, b"01234567").unwrap_err().to_string();
        assert!(error.contains("format 9"), "{error}");
    }

    #[test]
    fn listing_is_ordered_and_clears_leftovers() {
        let dir = tempfile::tempdir().unwrap();
        for name in
            ["00000000000000000020.segment", "00000000000000000003.segment", "x.aside", "lock", "y.segment"]
        {
            fs::write(dir.path().join(name), b"").unwrap();
        }
        let listing = list(dir.path()).unwrap();
        assert_eq!(listing.segments, [3, 20]);
        assert!(listing.indexes.is_empty());
        assert!(!dir.path().join("x.aside").exists());
        assert!(segment_path(dir.path(), 20).exists());
    }

    #[test]
    fn quarantine_never_overwrites() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let mut places = std::collections::BTreeSet::new();
        for _ in 0..3 {
            fs::write(&path, b"").unwrap();
            places.insert(quarantine(&path).unwrap());
        }
        assert_eq!(places.len(), 3);
    }
}
