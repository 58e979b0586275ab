//! UDP for multicast legs: sends trains of datagrams (GSO) and receives batches (recvmmsg, GRO), with fallbacks for
//! kernels that lack these.
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::os::fd::AsFd as _;

use bytes::BytesMut;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{getsockopt, setsockopt, sockopt};
use nix::{getsockopt_impl, sockopt_impl};
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use socket2::{Domain, Protocol, SockRef, Socket, Type};

mod channel;
mod copies;
mod diagnosis;
mod interface;
mod membership;
mod room;
mod tap;

pub(crate) use channel::{Buffers, ChannelSocket, Peer, connected, probe_socket};
pub(crate) use copies::CopySocket;
use diagnosis::Watch;
pub(crate) use interface::Interface;
pub(crate) use membership::{check as check_membership, is_source_specific, join};
pub(crate) use room::{drops, receive_limit_bytes};
pub(crate) use tap::{Tap, Tapped};

/// The route of a leg's datagrams out of the hub.
#[derive(Clone, Debug)]
pub(crate) struct Outlet {
    /// Name, number or address of the interface; empty: the system's choice.
    pub(crate) interface: String,
    /// The number of routers that a datagram may pass, plus one (TTL, hop limit).
    pub(crate) hops: u8,
    /// Whether a train may be sent in one call if the kernel supports it.
    pub(crate) offload: bool,
}

/// Sends one leg's datagrams.
pub(crate) struct GroupSender {
    socket: std::net::UdpSocket,
    state: UdpSocketState,
    group: SocketAddr,
    source: IpAddr,
    mtu_bytes: Option<u64>,
    train: BytesMut,
    segment_bytes: usize,
    train_datagrams: usize,
}

impl GroupSender {
    /// Opens a socket that sends through the outlet, always from one address.
    pub(crate) fn open(group: SocketAddr, outlet: &Outlet) -> io::Result<Self> {
        let interface = Interface::find(&outlet.interface)?;
        let socket = Self::bare(group, interface.as_ref(), outlet.hops)?;
        // The kernel's choice of a source is fixed, because members of a source-specific group select it.
        let probe = Self::bare(group, interface.as_ref(), outlet.hops)?;
        probe.connect(&scoped(group, interface.as_ref()).into())?;
        let mtu_bytes = mtu_bytes(&probe, group);
        let mut source = probe.local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
        source.set_port(0);
        socket.bind(&source.into())?;
        grow_buffer(&socket, SEND_BUFFER_BYTES, Direction::Send);
        let socket = std::net::UdpSocket::from(socket);
        let state = UdpSocketState::new((&socket).into())?;
        let train_datagrams = if outlet.offload { TRAIN_DATAGRAMS } else { 1 };
        let group = scoped(group, interface.as_ref());
        let source = source.ip();
        let train = BytesMut::new();
        Ok(Self { socket, state, group, source, mtu_bytes, train, segment_bytes: 0, train_datagrams })
    }

    fn bare(group: SocketAddr, interface: Option<&Interface>, hops: u8) -> io::Result<Socket> {
        let socket = Socket::new(Domain::for_address(group), Type::DGRAM, Some(Protocol::UDP))?;
        match group.ip() {
            IpAddr::V4(_) => {
                if let Some(interface) = interface {
                    socket.set_multicast_if_v4(&interface.v4()?)?;
                }
                socket.set_multicast_ttl_v4(u32::from(hops))?;
                socket.set_multicast_loop_v4(true)?;
            }
            IpAddr::V6(_) => {
                if let Some(interface) = interface {
                    interface.v6()?;
                    socket.set_multicast_if_v6(interface.index)?;
                }
                socket.set_multicast_hops_v6(u32::from(hops))?;
                socket.set_multicast_loop_v6(true)?;
            }
        }
        Ok(socket)
    }

    /// The source address of all datagrams.
    pub(crate) fn source(&self) -> IpAddr {
        self.source
    }

    /// The longest IP packet that is not fragmented, as far as this host knows.
    pub(crate) fn mtu_bytes(&self) -> Option<u64> {
        self.mtu_bytes
    }

