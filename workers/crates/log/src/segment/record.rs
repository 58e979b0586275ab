//! A record: a prefix of fixed length, metadata in CBOR, padding to eight bytes, then the product's bytes, padded
//! too.

use downburst_model::{
    Class, Digest, Hops, LdmStamp, Origin, PROPERTIES_BYTES_MAX, ProductId, Properties, WallMicros,
};
use minicbor::{Decode, Encode};

use crate::SourceStamp;

/// A record's description of its product beyond sequence and size.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(crate) struct Metadata {
    #[n(0)]
    pub(crate) id: ProductId,
    #[n(1)]
    pub(crate) origin: Origin,
    #[n(2)]
    pub(crate) created: WallMicros,
    #[n(3)]
    pub(crate) stored: WallMicros,
    #[n(4)]
    pub(crate) class: Class,
    #[n(5)]
    pub(crate) digest: Digest,
    /// Present if the bytes begin with a WMO starting line.
    #[n(6)]
    pub(crate) body: Option<Body>,
    #[n(7)]
    pub(crate) source: Option<SourceStamp>,
    #[n(8)]
    pub(crate) hops: Option<Hops>,
    #[n(9)]
    pub(crate) ldm: Option<LdmStamp>,
    /// Present if the bytes are in a file of their own: the [body](super::body).
    #[n(10)]
    pub(crate) in_body: Option<()>,
    #[n(11)]
    pub(crate) properties: Option<Properties>,
}

/// The content after a WMO starting line.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(crate) struct Body {
    #[n(0)]
    pub(crate) starting_line_bytes: u8,
    #[n(1)]
    pub(crate) digest: Digest,
    /// Present if the feed compared contents without starting lines when it stored the product: the index has the
    /// print of this digest then, and not that of LDM's signature.
    #[n(2)]
    pub(crate) compared: Option<()>,
}

impl Metadata {
    /// The digest and size of the content after the WMO starting line, or of all of it if there is no such line.
    pub(crate) fn body(&self, size: u64) -> (&Digest, u64) {
        match &self.body {
            Some(body) => (&body.digest, size.saturating_sub(u64::from(body.starting_line_bytes))),
            None => (&self.digest, size),
        }
    }

    /// True if the feed compared its content after a WMO starting line.
    pub(crate) fn compares_body(&self) -> bool {
        self.body.as_ref().is_some_and(|body| body.compared.is_some())
    }
}

/// A decoded record header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) sequence: u64,
    pub(crate) size: u64,
    /// Prefix, metadata and padding: the distance from the record's start to the bytes.
    pub(crate) header_bytes: u32,
    pub(crate) metadata: Metadata,
}

impl Header {
    /// The number of the product's bytes that follow the header in the segment.
    pub(crate) fn segment_bytes(&self) -> u64 {
        if self.metadata.in_body.is_some() { 0 } else { self.size }
    }

    /// The number of the product's bytes in a body.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.size - self.segment_bytes()
    }
}

/// The place of a record. Part of the checksum, so that bytes that stray to another place do not count as a
/// record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) salt: u64,
    pub(crate) offset: u64,
}

/// The number of bytes to reserve for the header of a product whose digests and stamp are not known yet.
pub(crate) fn reserve(metadata: &Metadata) -> usize {
    let stored = WallMicros(i64::MAX);
    let body = Some(Body { starting_line_bytes: u8::MAX, digest: metadata.digest, compared: Some(()) });
    let longest = Metadata { stored, body, ..metadata.clone() };
    let metadata_bytes =
        minicbor::to_vec(&longest).map_or(MAX_HEADER_BYTES as usize, |encoded| encoded.len());
    PREFIX_BYTES + padded(metadata_bytes as u64) as usize
}

/// Encodes a header of exactly `header_bytes`; `None` if the metadata does not fit.
pub(crate) fn encode(place: Place, header: &mut Header) -> Option<Vec<u8>> {
    let mut encoded = Vec::with_capacity(header.header_bytes as usize);
    encode_onto(&mut encoded, place, header)?;
    Some(encoded)
}

