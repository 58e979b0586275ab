//! Interfaces and their addresses.
use std::net::IpAddr;

use crate::message::{Message, Nested, attribute, attributes, read_u16, read_u32, text};
use crate::netlink::{APPEND, CREATE, DUMP, EXCLUSIVE, Netlink, REPLACE, Refusal};

/// The present state of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// True if it is switched on.
    pub up: bool,
    /// The maximum size of its packets.
    pub mtu: u32,
    /// Bytes of frames that it has sent and received since its creation.
    pub bytes: (u64, u64),
    /// The number of the bridge that it is a port of.
    pub master: Option<u32>,
    /// Its kind, if it is virtual.
    pub kind: Option<Kind>,
}

/// The kind of a virtual interface, as far as circuits need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A tunnel.
    Vxlan(Vxlan),
    /// A tag on another interface.
    Vlan {
        /// The tag.
        tag: u16,
        /// The interface below.
        lower: u32,
    },
    /// A bridge.
    Bridge,
    /// Anything else.
    Other(String),
}

/// A VXLAN tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vxlan {
    /// Its network identifier.
    pub vni: u32,
    /// Its own address on the underlay.
    pub local: IpAddr,
    /// The destination of frames with an unknown address: the other end, or a group; none: every all-zeros entry of
    /// the forwarding table.
    pub remote: Option<IpAddr>,
    /// The interface below.
    pub lower: u32,
}

/// All interfaces of the namespace.
pub fn links(netlink: &mut Netlink) -> Result<Vec<Link>, Refusal> {
    let mut links = Vec::new();
    netlink.dump(Message::new(GET_LINK, DUMP, &[0; LINK_HEADER]), |body| links.extend(Link::read(body)))?;
    Ok(links)
}

/// Creates a bridge that passes frames between its two ports and keeps no table of addresses, switched off.
pub(crate) fn make_bridge(netlink: &mut Netlink, name: &str) -> Result<(), Refusal> {
    netlink.change(
        Message::new(NEW_LINK, CREATE | EXCLUSIVE, &[0; LINK_HEADER])
            .text(NAME, name)
            .nested(LINK_INFO, |info| {
                info.text(INFO_KIND, "bridge").nested(INFO_DATA, |data| data.put(BRIDGE_SNOOPING, &[0]))
            }),
    )
}

/// Makes an interface a port of a bridge. Neither learns addresses: with two ports, each frame goes to the other one.
pub(crate) fn join(netlink: &mut Netlink, index: u32, bridge: u32) -> Result<(), Refusal> {
    netlink.change(Message::new(NEW_LINK, 0, &link_header(index, false)).number(MASTER, bridge))?;
    netlink.change(Message::new(NEW_LINK, 0, &link_header(index, false)).nested(LINK_INFO, |info| {
        info.text(INFO_PORT_KIND, "bridge").nested(INFO_PORT_DATA, |data| data.put(PORT_LEARNING, &[0]))
    }))
}

/// Keeps the host's own IPv6 off an interface that only passes frames on. Without IPv6 there is nothing to keep off.
pub(crate) fn silence(netlink: &mut Netlink, index: u32) {
    let _ =
        netlink.change(Message::new(NEW_LINK, 0, &link_header(index, false)).nested(AF_SPEC, |families| {
            families.nested(FAMILY_IPV6.into(), |six| six.put(ADDRESS_MODE, &[ADDRESS_MODE_NONE]))
        }));
}

