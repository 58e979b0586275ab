use bytes::{Buf, BufMut, Bytes, BytesMut};
use downburst_fanout::SLICE_BYTES;
use downburst_model::LegId;
use thiserror::Error;

use crate::train::{Around, Head, TRAIN_LIMIT_BYTES};
use crate::{
    Attach, Attached, CircuitEnd, CircuitHeard, CircuitOffer, CircuitProbe, CircuitProbed, CircuitSet,
    CircuitState, ClockReply, ClockRequest, Covered, CredentialKept, CredentialOffered, CredentialShown,
    CredentialWanted, Datagrams, Expired, FeedStart, Filed, Forged, Frontier, Handling, HeartbeatOut, Hello,
    HostReading, KeyTaken, Late, LegJoin, LegJoined, LegLeave, LegLeft, Mark, Marked, Nak, NextKey, Nodes,
    OpenStream, PacketsGone, PathProbe, PathProbed, ProductBegin, Receipts, Referral, ReferralEnded, Refused,
    RelayLeg, RelayLegEnd, RelayLegFailed, RelayLegOpen, RelayReport, ResentBegin, ResentEnded, ResentFailed,
    SiblingGrant, SiblingPort, SiblingTerms, SiblingWithdrawn, SiteClock, StreamEnded, Subscriptions, Taken,
    Train, Want, Ways, Welcome, packed, train,
};

/// The content of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Message(Message),
    Slice { transfer: u32, offset: u64, bytes: Bytes },
    Repair { leg: LegId, leg_epoch: u64, packet: u64, payload: Bytes },
    Train(Train, Around),
    Receipts(Receipts),
    Datagrams(Datagrams),
}

macro_rules! messages {
    ($($kind:literal => $name:ident,)*) => {
        /// A CBOR message of the session.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(crate) enum Message {
            $($name($name),)*
        }

        /// Every kind of frame and its name: the tests check their frame generators against this list, so that
        /// none is missing.
        pub const KINDS: &[(u8, &str)] = &[
            $(($kind, stringify!($name)),)*
            (SLICE, "slice"), (REPAIR, "repair"), (TRAIN, "train"), (RECEIPTS, "receipts"),
            (DATAGRAMS, "datagrams"),
        ];

        impl Message {
            /// The message as a frame.
            pub(crate) fn encode(&self) -> Bytes {
                match self {
                    $(Self::$name(body) => framed($kind, &minicbor::to_vec(body).unwrap_or_default()),)*
                }
            }

            fn decode(kind: u8, body: &[u8]) -> Result<Option<Self>, FrameError> {
                match kind {
                    $($kind => minicbor::decode(body)
                        .map(|message| Some(Self::$name(message)))
                        .map_err(|error| FrameError::Body { kind, reason: error.to_string() }),)*
                    _ => Ok(None),
                }
            }
        }

        $(impl From<$name> for Message {
            fn from(message: $name) -> Self {
                Self::$name(message)
            }
        })*
    };
}

messages! {
    1 => Hello,
    2 => Welcome,
    3 => Refused,
    4 => Subscriptions,
    5 => FeedStart,
    6 => ProductBegin,
    7 => Covered,
    8 => Expired,
    9 => LegJoin,
    10 => LegJoined,
    11 => LegLeave,
    12 => LegLeft,
    13 => Nak,
    14 => PacketsGone,
    15 => Want,
    17 => ClockRequest,
    18 => ClockReply,
    19 => Frontier,
    20 => ResentBegin,
    21 => ResentEnded,
    22 => ResentFailed,
    23 => Handling,
    24 => Late,
    25 => NextKey,
    26 => KeyTaken,
    27 => CircuitOffer,
    28 => CircuitEnd,
    29 => CircuitState,
    30 => Forged,
    40 => Mark,
    41 => Marked,
    42 => OpenStream,
    43 => Attach,
    44 => Attached,
    45 => StreamEnded,
    46 => Taken,
    47 => HeartbeatOut,
    48 => CredentialWanted,
    49 => CredentialOffered,
    50 => CredentialKept,
    51 => CredentialShown,
    52 => Nodes,
    53 => Filed,
    54 => RelayLeg,
    55 => RelayLegEnd,
    56 => RelayLegOpen,
    57 => RelayLegFailed,
    60 => Ways,
    61 => RelayReport,
    62 => CircuitHeard,
    63 => CircuitProbe,
    64 => CircuitProbed,
    65 => CircuitSet,
    66 => PathProbe,
    67 => PathProbed,
    68 => SiteClock,
    70 => HostReading,
    71 => SiblingPort,
    72 => SiblingTerms,
    73 => SiblingGrant,
    74 => SiblingWithdrawn,
    75 => Referral,
    76 => ReferralEnded,
}

/// The reason for which a stream of frames can't be read any further. The peer is at fault.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum FrameError {
    #[error("the body of a frame of kind {kind} can't be read: {reason}")]
    Body { kind: u8, reason: String },
    #[error("a frame of kind {kind} has {bytes} bytes; the limit is {limit}")]
    TooLong { kind: u8, bytes: usize, limit: usize },
    #[error("a frame of kind {kind} is too short")]
    TooShort { kind: u8 },
}

