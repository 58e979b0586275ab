//! Extensions behind a packet: type, length, value (RFC 8972, section 4).
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::key::{Key, TAG_OCTETS};
use crate::octets::{put, take};

/// The ends of a request as its reflector sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The address from which it came.
    pub source: SocketAddr,
    /// The address at which it arrived.
    pub destination: SocketAddr,
}

/// The parts of an answer's extension that a sender understands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extension {
    /// The sender's address as the reflector sees it; differs behind a translation of addresses.
    pub seen_as: Option<SocketAddr>,
    /// The number of TLVs that the reflector does not know.
    pub unrecognized: usize,
    /// The number of TLVs that the reflector found malformed, or whose tag it refused.
    pub refused: usize,
}

/// Adds octets of padding, its header of four included; fewer add nothing.
pub fn push_padding(packet: &mut Vec<u8>, octets: usize) {
    let Some(value) = octets.min(MOST_VALUE).checked_sub(HEADER) else { return };
    push_header(packet, PADDING, value);
    packet.resize(packet.len() + value, 0);
}

/// Asks the reflector for the ends of the request as it sees them.
pub fn push_location_request(packet: &mut Vec<u8>) {
    push_header(packet, LOCATION, LOCATION_VALUE);
    packet.resize(packet.len() + PORTS, 0);
    push_header(packet, SOURCE_ADDRESS, ADDRESS_VALUE);
    packet.resize(packet.len() + ADDRESS_VALUE, 0);
}

/// Adds the tag over the extensions so far and the packet's sequence, which the authenticated mode needs.
pub fn push_tag(packet: &mut Vec<u8>, base: usize, key: &Key) {
    let sequence: [u8; 4] = take(packet, 0).unwrap_or_default();
    let tag = key.tag(&[&sequence, packet.get(base..).unwrap_or_default()]);
    push_header(packet, TAG, TAG_OCTETS);
    packet.extend_from_slice(&tag);
}

/// Reads the extension of an answer. Octets that begin no TLV are padding.
pub fn read(extension: &[u8]) -> Extension {
    let mut found = Extension::default();
    let mut rest = extension;
    while let Some((Header { flags, kind, .. }, value, behind)) = first(rest) {
        found.unrecognized += usize::from(flags & UNRECOGNIZED != 0);
        found.refused += usize::from(flags & (MALFORMED | NOT_AUTHENTIC) != 0);
        if kind == LOCATION && flags == 0 {
            found.seen_as = found.seen_as.or_else(|| source_of(value));
        }
        rest = behind;
    }
    found
}

/// Turns the extension of a request into that of its answer, in place: known TLVs are answered, unknown ones marked U,
/// malformed ones M, and all of them I where the tag of the authenticated mode is wrong. A first octet without the U
/// flag, which each sender of TLVs must set, begins padding of an older sender, and is left as it is.
pub fn reflect(extension: &mut [u8], ends: &Ends, request: u32, key: Option<&Key>) {
    if extension.first().is_none_or(|flags| flags & UNRECOGNIZED == 0) {
        return;
    }
    let refused = key.is_some_and(|key| !is_authentic(extension, request, key));
    let mut rest = extension;
    while rest.len() >= HEADER {
        let Some(header) = Header::read(rest).filter(|header| HEADER + header.length <= rest.len()) else {
            break;
        };
        let (whole, behind) = rest.split_at_mut(HEADER + header.length);
        let flags = if refused { NOT_AUTHENTIC } else { answer(header, whole.get_mut(HEADER..), ends) };
        put(whole, 0, [flags]);
        if flags & MALFORMED != 0 {
            return;
        }
        rest = behind;
    }
    // It is longer than the packet, or the packet ends within its header; nothing happens where the packet is over.
    put(rest, 0, [MALFORMED]);
}

/// Renews the tag of an answer's extension, if the request had one.
pub fn retag(extension: &mut [u8], answer: u32, key: &Key) {
    let Some(at) = place_of_tag(extension) else { return };
    if let Some((before, tag)) = extension.split_at_mut_checked(at) {
        put(tag, HEADER, key.tag(&[&answer.to_be_bytes(), before]));
    }
}

#[derive(Clone, Copy)]
struct Header {
    flags: u8,
    kind: u8,
    length: usize,
}

impl Header {
    fn read(octets: &[u8]) -> Option<Self> {
        let [flags, kind, high, low] = take(octets, 0)?;
        Some(Self { flags, kind, length: usize::from(u16::from_be_bytes([high, low])) })
    }
}

/// The first TLV, its value, and the octets behind it; `None`: there is no whole one.
fn first(octets: &[u8]) -> Option<(Header, &[u8], &[u8])> {
    let header = Header::read(octets)?;
    let (value, behind) = octets.get(HEADER..)?.split_at_checked(header.length)?;
    Some((header, value, behind))
}

