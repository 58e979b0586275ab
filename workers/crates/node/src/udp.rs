//! UDP for multicast legs: trains of datagrams out (GSO), batches in (recvmmsg, GRO), with fallbacks where the kernel lacks them.
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd as _;

use bytes::{Bytes, BytesMut};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use socket2::{Domain, Protocol, SockRef, Socket, Type};

/// Sends one leg's datagrams.
pub(crate) struct GroupSender {
    socket: std::net::UdpSocket,
    state: UdpSocketState,
    group: SocketAddr,
    train: BytesMut,
    segment_bytes: usize,
}

impl GroupSender {
    /// Opens a socket whose datagrams leave by the interface with address `interface` (the system's choice if empty).
    pub(crate) fn open(group: SocketAddr, interface: &str) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(group), Type::DGRAM, Some(Protocol::UDP))?;
        match group.ip() {
            IpAddr::V4(_) => {
                if let Some(address) = interface_v4(interface)? {
                    socket.set_multicast_if_v4(&address)?;
                }
                socket.set_multicast_ttl_v4(MULTICAST_TTL)?;
                socket.set_multicast_loop_v4(true)?;
            }
            IpAddr::V6(_) => {
                socket.set_multicast_if_v6(interface_index(interface)?)?;
                socket.set_multicast_hops_v6(MULTICAST_TTL)?;
                socket.set_multicast_loop_v6(true)?;
            }
        }
        grow_buffer(&socket, SEND_BUFFER_BYTES, Direction::Send);
        let socket = std::net::UdpSocket::from(socket);
        let state = UdpSocketState::new((&socket).into())?;
        Ok(Self { socket, state, group, train: BytesMut::new(), segment_bytes: 0 })
    }

    /// Adds a datagram to the train; sends the train first if the datagram can't join it.
    pub(crate) fn push(&mut self, datagram: &[u8]) -> io::Result<()> {
        let room = self.state.max_gso_segments().clamp(1, TRAIN_DATAGRAMS) * self.segment_bytes;
        let joins = !self.train.is_empty()
            && datagram.len() <= self.segment_bytes
            && self.train.len().is_multiple_of(self.segment_bytes)
            && self.train.len() + datagram.len() <= room.min(TRAIN_BYTES);
        if !joins {
            self.flush()?;
            self.segment_bytes = datagram.len();
        }
        self.train.extend_from_slice(datagram);
        Ok(())
    }

    /// Sends what waits.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if self.train.is_empty() {
            return Ok(());
        }
        let train = self.train.split();
        let segment_size = (train.len() > self.segment_bytes).then_some(self.segment_bytes);
        let transmit =
            Transmit { destination: self.group, ecn: None, contents: &train, segment_size, src_ip: None };
        loop {
            match self.state.try_send((&self.socket).into(), &transmit) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait(&self.socket, PollFlags::POLLOUT)?
                }
                result => return result,
            }
        }
    }
}

/// Receives one leg's datagrams.
pub(crate) struct GroupReceiver {
    socket: std::net::UdpSocket,
    state: UdpSocketState,
    buffers: Vec<Vec<u8>>,
    receive_buffer_bytes: usize,
}

impl GroupReceiver {
    /// Joins `group` on the interface with address `interface`.
    pub(crate) fn join(group: SocketAddr, interface: &str) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(group), Type::DGRAM, Some(Protocol::UDP))?;
        // Several sites on one host (tests, demonstrations) listen to the same group.
        socket.set_reuse_address(true)?;
        // Bound to the group and not to any address: datagrams of other groups on the same port stay out.
        socket.bind(&group.into())?;
        match group.ip() {
            IpAddr::V4(address) => {
                let on = interface_v4(interface)?.unwrap_or(Ipv4Addr::UNSPECIFIED);
                socket.join_multicast_v4(&address, &on)?;
            }
            IpAddr::V6(address) => socket.join_multicast_v6(&address, interface_index(interface)?)?,
        }
        let receive_buffer_bytes = grow_buffer(&socket, RECEIVE_BUFFER_BYTES, Direction::Receive);
        let socket = std::net::UdpSocket::from(socket);
        let state = UdpSocketState::new((&socket).into())?;
        let buffers = vec![vec![0; GRO_LIMIT_BYTES]; quinn_udp::BATCH_SIZE];
        Ok(Self { socket, state, buffers, receive_buffer_bytes })
    }

    /// What the kernel granted, so that it can be reported: the default loses bursts.
    pub(crate) fn receive_buffer_bytes(&self) -> usize {
        self.receive_buffer_bytes
    }

    /// Waits up to `patience_ms` for datagrams and hands each to `take`.
    pub(crate) fn receive(&mut self, patience_ms: u16, mut take: impl FnMut(Bytes)) -> io::Result<()> {
        let mut fds = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        if poll(&mut fds, PollTimeout::from(patience_ms)).map_err(io::Error::from)? == 0 {
            return Ok(());
        }
        let mut metas = [RecvMeta::default(); quinn_udp::BATCH_SIZE];
        let mut slices: Vec<IoSliceMut<'_>> =
            self.buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
        let received = match self.state.recv((&self.socket).into(), &mut slices, &mut metas) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        drop(slices);
        for (buffer, meta) in self.buffers.iter().zip(metas.iter()).take(received) {
            let mut train = Bytes::copy_from_slice(buffer.get(..meta.len).unwrap_or_default());
            while !train.is_empty() {
                let length = meta.stride.clamp(1, train.len());
                take(train.split_to(length));
            }
        }
        Ok(())
    }
}

