//! Bodies: large products in files of their own.
// Helpers of tests may fail as loudly as tests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use common::{all, files, ids, open, overwrite, small};
use downburst_log::{
    Appended, ContentHasher, Copied, FeedLog, LogError, LogOptions, LogReader, NewProduct, ProductLog as _,
    Retention, SpoolFile, contract,
};
use downburst_model::{Digest, Sequence, WallMicros};

const SIZE: usize = 3_000;

fn options() -> LogOptions {
    LogOptions { body_bytes: 2_000, segment_bytes: 20_000, ..small() }
}

/// Large products and a small one after each.
fn filled(dir: &Path, count: u8) -> FeedLog {
    let (log, _) = open(dir, options());
    for n in 0..count {
        put(&log, &format!("large {n}"), &[n; SIZE]);
        put(&log, &format!("small {n}"), &[n; 100]);
    }
    log
}

fn put(log: &FeedLog, id: &str, bytes: &[u8]) -> Appended {
    let product = contract::product(id).unwrap();
    let group = vec![(product, Bytes::copy_from_slice(bytes))];
    log.append_all(group, &|| WallMicros(0)).remove(0).unwrap()
}

/// All bodies, in the order of their sequences.
fn bodies(dir: &Path) -> Vec<PathBuf> {
    let within = |directory: PathBuf| fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = files(dir, "bodies").into_iter().flat_map(within).collect();
    found.sort();
    found
}

/// Writes to a file that nobody may write.
fn force(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    overwrite(path, change);
}

#[test]
fn large_products_lie_in_read_only_files_and_count_as_disk_in_use() {
    let dir = tempfile::tempdir().unwrap();
    let log = filled(dir.path(), 12);
    assert_eq!(bodies(dir.path()).len(), 12);
    assert!(files(dir.path(), "segment").len() > 1, "a segment is left for the size of its bodies");
    assert!(log.stat().bytes > 12 * SIZE as u64);
    for body in bodies(dir.path()) {
        let metadata = fs::metadata(&body).unwrap();
        assert_eq!((metadata.len(), metadata.permissions().mode() & 0o777), (SIZE as u64, 0o444));
        assert_eq!(fs::metadata(body.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    }
    let reader = LogReader::open(dir.path()).unwrap();
    assert_eq!(reader.summary().unwrap().bytes, log.stat().bytes, "tools count them, too");
    log.close().unwrap();
    assert_eq!(reader.summary().unwrap().bytes, log.stat().bytes);
    let verified = reader.verify(&mut |_| ()).unwrap();
    assert_eq!((verified.products, verified.flaws), (24, 0));
}

#[test]
fn bodies_come_back_after_a_stop_and_after_a_crash() {
    for is_clean in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let log = filled(dir.path(), 9);
        if is_clean {
            log.close().unwrap();
        }
        drop(log);
        let (log, recovery) = open(dir.path(), options());
        assert!(recovery.lost.is_empty() && recovery.damaged.is_empty(), "{recovery:?}");
        for (n, entry) in all(&log).iter().enumerate() {
            let size = if n % 2 == 0 { SIZE } else { 100 };
            assert_eq!(entry.whole().unwrap(), vec![(n / 2) as u8; size]);
            assert_eq!(entry.bytes.as_ref().unwrap().path().is_some(), size == SIZE);
        }
    }
}

#[test]
fn a_body_that_is_damaged_or_gone_costs_its_product_alone() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 9).close().unwrap();
    let found = bodies(dir.path());
    force(&found[1], |bytes| bytes[SIZE / 2] ^= 1);
    force(&found[2], |bytes| bytes.truncate(SIZE / 2));
    fs::remove_file(&found[3]).unwrap();
    let (log, recovery) = open(dir.path(), options());
    let [lost] = recovery.lost.as_slice() else { panic!("{recovery:?}") };
    assert_eq!((lost.products, lost.sequences), (1, (Sequence(7), Sequence(7))));
    assert!(log.is_suspect(), "it is read through soon");
    let log = Arc::new(log);
    let (mut flawed, mut again) = (Vec::new(), Vec::new());
    let mut report = |flaw: downburst_log::Flaw| flawed.push(flaw.sequence.unwrap().0);
    FeedLog::scrub(&Arc::downgrade(&log), &mut |_| (), &mut report, &mut |key| again.push(key)).unwrap();
    assert_eq!((flawed, again.len()), (vec![3, 5, 7], 0), "these products have no source");
    for entry in all(&log) {
        let is_hurt = [3, 5, 7].contains(&entry.info.key.sequence.0);
        assert_eq!(entry.bytes.is_none(), is_hurt, "{}", entry.info.id);
    }
    for n in [1, 2, 3] {
        let stored = put(&log, &format!("large {n}"), &[n; SIZE]);
        assert!(matches!(stored, Appended::Stored { .. }), "it may come again");
    }
    assert_eq!(log.examine(Sequence(3)).unwrap(), Copied::Gone, "it is said once");
}

