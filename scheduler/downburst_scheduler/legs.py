"""The legs of a plan: the feed's own unicast leg, and groups with addresses derived from the leg's number."""

from collections.abc import Sequence
from dataclasses import replace
from ipaddress import IPv4Network, IPv6Network

from downburst.domain.feeds import Feed, FeedClass
from downburst.domain.plans import Leg, Transport
from downburst.domain.relays import FanOut
from downburst.settings.multicast import MulticastSettings
from downburst_scheduler.models.candidates import Evaluated
from downburst_scheduler.models.parts import Part
from downburst_scheduler.models.repair import Repair


def legs_of(
    chosen: Evaluated, *, unicast_leg: int, groups: Sequence[Leg] = (), circuit_leg: int | None = None
) -> tuple[Leg, ...]:
    """The legs that carry out a choice; `groups` are the multicast legs to fill, in the order of the choice's own."""
    legs = []
    if chosen.unicast_sites or not (chosen.groups or chosen.circuit_sites):
        legs.append(Leg(unicast_leg, Transport.UNICAST, tuple(sorted(chosen.unicast_sites))))
    for part, group in zip(chosen.groups, groups, strict=False):
        sites = tuple(sorted(part.sites))
        circuits = tuple(sorted(part.circuits))
        legs.append(by_relay(replace(group, sites=sites, circuits=circuits), part))
    if chosen.circuit_sites and circuit_leg is not None:
        circuits = tuple(sorted(chosen.circuit_sites))
        names = tuple(site for site, _ in circuits)
        legs.append(Leg(circuit_leg, Transport.STATIC_CIRCUIT, names, circuits=circuits))
    return tuple(legs)


def followed(parts: Sequence[Part], standing: Sequence[Leg]) -> list[Leg | None]:
    """For each group the existing leg that most of its sites already receive; None if it needs a new one.

    During its life a leg uses one circuit, or one relay, or neither.
    """
    free, found = list(standing), []
    for part in parts:
        alike = [leg for leg in free if _same_carriers(leg, part)]
        shared = [(len(set(part.sites).intersection(leg.sites)), leg) for leg in alike]
        most, leg = max(shared, key=lambda one: one[0], default=(0, None))
        # A single group stays the same one when sites join and leave.
        taken = leg if leg is not None and (most or len(parts) == len(standing) == 1) else None
        if taken is not None:
            free.remove(taken)
        found.append(taken)
    return found


def repair_of(feed: Feed) -> Repair:
    """The way in which the node repairs a feed's groups: urgent products don't wait for the rest of a block."""
    return Repair.UNICAST if feed.feed_class in URGENT else Repair.CODED


def paced(leg: Leg, rate_bps: int) -> Leg:
    """The leg at a rate; small differences of measurements are no reason for another plan."""
    measured = leg.circuits or leg.relay
    steady = measured and leg.rate_bps and KEPT_FROM * leg.rate_bps <= rate_bps <= KEPT_TO * leg.rate_bps
    return leg if steady else replace(leg, rate_bps=rate_bps)


def group_leg(leg: int, settings: MulticastSettings, *, rate_bps: int) -> Leg:
    """An empty multicast leg: its address and port are unique among legs that exist at the same time."""
    return Leg(
        leg,
        Transport.MULTICAST,
        sites=(),
        group=group_address(leg, settings.network),
        port=settings.port_base + leg % 1_000,
        rate_bps=rate_bps,
    )


def group_address(leg: int, network: IPv4Network | IPv6Network) -> str:
    """The leg's address in the network, without the network's first one."""
    usable = max(network.num_addresses - 1, 1)
    offset = (leg - 1) % usable + (1 if network.num_addresses > 1 else 0)
    return str(network.network_address + offset)


def by_relay(leg: Leg, part: Part) -> Leg:
    """The leg with the relay of a part, if it has one."""
    if part.relay is None:
        return leg
    return replace(leg, relay=part.relay.relay, fan_out=part.relay.fan_out)


def _same_carriers(leg: Leg, part: Part) -> bool:
    """True if they use the same circuits, and the same relay in the same manner."""
    wanted = by_relay(replace(leg, relay=None, fan_out=FanOut.GROUP), part)
    circuits = [{number for _, number in one.circuits} for one in (leg, part)]
    return circuits[0] == circuits[1] and (leg.relay, leg.fan_out) == (wanted.relay, wanted.fan_out)


URGENT = (FeedClass.WARNING, FeedClass.OBSERVATION)
"""The node repairs packets of these by themselves."""
KEPT_FROM, KEPT_TO = 0.98, 1.1
"""Relative to a leg's rate on a circuit or to a relay: repair covers a small shortfall, a small surplus is wasted."""
