//! The socket of a relay that sends a leg by unicast, a copy to each receiver.
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use quinn_udp::{Transmit, UdpSocketState};
use socket2::{Domain, Protocol, Socket, Type};

use super::{Direction, GroupSender, Outlet, SEND_BUFFER_BYTES, TRAIN_BYTES, TRAIN_DATAGRAMS, grow_buffer};

/// Sends copies of one leg, and hears the announcements of its receivers. It never waits for the kernel.
pub(crate) struct CopySocket {
    socket: std::net::UdpSocket,
    state: UdpSocketState,
    source: IpAddr,
    mtu_bytes: Option<u64>,
}

impl CopySocket {
    /// Opens the socket at the port of `group`, and at the address from which this host would send to that group.
    pub(crate) fn open(group: SocketAddr, outlet: &Outlet) -> io::Result<Self> {
        let probe = GroupSender::open(group, outlet)?;
        let (source, mtu_bytes) = (probe.source(), probe.mtu_bytes());
        let socket = Socket::new(Domain::for_address(group), Type::DGRAM, Some(Protocol::UDP))?;
        grow_buffer(&socket, SEND_BUFFER_BYTES, Direction::Send);
        socket.bind(&SocketAddr::new(source, group.port()).into())?;
        socket.set_nonblocking(true)?;
        let socket = std::net::UdpSocket::from(socket);
        let state = UdpSocketState::new((&socket).into())?;
        Ok(Self { socket, state, source, mtu_bytes })
    }

    /// The address to which sites announce themselves.
    pub(crate) fn source(&self) -> IpAddr {
        self.source
    }

    /// The longest IP packet that leaves this host in one piece, as far as it knows.
    pub(crate) fn mtu_bytes(&self) -> Option<u64> {
        self.mtu_bytes
    }

    /// Sends datagrams of equal length, except for a shorter last one; returns the number of those for which the kernel
    /// had no room or no way, and the last error if it had no way.
    pub(crate) fn send_all(
        &self,
        datagrams: &[u8],
        segment_bytes: usize,
        to: SocketAddr,
    ) -> (usize, io::Result<()>) {
        let one = segment_bytes.max(1);
        let limit = self.state.max_gso_segments().min(TRAIN_DATAGRAMS).min(TRAIN_BYTES / one).max(1);
        let (mut unsent, mut sent) = (0, Ok(()));
        for train in datagrams.chunks(limit * one) {
            if let Err(error) = self.send(train, one, to) {
                unsent += train.len().div_ceil(one);
                if error.kind() != io::ErrorKind::WouldBlock {
                    sent = Err(error);
                }
            }
        }
        (unsent, sent)
    }

    /// Hands the datagrams that have arrived to `answer`, at most [`MOST_HEARD`] of them, and sends its answers.
    pub(crate) fn hear<A: AsRef<[u8]>>(&self, mut answer: impl FnMut(SocketAddr, &[u8]) -> Option<A>) {
        // A longer datagram is cut, and is no announcement.
        let mut buffer = [0; LONGEST_BYTES];
        for _ in 0..MOST_HEARD {
            let Ok((length, from)) = self.socket.recv_from(&mut buffer) else { return };
            if let Some(answer) = answer(from, buffer.get(..length).unwrap_or_default()) {
                // An answer for which there is no room is lost: the site asks again.
                let _ = self.socket.send_to(answer.as_ref(), from);
            }
        }
    }

    fn send(&self, train: &[u8], segment_bytes: usize, to: SocketAddr) -> io::Result<()> {
        let segment_size = (train.len() > segment_bytes).then_some(segment_bytes);
        let transmit = Transmit { destination: to, ecn: None, contents: train, segment_size, src_ip: None };
        self.state.try_send((&self.socket).into(), &transmit)
    }
}

impl AsFd for CopySocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The most datagrams that are heard at a time.
const MOST_HEARD: usize = 64;

/// Longer than an announcement.
const LONGEST_BYTES: usize = 128;
