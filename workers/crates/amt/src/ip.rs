//! IPv4 (RFC 791), IPv6 (RFC 8200) and UDP (RFC 768): packets are read within their bounds and written with checksums.
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;

use thiserror::Error;

/// Octets are none of this protocol.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Malformed {
    /// They end before their fields.
    #[error("it ends before its fields")]
    TooShort,
    /// They are of another version, type or protocol.
    #[error("it is of another version, type or protocol")]
    OtherKind,
    /// A checksum is wrong.
    #[error("its checksum is wrong")]
    Checksum,
    /// They have more records or sources than a host has.
    #[error("it has more records or sources than are read")]
    TooMany,
}

/// An IP packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The sender.
    pub source: IpAddr,
    /// The host or group.
    pub destination: IpAddr,
    /// TTL or hop limit.
    pub hops: u8,
    /// The protocol behind the header and its options.
    pub protocol: u8,
    /// The place of that protocol's octets.
    pub body: Range<usize>,
    /// True for a fragment, which is not whole.
    pub is_fragment: bool,
}

impl Packet {
    /// Reads the header of a packet. Octets behind the packet's own length are none of its body.
    ///
    /// # Errors
    ///
    /// [`Malformed`], if it is no IPv4 or IPv6, ends early, or an IPv4 header's checksum is wrong.
    pub fn read(octets: &[u8]) -> Result<Self, Malformed> {
        match octets.first().map(|first| first >> 4) {
            Some(4) => read_v4(octets),
            Some(6) => read_v6(octets),
            Some(_) => Err(Malformed::OtherKind),
            None => Err(Malformed::TooShort),
        }
    }

    /// The UDP header of a packet that was read from `octets`, without a look at its checksum.
    ///
    /// # Errors
    ///
    /// [`Malformed`], if the packet is a fragment, of another protocol, or ends early.
    pub fn udp(&self, octets: &[u8]) -> Result<Udp, Malformed> {
        if self.protocol != UDP || self.is_fragment {
            return Err(Malformed::OtherKind);
        }
        let header = octets.get(self.body.clone()).and_then(|body| body.first_chunk::<8>());
        let [s1, s2, d1, d2, l1, l2, _, _] = *header.ok_or(Malformed::TooShort)?;
        let length = usize::from(u16::from_be_bytes([l1, l2]));
        if length < 8 || length > self.body.len() {
            return Err(Malformed::TooShort);
        }
        let ports = (u16::from_be_bytes([s1, s2]), u16::from_be_bytes([d1, d2]));
        Ok(Udp { source: ports.0, destination: ports.1, body: self.body.start + 8..self.body.start + length })
    }
}

/// A UDP header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Udp {
    /// The sender's port.
    pub source: u16,
    /// The receivers' port.
    pub destination: u16,
    /// The place of the datagram.
    pub body: Range<usize>,
}

/// A UDP datagram as an IP packet; both ends have addresses of one family, otherwise it is empty.
pub fn datagram(source: SocketAddr, destination: SocketAddr, hops: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len() + 8).unwrap_or(0);
    let ports = [source.port().to_be_bytes(), destination.port().to_be_bytes(), length.to_be_bytes(), [0, 0]];
    let mut datagram = [ports.as_flattened(), body].concat();
    let sum = finish(pseudo_sum(source.ip(), destination.ip(), UDP, datagram.len()) + sum_of(&datagram));
    put(&mut datagram, 6, if sum == 0 { [0xff, 0xff] } else { sum.to_be_bytes() });
    packet(source.ip(), destination.ip(), hops, UDP, &[], &datagram)
}

/// An IP packet. `options` are IPv4's options, or IPv6's hop-by-hop header with its first octet to be written here.
pub(crate) fn packet(
    source: IpAddr,
    destination: IpAddr,
    hops: u8,
    protocol: u8,
    options: &[u8],
    body: &[u8],
) -> Vec<u8> {
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let length = u16::try_from(20 + options.len() + body.len()).unwrap_or(0).to_be_bytes();
            let words = u8::try_from(5 + options.len() / 4).unwrap_or(5);
            let start = [0x40 | words, 0, length[0], length[1], 0, 0, 0x40, 0, hops, protocol, 0, 0];
            let mut header = [&start[..], &source.octets(), &destination.octets(), options].concat();
            let sum = finish(sum_of(&header));
            put(&mut header, 10, sum.to_be_bytes());
            [&header[..], body].concat()
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let length = u16::try_from(options.len() + body.len()).unwrap_or(0).to_be_bytes();
            let next = if options.is_empty() { protocol } else { HOP_BY_HOP };
            let start = [0x60, 0, 0, 0, length[0], length[1], next, hops];
            let mut options = options.to_vec();
            put(&mut options, 0, [protocol]);
            [&start[..], &source.octets(), &destination.octets(), &options, body].concat()
        }
        _ => Vec::new(),
    }
}

