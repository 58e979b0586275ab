use bytes::{Bytes, BytesMut};
use thiserror::Error;

use crate::answer::failure;
use crate::class::ProductClass;
use crate::product::{ProductInfo, Signature};
use crate::wire::record::{Piece, Records};
use crate::wire::rpc::{CallHead, Head, RPC_VERSION, Status};
use crate::wire::versions::*;
use crate::wire::xdr::{Malformed, Reader, Xdr, padding};

/// Parses a peer's messages. The bytes of products pass through it; everything else is small and is held
/// until it is complete.
#[derive(Debug, Default)]
pub(crate) struct Listener {
    records: Records,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The beginning of an incomplete message.
    Head(Bytes),
    /// Bytes of a product follow.
    Data { left: usize },
    /// The rest of a record is ignored; it can't be more than padding.
    Rest { room: usize },
    /// The end of the data has to be reported; the record may end with it.
    End { record_ends: bool, room: usize },
}

/// A message of the peer, or a part of one.
#[derive(Debug)]
pub(crate) enum Heard {
    Call {
        xid: u32,
        version: Version,
        call: Call,
    },
    /// The bytes of a product or block follow.
    Begin {
        xid: u32,
        version: Version,
        data: Data,
    },
    Bytes(Bytes),
    /// The product or block is complete.
    End,
    Reply {
        xid: u32,
        status: Status,
        result: Reader,
    },
    /// A call that can't be carried out, with the record of the reply; `malformed` is the fault of its arguments, if
    /// they can't be decoded.
    Refused {
        answer: Bytes,
        malformed: Option<Malformed>,
    },
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Null,
    /// Version 5 has no `max_hereis`.
    FeedMe {
        class: ProductClass,
        max_hereis: Option<u32>,
    },
    Hiya(ProductClass),
    Notification(ProductInfo),
    NotifyMe(ProductClass),
    ComingSoon {
        info: ProductInfo,
    },
    IsAlive {
        id: u32,
    },
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Data {
    Product(ProductInfo),
    Block { signature: Signature, number: u32, bytes: u32 },
}

/// Violations after which a connection can't be parsed any further.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(crate) enum Garbled {
    #[error("{0}")]
    Message(#[from] Malformed),
    #[error("a message longer than {MESSAGE_LIMIT_BYTES} bytes")]
    Long,
    #[error("a product ends before its last byte")]
    CutShort,
    #[error("more than padding follows the last byte of a product")]
    Surplus,
    #[error("it goes on without waiting for an answer")]
    Flood,
}

impl Listener {
    pub(crate) fn push(&mut self, bytes: Bytes) -> Result<(), Garbled> {
        if self.records.waiting_bytes().saturating_add(bytes.len()) > WAITING_LIMIT_BYTES.max(bytes.len()) {
            return Err(Garbled::Flood);
        }
        self.records.push(bytes);
        Ok(())
    }

    pub(crate) fn next(&mut self) -> Result<Option<Heard>, Garbled> {
        loop {
            if let State::End { record_ends, room } = self.state {
                self.state = if record_ends { State::default() } else { State::Rest { room } };
                return Ok(Some(Heard::End));
            }
            let Some(piece) = self.records.next() else {
                return Ok(None);
            };
            if let Some(heard) = self.hear(piece)? {
                return Ok(Some(heard));
            }
        }
    }

    fn hear(&mut self, piece: Piece) -> Result<Option<Heard>, Garbled> {
        match &mut self.state {
            State::Head(begun) => {
                let begun = joined(std::mem::take(begun), &piece.bytes);
                self.head(begun, piece.ends)
            }
            State::Data { left } => {
                let left = *left;
                self.data(piece.bytes, left, piece.ends)
            }
            State::Rest { room } | State::End { room, .. } => {
                let room = room.checked_sub(piece.bytes.len()).ok_or(Garbled::Surplus)?;
                self.state = if piece.ends { State::default() } else { State::Rest { room } };
                Ok(None)
            }
        }
    }

    /// Collects a message until its head is complete; the bytes after the head of a call with data are data.
    fn head(&mut self, begun: Bytes, ends: bool) -> Result<Option<Heard>, Garbled> {
        match data_begins(&begun) {
            Ok(Some((head, version, data, rest))) => {
                self.state = State::Data { left: data.bytes() };
                // The bytes after the head are parsed next, as if they had arrived later.
                self.records.put_back(Piece { bytes: rest, ends });
                return Ok(Some(Heard::Begin { xid: head.xid, version, data }));
            }
            Err(Malformed::Short) | Ok(None) => {}
            Err(malformed) => return Err(malformed.into()),
        }
        if ends {
            return message(begun).map(Some);
        }
        if begun.len() > MESSAGE_LIMIT_BYTES {
            return Err(Garbled::Long);
        }
        self.state = State::Head(begun);
        Ok(None)
    }

