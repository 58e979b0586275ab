//! The first bytes of a connection, by which the node knows that it is of its probe.
//!
//! | bytes | content (big-endian) |
//! |---|---|
//! | 0..4 | `DbT1` |
//! | 4 | purpose: 1 records of a constant rate, 2 a greedy flow |
//! | 5 | number of the flow; 0 of records |
//! | 6..8 | trial; 0 of records |
//! | 8..24 | 0 |
//! | 24..40 | the first half of BLAKE3 of bytes 0..24, keyed by the probe's key |
use crate::packet::same;
use crate::{Key, packet};

/// The purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// Records of a step.
    Records,
    /// A greedy flow.
    Flow {
        /// Of this trial.
        trial: u16,
        /// Its number within the trial.
        flow: u8,
    },
}

/// The first bytes of a connection, which the site sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening(pub Purpose);

impl Opening {
    /// The bytes.
    pub fn bytes(self, key: &Key) -> [u8; OPENING_BYTES] {
        let (purpose, flow, trial) = match self.0 {
            Purpose::Records => (RECORDS, 0, 0),
            Purpose::Flow { trial, flow } => (FLOW, flow, trial),
        };
        let mut signed = [0; packet::SIGNED_BYTES];
        let fields = MAGIC.into_iter().chain([purpose, flow]).chain(trial.to_be_bytes());
        signed.iter_mut().zip(fields).for_each(|(byte, field)| *byte = field);
        let mut bytes = [0; OPENING_BYTES];
        let all = signed.into_iter().chain(key.tag(&signed));
        bytes.iter_mut().zip(all).for_each(|(byte, field)| *byte = field);
        bytes
    }

    /// Reads the bytes; `None`: the connection is not of the probe with this key.
    pub fn read(key: &Key, bytes: &[u8; OPENING_BYTES]) -> Option<Self> {
        let (signed, tag) = bytes.split_first_chunk::<{ packet::SIGNED_BYTES }>()?;
        if !same(tag.first_chunk()?, &key.tag(signed)) {
            return None;
        }
        let purpose = match signed.first_chunk::<8>()? {
            [b'D', b'b', b'T', b'1', RECORDS, 0, 0, 0] => Purpose::Records,
            [b'D', b'b', b'T', b'1', FLOW, flow, trial @ ..] => {
                Purpose::Flow { trial: u16::from_be_bytes(*trial), flow: *flow }
            }
            _ => return None,
        };
        Some(Self(purpose))
    }
}

const MAGIC: [u8; 4] = *b"DbT1";
const RECORDS: u8 = 1;
const FLOW: u8 = 2;
/// The length of an opening.
pub const OPENING_BYTES: usize = packet::HEADER_BYTES;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: Key = Key([7; 32]);
    const FLOW_9: Opening = Opening(Purpose::Flow { trial: 300, flow: 9 });

    #[test]
    fn an_opening_is_read_as_written() {
        assert_eq!(FLOW_9.bytes(&KEY)[..8], *b"DbT1\x02\x09\x01\x2c");
        for opening in [FLOW_9, Opening(Purpose::Records)] {
            assert_eq!(Opening::read(&KEY, &opening.bytes(&KEY)), Some(opening));
        }
    }

    #[test]
    fn another_key_and_every_changed_bit_are_refused() {
        let bytes = FLOW_9.bytes(&KEY);
        assert_eq!(Opening::read(&Key([8; 32]), &bytes), None);
        for bit in 0..OPENING_BYTES * 8 {
            let mut spoilt = bytes;
            spoilt[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Opening::read(&KEY, &spoilt), None, "bit {bit}");
        }
    }

    #[test]
    fn a_datagram_of_a_probe_opens_no_connection() {
        let mut bytes = [0; OPENING_BYTES];
        let kind = crate::PacketKind::Load;
        let packet = crate::Packet { kind, step: 1, number: 2, sent: downburst_model::WallMicros(3) };
        packet.write(&KEY, &mut bytes);
        assert_eq!(Opening::read(&KEY, &bytes), None);
        assert_eq!(crate::Packet::read(&KEY, &FLOW_9.bytes(&KEY)), None);
    }

    proptest! {
        #[test]
        fn nothing_from_the_network_is_taken_for_an_opening(bytes: [u8; 32], rest: [u8; 8]) {
            let mut all = [0; OPENING_BYTES];
            all.iter_mut().zip(bytes.into_iter().chain(rest)).for_each(|(to, byte)| *to = byte);
            prop_assert_eq!(Opening::read(&KEY, &all), None);
        }
    }
}
