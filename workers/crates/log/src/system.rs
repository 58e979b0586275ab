//! The only unsafe code of the crate: mapping a file, locking it, writing pieces at an offset, releasing disk
//! space.
#![allow(unsafe_code)]

use std::{
    fs::File,
    io::{self, IoSlice},
    os::fd::AsRawFd,
};

use bytes::Bytes;
use memmap2::MmapOptions;

/// Maps the first `length_bytes` of `file`; the mapping lives as long as any slice of it.
pub(crate) fn map(file: &File, length_bytes: u64) -> io::Result<Bytes> {
    let length = usize::try_from(length_bytes).map_err(io::Error::other)?;
    if length == 0 {
        return Ok(Bytes::new());
    }
    if file.metadata()?.len() < length_bytes {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
    }
    // SAFETY: the file is at least as long as the mapping, and this crate never shortens a file below the end
    // of its last record: segments and indexes are only unlinked, which leaves mappings valid. Readers look
    // only at committed records, and committed bytes are never written again; the writer's `pwrite` touches
    // pages behind them. The lock on the directory keeps other writers of this crate out.
    let mapping = unsafe { MmapOptions::new().len(length).map(file)? };
    Ok(Bytes::from_owner(mapping))
}

/// Verifies that touching mapped bytes will not end the process, as it does if the disk can't return a page.
///
/// Always true on a kernel before Linux 5.14, which can't tell.
pub(crate) fn populate(mapped: &[u8]) -> bool {
    let (Some(page), false) = (page_bytes(), mapped.is_empty()) else { return true };
    let begin = mapped.as_ptr().wrapping_sub(mapped.as_ptr().addr() % page);
    let length = mapped.len() + mapped.as_ptr().addr() % page;
    // SAFETY: the range is rounded down to the page that the slice begins in, which is mapped as long as the slice
    // lives; the advice reads pages in and changes nothing.
    if unsafe { libc::madvise(begin.cast_mut().cast(), length, libc::MADV_POPULATE_READ) } == 0 {
        return true;
    }
    let refusal = io::Error::last_os_error().raw_os_error();
    !matches!(refusal, Some(libc::EFAULT | libc::EHWPOISON | libc::ENOMEM))
}

/// True if the error means that the requested data is lost, rather than temporarily unavailable.
pub(crate) fn is_lost(error: &io::Error) -> bool {
    const LOST: [i32; 5] = [libc::EIO, libc::EBADMSG, libc::EHWPOISON, libc::ENODATA, libc::EUCLEAN];
    error.raw_os_error().is_some_and(|code| LOST.contains(&code))
}

/// The data ranges between the holes of a file, in order; the whole file if the file system doesn't know.
pub(crate) fn data_stretches(file: &File, length_bytes: u64) -> Vec<(u64, u64)> {
    let mut stretches = Vec::new();
    let mut at = 0;
    while at < length_bytes {
        let begin = match seek(file, at, libc::SEEK_DATA) {
            Ok(begin) => begin,
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => break,
            Err(_) => at,
        };
        let end = seek(file, begin, libc::SEEK_HOLE).unwrap_or(length_bytes).min(length_bytes);
        if end <= begin {
            break;
        }
        stretches.push((begin, end));
        at = end;
    }
    stretches
}

/// Writes all pieces one after the other, with as few calls as the kernel allows.
pub(crate) fn write_all_vectored_at(
    file: &File,
    mut pieces: &mut [IoSlice<'_>],
    mut offset: u64,
) -> io::Result<()> {
    while !pieces.is_empty() {
        let count = libc::c_int::try_from(pieces.len().min(MAX_PIECES)).map_err(io::Error::other)?;
        let at = libc::off_t::try_from(offset).map_err(io::Error::other)?;
        // SAFETY: `IoSlice` has the layout of `iovec`, and there are `count` of them at least; the descriptor is
        // open.
        let written = unsafe { libc::pwritev(file.as_raw_fd(), pieces.as_ptr().cast(), count, at) };
        match usize::try_from(written) {
            Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero)),
            Ok(written) => {
                offset += written as u64;
                IoSlice::advance_slices(&mut pieces, written);
            }
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(error),
            },
        }
    }
    Ok(())
}

/// Takes the advisory lock for this open file; false if another open file has it. It is released with the last
/// descriptor.
pub(crate) fn try_lock(file: &File) -> io::Result<bool> {
    // SAFETY: the descriptor is open for the length of the call, and `flock` touches no memory of ours.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::WouldBlock { Ok(false) } else { Err(error) }
}

/// Makes durable everything written to the file system of an open file or directory.
pub(crate) fn sync_file_system(file: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open for the length of the call, and `syncfs` touches no memory of ours.
    if unsafe { libc::syncfs(file.as_raw_fd()) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes a file share the blocks of another one, as only some file systems can, and only within themselves.
pub(crate) fn clone_file(source: &File, target: &File) -> io::Result<()> {
    // SAFETY: both descriptors are open for the length of the call, which touches no memory of ours.
    if unsafe { libc::ioctl(target.as_raw_fd(), libc::FICLONE, source.as_raw_fd()) } == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error())
}

/// Begins to write a file's changed pages to the disk, without waiting for it. Best effort.
pub(crate) fn start_write_back(file: &File) {
    // SAFETY: the descriptor is open for the length of the call, which touches no memory of ours.
    unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE) };
}