    fn data(&mut self, mut bytes: Bytes, left: usize, ends: bool) -> Result<Option<Heard>, Garbled> {
        let surplus = bytes.len().saturating_sub(left);
        let room = MOST_PADDING_BYTES.checked_sub(surplus).ok_or(Garbled::Surplus)?;
        bytes.truncate(bytes.len().saturating_sub(surplus));
        let left = left.saturating_sub(bytes.len());
        self.state = match (left, ends) {
            (0, record_ends) => State::End { record_ends, room },
            (_, true) => return Err(Garbled::CutShort),
            (left, false) => State::Data { left },
        };
        Ok((!bytes.is_empty()).then_some(Heard::Bytes(bytes)))
    }
}

impl Default for State {
    fn default() -> Self {
        Self::Head(Bytes::new())
    }
}

impl Data {
    fn bytes(&self) -> usize {
        match self {
            Self::Product(info) => info.size as usize,
            Self::Block { bytes, .. } => *bytes as usize,
        }
    }
}

/// The complete head of a call with data, and the bytes after it; none for any other message.
fn data_begins(bytes: &Bytes) -> Result<Option<(CallHead, Version, Data, Bytes)>, Malformed> {
    let mut reader = Reader::new(bytes.clone());
    let Head::Call(head) = Head::decode(&mut reader)? else {
        return Ok(None);
    };
    let (Ok(version), HEREIS | BLKDATA) = (version_of(&head), head.procedure) else {
        return Ok(None);
    };
    let data = if head.procedure == HEREIS {
        Data::Product(ProductInfo::decode(&mut reader)?)
    } else {
        let signature = Signature(reader.array()?);
        Data::Block { signature, number: reader.u32()?, bytes: reader.u32()? }
    };
    Ok(Some((head, version, data, reader.rest())))
}

/// Parses a complete message without data.
fn message(bytes: Bytes) -> Result<Heard, Garbled> {
    let mut reader = Reader::new(bytes);
    let head = match Head::decode(&mut reader)? {
        Head::Reply { xid, status } => return Ok(Heard::Reply { xid, status, result: reader }),
        Head::Call(head) => head,
    };
    let refused = |status| Heard::Refused { answer: failure(head.xid, status), malformed: None };
    let version = match version_of(&head) {
        Ok(version) => version,
        Err(status) => return Ok(refused(status)),
    };
    match arguments(&head, version, &mut reader) {
        Ok(Some(call)) => Ok(Heard::Call { xid: head.xid, version, call }),
        Ok(None) => Ok(refused(Status::ProcedureUnavailable)),
        // A call without a reply can't be refused either.
        Err(malformed) if is_one_way(&head) => Err(malformed.into()),
        Err(malformed) => {
            let answer = failure(head.xid, Status::GarbageArguments);
            Ok(Heard::Refused { answer, malformed: Some(malformed) })
        }
    }
}

fn version_of(head: &CallHead) -> Result<Version, Status> {
    if head.rpc_version != RPC_VERSION {
        return Err(Status::RpcMismatch { low: RPC_VERSION, high: RPC_VERSION });
    }
    if head.program != PROGRAM {
        return Err(Status::ProgramUnavailable);
    }
    let (low, high) = (Version::Five.number(), Version::Six.number());
    Version::of(head.version).ok_or(Status::ProgramMismatch { low, high })
}

fn arguments(head: &CallHead, version: Version, reader: &mut Reader) -> Result<Option<Call>, Malformed> {
    Ok(Some(match head.procedure {
        NULLPROC => Call::Null,
        FEEDME => {
            let class = ProductClass::decode(reader)?;
            let max_hereis = if version == Version::Six { Some(reader.u32()?) } else { None };
            Call::FeedMe { class, max_hereis }
        }
        HIYA => Call::Hiya(ProductClass::decode(reader)?),
        NOTIFICATION => Call::Notification(ProductInfo::decode(reader)?),
        NOTIFYME => Call::NotifyMe(ProductClass::decode(reader)?),
        COMINGSOON => {
            let info = ProductInfo::decode(reader)?;
            reader.u32()?;
            Call::ComingSoon { info }
        }
        IS_ALIVE if version == Version::Six => Call::IsAlive { id: reader.u32()? },
        HEREIS | BLKDATA => return Err(Malformed::Short),
        _ => return Ok(None),
    }))
}

fn is_one_way(head: &CallHead) -> bool {
    head.version == Version::Six.number() && matches!(head.procedure, HEREIS | NOTIFICATION | BLKDATA)
}

fn joined(begun: Bytes, more: &Bytes) -> Bytes {
    if begun.is_empty() {
        return more.clone();
    }
    let mut both = BytesMut::from(begun);
    both.extend_from_slice(more);
    both.freeze()
}

/// The zeros after a product's last byte.
pub(crate) fn padding_of(size: u32) -> Bytes {
    Bytes::from_static(&[0; 4]).slice(..padding(size as usize))
}

/// Size limit of a message without data: a class of 32 patterns of 255 bytes, with credentials, has less than
/// 10,000 bytes.
pub(crate) const MESSAGE_LIMIT_BYTES: usize = 16 << 10;

/// XDR pads the last word.
const MOST_PADDING_BYTES: usize = 3;

/// Limit of unparsed input, which grows while a decision is pending: twice the size of a driver's read.
pub(crate) const WAITING_LIMIT_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests;
