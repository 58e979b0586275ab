//! Interfaces of this host, by the operator's name for them.
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::{InterfaceFlags, if_nametoindex};

/// An interface that multicast may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) index: u32,
    pub(crate) flags: InterfaceFlags,
    pub(crate) addresses: Vec<IpAddr>,
}

impl Interface {
    /// The interface with this name, number or address; `None` if `text` is empty, so that the system chooses.
    pub(crate) fn find(text: &str) -> io::Result<Option<Self>> {
        if text.is_empty() {
            return Ok(None);
        }
        let all = Self::all()?;
        choose(&all, text).cloned().map(Some).ok_or_else(|| none_such(&all, text))
    }

    /// All interfaces, in the order of their numbers.
    pub(crate) fn all() -> io::Result<Vec<Self>> {
        let mut all: Vec<Self> = Vec::new();
        for entry in getifaddrs().map_err(io::Error::from)? {
            let address = entry.address.and_then(|address| {
                let v4 = address.as_sockaddr_in().map(|found| IpAddr::V4(found.ip()));
                v4.or_else(|| address.as_sockaddr_in6().map(|found| IpAddr::V6(found.ip())))
            });
            let Ok(index) = if_nametoindex(entry.interface_name.as_str()) else { continue };
            match all.iter_mut().find(|known| known.index == index) {
                Some(known) => known.addresses.extend(address),
                None => all.push(Self {
                    name: entry.interface_name,
                    index,
                    flags: entry.flags,
                    addresses: address.into_iter().collect(),
                }),
            }
        }
        all.sort_by_key(|interface| interface.index);
        Ok(all)
    }

    /// Its first IPv4 address.
    pub(crate) fn v4(&self) -> io::Result<Ipv4Addr> {
        let v4 = self.addresses.iter().find_map(|address| match address {
            IpAddr::V4(v4) => Some(*v4),
            IpAddr::V6(_) => None,
        });
        v4.ok_or_else(|| {
            unusable(format!("interface {} has no IPv4 address, and the group is of IPv4", self.name))
        })
    }

    /// Its first IPv6 address, preferably one that is valid beyond the link.
    pub(crate) fn v6(&self) -> io::Result<Ipv6Addr> {
        let mut v6: Vec<Ipv6Addr> = self.addresses.iter().filter_map(as_v6).collect();
        v6.sort_by_key(|address| is_link_local(*address));
        v6.first().copied().ok_or_else(|| {
            unusable(format!("interface {} has no IPv6 address, and the group is of IPv6", self.name))
        })
    }
}

fn choose<'a>(all: &'a [Interface], text: &str) -> Option<&'a Interface> {
    if let Ok(address) = text.parse::<IpAddr>() {
        let owner = all.iter().find(|interface| interface.addresses.contains(&address));
        // The whole of 127/8 is this host, whatever address the loopback interface has.
        return owner
            .or_else(|| all.iter().find(|interface| address.is_loopback() && interface.is_loopback()));
    }
    let by_name = all.iter().find(|interface| interface.name == text);
    by_name.or_else(|| all.iter().find(|interface| Ok(interface.index) == text.parse()))
}

impl Interface {
    fn is_loopback(&self) -> bool {
        self.flags.contains(InterfaceFlags::IFF_LOOPBACK)
    }
}

fn as_v6(address: &IpAddr) -> Option<Ipv6Addr> {
    match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(v6) => Some(*v6),
    }
}

pub(crate) fn is_link_local(address: Ipv6Addr) -> bool {
    address.segments()[0] & 0xffc0 == 0xfe80
}

fn none_such(all: &[Interface], text: &str) -> io::Error {
    let shown = |interface: &Interface| match interface.addresses.first() {
        Some(address) => format!("{} ({address})", interface.name),
        None => interface.name.clone(),
    };
    let known: Vec<String> = all.iter().map(shown).collect();
    unusable(format!(
        "this host has no interface with the name, number or address {text:?}; it has {}",
        known.join(", ")
    ))
}

fn unusable(sentence: String) -> io::Error {
    io::Error::new(io::ErrorKind::AddrNotAvailable, sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(name: &str, index: u32, addresses: &[&str]) -> Interface {
        let loopback = if name == "lo" { InterfaceFlags::IFF_LOOPBACK } else { InterfaceFlags::empty() };
        let flags = InterfaceFlags::IFF_UP | loopback;
        let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        Interface { name: name.to_owned(), index, flags, addresses }
    }

    fn host() -> Vec<Interface> {
        vec![
            interface("lo", 1, &["127.0.0.1", "::1"]),
            interface("eth0", 2, &["10.0.0.9", "fe80::9", "2001:db8::9"]),
            interface("tun0", 7, &[]),
        ]
    }

    #[test]
    fn a_name_a_number_and_every_address_lead_to_the_interface() {
        let all = host();
        for text in ["eth0", "2", "10.0.0.9", "2001:db8::9", "fe80::9"] {
            assert_eq!(choose(&all, text).map(|found| found.index), Some(2), "{text}");
        }
        assert_eq!(choose(&all, "127.3.0.1").map(|found| found.index), Some(1));
        for text in ["eth1", "9", "10.0.0.1", "::2", "eth"] {
            assert_eq!(choose(&all, text), None, "{text}");
        }
    }

    #[test]
    fn the_address_beyond_the_link_is_preferred_and_a_lack_is_said() {
        let all = host();
        assert_eq!(all[1].v6().unwrap(), "2001:db8::9".parse::<Ipv6Addr>().unwrap());
        assert_eq!(all[1].v4().unwrap(), Ipv4Addr::new(10, 0, 0, 9));
        assert!(all[2].v4().unwrap_err().to_string().contains("tun0 has no IPv4 address"));
        let sentence = none_such(&all, "eth7").to_string();
        assert!(sentence.contains("\"eth7\"; it has lo (127.0.0.1), eth0 (10.0.0.9), tun0"), "{sentence}");
    }

    #[test]
    fn this_host_has_a_loopback_interface() {
        let found = Interface::find("127.0.0.1").unwrap().unwrap();
        assert!(found.is_loopback() && found.index > 0);
        assert_eq!(Interface::find("").unwrap(), None);
    }
}