/// Splits a byte stream into frames, whatever its chunks. Frames of an unknown kind are skipped.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// The latest bytes, shared with the driver's buffer.
    whole: Bytes,
    /// The beginning of an incomplete frame; while there is one, all bytes pass through this buffer.
    begun: BytesMut,
}

impl Decoder {
    /// Takes the next bytes of the stream. Whole frames within them are not copied.
    pub(crate) fn push(&mut self, bytes: Bytes) {
        if self.begun.is_empty() && self.whole.is_empty() {
            self.whole = bytes;
        } else {
            self.begun.extend_from_slice(&std::mem::take(&mut self.whole));
            self.begun.extend_from_slice(&bytes);
        }
    }

    /// The next whole frame. After an error the stream is lost.
    pub(crate) fn next(&mut self) -> Result<Option<Frame>, FrameError> {
        while let Some((kind, body)) = self.next_raw()? {
            if let Some(frame) = decode(kind, body)? {
                return Ok(Some(frame));
            }
        }
        Ok(None)
    }

    /// Drops all buffered bytes.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    fn next_raw(&mut self) -> Result<Option<(u8, Bytes)>, FrameError> {
        if self.begun.is_empty() {
            let Some((kind, bytes)) = frame_at(&self.whole)? else {
                self.begun.extend_from_slice(&std::mem::take(&mut self.whole));
                return Ok(None);
            };
            self.whole.advance(HEADER_BYTES);
            return Ok(Some((kind, self.whole.split_to(bytes))));
        }
        let Some((kind, bytes)) = frame_at(&self.begun)? else {
            return Ok(None);
        };
        self.begun.advance(HEADER_BYTES);
        Ok(Some((kind, self.begun.split_to(bytes).freeze())))
    }
}

/// The number of leading bytes that form whole frames; `bytes` starts at the beginning of a frame. A driver
/// that passes whole frames saves the session a copy of them.
pub fn whole_frames(bytes: &[u8]) -> usize {
    let mut whole = 0_usize;
    while let Some(Ok(Some((_, body)))) = bytes.get(whole..).map(frame_at) {
        whole = whole.saturating_add(HEADER_BYTES).saturating_add(body);
    }
    match bytes.get(whole..).map(frame_at) {
        // The session reports the error.
        Some(Err(_)) => bytes.len(),
        _ => whole,
    }
}

/// Kind and body length of the frame at the beginning of these bytes, once it is whole.
fn frame_at(mut bytes: &[u8]) -> Result<Option<(u8, usize)>, FrameError> {
    let (Ok(kind), Ok(length)) = (bytes.try_get_u8(), bytes.try_get_u32()) else {
        return Ok(None);
    };
    let (body, limit) = (usize::try_from(length).unwrap_or(usize::MAX), body_limit(kind));
    if body > limit {
        return Err(FrameError::TooLong { kind, bytes: body, limit });
    }
    Ok((bytes.len() >= body).then_some((kind, body)))
}

/// The head of a slice frame; its bytes follow unchanged.
pub(crate) fn slice_header(transfer: u32, offset: u64, bytes: usize) -> Bytes {
    let mut frame = BytesMut::with_capacity(HEADER_BYTES + SLICE_FIELDS_BYTES);
    put_header(&mut frame, SLICE, SLICE_FIELDS_BYTES.saturating_add(bytes));
    frame.put_u32(transfer);
    frame.put_u64(offset);
    frame.freeze()
}

/// A packet of a multicast leg, in clear, for one site.
pub(crate) fn repair_frame(leg: LegId, leg_epoch: u64, packet: u64, payload: &[u8]) -> Bytes {
    let body = REPAIR_FIELDS_BYTES.saturating_add(payload.len());
    let mut frame = BytesMut::with_capacity(HEADER_BYTES.saturating_add(body));
    put_header(&mut frame, REPAIR, body);
    frame.put_u32(leg.0);
    frame.put_u64(leg_epoch);
    frame.put_u64(packet);
    frame.put_slice(payload);
    frame.freeze()
}

/// The frame of a train up to its cars, which take `cars_bytes`.
pub(crate) fn train_header(head: &Head, cars_bytes: usize) -> Bytes {
    let mut frame = BytesMut::with_capacity(TRAIN_HEAD_BYTES);
    put_header(&mut frame, TRAIN, 0);
    head.encode(&mut frame);
    let body = frame.len().saturating_sub(HEADER_BYTES).saturating_add(cars_bytes);
    put_length(&mut frame, body);
    frame.freeze()
}

