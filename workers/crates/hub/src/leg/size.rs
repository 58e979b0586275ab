//! The maximum length of a leg's datagrams: its own link and the paths to all its sites must carry them in one
//! piece. They are never fragmented, and nothing on a multicast path reports to a sender that a router dropped an
//! oversized datagram; but the site's session takes the same path, and TCP finds its MTU.
use std::collections::BTreeMap;

use downburst_model::SiteName;

use super::api::{LegInterface, LegSession};

impl LegInterface {
    /// The largest UDP payload that fits the interface and the paths of all sessions on the leg.
    pub(super) fn datagram_bytes(self, open: &BTreeMap<SiteName, LegSession>) -> usize {
        let link = self.mtu_bytes.unwrap_or(ETHERNET_MTU_BYTES).min(ETHERNET_MTU_BYTES);
        // A circuit is a tunnel: the paths of the sessions reveal nothing about it.
        let link = if self.is_circuit { link.min(CIRCUIT_MTU_BYTES) } else { link };
        let same_path = !self.is_circuit && !self.is_relayed;
        let on_leg = open.values().filter(|it| same_path && (it.hears || it.offered));
        let narrowest = on_leg.filter_map(|it| it.path_mtu_bytes).min().unwrap_or(link).min(link);
        usize::try_from(narrowest.saturating_sub(HEADERS_BYTES)).unwrap_or(0)
    }
}

/// The MTU that every network supports today. Longer frames need the consent of every switch on the path, which
/// nothing reports.
const ETHERNET_MTU_BYTES: u64 = 1_500;

/// An Ethernet frame inside a tunnel, over IPv4 and IPv6.
const CIRCUIT_MTU_BYTES: u64 = 1_430;

/// IPv6 and UDP headers; over IPv4 twenty bytes remain unused.
const HEADERS_BYTES: u64 = 48;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_sites_the_link_decides_and_ethernet_is_the_most() {
        let of = |mtu_bytes, is_circuit| {
            LegInterface { mtu_bytes, is_circuit, is_relayed: false }.datagram_bytes(&BTreeMap::new())
        };
        assert_eq!(of(None, false), 1_452);
        assert_eq!(of(Some(9_000), false), 1_452);
        assert_eq!(of(Some(1_400), false), 1_352);
        assert_eq!((of(None, true), of(Some(1_400), true)), (1_382, 1_352));
    }

    #[test]
    fn the_narrowest_way_to_a_site_on_the_leg_decides() {
        let session = |number: u64, path_mtu_bytes, (offered, hears)| {
            let name = SiteName::parse(&format!("site-{number}")).unwrap();
            let credential = String::new();
            (name, LegSession { session: number, credential, offered, hears, path_mtu_bytes })
        };
        let elsewhere = session(1, Some(600), (false, false));
        let unknown = session(2, None, (true, true));
        let told = session(3, Some(1_300), (true, false));
        let leaving = session(4, Some(1_200), (false, true));
        let over = |is_circuit, is_relayed, sessions: &[&(SiteName, LegSession)]| {
            let open = sessions.iter().map(|it| (*it).clone()).collect();
            LegInterface { mtu_bytes: None, is_circuit, is_relayed }.datagram_bytes(&open)
        };
        let of = |is_circuit, sessions: &[&(SiteName, LegSession)]| over(is_circuit, false, sessions);
        assert_eq!(of(false, &[&elsewhere, &unknown]), 1_452);
        assert_eq!(of(false, &[&elsewhere, &unknown, &told]), 1_252);
        assert_eq!(of(false, &[&told, &leaving]), 1_152);
        assert_eq!(of(true, &[&told, &leaving]), 1_382);
        assert_eq!(over(false, true, &[&told, &leaving]), 1_452);
    }
}
