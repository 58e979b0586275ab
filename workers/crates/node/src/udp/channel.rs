//! The sockets of repair channels: one for each address of the hub, one for each leg of a site.
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd as _;

use bytes::Bytes;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::SetStruct;
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use socket2::{Domain, Protocol, Socket, Type};

use super::{Direction, GRO_LIMIT_BYTES, SEND_BUFFER_BYTES, TRAIN_BYTES, TRAIN_DATAGRAMS, grow_buffer, wait};

/// The hub's socket at one of its addresses.
pub(crate) struct ChannelSocket {
    socket: std::net::UdpSocket,
    state: UdpSocketState,
}

/// The address of a site, and the hub's address to which it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    address: SocketAddr,
    local: Option<IpAddr>,
}

/// The receive buffers of one call.
pub(crate) struct Buffers(Vec<Vec<u8>>);

impl ChannelSocket {
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        grow_buffer(&socket, RECEIVE_BYTES, Direction::Receive);
        grow_buffer(&socket, SEND_BUFFER_BYTES, Direction::Send);
        Self::of(socket, address)
    }

    /// Binds a socket for tunnels, beside one of the other IP version at the same port. A packet that became too long
    /// in its tunnel is sent in fragments.
    pub(crate) fn of_tunnels(address: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        grow_buffer(&socket, RECEIVE_BYTES, Direction::Receive);
        grow_buffer(&socket, TUNNEL_SEND_BYTES, Direction::Send);
        let bound = Self::of(socket, address)?;
        let set = match address {
            SocketAddr::V4(_) => setsockopt(&bound.socket, DiscoverV4, &libc::IP_PMTUDISC_DONT),
            SocketAddr::V6(_) => setsockopt(&bound.socket, DiscoverV6, &libc::IPV6_PMTUDISC_DONT),
        };
        set.map_err(io::Error::from)?;
        Ok(bound)
    }

    fn of(socket: Socket, address: SocketAddr) -> io::Result<Self> {
        socket.bind(&address.into())?;
        let socket = std::net::UdpSocket::from(socket);
        let state = UdpSocketState::new((&socket).into())?;
        Ok(Self { socket, state })
    }

    /// The address of the socket.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Sends datagrams of equal length, except for a shorter last one, in few calls; returns the number of those for
    /// which there was no room and no way.
    pub(crate) fn send_all(&self, peer: Peer, datagrams: &[u8], segment_bytes: usize) -> usize {
        let one = segment_bytes.max(1);
        let fits = one <= MOST_UNFRAGMENTED;
        let limit =
            if fits { self.state.max_gso_segments().min(TRAIN_DATAGRAMS).min(TRAIN_BYTES / one) } else { 1 };
        let mut unsent = 0;
        for train in datagrams.chunks(limit.max(1) * one) {
            let segment_size = (train.len() > one).then_some(one);
            let transmit = Transmit { segment_size, ..Self::transmit(peer, train) };
            let sent =
                self.state.try_send((&self.socket).into(), &transmit).or_else(|error| match error.kind() {
                    io::ErrorKind::WouldBlock => {
                        wait(&self.socket, PollFlags::POLLOUT)?;
                        self.state.try_send((&self.socket).into(), &transmit)
                    }
                    _ => Err(error),
                });
            unsent += if sent.is_err() { train.len().div_ceil(one) } else { 0 };
        }
        unsent
    }

    /// Waits up to `patience_ms` for datagrams and hands each to `take`.
    pub(crate) fn receive(
        &self,
        buffers: &mut Buffers,
        patience_ms: u16,
        mut take: impl FnMut(Bytes, Peer),
    ) -> io::Result<()> {
        let mut fds = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        if poll(&mut fds, PollTimeout::from(patience_ms)).map_err(io::Error::from)? == 0 {
            return Ok(());
        }
        let mut metas = [RecvMeta::default(); quinn_udp::BATCH_SIZE];
        let mut slices: Vec<IoSliceMut<'_>> =
            buffers.0.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
        let received = match self.state.recv((&self.socket).into(), &mut slices, &mut metas) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        drop(slices);
        for (buffer, meta) in buffers.0.iter().zip(metas.iter()).take(received) {
            let peer = Peer { address: meta.addr, local: meta.dst_ip };
            let together = buffer.get(..meta.len).unwrap_or_default();
            together
                .chunks(meta.stride.max(1))
                .for_each(|datagram| take(Bytes::copy_from_slice(datagram), peer));
        }
        Ok(())
    }

    /// Sends from the address to which the peer sends. A datagram for which the kernel has no room is lost.
    pub(crate) fn send(&self, peer: Peer, datagram: &[u8]) -> io::Result<()> {
        self.state.try_send((&self.socket).into(), &Self::transmit(peer, datagram))
    }

    /// Like [`send`](Self::send), but waits a moment for room.
    pub(crate) fn send_patiently(&self, peer: Peer, datagram: &[u8]) -> io::Result<()> {
        match self.send(peer, datagram) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait(&self.socket, PollFlags::POLLOUT)?;
                self.send(peer, datagram)
            }
            sent => sent,
        }
    }

    fn transmit(peer: Peer, datagram: &[u8]) -> Transmit<'_> {
        Transmit {
            destination: peer.address,
            ecn: None,
            contents: datagram,
            segment_size: None,
            src_ip: peer.local,
        }
    }
}