/// The head of a frame of datagrams; its bytes follow unchanged.
pub(crate) fn datagrams_header(datagrams: &Datagrams) -> Bytes {
    let mut frame = BytesMut::with_capacity(HEADER_BYTES + DATAGRAMS_FIELDS_BYTES);
    put_header(&mut frame, DATAGRAMS, DATAGRAMS_FIELDS_BYTES.saturating_add(datagrams.bytes.len()));
    frame.put_u32(datagrams.leg.0);
    frame.put_u16(datagrams.segment_bytes);
    frame.freeze()
}

/// A whole frame of receipts.
pub fn receipts_frame(receipts: &Receipts) -> Bytes {
    let mut frame = BytesMut::with_capacity(RECEIPT_BYTES.saturating_mul(receipts.items.len()));
    put_header(&mut frame, RECEIPTS, 0);
    packed::encode(receipts, &mut frame);
    let body = frame.len().saturating_sub(HEADER_BYTES);
    put_length(&mut frame, body);
    frame.freeze()
}

fn framed(kind: u8, body: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(HEADER_BYTES.saturating_add(body.len()));
    put_header(&mut frame, kind, body.len());
    frame.put_slice(body);
    frame.freeze()
}

fn put_header(frame: &mut BytesMut, kind: u8, body_bytes: usize) {
    frame.put_u8(kind);
    frame.put_u32(u32::try_from(body_bytes).unwrap_or(u32::MAX));
}

/// Writes the length of a body that was appended to its header.
fn put_length(frame: &mut BytesMut, body_bytes: usize) {
    if let Some(length) = frame.get_mut(1..HEADER_BYTES) {
        length.copy_from_slice(&u32::try_from(body_bytes).unwrap_or(u32::MAX).to_be_bytes());
    }
}

fn decode(kind: u8, mut body: Bytes) -> Result<Option<Frame>, FrameError> {
    let short = |_| FrameError::TooShort { kind };
    match kind {
        SLICE => {
            let transfer = body.try_get_u32().map_err(short)?;
            let offset = body.try_get_u64().map_err(short)?;
            Ok(Some(Frame::Slice { transfer, offset, bytes: body }))
        }
        REPAIR => {
            let leg = LegId(body.try_get_u32().map_err(short)?);
            let leg_epoch = body.try_get_u64().map_err(short)?;
            let packet = body.try_get_u64().map_err(short)?;
            Ok(Some(Frame::Repair { leg, leg_epoch, packet, payload: body }))
        }
        TRAIN => {
            let (train, around) = train::decode(&body).ok_or_else(|| unsound(kind))?;
            Ok(Some(Frame::Train(train, around)))
        }
        RECEIPTS => {
            let receipts = packed::decode(&body).ok_or_else(|| unsound(kind))?;
            Ok(Some(Frame::Receipts(receipts)))
        }
        DATAGRAMS => {
            let leg = LegId(body.try_get_u32().map_err(short)?);
            let segment_bytes = body.try_get_u16().map_err(short)?;
            let datagrams = Datagrams { leg, segment_bytes, bytes: body };
            datagrams.is_sound().then_some(Some(Frame::Datagrams(datagrams))).ok_or_else(|| unsound(kind))
        }
        _ => Ok(Message::decode(kind, &body)?.map(Frame::Message)),
    }
}

fn unsound(kind: u8) -> FrameError {
    FrameError::Body { kind, reason: "its fields are cut short or contradict each other".to_owned() }
}

fn body_limit(kind: u8) -> usize {
    match kind {
        SLICE => SLICE_FIELDS_BYTES + SLICE_BYTES,
        REPAIR => REPAIR_FIELDS_BYTES + DATAGRAM_LIMIT_BYTES,
        TRAIN => TRAIN_LIMIT_BYTES,
        DATAGRAMS => DATAGRAMS_FIELDS_BYTES + DATAGRAM_LIMIT_BYTES,
        _ => MESSAGE_LIMIT_BYTES,
    }
}

/// Kind of a slice frame: transfer (4 bytes), offset (8 bytes), bytes of the product.
const SLICE: u8 = 32;

/// Kind of a repair frame: leg (4 bytes), leg epoch (8 bytes), packet number (8 bytes), the packet in clear.
const REPAIR: u8 = 33;

/// Kind of a train frame: the common fields of its products, then each product with its bytes.
const TRAIN: u8 = 34;

/// Kind of a frame of receipts in groups.
const RECEIPTS: u8 = 35;

/// Kind of a frame of datagrams: leg (4 bytes), length of a datagram (2 bytes), the sealed datagrams.
const DATAGRAMS: u8 = 36;

const HEADER_BYTES: usize = 5;
const SLICE_FIELDS_BYTES: usize = 12;
const REPAIR_FIELDS_BYTES: usize = 20;
const DATAGRAMS_FIELDS_BYTES: usize = 6;
const TRAIN_HEAD_BYTES: usize = 192;
const RECEIPT_BYTES: usize = 24;
const DATAGRAM_LIMIT_BYTES: usize = 64 << 10;

/// Maximum length of a message body: the longest legal one, a hello with many ranges, stays below it by
/// construction.
pub(crate) const MESSAGE_LIMIT_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests;