/// Has a packet leave a router: one hop less. False if it may not travel on.
pub fn forward(octets: &mut [u8]) -> bool {
    let at = match octets.first().map(|first| first >> 4) {
        Some(4) => 8,
        Some(6) => 7,
        _ => return false,
    };
    let Some(hops) = octets.get_mut(at) else { return false };
    if *hops <= 1 {
        return false;
    }
    *hops -= 1;
    if at == 8 {
        let length = usize::from(octets.first().copied().unwrap_or(0) & 15) * 4;
        put(octets, 10, [0, 0]);
        let sum = finish(sum_of(octets.get(..length).unwrap_or_default()));
        put(octets, 10, sum.to_be_bytes());
    }
    true
}

/// Completes a UDP checksum that the sending kernel left to its card: then it is that of the pseudo-header alone.
/// False if the checksum is neither complete nor of that kind.
pub fn complete_udp(octets: &mut [u8], packet: &Packet) -> bool {
    let Some(datagram) = octets.get_mut(packet.body.clone()) else { return false };
    let pseudo = pseudo_sum(packet.source, packet.destination, UDP, datagram.len());
    let Some([high, low]) = datagram.get(6..8).and_then(|field| field.first_chunk().copied()) else {
        return false;
    };
    let found = u16::from_be_bytes([high, low]);
    let is_v4 = packet.source.is_ipv4();
    if (found == 0 && is_v4) || finish(pseudo + sum_of(datagram)) == 0 {
        return true;
    }
    if found != !finish(pseudo) {
        return false;
    }
    put(datagram, 6, [0, 0]);
    let sum = finish(pseudo + sum_of(datagram));
    put(datagram, 6, if sum == 0 { [0xff, 0xff] } else { sum.to_be_bytes() });
    true
}

/// The sum of the pseudo-header (RFC 768; RFC 8200, section 8.1).
pub(crate) fn pseudo_sum(source: IpAddr, destination: IpAddr, protocol: u8, length: usize) -> u32 {
    let of = |address: IpAddr| match address {
        IpAddr::V4(v4) => sum_of(&v4.octets()),
        IpAddr::V6(v6) => sum_of(&v6.octets()),
    };
    let length = u32::try_from(length).unwrap_or(0);
    of(source) + of(destination) + u32::from(protocol) + (length >> 16) + (length & 0xffff)
}

/// The sum of 16-bit words (RFC 1071), not yet folded: octets of one packet never overflow it.
pub(crate) fn sum_of(octets: &[u8]) -> u32 {
    let (pairs, rest) = octets.as_chunks::<2>();
    let sum: u32 = pairs.iter().map(|pair| u32::from(u16::from_be_bytes(*pair))).sum();
    sum + rest.first().map_or(0, |last| u32::from(*last) << 8)
}

/// Folds a sum and inverts it.
pub(crate) fn finish(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !u16::try_from(sum).unwrap_or(0)
}

pub(crate) fn put<const N: usize>(octets: &mut [u8], at: usize, value: [u8; N]) {
    if let Some(place) = octets.get_mut(at..at + N) {
        place.copy_from_slice(&value);
    }
}

fn read_v4(octets: &[u8]) -> Result<Packet, Malformed> {
    let header = octets.first_chunk::<20>().ok_or(Malformed::TooShort)?;
    let [first, _, l1, l2, _, _, f1, f2, hops, protocol, _, _, s1, s2, s3, s4, d1, d2, d3, d4] = *header;
    let start = usize::from(first & 15) * 4;
    let end = usize::from(u16::from_be_bytes([l1, l2]));
    if start < 20 || end < start || octets.len() < end {
        return Err(Malformed::TooShort);
    }
    if finish(sum_of(octets.get(..start).unwrap_or_default())) != 0 {
        return Err(Malformed::Checksum);
    }
    Ok(Packet {
        source: IpAddr::V4(Ipv4Addr::new(s1, s2, s3, s4)),
        destination: IpAddr::V4(Ipv4Addr::new(d1, d2, d3, d4)),
        hops,
        protocol,
        body: start..end,
        // More fragments follow, or earlier ones came.
        is_fragment: u16::from_be_bytes([f1, f2]) & 0x3fff != 0,
    })
}

