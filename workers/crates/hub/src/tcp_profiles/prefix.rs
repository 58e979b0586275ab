//! A destination prefix.
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Addresses with the same first bits, of IPv4 or IPv6.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix {
    network: IpAddr,
    length: u8,
}

impl Prefix {
    /// Parses `network/length`; IPv4 written as IPv6 (`::ffff:192.0.2.0/120`) is IPv4.
    ///
    /// # Errors
    ///
    /// A sentence with the reason, also for a network with bits behind the prefix.
    pub fn parse(text: &str) -> Result<Self, String> {
        let shown: String = text.chars().take(60).collect();
        let not = || format!("`prefix` is {shown:?}; write a network and its length, as in 192.0.2.0/24");
        let (network, length) = text.split_once('/').ok_or_else(not)?;
        let network: IpAddr = network.parse().map_err(|_| not())?;
        let is_plain = (1..=3).contains(&length.len()) && length.bytes().all(|byte| byte.is_ascii_digit());
        let length: u8 = length.parse().ok().filter(|_| is_plain).ok_or_else(not)?;
        let prefix = match network.to_canonical() {
            v4 if network.is_ipv6() && v4.is_ipv4() && length >= MAPPED_BITS => {
                Self { network: v4, length: length - MAPPED_BITS }
            }
            _ => Self { network, length },
        };
        if prefix.length > prefix.longest() {
            return Err(not());
        }
        if prefix.masked(prefix.network) != prefix.network {
            return Err(format!("`prefix` is {shown:?}, with bits behind its length; set them to zero"));
        }
        Ok(prefix)
    }

    /// True if the address is one of these; an IPv4 address written as IPv6 counts as IPv4.
    pub fn has(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.network.is_ipv4() && self.masked(address) == self.network
    }

    /// The number of bits that the addresses share.
    pub fn length(&self) -> u8 {
        self.length
    }

    fn longest(&self) -> u8 {
        if self.network.is_ipv4() { 32 } else { 128 }
    }

    fn masked(&self, address: IpAddr) -> IpAddr {
        match address {
            IpAddr::V4(v4) => {
                let behind = 32_u32.saturating_sub(self.length.into());
                IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() & u32::MAX.checked_shl(behind).unwrap_or(0)))
            }
            IpAddr::V6(v6) => {
                let behind = 128_u32.saturating_sub(self.length.into());
                IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & u128::MAX.checked_shl(behind).unwrap_or(0)))
            }
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.length)
    }
}

impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Prefix {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Prefix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// The bits in front of an IPv4 address that is written as IPv6 (RFC 4291, section 2.5.5.2).
const MAPPED_BITS: u8 = 96;

#[cfg(test)]
mod tests {
    use super::*;

    fn has(prefix: &str, address: &str) -> bool {
        Prefix::parse(prefix).unwrap().has(address.parse().unwrap())
    }

    #[test]
    fn addresses_of_both_families_match_their_own_prefixes() {
        assert!(has("192.0.2.0/24", "192.0.2.255") && !has("192.0.2.0/24", "192.0.3.0"));
        assert!(has("192.0.2.0/24", "::ffff:192.0.2.7"), "a listener for both families sees these");
        assert!(has("::ffff:192.0.2.0/120", "192.0.2.7"));
        assert!(has("0.0.0.0/0", "203.0.113.1") && !has("0.0.0.0/0", "2001:db8::1"));
        assert!(has("::/0", "2001:db8::1") && !has("::/0", "192.0.2.1"));
        assert!(has("2001:db8::/32", "2001:db8:ffff::") && !has("2001:db8::/32", "2001:db9::"));
        assert!(has("192.0.2.1/32", "192.0.2.1") && has("2001:db8::1/128", "2001:db8::1"));
    }

    #[test]
    fn texts_that_are_no_prefix_are_refused() {
        for text in
            ["", "192.0.2.0", "192.0.2.0/33", "192.0.2.0/-1", "192.0.2.0/+8", "::/129", "a/8", "192.0.2.0/"]
        {
            assert!(Prefix::parse(text).unwrap_err().contains("write a network"), "{text}");
        }
        assert!(Prefix::parse("192.0.2.1/24").unwrap_err().contains("set them to zero"));
        assert!(Prefix::parse("2001:db8::1/64").unwrap_err().contains("set them to zero"));
    }
}
