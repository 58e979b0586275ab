//! The TCP connection with its two buffers.
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use socket2::SockRef;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::super::acknowledged::acknowledged_bytes;
use crate::hub::Hub;

pub(super) struct Wire {
    stream: TcpStream,
    buffer: BytesMut,
    /// Pending output, in order.
    out: VecDeque<Bytes>,
    out_bytes: usize,
    written: u64,
    /// The peer uses version 5: its messages are acknowledged without the usual delay.
    pub(super) is_prompt: bool,
}

impl Wire {
    pub(super) fn new(stream: TcpStream) -> Self {
        prepare(&stream);
        Self {
            stream,
            buffer: BytesMut::new(),
            out: VecDeque::new(),
            out_bytes: 0,
            written: 0,
            is_prompt: false,
        }
    }

    pub(super) fn queue(&mut self, bytes: Bytes) {
        self.out_bytes += bytes.len();
        self.out.push_back(bytes);
    }

    /// True if enough output is pending for a write.
    pub(super) fn is_full(&self) -> bool {
        self.out_bytes >= WRITE_BYTES
    }

    pub(super) async fn flush(&mut self, hub: &dyn Hub) -> io::Result<()> {
        while !self.out.is_empty() {
            let slices: Vec<IoSlice<'_>> =
                self.out.iter().take(MOST_SLICES).map(|bytes| IoSlice::new(bytes)).collect();
            let mut written = self.stream.write_vectored(&slices).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            hub.count_wire(written);
            self.written += written as u64;
            self.out_bytes -= written;
            while let Some(front) = self.out.front_mut().filter(|_| written > 0) {
                let gone = written.min(front.len());
                written -= gone;
                drop(front.split_to(gone));
                if front.is_empty() {
                    self.out.pop_front();
                }
            }
        }
        Ok(())
    }

    /// Reads bytes from the peer; empty at the end of the stream. Safe to cancel: no bytes are lost.
    pub(super) async fn read(&mut self) -> io::Result<Bytes> {
        self.buffer.reserve(READ_BYTES);
        self.stream.read_buf(&mut self.buffer).await?;
        if self.is_prompt {
            // LDM's notifyme answers twice, and its system delays the second answer until the first is
            // acknowledged.
            let _ = SockRef::from(&self.stream).set_tcp_quickack(true);
        }
        Ok(self.buffer.split().freeze())
    }

    /// Bytes that the peer's kernel has not acknowledged yet.
    pub(super) fn unacknowledged_bytes(&self) -> u64 {
        self.written.saturating_sub(acknowledged_bytes(&self.stream).unwrap_or(self.written))
    }
}

/// Sets the socket options. The user timeout ends the connection to a peer that vanished silently: missing
/// acknowledgements are the only sign of it.
fn prepare(stream: &TcpStream) {
    let socket = SockRef::from(stream);
    let _ = socket.set_tcp_nodelay(true);
    let _ = socket.set_tcp_user_timeout(Some(Duration::from_secs(90)));
    let _ = socket.set_tcp_notsent_lowat(NOT_SENT_BYTES);
}

/// Approximate size of one write to the socket.
const WRITE_BYTES: usize = 128 << 10;
const MOST_SLICES: usize = 256;
const READ_BYTES: usize = 16 << 10;
const NOT_SENT_BYTES: u32 = 256 << 10;