    /// The kernel feature in use, for operators.
    pub(crate) fn path(&self) -> String {
        match self.train_limit() {
            1 => "one datagram a call (no segmentation offload)".to_owned(),
            datagrams => format!("trains of {datagrams} datagrams (UDP GSO)"),
        }
    }

    /// Drops to one by itself if a network card turns out not to support it.
    fn train_limit(&self) -> usize {
        self.state.max_gso_segments().clamp(1, self.train_datagrams)
    }

    /// Adds a datagram to the train, without a copy if it follows in memory; sends the train first if the datagram
    /// can't join it.
    pub(crate) fn push(&mut self, datagram: BytesMut) -> io::Result<()> {
        let room = self.train_limit() * self.segment_bytes;
        let joins = !self.train.is_empty()
            && datagram.len() <= self.segment_bytes
            && self.train.len().is_multiple_of(self.segment_bytes)
            && self.train.len() + datagram.len() <= room.min(TRAIN_BYTES);
        if !joins {
            self.flush()?;
            self.segment_bytes = datagram.len();
        }
        self.train.unsplit(datagram);
        Ok(())
    }

    /// Sends the waiting train.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if self.train.is_empty() {
            return Ok(());
        }
        let train = self.train.split();
        self.send(&train, self.segment_bytes)
    }

    /// Sends datagrams of equal length, except for a shorter last one, that follow each other in memory; returns the
    /// number of those that were not sent, and the last error.
    pub(crate) fn send_all(&mut self, datagrams: &[u8], segment_bytes: usize) -> (usize, io::Result<()>) {
        let (mut unsent, mut sent) = (0, Ok(()));
        let count = self.train_limit().min(TRAIN_BYTES / segment_bytes.max(1)).max(1);
        for train in datagrams.chunks((count * segment_bytes).max(1)) {
            if let Err(error) = self.send(train, segment_bytes) {
                unsent += train.len().div_ceil(segment_bytes.max(1));
                sent = Err(error);
            }
        }
        (unsent, sent)
    }

    fn send(&self, train: &[u8], segment_bytes: usize) -> io::Result<()> {
        let segment_size = (train.len() > segment_bytes).then_some(segment_bytes);
        let transmit =
            Transmit { destination: self.group, ecn: None, contents: train, segment_size, src_ip: None };
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
    /// The buffer that was requested.
    asked_bytes: usize,
    gathers: bool,
    /// Of a group.
    watch: Option<Watch>,
    /// Of copies: their sender.
    relay: Option<SocketAddr>,
}

/// The membership of a site in a group.
#[derive(Clone, Debug)]
pub(crate) struct Membership {
    pub(crate) group: SocketAddr,
    /// The sender, for a source-specific group.
    pub(crate) source: Option<IpAddr>,
    /// Name, number or address of the interface; empty: the system's choice.
    pub(crate) interface: String,
    /// Whether the kernel, if it can, may pass several datagrams as one.
    pub(crate) offload: bool,
    /// The receive buffer to request; the kernel grants and accounts the double.
    pub(crate) buffer_bytes: usize,
}

impl GroupReceiver {
    /// Joins the group.
    pub(crate) fn join(membership: &Membership) -> io::Result<Self> {
        let Membership { group, source, .. } = *membership;
        check_membership(group, source).map_err(io::Error::other)?;
        let interface = Interface::find(&membership.interface)?;
        let socket = Socket::new(Domain::for_address(group), Type::DGRAM, Some(Protocol::UDP))?;
        // Several sites on one host (tests, demonstrations) receive the same group.
        socket.set_reuse_address(true)?;
        // Before the first datagram can arrive.
        let receive_buffer_bytes = grow_buffer(&socket, membership.buffer_bytes, Direction::Receive);
        // Bound to the group and not to any address, which excludes datagrams of other groups on the same port.
        socket.bind(&scoped(group, interface.as_ref()).into())?;
        let source = source.filter(|_| is_source_specific(group.ip()));
        membership::join(&socket, group.ip(), source, interface.as_ref().map_or(0, |found| found.index))?;
        let watch = Watch::begin(group, source, interface);
        Ok(Self { watch: Some(watch), ..Self::of(socket, receive_buffer_bytes, membership.offload)? })
    }

