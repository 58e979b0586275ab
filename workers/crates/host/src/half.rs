//! A host's half of a circuit.
use std::fmt;
use std::net::IpAddr;

use crate::link::{Kind, Link, Vxlan};

/// One host's half of a circuit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Half {
    /// The node that made it: nodes on one host do not remove each other's halves.
    pub owner: Owner,
    /// The number of the lease.
    pub lease: u32,
    /// The outgoing interface.
    pub port: String,
    /// The encapsulation on that interface.
    pub way: Way,
    /// Its place in the circuit.
    pub place: Place,
    /// Its rate limit; `None`: unlimited.
    pub shape: Option<Shape>,
}

/// The place of a half in its circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// An end, with its address inside the circuit and the length of its prefix.
    End(IpAddr, u8),
    /// At a host between two hops, towards the near end. A bridge joins it to the side towards the far end.
    Near,
    /// Likewise, towards the far end.
    Far,
}

/// The encapsulation of a circuit on its port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// In a VXLAN tunnel.
    Tunnel {
        /// Its network identifier.
        vni: u32,
        /// This host's address on the underlay.
        local: IpAddr,
        /// The other ends on the underlay.
        others: Vec<IpAddr>,
        /// A group that the underlay delivers to all of them; without one, this host sends a copy to each.
        group: Option<IpAddr>,
    },
    /// Under a VLAN tag.
    Tag(u16),
    /// The port itself is the circuit, and was made by others.
    Declared,
}

/// The rate limit of a half, in Ethernet-frame bits per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Its guaranteed rate.
    pub rate_bps: u64,
    /// True if it may also send what the port leaves over, after all other traffic.
    pub soft: bool,
    /// The maximum burst.
    pub burst: Burst,
    /// The rate of the port, if known.
    pub port_rate_bps: Option<u64>,
}

/// The maximum burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Burst {
    /// A millisecond of the rate, at least three frames.
    Auto,
    /// A number of bytes, such as a third of the smallest buffer on the path.
    Bytes(u32),
}

/// The mark of one node on its interfaces and classes, from its role and its hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner(u16);

impl Owner {
    /// The mark of a node whose `identity` distinguishes it from all others on its host.
    pub fn of(identity: &str) -> Self {
        // FNV-1a: the same in every release, because a marked interface may outlive a release.
        let hash = identity
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        #[expect(clippy::cast_possible_truncation, reason = "folded to its size")]
        let folded = (hash ^ hash >> 16) as u16;
        Self(folded)
    }

    /// The class that limits a declared interface.
    pub(crate) fn declared_class(self) -> u16 {
        FIRST_DECLARED | self.0
    }

    /// The lease whose interface this is, if this node made it.
    pub(crate) fn lease(self, link: &Link) -> Option<u32> {
        let ours = matches!(link.kind, Some(Kind::Vxlan(_) | Kind::Vlan { .. } | Kind::Bridge));
        self.lease_named(&link.name).filter(|_| ours)
    }

    /// The lease that this node would give the name to.
    pub(crate) fn lease_named(self, name: &str) -> Option<u32> {
        let (lease, owner) = without_prefix(name)?.split_once('-')?;
        lease.parse().ok().filter(|_| owner == format!("{self}"))
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:04x}", self.0)
    }
}

impl Half {
    /// The interface that is the circuit on this host.
    pub fn interface(&self) -> String {
        match self.way {
            Way::Declared => self.port.clone(),
            Way::Tunnel { .. } | Way::Tag(_) => self.named(match self.place {
                Place::End(..) => PREFIX,
                Place::Near => NEAR_PREFIX,
                Place::Far => FAR_PREFIX,
            }),
        }
    }

    /// The bridge that joins it to the other side.
    pub(crate) fn bridge(&self) -> Option<String> {
        match self.place {
            Place::End(..) => None,
            Place::Near | Place::Far => Some(self.named(PREFIX)),
        }
    }

    /// True for an interface of this half.
    pub(crate) fn has(&self, link: &Link) -> bool {
        link.name == self.interface() || self.bridge().as_ref() == Some(&link.name)
    }

    fn named(&self, prefix: &str) -> String {
        format!("{prefix}{}-{}", self.lease, self.owner)
    }

    /// The required tunnel over the port with this number.
    pub(crate) fn tunnel(&self, lower: u32) -> Option<Vxlan> {
        let Way::Tunnel { vni, local, others, group } = &self.way else {
            return None;
        };
        let single = if let [other] = others.as_slice() { Some(*other) } else { None };
        Some(Vxlan { vni: *vni, local: *local, remote: group.or(single), lower })
    }

    /// The part of a rate on the port that is left for full frames without the headers of its tunnel.
    pub(crate) fn rate_inside_bps(&self, rate_bps: u64) -> u64 {
        let Way::Tunnel { local, .. } = &self.way else { return rate_bps };
        let around = if local.is_ipv6() { TUNNEL6_BYTES } else { TUNNEL_BYTES };
        let inside = u64::from(FRAME_BYTES - around);
        u64::try_from(u128::from(rate_bps) * u128::from(inside) / u128::from(FRAME_BYTES)).unwrap_or(rate_bps)
    }

    /// The ends that have to be added to its tunnel one by one.
    pub(crate) fn replicas(&self) -> &[IpAddr] {
        match &self.way {
            Way::Tunnel { others, group: None, .. } if others.len() > 1 => others,
            _ => &[],
        }
    }
}

impl Shape {
    pub(crate) fn burst_bytes(&self) -> u32 {
        match self.burst {
            Burst::Bytes(bytes) => bytes.max(FRAME_BYTES),
            Burst::Auto => {
                let millisecond = u32::try_from(self.rate_bps / 8_000).unwrap_or(u32::MAX);
                millisecond.clamp(3 * FRAME_BYTES, LARGEST_BURST_BYTES)
            }
        }
    }

