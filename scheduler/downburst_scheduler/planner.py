"""The choice of a transport for one feed: the cheapest egress that meets the objective, or the fastest if none does.

A pure function of what was measured and of the memory it gave back the last time. It changes only when the gain is
worth it, several looks in a row agree and the last change is long enough ago; what has become impossible is left at
once. A transport is moved to on grounds of price only if it meets the objective with room to spare, so that a
latency near the objective moves nobody to and fro.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum

from downburst.model import Candidate, Pin, Transport
from downburst_scheduler.options import HubInput, Option, SiteInput, options
from downburst_scheduler.traffic import Arrivals


class Because(StrEnum):
    """Why a decision is as it is; a new kind of reason makes a new plan version, other figures alone do not."""

    NO_SITES = "no-sites"
    NO_TRAFFIC = "no-traffic"
    QUIET = "quiet"
    CHEAPEST = "cheapest"
    FASTEST = "fastest"
    LEAST_BAD = "least-bad"
    WAITING = "waiting"
    PINNED = "pinned"
    PIN_INFEASIBLE = "pin-infeasible"


@dataclass(frozen=True, slots=True)
class Rules:
    """When a change is worth it; times in real seconds, already divided by the time scale."""

    min_gain: float = 0.2
    agreeing_windows: int = 3
    dwell_s: float = 300.0


@dataclass(frozen=True, slots=True)
class Memory:
    """What the planner remembers of a feed from one look to the next."""

    transport: Transport = Transport.UNICAST
    chosen_at_s: float | None = None
    """When the transport was chosen on measured grounds; None while the feed is only being started."""
    favourite: Transport | None = None
    agreeing: int = 0


@dataclass(frozen=True, slots=True)
class Question:
    """All that a decision depends on."""

    arrivals: Arrivals
    sites: tuple[SiteInput, ...]
    hub: HubInput
    objective_ms: float
    now_s: float
    memory: Memory = Memory()
    rules: Rules = field(default_factory=Rules)
    pin: Pin | None = None
    look: bool = True
    """Whether this is one of the regular looks, which are counted; False when something else asks in between."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The transport for a feed and everything that explains it."""

    chosen: Option
    options: tuple[Option, ...]
    because: Because
    memory: Memory
    favourite: Option | None = None
    """What would be chosen if changes cost nothing, while it differs from the choice."""

    @property
    def transport(self) -> Transport:
        """The chosen transport."""
        return self.chosen.transport

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The options as they are kept in a plan."""
        return tuple(_candidate(option) for option in self.options)

    def option(self, transport: Transport) -> Option:
        """What was found about a transport."""
        return next(option for option in self.options if option.transport == transport)


def decide(question: Question) -> Decision:
    """The decision for one feed at one moment."""
    insists = question.pin is not None and question.pin.transport == Transport.MULTICAST
    found = options(question.arrivals, question.sites, replace(question.hub, insists=insists))
    if question.pin is not None and question.sites:
        return _pinned(question, found, question.pin)
    if not question.sites:
        return _settled(question, found, _of(found, Transport.UNICAST), Because.NO_SITES)
    if len(question.arrivals.at_s) == 0:
        return _without_traffic(question, found)
    return _weighed(question, found)


def _pinned(question: Question, found: tuple[Option, ...], pin: Pin) -> Decision:
    wanted = _of(found, pin.transport)
    if wanted.feasible:
        return _settled(question, found, wanted, Because.PINNED)
    standing = _of(found, question.memory.transport)
    kept = standing if standing.feasible else _of(found, Transport.UNICAST)
    return _settled(question, found, kept, Because.PIN_INFEASIBLE)


def _without_traffic(question: Question, found: tuple[Option, ...]) -> Decision:
    standing = _of(found, question.memory.transport)
    if question.memory.chosen_at_s is None or not standing.feasible:
        unicast = _of(found, Transport.UNICAST)
        memory = Memory(transport=unicast.transport)
        return Decision(unicast, found, Because.NO_TRAFFIC, memory)
    memory = replace(question.memory, favourite=None, agreeing=0)
    return Decision(standing, found, Because.QUIET, memory)


def _weighed(question: Question, found: tuple[Option, ...]) -> Decision:
    feasible = [option for option in found if option.feasible]
    standing = _of(found, question.memory.transport)
    if not feasible:
        least = min((option for option in found if option.prediction), key=lambda option: option.price_bps)
        return _settled(question, found, least, Because.LEAST_BAD)
    best, because = _best(question, feasible, standing)
    if best.transport == standing.transport or not standing.feasible:
        return _settled(question, found, best, because)
    if not _worth_it(question, standing, best):
        held = Because.CHEAPEST if _meets(question, standing) else Because.FASTEST
        return _settled(question, found, standing, held)
    return _patient(question, found, standing, best)


def _best(question: Question, feasible: list[Option], standing: Option) -> tuple[Option, Because]:
    """Equal prices and latencies leave the feed where it is."""
    room = 1 - question.rules.min_gain
    meeting = [
        option
        for option in feasible
        if option.p99_ms <= question.objective_ms * (1 if option.transport == standing.transport else room)
    ]
    if meeting:
        return min(meeting, key=lambda option: (option.price_bps, option is not standing)), Because.CHEAPEST
    fastest = min(feasible, key=lambda option: (option.p99_ms, option is not standing))
    return fastest, Because.CHEAPEST if _meets(question, fastest) else Because.FASTEST


def _worth_it(question: Question, standing: Option, best: Option) -> bool:
    room = 1 - question.rules.min_gain
    if _meets(question, standing):
        return best.price_bps < standing.price_bps * room
    return best.p99_ms < standing.p99_ms * room


def _patient(question: Question, found: tuple[Option, ...], standing: Option, best: Option) -> Decision:
    before, rules = question.memory, question.rules
    agreeing = (before.agreeing if before.favourite == best.transport else 0) + question.look
    rested = before.chosen_at_s is None or question.now_s - before.chosen_at_s >= rules.dwell_s
    if agreeing >= rules.agreeing_windows and rested:
        because = Because.CHEAPEST if _meets(question, best) else Because.FASTEST
        return _settled(question, found, best, because)
    memory = replace(before, favourite=best.transport, agreeing=agreeing)
    return Decision(standing, found, Because.WAITING, memory, favourite=best)


def _settled(question: Question, found: tuple[Option, ...], chosen: Option, because: Because) -> Decision:
    before = question.memory
    changed = chosen.transport != before.transport
    measured = len(question.arrivals.at_s) > 0 and bool(question.sites)
    chosen_at_s = question.now_s if changed else before.chosen_at_s
    if chosen_at_s is None and measured and _is_final(because):
        # The first measured choice of the starting transport is no change that another one would have to wait for.
        chosen_at_s = question.now_s - question.rules.dwell_s
    return Decision(chosen, found, because, Memory(transport=chosen.transport, chosen_at_s=chosen_at_s))


def _is_final(because: Because) -> bool:
    return because in (Because.CHEAPEST, Because.FASTEST, Because.LEAST_BAD, Because.PINNED)


def _meets(question: Question, option: Option) -> bool:
    return option.feasible and option.p99_ms <= question.objective_ms


def _of(found: tuple[Option, ...], transport: Transport) -> Option:
    return next(option for option in found if option.transport == transport)


def _candidate(option: Option) -> Candidate:
    shown = option.prediction
    if shown is None:
        return Candidate(option.transport, option.feasible, option.reason)
    return Candidate(
        transport=option.transport,
        feasible=option.feasible,
        reason=option.reason,
        egress_bps=shown.egress_bps,
        peak_egress_bps=shown.peak_egress_bps,
        predicted_p50_ms=shown.p50_ms,
        predicted_p95_ms=shown.p95_ms,
        predicted_p99_ms=shown.p99_ms,
        predicted_max_ms=shown.max_ms,
    )
