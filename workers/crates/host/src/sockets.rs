//! The TCP sockets of this network namespace, as the kernel describes them: also those of other processes.
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use nix::errno::Errno;

use crate::message::{Message, attribute};
use crate::netlink::{DUMP, Netlink, Refusal};

/// A connection to the kernel for its sockets; no privilege is needed.
pub struct Sockets(Netlink);

/// An open TCP connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpSocket {
    /// The end on this machine. IPv4 addresses are never mapped ones.
    pub local: SocketAddr,
    /// The other end.
    pub peer: SocketAddr,
    /// The number of the socket among the files of its processes (`socket:[…]` in `/proc/…/fd`); 0: no process has it.
    pub inode: u32,
    /// The kernel's `struct tcp_info`, as long as its release has it.
    pub info: Vec<u8>,
}

/// The address family of sockets. One that listens on an IPv6 address may serve IPv4 peers: these are found there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Sockets {
    /// Opens a connection, for the network namespace of the calling thread.
    ///
    /// # Errors
    /// Those of the system: a kernel without `sock_diag`, for example.
    pub fn open() -> io::Result<Self> {
        Netlink::open_for(NETLINK_SOCK_DIAG).map(Self)
    }

    /// The connections between these ends, local and peer; those that are gone are left out.
    ///
    /// The kernel finds each by its hash. For all connections it walks through the whole table, which takes as long as
    /// a hundred of these questions.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn between(&mut self, ends: &[(SocketAddr, SocketAddr)]) -> Result<Vec<TcpSocket>, Refusal> {
        let mut found = Vec::with_capacity(ends.len());
        for (local, peer) in ends {
            // Without the connection, the kernel answers with the socket that listens there, if there is one.
            let is_it = |it: &TcpSocket| it.local == canonical(*local) && it.peer == canonical(*peer);
            match self.0.ask(request_of(*local, *peer), |body| found.extend(socket(body).filter(is_it))) {
                Err(refusal) if refusal.errno != Errno::ENOENT => return Err(refusal),
                _ => {}
            }
        }
        Ok(found)
    }

    /// The connections of a family; with a local port, those of this port alone.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn tcp(&mut self, family: Family, local_port: Option<u16>) -> Result<Vec<TcpSocket>, Refusal> {
        let mut found = Vec::new();
        self.0.dump(request(family, local_port), |body| found.extend(socket(body)))?;
        Ok(found)
    }
}

impl Family {
    const fn number(self) -> u8 {
        match self {
            Self::V4 => 2,
            Self::V6 => 10,
        }
    }
}

/// `struct inet_diag_req_v2`, whose `struct inet_diag_sockid` has the local port alone.
fn request(family: Family, local_port: Option<u16>) -> Message {
    let mut header = begin(family);
    header.extend_from_slice(&local_port.unwrap_or(0).to_be_bytes());
    header.resize(REQUEST_BYTES, 0);
    Message::new(SOCK_DIAG_BY_FAMILY, DUMP, &header)
}

/// The same with a whole `struct inet_diag_sockid`: ports, addresses, any interface, no cookie.
fn request_of(local: SocketAddr, peer: SocketAddr) -> Message {
    let ends = [local.ip().to_canonical(), peer.ip().to_canonical()];
    let mut header = begin(if ends.iter().all(IpAddr::is_ipv4) { Family::V4 } else { Family::V6 });
    header.extend_from_slice(&local.port().to_be_bytes());
    header.extend_from_slice(&peer.port().to_be_bytes());
    for end in ends {
        match end {
            IpAddr::V4(address) => header.extend_from_slice(&[&address.octets()[..], &[0; 12]].concat()),
            IpAddr::V6(address) => header.extend_from_slice(&address.octets()),
        }
    }
    header.extend_from_slice(&0_u32.to_ne_bytes());
    header.extend_from_slice(&[0xff; 8]);
    Message::new(SOCK_DIAG_BY_FAMILY, 0, &header)
}

/// The address as an answer has it.
fn canonical(end: SocketAddr) -> SocketAddr {
    SocketAddr::new(end.ip().to_canonical(), end.port())
}

fn begin(family: Family) -> Vec<u8> {
    let mut header = vec![family.number(), TCP, 1 << (INFO - 1), 0];
    header.extend_from_slice(&OPEN_STATES.to_ne_bytes());
    header
}

