//! The file of records: a header, then places that are filled in turn, the oldest record giving way.
use std::num::NonZeroU64;
use std::ops::Range;

use downburst_model::WallMicros;

use crate::record::{Connection, RECORD_BYTES, Record};
use crate::sample::Sample;

/// The number of records that a ring holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Room(NonZeroU64);

/// The next place of a ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ring {
    room: Room,
    next: u64,
}

/// Bytes for one place of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Where they begin.
    pub offset: u64,
    /// Whole records.
    pub bytes: Vec<u8>,
}

/// What was found in a file of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    room: Room,
    /// Places with a torn or damaged record.
    pub damaged: u64,
    /// The time of the oldest record and of the newest.
    pub span: Option<(WallMicros, WallMicros)>,
    /// The number behind the highest that was found.
    next: u64,
}

impl Room {
    /// The most that a file of this length holds; `None`: it holds no record, or is longer than a ring may be.
    pub fn of_bytes(bytes: u64) -> Option<Self> {
        let records = bytes.checked_sub(HEADER_BYTES as u64)? / RECORD_BYTES as u64;
        NonZeroU64::new(records).filter(|_| bytes <= LONGEST_BYTES).map(Self)
    }

    /// The length of a full file.
    pub const fn bytes(self) -> u64 {
        HEADER_BYTES as u64 + self.0.get() * RECORD_BYTES as u64
    }

    const fn offset(self, number: u64) -> u64 {
        HEADER_BYTES as u64 + number % self.0.get() * RECORD_BYTES as u64
    }
}

impl Default for Room {
    /// That of a node.
    fn default() -> Self {
        Self(RING_RECORDS)
    }
}

impl Ring {
    /// Begins an empty one.
    pub const fn new(room: Room) -> Self {
        Self { room, next: 0 }
    }

    /// Goes on behind everything that was found.
    pub const fn after(scan: &Scan) -> Self {
        Self { room: scan.room, next: scan.next }
    }

    /// Its room.
    pub const fn room(&self) -> Room {
        self.room
    }

    /// Gives samples their numbers and places, in at most two pieces unless they fill the ring.
    pub fn place(&mut self, samples: impl IntoIterator<Item = (Connection, Sample)>) -> Vec<Placed> {
        let mut pieces: Vec<Placed> = Vec::new();
        for (connection, sample) in samples {
            let record = Record { number: self.next, connection, sample };
            let offset = self.room.offset(self.next);
            match pieces.last_mut() {
                Some(piece) if piece.offset + piece.bytes.len() as u64 == offset => {
                    piece.bytes.extend_from_slice(&record.write());
                }
                _ => pieces.push(Placed { offset, bytes: record.write().to_vec() }),
            }
            self.next = self.next.saturating_add(1);
        }
        pieces
    }

    /// The offsets of all records in a file of this length, oldest first.
    pub fn order(&self, file_bytes: u64) -> [Range<u64>; 2] {
        let (begin, oldest) = (HEADER_BYTES as u64, self.room.offset(self.next));
        let end = file_bytes.min(self.room.bytes());
        [oldest.min(end)..end, begin..oldest.min(end)]
    }
}

impl Scan {
    /// Begins with the first record of a ring.
    pub fn of(room: Room) -> Self {
        Self { room, ..Self::default() }
    }

    /// Takes records that stand from `offset` on; `take` gets those that can be believed. A last piece that is shorter
    /// than a record is torn.
    pub fn read(&mut self, offset: u64, bytes: &[u8], mut take: impl FnMut(Record)) {
        for (index, place) in bytes.chunks(RECORD_BYTES).enumerate() {
            let at = offset + (index * RECORD_BYTES) as u64;
            match place.first_chunk().and_then(Record::read).filter(|it| self.room.offset(it.number) == at) {
                Some(record) => {
                    self.note(&record);
                    take(record);
                }
                None => self.damaged += u64::from(place.iter().any(|byte| *byte != 0)),
            }
        }
    }

    fn note(&mut self, record: &Record) {
        self.next = self.next.max(record.number.saturating_add(1));
        let at = record.sample.at;
        let (oldest, newest) = self.span.unwrap_or((at, at));
        self.span = Some((oldest.min(at), newest.max(at)));
    }
}

/// The header of a ring's file.
pub fn header(room: Room) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    let fields = [
        MAGIC.to_vec(),
        VERSION.to_le_bytes().to_vec(),
        (RECORD_BYTES as u32).to_le_bytes().to_vec(),
        room.0.get().to_le_bytes().to_vec(),
    ];
    bytes.iter_mut().zip(fields.concat()).for_each(|(place, byte)| *place = byte);
    bytes
}

/// The room of a ring whose file begins with these bytes; `None`: it is no ring of this version.
pub fn read_header(bytes: &[u8]) -> Option<Room> {
    let records = u64::from_le_bytes(*bytes.get(ROOM_AT..)?.first_chunk()?);
    let length = records.checked_mul(RECORD_BYTES as u64)?.checked_add(HEADER_BYTES as u64)?;
    Room::of_bytes(length).filter(|room| bytes == header(*room))
}

/// The header's room: that of a record, so that records stay within sectors.
pub const HEADER_BYTES: usize = RECORD_BYTES;

/// 64 MiB: four minutes of a hundred busy connections, over two hours of three, and three days of one idle one. That is
/// long enough to ask after a complaint, and small beside any product log.
const RING_RECORDS: NonZeroU64 = NonZeroU64::new((64 << 20) / RECORD_BYTES as u64 - 1).unwrap();

