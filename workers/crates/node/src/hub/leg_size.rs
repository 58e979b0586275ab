//! The maximum length of a leg's datagrams: its own link and the ways to all its sites must carry them in one
//! piece. They are never fragmented, and nothing on a multicast path reports to a sender that a router
//! dropped an oversized datagram; but the site's session goes the same way, and TCP finds its MTU.
use std::collections::BTreeMap;

use downburst_model::{LegId, SiteName};

use super::lock;
use super::roster::Handle;

/// The interface that a leg's datagrams leave the hub by.
#[derive(Clone, Copy)]
pub(super) struct LegInterface {
    /// Of the interface or its route, if the kernel tells.
    pub(super) mtu_bytes: Option<u64>,
    pub(super) is_circuit: bool,
}

impl LegInterface {
    /// The largest UDP payload that it and the ways of all sessions on the leg carry.
    pub(super) fn datagram_bytes(self, leg: LegId, sessions: &BTreeMap<SiteName, Handle>) -> usize {
        let link = self.mtu_bytes.unwrap_or(ETHERNET_MTU_BYTES).min(ETHERNET_MTU_BYTES);
        // A circuit is a tunnel: the ways of the sessions tell nothing of it.
        let link = if self.is_circuit { link.min(CIRCUIT_MTU_BYTES) } else { link };
        let paths = sessions.values().filter(|_| !self.is_circuit).filter_map(|handle| {
            let status = lock(&handle.status);
            let takes_part = status.hears(leg) || status.offered.values().any(|offered| *offered == leg);
            status.path.as_ref().filter(|_| takes_part)?.path_mtu_bytes
        });
        let narrowest = paths.min().unwrap_or(link).min(link);
        usize::try_from(narrowest.saturating_sub(HEADERS_BYTES)).unwrap_or(0)
    }
}

/// The size that every network of today carries. Longer frames need the consent of every switch on the way,
/// which nothing reports.
const ETHERNET_MTU_BYTES: u64 = 1_500;

/// An Ethernet frame inside a tunnel, over IPv4 and IPv6.
const CIRCUIT_MTU_BYTES: u64 = 1_430;

/// IPv6 and UDP; over IPv4 twenty bytes stay free.
const HEADERS_BYTES: u64 = 48;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_sites_the_link_decides_and_ethernet_is_the_most() {
        let of = |mtu_bytes, is_circuit| {
            LegInterface { mtu_bytes, is_circuit }.datagram_bytes(LegId(1), &BTreeMap::new())
        };
        assert_eq!(of(None, false), 1_452);
        assert_eq!(of(Some(9_000), false), 1_452);
        assert_eq!(of(Some(1_400), false), 1_352);
        assert_eq!((of(None, true), of(Some(1_400), true)), (1_382, 1_352));
    }
}
