//! A UDP socket whose datagrams carry the kernel's stamp, their TTL, and the address at which they arrived.
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::time::Duration;

use downburst_clock::{Clock, KernelStanding};
use downburst_stamp::{ErrorEstimate, Format, WallNanos};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt, sockopt,
};
use nix::sys::time::TimeSpec;

/// A socket of a sender or a reflector.
#[derive(Debug)]
pub(crate) struct StampSocket {
    socket: UdpSocket,
    clock: Clock,
    kernel_stamps: bool,
    local: SocketAddr,
}

/// The circumstances in which a datagram arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    pub(crate) octets: usize,
    pub(crate) source: SocketAddr,
    /// The address at which it arrived.
    pub(crate) destination: SocketAddr,
    pub(crate) wall: WallNanos,
    pub(crate) ttl: Option<u8>,
}

impl StampSocket {
    /// Binds; with a peer, only its datagrams are received.
    pub(crate) fn open(local: SocketAddr, peer: Option<SocketAddr>, clock: Clock) -> io::Result<Self> {
        let socket = UdpSocket::bind(local)?;
        if let Some(peer) = peer {
            socket.connect(peer)?;
        }
        socket.set_nonblocking(true)?;
        let kernel_stamps = setsockopt(&socket, sockopt::ReceiveTimestampns, &true).is_ok();
        // A host that refuses these answers without a TTL, and from the address that its routes choose.
        let _ = match local {
            SocketAddr::V4(_) => setsockopt(&socket, sockopt::Ipv4RecvTtl, &true)
                .and_then(|()| setsockopt(&socket, sockopt::Ipv4PacketInfo, &true)),
            SocketAddr::V6(_) => setsockopt(&socket, sockopt::Ipv6RecvHopLimit, &true)
                .and_then(|()| setsockopt(&socket, sockopt::Ipv6RecvPacketInfo, &true)),
        };
        let local = socket.local_addr()?;
        Ok(Self { socket, clock, kernel_stamps, local })
    }

    pub(crate) fn local(&self) -> SocketAddr {
        self.local
    }

    /// Whether the kernel stamps arrivals; otherwise they are stamped when this process reads them.
    pub(crate) fn kernel_stamps(&self) -> bool {
        self.kernel_stamps
    }

    /// Waits until a datagram is there or the time is over.
    pub(crate) fn wait(&self, patience: Duration) -> bool {
        let millis = u16::try_from(patience.as_micros().div_ceil(1_000)).unwrap_or(u16::MAX);
        let mut polled = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        poll(&mut polled, PollTimeout::from(millis)).is_ok_and(|ready| ready > 0)
    }

    /// The next datagram, if one is there. Errors that the network reported for an earlier datagram are none of it.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        let mut space = nix::cmsg_space!(TimeSpec, libc::in6_pktinfo, i32);
        let mut parts = [IoSliceMut::new(buffer)];
        let fd = self.socket.as_raw_fd();
        let message = match recvmsg::<SockaddrStorage>(fd, &mut parts, Some(&mut space), MsgFlags::empty()) {
            Ok(message) => message,
            Err(error) => return none_if_passing(error),
        };
        let source = message.address.and_then(address_of).unwrap_or(self.local);
        let wall = WallNanos(self.clock.wall_nanos());
        let mut received =
            Received { octets: message.bytes, source, destination: self.local, wall, ttl: None };
        for control in message.cmsgs().into_iter().flatten() {
            received.note(&control, &self.clock);
        }
        Ok(Some(received))
    }

    /// Sends to the peer of a connected socket.
    pub(crate) fn send(&self, octets: &[u8]) -> io::Result<()> {
        self.socket.send(octets).map(drop)
    }

    /// Answers a datagram from the address at which it arrived.
    pub(crate) fn answer(&self, octets: &[u8], to: &Received) -> io::Result<()> {
        let parts = [IoSlice::new(octets)];
        let send = |control: &[ControlMessage<'_>]| {
            let peer = SockaddrStorage::from(to.source);
            sendmsg(self.socket.as_raw_fd(), &parts, control, MsgFlags::empty(), Some(&peer))
        };
        let sent = match to.destination.ip() {
            IpAddr::V4(address) if self.local.is_ipv4() => {
                let source = libc::in_addr { s_addr: u32::from_ne_bytes(address.octets()) };
                let info = libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: source, ipi_addr: source };
                send(&[ControlMessage::Ipv4PacketInfo(&info)])
            }
            IpAddr::V6(address) if !address.is_unspecified() => {
                let source = libc::in6_addr { s6_addr: address.octets() };
                let info = libc::in6_pktinfo { ipi6_addr: source, ipi6_ifindex: 0 };
                send(&[ControlMessage::Ipv6PacketInfo(&info)])
            }
            _ => send(&[]),
        };
        sent.map(drop).map_err(io::Error::from)
    }
}

impl Received {
    fn note(&mut self, control: &ControlMessageOwned, clock: &Clock) {
        match control {
            ControlMessageOwned::ScmTimestampns(stamp) => {
                let nanos = stamp.tv_sec().saturating_mul(1_000_000_000).saturating_add(stamp.tv_nsec());
                self.wall = WallNanos(clock.kernel_nanos(nanos));
            }
            ControlMessageOwned::Ipv4Ttl(ttl) | ControlMessageOwned::Ipv6HopLimit(ttl) => {
                self.ttl = u8::try_from(*ttl).ok();
            }
            ControlMessageOwned::Ipv4PacketInfo(info) => {
                let address = IpAddr::from(info.ipi_spec_dst.s_addr.to_ne_bytes());
                self.destination.set_ip(address);
            }
            ControlMessageOwned::Ipv6PacketInfo(info) => {
                self.destination.set_ip(IpAddr::from(info.ipi6_addr.s6_addr));
            }
            _ => {}
        }
    }
}

/// The error of this host's clock, as its kernel says.
pub(crate) fn estimate() -> ErrorEstimate {
    let standing = KernelStanding::read().filter(|standing| standing.synchronized);
    standing.map_or(ErrorEstimate::unknown(Format::Ntp), |standing| {
        ErrorEstimate::of(standing.error_us.saturating_mul(1_000), true, Format::Ntp)
    })
}

fn address_of(address: SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|address| SocketAddr::from((address.ip(), address.port())));
    v4.or_else(|| address.as_sockaddr_in6().map(|address| SocketAddr::from((address.ip(), address.port()))))
}

fn none_if_passing(error: nix::Error) -> io::Result<Option<Received>> {
    use nix::errno::Errno;
    let is_of_the_network = matches!(error, Errno::ECONNREFUSED | Errno::EHOSTUNREACH | Errno::ENETUNREACH);
    let error = io::Error::from(error);
    let is_passing = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted);
    if is_of_the_network || is_passing { Ok(None) } else { Err(error) }
}