/// A question reads the whole ring: half a minute from a slow disk.
const LONGEST_BYTES: u64 = 4 << 30;

const MAGIC: [u8; 8] = *b"DBTRACER";
const VERSION: u32 = 2;
const ROOM_AT: usize = 16;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::record::tests::record;

    fn entries(numbers: Range<u64>) -> impl Iterator<Item = (Connection, Sample)> {
        numbers.map(|number| record(number, "a", number as i64)).map(|it| (it.connection, it.sample))
    }

    /// Writes pieces into a file of the whole ring's length.
    fn write(file: &mut [u8], pieces: Vec<Placed>) {
        for piece in pieces {
            let at = piece.offset as usize;
            file[at..at + piece.bytes.len()].copy_from_slice(&piece.bytes);
        }
    }

    fn scan(file: &[u8]) -> (Scan, Vec<u64>) {
        let (mut scan, mut numbers) = (Scan::default(), Vec::new());
        scan.read(HEADER_BYTES as u64, &file[HEADER_BYTES..], |record| numbers.push(record.number));
        (scan, numbers)
    }

    #[test]
    fn a_new_start_goes_on_in_the_old_ring() {
        let mut file = vec![0; 64 << 10];
        let mut ring = Ring::default();
        write(&mut file, ring.place(entries(0..5)));
        write(&mut file, ring.place(entries(5..9)));
        let (found, numbers) = scan(&file);
        assert_eq!(numbers, (0..9).collect::<Vec<u64>>());
        assert_eq!((Ring::after(&found), found.damaged), (ring, 0));
        assert_eq!(found.span, Some((WallMicros(0), WallMicros(8))));
    }

    #[test]
    fn the_oldest_gives_way_and_the_order_is_kept_over_the_end() {
        let mut ring = Ring { next: RING_RECORDS.get() - 2, ..Ring::default() };
        let pieces = ring.place(entries(0..5));
        assert_eq!(pieces.len(), 2, "the end and the beginning");
        assert_eq!(pieces[1].offset, HEADER_BYTES as u64);
        let whole = ring.room().bytes();
        assert_eq!(whole, 64 << 20);
        let [first, then] = ring.order(whole);
        assert_eq!((first.start, first.end), (pieces[1].offset + 3 * RECORD_BYTES as u64, whole));
        assert_eq!((then.start, then.end), (HEADER_BYTES as u64, first.start));
        let [none, all] = Ring { next: 3, ..Ring::default() }.order((HEADER_BYTES + 3 * RECORD_BYTES) as u64);
        assert!(none.is_empty());
        assert_eq!(all.end - all.start, 3 * RECORD_BYTES as u64);
    }

    #[test]
    fn a_record_in_another_ones_place_is_damage() {
        let mut scan = Scan::default();
        scan.read(HEADER_BYTES as u64, &record(3, "a", 1).write(), |_| panic!("it is believed"));
        assert_eq!((scan.damaged, Ring::after(&scan)), (1, Ring::default()));
    }

    #[test]
    fn another_version_is_told_apart() {
        let room = Room::of_bytes(10_000).unwrap();
        let mut bytes = header(room);
        assert_eq!((read_header(&bytes), read_header(&bytes[1..])), (Some(room), None));
        bytes[8] = 1;
        assert_eq!(read_header(&bytes), None);
    }

    #[test]
    fn a_ring_is_as_small_as_asked_and_its_oldest_records_give_way() {
        let room = Room::of_bytes(10_000).unwrap();
        assert_eq!((room.bytes(), Room::of_bytes(511), Room::of_bytes(u64::MAX)), (9_984, None, None));
        let (mut file, mut ring) = (vec![0; 9_984], Ring::new(room));
        write(&mut file, ring.place(entries(0..100)));
        let (mut found, mut numbers) = (Scan::of(room), Vec::new());
        for part in ring.order(file.len() as u64) {
            let bytes = &file[part.start as usize..part.end as usize];
            found.read(part.start, bytes, |record| numbers.push(record.number));
        }
        assert_eq!(numbers, (62..100).collect::<Vec<u64>>());
        assert_eq!((Ring::after(&found), found.damaged), (ring, 0));
    }

    proptest! {
        #[test]
        fn damage_costs_its_record_alone(
            records in 1..60_u64, at in any::<prop::sample::Index>(), length in 1..900_usize, byte in any::<u8>(),
        ) {
            let mut file = vec![0; HEADER_BYTES + records as usize * RECORD_BYTES];
            write(&mut file, Ring::default().place(entries(0..records)));
            let whole = file.clone();
            let begin = HEADER_BYTES + at.index(file.len() - HEADER_BYTES);
            let end = (begin + length).min(file.len());
            file[begin..end].fill(byte);
            let (found, numbers) = scan(&file);
            let same = |number: &u64| {
                let at = Room::default().offset(*number) as usize;
                file[at..at + RECORD_BYTES] == whole[at..at + RECORD_BYTES]
            };
            prop_assert_eq!(&numbers, &(0..records).filter(same).collect::<Vec<u64>>());
            prop_assert!(found.damaged + numbers.len() as u64 <= records);
        }

        #[test]
        fn no_bytes_make_a_scan_panic(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
            let mut scan = Scan::default();
            scan.read(HEADER_BYTES as u64, &bytes, |_| ());
            read_header(&bytes);
        }
    }
}
