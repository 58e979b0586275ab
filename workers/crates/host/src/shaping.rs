//! HTB classes: each circuit of a port has one, and all other traffic has one below them.
//!
//! ```text
//! db00:            all traffic of the port
//!   db00:1         the rate of the port, if it is known
//!     db00:3       the capacity left by circuits, and at least a twentieth
//!       db00:2     all other traffic
//!     db00:<n>     a circuit: its rate is guaranteed, and its traffic goes first
//! ```
//!
//! HTB serves its levels from the leaves up: first classes within their own rate, then those that borrow from the
//! class above, then those that borrow from the port. Therefore the reserved part of circuits goes first, then all
//! other traffic (its own class has next to no rate, so it borrows from `db00:3`), and then the excess of circuits
//! with a soft cap, which also gives way to other traffic that borrows from the port: less than best effort. A
//! circuit has one queue for both of its parts, so nothing overtakes anything in it.
//!
//! Without a known rate of the port, other traffic is not limited, but waits for circuits while the interface
//! itself is busy. The handle marks the tree as ours; other trees are never touched.
use std::net::IpAddr;

use nix::errno::Errno;

use crate::link::VXLAN_UDP_PORT;
use crate::message::{Message, attribute, read_u32, text};
use crate::netlink::{CREATE, DUMP, EXCLUSIVE, Netlink, REPLACE, Refusal};

/// The rates of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    /// The guaranteed rate, in Ethernet-frame bits per second.
    pub rate_bps: u64,
    /// The maximum rate, if others leave capacity over.
    pub ceiling_bps: u64,
    /// The maximum burst.
    pub burst_bytes: u32,
    /// The priority; lower numbers go first.
    pub priority: u32,
}

/// An existing class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    pub(crate) minor: u16,
    pub(crate) parameters: Vec<u8>,
}

/// The tree of classes of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    /// The system's default.
    Default,
    Ours,
    /// Configured by others; the kind.
    Foreign(String),
}

/// The numbers of the interfaces with a tree of ours.
pub(crate) fn shaped(netlink: &mut Netlink) -> Result<Vec<u32>, Refusal> {
    let mut found = Vec::new();
    roots(netlink, |index, root| {
        if root == Root::Ours {
            found.push(index);
        }
    })?;
    Ok(found)
}

pub(crate) fn root(netlink: &mut Netlink, index: u32) -> Result<Root, Refusal> {
    let mut found = Root::Default;
    roots(netlink, |seen, root| {
        if seen == index {
            found = root;
        }
    })?;
    Ok(found)
}

fn roots(netlink: &mut Netlink, mut see: impl FnMut(u32, Root)) -> Result<(), Refusal> {
    netlink.dump(Message::new(GET_QDISC, DUMP, &[0; TC_HEADER]), |body| {
        if let (Some(index), Some(handle), Some(ROOT)) =
            (read_u32(body, 4), read_u32(body, 8), read_u32(body, 12))
        {
            let kind =
                attribute(body.get(TC_HEADER..).unwrap_or_default(), KIND).map(text).unwrap_or_default();
            see(
                index,
                match handle {
                    OUR_HANDLE if kind == HTB => Root::Ours,
                    0 => Root::Default,
                    _ => Root::Foreign(kind),
                },
            );
        }
    })
}

pub(crate) fn plant(netlink: &mut Netlink, index: u32) -> Result<(), Refusal> {
    let mut options = Vec::new();
    for number in [HTB_VERSION, HTB_QUANTUM_DIVISOR, u32::from(REST), 0, 0] {
        options.extend_from_slice(&number.to_ne_bytes());
    }
    netlink.change(
        Message::new(NEW_QDISC, CREATE | EXCLUSIVE, &tc_header(index, OUR_HANDLE, ROOT, 0))
            .text(KIND, HTB)
            .nested(OPTIONS, |inside| inside.put(HTB_INIT, &options)),
    )
}