enum Direction {
    Receive,
    Send,
}

/// Asks for a buffer beyond the system's limit (needs CAP_NET_ADMIN), else for what the limit allows; returns what it became.
fn grow_buffer(socket: &Socket, bytes: usize, direction: Direction) -> usize {
    use nix::sys::socket::{setsockopt, sockopt};
    let granted = match direction {
        Direction::Receive => {
            if setsockopt(socket, sockopt::RcvBufForce, &bytes).is_err() {
                let _ = socket.set_recv_buffer_size(bytes);
            }
            SockRef::from(socket).recv_buffer_size()
        }
        Direction::Send => {
            if setsockopt(socket, sockopt::SndBufForce, &bytes).is_err() {
                let _ = socket.set_send_buffer_size(bytes);
            }
            SockRef::from(socket).send_buffer_size()
        }
    };
    granted.unwrap_or(0)
}

fn wait(socket: &std::net::UdpSocket, flags: PollFlags) -> io::Result<()> {
    let mut fds = [PollFd::new(socket.as_fd(), flags)];
    poll(&mut fds, PollTimeout::from(SEND_PATIENCE_MS)).map_err(io::Error::from)?;
    Ok(())
}

/// The IPv4 address that `interface` (an address or a name) stands for.
fn interface_v4(interface: &str) -> io::Result<Option<Ipv4Addr>> {
    if interface.is_empty() {
        return Ok(None);
    }
    if let Ok(address) = interface.parse() {
        return Ok(Some(address));
    }
    let mut addresses = nix::ifaddrs::getifaddrs().map_err(io::Error::from)?;
    addresses
        .find_map(|found| {
            (found.interface_name == interface)
                .then(|| found.address?.as_sockaddr_in().map(|v4| v4.ip()))
                .flatten()
        })
        .map(Some)
        .ok_or_else(|| no_interface(interface))
}

/// The number of the interface that `interface` (a number or a name) stands for; 0 lets the system choose.
fn interface_index(interface: &str) -> io::Result<u32> {
    if interface.is_empty() {
        return Ok(0);
    }
    if let Ok(index) = interface.parse() {
        return Ok(index);
    }
    nix::net::if_::if_nametoindex(interface).map_err(|_| no_interface(interface))
}

fn no_interface(interface: &str) -> io::Error {
    let sentence =
        format!("no interface {interface:?} with an address of the group's kind; give its address or name");
    io::Error::new(io::ErrorKind::AddrNotAvailable, sentence)
}

/// Enough for a national network, and no routed multicast beyond it by accident.
const MULTICAST_TTL: u32 = 32;

/// A train must fit the buffer of a receiver's port; 16 datagrams of 1452 bytes are 23 kB.
const TRAIN_DATAGRAMS: usize = 16;

/// What one UDP send can carry.
const TRAIN_BYTES: usize = 65_000;

/// What one receive can carry.
const GRO_LIMIT_BYTES: usize = 65_536;
const SEND_BUFFER_BYTES: usize = 4 << 20;
const SEND_PATIENCE_MS: u16 = 100;

/// 16 MiB is a third of a second at 400 Mb/s: what a busy receiver needs to ride out a stall; the
/// default buffer loses bursts that no priority can save.
const RECEIVE_BUFFER_BYTES: usize = 16 << 20;