/// Answers one TLV in place; returns its flags.
fn answer(header: Header, value: Option<&mut [u8]>, ends: &Ends) -> u8 {
    match (header.kind, value) {
        (PADDING, _) => 0,
        (TAG, _) => u8::from(header.length != TAG_OCTETS) * MALFORMED,
        (LOCATION, Some(value)) => answer_location(value, ends),
        _ => UNRECOGNIZED,
    }
}

fn answer_location(value: &mut [u8], ends: &Ends) -> u8 {
    let Some((ports, mut rest)) = value.split_at_mut_checked(PORTS) else { return MALFORMED };
    put(ports, 0, ends.destination.port().to_be_bytes());
    put(ports, 2, ends.source.port().to_be_bytes());
    while !rest.is_empty() {
        let Some(header) = Header::read(rest) else { return MALFORMED };
        let Some((whole, behind)) = rest.split_at_mut_checked(HEADER + header.length) else {
            return MALFORMED;
        };
        let address = match header.kind {
            DESTINATION_ADDRESS => Some(ends.destination.ip()),
            SOURCE_ADDRESS => Some(ends.source.ip()),
            _ => None,
        };
        match address {
            Some(_) if header.length != ADDRESS_VALUE => return MALFORMED,
            Some(address) => answer_address(whole, header.kind, address),
            None => put(whole, 0, [UNRECOGNIZED]),
        }
        rest = behind;
    }
    0
}

/// The type of an answered address names its family: that of the question plus one for IPv4, plus two for IPv6.
fn answer_address(whole: &mut [u8], question: u8, address: IpAddr) {
    let (step, octets) = match address.to_canonical() {
        IpAddr::V4(address) => (1, padded(address)),
        IpAddr::V6(address) => (2, address.octets()),
    };
    put(whole, 0, [0, question + step]);
    put(whole, HEADER, octets);
}

fn padded(address: Ipv4Addr) -> [u8; ADDRESS_VALUE] {
    let mut octets = [0; ADDRESS_VALUE];
    put(&mut octets, 0, address.octets());
    octets
}

/// The source of a location that a reflector has answered.
fn source_of(value: &[u8]) -> Option<SocketAddr> {
    let port = u16::from_be_bytes(take(value, 2)?);
    let mut rest = value.get(PORTS..)?;
    while let Some((header, value, behind)) = first(rest) {
        let address = match header.kind {
            SOURCE_V4 => take(value, 0).map(|octets: [u8; 4]| IpAddr::from(octets)),
            SOURCE_V6 => take(value, 0).map(|octets: [u8; 16]| IpAddr::from(Ipv6Addr::from(octets))),
            _ => None,
        };
        if let Some(address) = address {
            return Some(SocketAddr::new(address, port));
        }
        rest = behind;
    }
    None
}

/// Padding alone needs no tag (RFC 8972, section 4.8); anything behind a tag but padding is refused.
fn is_authentic(extension: &[u8], request: u32, key: &Key) -> bool {
    let Some(at) = place_of_tag(extension) else {
        return first(extension)
            .is_some_and(|(header, _, behind)| header.kind == PADDING && behind.is_empty());
    };
    let Some((before, tag)) = extension.split_at_checked(at) else { return false };
    let behind = tag.get(HEADER + TAG_OCTETS..).unwrap_or_default();
    let only_padding = behind.is_empty() || first(behind).is_some_and(|(header, ..)| header.kind == PADDING);
    take(tag, HEADER).is_some_and(|tag| key.accepts(&[&request.to_be_bytes(), before], tag)) && only_padding
}

fn place_of_tag(extension: &[u8]) -> Option<usize> {
    let mut rest = extension;
    while let Some((header, _, behind)) = first(rest) {
        if header.kind == TAG {
            return (header.length == TAG_OCTETS).then(|| extension.len() - rest.len());
        }
        rest = behind;
    }
    None
}

/// A sender sets U, so that a reflector without extensions leaves them marked as not recognized.
fn push_header(packet: &mut Vec<u8>, kind: u8, length: usize) {
    let [high, low] = u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes();
    packet.extend_from_slice(&[UNRECOGNIZED, kind, high, low]);
}

const HEADER: usize = 4;
const PORTS: usize = 4;
const ADDRESS_VALUE: usize = 16;
const LOCATION_VALUE: usize = PORTS + HEADER + ADDRESS_VALUE;

/// Far above any datagram that passes a network unfragmented.
const MOST_VALUE: usize = 60_000;

const UNRECOGNIZED: u8 = 0x80;
const MALFORMED: u8 = 0x40;
const NOT_AUTHENTIC: u8 = 0x20;

// Types of TLVs (RFC 8972, section 5.2), and of those within a location (section 5.3).
const PADDING: u8 = 1;
const LOCATION: u8 = 2;
const TAG: u8 = 8;
const DESTINATION_ADDRESS: u8 = 4;
const SOURCE_ADDRESS: u8 = 7;
const SOURCE_V4: u8 = 8;
const SOURCE_V6: u8 = 9;
