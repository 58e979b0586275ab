//! The limits of a relay.
use std::net::IpAddr;
use std::str::FromStr;

use crate::membership::QueryTimes;

/// The settings of a relay.
#[derive(Clone, Debug)]
pub struct RelaySettings {
    /// The addresses that it advertises, one for each IP version; without one, the address that was asked.
    pub addresses: Vec<IpAddr>,
    /// The groups that it carries; empty: all that a router forwards.
    pub groups: Vec<Network>,
    /// Seconds between the queries of a gateway, 1 to 127.
    pub query_interval_s: u32,
    /// The most tunnels.
    pub most_tunnels: usize,
    /// The most tunnels of one network: an IPv4 address, or a /64 of IPv6.
    pub most_tunnels_of_a_network: usize,
    /// The most channels that are joined.
    pub most_channels: usize,
    /// The most groups of one tunnel, and the most sources of one group.
    pub most_groups_of_a_tunnel: usize,
    /// The most messages of one network in a second.
    pub messages_per_second: u32,
}

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    length: u8,
}

impl Default for RelaySettings {
    fn default() -> Self {
        Self {
            addresses: Vec::new(),
            groups: Vec::new(),
            query_interval_s: 10,
            most_tunnels: 1_024,
            most_tunnels_of_a_network: 64,
            most_channels: 256,
            most_groups_of_a_tunnel: 32,
            messages_per_second: 20,
        }
    }
}

impl RelaySettings {
    /// One query in two may be lost.
    pub fn times(&self) -> QueryTimes {
        QueryTimes { interval_s: self.query_interval_s.clamp(1, 127), robustness: 2 }
    }

    pub(super) fn address_for(&self, here: IpAddr) -> IpAddr {
        let here = here.to_canonical();
        self.addresses.iter().find(|own| own.is_ipv4() == here.is_ipv4()).copied().unwrap_or(here)
    }

    pub(super) fn carries(&self, group: IpAddr) -> bool {
        is_routed(group) && (self.groups.is_empty() || self.groups.iter().any(|range| range.contains(group)))
    }
}

/// True for groups of a wider scope than a link.
pub(super) fn is_routed(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(v4) => v4.is_multicast() && v4.octets().first_chunk() != Some(&[224, 0, 0]),
        IpAddr::V6(v6) => v6.is_multicast() && v6.segments().first().is_some_and(|first| first & 15 > 2),
    }
}

impl Network {
    /// True if the address is in the range.
    pub fn contains(self, address: IpAddr) -> bool {
        let same = |ours: u128, theirs: u128, bits: u32| {
            bits.checked_sub(u32::from(self.length)).is_some_and(|rest| {
                ours.checked_shr(rest).unwrap_or(0) == theirs.checked_shr(rest).unwrap_or(0)
            })
        };
        match (self.address, address) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => {
                same(u128::from(ours.to_bits()), u128::from(theirs.to_bits()), 32)
            }
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => same(ours.to_bits(), theirs.to_bits(), 128),
            _ => false,
        }
    }
}

/// As `239.77.0.0/16`, or one address.
impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, length) =
            text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
        let address: IpAddr = address.parse().map_err(|_| format!("{text:?} has no IP address"))?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let length = length.map_or(Ok(most), str::parse::<u8>).ok().filter(|length| *length <= most);
        let length = length.ok_or_else(|| format!("the prefix of {text:?} is not within 0 and {most}"))?;
        Ok(Self { address, length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_its_addresses() {
        let has =
            |range: &str, address: &str| range.parse::<Network>().unwrap().contains(address.parse().unwrap());
        assert!(has("239.77.0.0/16", "239.77.9.9") && !has("239.77.0.0/16", "239.78.0.0"));
        assert!(has("232.0.0.1", "232.0.0.1") && !has("232.0.0.1", "232.0.0.2"));
        assert!(has("0.0.0.0/0", "224.1.1.1") && !has("0.0.0.0/0", "ff3e::1"));
        assert!(has("ff3e::/32", "ff3e::8000:1") && !has("ff3e::/32", "ff3e:1::1") && has("::/0", "ff3e::1"));
        for wrong in ["", "x/8", "10.0.0.0/33", "::/129", "10.0.0.0/-1"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn groups_of_a_link_are_never_carried() {
        let settings = RelaySettings::default();
        for group in ["224.0.0.22", "10.0.0.1", "ff02::1", "ff01::9", "2001:db8::1"] {
            assert!(!settings.carries(group.parse().unwrap()), "{group}");
        }
        for group in ["224.0.1.1", "232.1.2.3", "ff05::1", "ff3e::8000:1"] {
            assert!(settings.carries(group.parse().unwrap()), "{group}");
        }
        let few = RelaySettings { groups: vec!["232.77.0.0/16".parse().unwrap()], ..settings };
        assert!(few.carries("232.77.0.1".parse().unwrap()) && !few.carries("232.78.0.1".parse().unwrap()));
    }

    #[test]
    fn the_advertised_address_is_of_the_askers_family() {
        let own: IpAddr = "192.0.2.9".parse().unwrap();
        let settings = RelaySettings { addresses: vec![own], ..RelaySettings::default() };
        assert_eq!(settings.address_for("192.52.193.1".parse().unwrap()), own);
        assert_eq!(
            settings.address_for("2001:3::1".parse().unwrap()),
            "2001:3::1".parse::<IpAddr>().unwrap()
        );
        assert_eq!(settings.address_for("::ffff:10.0.0.1".parse().unwrap()), own);
    }
}
