//! A connection to the kernel for its network configuration.
use std::io;

use netlink_sys::Socket;
use netlink_sys::protocols::{NETLINK_NETFILTER, NETLINK_ROUTE};
use nix::errno::Errno;

use crate::message::{Message, Received, attribute, messages, read_u32, text};

/// An open connection. Requests are answered one by one, for the network namespace of the thread that opened it.
pub struct Netlink {
    socket: Socket,
    sequence: u32,
}

/// The kernel's refusal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.words())]
pub struct Refusal {
    /// Its error number.
    pub errno: Errno,
    /// The kernel's explanation, if there is one.
    pub detail: Option<String>,
}

impl Netlink {
    /// Opens a connection.
    pub fn open() -> io::Result<Self> {
        Self::open_for(NETLINK_ROUTE)
    }

    /// Opens a connection to another part of the kernel than its routes.
    pub(crate) fn open_for(protocol: isize) -> io::Result<Self> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        // Only the text of a refusal depends on it.
        let _ = socket.set_ext_ack(true);
        Ok(Self { socket, sequence: 0 })
    }

    /// Has the kernel apply a change.
    pub(crate) fn change(&mut self, message: Message) -> Result<(), Refusal> {
        let sequence = self.send(message.acknowledged())?;
        self.answers(sequence, |_| {})
    }

    /// Has the kernel apply changes all together or, if it refuses one, none; the last message is that of their end.
    pub(crate) fn change_all(&mut self, changes: Vec<Message>) -> Result<(), Refusal> {
        let (mut batch, first, count) = (Vec::new(), self.sequence.wrapping_add(1), changes.len());
        for (number, message) in changes.into_iter().enumerate() {
            self.sequence = self.sequence.wrapping_add(1);
            // The answer to the last change means that all of them were looked at.
            let is_last = number + 2 == count;
            batch.extend(if is_last { message.acknowledged() } else { message }.finish(self.sequence));
        }
        self.socket.send(&batch, 0)?;
        let last = self.sequence.wrapping_sub(1);
        loop {
            let (datagram, _) = self.socket.recv_from_full()?;
            let answers = messages(&datagram).filter(|message| message.kind == ERROR);
            for message in answers.filter(|message| (first..=last).contains(&message.sequence)) {
                outcome(&message)?;
                if message.sequence == last {
                    return Ok(());
                }
            }
        }
    }

    /// Requests all objects of a kind from the kernel; `see` receives the body of each.
    pub(crate) fn dump(&mut self, message: Message, mut see: impl FnMut(&[u8])) -> Result<(), Refusal> {
        let sequence = self.send(message)?;
        self.answers(sequence, |message| see(message.body))
    }

    /// Requests one object; `see` receives its body. A kernel without it refuses with `ENOENT`.
    pub(crate) fn ask(&mut self, message: Message, mut see: impl FnMut(&[u8])) -> Result<(), Refusal> {
        let sequence = self.send(message)?;
        loop {
            // One call less than for an answer of unknown length: there may be a hundred of these ten times a second.
            let mut datagram = Vec::with_capacity(ONE_ANSWER_BYTES);
            self.socket.recv(&mut datagram, 0)?;
            let mut answers = messages(&datagram).filter(|message| message.sequence == sequence);
            match answers.next() {
                Some(message) if message.kind == ERROR => return outcome(&message),
                Some(message) => {
                    see(message.body);
                    return Ok(());
                }
                None => {}
            }
        }
    }

    fn send(&mut self, message: Message) -> Result<u32, Refusal> {
        self.sequence = self.sequence.wrapping_add(1);
        self.socket.send(&message.finish(self.sequence), 0)?;
        Ok(self.sequence)
    }

    fn answers(&mut self, sequence: u32, mut see: impl FnMut(Received<'_>)) -> Result<(), Refusal> {
        loop {
            let (datagram, _) = self.socket.recv_from_full()?;
            for message in messages(&datagram).filter(|message| message.sequence == sequence) {
                match message.kind {
                    DONE => return Ok(()),
                    ERROR => return outcome(&message),
                    _ => see(message),
                }
            }
        }
    }
}

impl Refusal {
    pub(crate) fn of(errno: Errno) -> Self {
        Self { errno, detail: None }
    }

    fn words(&self) -> String {
        match &self.detail {
            Some(detail) => format!("{} ({detail})", self.errno.desc()),
            None => self.errno.desc().to_owned(),
        }
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        let errno = error.raw_os_error().map_or(Errno::EIO, Errno::from_raw);
        Self { errno, detail: None }
    }
}

/// Reads an acknowledgement: an error number, the header of the request, and optionally the kernel's explanation.
fn outcome(message: &Received<'_>) -> Result<(), Refusal> {
    let number = read_u32(message.body, 0).map_or(0, |number| number.cast_signed().wrapping_neg());
    if number == 0 {
        return Ok(());
    }
    let asked = read_u32(message.body, 4).and_then(|length| usize::try_from(length).ok()).unwrap_or_default();
    let skipped = if message.flags & CAPPED == 0 { asked.next_multiple_of(4) } else { ASKED_HEADER };
    let detail = message.body.get(4 + skipped..).and_then(|rest| attribute(rest, EXT_ACK_TEXT)).map(text);
    Err(Refusal { errno: Errno::from_raw(number), detail: detail.filter(|_| message.flags & EXT_ACK != 0) })
}

pub(crate) const NETFILTER: isize = NETLINK_NETFILTER;
pub(crate) const DUMP: u16 = 0x300;
pub(crate) const CREATE: u16 = 0x400;
pub(crate) const EXCLUSIVE: u16 = 0x200;
pub(crate) const REPLACE: u16 = 0x100;
pub(crate) const APPEND: u16 = 0x800;

/// The kernel's longest description of a socket takes a tenth.
const ONE_ANSWER_BYTES: usize = 8 << 10;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const CAPPED: u16 = 0x100;
const EXT_ACK: u16 = 0x200;
const EXT_ACK_TEXT: u16 = 1;
const ASKED_HEADER: usize = 16;
