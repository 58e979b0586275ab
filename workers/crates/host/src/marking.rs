//! The mark of excess: packets beyond the rate of a circuit with a soft cap leave with the DSCP of less than best
//! effort (RFC 8622), so that the networks behind the port drop them first.
//!
//! A table of nftables for each such circuit meters the frames that leave by its interface, before its tunnel, which
//! takes the mark over. The kernel's meter for bytes holds a second of the rate: so much may leave at once, unmarked.
use nix::errno::Errno;

use crate::message::{Message, Nested, attribute, text};
use crate::netlink::{APPEND, CREATE, DUMP, NETFILTER, Netlink, Refusal};

/// Marks what leaves by this interface beyond this rate of frames.
pub(crate) fn mark_excess(interface: &str, rate_bps: u64) -> Result<(), Refusal> {
    open()?.change_all(vec![
        batch(BATCH_BEGIN),
        // Deleting what is not there would fail.
        table(NEW_TABLE, interface),
        table(DELETE_TABLE, interface),
        table(NEW_TABLE, interface),
        chain(interface),
        rule(interface, |list| {
            list.element("limit", |data| within(data, rate_bps)).element("immediate", accept)
        }),
        rule(interface, |list| dscp(list, &IPV4)),
        rule(interface, |list| dscp(list, &IPV6)),
        batch(BATCH_END),
    ])
}

/// Ends the marking on an interface, which may exist no longer.
pub(crate) fn end_marking(interface: &str) -> Result<(), Refusal> {
    let deleted =
        open()?.change_all(vec![batch(BATCH_BEGIN), table(DELETE_TABLE, interface), batch(BATCH_END)]);
    match deleted {
        Err(refusal) if refusal.errno == Errno::ENOENT => Ok(()),
        deleted => deleted,
    }
}

/// The interfaces with a table of this kind; none if the kernel has no nftables.
pub(crate) fn marked() -> Vec<String> {
    let mut found = Vec::new();
    let asked = Message::new(GET_TABLE, DUMP, &header(FAMILY_NETDEV, 0));
    let told = open().and_then(|mut netfilter| {
        netfilter.dump(asked, |body| {
            let rest = body.get(HEADER..).unwrap_or_default();
            found.extend(
                attribute(rest, TABLE_NAME).map(text).filter(|_| body.first() == Some(&FAMILY_NETDEV)),
            );
        })
    });
    if told.is_ok() { found } else { Vec::new() }
}

fn open() -> Result<Netlink, Refusal> {
    Ok(Netlink::open_for(NETFILTER)?)
}

fn batch(kind: u16) -> Message {
    Message::new(kind, 0, &header(0, SUBSYSTEM))
}

fn table(kind: u16, interface: &str) -> Message {
    let flags = if kind == NEW_TABLE { CREATE } else { 0 };
    Message::new(kind, flags, &header(FAMILY_NETDEV, 0)).text(TABLE_NAME, interface)
}

fn chain(interface: &str) -> Message {
    Message::new(NEW_CHAIN, CREATE, &header(FAMILY_NETDEV, 0))
        .text(CHAIN_TABLE, interface)
        .text(CHAIN_NAME, CHAIN)
        .nested(CHAIN_HOOK, |hook| {
            hook.big(HOOK_NUMBER, HOOK_EGRESS).big(HOOK_PRIORITY, 0).text(HOOK_DEVICE, interface)
        })
        .big(CHAIN_POLICY, ACCEPT)
        .text(CHAIN_TYPE, "filter")
}

fn rule(interface: &str, fill: impl FnOnce(Nested) -> Nested) -> Message {
    Message::new(NEW_RULE, CREATE | APPEND, &header(FAMILY_NETDEV, 0))
        .text(RULE_TABLE, interface)
        .text(RULE_CHAIN, CHAIN)
        .nested(RULE_EXPRESSIONS, fill)
}

/// True for frames within the rate, which are counted.
fn within(data: Nested, rate_bps: u64) -> Nested {
    data.put(LIMIT_RATE, &(rate_bps / 8).max(1).to_be_bytes())
        .put(LIMIT_UNIT, &1_u64.to_be_bytes())
        .big(LIMIT_BURST, 0)
        .big(LIMIT_TYPE, LIMIT_BYTES)
        .big(LIMIT_FLAGS, 0)
}

fn accept(data: Nested) -> Nested {
    data.big(IMMEDIATE_TO, VERDICT_REGISTER)
        .nested(IMMEDIATE_DATA, |value| value.nested(VERDICT, |verdict| verdict.big(VERDICT_CODE, ACCEPT)))
}

/// Writes the DSCP into packets of one version of IP.
fn dscp(list: Nested, version: &Version) -> Nested {
    let value = |bytes: [u8; 2]| move |data: Nested| data.put(DATA_VALUE, &bytes);
    list.element("meta", |data| data.big(META_TO, REGISTER).big(META_KEY, META_PROTOCOL))
        .element("cmp", |data| {
            data.big(CMP_FROM, REGISTER)
                .big(CMP_OPERATION, CMP_EQUAL)
                .nested(CMP_DATA, value(version.protocol.to_be_bytes()))
        })
        .element("payload", |data| place(data.big(PAYLOAD_TO, REGISTER)))
        .element("bitwise", |data| {
            data.big(BITWISE_FROM, REGISTER)
                .big(BITWISE_TO, REGISTER)
                .big(BITWISE_LENGTH, 2)
                .nested(BITWISE_MASK, value(version.kept.to_be_bytes()))
                .nested(BITWISE_XOR, value(version.less_than_best_effort.to_be_bytes()))
        })
        .element("payload", |data| {
            place(data.big(PAYLOAD_FROM, REGISTER))
                .big(PAYLOAD_SUM, version.checksum)
                .big(PAYLOAD_SUM_AT, IPV4_CHECKSUM_AT)
                .big(PAYLOAD_SUM_FLAGS, 0)
        })
}

