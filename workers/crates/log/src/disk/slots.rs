//! A few numbers that change often: two copies with checksums in a file, written in turn, so that a torn or
//! damaged one costs the last change at most.

use std::{io, os::unix::fs::FileExt, path::Path};

use super::{File, parent, sync_directory};

/// `N` numbers on disk.
#[derive(Debug)]
pub struct Slots<const N: usize> {
    file: File,
    magic: [u8; 8],
    /// Of the last change.
    turn: u64,
}

/// The result of opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found<const N: usize> {
    /// There was no file; opening creates it.
    Nothing,
    /// The last change, and both copies can be read.
    Whole([u64; N]),
    /// One copy can't be read: the last change, or the one before it.
    Older([u64; N]),
    /// No copy can be read.
    Damaged,
}

impl<const N: usize> Slots<N> {
    /// Opens the numbers. Creates the file if it is missing; its name is then durable.
    ///
    /// # Errors
    /// Those of the system; damage is not an error.
    pub fn open(path: &Path, magic: &[u8; 8]) -> io::Result<(Self, Found<N>)> {
        let is_new = !path.exists();
        let file = File::open_or_create(path)?;
        if is_new {
            sync_directory(parent(path))?;
        }
        let (turn, found) = find(file.as_file(), magic)?;
        // After an unreadable copy, the next turn must exceed any turn that may become readable again.
        let next = if matches!(found, Found::Nothing) { 0 } else { turn + 1 };
        Ok((Self { file, magic: *magic, turn: next }, found))
    }

    /// The result that opening would have, without creating or changing anything. A copy that is being written may
    /// count as damaged.
    ///
    /// # Errors
    /// Those of the system; a missing file and damage are not errors.
    pub fn look(path: &Path, magic: &[u8; 8]) -> io::Result<Found<N>> {
        match std::fs::File::open(path) {
            Ok(file) => Ok(find(&file, magic)?.1),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Found::Nothing),
            Err(error) => Err(error),
        }
    }

    /// Writes new numbers.
    ///
    /// # Errors
    /// Those of the system.
    pub fn put(&mut self, numbers: [u64; N]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + N * 8 + 4);
        bytes.extend_from_slice(&self.magic);
        bytes.extend_from_slice(&self.turn.to_le_bytes());
        numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
        self.file.write_all_at(&bytes, self.turn % 2 * SLOT_BYTES)?;
        self.turn += 1;
        Ok(())
    }

    /// Makes the last change durable.
    ///
    /// # Errors
    /// Those of the system.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

enum Copy<const N: usize> {
    Blank,
    Damaged,
    Whole(u64, [u64; N]),
}

/// The turn of the last change, and the contents of the copies.
fn find<const N: usize>(file: &std::fs::File, magic: &[u8; 8]) -> io::Result<(u64, Found<N>)> {
    let length = file.metadata()?.len();
    let copies = [0, 1].map(|place| read::<N>(file, magic, place));
    Ok(match copies {
        _ if length == 0 => (0, Found::Nothing),
        [Copy::Whole(0, first), Copy::Blank] => (0, Found::Whole(first)),
        [Copy::Whole(one, first), Copy::Whole(other, second)] => {
            if one > other {
                (one, Found::Whole(first))
            } else {
                (other, Found::Whole(second))
            }
        }
        [Copy::Whole(turn, numbers), _] | [_, Copy::Whole(turn, numbers)] => (turn, Found::Older(numbers)),
        _ => (0, Found::Damaged),
    })
}

fn read<const N: usize>(file: &std::fs::File, magic: &[u8; 8], place: u64) -> Copy<N> {
    let mut bytes = vec![0; HEADER_BYTES + N * 8 + 4];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, place * SLOT_BYTES + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Copy::Damaged,
        }
    }
    if bytes.iter().all(|byte| *byte == 0) {
        return Copy::Blank;
    }
    parse(&bytes, magic).map_or(Copy::Damaged, |(turn, numbers)| Copy::Whole(turn, numbers))
}

fn parse<const N: usize>(bytes: &[u8], magic: &[u8; 8]) -> Option<(u64, [u64; N])> {
    let (checked, crc) = bytes.split_last_chunk::<4>()?;
    if crc32fast::hash(checked) != u32::from_le_bytes(*crc) {
        return None;
    }
    let mut values = checked
        .strip_prefix(magic)?
        .chunks_exact(8)
        .map(|chunk| chunk.first_chunk::<8>().copied().map_or(0, u64::from_le_bytes));
    let turn = values.next()?;
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = values.next()?;
    }
    Some((turn, numbers))
}

/// Magic and turn.
const HEADER_BYTES: usize = 16;
/// No disk tears less than this.
const SLOT_BYTES: u64 = 512;