/// Appends the encoded header to `out`, padded to `header_bytes`. If that is 0, the header is as long as
/// necessary, and its length is set there.
///
/// `None` if the metadata does not fit; `out` may then hold a part of it.
pub(crate) fn encode_onto(out: &mut Vec<u8>, place: Place, header: &mut Header) -> Option<()> {
    let begin = out.len();
    out.resize(begin + PREFIX_BYTES, 0);
    minicbor::encode(&header.metadata, &mut *out).ok()?;
    let metadata_bytes = out.len() - begin - PREFIX_BYTES;
    let needed = PREFIX_BYTES as u64 + padded(metadata_bytes as u64);
    if header.header_bytes == 0 {
        header.header_bytes = u32::try_from(needed).ok()?;
    }
    if needed > u64::from(header.header_bytes) || header.header_bytes > MAX_HEADER_BYTES {
        return None;
    }
    out.resize(begin + header.header_bytes as usize, 0);
    let (prefix, rest) = out.get_mut(begin..)?.split_first_chunk_mut::<PREFIX_BYTES>()?;
    write_prefix(prefix, header, u32::try_from(metadata_bytes).ok()?)?;
    let crc = checksum(place, prefix.first_chunk()?, rest);
    *prefix.get_mut(CHECKED_PREFIX_BYTES..)?.first_chunk_mut()? = crc.to_le_bytes();
    Some(())
}

fn write_prefix(prefix: &mut [u8; PREFIX_BYTES], header: &Header, metadata_bytes: u32) -> Option<()> {
    *prefix.first_chunk_mut()? = MAGIC;
    *prefix.get_mut(8..)?.first_chunk_mut()? = header.header_bytes.to_le_bytes();
    *prefix.get_mut(12..)?.first_chunk_mut()? = metadata_bytes.to_le_bytes();
    *prefix.get_mut(16..)?.first_chunk_mut()? = header.size.to_le_bytes();
    *prefix.get_mut(24..)?.first_chunk_mut()? = header.sequence.to_le_bytes();
    Some(())
}

/// Decodes the header at the beginning of `bytes`; `None` if there is no intact one that was written for this place.
pub(crate) fn decode(place: Place, bytes: &[u8]) -> Option<Header> {
    let prefix = bytes.first_chunk::<PREFIX_BYTES>()?;
    let mut fields = Fields(prefix.strip_prefix(&MAGIC)?);
    let (header_bytes, metadata_bytes) = (fields.u32()?, fields.u32()?);
    let (size, sequence, crc) = (fields.u64()?, fields.u64()?, fields.u32()?);
    if header_bytes > MAX_HEADER_BYTES {
        return None;
    }
    let rest = bytes.get(PREFIX_BYTES..header_bytes as usize)?;
    if checksum(place, prefix.first_chunk::<CHECKED_PREFIX_BYTES>()?, rest) != crc {
        return None;
    }
    let metadata: Metadata = minicbor::decode(rest.get(..metadata_bytes as usize)?).ok()?;
    Some(Header { sequence, size, header_bytes, metadata })
}

/// True if `bytes` begin with a record whose mark alone is damaged.
pub(crate) fn has_lost_mark(place: Place, bytes: &[u8]) -> bool {
    let mut restored = bytes.to_vec();
    match restored.first_chunk_mut() {
        Some(mark) if *mark != MAGIC => *mark = MAGIC,
        _ => return false,
    }
    decode(place, &restored).is_some()
}

/// True if `bytes` begin like a record.
pub(crate) fn is_marked(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// Rounds up to the alignment of records.
pub(crate) fn padded(bytes: u64) -> u64 {
    bytes.saturating_add(ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT
}

/// Reads little-endian numbers one after the other.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl Fields<'_> {
    pub(crate) fn u32(&mut self) -> Option<u32> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*field))
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*field))
    }
}

fn checksum(place: Place, prefix: &[u8; CHECKED_PREFIX_BYTES], rest: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&place.salt.to_le_bytes());
    hasher.update(&place.offset.to_le_bytes());
    hasher.update(prefix);
    hasher.update(rest);
    hasher.finalize()
}

/// Records and their bytes begin at multiples of this.
pub(crate) const ALIGNMENT: u64 = 8;
/// No header is longer: names and properties are bounded.
pub(crate) const MAX_HEADER_BYTES: u32 = PLAIN_HEADER_BYTES + PROPERTIES_BYTES_MAX as u32;
/// No header without properties is longer.
pub(crate) const PLAIN_HEADER_BYTES: u32 = 4_096;
const MAGIC: [u8; 8] = [0xd8, 0x0b, b'R', b'E', b'C', 1, 0x1a, b'\n'];
const CHECKED_PREFIX_BYTES: usize = 32;
const CRC_FIELD_BYTES: usize = 8;
const PREFIX_BYTES: usize = CHECKED_PREFIX_BYTES + CRC_FIELD_BYTES;

