"""The choice of a transport for one feed: the best one by the models, and the conditions for a change to it.

A pure function of measurements and of its own memory from the last call. It changes only if the gain is sufficient,
several consecutive reviews agree, the last change is long enough ago and the day's budget of changes is not spent; a
missed objective does not wait for the last change. A transport that has become impossible, because a group or
circuit died, is left immediately and costs nothing of the budget. A transport is chosen by price only if it meets the
objective with room to spare, so that a latency near the objective does not cause oscillation. A feed on circuits on
demand keeps that transport while circuits come and go, and while a budget is spent: its products go routed meanwhile.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from downburst.domain.plans import Candidate, Pin, Transport
from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.models.candidates import Evaluated, Situation, best_of, evaluate, late_cost_bps
from downburst_scheduler.models.demand.pacing import Saving
from downburst_scheduler.models.flips import Flip, flip
from downburst_scheduler.models.parts import asked_of
from downburst_scheduler.savings import keeping, savings_of


class Because(StrEnum):
    """The kind of reason for a decision; a new kind makes a new plan version, other figures alone do not."""

    NO_SITES = "no-sites"
    NO_TRAFFIC = "no-traffic"
    QUIET = "quiet"
    CHEAPEST = "cheapest"
    FASTEST = "fastest"
    LEAST_BAD = "least-bad"
    FALLBACK = "fallback"
    WAITING = "waiting"
    SPENT = "budget-spent"
    MISTRUSTED = "mistrusted"
    WOULD = "would-change"
    PINNED = "pinned"
    PIN_INFEASIBLE = "pin-infeasible"


FIRST_SPAN_S = 600.0
"""Ten minutes of arrivals are more than a single burst."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The conditions for a change; times in real seconds, already divided by the time scale."""

    min_gain: float = 0.2
    agreeing_windows: int = 3
    dwell_s: float = 300.0
    changes_per_day: int = 8
    """Two of these are reserved for a missed objective."""
    day_s: float = 86_400.0
    dry_run: bool = False
    """True if changes are only reported."""
    first_span_s: float = FIRST_SPAN_S
    """Arrivals over so long are enough for a feed's first choice without reviews that agree."""
    telling_span_s: float = FIRST_SPAN_S
    """Arrivals over less time say nothing against circuits on demand that were chosen by earlier ones."""


@dataclass(frozen=True, slots=True)
class Memory:
    """The planner's memory of a feed between looks."""

    transport: Transport = Transport.UNICAST
    chosen_at_s: float | None = None
    """The time at which the transport was chosen by measurements; None while the feed is being started."""
    favourite: Transport | None = None
    agreeing: int = 0
    changed_at_s: tuple[float, ...] = ()
    """The changes by figures of the last day, no more than the budget allows."""
    savings: Mapping[str, Saving] = field(default_factory=dict)
    """By offer: the part of its budget that is kept for greater gains."""


@dataclass(frozen=True, slots=True)
class Question:
    """All inputs of a decision."""

    arrivals: Arrivals
    situation: Situation
    now_s: float
    memory: Memory = Memory()
    rules: Rules = field(default_factory=Rules)
    pin: Pin | None = None
    look: bool = True
    """True for a regular look, which is counted; False for other evaluations in between."""
    mistrust: str | None = None
    """The reason not to act on the predictions; None if they are trusted."""

    @property
    def sites(self) -> int:
        """The number of sites that take the feed."""
        return len(self.situation.sites)


