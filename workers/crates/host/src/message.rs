//! Writing netlink messages and reading the answers.
//!
//! Circuits need only a dozen messages, and no published crate of typed messages has half of their attributes
//! (HTB's, u32's); so all are written in the same way, attribute by attribute.

/// A message under construction: the header of netlink, the header of its family, attributes.
#[derive(Debug)]
pub(crate) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    pub(crate) fn new(kind: u16, flags: u16, family_header: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&(flags | REQUEST).to_ne_bytes());
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(family_header);
        Self { bytes }
    }

    pub(crate) fn put(mut self, attribute: u16, value: &[u8]) -> Self {
        let length = u16::try_from(ATTRIBUTE_HEADER + value.len()).unwrap_or(u16::MAX);
        self.bytes.extend_from_slice(&length.to_ne_bytes());
        self.bytes.extend_from_slice(&attribute.to_ne_bytes());
        self.bytes.extend_from_slice(value);
        self.bytes.resize(aligned(self.bytes.len()), 0);
        self
    }

    pub(crate) fn text(self, attribute: u16, value: &str) -> Self {
        self.put(attribute, &[value.as_bytes(), &[0]].concat())
    }

    pub(crate) fn number(self, attribute: u16, value: u32) -> Self {
        self.put(attribute, &value.to_ne_bytes())
    }

    /// Adds an attribute that contains attributes.
    pub(crate) fn nested(self, attribute: u16, fill: impl FnOnce(Nested) -> Nested) -> Self {
        let inner = fill(Message { bytes: Vec::new() });
        self.put(attribute | NESTED, &inner.bytes)
    }

    /// Requests an acknowledgement of the message.
    pub(crate) fn acknowledged(mut self) -> Self {
        if let Some(flags) = self.bytes.get_mut(6..8) {
            let asked = read_u16(flags, 0).unwrap_or(0);
            flags.copy_from_slice(&(asked | ACKNOWLEDGE).to_ne_bytes());
        }
        self
    }

    /// The complete message with a sequence number of its sender.
    pub(crate) fn finish(mut self, sequence: u32) -> Vec<u8> {
        let length = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        self.bytes.splice(0..4, length.to_ne_bytes());
        self.bytes.splice(8..12, sequence.to_ne_bytes());
        self.bytes
    }
}

/// Attributes inside an attribute have the same form as those of a message.
pub(crate) type Nested = Message;

/// A received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received<'a> {
    pub(crate) kind: u16,
    pub(crate) flags: u16,
    pub(crate) sequence: u32,
    pub(crate) body: &'a [u8],
}

/// The messages of a datagram, up to the first truncated one.
pub(crate) fn messages(datagram: &[u8]) -> impl Iterator<Item = Received<'_>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        let length = usize::try_from(read_u32(rest, 0)?).ok()?;
        let body = rest.get(HEADER..length)?;
        let message = Received {
            kind: read_u16(rest, 4)?,
            flags: read_u16(rest, 6)?,
            sequence: read_u32(rest, 8)?,
            body,
        };
        rest = rest.get(aligned(length)..).unwrap_or_default();
        Some(message)
    })
}

/// The attributes in `bytes`, up to the first truncated one.
pub(crate) fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(read_u16(rest, 0)?);
        let value = rest.get(ATTRIBUTE_HEADER..length)?;
        let kind = read_u16(rest, 2)? & !NESTED;
        rest = rest.get(aligned(length)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The value of one attribute.
pub(crate) fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(found, _)| *found == kind).map(|(_, value)| value)
}

pub(crate) fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

pub(crate) fn read_u16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

pub(crate) fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

const fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

const HEADER: usize = 16;
const ATTRIBUTE_HEADER: usize = 4;
const REQUEST: u16 = 1;
const ACKNOWLEDGE: u16 = 4;
const NESTED: u16 = 1 << 15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let message = Message::new(16, 4, &[7; 16])
            .text(3, "db17")
            .nested(18, |inner| inner.text(1, "vxlan").number(2, 42))
            .finish(9);
        let read: Vec<Received<'_>> = messages(&message).collect();
        assert_eq!((read[0].kind, read[0].flags, read[0].sequence), (16, 5, 9));
        let rest = &read[0].body[16..];
        assert_eq!(text(attribute(rest, 3).unwrap()), "db17");
        let inner = attribute(rest, 18).unwrap();
        assert_eq!(read_u32(attribute(inner, 2).unwrap(), 0), Some(42));
        assert_eq!(attribute(inner, 5), None);
    }

    #[test]
    fn torn_messages_end_the_reading() {
        let message = Message::new(16, 0, &[0; 16]).text(3, "eth0").finish(1);
        for length in 0..message.len() {
            assert_eq!(messages(&message[..length]).count(), 0, "{length}");
        }
        for length in 0..8 {
            assert_eq!(attributes(&[8, 0, 1, 0, 1, 2, 3, 4][..length]).count(), 0);
        }
        // A length below the length of its own header would cause an endless loop.
        assert_eq!(attributes(&[0, 0, 1, 0, 1, 2, 3, 4]).count(), 0);
        assert_eq!(messages(&[0; 32]).count(), 0);
    }
}
