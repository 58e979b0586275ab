//! Datagrams that carry a repair symbol of a block. Their numbers have the highest bit set, so that a packet
//! and a symbol never share a nonce; a symbol's number consists of the block's first packet and the symbol's
//! index, and is sealed once.
//!
//! | bytes | content |
//! |---|---|
//! | 0..2 | number of packets in the block |
//! | 2..4 | number of symbols of the block made so far, including this one and those that follow it |
//! | 4.. | the symbol; its code is RaptorQ over the block's payloads, each preceded by its length (`code.rs`) |
use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::packet::code::{LARGEST_BLOCK, LENGTH_BYTES};

/// The content of a symbol's datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Symbol {
    /// The block's first and last packet.
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) index: u16,
    pub(crate) made: u16,
    pub(crate) bytes: Bytes,
}

/// The number of a symbol's datagram; `None` beyond 2^47 packets, which no leg reaches.
pub(crate) fn number(first: u64, index: u16) -> Option<u64> {
    (first < FIRST_LIMIT && index < INDEX_LIMIT).then(|| MARK | first << INDEX_BITS | u64::from(index))
}

pub(crate) fn write(buffer: &mut BytesMut, count: u16, made: u16, bytes: &[u8]) {
    buffer.put_u16(count);
    buffer.put_u16(made);
    buffer.put_slice(bytes);
}

/// True if the datagram's number is that of a symbol, not of a packet.
pub(crate) fn is_symbol(number: u64) -> bool {
    number & MARK != 0
}

/// Reads a symbol; `None` if it is malformed: no packets or too many, an index not made, or no room for a length.
pub(crate) fn read(number: u64, mut payload: Bytes) -> Option<Symbol> {
    let (count, made) = (payload.try_get_u16().ok()?, payload.try_get_u16().ok()?);
    let index = u16::try_from(number & u64::from(INDEX_LIMIT - 1)).ok()?;
    let first = (number & !MARK) >> INDEX_BITS;
    let fits = (1..=LARGEST_BLOCK).contains(&usize::from(count)) && index < made && first > 0;
    let last = first.saturating_add(u64::from(count)).saturating_sub(1);
    (fits && payload.len() > LENGTH_BYTES).then_some(Symbol { first, last, index, made, bytes: payload })
}

/// The overhead of a symbol's datagram over the longest of its packets.
pub(crate) const SYMBOL_BYTES: usize = 4 + LENGTH_BYTES;

const MARK: u64 = 1 << 63;
const INDEX_BITS: u32 = 15;
const INDEX_LIMIT: u16 = 1 << INDEX_BITS;
/// The limit of first packets; the numbers of notices begin above it.
const FIRST_LIMIT: u64 = 1 << 47;

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(count: u16, made: u16) -> Bytes {
        let mut buffer = BytesMut::new();
        write(&mut buffer, count, made, b"symbol");
        buffer.freeze()
    }

    #[test]
    fn what_is_written_is_read() {
        for (first, index) in [(1, 0), (1_025, 14), (FIRST_LIMIT - 1, INDEX_LIMIT - 1)] {
            let number = number(first, index).unwrap();
            assert!(is_symbol(number) && !is_symbol(first));
            let read = read(number, payload(1_000, INDEX_LIMIT)).unwrap();
            assert_eq!((read.first, read.last, read.index), (first, first + 999, index));
            assert_eq!((read.made, &read.bytes[..]), (INDEX_LIMIT, &b"symbol"[..]));
        }
        assert_eq!((number(FIRST_LIMIT, 0), number(1, INDEX_LIMIT)), (None, None));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let number = number(9, 3).unwrap();
        for (count, made) in [(0, 4), (1_025, 4), (5, 3), (5, 0)] {
            assert_eq!(read(number, payload(count, made)), None, "{count} packets, {made} made");
        }
        for length in 0..=6 {
            assert_eq!(read(number, payload(5, 4).slice(..length)), None, "{length} bytes");
        }
        assert!(read(number, payload(5, 4)).is_some());
        assert_eq!(read(MARK | 3, payload(5, 4)), None, "there is no packet 0");
    }
}
