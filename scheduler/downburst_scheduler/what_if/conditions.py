"""The inputs of a decision under other conditions."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b

from downburst.domain.plans import Conditions, OtherConditions
from downburst_scheduler.models.situation import SiteFacts, Situation
from downburst_scheduler.planner import Question


def today_of(question: Question) -> Conditions:
    """The present conditions of a feed."""
    situation = question.situation
    offers = [site.demand for site in named(situation) if site.demand is not None]
    return Conditions(
        sites=question.sites,
        egress_bps=situation.egress_bps,
        objective_ms=situation.objective.latency_s * 1e3,
        setup_s=max((offer.setup_s for offer in offers), default=None),
    )


def under(question: Question, other: OtherConditions) -> Question:
    """The question under other conditions that have lasted: no change waits for further reviews or another day.

    Without other conditions the situation is the live planner's own.
    """
    rules = replace(question.rules, agreeing_windows=0, dwell_s=0.0, changes_per_day=UNLIMITED, dry_run=False)
    return replace(question, situation=_situation(question.situation, other), rules=rules, mistrust=None)


def so_many(sites: Sequence[SiteFacts], wanted: int) -> tuple[SiteFacts, ...]:
    """Some of the sites, or all and copies of them in turn; a smaller number is always part of a larger one.

    The order is that of a digest, which has nothing to do with distance or region.
    """
    if wanted == len(sites) or not sites:
        return tuple(sites)
    order = sorted(sites, key=lambda site: blake2b(site.name.encode(), digest_size=8).digest())
    copies = (_copy(order[at % len(order)], at // len(order) + 1) for at in range(len(order), wanted))
    return (*order[:wanted], *copies)


def named(situation: Situation) -> Iterator[SiteFacts]:
    """The sites with names: all that the live planner has."""
    return (site for site in situation.sites if isinstance(site, SiteFacts))


def _situation(situation: Situation, other: OtherConditions) -> Situation:
    if other.sites is not None:
        situation = replace(situation, sites=so_many(tuple(named(situation)), other.sites))
    if other.egress_bps is not None:
        situation = replace(situation, egress_bps=other.egress_bps)
    if other.objective_ms is not None:
        objective = replace(situation.objective, latency_s=other.objective_ms / 1e3)
        situation = replace(situation, objective=objective)
    if other.setup_s is not None:
        situation = replace(situation, sites=tuple(_set_up_in(site, other.setup_s) for site in named(situation)))
    return situation


def _copy(site: SiteFacts, number: int) -> SiteFacts:
    """A further site like this one, in no group yet; a reserved circuit belongs to one site alone."""
    return replace(site, name=f"{site.name} ({number})", circuit=None, no_circuit=None, in_group=False)


def _set_up_in(site: SiteFacts, setup_s: float) -> SiteFacts:
    return site if site.demand is None else replace(site, demand=replace(site.demand, setup_s=setup_s))


UNLIMITED = 1_000_000
