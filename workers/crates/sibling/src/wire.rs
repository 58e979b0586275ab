//! The bytes between siblings, inside TLS. All numbers are big-endian.
//!
//! | direction  | bytes                                                          |
//! |------------|----------------------------------------------------------------|
//! | request    | `DBS1`, ticket (16)                                            |
//! | answer     | any number of products and lacks, then an end or a refusal     |
//! | a product  | 1, its sequence (8), its size (8), its bytes                   |
//! | a lack     | 2, the sequence (8)                                            |
//! | the end    | 3                                                              |
//! | a refusal  | 4, the reason (1)                                              |
use bytes::{BufMut as _, Bytes, BytesMut};
use downburst_session::Ticket;

/// The reason of a giving site for not giving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The ticket is unknown, used, or of another certificate.
    Ticket,
    /// The hub withdrew the grant.
    Withdrawn,
    /// The uploads of this day are at their ceiling.
    DayIsSpent,
    /// Too many siblings ask at the same time.
    Busy,
}

impl Refusal {
    pub(crate) fn of(byte: u8) -> Self {
        match byte {
            1 => Self::Withdrawn,
            2 => Self::DayIsSpent,
            3 => Self::Busy,
            _ => Self::Ticket,
        }
    }

    fn byte(self) -> u8 {
        match self {
            Self::Ticket => 0,
            Self::Withdrawn => 1,
            Self::DayIsSpent => 2,
            Self::Busy => 3,
        }
    }
}

/// The request of a sibling.
pub fn request(ticket: &Ticket) -> Bytes {
    let mut bytes = BytesMut::with_capacity(REQUEST_BYTES);
    bytes.put_slice(MAGIC);
    bytes.put_slice(&ticket.0);
    bytes.freeze()
}

/// The ticket of a request; `None`: this is none.
pub fn ticket_of(request: &[u8; REQUEST_BYTES]) -> Option<Ticket> {
    let ticket = request.strip_prefix(MAGIC)?;
    ticket.try_into().ok().map(Ticket)
}

/// The head of a product; its bytes follow.
pub fn product(sequence: u64, size: u64) -> Bytes {
    let mut bytes = BytesMut::with_capacity(PRODUCT_HEAD_BYTES);
    bytes.put_u8(PRODUCT);
    bytes.put_u64(sequence);
    bytes.put_u64(size);
    bytes.freeze()
}

/// The giving site no longer has a product.
pub fn lacks(sequence: u64) -> Bytes {
    let mut bytes = BytesMut::with_capacity(LACK_BYTES);
    bytes.put_u8(LACK);
    bytes.put_u64(sequence);
    bytes.freeze()
}

/// No more follows.
pub fn end() -> Bytes {
    Bytes::from_static(&[END])
}

/// No more follows, for this reason.
pub fn refused(refusal: Refusal) -> Bytes {
    Bytes::copy_from_slice(&[REFUSED, refusal.byte()])
}

/// The length of a request.
pub const REQUEST_BYTES: usize = 20;

pub(crate) const PRODUCT: u8 = 1;
pub(crate) const LACK: u8 = 2;
pub(crate) const END: u8 = 3;
pub(crate) const REFUSED: u8 = 4;
pub(crate) const PRODUCT_HEAD_BYTES: usize = 17;
pub(crate) const LACK_BYTES: usize = 9;

const MAGIC: &[u8; 4] = b"DBS1";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_back_and_anything_else_is_none() {
        let ticket = Ticket([7; 16]);
        let bytes: [u8; REQUEST_BYTES] = request(&ticket).as_ref().try_into().unwrap();
        assert_eq!(ticket_of(&bytes), Some(ticket));
        let mut bad = bytes;
        bad[3] = b'2';
        assert_eq!(ticket_of(&bad), None);
    }

    #[test]
    fn a_refusal_is_read_back() {
        for refusal in [Refusal::Ticket, Refusal::Withdrawn, Refusal::DayIsSpent, Refusal::Busy] {
            assert_eq!(Refusal::of(refused(refusal)[1]), refusal);
        }
        assert_eq!(Refusal::of(200), Refusal::Ticket);
    }
}
