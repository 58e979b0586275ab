//! The records of a constant rate within a connection: packets of the same size, one after the other.
use crate::{Key, Packet, PacketKind};

/// Cuts a stream into records.
#[derive(Debug)]
pub struct Records {
    key: Key,
    record_bytes: usize,
    /// The begin of a record whose end has not arrived.
    begun: Vec<u8>,
}

/// The stream has bytes that are no record of the probe; nothing after them can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenRecords;

impl Records {
    /// Records of this size.
    pub fn new(key: Key, record_bytes: u16) -> Self {
        Self { key, record_bytes: usize::from(record_bytes).max(1), begun: Vec::new() }
    }

    /// Takes the bytes that arrived next, and passes each record that they complete on.
    ///
    /// # Errors
    /// A record is not of this probe.
    pub fn took(&mut self, bytes: &[u8], mut each: impl FnMut(&Packet)) -> Result<(), BrokenRecords> {
        let mut rest = bytes;
        if !self.begun.is_empty() {
            let missing = self.record_bytes.saturating_sub(self.begun.len()).min(rest.len());
            let (more, behind) = rest.split_at(missing);
            self.begun.extend_from_slice(more);
            if self.begun.len() < self.record_bytes {
                return Ok(());
            }
            each(&self.read(&self.begun)?);
            self.begun.clear();
            rest = behind;
        }
        let whole = rest.chunks_exact(self.record_bytes);
        self.begun.extend_from_slice(whole.remainder());
        for record in whole {
            each(&self.read(record)?);
        }
        Ok(())
    }

    fn read(&self, record: &[u8]) -> Result<Packet, BrokenRecords> {
        let packet = Packet::read(&self.key, record);
        packet.filter(|packet| packet.kind == PacketKind::Load).ok_or(BrokenRecords)
    }
}

#[cfg(test)]
mod tests {
    use downburst_model::WallMicros;
    use proptest::prelude::*;

    use super::*;

    const KEY: Key = Key([9; 32]);

    fn stream(count: u64, record_bytes: usize) -> Vec<u8> {
        let record = |number| {
            let mut bytes = vec![0; record_bytes];
            let packet = Packet { kind: PacketKind::Load, step: 0, number, sent: WallMicros(1) };
            packet.write(&KEY, &mut bytes);
            bytes
        };
        (0..count).flat_map(record).collect()
    }

    #[test]
    fn bytes_that_are_no_record_break_the_stream() {
        let mut bytes = stream(3, 64);
        bytes[70] ^= 1;
        let mut seen = 0;
        assert_eq!(Records::new(KEY, 64).took(&bytes, |_| seen += 1), Err(BrokenRecords));
        assert_eq!(seen, 1);
        let mut hello = vec![0; 64];
        let packet = Packet { kind: PacketKind::Hello, step: 0, number: 0, sent: WallMicros(1) };
        packet.write(&KEY, &mut hello);
        assert_eq!(Records::new(KEY, 64).took(&hello, |_| {}), Err(BrokenRecords));
        assert!(Records::new(KEY, 0).took(&[1], |_| {}).is_err());
    }

    proptest! {
        #[test]
        fn records_come_out_of_any_pieces(
            cuts in prop::collection::vec(1_usize..400, 1..60), record_bytes in 64_u16..200,
        ) {
            let bytes = stream(20, record_bytes.into());
            let (mut records, mut numbers, mut from) = (Records::new(KEY, record_bytes), Vec::new(), 0);
            for cut in cuts.into_iter().chain([bytes.len()]) {
                let to = (from + cut).min(bytes.len());
                records.took(&bytes[from..to], |packet| numbers.push(packet.number)).unwrap();
                from = to;
            }
            prop_assert_eq!(numbers, (0..20).collect::<Vec<u64>>());
        }

        #[test]
        fn absurd_bytes_do_no_harm(pieces: Vec<Vec<u8>>, record_bytes: u16) {
            let mut records = Records::new(KEY, record_bytes);
            for piece in pieces {
                let _ = records.took(&piece, |_| {});
                prop_assert!(records.begun.len() <= usize::from(record_bytes).max(1));
            }
        }
    }
}