#[test]
fn a_torn_body_of_the_last_append_leaves_no_product_and_no_file() {
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path(), 3));
    let found = bodies(dir.path());
    force(&found[2], |bytes| bytes.truncate(SIZE - 1));
    fs::write(found[0].with_file_name("00000000000000000099"), b"begun").unwrap();
    fs::create_dir(dir.path().join("00000000000000000777.bodies")).unwrap();
    let (log, _) = open(dir.path(), options());
    assert_eq!(ids(&log), ["large 0", "small 0", "large 1", "small 1", "small 2"]);
    assert_eq!(bodies(dir.path()).len(), 2);
    assert!(!dir.path().join("00000000000000000777.bodies").exists());
}

#[test]
fn eviction_deletes_bodies_and_counts_those_with_a_further_name() {
    let dir = tempfile::tempdir().unwrap();
    let log = filled(dir.path(), 20);
    fs::hard_link(&bodies(dir.path())[0], dir.path().join("kept")).unwrap();
    let first = all(&log)[0].bytes.clone().unwrap();
    log.set_options(LogOptions { retention: Retention { hours: 1e3, bytes: 25_000 }, ..options() });
    let used = log.stat().bytes;
    let retained = log.retain(WallMicros(0)).unwrap();
    assert!(retained.products > 10);
    assert_eq!(retained.linked_bytes, SIZE as u64);
    assert_eq!(retained.bytes + retained.linked_bytes + log.stat().bytes, used);
    assert_eq!(bodies(dir.path()).len(), all(&log).iter().filter(|entry| has_body(entry)).count());
    assert_eq!(fs::read(dir.path().join("kept")).unwrap(), [0; SIZE]);
    assert_eq!(first, *[0; SIZE].as_slice(), "an open one stays readable");
}

fn has_body(entry: &downburst_log::LogEntry) -> bool {
    entry.bytes.as_ref().is_some_and(|content| content.path().is_some())
}

/// Appends a spool file.
fn append_spool(log: &FeedLog, path: &Path, is_own: bool, product: NewProduct) -> Result<Appended, LogError> {
    let file = fs::File::open(path).unwrap();
    let spool = SpoolFile { path, file: &file, is_own, hashed: ContentHasher::default() };
    log.append_file(product, spool, &|| WallMicros(0))
}

#[test]
fn a_spool_file_of_its_own_becomes_the_body_and_another_is_copied() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(&dir.path().join("log"), options());
    for (is_own, id) in [(true, "own"), (false, "other")] {
        let spool = dir.path().join(id);
        fs::write(&spool, id.repeat(1_000)).unwrap();
        let product =
            NewProduct { expected_size: Some(1_000 * id.len() as u64), ..contract::product(id).unwrap() };
        append_spool(&log, &spool, is_own, product).unwrap();
        let entry = log.entry(log.head()).unwrap().unwrap();
        assert_eq!(entry.whole().unwrap(), id.repeat(1_000));
        let inode = |path: &Path| fs::metadata(path).unwrap().ino();
        assert_eq!(inode(entry.bytes.unwrap().path().unwrap()) == inode(&spool), is_own);
    }
}

