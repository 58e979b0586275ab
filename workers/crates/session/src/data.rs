//! Data connections: messages about them, and the tickets that tie them to a session.
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use bytes::{Buf as _, Bytes};
use downburst_model::Micros;
use minicbor::{Decode, Encode};

use crate::frame::{Decoder, Frame, Message};

/// The single-use token that admits one data connection to one session: 128 random bits from the hub.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(transparent)]
pub struct Ticket(#[cbor(with = "minicbor::bytes")] pub [u8; 16]);

/// Hub to site: open a data connection, and begin it with [`Attach`].
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct OpenStream {
    /// The number of the stream: rising within a session, never assigned twice.
    #[n(0)]
    pub stream: u32,
    /// Valid for one connection, for [`TICKET_LIFE`].
    #[n(1)]
    pub ticket: Ticket,
    /// The path of the connection; absent: that of the first connection.
    #[n(2)]
    pub path: Option<StreamPath>,
}

/// A separate path for data connections: through a circuit, for example.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct StreamPath {
    /// The hub's address and port on this path.
    #[n(0)]
    pub to: String,
    /// The site's address on this path, used as the source of the connection.
    #[n(1)]
    pub from: String,
}

/// Site to hub: the first and only frame on a data connection.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Attach {
    /// From [`OpenStream`].
    #[n(0)]
    pub ticket: Ticket,
}

/// Hub to site: the first frame on a data connection; products may follow.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Attached {
    /// From [`OpenStream`].
    #[n(0)]
    pub stream: u32,
}

/// In both directions, on the first stream: a data connection ended, or the site could not open it. The peer
/// may not have noticed.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct StreamEnded {
    /// The stream.
    #[n(0)]
    pub stream: u32,
    /// The reason, in readable form.
    #[n(1)]
    pub reason: String,
}

/// Site to hub, on the first stream: the number of transfers of a data connection that arrived whole. Until
/// then they count as in flight, and are sent again if the connection ends.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Taken {
    /// The stream.
    #[n(0)]
    pub stream: u32,
    /// The count since the stream began.
    #[n(1)]
    pub transfers: u64,
}

/// Hub to site, on the first stream: a request for [`Marked`] at this point. The answer confirms that the site
/// received everything before it, so that nothing that depends on it can arrive too early on another stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Mark {
    /// Rising.
    #[n(0)]
    pub number: u32,
}

/// Site to hub: the answer to a [`Mark`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Marked {
    /// From the mark.
    #[n(0)]
    pub number: u32,
}

/// The kind of a newly accepted connection, by its first bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    /// Not yet known: too few bytes.
    Unknown,
    /// A session: all bytes read so far belong to it.
    Session,
    /// A data connection, with this ticket.
    Data(Ticket),
    /// Neither: close it.
    Malformed,
}

impl Opening {
    /// Classifies a connection by its first bytes.
    pub fn of(bytes: &[u8]) -> Self {
        match bytes.first() {
            None => Self::Unknown,
            Some(kind) if *kind != ATTACH => Self::Session,
            Some(_) => Self::of_data(bytes),
        }
    }

    fn of_data(bytes: &[u8]) -> Self {
        let length = bytes.get(1..).and_then(|mut rest| rest.try_get_u32().ok());
        if bytes.len() > OPENING_BYTES || length.is_some_and(|length| length as usize > OPENING_BYTES) {
            return Self::Malformed;
        }
        let mut decoder = Decoder::default();
        decoder.push(Bytes::copy_from_slice(bytes));
        match decoder.next() {
            Ok(Some(Frame::Message(Message::Attach(attach)))) => Self::Data(attach.ticket),
            Ok(None) => Self::Unknown,
            _ => Self::Malformed,
        }
    }
}

/// The open tickets of a hub, each with its target. Bounded: beyond [`OPEN_TICKETS`] the oldest is dropped.
#[derive(Debug)]
pub struct Tickets<T> {
    open: BTreeMap<Ticket, (Micros, T)>,
    /// By rising time of expiry.
    order: VecDeque<(Micros, Ticket)>,
}

impl<T> Tickets<T> {
    /// Makes a ticket valid from now on.
    pub fn issue(&mut self, now: Micros, ticket: Ticket, leads_to: T) {
        self.forget_old(now);
        if self.order.len() >= OPEN_TICKETS
            && let Some((_, oldest)) = self.order.pop_front()
        {
            self.open.remove(&oldest);
        }
        let ends = now.plus(TICKET_LIFE);
        self.order.push_back((ends, ticket.clone()));
        self.open.insert(ticket, (ends, leads_to));
    }