/// The first two bytes of the IP header, which hold the DSCP in both versions.
fn place(data: Nested) -> Nested {
    data.big(PAYLOAD_BASE, NETWORK_HEADER).big(PAYLOAD_AT, 0).big(PAYLOAD_LENGTH, 2)
}

/// `struct nfgenmsg`.
fn header(family: u8, resource: u16) -> [u8; HEADER] {
    let [high, low] = resource.to_be_bytes();
    [family, 0, high, low]
}

/// The place of the DSCP in the first two bytes of a header of IP.
struct Version {
    protocol: u16,
    kept: u16,
    less_than_best_effort: u16,
    checksum: u32,
}

/// Version and length, then DSCP and ECN.
const IPV4: Version = Version { protocol: 0x0800, kept: 0xff03, less_than_best_effort: 1 << 2, checksum: 1 };

/// Version, DSCP, ECN and the beginning of the flow label.
const IPV6: Version = Version { protocol: 0x86dd, kept: 0xf03f, less_than_best_effort: 1 << 6, checksum: 0 };

impl Message {
    /// Adds a number as nftables has them: its most significant byte first.
    fn big(self, attribute: u16, value: u32) -> Self {
        self.put(attribute, &value.to_be_bytes())
    }

    /// Adds an expression to the list of a rule.
    fn element(self, name: &str, fill: impl FnOnce(Nested) -> Nested) -> Self {
        self.nested(LIST_ELEMENT, |element| element.text(EXPRESSION_NAME, name).nested(EXPRESSION_DATA, fill))
    }
}

const CHAIN: &str = "excess";
const HEADER: usize = 4;
const SUBSYSTEM: u16 = 10;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const NEW_TABLE: u16 = SUBSYSTEM << 8;
const GET_TABLE: u16 = SUBSYSTEM << 8 | 1;
const DELETE_TABLE: u16 = SUBSYSTEM << 8 | 2;
const NEW_CHAIN: u16 = SUBSYSTEM << 8 | 3;
const NEW_RULE: u16 = SUBSYSTEM << 8 | 6;
const FAMILY_NETDEV: u8 = 5;
const HOOK_EGRESS: u32 = 1;
const ACCEPT: u32 = 1;

const TABLE_NAME: u16 = 1;
const CHAIN_TABLE: u16 = 1;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const CHAIN_POLICY: u16 = 5;
const CHAIN_TYPE: u16 = 7;
const HOOK_NUMBER: u16 = 1;
const HOOK_PRIORITY: u16 = 2;
const HOOK_DEVICE: u16 = 3;
const RULE_TABLE: u16 = 1;
const RULE_CHAIN: u16 = 2;
const RULE_EXPRESSIONS: u16 = 4;
const LIST_ELEMENT: u16 = 1;
const EXPRESSION_NAME: u16 = 1;
const EXPRESSION_DATA: u16 = 2;
const DATA_VALUE: u16 = 1;

const LIMIT_RATE: u16 = 1;
const LIMIT_UNIT: u16 = 2;
const LIMIT_BURST: u16 = 3;
const LIMIT_TYPE: u16 = 4;
const LIMIT_FLAGS: u16 = 5;
const LIMIT_BYTES: u32 = 1;

const IMMEDIATE_TO: u16 = 1;
const IMMEDIATE_DATA: u16 = 2;
const VERDICT: u16 = 2;
const VERDICT_CODE: u16 = 1;
const VERDICT_REGISTER: u32 = 0;
const REGISTER: u32 = 1;

const META_TO: u16 = 1;
const META_KEY: u16 = 2;
const META_PROTOCOL: u32 = 1;
const CMP_FROM: u16 = 1;
const CMP_OPERATION: u16 = 2;
const CMP_DATA: u16 = 3;
const CMP_EQUAL: u32 = 0;
const BITWISE_FROM: u16 = 1;
const BITWISE_TO: u16 = 2;
const BITWISE_LENGTH: u16 = 3;
const BITWISE_MASK: u16 = 4;
const BITWISE_XOR: u16 = 5;
const PAYLOAD_TO: u16 = 1;
const PAYLOAD_BASE: u16 = 2;
const PAYLOAD_AT: u16 = 3;
const PAYLOAD_LENGTH: u16 = 4;
const PAYLOAD_FROM: u16 = 5;
const PAYLOAD_SUM: u16 = 6;
const PAYLOAD_SUM_AT: u16 = 7;
const PAYLOAD_SUM_FLAGS: u16 = 8;
const NETWORK_HEADER: u32 = 1;
const IPV4_CHECKSUM_AT: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_dscp_one_in_both_versions_and_leaves_the_other_bits() {
        let marked = |version: &Version, bytes: [u8; 2]| {
            ((u16::from_be_bytes(bytes) & version.kept) ^ version.less_than_best_effort).to_be_bytes()
        };
        // DSCP EF (46) and ECN 2 before; DSCP 1 and ECN 2 after.
        assert_eq!(marked(&IPV4, [0x45, 46 << 2 | 2]), [0x45, 1 << 2 | 2]);
        assert_eq!(marked(&IPV6, [0x6b, 0xa5]), [0x60, 0x65]);
    }
}
