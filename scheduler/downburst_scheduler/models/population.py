"""The sites of a feed, those that are alike taken as one, so that a comparison costs no more for many sites."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from downburst_scheduler.models.rates import PathFacts
from downburst_scheduler.models.situation import SiteFacts


@dataclass(frozen=True, slots=True)
class Alike:
    """Sites that the models don't tell apart; `facts.count` of them."""

    facts: SiteFacts
    members: tuple[SiteFacts, ...]
    names: tuple[str, ...]


EXACT_SITES = 32
FIRST_STEP, LAST_STEP = 0.125, 8.0
"""In the natural logarithm: sites are alike whose round trips, losses and rates differ by less than 13 % at first."""
MOST = 48
"""Kinds of sites in a comparison: with more the steps become wider."""


def alike(sites: Sequence[PathFacts], *, most: int = MOST) -> tuple[Alike, ...]:
    """Few sites are told apart as measured; of many, distances, rates, losses and shares are taken in steps."""
    named = [
        site if isinstance(site, SiteFacts) else _named(site, number) for number, site in enumerate(sites, start=1)
    ]
    if len(named) <= min(EXACT_SITES, most):
        return _merged((Alike(site, (site,), (site.name,)) for site in named), width=0.0)
    width = FIRST_STEP
    classes = _merged((Alike(site, (site,), (site.name,)) for site in named), width=width)
    while len(classes) > most and width < LAST_STEP:
        width *= 2
        classes = _merged(classes, width=width)
    return classes


def count_of(some: Iterable[Alike]) -> float:
    """How many sites these are."""
    return sum(one.facts.count for one in some)


def names_of(some: Iterable[Alike]) -> tuple[str, ...]:
    """Their names."""
    return tuple(name for one in some for name in one.names)


def members_of(some: Iterable[Alike]) -> list[SiteFacts]:
    """Each of them."""
    return [site for one in some for site in one.members]


def outlined(some: Iterable[Alike]) -> tuple[Alike, ...]:
    """Each kind with one of its members, for questions about how many rather than who."""
    return tuple(replace(one, members=one.members[:1], names=one.names[:1]) for one in some)


def scaled(some: Iterable[Alike], factor: float) -> tuple[Alike, ...]:
    """As if there were so many times as many sites of each kind."""
    return tuple(replace(one, facts=replace(one.facts, count=one.facts.count * factor)) for one in some)


def _merged(some: Iterable[Alike], *, width: float) -> tuple[Alike, ...]:
    found: dict[tuple[object, ...], list[Alike]] = {}
    for one in some:
        found.setdefault(_key(one.facts, width), []).append(one)
    return tuple(_together(alike_) for alike_ in found.values())


def _key(site: SiteFacts, width: float) -> tuple[object, ...]:
    circuit_bps = site.circuit.rate_bps if site.circuit else None
    kind = (site.no_multicast is None, circuit_bps, site.in_group, site.congestion, site.connections)
    if not width:
        return (*kind, site.round_trip_s, site.loss, site.access_bps, site.window_bytes, site.share)
    ways = (site.round_trip_s, site.loss, site.access_bps, site.window_bytes)
    return (*kind, round(site.share / (1.01 * width)), *(_step(value, width) for value in ways))


def _together(some: list[Alike]) -> Alike:
    """The least able stands for all: a group goes at its pace anyway."""
    first, members = some[0].facts, tuple(member for one in some for member in one.members)
    count = sum(one.facts.count for one in some)
    if len(some) > 1:
        facts = [one.facts for one in some]
        first = replace(
            first,
            round_trip_s=max(one.round_trip_s for one in facts),
            loss=max(one.loss for one in facts),
            access_bps=min((one.access_bps for one in facts if one.access_bps), default=None),
            share=sum(one.share * one.count for one in facts) / count,
            count=count,
        )
    return Alike(first, members, tuple(name for one in some for name in one.names))


def _named(site: PathFacts, number: int) -> SiteFacts:
    given = {name: getattr(site, name) for name in PathFacts.__dataclass_fields__}
    return SiteFacts(**given, name=f"site-{number}")


def _step(value: float | None, width: float) -> int | None:
    return None if not value or not math.isfinite(value) else math.floor(math.log(value) / width)