/// Creates a tunnel, switched off. It `learns` the ends behind which addresses are, unless it is a side of a bridge.
pub(crate) fn make_vxlan(
    netlink: &mut Netlink,
    name: &str,
    vxlan: &Vxlan,
    learns: bool,
) -> Result<(), Refusal> {
    let data = |data: Nested| {
        let data = data.number(VXLAN_ID, vxlan.vni).number(VXLAN_LINK, vxlan.lower);
        let data = put_address(data, (VXLAN_LOCAL, VXLAN_LOCAL6), vxlan.local);
        let data = vxlan
            .remote
            .into_iter()
            .fold(data, |data, to| put_address(data, (VXLAN_GROUP, VXLAN_GROUP6), to));
        // The network between the ends serves frames by the class that they have inside.
        let data = data.put(VXLAN_TOS, &[INHERIT]).put(VXLAN_LEARNING, &[learns.into()]);
        data.put(VXLAN_PORT, &VXLAN_UDP_PORT.to_be_bytes())
    };
    netlink.change(
        Message::new(NEW_LINK, CREATE | EXCLUSIVE, &[0; LINK_HEADER])
            .text(NAME, name)
            .nested(LINK_INFO, |info| info.text(INFO_KIND, "vxlan").nested(INFO_DATA, data)),
    )
}

/// Creates an interface for one tag, switched off.
pub(crate) fn make_vlan(netlink: &mut Netlink, name: &str, tag: u16, lower: u32) -> Result<(), Refusal> {
    netlink.change(
        Message::new(NEW_LINK, CREATE | EXCLUSIVE, &[0; LINK_HEADER])
            .text(NAME, name)
            .number(LOWER, lower)
            .nested(LINK_INFO, |info| {
                info.text(INFO_KIND, "vlan").nested(INFO_DATA, |data| data.put(VLAN_ID, &tag.to_ne_bytes()))
            }),
    )
}

pub(crate) fn delete_link(netlink: &mut Netlink, index: u32) -> Result<(), Refusal> {
    netlink.change(Message::new(DELETE_LINK, 0, &link_header(index, false)))
}

/// Limits the number of segments that may leave in one bundle.
pub(crate) fn bundle_at_most(netlink: &mut Netlink, index: u32, segments: u32) -> Result<(), Refusal> {
    netlink.change(Message::new(NEW_LINK, 0, &link_header(index, false)).number(GSO_MAX_SEGMENTS, segments))
}

pub(crate) fn switch_on(netlink: &mut Netlink, index: u32) -> Result<(), Refusal> {
    netlink.change(Message::new(NEW_LINK, 0, &link_header(index, true)))
}

/// Has a tunnel also send frames for all, or for an unknown address, to this end.
pub(crate) fn replicate_to(netlink: &mut Netlink, index: u32, to: IpAddr) -> Result<(), Refusal> {
    let message =
        Message::new(NEW_NEIGHBOUR, CREATE | APPEND, &bridge_neighbour(index)).put(LINK_ADDRESS, &[0; 6]);
    netlink.change(put_address(message, (DESTINATION, DESTINATION), to))
}

/// Has a tunnel send such frames to this end no more.
pub(crate) fn replicate_no_more(netlink: &mut Netlink, index: u32, to: IpAddr) -> Result<(), Refusal> {
    let message = Message::new(DELETE_NEIGHBOUR, 0, &bridge_neighbour(index)).put(LINK_ADDRESS, &[0; 6]);
    netlink.change(put_address(message, (DESTINATION, DESTINATION), to))
}

/// The ends that a tunnel replicates to.
pub(crate) fn replicated_to(netlink: &mut Netlink, index: u32) -> Result<Vec<IpAddr>, Refusal> {
    let mut ends = Vec::new();
    netlink.dump(Message::new(GET_NEIGHBOUR, DUMP, &bridge_neighbour(0)), |body| {
        let rest = body.get(NEIGHBOUR_HEADER..).unwrap_or_default();
        let to_all = attribute(rest, LINK_ADDRESS).is_some_and(|address| address == [0; 6]);
        if read_u32(body, 4) == Some(index) && to_all {
            ends.extend(attribute(rest, DESTINATION).and_then(address));
        }
    })?;
    Ok(ends)
}

/// The addresses of an interface, each with the length of its prefix.
pub fn addresses(netlink: &mut Netlink, index: u32) -> Result<Vec<(IpAddr, u8)>, Refusal> {
    let mut found = Vec::new();
    netlink.dump(Message::new(GET_ADDRESS, DUMP, &[0; ADDRESS_HEADER]), |body| {
        let rest = body.get(ADDRESS_HEADER..).unwrap_or_default();
        let value = attribute(rest, ADDRESS_LOCAL).or_else(|| attribute(rest, ADDRESS));
        if read_u32(body, 4) == Some(index)
            && let (Some(address), Some(prefix)) = (value.and_then(address), body.get(1))
        {
            found.push((address, *prefix));
        }
    })?;
    Ok(found)
}