#[test]
fn a_spool_file_that_is_refused_stays_whole_and_leaves_no_body() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(&dir.path().join("log"), options());
    let spool = dir.path().join("spool");
    fs::write(&spool, [5; SIZE]).unwrap();
    let product = || contract::product("x").unwrap();
    let wrong = NewProduct { expected_digest: Some(Digest([0; 32])), ..product() };
    assert!(matches!(append_spool(&log, &spool, true, wrong), Err(LogError::DigestMismatch { .. })));
    assert!(matches!(append_spool(&log, &spool, true, product()), Ok(Appended::Stored { .. })));
    assert!(matches!(append_spool(&log, &spool, true, product()), Ok(Appended::Duplicate { .. })));
    assert_eq!(bodies(&dir.path().join("log")).len(), 1);
    assert_eq!(fs::read(&spool).unwrap(), [5; SIZE]);
    log.close().unwrap();
    assert!(matches!(append_spool(&log, &spool, true, product()), Err(LogError::Closed { .. })));
}

#[test]
fn a_stream_with_an_announced_size_is_written_to_its_body_and_one_that_breaks_off_leaves_none() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), options());
    let announced = NewProduct { expected_size: Some(SIZE as u64), ..contract::product("x").unwrap() };
    let short = log.append(announced.clone(), &mut [1; SIZE - 1].as_slice(), &|| WallMicros(0));
    assert!(matches!(short, Err(LogError::SizeMismatch { .. })));
    assert_eq!(bodies(dir.path()).len(), 0);
    log.append(announced, &mut [1; SIZE].as_slice(), &|| WallMicros(0)).unwrap();
    assert_eq!((bodies(dir.path()).len(), all(&log)[0].whole().unwrap().len()), (1, SIZE));
}

#[test]
fn a_large_body_is_read_in_pieces() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), options());
    let whole: Vec<u8> = (0..3 << 20_u32).map(|n| (n % 251) as u8).collect();
    put(&log, "x", &whole);
    let content = all(&log)[0].bytes.clone().unwrap();
    assert_eq!((content.len(), content.memory_bytes()), (3 << 20, 0), "its bytes are not kept in memory");
    for from in [0, 1, 1 << 20, (3 << 20) - 7] {
        assert_eq!(content.slice(from..from + 7).unwrap(), whole[from..from + 7]);
    }
    assert_eq!(content.slice(0..(3 << 20) + 1), None);
    force(content.path().unwrap(), |bytes| bytes.truncate(1_000));
    assert_eq!(content.slice(2_000..3_000), None, "a consumer that shortens its file ends no process");
}

#[test]
fn a_log_of_the_format_before_bodies_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), LogOptions { body_bytes: u64::MAX, ..options() });
    (0..9).for_each(|n| drop(put(&log, &format!("{n}"), &[n; SIZE])));
    log.close().unwrap();
    drop(log);
    for (extension, header_bytes) in [("segment", 40), ("index", 56)] {
        for path in files(dir.path(), extension) {
            overwrite(&path, |contents| {
                contents[8..12].copy_from_slice(&1_u32.to_le_bytes());
                let crc = crc32fast::hash(&contents[..header_bytes - 4]);
                contents[header_bytes - 4..header_bytes].copy_from_slice(&crc.to_le_bytes());
            });
        }
    }
    let (log, recovery) = open(dir.path(), options());
    assert!(recovery.clean && recovery.lost.is_empty() && recovery.quarantined.is_empty(), "{recovery:?}");
    put(&log, "new", &[77; SIZE]);
    assert_eq!(all(&log).iter().map(|entry| entry.whole().unwrap().len()).sum::<usize>(), 10 * SIZE);
}
