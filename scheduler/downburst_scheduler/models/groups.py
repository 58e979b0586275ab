"""Groups of a feed's sites as parts of a plan: their members and paces."""

import math
from collections.abc import Container, Sequence
from dataclasses import replace

from downburst.domain.plans import Transport
from downburst_scheduler.figures.wording import megabits, sites_of, some
from downburst_scheduler.models.grouping import GroupingRules, Receiver, grouped
from downburst_scheduler.models.offers import CircuitOffer
from downburst_scheduler.models.parts import GROUP_SHARE_OF_EGRESS, Asked, Part, tunnels_of
from downburst_scheduler.models.population import Alike, count_of, members_of, names_of
from downburst_scheduler.models.rates import whole
from downburst_scheduler.models.repair import Repair, repair_share
from downburst_scheduler.models.situation import Situation
from downburst_scheduler.models.sweeps import UsableRate, usable_rate
from downburst_scheduler.models.transports import multicast


def grouped_sites(
    asked: Asked, members: Sequence[Alike], *, limit_bps: float | None, most: int = 1
) -> tuple[Part, ...]:
    """One group, or the partition by rate with the least mean latency; `limit_bps` is that of a circuit's payload."""
    if most == 1:
        return (_group(asked, members, limit_bps),)
    fastest_bps = _fastest_bps(asked)
    receivers = [_receiver(str(number), one, fastest_bps) for number, one in enumerate(members)]
    by_losses = {str(number) for number, one in enumerate(members) if any(site.lossy for site in one.members)}
    receivers = _in_steps(sorted(receivers, key=lambda one: one.rate_bps), by_losses)
    paces_bps = {one.site: one.rate_bps for one in receivers}
    rules = GroupingRules(GROUP_SHARE_OF_EGRESS * asked.situation.egress_bps, largest_groups=most)
    found = grouped(receivers, float(asked.arrivals.size_bytes.mean()), rules)
    parts = []
    for group in found:
        ones = [members[int(number)] for number in group.sites]
        short = group.rate_bps < min(paces_bps[number] for number in group.sites) * (1 - ROUNDING)
        if count_of(ones) > 1:
            parts.append(_group(asked, ones, limit_bps, group.rate_bps if short else math.inf))
    return tuple(parts)


def riding_groups(asked: Asked) -> list[tuple[Part, CircuitOffer]]:
    """One group for each circuit that joins several of the sites, at its measured rate."""
    found: dict[int, list[Alike]] = {}
    for one in asked.served:
        if one.facts.circuit is not None and one.facts.circuit.sites > 1 and one.facts.no_circuit_group is None:
            found.setdefault(one.facts.circuit.circuit, []).append(one)
    return [_riding(asked, members) for members in found.values() if count_of(members) > 1]


def relayed_groups(asked: Asked, *, insists: bool = False) -> tuple[Part, ...]:
    """One group for each relay with several sites behind it that want most of the feed; each costs one copy."""
    found: dict[str, list[Alike]] = {}
    for one in asked.served:
        wants = insists or asked.why_alone(one) is None
        if one.facts.relay is not None and one.facts.no_relay_group is None and wants:
            found.setdefault(one.facts.relay.relay, []).append(one)
    several = [members for _, members in sorted(found.items()) if count_of(members) > 1]
    groups = [_behind_relay(asked, members, relays=len(several)) for members in several]
    # A first segment that is slower than the feed would starve the group.
    return tuple(part for part in groups if part.outcome is None or (part.outcome.utilisation or 0.0) <= 1)


def _in_steps(receivers: Sequence[Receiver], by_losses: Container[str]) -> list[Receiver]:
    """Receivers in order of their rate; those of nearly the same rate get the lowest of these, to stay together.

    `by_losses` has those whose rates are known only by the losses of groups.
    """
    found: list[Receiver] = []
    for one in receivers:
        alike_bps = found[-1].rate_bps if found else 0.0
        alike = ALIKE_BY_LOSSES if one.site in by_losses else ALIKE
        found.append(replace(one, rate_bps=alike_bps) if one.rate_bps <= alike_bps * alike else one)
    return found


def partition_of(asked: Asked, groups: Sequence[Part], rest: Sequence[Alike], *, circuit: bool) -> str:
    """The groups of a candidate and the sites beside them, in words."""
    counts = [len(part.sites) for part in groups if part.relay is None]
    said = f"one group of {counts[0]} sites" if len(counts) == 1 else _by_rate(groups)
    said += " on a multipoint circuit" if circuit else ""
    said = ", ".join([*([said] if counts else []), *(_behind(part) for part in groups if part.relay is not None)])
    said += tunnels_of(groups).said + _unheard(asked, groups)
    if not rest:
        return said
    why = [reason for one in rest for site in one.members if (reason := site.no_multicast or asked.why_alone(one))]
    return f"{said}, {sites_of(count_of(rest))} by unicast" + (f" ({some(why)})" if why else "")


def _behind_relay(asked: Asked, members: Sequence[Alike], *, relays: int) -> Part:
    """A group in a relay's network, limited by the segment before the relay and by the members' lines."""
    offers = [one.facts.relay for one in members if one.facts.relay is not None]
    fastest_bps = min(asked.situation.multicast_rate_bps, GROUP_SHARE_OF_EGRESS * asked.situation.egress_bps / relays)
    limits = [offer.core_bps for offer in offers] + [one.facts.access_bps for one in members]
    rate_bps = min([fastest_bps, *(limit for limit in limits if limit)])
    part = Part(
        Transport.MULTICAST, names_of(members), rate_bps=rate_bps,
        limited=rate_bps < asked.situation.multicast_rate_bps, relay=offers[0],
    )  # fmt: skip
    if not asked.figures:
        return part
    # Losses before the relay are TCP's to repair, and those of the members' own paths are not the group's.
    paths = [replace(whole(one.facts), loss=asked.situation.group_loss) for one in members]
    outcome = multicast(asked.for_groups, paths, rate_bps=rate_bps, repair=asked.situation.repair)
    return replace(part, outcome=outcome)