pub(crate) fn give_address(
    netlink: &mut Netlink,
    index: u32,
    address: IpAddr,
    prefix: u8,
) -> Result<(), Refusal> {
    let header = address_header(index, address, prefix);
    let message = Message::new(NEW_ADDRESS, CREATE | REPLACE, &header);
    let message = put_address(message, (ADDRESS_LOCAL, ADDRESS_LOCAL), address);
    netlink.change(put_address(message, (ADDRESS, ADDRESS), address))
}

pub(crate) fn take_address(
    netlink: &mut Netlink,
    index: u32,
    address: IpAddr,
    prefix: u8,
) -> Result<(), Refusal> {
    let message = Message::new(DELETE_ADDRESS, 0, &address_header(index, address, prefix));
    netlink.change(put_address(message, (ADDRESS_LOCAL, ADDRESS_LOCAL), address))
}

impl Link {
    fn read(body: &[u8]) -> Option<Self> {
        let rest = body.get(LINK_HEADER..)?;
        let number = |kind| attribute(rest, kind).and_then(|value| read_u32(value, 0)).unwrap_or(0);
        Some(Self {
            index: read_u32(body, 4)?,
            name: text(attribute(rest, NAME)?),
            up: read_u32(body, 8)? & FLAG_UP != 0,
            mtu: number(MTU),
            bytes: attribute(rest, STATS64)
                .map_or((0, 0), |stats| (read_u64(stats, 24), read_u64(stats, 16))),
            master: attribute(rest, MASTER).and_then(|value| read_u32(value, 0)),
            kind: attribute(rest, LINK_INFO).map(|info| Kind::read(info, number(LOWER))),
        })
    }
}

impl Kind {
    fn read(info: &[u8], lower: u32) -> Self {
        let name = attribute(info, INFO_KIND).map(text).unwrap_or_default();
        let data = attribute(info, INFO_DATA).unwrap_or_default();
        let known = match name.as_str() {
            "vxlan" => Vxlan::read(data).map(Self::Vxlan),
            "bridge" => Some(Self::Bridge),
            "vlan" => attribute(data, VLAN_ID)
                .and_then(|value| read_u16(value, 0))
                .map(|tag| Self::Vlan { tag, lower }),
            _ => None,
        };
        known.unwrap_or(Self::Other(name))
    }
}

impl Vxlan {
    fn read(data: &[u8]) -> Option<Self> {
        let place = |kinds: [u16; 2]| {
            let mut found = attributes(data).filter(|(kind, _)| kinds.contains(kind));
            found.find_map(|(_, value)| address(value))
        };
        let number = |kind| attribute(data, kind).and_then(|value| read_u32(value, 0));
        Some(Self {
            vni: number(VXLAN_ID)?,
            local: place([VXLAN_LOCAL, VXLAN_LOCAL6])?,
            remote: place([VXLAN_GROUP, VXLAN_GROUP6]).filter(|to| !to.is_unspecified()),
            lower: number(VXLAN_LINK).unwrap_or(0),
        })
    }
}

fn put_address(message: Message, (four, six): (u16, u16), address: IpAddr) -> Message {
    match address {
        IpAddr::V4(address) => message.put(four, &address.octets()),
        IpAddr::V6(address) => message.put(six, &address.octets()),
    }
}

fn address(value: &[u8]) -> Option<IpAddr> {
    match value.len() {
        4 => <[u8; 4]>::try_from(value).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(value).ok().map(IpAddr::from),
        _ => None,
    }
}

fn read_u64(bytes: &[u8], at: usize) -> u64 {
    let value = bytes.get(at..at + 8).and_then(|value| value.try_into().ok());
    value.map_or(0, u64::from_ne_bytes)
}

