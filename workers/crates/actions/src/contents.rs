//! The content of a product as passed to an action: its bytes unchanged, without control characters, without
//! a bulletin's heading, or with metadata.
mod heading;

use std::borrow::Cow;

use downburst_model::WallMicros;

use crate::Shape;

/// A product's metadata, as LDM defines it.
#[derive(Clone, Copy, Debug)]
pub struct Metadata<'a> {
    /// The MD5 of its bytes, unless its source computed it differently.
    pub signature: [u8; 16],
    /// The time of its creation at the source.
    pub created: WallMicros,
    /// LDM's feed-type bits of its feed.
    pub feed_type: u32,
    /// Its sequence number.
    pub sequence: u32,
    /// Its identifier.
    pub ident: &'a [u8],
    /// The host of its creation, and the last hop.
    pub origin: &'a [u8],
    /// The statements of a source that is no LDM, such as a notification of WIS2.
    pub properties: Option<&'a [u8]>,
}

/// The bytes of a product in the shape that an action requires.
pub fn shaped(shape: Shape, bytes: &[u8]) -> Cow<'_, [u8]> {
    if !shape.data {
        return Cow::Borrowed(&[]);
    }
    let bytes = if shape.without_wmo_header { heading::without(bytes) } else { bytes };
    if !shape.strip {
        return Cow::Borrowed(bytes);
    }
    Cow::Owned(bytes.iter().copied().filter(|byte| *byte == b'\n' || !byte.is_ascii_control()).collect())
}

/// The metadata in the layout of `-metadata`, in this host's byte order; `size` is that of the bytes that follow.
///
/// Properties come last, with their length before them. LDM has none, and its readers skip them by the length of all.
pub fn metadata(product: &Metadata<'_>, size: u64) -> Vec<u8> {
    let texts = [Some(product.ident), Some(product.origin), product.properties];
    let texts_bytes: usize = texts.iter().flatten().map(|text| 4 + text.len()).sum();
    let length = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX).to_ne_bytes();
    let seconds = u64::try_from(product.created.0.div_euclid(MICROS)).unwrap_or_default();
    let micros = i32::try_from(product.created.0.rem_euclid(MICROS)).unwrap_or_default();
    let mut out = Vec::new();
    out.extend(length(FIXED_BYTES + texts_bytes));
    out.extend(product.signature);
    out.extend(u32::try_from(size).unwrap_or(u32::MAX).to_ne_bytes());
    out.extend(seconds.to_ne_bytes());
    out.extend(micros.to_ne_bytes());
    out.extend(product.feed_type.to_ne_bytes());
    out.extend(product.sequence.to_ne_bytes());
    for text in texts.into_iter().flatten() {
        out.extend(length(text.len()));
        out.extend(text);
    }
    out
}

const MICROS: i64 = 1_000_000;
/// The size of all fields before the texts.
const FIXED_BYTES: usize = 4 + 16 + 4 + 8 + 4 + 4 + 4;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BULLETIN: &[u8] = b"\x01\r\r\n123 \r\r\nSAUS70 KWBC 291200\r\r\nMETAR KDEN\r\r\n\x03";

    #[test]
    fn shapes_are_those_of_pqact() {
        let plain = Shape::default();
        assert_eq!(&*shaped(plain, BULLETIN), BULLETIN);
        assert_eq!(
            &*shaped(Shape { strip: true, ..plain }, BULLETIN),
            b"\n123 \nSAUS70 KWBC 291200\nMETAR KDEN\n"
        );
        let bare = Shape { without_wmo_header: true, ..plain };
        assert_eq!(&*shaped(bare, BULLETIN), b"METAR KDEN");
        assert_eq!(&*shaped(bare, b"GRIB\x01\n\n\n"), b"GRIB\x01\n\n\n");
        assert_eq!(&*shaped(Shape { data: false, ..plain }, BULLETIN), b"");
    }

    #[test]
    fn metadata_is_laid_out_as_decoders_read_it() {
        let product = Metadata {
            signature: [7; 16],
            created: WallMicros(5_000_009),
            feed_type: 8,
            sequence: 4,
            ident: b"SAUS",
            origin: b"host",
            properties: None,
        };
        let bytes = metadata(&product, 99);
        let mut wanted = 60u32.to_ne_bytes().to_vec();
        wanted.extend([7; 16]);
        wanted.extend(99u32.to_ne_bytes());
        wanted.extend(5u64.to_ne_bytes());
        for word in [9u32, 8, 4, 4] {
            wanted.extend(word.to_ne_bytes());
        }
        wanted.extend(b"SAUS");
        wanted.extend(4u32.to_ne_bytes());
        wanted.extend(b"host");
        assert_eq!(bytes, wanted);
        assert_eq!(bytes.len(), 60);
        let stated = metadata(&Metadata { properties: Some(b"{}"), ..product }, 99);
        assert_eq!(stated[..4], 66u32.to_ne_bytes(), "the length of all");
        assert_eq!(stated[4..60], wanted[4..], "readers of LDM's metadata find theirs");
        assert_eq!(stated[60..], [2u32.to_ne_bytes().as_slice(), b"{}"].concat());
    }

    proptest! {
        #[test]
        fn any_bytes_are_shaped(bytes: Vec<u8>, strip: bool, without_wmo_header: bool) {
            let shape = Shape { strip, without_wmo_header, ..Shape::default() };
            prop_assert!(shaped(shape, &bytes).len() <= bytes.len());
        }
    }
}