/// Removes the whole tree, which restores the system's default.
pub(crate) fn uproot(netlink: &mut Netlink, index: u32) -> Result<(), Refusal> {
    netlink.change(Message::new(DELETE_QDISC, 0, &tc_header(index, OUR_HANDLE, ROOT, 0)))
}

pub(crate) fn classes(netlink: &mut Netlink, index: u32) -> Result<Vec<Class>, Refusal> {
    let mut found = Vec::new();
    netlink.dump(Message::new(GET_CLASS, DUMP, &tc_header(index, 0, 0, 0)), |body| {
        let handle = read_u32(body, 8).filter(|handle| handle & MAJOR == OUR_HANDLE);
        if let Some(minor) = handle.and_then(|handle| u16::try_from(handle & MINOR).ok()) {
            let rest = body.get(TC_HEADER..).unwrap_or_default();
            let parameters = attribute(rest, OPTIONS).and_then(|options| attribute(options, HTB_PARAMETERS));
            found.push(Class { minor, parameters: parameters.unwrap_or_default().to_vec() });
        }
    })?;
    Ok(found)
}

/// Creates a class below another, or changes it in place.
pub(crate) fn set_class(
    netlink: &mut Netlink,
    index: u32,
    minor: u16,
    parent: u16,
    rate: Rate,
) -> Result<(), Refusal> {
    let parent = if parent == 0 { OUR_HANDLE } else { class_handle(parent) };
    let (own, ceiling) = (rate.rate_bps.div_ceil(8), rate.ceiling_bps.max(rate.rate_bps).div_ceil(8));
    netlink.change(
        Message::new(NEW_CLASS, CREATE | REPLACE, &tc_header(index, class_handle(minor), parent, 0))
            .text(KIND, HTB)
            .nested(OPTIONS, |inside| {
                inside
                    .put(HTB_PARAMETERS, &parameters(rate))
                    .put(HTB_RATE64, &own.to_ne_bytes())
                    .put(HTB_CEILING64, &ceiling.to_ne_bytes())
            }),
    )
}

pub(crate) fn delete_class(netlink: &mut Netlink, index: u32, minor: u16) -> Result<(), Refusal> {
    netlink.change(Message::new(DELETE_CLASS, 0, &tc_header(index, class_handle(minor), 0, 0)))
}

impl Class {
    /// Its rate; `None`: higher than the field can express, practically unlimited.
    pub(crate) fn rate_bps(&self) -> Option<u64> {
        read_u32(&self.parameters, RATE_AT.start)
            .filter(|bytes| *bytes < u32::MAX)
            .map(|bytes| u64::from(bytes) * 8)
    }
}

/// True if the class has this rate and priority already.
pub(crate) fn carries(class: &Class, rate: Rate) -> bool {
    let told = parameters(rate);
    let parts = [RATE_AT, CEILING_AT, BUFFERS_AT, PRIORITY_AT];
    parts.into_iter().all(|part| class.parameters.get(part.clone()) == told.get(part))
}

/// Directs a tunnel's packets to a class.
pub(crate) fn set_filter(
    netlink: &mut Netlink,
    index: u32,
    minor: u16,
    vni: u32,
    underlay: IpAddr,
) -> Result<(), Refusal> {
    netlink.change(
        Message::new(NEW_FILTER, CREATE | EXCLUSIVE, &filter_header(index, minor, underlay.is_ipv6()))
            .text(KIND, "u32")
            .nested(OPTIONS, |inside| {
                inside
                    .number(U32_CLASS, class_handle(minor))
                    .put(U32_SELECTOR, &vxlan_selector(vni, underlay.is_ipv6()))
            }),
    )
}

