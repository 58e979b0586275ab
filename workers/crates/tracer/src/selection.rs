//! The choice of connections by their ends.
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use downburst_model::SiteName;

use crate::record::Connection;

/// Connections that are wanted. An empty set or list, and no site, stand for all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The port of either end.
    pub ports: BTreeSet<u16>,
    /// The address of either end.
    pub addresses: Vec<Prefix>,
    /// The site that is served.
    pub site: Option<SiteName>,
}

/// Addresses that begin alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    bits: u8,
}

impl Selection {
    /// True for a wanted connection.
    pub fn takes(&self, connection: &Connection) -> bool {
        let of_site = self.site.is_none() || connection.site == self.site;
        of_site && self.takes_ends(connection.local, connection.peer)
    }

    /// True if a connection between these ends is wanted, whatever it serves.
    pub fn takes_ends(&self, local: SocketAddr, peer: SocketAddr) -> bool {
        let ends = [local, peer];
        let by_port = self.ports.is_empty() || ends.iter().any(|end| self.ports.contains(&end.port()));
        let within = |end: &SocketAddr| self.addresses.iter().any(|prefix| prefix.holds(end.ip()));
        by_port && (self.addresses.is_empty() || ends.iter().any(within))
    }
}

impl Prefix {
    /// True for an address that begins so.
    pub fn holds(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                same_start(own.to_bits().into(), other.to_bits().into(), 32, self.bits)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                same_start(own.to_bits(), other.to_bits(), 128, self.bits)
            }
            _ => false,
        }
    }
}

impl FromStr for Prefix {
    type Err = String;

    /// Reads `192.0.2.0/24` or `2001:db8::/32`; an address alone stands for itself.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            let text: String = text.chars().take(64).collect();
            format!("{text:?} is no address or prefix; write 192.0.2.7, 192.0.2.0/24 or 2001:db8::/32")
        };
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let whole = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(whole), str::parse).map_err(|_| wrong())?;
        if bits > whole { Err(wrong()) } else { Ok(Self { address, bits }) }
    }
}

fn same_start(one: u128, other: u128, width: u32, bits: u8) -> bool {
    (one ^ other).checked_shr(width.saturating_sub(bits.into())).unwrap_or(0) == 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::record::tests::record;

    fn prefix(text: &str) -> Prefix {
        text.parse().unwrap()
    }

    #[test]
    fn a_prefix_holds_the_addresses_that_begin_so() {
        let held = |text: &str, address: &str| prefix(text).holds(address.parse().unwrap());
        assert!(held("192.0.2.0/24", "192.0.2.255") && !held("192.0.2.0/24", "192.0.3.0"));
        assert!(held("192.0.2.7", "192.0.2.7") && !held("192.0.2.7", "192.0.2.6"));
        assert!(held("192.0.2.0/24", "::ffff:192.0.2.9"));
        assert!(held("2001:db8::/32", "2001:db8:1::5") && !held("2001:db8::/32", "2001:db9::"));
        assert!(held("::/0", "2001:db8::") && held("0.0.0.0/0", "1.2.3.4") && !held("::/0", "1.2.3.4"));
    }

    #[test]
    fn what_is_no_prefix_is_refused_with_an_example() {
        for text in ["", "192.0.2", "192.0.2.0/33", "::/129", "10.0.0.0/-1", "a/8", "10.0.0.0/"] {
            let sentence = text.parse::<Prefix>().unwrap_err();
            assert!(sentence.contains("192.0.2.0/24"), "{sentence}");
        }
    }

    #[test]
    fn either_end_fits_and_all_conditions_hold() {
        let connection = record(0, "a", 0).connection;
        let takes = |ports: &[u16], addresses: &[&str], site: Option<&str>| {
            let selection = Selection {
                ports: ports.iter().copied().collect(),
                addresses: addresses.iter().map(|text| prefix(text)).collect(),
                site: site.map(|name| SiteName::parse(name).unwrap()),
            };
            selection.takes(&connection)
        };
        assert!(takes(&[], &[], None) && takes(&[], &[], Some("a")) && !takes(&[], &[], Some("b")));
        assert!(
            takes(&[7370], &[], None) && takes(&[1, 40000], &["10.0.0.2"], None) && !takes(&[1], &[], None)
        );
        assert!(takes(&[], &["10.0.0.1"], None) && !takes(&[7370], &["10.0.1.0/24"], None));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[0-9a-f:./]{0,20}", address in any::<u128>()) {
            if let Ok(prefix) = text.parse::<Prefix>() {
                prefix.holds(IpAddr::from(address.to_be_bytes()));
            }
        }
    }
}