fn read_v6(octets: &[u8]) -> Result<Packet, Malformed> {
    let header = octets.first_chunk::<40>().ok_or(Malformed::TooShort)?;
    let [_, _, _, _, l1, l2, next, hops, addresses @ ..] = *header;
    let source = addresses.first_chunk::<16>().copied().unwrap_or_default();
    let destination = addresses.last_chunk::<16>().copied().unwrap_or_default();
    let (mut start, end) = (40, 40 + usize::from(u16::from_be_bytes([l1, l2])));
    if octets.len() < end {
        return Err(Malformed::TooShort);
    }
    let mut protocol = next;
    if protocol == HOP_BY_HOP {
        let [following, length] =
            *octets.get(start..end).and_then(|at| at.first_chunk()).ok_or(Malformed::TooShort)?;
        (protocol, start) = (following, start + 8 + usize::from(length) * 8);
    }
    if start > end {
        return Err(Malformed::TooShort);
    }
    Ok(Packet {
        source: IpAddr::V6(Ipv6Addr::from(source)),
        destination: IpAddr::V6(Ipv6Addr::from(destination)),
        hops,
        protocol,
        body: start..end,
        is_fragment: protocol == FRAGMENT,
    })
}

/// The number of UDP.
pub const UDP: u8 = 17;
pub(crate) const IGMP: u8 = 2;
pub(crate) const ICMP_V6: u8 = 58;
const HOP_BY_HOP: u8 = 0;
const FRAGMENT: u8 = 44;

#[cfg(test)]
mod tests {
    use super::*;

    fn ends() -> [(SocketAddr, SocketAddr); 2] {
        [("10.0.0.1:4000", "232.1.2.3:17001"), ("[2001:db8::1]:4000", "[ff3e::8000:1]:17001")]
            .map(|(source, group)| (source.parse().unwrap(), group.parse().unwrap()))
    }

    #[test]
    fn a_datagram_is_read_as_it_was_written() {
        for (source, group) in ends() {
            for body in [&b""[..], b"odd", &[0xff; 1_400]] {
                let mut octets = datagram(source, group, 9, body);
                let packet = Packet::read(&octets).unwrap();
                assert_eq!((packet.source, packet.destination, packet.hops), (source.ip(), group.ip(), 9));
                let udp = packet.udp(&octets).unwrap();
                assert_eq!((udp.source, udp.destination), (source.port(), group.port()));
                assert_eq!(&octets[udp.body], body);
                assert!(complete_udp(&mut octets.clone(), &packet));
                octets.extend([0; 6]);
                assert_eq!(Packet::read(&octets), Ok(packet), "the padding of a frame is none of it");
            }
        }
    }

    #[test]
    fn a_router_takes_one_hop_and_ends_the_last() {
        for (source, group) in ends() {
            let mut octets = datagram(source, group, 3, b"x");
            assert!(forward(&mut octets));
            assert_eq!(Packet::read(&octets).map(|packet| packet.hops), Ok(2));
            assert!(forward(&mut octets) && !forward(&mut octets));
        }
        assert!(!forward(&mut []) && !forward(&mut [0x45]));
    }

    #[test]
    fn a_checksum_left_to_the_card_is_completed_and_a_wrong_one_refused() {
        for (source, group) in ends() {
            let whole = datagram(source, group, 3, b"content");
            let packet = Packet::read(&whole).unwrap();
            let mut octets = whole.clone();
            let left = !finish(pseudo_sum(source.ip(), group.ip(), UDP, packet.body.len()));
            put(&mut octets, packet.body.start + 6, left.to_be_bytes());
            assert!(complete_udp(&mut octets, &packet));
            assert_eq!(octets, whole);
            put(&mut octets, packet.body.start + 9, [0]);
            assert!(!complete_udp(&mut octets, &packet));
        }
    }

    #[test]
    fn packets_that_are_cut_or_changed_are_refused() {
        for (source, group) in ends() {
            let octets = datagram(source, group, 3, b"content");
            for length in 0..octets.len() {
                assert_eq!(Packet::read(&octets[..length]), Err(Malformed::TooShort), "{length}");
            }
        }
        let mut octets = datagram(ends()[0].0, ends()[0].1, 3, b"content");
        octets[8] = 4;
        assert_eq!(Packet::read(&octets), Err(Malformed::Checksum));
        assert_eq!(Packet::read(&[0x50; 60]), Err(Malformed::OtherKind));
    }

    #[test]
    fn a_fragment_has_no_datagram() {
        let (source, group) = ends()[0];
        let mut octets = datagram(source, group, 3, b"content");
        octets[6] = 0x20;
        put(&mut octets, 10, [0, 0]);
        let sum = finish(sum_of(&octets[..20]));
        put(&mut octets, 10, sum.to_be_bytes());
        let packet = Packet::read(&octets).unwrap();
        assert!(packet.is_fragment && packet.udp(&octets).is_err());
    }
}
