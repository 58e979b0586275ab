"""Assigns sites to groups: by right, by interest, and by rate under a budget of egress.

A group goes at the pace of its slowest member, so in an optimal partition sites are next to each other in order of
their rate. A group of one is unicast. A site that can't take the feed's mean is put out: it would fall behind with
any transport.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

import numpy as np
import numpy.typing as npt

from downburst_scheduler.figures.histograms import Floats

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Receiver:
    """The properties of a site that matter for grouping."""

    site: str
    rate_bps: float
    share: float = 1.0
    """Share of the feed that it wants."""
    entitled: bool = True
    """True if its allow list covers everything that a group carries."""
    reachable: bool = True
    """True if it was found to receive groups."""
    weight: float = 1.0
    count: int = 1
    """The number of sites that it represents."""


@dataclass(frozen=True, slots=True)
class Group:
    """Sites that are served together; a single one by unicast."""

    sites: tuple[str, ...]
    rate_bps: float
    latency_s: float


@dataclass(frozen=True, slots=True)
class Partition:
    """The placement of every site, with the reason if it is in no group."""

    groups: tuple[Group, ...]
    alone: dict[str, str]
    put_out: dict[str, str]
    mean_latency_s: float
    egress_bps: float


MOST_GROUPS = 4
"""Groups of one feed at a time; each has a leg of its own at the hub."""


@dataclass(frozen=True, slots=True)
class GroupingRules:
    """Costs, from the operator's settings."""

    egress_bps: float = 1e9
    largest_groups: int = MOST_GROUPS
    mean_bps: float = 0.0
    """Mean rate of the feed; zero puts no site out."""
    unwanted_byte_cost: float = 0.5
    """The cost of an unrequested byte on a site's line, relative to one of the hub's egress."""


def partition(receivers: Sequence[Receiver], size_bytes: float, rules: GroupingRules) -> Partition:
    """The partition with the least mean latency of a product of this size that the egress allows."""
    put_out = {
        one.site: f"{one.site} can take {_mega(one.rate_bps)} and the feed brings {_mega(rules.mean_bps * one.share)}"
        for one in receivers
        if one.rate_bps < rules.mean_bps * one.share * ROOM
    }
    staying = [one for one in receivers if one.site not in put_out]
    alone = {one.site: reason for one in staying if (reason := why_alone(one, rules)) is not None}
    together = sorted((one for one in staying if one.site not in alone), key=lambda one: one.rate_bps)
    reserved_bps = sum(min(one.rate_bps, one.share * rules.mean_bps * ROOM) for one in staying if one.site in alone)
    groups = grouped(together, size_bytes, replace_egress(rules, rules.egress_bps - reserved_bps))
    weights = sum(one.weight for one in together)
    by_site = {one.site: one.weight for one in together}
    total_s = sum(group.latency_s * sum(by_site[site] for site in group.sites) for group in groups)
    return Partition(
        groups=groups,
        alone=alone,
        put_out=put_out,
        mean_latency_s=total_s / weights if weights else 0.0,
        egress_bps=sum(group.rate_bps for group in groups) + reserved_bps,
    )


def why_alone(one: Receiver, rules: GroupingRules) -> str | None:
    """The reason why a site is better served by its own copy; None if it may be in a group."""
    if not one.entitled:
        return f"{one.site} is not allowed all products of a group"
    if not one.reachable:
        return f"{one.site} receives no multicast"
    if one.share < (1 - one.share) * rules.unwanted_byte_cost:
        return f"{one.site} wants {one.share:.0%} of the feed and would discard the rest"
    if one.rate_bps < rules.mean_bps * ROOM:
        return f"{one.site} can receive its part of {_mega(rules.mean_bps)} only"
    return None


def replace_egress(rules: GroupingRules, egress_bps: float) -> GroupingRules:
    """The rules with the remaining egress."""
    return GroupingRules(max(egress_bps, 1.0), rules.largest_groups, rules.mean_bps, rules.unwanted_byte_cost)


def grouped(ordered: Sequence[Receiver], size_bytes: float, rules: GroupingRules) -> tuple[Group, ...]:
    """Groups by rate of receivers in order of their rate, by a dynamic programme for prices of egress.

    At a price the best partition is exact; the price is raised until the egress suffices. Every partition met so far
    is evaluated again with the egress divided optimally, which also uses the remainder of the last price.
    """
    if not ordered:
        return ()
    if len(ordered) > TOLD_APART:
        return _grouped_by_class(ordered, size_bytes, rules)

    def cost(ends: tuple[int, ...]) -> float:
        return sum(
            group.latency_s * _weight(ordered, group) for group in divided(ordered, ends, size_bytes, egress_bps)
        )

    egress_bps = rules.egress_bps
    seen: set[tuple[int, ...]] = set()
    for price in _prices(ordered, size_bytes):
        seen.update(_cheapest(ordered, size_bytes, price, rules.largest_groups))
    # Of equally fast partitions, the one that sends least: similar sites belong together.
    best = min(sorted(seen), key=lambda ends: (float(f"{cost(ends):.9g}"), len(ends)))
    if len(ordered) <= TRIED_FURTHER:
        best = _improved(best, cost, rules.largest_groups)
    return divided(ordered, best, size_bytes, egress_bps)


