//! Replies to calls.

use bytes::{BufMut, Bytes, BytesMut};

use crate::class::ProductClass;
use crate::wire::record::record;
use crate::wire::rpc::{Status, reply};
use crate::wire::versions::Version;
use crate::wire::xdr::{Malformed, Reader, Xdr};

/// The answer to FEEDME and NOTIFYME.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FeedAnswer {
    Yes {
        id: u32,
    },
    BadPattern,
    /// Request this class instead; an empty class is a refusal.
    Reclass(ProductClass),
}

/// The answer to HIYA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PushAnswer {
    Yes {
        max_hereis: u32,
    },
    No,
    /// Send only this.
    Reclass {
        class: ProductClass,
        max_hereis: u32,
    },
}

/// The record of a successful reply with a procedure's result.
pub(crate) fn answer(xid: u32, result: &[u8]) -> Bytes {
    record(&reply(xid, Status::Success, result))
}

/// The record of a reply with a failure.
pub(crate) fn failure(xid: u32, status: Status) -> Bytes {
    record(&reply(xid, status, &[]))
}

/// A successful reply with one number.
pub(crate) fn number(xid: u32, number: u32) -> Bytes {
    answer(xid, &number.to_be_bytes())
}

impl FeedAnswer {
    pub(crate) fn encode(&self, version: Version) -> BytesMut {
        let mut out = BytesMut::new();
        match self {
            Self::Yes { id } => {
                out.put_u32(OK);
                if version == Version::Six {
                    out.put_u32(*id);
                }
            }
            Self::BadPattern => out.put_u32(BAD_PATTERN),
            Self::Reclass(class) => {
                out.put_u32(RECLASS);
                class.encode(&mut out);
            }
        }
        out
    }

    pub(crate) fn decode(reader: &mut Reader, version: Version) -> Result<Self, Malformed> {
        match reader.u32()? {
            OK if version == Version::Five => Ok(Self::Yes { id: 0 }),
            OK => Ok(Self::Yes { id: reader.u32()? }),
            BAD_PATTERN => Ok(Self::BadPattern),
            RECLASS => ProductClass::decode(reader).map(Self::Reclass),
            value => Err(Malformed::Unknown { what: "an answer to a request", value }),
        }
    }
}

impl PushAnswer {
    pub(crate) fn encode(&self, version: Version) -> BytesMut {
        let mut out = BytesMut::new();
        match self {
            Self::Yes { max_hereis } => {
                out.put_u32(OK);
                put_for_six(&mut out, *max_hereis, version);
            }
            Self::No => out.put_u32(DONT_SEND),
            Self::Reclass { class, max_hereis } => {
                out.put_u32(RECLASS);
                class.encode(&mut out);
                put_for_six(&mut out, *max_hereis, version);
            }
        }
        out
    }

    pub(crate) fn decode(reader: &mut Reader) -> Result<Self, Malformed> {
        match reader.u32()? {
            OK => Ok(Self::Yes { max_hereis: reader.u32()? }),
            DONT_SEND => Ok(Self::No),
            RECLASS => {
                let class = ProductClass::decode(reader)?;
                Ok(Self::Reclass { class, max_hereis: reader.u32()? })
            }
            value => Err(Malformed::Unknown { what: "an answer to an offer", value }),
        }
    }
}

fn put_for_six(out: &mut BytesMut, number: u32, version: Version) {
    if version == Version::Six {
        out.put_u32(number);
    }
}

pub(crate) const OK: u32 = 0;
pub(crate) const DONT_SEND: u32 = 3;
pub(crate) const RECLASS: u32 = 7;
const BAD_PATTERN: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FeedType, ProductSpec, Timestamp};

    fn class() -> ProductClass {
        let specs = vec![ProductSpec::new(FeedType::ANY, "^S").unwrap()];
        ProductClass { from: Timestamp::ZERO, to: Timestamp::END_OF_TIME, specs }
    }

    #[test]
    fn answers_are_read_as_written() {
        for answer in [FeedAnswer::Yes { id: 77 }, FeedAnswer::BadPattern, FeedAnswer::Reclass(class())] {
            let mut reader = Reader::new(answer.encode(Version::Six).freeze());
            assert_eq!(FeedAnswer::decode(&mut reader, Version::Six), Ok(answer));
            assert!(reader.rest().is_empty());
        }
        for answer in [
            PushAnswer::Yes { max_hereis: 9 },
            PushAnswer::No,
            PushAnswer::Reclass { class: class(), max_hereis: 1 },
        ] {
            let mut reader = Reader::new(answer.encode(Version::Six).freeze());
            assert_eq!(PushAnswer::decode(&mut reader), Ok(answer));
            assert!(reader.rest().is_empty());
        }
    }

    #[test]
    fn version_five_gives_no_number_of_the_serving_process() {
        assert_eq!(&FeedAnswer::Yes { id: 77 }.encode(Version::Five)[..], [0, 0, 0, 0]);
    }
}
