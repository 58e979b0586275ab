//! The name of a congestion control.
use minicbor::decode::Error;
use minicbor::encode::Write;
use minicbor::{Decode, Decoder, Encode, Encoder};

/// The name of a congestion control, as the kernel knows it: 1 to 15 of a to z, 0 to 9, `_` and `-`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Control {
    bytes: [u8; LONGEST_NAME],
    length: u8,
}

impl Control {
    /// Reads a name; `None`: it is none.
    pub fn parse(name: &str) -> Option<Self> {
        let is_of_names = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
        if name.is_empty() || !name.bytes().all(is_of_names) {
            return None;
        }
        let mut bytes = [0; LONGEST_NAME];
        bytes.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
        Some(Self { bytes, length: u8::try_from(name.len()).ok()? })
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        let name = self.bytes.get(..self.length.into()).unwrap_or_default();
        std::str::from_utf8(name).unwrap_or_default()
    }
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::fmt::Display for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<C> Encode<C> for Control {
    fn encode<W: Write>(
        &self,
        encoder: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        encoder.str(self.as_str())?.ok()
    }
}

impl<'b, C> Decode<'b, C> for Control {
    fn decode(decoder: &mut Decoder<'b>, _: &mut C) -> Result<Self, Error> {
        Self::parse(decoder.str()?).ok_or_else(|| Error::message("no name of a congestion control"))
    }
}

/// As `TCP_CA_NAME_MAX` of the kernel, without the final zero.
const LONGEST_NAME: usize = 15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_what_the_kernel_can_know() {
        for name in ["c", "cubic", "bbr", "a_b-9", "123456789012345"] {
            let control = Control::parse(name).unwrap();
            assert_eq!(
                (control.as_str(), format!("{control} {control:?}")),
                (name, format!("{name} {name}"))
            );
            let bytes = minicbor::to_vec(control).unwrap();
            assert_eq!(minicbor::decode::<Control>(&bytes).unwrap(), control);
        }
        for name in ["", "Cubic", "a b", "1234567890123456", "bbr\0", "é"] {
            assert_eq!(Control::parse(name), None, "{name:?}");
            assert!(minicbor::decode::<Control>(&minicbor::to_vec(name).unwrap()).is_err());
        }
    }
}
