//! ONC RPC (RFC 5531) as far as LDM uses it: no authentication; the credentials of a call are skipped.

use bytes::{BufMut, Bytes, BytesMut};

use crate::wire::versions::PROGRAM;
use crate::wire::xdr::{Malformed, Reader};

/// The head of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    Call(CallHead),
    Reply { xid: u32, status: Status },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallHead {
    pub(crate) xid: u32,
    pub(crate) rpc_version: u32,
    pub(crate) program: u32,
    pub(crate) version: u32,
    pub(crate) procedure: u32,
}

/// The result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// The result follows.
    Success,
    ProgramUnavailable,
    ProgramMismatch {
        low: u32,
        high: u32,
    },
    ProcedureUnavailable,
    GarbageArguments,
    SystemError,
    RpcMismatch {
        low: u32,
        high: u32,
    },
    AuthError(u32),
}

impl Head {
    pub(crate) fn decode(reader: &mut Reader) -> Result<Self, Malformed> {
        let xid = reader.u32()?;
        match reader.u32()? {
            CALL => Ok(Self::Call(CallHead::decode(xid, reader)?)),
            REPLY => Ok(Self::Reply { xid, status: Status::decode(reader)? }),
            value => Err(Malformed::Unknown { what: "call or reply", value }),
        }
    }
}

impl CallHead {
    fn decode(xid: u32, reader: &mut Reader) -> Result<Self, Malformed> {
        let (rpc_version, program) = (reader.u32()?, reader.u32()?);
        let (version, procedure) = (reader.u32()?, reader.u32()?);
        skip_auth(reader)?;
        skip_auth(reader)?;
        Ok(Self { xid, rpc_version, program, version, procedure })
    }
}

impl Status {
    fn decode(reader: &mut Reader) -> Result<Self, Malformed> {
        match reader.u32()? {
            ACCEPTED => {
                skip_auth(reader)?;
                Self::decode_accepted(reader)
            }
            DENIED => match reader.u32()? {
                0 => Ok(Self::RpcMismatch { low: reader.u32()?, high: reader.u32()? }),
                1 => Ok(Self::AuthError(reader.u32()?)),
                value => Err(Malformed::Unknown { what: "a reason of denial", value }),
            },
            value => Err(Malformed::Unknown { what: "accepted or denied", value }),
        }
    }

    fn decode_accepted(reader: &mut Reader) -> Result<Self, Malformed> {
        match reader.u32()? {
            0 => Ok(Self::Success),
            1 => Ok(Self::ProgramUnavailable),
            2 => Ok(Self::ProgramMismatch { low: reader.u32()?, high: reader.u32()? }),
            3 => Ok(Self::ProcedureUnavailable),
            4 => Ok(Self::GarbageArguments),
            5 => Ok(Self::SystemError),
            value => Err(Malformed::Unknown { what: "a reply's status", value }),
        }
    }

    fn encode(self, out: &mut BytesMut) {
        match self {
            Self::RpcMismatch { low, high } => put_words(out, &[DENIED, 0, low, high]),
            Self::AuthError(reason) => put_words(out, &[DENIED, 1, reason]),
            Self::Success => put_words(out, &[ACCEPTED, 0, 0, 0]),
            Self::ProgramUnavailable => put_words(out, &[ACCEPTED, 0, 0, 1]),
            Self::ProgramMismatch { low, high } => put_words(out, &[ACCEPTED, 0, 0, 2, low, high]),
            Self::ProcedureUnavailable => put_words(out, &[ACCEPTED, 0, 0, 3]),
            Self::GarbageArguments => put_words(out, &[ACCEPTED, 0, 0, 4]),
            Self::SystemError => put_words(out, &[ACCEPTED, 0, 0, 5]),
        }
    }
}

/// Encodes the head of a call; its arguments follow.
pub(crate) fn call(xid: u32, version: u32, procedure: u32) -> BytesMut {
    let mut out = BytesMut::with_capacity(CALL_BYTES);
    put_words(&mut out, &[xid, CALL, RPC_VERSION, PROGRAM, version, procedure, 0, 0, 0, 0]);
    out
}

/// A reply with its result.
pub(crate) fn reply(xid: u32, status: Status, result: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(CALL_BYTES.saturating_add(result.len()));
    put_words(&mut out, &[xid, REPLY]);
    status.encode(&mut out);
    out.put_slice(result);
    out.freeze()
}

fn skip_auth(reader: &mut Reader) -> Result<(), Malformed> {
    reader.u32()?;
    reader.opaque("credentials", MOST_AUTH_BYTES).map(drop)
}

fn put_words(out: &mut BytesMut, words: &[u32]) {
    words.iter().for_each(|word| out.put_u32(*word));
}

pub(crate) const RPC_VERSION: u32 = 2;

const CALL: u32 = 0;
const REPLY: u32 = 1;
const ACCEPTED: u32 = 0;
const DENIED: u32 = 1;
const CALL_BYTES: usize = 40;

/// Size limit of a credentials body (RFC 5531).
const MOST_AUTH_BYTES: u32 = 400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_of_every_status_are_read_as_written() {
        for status in [
            Status::Success,
            Status::ProgramUnavailable,
            Status::ProgramMismatch { low: 5, high: 6 },
            Status::ProcedureUnavailable,
            Status::GarbageArguments,
            Status::SystemError,
            Status::RpcMismatch { low: 2, high: 2 },
            Status::AuthError(5),
        ] {
            let mut reader = Reader::new(reply(9, status, &[1, 2, 3, 4]));
            assert_eq!(Head::decode(&mut reader), Ok(Head::Reply { xid: 9, status }));
            assert_eq!(reader.rest(), &[1, 2, 3, 4][..]);
        }
    }

    #[test]
    fn credentials_of_a_call_are_stepped_over_within_bounds() {
        let mut bytes = BytesMut::new();
        put_words(&mut bytes, &[7, CALL, 2, PROGRAM, 6, 0, 1, 4, 0xdead_beef, 0, 0]);
        let head = Head::decode(&mut Reader::new(bytes.clone().freeze())).unwrap();
        assert!(matches!(
            head,
            Head::Call(CallHead { xid: 7, program: PROGRAM, version: 6, procedure: 0, .. })
        ));
        bytes[31] = 0xff;
        bytes[30] = 0xff;
        assert!(matches!(
            Head::decode(&mut Reader::new(bytes.freeze())),
            Err(Malformed::TooLong { what: "credentials", .. })
        ));
    }
}
