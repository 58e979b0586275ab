//! Outgoing bytes of a connection.
use bytes::{Buf as _, BytesMut};

/// Bytes to write, and whether the written ones are flushed.
#[derive(Debug)]
pub struct WriteBuffer {
    bytes: BytesMut,
    is_flushed: bool,
}

/// The next operation on the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextWrite<'a> {
    /// Write as many of these as the stream accepts.
    Write(&'a [u8]),
    /// Flush the written bytes.
    Flush,
    /// Nothing.
    Nothing,
}

impl WriteBuffer {
    /// Appends bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next operation.
    pub fn next(&self) -> NextWrite<'_> {
        match (self.bytes.is_empty(), self.is_flushed) {
            (false, _) => NextWrite::Write(&self.bytes),
            (true, false) => NextWrite::Flush,
            (true, true) => NextWrite::Nothing,
        }
    }

    /// Notes the number of bytes that the stream accepted.
    pub fn written(&mut self, count: usize) {
        self.bytes.advance(count);
        self.is_flushed = false;
    }

    /// Notes that the stream is flushed.
    pub fn flushed(&mut self) {
        self.is_flushed = true;
    }

    /// Takes the pending bytes, for another way of writing them.
    pub fn take(&mut self) -> BytesMut {
        self.bytes.split()
    }

    /// Drops all bytes, as the connection is gone.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.is_flushed = true;
    }
}

impl Default for WriteBuffer {
    fn default() -> Self {
        Self { bytes: BytesMut::new(), is_flushed: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_in_order_and_are_flushed_once_all_are_written() {
        let mut buffer = WriteBuffer::default();
        assert_eq!(buffer.next(), NextWrite::Nothing);
        buffer.push(b"abc");
        buffer.push(b"de");
        buffer.written(4);
        assert_eq!(buffer.next(), NextWrite::Write(b"e"));
        buffer.written(1);
        assert_eq!(buffer.next(), NextWrite::Flush);
        buffer.flushed();
        assert_eq!(buffer.next(), NextWrite::Nothing);
    }

    #[test]
    fn a_connection_that_is_gone_leaves_nothing_to_the_next_one() {
        let mut buffer = WriteBuffer::default();
        buffer.push(b"abc");
        buffer.written(1);
        buffer.clear();
        assert_eq!(buffer.next(), NextWrite::Nothing);
        buffer.push(b"last words");
        assert_eq!(&buffer.take()[..], b"last words");
        assert_eq!(buffer.next(), NextWrite::Nothing);
    }
}