/// `struct ifinfomsg`.
fn link_header(index: u32, up: bool) -> [u8; LINK_HEADER] {
    let flags = if up { FLAG_UP } else { 0 }.to_ne_bytes();
    let mut header = [0; LINK_HEADER];
    put_at(&mut header, 4, &index.to_ne_bytes());
    put_at(&mut header, 8, &flags);
    put_at(&mut header, 12, &flags);
    header
}

/// `struct ndmsg`, for the forwarding table of the interface itself.
fn bridge_neighbour(index: u32) -> [u8; NEIGHBOUR_HEADER] {
    let mut header = [0; NEIGHBOUR_HEADER];
    put_at(&mut header, 0, &[FAMILY_BRIDGE]);
    put_at(&mut header, 4, &index.to_ne_bytes());
    put_at(&mut header, 8, &STATE_PERMANENT.to_ne_bytes());
    put_at(&mut header, 10, &[FLAG_SELF]);
    header
}

/// `struct ifaddrmsg`.
fn address_header(index: u32, address: IpAddr, prefix: u8) -> [u8; ADDRESS_HEADER] {
    let (family, flags) =
        if address.is_ipv6() { (FAMILY_IPV6, NO_DUPLICATE_DETECTION) } else { (FAMILY_IPV4, 0) };
    let mut header = [0; ADDRESS_HEADER];
    put_at(&mut header, 0, &[family, prefix, flags]);
    put_at(&mut header, 4, &index.to_ne_bytes());
    header
}

fn put_at(header: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = header.get_mut(at..at + value.len()) {
        place.copy_from_slice(value);
    }
}

/// VXLAN's UDP port at IANA; filters of a port's classes match it.
pub(crate) const VXLAN_UDP_PORT: u16 = 4789;

const LINK_HEADER: usize = 16;
const NEIGHBOUR_HEADER: usize = 12;
const ADDRESS_HEADER: usize = 8;

const NEW_LINK: u16 = 16;
const DELETE_LINK: u16 = 17;
const GET_LINK: u16 = 18;
const NEW_ADDRESS: u16 = 20;
const DELETE_ADDRESS: u16 = 21;
const GET_ADDRESS: u16 = 22;
const NEW_NEIGHBOUR: u16 = 28;
const DELETE_NEIGHBOUR: u16 = 29;
const GET_NEIGHBOUR: u16 = 30;

const NAME: u16 = 3;
const MASTER: u16 = 10;
const AF_SPEC: u16 = 26;
const ADDRESS_MODE: u16 = 8;
const ADDRESS_MODE_NONE: u8 = 1;
const MTU: u16 = 4;
const LOWER: u16 = 5;
const LINK_INFO: u16 = 18;
const STATS64: u16 = 23;
const GSO_MAX_SEGMENTS: u16 = 40;
const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;
const INFO_PORT_KIND: u16 = 4;
const INFO_PORT_DATA: u16 = 5;
const PORT_LEARNING: u16 = 8;
const BRIDGE_SNOOPING: u16 = 23;
const FLAG_UP: u32 = 1;

const VXLAN_ID: u16 = 1;
const VXLAN_GROUP: u16 = 2;
const VXLAN_LINK: u16 = 3;
const VXLAN_LOCAL: u16 = 4;
const VXLAN_TOS: u16 = 6;
const VXLAN_LEARNING: u16 = 7;
const VXLAN_PORT: u16 = 15;
const VXLAN_GROUP6: u16 = 16;
const VXLAN_LOCAL6: u16 = 17;
const INHERIT: u8 = 1;
const VLAN_ID: u16 = 1;

const ADDRESS: u16 = 1;
const ADDRESS_LOCAL: u16 = 2;
const DESTINATION: u16 = 1;
const LINK_ADDRESS: u16 = 2;

const FAMILY_IPV4: u8 = 2;
const FAMILY_BRIDGE: u8 = 7;
const FAMILY_IPV6: u8 = 10;
const STATE_PERMANENT: u16 = 0x80;
const FLAG_SELF: u8 = 2;

/// A circuit's address is exclusively ours, and it is used immediately.
const NO_DUPLICATE_DETECTION: u8 = 2;
