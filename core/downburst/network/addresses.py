"""IP addresses of single hosts on the public network, and groups of addresses that count as one."""

from ipaddress import IPv6Address, ip_address, ip_network


def is_public(text: str) -> bool:
    """True for an address of the public network that does not embed another address.

    An address that embeds one (NAT64, 6to4, Teredo, mapped) leads to a place that only the translator knows.
    """
    try:
        address = ip_address(text)
    except ValueError:
        return False
    if not address.is_global or address.is_multicast or address.is_reserved:
        return False
    return not any(address in network for network in _NOT_PUBLIC)


def network_of(address: str) -> str:
    """The unit that counts as one address: for IPv6 the /64 network, in which a host can choose any address."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return address
    return str(parsed.ipv4_mapped or ip_network((int(parsed), 64), strict=False))


_NOT_PUBLIC = tuple(
    map(
        ip_network,
        (
            "192.0.0.0/24",  # for protocols (RFC 6890), DS-Lite for one
            "192.88.99.0/24",  # relays of 6to4 (RFC 7526)
            "::/96",  # IPv4-compatible, deprecated
            "::ffff:0:0/96",  # mapped
            "::ffff:0:0:0/96",  # translated (RFC 2765)
            "64:ff9b::/96",  # NAT64
            "64:ff9b:1::/48",  # NAT64 of a network's own (RFC 8215)
            "2001::/32",  # Teredo
            "2002::/16",  # 6to4
            "fec0::/10",  # site-local, deprecated and still routed in some networks
        ),
    )
)