/// The filters of an interface: each class with the identifier of its tunnel.
pub(crate) fn filters(netlink: &mut Netlink, index: u32) -> Result<Vec<(u16, u32)>, Refusal> {
    let mut found = Vec::new();
    netlink.dump(Message::new(GET_FILTER, DUMP, &tc_header(index, 0, OUR_HANDLE, 0)), |body| {
        let rest = body.get(TC_HEADER..).unwrap_or_default();
        let selector = attribute(rest, OPTIONS).and_then(|options| attribute(options, U32_SELECTOR));
        let vni = selector.and_then(|selector| selector.get(VNI_KEY_AT..VNI_KEY_AT + 4)?.try_into().ok());
        if let (Some(info), Some(vni)) = (read_u32(body, 16), vni)
            && let Ok(minor) = u16::try_from(info >> 16)
        {
            found.push((minor, u32::from_be_bytes(vni) >> 8));
        }
    })?;
    Ok(found)
}

/// Removes a class's filter, for packets of either IP version.
pub(crate) fn delete_filter(netlink: &mut Netlink, index: u32, minor: u16) -> Result<(), Refusal> {
    for six in [false, true] {
        match netlink.change(Message::new(DELETE_FILTER, 0, &filter_header(index, minor, six))) {
            Err(refusal) if refusal.errno != Errno::ENOENT => return Err(refusal),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// The class of the port itself.
pub(crate) const PORT: u16 = 1;

/// The class of all traffic outside circuits.
pub(crate) const REST: u16 = 2;

/// The class that lends the capacity left by circuits to all other traffic.
pub(crate) const LEFT: u16 = 3;

/// Of the classes that borrow from the port those go first.
pub(crate) const FIRST: u32 = 0;

/// The excess of circuits: less than best effort.
pub(crate) const LAST: u32 = 7;

/// `struct tc_htb_opt`: two of `struct tc_ratespec`, and the times that the class may send at its rates without
/// waiting.
fn parameters(rate: Rate) -> Vec<u8> {
    let ceiling_bps = rate.ceiling_bps.max(rate.rate_bps);
    let mut bytes = Vec::with_capacity(44);
    for bps in [rate.rate_bps, ceiling_bps] {
        bytes.extend_from_slice(&[0, LINK_LAYER_ETHERNET, 0, 0, 0, 0, 0, 0]);
        bytes.extend_from_slice(&u32::try_from(bps.div_ceil(8)).unwrap_or(u32::MAX).to_ne_bytes());
    }
    let ticks = |bps: u64| {
        let nanoseconds = u128::from(rate.burst_bytes) * 8_000_000_000 / u128::from(bps.max(1));
        u32::try_from(nanoseconds >> TICK_SHIFT).unwrap_or(u32::MAX).max(1)
    };
    for number in [ticks(rate.rate_bps), ticks(ceiling_bps), TURN_BYTES, 0, rate.priority] {
        bytes.extend_from_slice(&number.to_ne_bytes());
    }
    bytes
}

/// `struct tc_u32_sel` with three keys, counted from the IP header: UDP, VXLAN's port, the identifier.
fn vxlan_selector(vni: u32, six: bool) -> Vec<u8> {
    let (protocol_at, udp_at): (i32, i32) = if six { (4, 40) } else { (8, 20) };
    // The protocol is the third byte of its word in IPv6, the second in IPv4.
    let (protocol_mask, protocol): (u32, u32) = if six { (0xff00, 17 << 8) } else { (0x00ff_0000, 17 << 16) };
    let keys = [
        (vni << 8, 0xffff_ff00, udp_at + 12),
        (protocol, protocol_mask, protocol_at),
        (u32::from(VXLAN_UDP_PORT), 0xffff, udp_at),
    ];
    let mut bytes = vec![U32_TERMINAL, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    for (value, mask, at) in keys {
        bytes.extend_from_slice(&u32::to_be_bytes(mask));
        bytes.extend_from_slice(&u32::to_be_bytes(value));
        bytes.extend_from_slice(&i32::to_ne_bytes(at));
        bytes.extend_from_slice(&[0; 4]);
    }
    bytes
}

/// `struct tcmsg`.
fn tc_header(index: u32, handle: u32, parent: u32, info: u32) -> [u8; TC_HEADER] {
    let mut header = [0; TC_HEADER];
    for (place, number) in header.chunks_exact_mut(4).zip([0, index, handle, parent, info]) {
        place.copy_from_slice(&number.to_ne_bytes());
    }
    header
}

/// The position of a filter: below our tree, in the row with its class's number.
fn filter_header(index: u32, minor: u16, six: bool) -> [u8; TC_HEADER] {
    let protocol: u16 = if six { 0x86dd } else { 0x0800 };
    tc_header(index, 0, OUR_HANDLE, u32::from(minor) << 16 | u32::from(protocol.to_be()))
}

fn class_handle(minor: u16) -> u32 {
    OUR_HANDLE | u32::from(minor)
}

const OUR_HANDLE: u32 = 0xdb00_0000;
const MAJOR: u32 = 0xffff_0000;
const MINOR: u32 = 0x0000_ffff;
const ROOT: u32 = u32::MAX;
const TC_HEADER: usize = 20;
const HTB: &str = "htb";

const NEW_QDISC: u16 = 36;
const DELETE_QDISC: u16 = 37;
const GET_QDISC: u16 = 38;
const NEW_CLASS: u16 = 40;
const DELETE_CLASS: u16 = 41;
const GET_CLASS: u16 = 42;
const NEW_FILTER: u16 = 44;
const DELETE_FILTER: u16 = 45;
const GET_FILTER: u16 = 46;

const KIND: u16 = 1;
const OPTIONS: u16 = 2;
const HTB_PARAMETERS: u16 = 1;
const HTB_INIT: u16 = 2;
const HTB_RATE64: u16 = 6;
const HTB_CEILING64: u16 = 7;
const HTB_VERSION: u32 = 3;
const HTB_QUANTUM_DIVISOR: u32 = 10;
const U32_CLASS: u16 = 1;
const U32_SELECTOR: u16 = 5;
const U32_TERMINAL: u8 = 1;

/// Without it the kernel requires tables that it does not need.
const LINK_LAYER_ETHERNET: u8 = 1;

/// The kernel counts a class's burst in units of 64 ns.
const TICK_SHIFT: u32 = 6;

/// The bytes that a borrowing class sends in one turn: two frames, so that none waits long.
const TURN_BYTES: u32 = 3_028;

const RATE_AT: std::ops::Range<usize> = 8..12;
const CEILING_AT: std::ops::Range<usize> = 20..24;
const BUFFERS_AT: std::ops::Range<usize> = 24..32;
const PRIORITY_AT: std::ops::Range<usize> = 40..44;

/// The offset of the identifier in a selector: it is the first key.
const VNI_KEY_AT: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_lasts_as_long_as_its_bytes_take() {
        let rate = Rate { rate_bps: 54_000_000, ceiling_bps: 54_000_000, burst_bytes: 6_750, priority: 0 };
        let bytes = parameters(rate);
        assert_eq!(bytes.len(), 44);
        assert_eq!(read_u32(&bytes, 8), Some(6_750_000));
        // A millisecond in units of 64 ns.
        assert_eq!(read_u32(&bytes, 24), Some(15_625));
    }

    #[test]
    fn a_ceiling_is_never_below_the_rate() {
        let bytes = parameters(Rate { rate_bps: 8_000, ceiling_bps: 1, burst_bytes: 1, priority: 0 });
        assert_eq!(read_u32(&bytes, 20), Some(1_000));
        assert_eq!(bytes.get(24..28).map(|part| part != [0; 4]), Some(true));
    }

    #[test]
    fn the_selector_names_the_identifier() {
        let selector = vxlan_selector(0x0012_3456, false);
        assert_eq!(selector.len(), 16 + 3 * 16);
        assert_eq!(selector.get(VNI_KEY_AT..VNI_KEY_AT + 4), Some(&[0x12, 0x34, 0x56, 0][..]));
        assert_eq!(selector.get(24..28), Some(&32_i32.to_ne_bytes()[..]));
    }
}
