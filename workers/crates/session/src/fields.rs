use bytes::{BufMut, Bytes, BytesMut};

/// Reads the fields of a binary frame one after the other; `None` if the frame ends too early.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    body: &'a Bytes,
    at: usize,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(body: &'a Bytes) -> Self {
        Self { body, at: 0 }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.at >= self.body.len()
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        let byte = *self.body.get(self.at)?;
        self.at = self.at.saturating_add(1);
        Some(byte)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A number in groups of seven bits, lowest group first.
    pub(crate) fn varint(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = u64::from(self.u8()?);
            let bits = byte & 0x7f;
            if shift == 63 && bits > 1 {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// A signed number in zigzag code: small magnitudes are short.
    pub(crate) fn signed(&mut self) -> Option<i64> {
        let coded = self.varint()?;
        Some((coded >> 1) as i64 ^ -((coded & 1) as i64))
    }

    /// A text of at most 255 bytes.
    pub(crate) fn short_text(&mut self) -> Option<&'a str> {
        let length = usize::from(self.u8()?);
        std::str::from_utf8(self.run(length)?).ok()
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.run(N)?.try_into().ok()
    }

    /// The next bytes, shared with the frame.
    pub(crate) fn bytes(&mut self, length: usize) -> Option<Bytes> {
        let from = self.at;
        self.run(length)?;
        Some(self.body.slice(from..self.at))
    }

    fn run(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(length)?;
        let run = self.body.get(self.at..end)?;
        self.at = end;
        Some(run)
    }
}

/// Writes fields in the encoding that [`Fields`] reads.
pub(crate) trait PutFields {
    fn put_varint(&mut self, number: u64);
    fn put_signed(&mut self, number: i64);
    fn put_short_text(&mut self, text: &str);
}

impl PutFields for BytesMut {
    fn put_varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.put_u8((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.put_u8(number as u8);
    }

    fn put_signed(&mut self, number: i64) {
        self.put_varint(((number << 1) ^ (number >> 63)) as u64);
    }

    fn put_short_text(&mut self, text: &str) {
        // Names are shorter by construction; a longer one would be cut here and refused by the peer.
        let text = text.as_bytes().get(..usize::from(u8::MAX)).unwrap_or(text.as_bytes());
        self.put_u8(text.len() as u8);
        self.put_slice(text);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_and_texts_come_back(number: u64, signed: i64, small in -300i64..300, text in "\\PC{0,40}") {
            let mut written = BytesMut::new();
            written.put_varint(number);
            written.put_signed(signed);
            written.put_signed(small);
            written.put_short_text(&text);
            let written = written.freeze();
            let mut fields = Fields::new(&written);
            prop_assert_eq!(fields.varint(), Some(number));
            prop_assert_eq!(fields.signed(), Some(signed));
            prop_assert_eq!(fields.signed(), Some(small));
            prop_assert_eq!(fields.short_text(), Some(text.as_str()));
            prop_assert!(fields.is_over());
            prop_assert_eq!(fields.u8(), None);
        }

        #[test]
        fn any_bytes_are_read_to_their_end_without_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..40),
            length: usize,
        ) {
            let bytes = Bytes::from(bytes);
            let mut fields = Fields::new(&bytes);
            let _ = fields.bytes(length);
            while fields.varint().is_some() {}
            let _ = (fields.u32(), fields.u64(), fields.short_text(), fields.array::<32>());
        }
    }

    #[test]
    fn a_number_that_is_too_long_is_refused() {
        let eleven = Bytes::from_static(&[0xff; 11]);
        assert_eq!(Fields::new(&eleven).varint(), None);
        let too_large = Bytes::from_static(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02]);
        assert_eq!(Fields::new(&too_large).varint(), None);
    }
}
