//! Joining a group, of any source or of one, over IPv4 and IPv6 in the same way (RFC 3678).
use std::io;
use std::net::{IpAddr, SocketAddr};

use nix::sys::socket::setsockopt;
use socket2::Socket;

/// True for groups whose members select the sender: 232/8 and ff3x::/32 (RFC 4607).
pub(crate) fn is_source_specific(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(v4) => v4.octets()[0] == 232,
        IpAddr::V6(v6) => v6.segments()[0] & 0xfff0 == 0xff30 && v6.segments()[1] == 0,
    }
}

/// Has the socket receive packets from `source` (from anywhere, if `None`) to the group, on the interface
/// with this number (0: by the routes).
pub(crate) fn join(socket: &Socket, group: IpAddr, source: Option<IpAddr>, interface: u32) -> io::Result<()> {
    let group_address = Address::of(group);
    let joined = match (group, source) {
        (IpAddr::V4(_), None) => setsockopt(socket, JoinV4, &Request { interface, group: group_address }),
        (IpAddr::V6(_), None) => setsockopt(socket, JoinV6, &Request { interface, group: group_address }),
        (IpAddr::V4(_), Some(source)) => {
            let source = Address::of(source);
            setsockopt(socket, JoinSourceV4, &SourceRequest { interface, group: group_address, source })
        }
        (IpAddr::V6(_), Some(source)) => {
            let source = Address::of(source);
            setsockopt(socket, JoinSourceV6, &SourceRequest { interface, group: group_address, source })
        }
    };
    joined.map_err(io::Error::from)
}

/// The kernel's `group_req`.
#[repr(C)]
struct Request {
    interface: u32,
    group: Address,
}

/// The kernel's `group_source_req`.
#[repr(C)]
struct SourceRequest {
    interface: u32,
    group: Address,
    source: Address,
}

/// A `sockaddr_storage`: its size, its alignment, and an address in the kernel's layout.
#[repr(C)]
struct Address {
    align: [usize; 0],
    family: u16,
    rest: [u8; 126],
}

impl Address {
    /// The port (2 bytes) stays zero. IPv4: the address follows; IPv6: flow label (4), address, scope (4).
    fn of(address: IpAddr) -> Self {
        let mut rest = [0; 126];
        let (family, start, octets) = match address {
            IpAddr::V4(v4) => (libc::AF_INET, 2, v4.octets().to_vec()),
            IpAddr::V6(v6) => (libc::AF_INET6, 6, v6.octets().to_vec()),
        };
        for (place, octet) in rest.iter_mut().skip(start).zip(octets) {
            *place = octet;
        }
        Self { align: [], family: u16::try_from(family).unwrap_or_default(), rest }
    }
}

#[derive(Clone, Copy, Debug)]
struct JoinV4;
#[derive(Clone, Copy, Debug)]
struct JoinV6;
#[derive(Clone, Copy, Debug)]
struct JoinSourceV4;
#[derive(Clone, Copy, Debug)]
struct JoinSourceV6;

nix::setsockopt_impl!(JoinV4, libc::IPPROTO_IP, libc::MCAST_JOIN_GROUP, Request, SetStruct<'_, Request>);
nix::setsockopt_impl!(JoinV6, libc::IPPROTO_IPV6, libc::MCAST_JOIN_GROUP, Request, SetStruct<'_, Request>);
nix::setsockopt_impl!(
    JoinSourceV4,
    libc::IPPROTO_IP,
    libc::MCAST_JOIN_SOURCE_GROUP,
    SourceRequest,
    SetStruct<'_, SourceRequest>
);
nix::setsockopt_impl!(
    JoinSourceV6,
    libc::IPPROTO_IPV6,
    libc::MCAST_JOIN_SOURCE_GROUP,
    SourceRequest,
    SetStruct<'_, SourceRequest>
);

use nix::sys::socket::sockopt::SetStruct;

/// Checks the group and the source of a leg; the error is a sentence.
pub(crate) fn check(group: SocketAddr, source: Option<IpAddr>) -> Result<(), String> {
    let address = group.ip();
    if !address.is_multicast() {
        return Err(format!("{address} is not a multicast group"));
    }
    match source {
        Some(source) if source.is_ipv4() != address.is_ipv4() => {
            Err(format!("the group {address} and its source {source} are of different IP versions"))
        }
        None if is_source_specific(address) => Err(format!(
            "{address} is a source-specific group, and the hub did not name the source; update the hub"
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_kernels_layout() {
        assert_eq!(size_of::<Address>(), size_of::<libc::sockaddr_storage>());
        assert_eq!(align_of::<Address>(), align_of::<libc::sockaddr_storage>());
        let v6 = Address::of("ff3e::8000:1".parse().unwrap());
        assert_eq!(v6.family, 10);
        assert_eq!((v6.rest[6], v6.rest[7], v6.rest[21]), (0xff, 0x3e, 1));
        assert_eq!(Address::of("232.1.2.3".parse().unwrap()).rest[..6], [0, 0, 232, 1, 2, 3]);
    }

    #[test]
    fn groups_of_one_source_are_known_by_their_address() {
        for group in ["232.0.0.1", "232.255.255.255", "ff3e::8000:1", "ff35::1"] {
            assert!(is_source_specific(group.parse().unwrap()), "{group}");
        }
        for group in ["239.77.0.1", "231.255.255.255", "233.0.0.1", "ff15::1", "ff3e:30:2001:db8::1"] {
            assert!(!is_source_specific(group.parse().unwrap()), "{group}");
        }
    }

    #[test]
    fn what_is_no_membership_is_said() {
        let group = |text: &str| SocketAddr::new(text.parse().unwrap(), 9);
        assert!(check(group("10.0.0.1"), None).unwrap_err().contains("not a multicast group"));
        assert!(check(group("232.0.0.1"), None).unwrap_err().contains("source-specific"));
        let source = "2001:db8::1".parse().ok();
        assert!(check(group("232.0.0.1"), source).unwrap_err().contains("different IP versions"));
        assert_eq!(check(group("239.0.0.1"), None), Ok(()));
        assert_eq!(check(group("ff3e::8000:1"), source), Ok(()));
    }
}