def _riding(asked: Asked, members: Sequence[Alike]) -> tuple[Part, CircuitOffer]:
    offers = [one.facts.circuit for one in members if one.facts.circuit is not None]
    offer = min(offers, key=lambda offer: offer.group_frames_bps)
    circuits = tuple((name, offer.circuit) for name in names_of(members))
    part = Part(Transport.MULTICAST, names_of(members), rate_bps=offer.group_frames_bps, circuits=circuits)
    if not asked.figures:
        return part, offer
    # Reserved bandwidth has no loss through others, and only the circuit's rate limits it.
    paths = [replace(whole(one.facts), loss=0.0, access_bps=None) for one in members]
    pace_bps = max(offer.group_frames_bps, 1.0)
    return replace(part, outcome=multicast(asked.for_groups, paths, rate_bps=pace_bps)), offer


def _receiver(name: str, one: Alike, fastest_bps: float) -> Receiver:
    knees = [site.sweep.knee_bps for site in one.members if site.sweep is not None and site.sweep.knee_bps]
    rate_bps = min([one.facts.access_bps or fastest_bps, fastest_bps, *knees])
    return Receiver(name, rate_bps, weight=one.facts.count, count=max(round(one.facts.count), 1))


def _group(asked: Asked, members: Sequence[Alike], limit_bps: float | None, most_bps: float = math.inf) -> Part:
    """A group at the pace of its slowest member; `most_bps` is its part of the egress beside other groups."""
    fastest_bps = _fastest_bps(asked)
    ways = [whole(one.facts) for one in members]
    least_loss = _least_loss(asked.situation, count_of(members))
    paths = [replace(way, loss=max(way.loss, least_loss)) for way in ways]
    rate_bps = min([fastest_bps, most_bps, *(path.access_bps for path in paths if path.access_bps)])
    if limit_bps is not None and asked.figures:
        again = repair_share(asked.arrivals.size_bytes, [path.loss for path in paths], asked.situation.repair)
        rate_bps = min(rate_bps, limit_bps * (1 + float(again.max(initial=0.0))))
    lossy = [site for site in members_of(members) if site.lossy and (site.access_bps or math.inf) <= rate_bps]
    swept, usable = some([one.lossy for one in lossy]), None if limit_bps is not None else _usable(asked, members)
    if usable is not None and usable.rate_bps <= rate_bps:
        rate_bps, swept = usable.rate_bps, usable.words
    part = Part(
        Transport.MULTICAST, names_of(members), rate_bps=rate_bps, limited=rate_bps < fastest_bps, swept=swept,
        lossy=any((site.access_bps or math.inf) <= rate_bps for site in lossy),
        tunnels=sum(site.tunnel for site in members_of(members)) if limit_bps is None else 0,
    )  # fmt: skip
    if not asked.figures:
        return part
    reserved = limit_bps is not None
    arrivals = asked.for_groups
    outcome = multicast(arrivals, paths, rate_bps=rate_bps, repair=asked.situation.repair, reserved=reserved)
    return replace(part, outcome=outcome)


def _usable(asked: Asked, members: Sequence[Alike]) -> UsableRate | None:
    """The rate that sweeps of the members' paths allow, for the feed's mean product."""
    sweeps = [site.sweep for site in members_of(members) if site.sweep is not None]
    if not sweeps:
        return None
    return usable_rate(
        sweeps,
        max(round(count_of(members)), 1),
        size_bytes=float(asked.arrivals.size_bytes.mean()) if asked.figures else 1.0,
        repair_bps=asked.situation.egress_bps,
        repair=asked.situation.repair,
    )


def _least_loss(situation: Situation, sites: float) -> float:
    """The loss of each site that explains the measured repair: all of it, or its part where losses add up."""
    return situation.group_loss / (max(sites, 1.0) if situation.repair is Repair.UNICAST else 1.0)


def _fastest_bps(asked: Asked) -> float:
    return min(asked.situation.multicast_rate_bps, GROUP_SHARE_OF_EGRESS * asked.situation.egress_bps)


def _by_rate(groups: Sequence[Part]) -> str:
    """Several groups, each with its pace."""
    paces = [f"{len(part.sites)} sites at {megabits(part.rate_bps or 0.0)}" for part in groups if part.relay is None]
    return f"groups of {', '.join(paces)}"


def _behind(part: Part) -> str:
    pace = f" at up to {megabits(part.rate_bps)}" if part.rate_bps else ""
    name = part.relay.relay if part.relay is not None else ""
    return f"one copy{pace} for the {len(part.sites)} sites behind relay {name}"


def _unheard(asked: Asked, groups: Sequence[Part]) -> str:
    """Sites are tested for multicast by joining: copies continue until the site has received the group."""
    inside = {site for part in groups if part.relay is None for site in part.sites}
    unheard = [site.name for site in members_of(asked.served) if site.unheard and site.name in inside]
    if not unheard:
        return ""
    return f", with copies until sites new to multicast receive it ({some(unheard)})"


ALIKE = 1.05
"""Measured rates of equal lines differ by a few per cent."""
ALIKE_BY_LOSSES = 1.25
"""The queue of a line hides a part of its losses, more of a fast group's than of a slow one's."""
ROUNDING = 1e-9
