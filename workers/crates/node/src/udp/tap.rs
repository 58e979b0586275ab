//! Every multicast datagram that an interface of this host carries, as an IP packet.
//!
//! A relay of groups does not know the ports of the groups that it is asked for, so no UDP socket could receive them.
//! A packet socket also has the trains that this host or its hypervisor never cut into packets (UDP GSO): their header
//! says the length of a datagram.
use std::io::{self, ErrorKind, Read as _};
use std::os::fd::AsFd as _;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::setsockopt;
use socket2::{Domain, Protocol, SockFilter, Socket, Type};

use super::{Direction, Interface, RECEIVE_BUFFER_BYTES, grow_buffer};

/// The multicast datagrams of one interface; needs CAP_NET_RAW.
pub(crate) struct Tap {
    socket: Socket,
    buffer: Vec<u8>,
    link_bytes: usize,
}

/// A packet of a tap.
pub(crate) struct Tapped<'a> {
    /// The IP packet, perhaps with the padding of its frame.
    pub(crate) octets: &'a mut [u8],
    /// Of a train: the length of a datagram in it.
    pub(crate) segment_bytes: Option<usize>,
}

impl Tap {
    /// Opens a tap of the interface.
    pub(crate) fn open(interface: &Interface) -> io::Result<Self> {
        let link_bytes = link_bytes(&interface.name)?;
        let every_protocol = Protocol::from(i32::from(ETHERTYPE_ALL.to_be()));
        let socket = Socket::new(Domain::PACKET, Type::RAW, Some(every_protocol))?;
        socket.attach_filter(&filter(interface))?;
        setsockopt(&socket, VnetHeader, &1).map_err(io::Error::from)?;
        grow_buffer(&socket, RECEIVE_BUFFER_BYTES, Direction::Receive);
        socket.set_nonblocking(true)?;
        let mut tap = Self { socket, buffer: vec![0; LONGEST_BYTES], link_bytes };
        // Packets of other interfaces that came before the filter.
        while tap.read()?.is_some() {}
        Ok(tap)
    }

    /// Waits up to `patience_ms` for packets and hands each to `take`, as many as a train has at most.
    pub(crate) fn receive(&mut self, patience_ms: u16, mut take: impl FnMut(Tapped<'_>)) -> io::Result<()> {
        let mut polled = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        if poll(&mut polled, PollTimeout::from(patience_ms)).map_err(io::Error::from)? == 0 {
            return Ok(());
        }
        for _ in 0..MOST_AT_ONCE {
            let Some(length) = self.read()? else { return Ok(()) };
            let link_bytes = self.link_bytes;
            let Some((header, frame)) =
                self.buffer.get_mut(..length).and_then(|read| read.split_first_chunk_mut::<VNET_BYTES>())
            else {
                continue;
            };
            let [_, kind, _, _, s1, s2, ..] = *header;
            let segment = usize::from(u16::from_ne_bytes([s1, s2]));
            let segment_bytes = (kind == GSO_UDP && segment > 0).then_some(segment);
            if let Some(octets) = frame.get_mut(link_bytes..).filter(|_| kind == 0 || segment_bytes.is_some())
            {
                take(Tapped { octets, segment_bytes });
            }
        }
        Ok(())
    }

    fn read(&mut self) -> io::Result<Option<usize>> {
        loop {
            match (&self.socket).read(&mut self.buffer) {
                Ok(length) => return Ok(Some(length)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                // A kernel before 6.2 has no header for trains: that one is lost, as on a full link.
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::InvalidInput) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The length of the header before a packet.
fn link_bytes(interface: &str) -> io::Result<usize> {
    let kind = std::fs::read_to_string(format!("/sys/class/net/{interface}/type"))?;
    match kind.trim() {
        ETHERNET | LOOPBACK => Ok(14),
        NO_LINK => Ok(0),
        other => Err(io::Error::other(format!("interface {interface} is of kind {other}, and not Ethernet"))),
    }
}

/// A filter (classic BPF): UDP to groups, of this interface, that came in or leave here.
fn filter(interface: &Interface) -> Vec<SockFilter> {
    // The loopback interface shows each packet twice: as one that leaves, and as one that arrives.
    let loopback = interface.flags.contains(nix::net::if_::InterfaceFlags::IFF_LOOPBACK);
    let direction = if loopback { (JUMP_EQUAL, OUTGOING, 0, 12) } else { (JUMP_ANY_BIT, ODD_KINDS, 12, 0) };
    let program = [
        (LOAD_WORD, AD_INTERFACE, 0, 0),
        (JUMP_EQUAL, interface.index, 0, 14),
        (LOAD_WORD, AD_PACKET_KIND, 0, 0),
        direction,
        (LOAD_BYTE, NETWORK, 0, 0),
        (AND, 0xf0, 0, 0),
        (JUMP_EQUAL, 0x40, 0, 5),
        (LOAD_BYTE, NETWORK + 9, 0, 0),
        (JUMP_EQUAL, UDP, 0, 7),
        (LOAD_BYTE, NETWORK + 16, 0, 0),
        (AND, 0xf0, 0, 0),
        (JUMP_EQUAL, 0xe0, 3, 4),
        (JUMP_EQUAL, 0x60, 0, 3),
        (LOAD_BYTE, NETWORK + 24, 0, 0),
        (JUMP_EQUAL, 0xff, 0, 1),
        (RETURN, u32::MAX, 0, 0),
        (RETURN, 0, 0, 0),
    ];
    program.into_iter().map(|(code, k, jt, jf)| SockFilter::new(code, jt, jf, k)).collect()
}

nix::setsockopt_impl!(VnetHeader, libc::SOL_PACKET, PACKET_VNET_HDR, i32, SetStruct<'_, i32>);

#[derive(Clone, Copy, Debug)]
struct VnetHeader;

use nix::sys::socket::sockopt::SetStruct;

/// `linux/if_packet.h`, `linux/virtio_net.h`, `linux/if_arp.h`, `linux/if_ether.h`.
const PACKET_VNET_HDR: i32 = 15;
const VNET_BYTES: usize = 10;
const GSO_UDP: u8 = 5;
const ETHERNET: &str = "1";
const LOOPBACK: &str = "772";
const NO_LINK: &str = "65534";
const ETHERTYPE_ALL: u16 = 3;

/// `linux/filter.h`, `linux/bpf_common.h`; the kinds of packets are those of `linux/if_packet.h`, of which the odd ones
/// are broadcasts, packets to other hosts, and copies for this host.
const LOAD_WORD: u16 = 0x20;
const LOAD_BYTE: u16 = 0x30;
const AND: u16 = 0x54;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;
const AD_INTERFACE: u32 = 0xffff_f008;
const AD_PACKET_KIND: u32 = 0xffff_f004;
const NETWORK: u32 = 0xfff0_0000;
const ODD_KINDS: u32 = 1;
const OUTGOING: u32 = 4;
const UDP: u32 = 17;

const LONGEST_BYTES: usize = 1 << 17;
const MOST_AT_ONCE: usize = 64;
