"""The legs of a plan: the feed's own unicast leg, and a group whose address follows from the number of its leg."""

from ipaddress import IPv4Network, IPv6Network

from downburst.model import Leg, Transport
from downburst.settings import MulticastSettings
from downburst_scheduler.options import Option


def legs_of(
    chosen: Option, *, unicast_leg: int, group: Leg | None, circuit_leg: int | None = None
) -> tuple[Leg, ...]:
    """The legs that carry out a choice; `group` is the multicast leg to fill, where there is one."""
    legs = []
    if chosen.unicast_sites or not (chosen.multicast_sites or chosen.circuit_sites):
        legs.append(Leg(unicast_leg, Transport.UNICAST, tuple(sorted(chosen.unicast_sites))))
    if chosen.multicast_sites and group is not None:
        sites = tuple(sorted(chosen.multicast_sites))
        legs.append(Leg(group.leg, Transport.MULTICAST, sites, group.group, group.port, group.rate_bps))
    if chosen.circuit_sites and circuit_leg is not None:
        circuits = tuple(sorted(chosen.circuit_sites))
        names = tuple(site for site, _ in circuits)
        legs.append(Leg(circuit_leg, Transport.STATIC_CIRCUIT, names, circuits=circuits))
    return tuple(legs)


def group_leg(leg: int, settings: MulticastSettings, *, rate_bps: int) -> Leg:
    """An empty multicast leg: address and port are its own among the legs that live at the same time."""
    return Leg(
        leg,
        Transport.MULTICAST,
        sites=(),
        group=group_address(leg, settings.network),
        port=settings.port_base + leg % 1_000,
        rate_bps=rate_bps,
    )


def group_address(leg: int, network: IPv4Network | IPv6Network) -> str:
    """The leg's place in the network, without the network's first address."""
    usable = max(network.num_addresses - 1, 1)
    offset = (leg - 1) % usable + (1 if network.num_addresses > 1 else 0)
    return str(network.network_address + offset)