    /// Opens a socket that receives from a relay alone, at any port of this host.
    pub(crate) fn of_relay(relay: SocketAddr, offload: bool, buffer_bytes: usize) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(relay), Type::DGRAM, Some(Protocol::UDP))?;
        let receive_buffer_bytes = grow_buffer(&socket, buffer_bytes, Direction::Receive);
        socket.connect(&relay.into())?;
        let receiver = Self::of(socket, receive_buffer_bytes, offload)?;
        Ok(Self { relay: Some(relay), asked_bytes: buffer_bytes, ..receiver })
    }

    /// Receives from this relay from now on; true if that is another one, at another port of this host.
    pub(crate) fn turn_to(&mut self, relay: SocketAddr) -> io::Result<bool> {
        let turns = self.relay != Some(relay);
        if turns {
            *self = Self::of_relay(relay, self.gathers, self.asked_bytes)?;
        }
        Ok(turns)
    }

    fn of(socket: Socket, receive_buffer_bytes: usize, offload: bool) -> io::Result<Self> {
        let socket = std::net::UdpSocket::from(socket);
        let state = UdpSocketState::new((&socket).into())?;
        let gathers = offload && state.gro_segments() > 1;
        if !gathers {
            // A kernel without this option does not combine datagrams either.
            let _ = setsockopt(&socket, sockopt::UdpGroSegment, &false);
        }
        room::count_beside_messages(&socket);
        let buffers = vec![vec![0; GRO_LIMIT_BYTES]; quinn_udp::BATCH_SIZE];
        let (asked_bytes, watch, relay) = (RECEIVE_BUFFER_BYTES, None, None);
        Ok(Self { socket, state, buffers, receive_buffer_bytes, asked_bytes, gathers, watch, relay })
    }

    /// Sends a datagram to the relay. One that can't leave is repeated like one that is lost.
    pub(crate) fn tell_relay(&self, datagram: &[u8]) {
        let _ = self.socket.send(datagram);
    }

    /// The size that the kernel granted, so that it can be reported: the default loses bursts.
    pub(crate) fn receive_buffer_bytes(&self) -> usize {
        self.receive_buffer_bytes
    }

    /// The kernel feature in use, for operators.
    pub(crate) fn path(&self) -> &'static str {
        if self.gathers {
            "batches (recvmmsg) of trains (UDP GRO)"
        } else {
            "batches (recvmmsg) of datagrams"
        }
    }

    /// One sentence on why a group is not received.
    pub(crate) fn reason(&self) -> Option<String> {
        self.watch.as_ref().map(Watch::reason)
    }

    /// Waits up to `patience_ms` for datagrams; true if there are any.
    pub(crate) fn wait(&self, patience_ms: u16) -> io::Result<bool> {
        let mut fds = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        Ok(poll(&mut fds, PollTimeout::from(patience_ms)).map_err(io::Error::from)? > 0)
    }

    /// Hands each datagram that has arrived to `take`, in the buffer that the next ones overwrite: about a train of
    /// them, the others at the next call.
    pub(crate) fn receive(&mut self, mut take: impl FnMut(&mut [u8])) -> io::Result<()> {
        let mut received_bytes = 0;
        loop {
            let (calls, bytes) = self.receive_batch(&mut take)?;
            received_bytes += bytes;
            if calls < quinn_udp::BATCH_SIZE || received_bytes >= TRAIN_BYTES {
                return Ok(());
            }
        }
    }

    /// Hands the datagrams of one message to `take`, and returns the kernel's counter of dropped datagrams beside it;
    /// where no message waits, the counter by itself. `None`: there were no drops, or the kernel does not say.
    pub(crate) fn receive_counted(&mut self, mut take: impl FnMut(&mut [u8])) -> io::Result<Option<u32>> {
        let Some(buffer) = self.buffers.first_mut() else { return Ok(None) };
        let Some(counted) = room::receive_counted(&self.socket, buffer)? else {
            return Ok(room::drops(&self.socket));
        };
        let train = buffer.get_mut(..counted.bytes).unwrap_or_default();
        train.chunks_mut(counted.segment_bytes.max(1)).for_each(&mut take);
        Ok(counted.drops)
    }

    /// The kernel's counter of datagrams that found no room, of 32 bits; `None`: the kernel does not say.
    pub(crate) fn drops(&self) -> Option<u32> {
        room::drops(&self.socket)
    }

    /// One call of the kernel; returns the number of its messages and their bytes.
    fn receive_batch(&mut self, take: &mut impl FnMut(&mut [u8])) -> io::Result<(usize, usize)> {
        let mut metas = [RecvMeta::default(); quinn_udp::BATCH_SIZE];
        let mut slices: Vec<IoSliceMut<'_>> =
            self.buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
        let received = match self.state.recv((&self.socket).into(), &mut slices, &mut metas) {
            Ok(count) => count,
            // The host of a relay refuses packets while nothing listens there.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionRefused) => 0,
            Err(error) => return Err(error),
        };
        drop(slices);
        let mut bytes = 0;
        for (buffer, meta) in self.buffers.iter_mut().zip(metas.iter()).take(received) {
            let train = buffer.get_mut(..meta.len).unwrap_or_default();
            bytes += train.len();
            train.chunks_mut(meta.stride.max(1)).for_each(&mut *take);
        }
        Ok((received, bytes))
    }
}