def _grouped_by_class(ordered: Sequence[Receiver], size_bytes: float, rules: GroupingRules) -> tuple[Group, ...]:
    """Combines sites of nearly the same rate if there are very many, which bounds the work."""
    slow, fast = ordered[0].rate_bps, ordered[-1].rate_bps
    width = math.log(fast / slow) / TOLD_APART + 1e-9
    members = [
        list(some)
        for _, some in groupby(ordered, lambda one: min(int(math.log(one.rate_bps / slow) / width), TOLD_APART - 1))
    ]
    classes = [
        Receiver(str(number), some[0].rate_bps, weight=sum(one.weight for one in some), count=len(some))
        for number, some in enumerate(members)
    ]
    return tuple(
        replace(group, sites=tuple(one.site for number in group.sites for one in members[int(number)]))
        for group in grouped(classes, size_bytes, rules)
    )


def _improved(
    ends: tuple[int, ...], cost: Callable[[tuple[int, ...]], float], largest_groups: int
) -> tuple[int, ...]:
    """Adds, drops and moves single borders while that helps: prices alone miss some partitions."""
    best, least = ends, cost(ends)
    while True:
        tried = min(((cost(one), one) for one in _neighbours(best, largest_groups)), default=(least, best))
        if tried[0] >= least * (1 - 1e-9):
            return best
        least, best = tried


def _neighbours(ends: tuple[int, ...], largest_groups: int) -> Iterator[tuple[int, ...]]:
    count, inner = ends[-1], set(ends[:-1])
    changed = [inner ^ {border} for border in range(1, count)]
    changed += [
        (inner - {border}) | {border + step} for border in inner for step in (-1, 1) if 0 < border + step < count
    ]
    for borders in changed:
        found = (*sorted(borders), count)
        several = sum(end - start > 1 for start, end in pairwise((0, *found)))
        if several <= largest_groups:
            yield found


def _cheapest(
    ordered: Sequence[Receiver], size_bytes: float, price: float, largest_groups: int
) -> set[tuple[int, ...]]:
    """Ends of the groups of the best partitions at a price of a bit per second, by the number of multicast groups."""
    rates = np.array([one.rate_bps for one in ordered])
    weight = np.concatenate([[0.0], np.cumsum([one.weight for one in ordered])])
    count = len(ordered)
    best = np.full((largest_groups + 1, count + 1), math.inf)
    best[:, 0] = 0.0
    came = np.zeros((largest_groups + 1, count + 1), dtype=np.int64)
    for end in range(1, count + 1):
        starts = np.arange(end)
        held = weight[end] - weight[starts]
        pace = np.minimum(rates[starts], np.sqrt(held * size_bytes * 8 / price) if price > 0 else math.inf)
        cost = held * size_bytes * 8 / pace + price * pace
        for groups in range(largest_groups + 1):
            paths = best[max(groups - 1, 0), :end] + cost if groups else np.full(end, math.inf)
            if ordered[end - 1].count == 1:
                paths[end - 1] = best[groups, end - 1] + cost[end - 1]
            came[groups, end] = int(np.argmin(paths))
            best[groups, end] = paths[came[groups, end]]
    several = [one.count > 1 for one in ordered]
    return {
        _ends(came, several, groups) for groups in range(largest_groups + 1) if math.isfinite(best[groups, count])
    }


def _ends(came: Integers, several: Sequence[bool], groups: int) -> tuple[int, ...]:
    ends = [len(several)]
    while (start := int(came[groups, ends[-1]])) > 0:
        groups -= 1 if ends[-1] - start > 1 or several[start] else 0
        ends.append(start)
    return tuple(reversed(ends))


def _prices(ordered: Sequence[Receiver], size_bytes: float) -> list[float]:
    """From no price to one at which the best partition is a single slow group."""
    weights = sum(one.weight for one in ordered)
    slow, fast = min(one.rate_bps for one in ordered), max(one.rate_bps for one in ordered)
    least, most = size_bytes * 8 / fast**2 / 10, weights * size_bytes * 8 / slow**2 * 10
    return [0.0, *np.geomspace(least, most, PRICES).tolist()]


def divided(
    ordered: Sequence[Receiver], ends: tuple[int, ...], size_bytes: float, egress_bps: float
) -> tuple[Group, ...]:
    """Groups that end at these places, each as fast as its slowest member, or less if the egress is short."""
    starts = (0, *ends[:-1])
    limits = np.array([ordered[start].rate_bps for start in starts])
    weights = np.array([sum(one.weight for one in ordered[a:b]) for a, b in zip(starts, ends, strict=True)])
    rates = _paces(limits, weights, egress_bps)
    return tuple(
        Group(tuple(one.site for one in ordered[start:end]), float(rate), size_bytes * 8 / float(rate))
        for start, end, rate in zip(starts, ends, rates, strict=True)
    )


def _paces(limits: Floats, weights: Floats, egress_bps: float) -> Floats:
    """Minimizes the weighted latency: in proportion to the root of the weight, up to each group's limit."""
    paces, free, left_bps = limits.copy(), np.ones(len(limits), dtype=bool), egress_bps
    if limits.sum() <= egress_bps:
        return paces
    while free.any():
        wanted = np.sqrt(weights) * left_bps / np.sqrt(weights[free]).sum()
        full = free & (wanted >= limits)
        if not full.any():
            paces[free] = wanted[free]
            break
        left_bps -= limits[full].sum()
        free &= ~full
    return paces


def _weight(ordered: Sequence[Receiver], group: Group) -> float:
    inside = set(group.sites)
    return sum(one.weight for one in ordered if one.site in inside)


def _mega(rate_bps: float) -> str:
    return f"{rate_bps / 1e6:.3g} Mb/s"


ROOM = 1.2
"""A transport must have a fifth more than the mean, or a backlog never ends."""
PRICES = 48
TOLD_APART = 200
TRIED_FURTHER = 40
"""Up to this number of sites, single borders are tried as well."""