@dataclass(frozen=True, slots=True)
class Decision:
    """The transport for a feed and everything that explains it."""

    chosen: Evaluated
    options: tuple[Evaluated, ...]
    because: Because
    memory: Memory
    favourite: Evaluated | None = None
    """The transport that would be chosen if changes cost nothing, if it differs from the choice."""
    left: Transport | None = None
    """The transport that a fallback leaves."""

    @property
    def transport(self) -> Transport:
        """The chosen transport."""
        return self.chosen.transport

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The options in the form stored in a plan: the chosen one, the others by score, then the infeasible ones."""
        ranked = sorted(
            self.options, key=lambda one: (one is not self.chosen, not one.feasible, not one.outcome, one.score_bps)
        )
        return tuple(_candidate(option) for option in ranked)

    def outline(self) -> "Decision":
        """The decision without its distributions, which take megabytes."""
        chosen = replace(self.chosen, parts=(), outcome=None)
        return replace(self, chosen=chosen, options=(), favourite=None)

    def option(self, transport: Transport) -> Evaluated:
        """The evaluation of a transport."""
        return _of(self.options, transport)


def decide(question: Question) -> Decision:
    """The decision for one feed at one moment."""
    insists = question.pin is not None and question.pin.transport == Transport.MULTICAST
    situation = replace(question.situation, insists_on_multicast=insists)
    found = evaluate(asked_of(question.arrivals, situation))
    savings, rides = question.memory.savings, question.memory.transport is Transport.DYNAMIC_CIRCUIT
    if question.look and rides:
        savings = savings_of(found, situation, savings, now_s=question.now_s, day_s=question.rules.day_s)
    kept = frozenset(offer for offer, one in savings.items() if one.saves)
    if kept and rides:
        found = evaluate(asked_of(question.arrivals, keeping(situation, kept)))
    decision = _decided(question, found)
    return replace(decision, memory=replace(decision.memory, savings=savings))


def _decided(question: Question, found: tuple[Evaluated, ...]) -> Decision:
    if question.pin is not None and question.sites:
        return _pinned(question, found, question.pin)
    if not question.sites:
        return _settled(question, found, _of(found, Transport.UNICAST), Because.NO_SITES)
    if len(question.arrivals.at_s) == 0:
        return _without_traffic(question, found)
    return _weighed(question, found)


def flip_of(question: Question, decision: Decision) -> Flip | None:
    """The input with the smallest change that would flip a choice made by figures."""
    after = replace(question, memory=decision.memory)
    return flip(question.arrivals, question.situation, lambda found: _preferred(after, tuple(found)).transport)


def _pinned(question: Question, found: tuple[Evaluated, ...], pin: Pin) -> Decision:
    wanted = _of(found, pin.transport)
    if wanted.feasible:
        return _settled(question, found, wanted, Because.PINNED)
    standing = _of(found, question.memory.transport)
    stays = standing.feasible or (bool(standing.parts) and _is_told_little(question, standing))
    kept = standing if stays else _of(found, Transport.UNICAST)
    return _settled(question, found, kept, Because.PIN_INFEASIBLE)


def _without_traffic(question: Question, found: tuple[Evaluated, ...]) -> Decision:
    standing = _of(found, question.memory.transport)
    if question.memory.chosen_at_s is None or not standing.parts:
        unicast = _of(found, Transport.UNICAST)
        memory = Memory(transport=unicast.transport, changed_at_s=question.memory.changed_at_s)
        return Decision(unicast, found, Because.NO_TRAFFIC, memory)
    memory = replace(question.memory, favourite=None, agreeing=0)
    return Decision(standing, found, Because.QUIET, memory)


def _weighed(question: Question, found: tuple[Evaluated, ...]) -> Decision:
    standing, preferred = _of(found, question.memory.transport), _preferred(question, found)
    if preferred is standing:
        return _settled(question, found, standing, _because(question, standing))
    if not standing.parts:
        return replace(_settled(question, found, preferred, Because.FALLBACK), left=standing.transport)
    agreeing = _agreeing(question, preferred)
    held = _held(question, standing, preferred, agreeing)
    if held is None:
        return _settled(question, found, preferred, _because(question, preferred))
    memory = replace(question.memory, favourite=preferred.transport, agreeing=agreeing)
    return Decision(standing, found, held, memory, favourite=preferred)


def _preferred(question: Question, found: tuple[Evaluated, ...]) -> Evaluated:
    """The transport if only gains counted; a feed that is being started has no present one to keep."""
    objective, memory = question.situation.objective, question.memory
    if memory.chosen_at_s is None:
        return best_of(found, objective)
    standing = _of(found, memory.transport)
    best = best_of(found, objective, standing=memory.transport, room=question.rules.min_gain)
    worth = not standing.parts or _worth_it(question, standing, best)
    return best if best is standing or worth else standing


def _worth_it(question: Question, standing: Evaluated, best: Evaluated) -> bool:
    """True if the gain justifies a change from the present transport.

    A transport that meets the objective is left for a better price; one that misses it, for one that meets it, or for
    a lower cost of price and delay together; a refused one or an overload, for a better price or less delay. Circuits
    on demand that are refused harm no other feed, and are left for less delay only where they miss the objective.
    """
    room, objective = 1 - question.rules.min_gain, question.situation.objective
    cheaper = best.price_bps < standing.price_bps * room
    if not standing.feasible:
        harms = standing.transport is not Transport.DYNAMIC_CIRCUIT or not _is_in_time(question, standing)
        return cheaper or (harms and (best.late_s or 0.0) < (standing.late_s or 0.0) * room)
    if _meets(question, standing) or _meets(question, best):
        return cheaper or not _meets(question, standing)
    costs_bps = [late_cost_bps(one, (standing, best), objective) for one in (standing, best)]
    return costs_bps[1] < costs_bps[0] * room


def _agreeing(question: Question, preferred: Evaluated) -> int:
    before = question.memory
    counted = (before.agreeing if before.favourite == preferred.transport else 0) + question.look
    return min(counted, question.rules.agreeing_windows)


def _held(question: Question, standing: Evaluated, preferred: Evaluated, agreeing: int) -> Because | None:
    """The reason that prevents a change; None if there is none."""
    before, rules = question.memory, question.rules
    urgent = not standing.feasible or (_meets(question, preferred) and not _meets(question, standing))
    rested = before.chosen_at_s is None or question.now_s - before.chosen_at_s >= rules.dwell_s
    if question.mistrust is not None:
        return Because.MISTRUSTED
    if _was_chosen_by_more(question, standing):
        return Because.WAITING
    if (agreeing < rules.agreeing_windows and not _starts_well_known(question)) or not (rested or urgent):
        return Because.WAITING
    kept = 0 if urgent else min(KEPT_FOR_MISSES, rules.changes_per_day // 2)
    if len(_today(question)) >= rules.changes_per_day - kept and before.chosen_at_s is not None:
        return Because.SPENT
    return Because.WOULD if rules.dry_run else None


def _was_chosen_by_more(question: Question, standing: Evaluated) -> bool:
    """True for circuits on demand after a restart: a few seconds of arrivals have no silence between trains."""
    chosen_at_s, span_s = question.memory.chosen_at_s, question.arrivals.span_s
    is_earlier = chosen_at_s is not None and chosen_at_s < question.now_s - span_s
    return is_earlier and _is_told_little(question, standing)


def _is_told_little(question: Question, standing: Evaluated) -> bool:
    """True for circuits on demand with arrivals that may all be of one train: their silences are still to come."""
    is_on_demand = standing.transport is Transport.DYNAMIC_CIRCUIT
    return is_on_demand and question.arrivals.span_s < question.rules.telling_span_s


def _starts_well_known(question: Question) -> bool:
    """True if a feed is being started on arrivals that span as long as reviews that agree would take."""
    return question.memory.chosen_at_s is None and question.arrivals.span_s >= question.rules.first_span_s


def _settled(question: Question, found: tuple[Evaluated, ...], chosen: Evaluated, because: Because) -> Decision:
    before = question.memory
    changed = chosen.transport != before.transport
    measured = len(question.arrivals.at_s) > 0 and bool(question.sites)
    chosen_at_s = question.now_s if changed else before.chosen_at_s
    if chosen_at_s is None and measured and because in (*BY_FIGURES, Because.PINNED):
        # The first measured choice of the starting transport is not a change that delays another one.
        chosen_at_s = question.now_s - question.rules.dwell_s
    today = _today(question)
    if changed and because in BY_FIGURES and before.chosen_at_s is not None:
        today = (*today, question.now_s)
    return Decision(chosen, found, because, Memory(chosen.transport, chosen_at_s, changed_at_s=today))


def _today(question: Question) -> tuple[float, ...]:
    return tuple(at_s for at_s in question.memory.changed_at_s if question.now_s - at_s < question.rules.day_s)


def _because(question: Question, chosen: Evaluated) -> Because:
    if not chosen.feasible:
        return Because.LEAST_BAD
    return Because.CHEAPEST if _meets(question, chosen) else Because.FASTEST


def _meets(question: Question, option: Evaluated) -> bool:
    return option.feasible and _is_in_time(question, option)


def _is_in_time(question: Question, option: Evaluated) -> bool:
    return (option.late_s or 0.0) <= question.situation.objective.latency_s


def _of(found: tuple[Evaluated, ...], transport: Transport) -> Evaluated:
    return next(option for option in found if option.transport == transport)


def _candidate(option: Evaluated) -> Candidate:
    shown = option.outcome
    if shown is None:
        return Candidate(option.transport, option.feasible, option.reason)
    return Candidate(
        transport=option.transport,
        feasible=option.feasible,
        reason=option.reason,
        egress_bps=shown.egress_bps,
        peak_egress_bps=shown.peak_egress_bps,
        predicted_p50_ms=option.quantile_ms(0.5),
        predicted_p95_ms=option.quantile_ms(0.95),
        predicted_p99_ms=option.quantile_ms(0.99),
        predicted_max_ms=option.quantile_ms(1.0),
        reserved_bps=shown.reserved_bps,
        price_bps=option.price_bps,
        score_bps=option.score_bps,
    )


BY_FIGURES = (Because.CHEAPEST, Because.FASTEST, Because.LEAST_BAD)
KEPT_FOR_MISSES = 2