impl Peer {
    /// The address of the peer.
    pub(crate) fn address(self) -> SocketAddr {
        self.address
    }

    /// The address of this host to which it sends.
    pub(crate) fn local(self) -> Option<IpAddr> {
        self.local
    }
}

impl Default for Buffers {
    fn default() -> Self {
        Self(vec![vec![0; GRO_LIMIT_BYTES]; quinn_udp::BATCH_SIZE])
    }
}

/// A site's socket towards the hub.
pub(crate) fn connected(hub: SocketAddr) -> io::Result<std::net::UdpSocket> {
    let socket = Socket::new(Domain::for_address(hub), Type::DGRAM, Some(Protocol::UDP))?;
    grow_buffer(&socket, RECEIVE_BYTES, Direction::Receive);
    let any =
        if hub.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
    socket.bind(&SocketAddr::new(any, 0).into())?;
    socket.connect(&hub.into())?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// A socket for the packets of one probe of a path, with a port that the system chooses.
pub(crate) fn probe_socket(address: IpAddr) -> io::Result<std::net::UdpSocket> {
    let at = SocketAddr::new(address, 0);
    let socket = Socket::new(Domain::for_address(at), Type::DGRAM, Some(Protocol::UDP))?;
    grow_buffer(&socket, RECEIVE_BYTES, Direction::Receive);
    socket.bind(&at.into())?;
    Ok(socket.into())
}

nix::setsockopt_impl!(DiscoverV4, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, i32, SetStruct<'_, i32>);
nix::setsockopt_impl!(DiscoverV6, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, i32, SetStruct<'_, i32>);

#[derive(Clone, Copy, Debug)]
struct DiscoverV4;
#[derive(Clone, Copy, Debug)]
struct DiscoverV6;

/// The longest datagram that Ethernet carries in one piece, behind the headers of IPv6 and UDP.
const MOST_UNFRAGMENTED: usize = 1_452;

/// A copy of a train for each tunnel waits here.
const TUNNEL_SEND_BYTES: usize = 16 << 20;

/// Room for requests of a thousand sites within a few milliseconds, and repairs of a tenth of a second at 100 Mb/s.
const RECEIVE_BYTES: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_leave_from_the_address_that_was_spoken_to() {
        let hub = ChannelSocket::bind("0.0.0.0:0".parse().unwrap()).unwrap();
        let port = hub.socket.local_addr().unwrap().port();
        for address in ["127.0.0.1", "127.0.0.9"] {
            let site = connected(format!("{address}:{port}").parse().unwrap()).unwrap();
            site.send(b"request").unwrap();
            let mut heard = Vec::new();
            hub.receive(&mut Buffers::default(), 1_000, |datagram, peer| heard.push((datagram, peer)))
                .unwrap();
            assert_eq!(heard[0].0, b"request"[..]);
            hub.send(heard[0].1, b"answer").unwrap();
            // A connected socket receives only from the address to which it is connected.
            site.set_nonblocking(false).unwrap();
            site.set_read_timeout(Some(std::time::Duration::from_secs(1))).unwrap();
            let mut bytes = [0; 16];
            assert_eq!(site.recv(&mut bytes).unwrap(), 6);
        }
    }
}