    /// The number of segments that may leave as one bundle: a bundle larger than the burst would reach a small
    /// buffer on the path in one burst.
    pub(crate) fn bundle_segments(&self) -> u32 {
        (self.burst_bytes() / FRAME_BYTES).clamp(2, 64)
    }
}

/// True for an interface that any node made for a circuit.
pub(crate) fn is_of_a_circuit(link: &Link) -> bool {
    let number = without_prefix(&link.name)
        .and_then(|rest| rest.split_once('-'))
        .map(|(lease, _)| lease.parse::<u32>());
    matches!(number, Some(Ok(_)))
}

fn without_prefix(name: &str) -> Option<&str> {
    [PREFIX, NEAR_PREFIX, FAR_PREFIX].into_iter().find_map(|prefix| name.strip_prefix(prefix))
}

/// The prefix of circuits' interface names.
const PREFIX: &str = "db";

/// The prefixes of the interfaces towards both ends at a host between two hops.
const NEAR_PREFIX: &str = "dn";
const FAR_PREFIX: &str = "df";

/// The first class of declared interfaces; the classes of circuits on a port have lower numbers.
pub(crate) const FIRST_DECLARED: u16 = 0x8000;

/// A full frame on an Ethernet.
const FRAME_BYTES: u32 = 1_514;

/// Outer Ethernet, IP, UDP and VXLAN headers.
const TUNNEL_BYTES: u32 = 50;
const TUNNEL6_BYTES: u32 = 70;

/// Four bundles of the kernel: enough for any rate, and within the buffers of small switches.
const LARGEST_BURST_BYTES: u32 = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_is_short_enough_for_the_kernel() {
        let half = half(9_999_999);
        assert!(half.interface().len() <= 15, "{}", half.interface());
    }

    #[test]
    fn a_node_knows_its_own_and_no_other() {
        let half = half(17);
        let kind = Some(Kind::Vxlan(half.tunnel(2).unwrap()));
        let link = Link {
            index: 9,
            name: half.interface(),
            up: true,
            mtu: 1_450,
            bytes: (0, 0),
            master: None,
            kind,
        };
        assert_eq!(half.owner.lease(&link), Some(17));
        assert_eq!(Owner::of("another").lease(&link), None);
        // A foreign interface with such a name is not ours.
        let somebody = Link { kind: Some(Kind::Other("veth".to_owned())), ..link };
        assert_eq!(half.owner.lease(&somebody), None);
    }

    #[test]
    fn the_sides_of_a_host_between_two_hops_share_a_bridge() {
        let [near, far] = [Place::Near, Place::Far].map(|place| Half { place, ..half(17) });
        assert_ne!(near.interface(), far.interface());
        assert_eq!((near.bridge(), half(17).bridge()), (Some(half(17).interface()), None));
        let link = |name, kind| Link {
            index: 9,
            name,
            up: true,
            mtu: 1_450,
            bytes: (0, 0),
            master: None,
            kind: Some(kind),
        };
        let bridge = link(far.bridge().unwrap(), Kind::Bridge);
        assert!(near.has(&bridge) && far.has(&bridge) && !half(18).has(&bridge));
        assert_eq!(near.owner.lease(&bridge), Some(17));
        let side = link(far.interface(), Kind::Vxlan(far.tunnel(2).unwrap()));
        assert_eq!((far.owner.lease(&side), near.has(&side)), (Some(17), false));
    }

    #[test]
    fn one_other_end_is_the_tunnels_remote_and_several_are_replicas() {
        let ends: Vec<IpAddr> = (1..=3).map(|host| IpAddr::from([10, 0, 0, host])).collect();
        let with = |others: &[IpAddr], group| {
            let others = others.to_vec();
            Half { way: Way::Tunnel { vni: 7, local: ends[0], others, group }, ..half(1) }
        };
        let single = with(&ends[1..2], None);
        assert_eq!((single.tunnel(2).unwrap().remote, single.replicas().len()), (Some(ends[1]), 0));
        let several = with(&ends[1..], None);
        assert_eq!((several.tunnel(2).unwrap().remote, several.replicas().len()), (None, 2));
        let group = IpAddr::from([239, 1, 1, 1]);
        let underlay = with(&ends[1..], Some(group));
        assert_eq!((underlay.tunnel(2).unwrap().remote, underlay.replicas().len()), (Some(group), 0));
    }

    #[test]
    fn bursts_follow_the_rate_and_bundles_the_burst() {
        let shape = |rate_bps, burst| Shape { rate_bps, soft: false, burst, port_rate_bps: None };
        assert_eq!(shape(1_000_000, Burst::Auto).burst_bytes(), 4_542);
        assert_eq!(shape(800_000_000, Burst::Auto).burst_bytes(), 100_000);
        assert_eq!(shape(100_000_000_000, Burst::Auto).burst_bytes(), 256 << 10);
        assert_eq!(shape(800_000_000, Burst::Bytes(4_000)).bundle_segments(), 2);
        assert_eq!(shape(800_000_000, Burst::Auto).bundle_segments(), 64);
    }

    fn half(lease: u32) -> Half {
        let way = Way::Tunnel {
            vni: 7,
            local: [10, 0, 0, 1].into(),
            others: vec![[10, 0, 0, 2].into()],
            group: None,
        };
        let place = Place::End([10, 9, 0, 1].into(), 31);
        Half { owner: Owner::of("hub"), lease, port: "eth0".to_owned(), way, place, shape: None }
    }
}