/// Releases the disk blocks between two offsets of a file, without changing its length.
///
/// Best effort: a file system that can't do it keeps the blocks until the file is deleted.
pub(crate) fn release(file: &File, from: u64, to: u64) {
    let (Ok(offset), Ok(length)) =
        (libc::off_t::try_from(from), libc::off_t::try_from(to.saturating_sub(from)))
    else {
        return;
    };
    if length > 0 {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: the descriptor is open for the length of the call, and `fallocate` touches no memory of ours.
        unsafe { libc::fallocate(file.as_raw_fd(), mode, offset, length) };
    }
}

fn seek(file: &File, from: u64, whence: libc::c_int) -> io::Result<u64> {
    let offset = libc::off_t::try_from(from).map_err(io::Error::other)?;
    // SAFETY: the descriptor is open for the length of the call; its position is not used elsewhere.
    let found = unsafe { libc::lseek(file.as_raw_fd(), offset, whence) };
    u64::try_from(found).map_err(|_| io::Error::last_os_error())
}

fn page_bytes() -> Option<usize> {
    // SAFETY: `sysconf` touches no memory of ours.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok().filter(|bytes| *bytes > 0)
}

/// The maximum that Linux takes in one call.
const MAX_PIECES: usize = 1_024;

#[cfg(test)]
mod tests {
    use std::{io::Write, os::unix::fs::MetadataExt};

    use super::*;

    #[test]
    fn a_mapping_sees_later_writes_and_outlives_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let mut file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        file.set_len(8192).unwrap();
        let mapped = map(&file, 8192).unwrap();
        file.write_all(b"later").unwrap();
        drop(file);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(&mapped[..6], b"later\0");
    }

    #[test]
    fn nothing_beyond_the_end_is_mapped() {
        let file = tempfile::tempfile().unwrap();
        assert!(map(&file, 1).is_err());
        assert!(map(&file, 0).unwrap().is_empty());
    }

    #[test]
    fn pieces_are_written_in_order_whatever_their_number_and_length() {
        let file = tempfile::tempfile().unwrap();
        let contents: Vec<Vec<u8>> = (0..3_000_usize).map(|n| vec![n as u8; n * 7 % 40]).collect();
        let mut pieces: Vec<IoSlice<'_>> = contents.iter().map(|piece| IoSlice::new(piece)).collect();
        write_all_vectored_at(&file, &mut pieces, 5).unwrap();
        let whole = contents.concat();
        let mapped = map(&file, 5 + whole.len() as u64).unwrap();
        assert_eq!(&mapped[5..], whole);
    }

    #[test]
    fn a_lock_excludes_a_second_descriptor() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let first = File::create(&path).unwrap();
        let second = File::create(&path).unwrap();
        assert!(try_lock(&first).unwrap());
        assert!(!try_lock(&second).unwrap());
        drop(first);
        assert!(try_lock(&second).unwrap());
    }

    #[test]
    fn released_blocks_read_as_zero_and_keep_the_length() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 1 << 20]).unwrap();
        file.sync_all().unwrap();
        let before = file.metadata().unwrap().blocks();
        release(&file, 100, 1 << 20);
        let after = file.metadata().unwrap();
        assert_eq!(after.len(), 1 << 20);
        let mapped = map(&file, 1 << 20).unwrap();
        assert!(mapped[..100].iter().all(|byte| *byte == 7));
        if after.blocks() < before {
            assert!(mapped[100..].iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn holes_of_a_file_are_found() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(64 << 20).unwrap();
        for at in [0, 32 << 20] {
            std::os::unix::fs::FileExt::write_all_at(&file, &[7; 100], at).unwrap();
        }
        let stretches = data_stretches(&file, 64 << 20);
        assert!(stretches.iter().any(|(begin, end)| (*begin..*end).contains(&((32 << 20) + 99))));
        assert!(stretches.iter().is_sorted() && stretches[0].0 == 0);
        let bytes: u64 = stretches.iter().map(|(begin, end)| end - begin).sum();
        assert!(bytes < 1 << 20 || stretches == [(0, 64 << 20)], "{stretches:?}");
    }

    #[test]
    fn mapped_bytes_that_are_not_there_are_noticed() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        let mapped = map(&file, 1 << 20).unwrap();
        assert!(populate(&mapped) && populate(&mapped[5_000..9_000]) && populate(&[]));
        file.set_len(500 << 10).unwrap();
        assert!(populate(&mapped[..500 << 10]));
        assert!(!populate(&mapped[100..600 << 10]) && !populate(&mapped[600 << 10..]));
    }
}