    /// Redeems a ticket: returns its target if the ticket is valid, and makes it invalid.
    pub fn redeem(&mut self, now: Micros, ticket: &Ticket) -> Option<T> {
        self.forget_old(now);
        let (_, leads_to) = self.open.remove(ticket)?;
        Some(leads_to)
    }

    fn forget_old(&mut self, now: Micros) {
        while self.order.front().is_some_and(|(ends, _)| *ends <= now)
            && let Some((_, ticket)) = self.order.pop_front()
        {
            self.open.remove(&ticket);
        }
    }
}

impl<T> Default for Tickets<T> {
    fn default() -> Self {
        Self { open: BTreeMap::new(), order: VecDeque::new() }
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ticket(..)")
    }
}

/// The validity of a ticket: several round trips and a handshake on the worst path.
pub const TICKET_LIFE: Micros = Micros::from_secs(30);

/// The maximum number of data connections of a session besides its first.
pub const DATA_STREAMS: usize = 16;

/// The maximum number of open tickets: all streams of two thousand sites that reconnect together.
pub const OPEN_TICKETS: usize = 32_768;

/// The kind of the first frame of a data connection.
pub(crate) const ATTACH: u8 = 43;

/// The maximum size of an attach: it has 5 bytes of header and 18 of body, and a later version may add a little.
const OPENING_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn attach(number: u8) -> bytes::Bytes {
        Message::from(Attach { ticket: Ticket([number; 16]) }).encode()
    }

    #[test]
    fn the_first_frame_tells_a_session_from_a_data_connection() {
        assert_eq!(Opening::of(b""), Opening::Unknown);
        assert_eq!(Opening::of(&[1]), Opening::Session);
        let whole = attach(7);
        for end in 1..whole.len() {
            assert_eq!(Opening::of(&whole[..end]), Opening::Unknown, "{end} bytes");
        }
        assert_eq!(Opening::of(&whole), Opening::Data(Ticket([7; 16])));
    }

    #[test]
    fn garbage_behind_the_kind_of_an_attach_is_malformed_before_it_is_kept() {
        assert_eq!(Opening::of(&[ATTACH, 0, 1, 0, 0]), Opening::Malformed, "a long body");
        assert_eq!(Opening::of(&[ATTACH, 0, 0, 0, 2, 0xff, 0xff]), Opening::Malformed);
        assert_eq!(Opening::of(&[ATTACH; 200]), Opening::Malformed);
        let short = [&[ATTACH, 0, 0, 0, 17, 0x81, 0x4f][..], &[1; 15]].concat();
        assert_eq!(Opening::of(&short), Opening::Malformed, "a ticket of 15 bytes");
    }

    #[test]
    fn a_ticket_is_good_once_and_for_its_time() {
        let mut tickets = Tickets::default();
        tickets.issue(Micros(0), Ticket([1; 16]), "one");
        tickets.issue(Micros(5), Ticket([2; 16]), "two");
        assert_eq!(tickets.redeem(Micros(6), &Ticket([3; 16])), None, "never issued");
        assert_eq!(tickets.redeem(Micros(6), &Ticket([1; 16])), Some("one"));
        assert_eq!(tickets.redeem(Micros(6), &Ticket([1; 16])), None, "used");
        assert_eq!(tickets.redeem(TICKET_LIFE.plus(Micros(5)), &Ticket([2; 16])), None, "too late");
        assert!(tickets.open.is_empty() && tickets.order.is_empty());
    }

    #[test]
    fn open_tickets_are_bounded() {
        let mut tickets = Tickets::default();
        for number in 0..OPEN_TICKETS as u128 + 10 {
            tickets.issue(Micros(0), Ticket(number.to_be_bytes()), number);
        }
        assert_eq!((tickets.open.len(), tickets.order.len()), (OPEN_TICKETS, OPEN_TICKETS));
        assert_eq!(tickets.redeem(Micros(1), &Ticket(9_u128.to_be_bytes())), None);
        assert_eq!(tickets.redeem(Micros(1), &Ticket(10_u128.to_be_bytes())), Some(10));
    }

    #[test]
    fn tickets_stay_out_of_logs() {
        assert_eq!(format!("{:?}", Attach { ticket: Ticket([0x55; 16]) }), "Attach { ticket: Ticket(..) }");
    }
}
