//! The file of records: a header, then places that are filled in turn, the oldest record giving way.
use std::ops::Range;

use downburst_model::WallMicros;

use crate::record::{Connection, RECORD_BYTES, Record};
use crate::sample::Sample;

/// The next place of a ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ring {
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
    /// Places with a torn or damaged record.
    pub damaged: u64,
    /// The time of the oldest record and of the newest.
    pub span: Option<(WallMicros, WallMicros)>,
    /// The number behind the highest that was found.
    next: u64,
}

impl Ring {
    /// Goes on behind everything that was found.
    pub const fn after(scan: &Scan) -> Self {
        Self { next: scan.next }
    }

    /// Gives samples their numbers and places, in at most two pieces unless they fill the ring.
    pub fn place(&mut self, samples: impl IntoIterator<Item = (Connection, Sample)>) -> Vec<Placed> {
        let mut pieces: Vec<Placed> = Vec::new();
        for (connection, sample) in samples {
            let record = Record { number: self.next, connection, sample };
            let offset = offset(self.next);
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
        let (begin, oldest) = (HEADER_BYTES as u64, offset(self.next));
        let end = file_bytes.min(begin + RING_RECORDS * RECORD_BYTES as u64);
        [oldest.min(end)..end, begin..oldest.min(end)]
    }
}

impl Scan {
    /// Takes records that stand from `offset` on; `take` gets those that can be believed. A last piece that is shorter
    /// than a record is torn.
    pub fn read(&mut self, offset: u64, bytes: &[u8], mut take: impl FnMut(Record)) {
        for (index, place) in bytes.chunks(RECORD_BYTES).enumerate() {
            let at = offset + (index * RECORD_BYTES) as u64;
            match place.first_chunk().and_then(Record::read).filter(|record| stands_at(record, at)) {
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
pub fn header() -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    let fields =
        [MAGIC.to_vec(), VERSION.to_le_bytes().to_vec(), (RECORD_BYTES as u32).to_le_bytes().to_vec()];
    bytes.iter_mut().zip(fields.concat()).for_each(|(place, byte)| *place = byte);
    bytes
}

/// True if a file begins with the header of this version: another one is begun anew.
pub fn is_header(bytes: &[u8]) -> bool {
    bytes == header()
}

fn stands_at(record: &Record, at: u64) -> bool {
    offset(record.number) == at
}

const fn offset(number: u64) -> u64 {
    HEADER_BYTES as u64 + number % RING_RECORDS * RECORD_BYTES as u64
}

/// The header's room: that of a record, so that records stay within sectors.
pub const HEADER_BYTES: usize = RECORD_BYTES;

/// 64 MiB: four minutes of a hundred busy connections, over two hours of three, and three days of one idle one. That is
/// long enough to ask after a complaint, and small beside any product log.
pub const RING_RECORDS: u64 = (64 << 20) / RECORD_BYTES as u64 - 1;

const MAGIC: [u8; 8] = *b"DBTRACER";
const VERSION: u32 = 1;

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
        let mut ring = Ring { next: RING_RECORDS - 2 };
        let pieces = ring.place(entries(0..5));
        assert_eq!(pieces.len(), 2, "the end and the beginning");
        assert_eq!(pieces[1].offset, HEADER_BYTES as u64);
        let whole = HEADER_BYTES as u64 + RING_RECORDS * RECORD_BYTES as u64;
        assert_eq!(whole, 64 << 20);
        let [first, then] = ring.order(whole);
        assert_eq!((first.start, first.end), (pieces[1].offset + 3 * RECORD_BYTES as u64, whole));
        assert_eq!((then.start, then.end), (HEADER_BYTES as u64, first.start));
        let [none, all] = Ring { next: 3 }.order((HEADER_BYTES + 3 * RECORD_BYTES) as u64);
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
        let mut bytes = header();
        assert!(is_header(&bytes) && !is_header(&bytes[1..]));
        bytes[8] = 2;
        assert!(!is_header(&bytes));
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
                let at = offset(*number) as usize;
                file[at..at + RECORD_BYTES] == whole[at..at + RECORD_BYTES]
            };
            prop_assert_eq!(&numbers, &(0..records).filter(same).collect::<Vec<u64>>());
            prop_assert!(found.damaged + numbers.len() as u64 <= records);
        }

        #[test]
        fn no_bytes_make_a_scan_panic(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
            let mut scan = Scan::default();
            scan.read(HEADER_BYTES as u64, &bytes, |_| ());
        }
    }
}
