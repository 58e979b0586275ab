"""Every transport for one feed under stated offers: feasible or why not, what it would do, and which one is best.

What the egress, the offers or the paths rule out is discarded with the figure that rules it out. Of the others the
cheapest that meets the objective is best, or the one that misses it least. A price is in bits per second: egress of
the hub, rates of circuits while they are up, and for a group one copy in reserve for a site that stops hearing it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from downburst.model import Transport
from downburst_scheduler.models import transports
from downburst_scheduler.models.grouping import ROOM
from downburst_scheduler.models.queues import Order
from downburst_scheduler.models.rates import PathFacts, connection_bps
from downburst_scheduler.models.repair import Repair, repair_share
from downburst_scheduler.models.sizing import Objective, least_rate
from downburst_scheduler.models.transports import Outcome, peak_minute_bps, releases
from downburst_scheduler.options import megabits
from downburst_scheduler.traffic import Arrivals


@dataclass(frozen=True, slots=True)
class CircuitOffers:
    """What providers have for this hub."""

    point_to_point: bool = False
    multipoint: bool = False
    setup_s: float = 60.0
    hold_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything about the hub and the sites that a comparison depends on."""

    sites: Sequence[PathFacts] = ()
    egress_bps: float = 1e9
    multicast: bool = True
    """Whether the network carries groups to the sites without a circuit."""
    multicast_rate_bps: float = 400e6
    repair: Repair = Repair.CODED
    order: Order = Order.ROUND_ROBIN
    circuits: CircuitOffers = field(default_factory=CircuitOffers)
    objective: Objective = field(default_factory=Objective)
    circuit_price: float = 1.0
    """A bit per second of a circuit against one of egress."""


