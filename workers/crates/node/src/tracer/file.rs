//! A ring's file.
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use downburst_log::disk;
use downburst_tracer::{
    Connection, HEADER_BYTES, RECORD_BYTES, Record, Ring, Room, Sample, Scan, header, read_header,
};

/// An open ring.
pub(crate) struct RingFile {
    file: disk::File,
    ring: Ring,
}

impl RingFile {
    /// Opens a node's ring and goes on behind its newest record. A file of another version, or whose header is damaged,
    /// is begun anew.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = to_write(path)?;
        if let Some(room) = room_of(&file)? {
            return Self::behind(path, file, room);
        }
        if bytes_of(&file)? > 0 {
            let path = path.display();
            tracing::warn!("{path} is no ring of samples of this release, or is damaged; it begins anew");
            file.set_len(0)?;
        }
        Self::begin(file, Room::default())
    }

    /// Opens the ring of a user, or begins one with this room. Another file is left alone.
    ///
    /// # Errors
    /// A sentence.
    pub(crate) fn open_own(path: &Path, wanted: Option<Room>) -> Result<Self, String> {
        let unable =
            |error: io::Error| format!("{} can't be written: {error}; name another --ring", path.display());
        let file = to_write(path).map_err(unable)?;
        match (room_of(&file).map_err(unable)?, bytes_of(&file).map_err(unable)?) {
            (Some(room), bytes) if wanted.is_none_or(|wanted| wanted == room) => {
                Self::behind(path, file, room).map_err(|error| unreadable(path, bytes, &error))
            }
            (Some(room), _) => Err(format!(
                "{} is a ring of {} bytes; leave --ring-bytes out, or name another --ring",
                path.display(),
                room.bytes()
            )),
            (None, 0) => Self::begin(file, wanted.unwrap_or_default()).map_err(unable),
            (None, _) => Err(no_ring(path)),
        }
    }

    /// Opens a ring to read it, also while a process writes it; returns the time of its newest record too.
    ///
    /// # Errors
    /// A sentence.
    pub(crate) fn look_into(path: &Path) -> Result<(Self, Scan), String> {
        let unable = |error: io::Error| format!("{} can't be read: {error}; check the name", path.display());
        let file = disk::File::open_to_read(path).map_err(unable)?;
        let room = room_of(&file).map_err(unable)?.ok_or_else(|| no_ring(path))?;
        let opened = Self { file, ring: Ring::new(room) };
        let scan = opened.scan(drop).map_err(unable)?;
        Ok((Self { ring: Ring::after(&scan), ..opened }, scan))
    }

    /// Writes samples over the oldest ones. They are not synchronised: a power cut may cost the newest.
    pub(crate) fn write(&mut self, samples: Vec<(Connection, Sample)>) -> io::Result<()> {
        self.ring
            .place(samples)
            .iter()
            .try_for_each(|piece| self.file.write_all_at(&piece.bytes, piece.offset))
    }

    /// Reads the whole ring, oldest record first.
    pub(crate) fn scan(&self, take: impl FnMut(Record)) -> io::Result<Scan> {
        let mut scan = self.new_scan();
        read(&mut scan, self.ranges()?, |at, end| self.piece(at, end), take)?;
        Ok(scan)
    }

    /// A scan that has read nothing yet.
    pub(crate) fn new_scan(&self) -> Scan {
        Scan::of(self.ring.room())
    }

    /// Pieces of the file that hold all records, oldest first.
    pub(crate) fn ranges(&self) -> io::Result<[Range<u64>; 2]> {
        Ok(self.ring.order(bytes_of(&self.file)?))
    }

    /// The next records, a bounded number.
    pub(crate) fn piece(&self, at: u64, end: u64) -> io::Result<Vec<u8>> {
        let room = (end - at).min(PIECE_BYTES);
        let mut bytes = vec![0; usize::try_from(room).unwrap_or(RECORD_BYTES)];
        let mut read = 0;
        while let Some(rest) = bytes.get_mut(read..).filter(|rest| !rest.is_empty()) {
            match self.file.as_file().read_at(rest, at + read as u64)? {
                0 => break,
                more => read += more,
            }
        }
        bytes.truncate(read);
        Ok(bytes)
    }

    fn begin(file: disk::File, room: Room) -> io::Result<Self> {
        file.write_all_at(&header(room), 0)?;
        Ok(Self { file, ring: Ring::new(room) })
    }

    fn behind(path: &Path, file: disk::File, room: Room) -> io::Result<Self> {
        let opened = Self { file, ring: Ring::new(room) };
        let scan = opened.scan(drop)?;
        if scan.damaged > 0 {
            tracing::warn!("{} has {} damaged samples; they are passed over", path.display(), scan.damaged);
        }
        Ok(Self { ring: Ring::after(&scan), ..opened })
    }
}

/// Reads these parts of a ring, piece by piece.
pub(crate) fn read(
    scan: &mut Scan,
    ranges: impl IntoIterator<Item = Range<u64>>,
    piece: impl Fn(u64, u64) -> io::Result<Vec<u8>>,
    mut take: impl FnMut(Record),
) -> io::Result<()> {
    for Range { start: mut at, end } in ranges {
        while at < end {
            let bytes = piece(at, end)?;
            if bytes.is_empty() {
                break;
            }
            scan.read(at, &bytes, &mut take);
            at += bytes.len() as u64;
        }
    }
    Ok(())
}

/// Two writers would spoil each other's records.
fn to_write(path: &Path) -> io::Result<disk::File> {
    let file = disk::File::open_or_create(path)?;
    if file.try_lock()? { Ok(file) } else { Err(io::Error::other("another process records into it")) }
}

fn room_of(file: &disk::File) -> io::Result<Option<Room>> {
    let mut begin = [0; HEADER_BYTES];
    match file.as_file().read_exact_at(&mut begin, 0) {
        Ok(()) => Ok(read_header(&begin)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

fn bytes_of(file: &disk::File) -> io::Result<u64> {
    Ok(file.as_file().metadata()?.len())
}

fn no_ring(path: &Path) -> String {
    format!("{} is no ring of samples of this release; name another file", path.display())
}

fn unreadable(path: &Path, bytes: u64, error: &io::Error) -> String {
    format!("{} of {bytes} bytes can't be read: {error}; name another --ring", path.display())
}

/// A thousandth of a second's reading.
const PIECE_BYTES: u64 = 1 << 20;
const _: () = assert!(PIECE_BYTES.is_multiple_of(RECORD_BYTES as u64));
