use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// True if a product may be fetched from this address: one of the public internet, or any but a group's if private
/// networks are allowed. A notification of a stranger must not reach the hub's own network.
pub fn may_connect(address: IpAddr, allows_private: bool) -> bool {
    let address = address.to_canonical();
    if address.is_multicast() || address.is_unspecified() || is_broadcast(address) {
        return false;
    }
    allows_private || is_public(address)
}

fn is_broadcast(address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(address) if address.is_broadcast())
}

/// IANA's registries of special-purpose addresses: only those that are globally reachable.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !is_special_v4(address),
        IpAddr::V6(address) => is_global_unicast_v6(address),
    }
}

fn is_special_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_documentation()
        || first == 0
        || first >= 240
        || (first == 100 && (64..128).contains(&second))
        || (first == 192 && second == 0 && third == 0)
        || (first == 198 && (18..20).contains(&second))
}

/// 2000::/3 without documentation, and without addresses that contain an IPv4 address, which could be a private one.
fn is_global_unicast_v6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    let is_documentation = first == 0x2001 && second == 0x0db8 || first == 0x3fff && second < 0x1000;
    let has_ipv4 = first == 0x2002 || first == 0x2001 && second == 0;
    first & 0xe000 == 0x2000 && !is_documentation && !has_ipv4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_public_internet_may_be_asked() {
        for public in ["8.8.8.8", "193.0.6.139", "2001:67c:2e8:22::c100:68b", "::ffff:8.8.8.8"] {
            assert!(may_connect(public.parse().unwrap(), false), "{public}");
        }
    }

    #[test]
    fn private_networks_need_to_be_allowed() {
        let private = [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "198.18.0.1",
            "192.0.0.8",
            "0.1.2.3",
            "240.0.0.1",
            "192.0.2.1",
            "::1",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "::ffff:10.0.0.1",
            "2002:0a00:0001::1",
            "2001:0:4136::1",
            "2001:db8::1",
            "64:ff9b::a00:1",
        ];
        for private in private {
            let address = private.parse().unwrap();
            assert!(!may_connect(address, false), "{private}");
            assert!(may_connect(address, true), "{private}");
        }
    }

    #[test]
    fn groups_and_nowhere_are_never_asked() {
        for never in ["239.1.2.3", "224.0.0.1", "255.255.255.255", "0.0.0.0", "::", "ff02::1"] {
            assert!(!may_connect(never.parse().unwrap(), true), "{never}");
        }
    }
}