#[cfg(test)]
pub(crate) mod tests {
    use downburst_model::{Epoch, FeedName, HubName, Lane, LdmIdent, ProductKey, Sequence};
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn metadata(id: &str) -> Metadata {
        Metadata {
            id: ProductId::parse(id).unwrap(),
            origin: Origin::parse("host.example").unwrap(),
            created: WallMicros(-5),
            stored: WallMicros(0),
            class: Class::Grid,
            digest: Digest([9; 32]),
            body: None,
            source: None,
            hops: None,
            ldm: None,
            in_body: None,
            properties: None,
        }
    }

    fn largest() -> Metadata {
        let long = "x".repeat(255);
        let key = ProductKey {
            feed: FeedName::parse(&"F".repeat(64)).unwrap(),
            epoch: Epoch(u64::MAX),
            sequence: Sequence(u64::MAX),
        };
        let far = WallMicros(i64::MIN);
        Metadata {
            origin: Origin::parse(&long).unwrap(),
            created: far,
            stored: far,
            body: Some(Body { starting_line_bytes: 255, digest: Digest([1; 32]), compared: Some(()) }),
            source: Some(SourceStamp {
                key,
                hub_stored: far,
                received: Some(far),
                lane: Some(Lane::Resend),
                resend: Some(u64::MAX),
                via: Some(Origin::parse(&long).unwrap()),
            }),
            hops: longest_way(),
            ldm: Some(LdmStamp {
                signature: [9; 16],
                sequence: u32::MAX,
                feed_type: u32::MAX,
                ident: LdmIdent::new(vec![0xff; 255]),
            }),
            in_body: Some(()),
            properties: Properties::new(&[7; PROPERTIES_BYTES_MAX]),
            ..metadata(&long)
        }
    }

    fn longest_way() -> Option<Hops> {
        let hub = HubName::parse(&"h".repeat(15)).unwrap();
        (0..16)
            .try_fold(None, |way: Option<Hops>, _| Hops::through(way.as_ref(), hub.clone()).map(Some))
            .unwrap()
    }

    #[test]
    fn the_largest_header_fits_what_was_reserved() {
        let metadata = largest();
        let header_bytes =
            reserve(&Metadata { stored: WallMicros(0), body: None, ..metadata.clone() }) as u32;
        assert!(header_bytes <= MAX_HEADER_BYTES, "{header_bytes}");
        let plain = reserve(&Metadata { properties: None, ..metadata.clone() }) as u32;
        assert!(plain <= PLAIN_HEADER_BYTES, "{plain}");
        let place = Place { salt: 1, offset: 64 };
        let mut header = Header { sequence: u64::MAX, size: u64::MAX, header_bytes, metadata };
        let encoded = encode(place, &mut header).unwrap();
        assert_eq!(encoded.len(), header_bytes as usize);
        assert_eq!(decode(place, &encoded), Some(header.clone()));
        assert_eq!(encode(place, &mut Header { header_bytes: 200, ..header }), None);
    }

    #[test]
    fn a_record_is_bound_to_its_place_and_log() {
        let metadata = metadata("a");
        let mut header = Header { sequence: 7, size: 3, header_bytes: reserve(&metadata) as u32, metadata };
        let place = Place { salt: 1, offset: 64 };
        let encoded = encode(place, &mut header).unwrap();
        assert!(is_marked(&encoded));
        assert_eq!(decode(Place { offset: 72, ..place }, &encoded), None);
        assert_eq!(decode(Place { salt: 2, ..place }, &encoded), None);
    }

    #[test]
    fn any_flipped_bit_is_noticed() {
        let metadata = largest();
        let mut header = Header { sequence: 7, size: 3, header_bytes: reserve(&metadata) as u32, metadata };
        let place = Place { salt: 1, offset: 64 };
        let good = encode(place, &mut header).unwrap();
        let unused = CHECKED_PREFIX_BYTES + 4..PREFIX_BYTES;
        for at in (0..good.len()).filter(|at| !unused.contains(at)) {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 8);
            assert_eq!(decode(place, &bad), None, "byte {at}");
        }
    }

    proptest! {
        #[test]
        fn rubbish_never_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..200), marked: bool) {
            if marked {
                bytes.splice(0..0, MAGIC);
            }
            prop_assert_eq!(decode(Place { salt: 1, offset: 0 }, &bytes), None);
        }
    }
}
