"""The sites of a feed, with similar ones combined, so that a comparison costs no more for many sites."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from downburst_scheduler.models.rates import PathFacts, whole
from downburst_scheduler.models.situation import SiteFacts


@dataclass(frozen=True, slots=True)
class Alike:
    """Sites that the models don't distinguish; `facts.count` of them."""

    facts: SiteFacts
    members: tuple[SiteFacts, ...]
    names: tuple[str, ...]


EXACT_SITES = 32
FIRST_STEP, LAST_STEP = 0.125, 8.0
"""In the natural logarithm: sites are alike if round trips, losses and rates initially differ by less than 13 %."""
UNTOLD = -1e9
"""Below every logarithm: for values that are unknown, zero or unlimited."""
NO_EDGE = PathFacts()
MOST = 48
"""Kinds of sites in a comparison: with more, the steps become wider."""


def alike(sites: Sequence[PathFacts], *, most: int = MOST) -> tuple[Alike, ...]:
    """Few sites are distinguished as measured; for many, distances, rates, losses and shares are taken in steps."""
    named = [
        site if isinstance(site, SiteFacts) else _named(site, number) for number, site in enumerate(sites, start=1)
    ]
    if len(named) <= min(EXACT_SITES, most):
        return _merged(named, [_kind(site) + _ways(site) for site in named])
    width = FIRST_STEP
    keys = _in_steps(named, width)
    while len(set(keys)) > most and width < LAST_STEP:
        width *= 2
        keys = _in_steps(named, width)
    return _merged(named, keys)


def count_of(some: Iterable[Alike]) -> float:
    """The number of these sites."""
    return sum(one.facts.count for one in some)


def names_of(some: Iterable[Alike]) -> tuple[str, ...]:
    """Their names."""
    return tuple(name for one in some for name in one.names)


def members_of(some: Iterable[Alike]) -> list[SiteFacts]:
    """All of their members."""
    return [site for one in some for site in one.members]


def outlined(some: Iterable[Alike]) -> tuple[Alike, ...]:
    """Each kind with one of its members, for questions about numbers rather than names."""
    return tuple(replace(one, members=one.members[:1], names=one.names[:1]) for one in some)


def scaled(some: Iterable[Alike], factor: float) -> tuple[Alike, ...]:
    """The same kinds with their numbers of sites multiplied."""
    return tuple(replace(one, facts=replace(one.facts, count=one.facts.count * factor)) for one in some)


def _merged(sites: Sequence[SiteFacts], keys: Sequence[tuple[object, ...]]) -> tuple[Alike, ...]:
    found: dict[tuple[object, ...], list[SiteFacts]] = {}
    for site, key in zip(sites, keys, strict=True):
        found.setdefault(key, []).append(site)
    return tuple(_together(members) for members in found.values())


def _in_steps(sites: Sequence[SiteFacts], width: float) -> list[tuple[object, ...]]:
    """The keys of all sites in one step: each round computes them for every feed and every site."""
    shares = np.rint(np.array([site.share for site in sites]) / (1.01 * width)).tolist()
    ways = np.array([_ways(site)[:-1] for site in sites], dtype=np.float64)
    told = np.isfinite(ways) & (ways > 0)
    steps = np.floor(np.log(ways, out=np.full_like(ways, UNTOLD), where=told) / width).tolist()
    return [(*_kind(site), share, *step) for site, share, step in zip(sites, shares, steps, strict=True)]


def _kind(site: SiteFacts) -> tuple[object, ...]:
    circuit = site.circuit
    rides = (circuit.rate_bps, circuit.circuit if circuit.sites > 1 else 0) if circuit else None
    return (
        site.no_multicast is None,
        site.no_circuit_group is None,
        rides,
        site.demand,
        site.relay.relay if site.relay else None,
        site.no_relay_group is None,
        site.in_group,
        site.tunnel,
        site.edge is None,
        site.congestion,
        site.connections,
    )


def _ways(site: SiteFacts) -> tuple[float | None, ...]:
    edge = whole(site.edge or NO_EDGE)
    last = (edge.round_trip_s, edge.loss)
    return (site.round_trip_s, site.loss, site.access_bps, site.window_bytes, site.forecast_bps, *last, site.share)


def _together(members: list[SiteFacts]) -> Alike:
    """The least capable site represents all: a group goes at its pace anyway."""
    stands = members[0]
    if len(members) > 1:
        count = sum(one.count for one in members)
        stands = replace(
            stands,
            round_trip_s=max(one.round_trip_s for one in members),
            loss=max(one.loss for one in members),
            access_bps=min((one.access_bps for one in members if one.access_bps), default=None),
            forecast_bps=min((one.forecast_bps for one in members if one.forecast_bps), default=None),
            edge=_worst_edge([one.edge for one in members if one.edge is not None]),
            share=sum(one.share * one.count for one in members) / count,
            count=count,
        )
    return Alike(stands, tuple(members), tuple(one.name for one in members))


def _worst_edge(edges: list[PathFacts]) -> PathFacts | None:
    if not edges:
        return None
    beyond = _worst_edge([one.edge for one in edges if one.edge is not None])
    round_trip_s, loss = max(one.round_trip_s for one in edges), max(one.loss for one in edges)
    return replace(edges[0], round_trip_s=round_trip_s, loss=loss, edge=beyond)


def _named(site: PathFacts, number: int) -> SiteFacts:
    given = {name: getattr(site, name) for name in PathFacts.__dataclass_fields__}
    return SiteFacts(**given, name=f"site-{number}")
