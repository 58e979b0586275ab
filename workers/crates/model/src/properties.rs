use std::fmt;
use std::sync::Arc;

use minicbor::bytes::ByteSlice;
use minicbor::{Decode, Encode, decode, encode};

/// The statements of a product's source about it: a document of at most 8 KiB that no hop reads or changes.
#[derive(Clone, PartialEq, Eq)]
// One pointer wide: most products have none, and their descriptions are moved about.
pub struct Properties(Arc<Box<[u8]>>);

impl Properties {
    /// Takes the document; `None` if it is empty or longer than [`PROPERTIES_BYTES_MAX`].
    pub fn new(document: &[u8]) -> Option<Self> {
        (1..=PROPERTIES_BYTES_MAX).contains(&document.len()).then(|| Self(Arc::new(document.into())))
    }

    /// The document.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Products are in error messages, where 8 KiB would hide the rest.
impl fmt::Debug for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Properties({} bytes)", self.0.len())
    }
}

impl<C> Encode<C> for Properties {
    fn encode<W: encode::Write>(
        &self,
        e: &mut minicbor::Encoder<W>,
        _: &mut C,
    ) -> Result<(), encode::Error<W::Error>> {
        e.bytes(&self.0)?;
        Ok(())
    }
}

impl<'b, C> Decode<'b, C> for Properties {
    fn decode(d: &mut minicbor::Decoder<'b>, context: &mut C) -> Result<Self, decode::Error> {
        let document: &ByteSlice = Decode::decode(d, context)?;
        Self::new(document).ok_or_else(|| decode::Error::message("properties have 1 to 8,192 bytes"))
    }
}

/// The limit of a notification by MQTT in WIS2, which is the longest statement of any source.
pub const PROPERTIES_BYTES_MAX: usize = 8 << 10;

#[cfg(test)]
mod tests {
    use minicbor::bytes::ByteVec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_document_within_the_limit_comes_back(document in prop::collection::vec(any::<u8>(), 1..600)) {
            let properties = Properties::new(&document).unwrap();
            let bytes = minicbor::to_vec(&properties).unwrap();
            prop_assert_eq!(properties.as_bytes(), document.as_slice());
            prop_assert_eq!(minicbor::decode::<Properties>(&bytes).unwrap(), properties);
        }
    }

    #[test]
    fn an_empty_or_too_long_document_is_refused_here_and_on_the_wire() {
        for (length, taken) in [(0, false), (1, true), (8_192, true), (8_193, false)] {
            let document = vec![7; length];
            assert_eq!(Properties::new(&document).is_some(), taken, "{length}");
            let encoded = minicbor::to_vec(ByteVec::from(document)).unwrap();
            assert_eq!(minicbor::decode::<Properties>(&encoded).is_ok(), taken, "{length}");
        }
    }
}
