use std::fmt;
use std::str::FromStr;

use bytes::{BufMut, BytesMut};

use crate::wire::xdr::{Malformed, Reader, Xdr, put_opaque};
use crate::{FeedType, Text, Timestamp};

/// A product's identifier.
pub type Ident = Text<255>;

/// The host that created a product, and the last hop.
pub type LdmOrigin = Text<64>;

/// An extended regular expression as on the wire.
pub type PatternText = Text<255>;

/// Identifies a product's content: normally the MD5 of its bytes, else of its identifier. It is LDM's only
/// duplicate key.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signature(pub [u8; 16]);

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Signature {
    type Err = ();

    /// From 32 hexadecimal digits.
    fn from_str(text: &str) -> Result<Self, ()> {
        if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(());
        }
        u128::from_str_radix(text, 16).map(|number| Self(number.to_be_bytes())).map_err(|_| ())
    }
}

/// The metadata of a product.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProductInfo {
    /// Creation time at the first LDM. Never rewritten.
    pub arrival: Timestamp,
    /// The duplicate key.
    pub signature: Signature,
    /// The host that created it, and the last hop.
    pub origin: LdmOrigin,
    /// The feed; normally one bit.
    pub feed: FeedType,
    /// The ingester's sequence number.
    pub sequence: u32,
    /// The identifier, which patterns match.
    pub ident: Ident,
    /// Size in bytes.
    pub size: u32,
}

impl ProductInfo {
    /// True for a product of zeros: old upstreams send it to flush the connection, and it has no meaning.
    pub fn is_nil(&self) -> bool {
        *self == Self::default()
    }

    /// The same product as received from `upstream`: the origin names its creator and the last hop, truncated to fit.
    pub fn through(mut self, upstream: &str) -> Self {
        self.origin = origin_through(self.origin.as_bytes(), upstream);
        self
    }
}

/// The origin at a host with an upstream of this name: the creator and the last hop, truncated to fit.
pub fn origin_through(origin: &[u8], upstream: &str) -> LdmOrigin {
    let creator = match origin.windows(VIA.len()).position(|window| window == VIA) {
        Some(end) => origin.get(..end).unwrap_or(origin),
        None => origin,
    };
    LdmOrigin::cut([creator, VIA, upstream.as_bytes()].concat())
}

impl Xdr for ProductInfo {
    fn encode(&self, out: &mut BytesMut) {
        self.arrival.encode(out);
        out.put_slice(&self.signature.0);
        put_opaque(out, self.origin.as_bytes());
        out.put_u32(self.feed.bits());
        out.put_u32(self.sequence);
        put_opaque(out, self.ident.as_bytes());
        out.put_u32(self.size);
    }

    fn decode(reader: &mut Reader) -> Result<Self, Malformed> {
        Ok(Self {
            arrival: sound(Timestamp::decode(reader)?)?,
            signature: Signature(reader.array()?),
            origin: reader.text("an origin")?,
            feed: FeedType::from_bits(reader.u32()?),
            sequence: reader.u32()?,
            ident: reader.text("an identifier")?,
            size: reader.u32()?,
        })
    }
}

/// Refuses an unsound stamp of a product, as it is used in calculations. Stamps of classes are only compared, so any
/// value is valid there.
fn sound(stamp: Timestamp) -> Result<Timestamp, Malformed> {
    let Timestamp { seconds, micros } = stamp;
    if stamp.is_sound() { Ok(stamp) } else { Err(Malformed::Moment { seconds, micros }) }
}

impl Xdr for Timestamp {
    fn encode(&self, out: &mut BytesMut) {
        out.put_i32(self.seconds);
        out.put_i32(self.micros);
    }

    fn decode(reader: &mut Reader) -> Result<Self, Malformed> {
        Ok(Self { seconds: reader.i32()?, micros: reader.i32()? })
    }
}

/// Separator of creator and last hop.
const VIA: &[u8] = b"_v_";

#[cfg(test)]
mod tests {
    use super::*;

    fn from(origin: &str) -> ProductInfo {
        ProductInfo { origin: LdmOrigin::new(origin.to_owned()).unwrap(), ..ProductInfo::default() }
    }

    #[test]
    fn an_origin_names_creator_and_last_hop() {
        let hop = |origin: &str| from(origin).through("idd.unl.edu").origin.to_string();
        assert_eq!(hop("nws.gov"), "nws.gov_v_idd.unl.edu");
        assert_eq!(hop("nws.gov_v_relay.ucar.edu"), "nws.gov_v_idd.unl.edu");
        assert_eq!(hop(&"x".repeat(64)), "x".repeat(64), "cut to what fits");
    }

    #[test]
    fn signatures_are_thirty_two_digits() {
        let text = "0123456789abcdef0123456789abcdef";
        assert_eq!(text.parse::<Signature>().unwrap().to_string(), text);
        for bad in ["", "0123", "+123456789abcdef0123456789abcdef", "g123456789abcdef0123456789abcdef"] {
            assert!(bad.parse::<Signature>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_product_of_no_clock_is_malformed() {
        for (seconds, micros) in [(-1, 0), (5, -1), (5, 1_000_000), (i32::MIN, i32::MIN)] {
            let info = ProductInfo { arrival: Timestamp { seconds, micros }, ..ProductInfo::default() };
            let mut out = BytesMut::new();
            info.encode(&mut out);
            let read = ProductInfo::decode(&mut Reader::new(out.freeze()));
            assert_eq!(read, Err(Malformed::Moment { seconds, micros }));
        }
    }

    #[test]
    fn only_what_is_all_zero_is_nil() {
        assert!(ProductInfo::default().is_nil());
        assert!(!from("a").is_nil());
        assert!(!ProductInfo { sequence: 1, ..ProductInfo::default() }.is_nil());
    }
}