@dataclass(frozen=True, slots=True)
class Evaluated:
    """One transport, judged."""

    transport: Transport
    feasible: bool
    reason: str
    outcome: Outcome | None = None
    rate_bps: float | None = None
    price_bps: float = 0.0
    late_s: float | None = None
    """The objective's quantile of the latency."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """All transports and the best of them."""

    candidates: tuple[Evaluated, ...]
    best: Evaluated
    sentence: str


def compare(arrivals: Arrivals, situation: Situation) -> Comparison:
    """Evaluates every transport and says which is best and why the others are not."""
    found = (
        _unicast(arrivals, situation),
        _multicast(arrivals, situation),
        _static(arrivals, situation),
        _dynamic(arrivals, situation),
    )
    best = _best(found, situation.objective)
    return Comparison(found, best, _sentence(found, best, situation))


def _unicast(arrivals: Arrivals, situation: Situation) -> Evaluated:
    outcome = transports.unicast(arrivals, situation.sites, egress_bps=situation.egress_bps, order=situation.order)
    slow = [site for site in situation.sites if connection_bps(site) < arrivals.mean_bps * site.share]
    refusal = None
    if outcome.peak_egress_bps > situation.egress_bps:
        need, have = megabits(outcome.peak_egress_bps), megabits(situation.egress_bps)
        refusal = f"it needs {need} in the busiest minute and the hub has {have}"
    elif slow:
        worst = min(slow, key=connection_bps)
        refusal = (
            f"{_sites(len(slow))} can't take {megabits(arrivals.mean_bps)}: {worst.round_trip_s * 1e3:.0f} ms and "
            f"{worst.loss:.2%} of loss leave {worst.congestion} {megabits(connection_bps(worst))}"
        )
    reason = f"a copy to each of {_sites(len(situation.sites))}"
    return _judged(Transport.UNICAST, outcome, situation, refusal, reason, price_bps=outcome.egress_bps)


def _multicast(arrivals: Arrivals, situation: Situation) -> Evaluated:
    circuit = not situation.multicast
    if circuit and not situation.circuits.multipoint:
        return _refused(Transport.MULTICAST, "no network carries groups and no multipoint circuit is offered")
    if len(situation.sites) < SMALLEST_GROUP:
        return _refused(Transport.MULTICAST, f"a group needs at least {SMALLEST_GROUP} sites")
    rate_bps = min(situation.multicast_rate_bps, GROUP_SHARE_OF_EGRESS * situation.egress_bps)
    if circuit:
        again = repair_share(arrivals.size_bytes, [site.loss for site in situation.sites], situation.repair)
        rate_bps = min(rate_bps, _circuit_bps(arrivals, situation) * (1 + float(again.max(initial=0.0))))
    outcome = transports.multicast(
        arrivals, situation.sites, rate_bps=rate_bps, repair=situation.repair, reserved=circuit
    )
    refusal = None
    if outcome.utilisation is not None and outcome.utilisation > 1:
        pace = megabits(outcome.egress_bps / outcome.utilisation)
        refusal = f"it carries {megabits(outcome.egress_bps)} on average and can go no faster than {pace}"
    reason = f"one copy for {_sites(len(situation.sites))}" + (" on a multipoint circuit" if circuit else "")
    sent_bps = outcome.reserved_bps * situation.circuit_price if circuit else outcome.egress_bps
    price_bps = sent_bps + arrivals.mean_bps
    return _judged(Transport.MULTICAST, outcome, situation, refusal, reason, price_bps=price_bps, rate_bps=rate_bps)


def _static(arrivals: Arrivals, situation: Situation) -> Evaluated:
    if not situation.circuits.point_to_point:
        return _refused(Transport.STATIC_CIRCUIT, "no point-to-point circuits are offered")
    rate_bps = _circuit_bps(arrivals, situation)
    outcome = transports.static_circuit(arrivals, situation.sites, rate_bps=rate_bps)
    used = outcome.utilisation or 0.0
    refusal = None
    if used < LEAST_UTILISATION:
        refusal = f"a circuit of {megabits(rate_bps)} would be {used:.1%} used, under {LEAST_UTILISATION:.0%}"
    reason = f"{_sites(len(situation.sites))} with {megabits(rate_bps)} each, {used:.0%} used"
    price_bps = outcome.reserved_bps * situation.circuit_price
    return _judged(
        Transport.STATIC_CIRCUIT, outcome, situation, refusal, reason, price_bps=price_bps, rate_bps=rate_bps
    )


def _dynamic(arrivals: Arrivals, situation: Situation) -> Evaluated:
    offers = situation.circuits
    if not offers.point_to_point:
        return _refused(Transport.DYNAMIC_CIRCUIT, "no point-to-point circuits are offered")
    freed = releases(arrivals, setup_s=offers.setup_s, hold_s=offers.hold_s)
    rate_bps = _circuit_bps(arrivals, situation)
    outcome = transports.dynamic_circuit(
        arrivals, situation.sites, rate_bps=rate_bps, setup_s=offers.setup_s, hold_s=offers.hold_s
    )
    refusal = None
    if freed.releases == 0:
        refusal = f"no silence is longer than {freed.hold_s:g} s, so a circuit would never be given back"
    elif freed.share_of_time < LEAST_RELEASED:
        refusal = f"silences over {freed.hold_s:g} s would give back {freed.share_of_time:.1%} of the time only"
    reason = f"{freed.releases} releases give back {freed.share_of_time:.0%} of the time"
    price_bps = outcome.reserved_bps * situation.circuit_price
    return _judged(
        Transport.DYNAMIC_CIRCUIT, outcome, situation, refusal, reason, price_bps=price_bps, rate_bps=rate_bps
    )


def _judged(  # noqa: PLR0913 (what is known of a candidate)
    transport: Transport,
    outcome: Outcome,
    situation: Situation,
    refusal: str | None,
    reason: str,
    *,
    price_bps: float,
    rate_bps: float | None = None,
) -> Evaluated:
    late_s = outcome.latencies.quantile_s(situation.objective.share)
    return Evaluated(transport, refusal is None, refusal or reason, outcome, rate_bps, price_bps, late_s)


def _refused(transport: Transport, why: str) -> Evaluated:
    return Evaluated(transport, feasible=False, reason=why)


def _circuit_bps(arrivals: Arrivals, situation: Situation) -> float:
    """What a circuit is asked for: the busiest minute, room over the mean, or more where the objective wants it."""
    objective = situation.objective
    away_s = max((site.round_trip_s for site in situation.sites), default=0.0) / 2
    least = least_rate(arrivals, Objective(objective.share, objective.latency_s * SURELY), away_s=away_s)
    return max(peak_minute_bps(arrivals), arrivals.mean_bps * ROOM, least.rate_bps if least else 0.0)


def _best(found: Sequence[Evaluated], objective: Objective) -> Evaluated:
    feasible = [one for one in found if one.feasible]
    meeting = [one for one in feasible if one.late_s is not None and one.late_s <= objective.latency_s]
    if meeting:
        return min(meeting, key=lambda one: one.price_bps)
    if feasible:
        return min(feasible, key=lambda one: one.late_s or 0.0)
    return min((one for one in found if one.outcome), key=lambda one: one.price_bps)


def _sentence(found: Sequence[Evaluated], best: Evaluated, situation: Situation) -> str:
    objective = situation.objective
    late_s = best.late_s or 0.0
    kept = "within" if late_s <= objective.latency_s else "over"
    figures = f"p{100 * objective.share:g} {late_s:.3g} s, {kept} the objective of {objective.latency_s:g} s"
    chosen = best.reason if best.feasible else f"nothing is feasible and it asks for least ({best.reason})"
    others = [f"{one.transport}: {_against(one, best, objective)}" for one in found if one is not best]
    return f"{best.transport}: {chosen}, {figures}; not {'; not '.join(others)}"


def _against(one: Evaluated, best: Evaluated, objective: Objective) -> str:
    if not one.feasible:
        return one.reason
    if one.late_s is not None and one.late_s > objective.latency_s:
        return f"p{100 * objective.share:g} would be {one.late_s:.3g} s"
    return f"it costs {megabits(one.price_bps)} against {megabits(best.price_bps)}"


def _sites(count: int) -> str:
    return "1 site" if count == 1 else f"{count} sites"


SURELY = 0.98
"""Predictions are kept to one per cent, and a circuit that just misses is no use."""
SMALLEST_GROUP = 2
GROUP_SHARE_OF_EGRESS = 0.9
LEAST_UTILISATION = 0.2
"""A circuit that stands four fifths empty is somebody else's capacity."""
LEAST_RELEASED = 0.05
"""A circuit that is given back for less of the time is a static one with a set-up in the way."""