/// Reads a `struct inet_diag_msg` and its attributes.
fn socket(body: &[u8]) -> Option<TcpSocket> {
    let family = *body.first()?;
    let port = |at: usize| Some(u16::from_be_bytes(*body.get(at..)?.first_chunk()?));
    let address = |at: usize| address(family, body.get(at..)?);
    let info = attribute(body.get(ANSWER_BYTES..)?, INFO)?;
    Some(TcpSocket {
        local: SocketAddr::new(address(8)?, port(4)?),
        peer: SocketAddr::new(address(24)?, port(6)?),
        inode: u32::from_ne_bytes(*body.get(INODE_AT..)?.first_chunk()?),
        info: info.to_vec(),
    })
}

fn address(family: u8, bytes: &[u8]) -> Option<IpAddr> {
    if family == Family::V4.number() {
        return Some(Ipv4Addr::from(*bytes.first_chunk::<4>()?).into());
    }
    Some(IpAddr::from(Ipv6Addr::from(*bytes.first_chunk::<16>()?)).to_canonical())
}

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const TCP: u8 = 6;

/// The attribute with `struct tcp_info`.
const INFO: u16 = 2;

/// `TCP_ESTABLISHED`, `TCP_FIN_WAIT1` and `TCP_CLOSE_WAIT`: those that may have bytes to send.
const OPEN_STATES: u32 = 1 << 1 | 1 << 4 | 1 << 8;

const REQUEST_BYTES: usize = 56;
const ANSWER_BYTES: usize = 72;
const INODE_AT: usize = 68;

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd as _;

    use super::*;

    fn find(port: u16, family: Family) -> Vec<TcpSocket> {
        Sockets::open().unwrap().tcp(family, Some(port)).unwrap()
    }

    #[test]
    fn a_connection_is_found_by_its_port_with_the_kernels_record() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = listener.local_addr().unwrap();
        assert_eq!(find(place.port(), Family::V4), [], "a socket that listens is no connection");
        let mut stream = TcpStream::connect(place).unwrap();
        let (accepted, peer) = listener.accept().unwrap();
        stream.write_all(&[1; 1_000]).unwrap();
        let found = find(place.port(), Family::V4);
        assert_eq!(found.iter().map(|it| (it.local, it.peer)).collect::<Vec<_>>(), [(place, peer)]);
        assert!(found[0].info.len() >= 192, "{}", found[0].info.len());
        let of_process = std::fs::read_link(format!("/proc/self/fd/{}", accepted.as_raw_fd())).unwrap();
        assert_eq!(of_process.to_string_lossy(), format!("socket:[{}]", found[0].inode));
        let other_end = find(peer.port(), Family::V4);
        assert_eq!((other_end[0].local, other_end[0].peer), (peer, place));
        assert_eq!(find(place.port(), Family::V6), []);
    }

    #[test]
    fn connections_are_found_one_by_one_and_those_that_are_gone_are_left_out() {
        let mut sockets = Sockets::open().unwrap();
        for place in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
            let Ok(listener) = TcpListener::bind(place) else {
                eprintln!("SKIPPED {place}: this host has no IPv6");
                continue;
            };
            let port = listener.local_addr().unwrap().port();
            let target = if place == "[::1]:0" { "::1" } else { "127.0.0.1" };
            let ends: Vec<_> = (0..3)
                .map(|_| {
                    let stream = TcpStream::connect((target, port)).unwrap();
                    let (accepted, _) = listener.accept().unwrap();
                    ((accepted.local_addr().unwrap(), accepted.peer_addr().unwrap()), stream, accepted)
                })
                .collect();
            let mut asked: Vec<_> = ends.iter().map(|(ends, ..)| *ends).collect();
            asked.insert(1, (asked[0].0, SocketAddr::new(asked[0].1.ip(), 1)));
            let found = sockets.between(&asked).unwrap();
            asked.remove(1);
            let expected: Vec<_> =
                asked.iter().map(|(here, there)| (canonical(*here), canonical(*there))).collect();
            assert_eq!(found.iter().map(|it| (it.local, it.peer)).collect::<Vec<_>>(), expected, "{place}");
            assert!(found.iter().all(|it| it.info.len() >= 192));
        }
    }

    #[test]
    fn an_ipv4_peer_of_an_ipv6_socket_has_its_own_address() {
        let Ok(listener) = TcpListener::bind("[::]:0") else {
            return eprintln!("SKIPPED: this host has no IPv6");
        };
        let port = listener.local_addr().unwrap().port();
        let _stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let _accepted = listener.accept().unwrap();
        let found = find(port, Family::V6);
        assert_eq!(found.len(), 1);
        assert!(found[0].peer.is_ipv4() && found[0].local.is_ipv4(), "{found:?}");
    }

    #[test]
    fn a_torn_answer_is_no_socket() {
        assert_eq!(socket(&[]), None);
        assert_eq!(socket(&[2; ANSWER_BYTES]), None);
        assert_eq!(socket(&[2; ANSWER_BYTES + 3]), None);
    }
}
