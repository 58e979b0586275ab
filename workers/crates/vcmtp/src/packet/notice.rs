//! Notices: datagrams that announce pending repairs to a large group, so that few of the sites with the same loss
//! request it. Their numbers have the two highest bits set and count from 0; a lost one is never requested.
//!
//! | bytes | content |
//! |---|---|
//! | 0..2 | 0: a repair symbol of no packets, which receivers without notices refuse |
//! | 2..6 | number of sites in the group |
//! | 6.. | pending repairs of 14 bytes; fewer bytes at the end have no meaning |
//!
//! | bytes of a pending repair | content |
//! |---|---|
//! | 0..8 | the first packet |
//! | 8..10 | number of packets; 0: a block that is still open, of at most 1,024 packets |
//! | 10..12 | total number of symbols made of the block after this repair; 0: the packets are sent uncoded |
//! | 12..14 | time until the repair, in milliseconds |
use bytes::{Buf, BufMut, Bytes, BytesMut};
use downburst_model::Micros;

use crate::packet::code::LARGEST_BLOCK;

/// The content of a notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) members: u32,
    pub(crate) pending_repairs: Vec<PendingRepair>,
}

/// A repair that the sender is about to send to the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PendingRepair {
    pub(crate) first: u64,
    /// The number of packets; `None` if the block is open.
    pub(crate) count: Option<u16>,
    /// The total number of symbols made of the block after this repair; `None`: the packets are sent uncoded.
    pub(crate) made: Option<u16>,
    pub(crate) within: Micros,
}

/// The number of a notice's datagram; `None` when they are exhausted, which no leg reaches.
pub(crate) fn number(counter: u64) -> Option<u64> {
    (counter < MARK_LIMIT).then_some(MARK | counter)
}

/// True if the datagram's number is that of a notice.
pub(crate) fn is_notice(number: u64) -> bool {
    number & MARK == MARK
}

impl Notice {
    pub(crate) fn write(&self, buffer: &mut BytesMut) {
        buffer.put_u16(0);
        buffer.put_u32(self.members);
        for pending in self.pending_repairs.iter().take(MOST_PENDING) {
            buffer.put_u64(pending.first);
            buffer.put_u16(pending.count.unwrap_or(0));
            buffer.put_u16(pending.made.unwrap_or(0));
            buffer.put_u16(u16::try_from(pending.within.0 / 1_000).unwrap_or(u16::MAX));
        }
    }

    /// `None` if it is malformed.
    pub(crate) fn read(mut payload: Bytes) -> Option<Self> {
        (payload.try_get_u16().ok()? == 0).then_some(())?;
        let members = payload.try_get_u32().ok()?;
        let mut pending_repairs = Vec::new();
        while payload.len() >= PENDING_BYTES && pending_repairs.len() < MOST_PENDING {
            pending_repairs.push(PendingRepair::read(&mut payload)?);
        }
        Some(Self { members, pending_repairs })
    }
}

impl PendingRepair {
    /// The last packet of the repair; of an open block, the last possible one.
    pub(crate) fn last(&self) -> u64 {
        let count = self.count.map_or(LARGEST_BLOCK as u64, u64::from);
        self.first.saturating_add(count).saturating_sub(1)
    }

    fn read(bytes: &mut Bytes) -> Option<Self> {
        let some = |number: u16| (number > 0).then_some(number);
        let first = bytes.try_get_u64().ok()?;
        let (count, made) = (some(bytes.try_get_u16().ok()?), some(bytes.try_get_u16().ok()?));
        let within = Micros::from_millis(u64::from(bytes.try_get_u16().ok()?));
        let fits = count.is_none_or(|count| usize::from(count) <= LARGEST_BLOCK);
        fits.then_some(Self { first, count, made, within })
    }
}

/// The number that fits into the smallest datagram.
pub(crate) const MOST_PENDING: usize = 48;

const PENDING_BYTES: usize = 14;
const MARK: u64 = 0b11 << 62;
const MARK_LIMIT: u64 = 1 << 62;

/// Up to this size all sites request their losses: 32 requests are less than one packet in bytes, and no site waits.
pub(crate) const SMALL_GROUP: u64 = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::symbol;

    fn pending(first: u64, count: Option<u16>, made: Option<u16>) -> PendingRepair {
        PendingRepair { first, count, made, within: Micros::from_millis(250) }
    }

    fn written(notice: &Notice) -> Bytes {
        let mut buffer = BytesMut::new();
        notice.write(&mut buffer);
        buffer.freeze()
    }

    #[test]
    fn what_is_written_is_read_and_rests_are_skipped() {
        let pending_repairs =
            vec![pending(7, None, Some(20)), pending(1_025, Some(1_024), Some(3)), pending(9, Some(2), None)];
        let notice = Notice { members: 500, pending_repairs };
        let bytes = written(&notice);
        assert_eq!(bytes.len(), 6 + 3 * PENDING_BYTES);
        assert_eq!(Notice::read(bytes.clone()), Some(notice.clone()));
        assert_eq!(Notice::read([&bytes[..], b"later"].concat().into()), Some(notice));
    }

    #[test]
    fn a_notice_fits_the_smallest_datagram() {
        let notice = Notice { members: 1, pending_repairs: vec![pending(1, None, None); 100] };
        let sealed =
            crate::packet::seal::HEADER_BYTES + written(&notice).len() + crate::packet::seal::TAG_BYTES;
        assert!(sealed <= crate::sender::SMALLEST_DATAGRAM_BYTES, "{sealed}");
    }

    /// Numbers with the highest bit set are those of symbols and notices.
    #[test]
    fn a_notice_is_not_read_as_a_symbol() {
        let notice = Notice { members: 500, pending_repairs: vec![pending(7, None, Some(20))] };
        for counter in [0, 1, MARK_LIMIT - 1] {
            let number = number(counter).unwrap();
            assert!(is_notice(number) && symbol::is_symbol(number));
            assert_eq!(symbol::read(number, written(&notice)), None);
        }
        assert!(!is_notice(symbol::number((1 << 47) - 1, 0).unwrap()));
        assert_eq!(number(MARK_LIMIT), None);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let bytes = written(&Notice { members: 5, pending_repairs: vec![pending(1, Some(1_025), None)] });
        assert_eq!(Notice::read(bytes), None);
        for length in 0..6 {
            let bytes = written(&Notice { members: 5, pending_repairs: vec![] });
            assert_eq!(Notice::read(bytes.slice(..length)), None);
        }
        assert_eq!(Notice::read(Bytes::from_static(&[0, 1, 0, 0, 0, 1])), None);
    }
}