/// The MTU of the path of a connected socket.
fn mtu_bytes(socket: &Socket, peer: SocketAddr) -> Option<u64> {
    let found = match peer {
        SocketAddr::V4(_) => getsockopt(socket, sockopt::IpMtu).ok()?,
        SocketAddr::V6(_) => getsockopt(socket, Ipv6Mtu).ok()?,
    };
    u64::try_from(found).ok()
}

sockopt_impl!(
    /// The MTU of the path to a connected socket's peer.
    Ipv6Mtu,
    GetOnly,
    libc::IPPROTO_IPV6,
    libc::IPV6_MTU,
    libc::c_int
);

enum Direction {
    Receive,
    Send,
}

/// Requests a buffer beyond the system's limit (needs CAP_NET_ADMIN), or else of the limit itself; returns the
/// resulting size.
fn grow_buffer(socket: &Socket, bytes: usize, direction: Direction) -> usize {
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

/// Groups of link scope exist separately on each interface.
fn scoped(group: SocketAddr, interface: Option<&Interface>) -> SocketAddr {
    match (group, interface) {
        (SocketAddr::V6(v6), Some(interface)) if v6.ip().segments()[0] & 0xff0f <= 0xff02 => {
            SocketAddrV6::new(*v6.ip(), v6.port(), 0, interface.index).into()
        }
        _ => group,
    }
}

/// The size of a socket's receive buffer for a leg at this rate, by the kernel's accounting: the
/// pages of its datagrams, about twice their bytes.
pub(crate) fn needed_buffer_bytes(rate_bps: u64) -> u64 {
    (rate_bps / 8).saturating_mul(STALL_MS) / 1_000 * 2
}

/// The longest time for which a busy host may keep a reading thread from running.
const STALL_MS: u64 = 200;

/// The number of Ethernet-sized datagrams in one call. Shorter trains spare no buffer on the path: the pacer
/// lets out bursts of 64 KiB, unless the leg is set to a smaller one, and those are sent as one.
const TRAIN_DATAGRAMS: usize = 44;

/// The most bytes that one UDP send can carry.
const TRAIN_BYTES: usize = 65_000;

/// The most bytes that one receive can return.
const GRO_LIMIT_BYTES: usize = 65_536;

const SEND_BUFFER_BYTES: usize = 4 << 20;
const SEND_PATIENCE_MS: u16 = 100;

/// 16 MiB is a third of a second at 400 Mb/s, which a busy receiver needs to survive a stall; the
/// default buffer loses bursts that no priority can save.
pub(crate) const RECEIVE_BUFFER_BYTES: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn membership(group: SocketAddr) -> Membership {
        let (interface, buffer_bytes) = ("lo".to_owned(), RECEIVE_BUFFER_BYTES);
        Membership { group, source: None, interface, offload: true, buffer_bytes }
    }

    fn outlet(interface: &str) -> Outlet {
        Outlet { interface: interface.to_owned(), hops: 1, offload: true }
    }

    fn free_port() -> u16 {
        std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
    }

    /// The datagrams that arrive within a second, or the first `count` of them.
    fn hear(receiver: &mut GroupReceiver, count: usize) -> Vec<Bytes> {
        let (mut heard, began) = (Vec::new(), std::time::Instant::now());
        while heard.len() < count && began.elapsed().as_secs() < 1 {
            receiver.wait(100).unwrap();
            receiver.receive(|datagram| heard.push(Bytes::copy_from_slice(datagram))).unwrap();
        }
        heard
    }

    #[test]
    fn another_sender_to_a_group_of_one_source_stays_out() {
        let group: SocketAddr = format!("232.250.9.9:{}", free_port()).parse().unwrap();
        let mut wanted = GroupSender::open(group, &outlet("127.0.0.1")).unwrap();
        assert_eq!(wanted.source().to_string(), "127.0.0.1");
        let membership = Membership { source: Some(wanted.source()), ..membership(group) };
        let mut receiver = GroupReceiver::join(&membership).unwrap();
        let stranger = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).unwrap();
        stranger.bind(&"127.0.0.2:0".parse::<SocketAddr>().unwrap().into()).unwrap();
        stranger.set_multicast_if_v4(&std::net::Ipv4Addr::LOCALHOST).unwrap();
        for _ in 0..3 {
            stranger.send_to(b"stranger", &group.into()).unwrap();
            wanted.push(BytesMut::from(&b"wanted"[..])).unwrap();
        }
        wanted.flush().unwrap();
        assert_eq!(hear(&mut receiver, 3), ["wanted"; 3].map(|text| Bytes::from_static(text.as_bytes())));
    }

    #[test]
    fn trains_arrive_whole_with_and_without_the_kernels_help() {
        for (number, (sends, receives)) in
            [(true, true), (false, true), (true, false), (false, false)].into_iter().enumerate()
        {
            let group: SocketAddr = format!("239.250.9.{}:{}", number + 1, free_port()).parse().unwrap();
            let membership = Membership { offload: receives, ..membership(group) };
            let mut receiver = GroupReceiver::join(&membership).unwrap();
            assert!(receives || !receiver.path().contains("GRO"));
            let mut sender = GroupSender::open(group, &Outlet { offload: sends, ..outlet("lo") }).unwrap();
            assert!(sends || sender.path().contains("one datagram a call"));
            let datagrams: Vec<Bytes> =
                (0..40u8).map(|fill| vec![fill; 1_000 - usize::from(fill / 39)].into()).collect();
            let mut arena = BytesMut::new();
            for (place, datagram) in datagrams.iter().enumerate() {
                arena.extend_from_slice(datagram);
                // Half of them follow each other in memory, the others do not.
                let apart = || BytesMut::from(&datagram[..]);
                let pushed = if place < 20 { arena.split() } else { apart() };
                sender.push(pushed).unwrap();
            }
            sender.flush().unwrap();
            assert_eq!(hear(&mut receiver, 40), datagrams, "{sends} {receives}");
        }
    }

    #[test]
    fn datagrams_of_a_relay_leave_as_they_came() {
        let group: SocketAddr = format!("239.250.9.8:{}", free_port()).parse().unwrap();
        let mut receiver = GroupReceiver::join(&membership(group)).unwrap();
        for offload in [true, false] {
            let mut sender = GroupSender::open(group, &Outlet { offload, ..outlet("lo") }).unwrap();
            let datagrams: Vec<u8> = (0..63_500_u32).map(|place| (place / 1_000) as u8).collect();
            let (unsent, sent) = sender.send_all(&datagrams, 1_000);
            assert!(unsent == 0 && sent.is_ok());
            let heard = hear(&mut receiver, 64);
            assert_eq!((heard.len(), heard.concat() == datagrams), (64, true), "{offload}");
            assert_eq!(heard[63].len(), 500);
        }
    }

    #[test]
    fn the_needed_buffer_rides_out_a_fifth_of_a_second() {
        assert_eq!(needed_buffer_bytes(100_000_000), 5_000_000);
    }
}
