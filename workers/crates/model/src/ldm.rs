use minicbor::bytes::ByteSlice;
use minicbor::{Decode, Encode, decode, encode};

/// LDM's metadata of a product beyond its identifier, origin and creation time.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct LdmStamp {
    /// LDM's duplicate key: normally the MD5 of the bytes, otherwise the source's choice.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub signature: [u8; 16],
    /// The sequence number of the source.
    #[n(1)]
    pub sequence: u32,
    /// LDM's feed type; 0: not delivered by an LDM.
    #[n(2)]
    pub feed_type: u32,
    /// LDM's identifier, if the product's id can't be the same: it has control characters, a path segment `..`, or
    /// is not UTF-8.
    #[n(3)]
    pub ident: Option<LdmIdent>,
}

impl LdmStamp {
    /// The stamp of a product that no LDM delivered: the MD5 of its bytes.
    pub fn of_content(signature: [u8; 16]) -> Self {
        Self { signature, sequence: 0, feed_type: 0, ident: None }
    }

    /// True if an LDM delivered the product. Only such a stamp is transmitted: the other kind can be computed from
    /// the bytes.
    pub fn is_from_ldm(&self) -> bool {
        self.feed_type != 0
    }
}

/// LDM's original identifier: at most 255 bytes of any value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LdmIdent(Box<[u8]>);

impl LdmIdent {
    /// Takes the bytes; `None` if they are longer than LDM's limit.
    pub fn new(bytes: Vec<u8>) -> Option<Self> {
        (bytes.len() <= LDM_IDENT_BYTES_MAX).then(|| Self(bytes.into()))
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl<C> Encode<C> for LdmIdent {
    fn encode<W: encode::Write>(
        &self,
        e: &mut minicbor::Encoder<W>,
        _: &mut C,
    ) -> Result<(), encode::Error<W::Error>> {
        e.bytes(&self.0)?;
        Ok(())
    }
}

impl<'b, C> Decode<'b, C> for LdmIdent {
    fn decode(d: &mut minicbor::Decoder<'b>, context: &mut C) -> Result<Self, decode::Error> {
        let bytes: &ByteSlice = Decode::decode(d, context)?;
        if bytes.len() > LDM_IDENT_BYTES_MAX {
            return Err(decode::Error::message("LDM's identifiers have at most 255 bytes"));
        }
        Ok(Self(bytes.to_vec().into()))
    }
}

/// The sequence number, for LDM and a site's rules, of a product without one from LDM: the low 31 bits of the
/// number in the hub's log, because some programs read it as a signed integer.
pub fn counted(sequence: u64) -> u32 {
    u32::try_from(sequence & u64::from(u32::MAX >> 1)).unwrap_or_default()
}

/// LDM's limit of identifiers (`ident<255>` in its protocol).
pub const LDM_IDENT_BYTES_MAX: usize = 255;

/// LDM's limit of origins (`origin<64>` in its protocol).
pub const LDM_ORIGIN_BYTES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        Class, Digest, Epoch, FeedName, Hops, Origin, ProductId, ProductInfo, ProductKey, Sequence,
        WallMicros,
    };

    proptest! {
        #[test]
        fn a_stamp_comes_back(
            signature: [u8; 16],
            sequence: u32,
            feed_type: u32,
            ident in prop::option::of(prop::collection::vec(any::<u8>(), 0..256)),
        ) {
            let ident = ident.and_then(LdmIdent::new);
            let stamp = LdmStamp { signature, sequence, feed_type, ident };
            let bytes = minicbor::to_vec(&stamp).unwrap();
            prop_assert!(bytes.len() <= LONGEST_BYTES);
            prop_assert_eq!(minicbor::decode::<LdmStamp>(&bytes).unwrap(), stamp);
        }

        #[test]
        fn any_bytes_are_a_stamp_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = minicbor::decode::<LdmStamp>(&bytes);
        }
    }

    #[test]
    fn what_is_longer_than_an_identifier_of_ldm_is_refused() {
        assert!(LdmIdent::new(vec![0; 255]).is_some() && LdmIdent::new(vec![0; 256]).is_none());
        let long = minicbor::to_vec(minicbor::bytes::ByteVec::from(vec![0; 256])).unwrap();
        assert!(minicbor::decode::<LdmIdent>(&long).is_err());
    }

    /// A product's description in releases without stamps.
    #[derive(Debug, PartialEq, Eq, Decode)]
    struct Former {
        #[n(0)]
        key: ProductKey,
        #[n(1)]
        id: ProductId,
        #[n(7)]
        class: Class,
        #[n(8)]
        hops: Option<Hops>,
    }

    #[test]
    fn a_release_without_stamps_passes_over_them_and_a_product_without_one_costs_nothing() {
        let key = ProductKey { feed: FeedName::parse("F").unwrap(), epoch: Epoch(1), sequence: Sequence(2) };
        let id = ProductId::parse("SAUS").unwrap();
        let plain = ProductInfo {
            key: key.clone(),
            id: id.clone(),
            origin: Origin::parse("host").unwrap(),
            created: WallMicros(3),
            stored: WallMicros(4),
            size: 5,
            digest: Digest([6; 32]),
            class: Class::Grid,
            hops: None,
            ldm: None,
            properties: None,
        };
        let stamp = LdmStamp { signature: [255; 16], sequence: 7_000_000, feed_type: 1 << 30, ident: None };
        let stamped = ProductInfo { ldm: Some(stamp), ..plain.clone() };
        let bytes = [&plain, &stamped].map(|info| minicbor::to_vec(info).unwrap());
        let former = Former { key, id, class: Class::Grid, hops: None };
        assert_eq!(minicbor::decode::<Former>(&bytes[0]).unwrap(), former);
        assert_eq!(minicbor::decode::<Former>(&bytes[1]).unwrap(), former);
        assert_eq!(minicbor::decode::<ProductInfo>(&bytes[1]).unwrap(), stamped);
        assert_eq!(bytes[0].first(), Some(&0x88), "an array of eight fields, as ever");
        assert_eq!(bytes[1].len() - bytes[0].len(), 32, "what docs/performance.md says");
    }

    #[test]
    fn numbers_without_a_source_fit_31_bits() {
        assert_eq!([7, 1 << 31, (1 << 31) + 5].map(counted), [7, 0, 5]);
    }

    /// A map's header, three keys with their values, and the identifier with key and length.
    const LONGEST_BYTES: usize = 1 + (1 + 1 + 16) + (1 + 5) + (1 + 5) + (1 + 2 + 255);
}
