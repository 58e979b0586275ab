"""Days of a feed of trains in virtual time: the planner and orders of circuits, against the best in hindsight.

As in `days`, a look every ten minutes uses the hour before and decides for the next ten minutes. While a feed is on
circuits on demand, they are ordered under the terms of the last look, as by `reservations`, and each day has a budget
of circuit-hours. Hindsight knows the arrivals and the terms for them, and spends the budget where it gains most.

Three corrections made hindsight keep the rules of the planner. It used to spend the budget in steps of a sixtieth of
the day, and fractions were carried over looks that it did not use: it chose the looks in which no step was full, and
had 80 % of a day from a budget for 67 %. Its steps are now 3,600 to a day. It could order where no silence outlasts
the set-up, which the product refuses; only where the planner still rides in such a look may hindsight do so too. And
orders end with a plan that has no terms, as in the acting loop, where they used to go on under earlier ones.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from downburst.domain.plans import Transport
from downburst_scheduler.calibration import FeedCalibration
from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.models.candidates import Evaluated, Situation, evaluate
from downburst_scheduler.models.demand.choosing import Choice
from downburst_scheduler.models.demand.playing import recurring
from downburst_scheduler.models.demand.riding import ridden
from downburst_scheduler.models.demand.terms import DemandTerms
from downburst_scheduler.models.offers import DemandOffer, Rest
from downburst_scheduler.models.parts import Asked, asked_of
from downburst_scheduler.models.queues import Order
from downburst_scheduler.models.situation import Calibration, SiteFacts
from downburst_scheduler.models.sizing import Objective
from downburst_scheduler.models.transports import together
from downburst_scheduler.planner import Because, Memory, Question, Rules, decide
from unit.scheduler.days import (
    STEP_S,
    STEPS_A_DAY,
    WINDOW_STEPS,
    Step,
    calibrate,
    change_cost,
    costs_of,
    joined,
    moves,
)


@dataclass(frozen=True, slots=True)
class World:
    """Trains of a feed, drawn once: their distance, length and rate, and what a circuit for them takes."""

    period_s: float
    jitter: float
    """Spread of the distance between trains, as a share of it; 1: without any habit."""
    train_s: float
    train_bps: float
    sites: int
    budget_s: float
    """Seconds of circuits a day, over all sites."""


@dataclass(slots=True)
class Account:
    """The outcome, look by look."""

    standing: list[Transport] = field(default_factory=list)
    forced: list[bool] = field(default_factory=list)
    costs: list[dict[Transport, float]] = field(default_factory=list)
    """Costs of each possible transport, with the best terms of orders in hindsight."""
    paid: list[float] = field(default_factory=list)
    needs_s: list[float] = field(default_factory=list)
    """Seconds of circuits that dynamic-circuit takes with the best terms."""
    used_s: list[float] = field(default_factory=list)
    """Seconds of circuits that were reserved."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A world's days against the best in hindsight."""

    regret: float
    excess_per_day: float
    most_of_budget: float
    """The largest share of a day's budget that was used."""
    ordered_share: float
    best_ordered_share: float
    """The share of looks on circuits on demand, of the planner and in hindsight."""


def lived(seed: int, days: int, rules: Rules) -> Account:
    """A world's days under the planner."""
    drawn, steps = world(seed, days)
    account, memory, calibration = Account(), Memory(), FeedCalibration()
    window: list[Arrivals] = []
    used_s = 0.0
    for number, step in enumerate(steps):
        if number % STEPS_A_DAY == 0:
            used_s = 0.0
        left_s = drawn.budget_s - used_s
        hour = joined([*window[1 - WINDOW_STEPS :], step.arrivals])
        seen = joined(window[-WINDOW_STEPS:]) if window else Arrivals(np.empty(0), np.empty(0), 0.0)
        situation = replace(step.situation, calibration=calibration.factors())
        rest = Rest(left_s, (STEPS_A_DAY - number % STEPS_A_DAY) * STEP_S) if np.isfinite(left_s) else None
        situation = replace(situation, sites=[_left(site, rest) for site in situation.sites])
        question = Question(
            seen, situation, number * STEP_S, memory, rules, mistrust=calibration.mistrust(memory.transport)
        )
        decision = decide(question)
        memory, terms = decision.memory, decision.option(Transport.DYNAMIC_CIRCUIT).demand
        asked = asked_of(hour, replace(step.situation, calibration=step.errors))
        offered, best = _happens(asked)
        actual, reserved_s = best[memory.transport], 0.0
        if memory.transport is Transport.DYNAMIC_CIRCUIT:
            actual = best[Transport.UNICAST]
        if memory.transport is Transport.DYNAMIC_CIRCUIT and offered.demand and terms and asked.figures:
            acted, wanted_s = _acted(asked, offered, terms[0])
            # With the budget spent, all of these ten minutes count as routed.
            actual = acted if wanted_s <= left_s else best[Transport.UNICAST]
            reserved_s = min(wanted_s, left_s)
        used_s += reserved_s
        costs, paid = _costs(best, actual, step.situation.objective)
        needs_s = _needs_s(asked, best[Transport.DYNAMIC_CIRCUIT])
        if reserved_s and not offered.feasible and paid < costs[Transport.DYNAMIC_CIRCUIT]:
            # A feed that rides stays for some looks while orders are refused; hindsight may ride there too.
            costs[Transport.DYNAMIC_CIRCUIT], needs_s = paid, reserved_s
        account.standing.append(memory.transport)
        account.forced.append(decision.because is Because.FALLBACK)
        account.costs.append(costs)
        account.paid.append(paid)
        account.needs_s.append(needs_s)
        account.used_s.append(reserved_s)
        calibrate(calibration, step, actual, memory.transport)
        window = [*window[1 - WINDOW_STEPS :], step.arrivals]
    return account


def judged(account: Account, seed: int, days: int) -> Verdict:
    """The planner's days beside the best in hindsight."""
    drawn, _ = world(seed, days)
    change = change_cost(account.costs)
    best, best_cost = _hindsight(account, drawn.budget_s, change)
    moved, best_moved = moves(account.standing), moves(best)
    excess = int((moved & ~np.array(account.forced)).sum()) - int(best_moved.sum())
    daily_s = np.array(account.used_s).reshape(days, -1).sum(axis=1)
    return Verdict(
        regret=(sum(account.paid) + change * int(moved.sum())) / best_cost - 1,
        excess_per_day=excess / days,
        most_of_budget=float(daily_s.max()) / drawn.budget_s if np.isfinite(drawn.budget_s) else 0.0,
        ordered_share=float(np.mean([one is Transport.DYNAMIC_CIRCUIT for one in account.standing])),
        best_ordered_share=float(np.mean([one is Transport.DYNAMIC_CIRCUIT for one in best])),
    )


def world(seed: int, days: int) -> tuple[World, Iterator[Step]]:
    """A feed of trains and an offer, and the steps of its days."""
    random = np.random.default_rng([seed, 26])
    period_s = float(random.choice([60.0, 180.0, 600.0]))
    drawn = World(
        period_s=period_s,
        jitter=float(random.choice([0.02, 0.1, 1.0])),
        train_s=period_s * float(random.uniform(0.1, 0.4)),
        train_bps=float(random.choice([5e6, 10e6, 20e6])),
        sites=int(random.integers(1, 5)),
        budget_s=float(random.choice([np.inf, np.inf, 0.6, 0.2])) * 86_400.0,
    )
    return replace(drawn, budget_s=drawn.budget_s * drawn.sites), _steps(drawn, days, random)


def _steps(drawn: World, days: int, random: np.random.Generator) -> Iterator[Step]:
    offer = DemandOffer(
        "metro",
        (5_000_000, 10_000_000, 20_000_000, 50_000_000),
        price=float(random.choice([0.1, 0.3, 1.0])),
        setup_s=float(random.choice([1.0, 5.0, 20.0, 60.0, 180.0])),
    )
    objective = Objective(0.99, float(random.choice([5.0, 20.0, 60.0])))
    path_bps, egress_bps = float(random.choice([2e6, 5e6, 50e6])), float(random.choice([20e6, 100e6]))
    errors = {name: float(random.lognormal(0, 0.1)) for name in Transport}
    swell, refused, next_s = 1.0, False, 0.0
    for number in range(days * STEPS_A_DAY):
        if random.random() < EVENTS:
            swell = float(random.choice([0.5, 1.0, 1.5]))
        refused = random.random() < (0.9 if refused else EVENTS / 2)
        starts = []
        while next_s < (number + 1) * STEP_S:
            starts.append(next_s - number * STEP_S)
            wait_s = random.exponential() if drawn.jitter == 1.0 else 1 + random.normal(0, drawn.jitter / 2)
            next_s += max(drawn.period_s * wait_s, drawn.train_s)
        arrivals = _trains(starts, drawn, swell, random)
        spent = replace(offer, spent="the provider refuses orders") if refused else offer
        sites = [
            SiteFacts(name=f"s{site}", round_trip_s=0.04, forecast_bps=path_bps, demand=spent)
            for site in range(drawn.sites)
        ]
        situation = Situation(
            sites, egress_bps=egress_bps, order=Order.FIRST_COME, multicast=False, objective=objective, headers=True
        )
        yield Step(arrivals, situation, {name: Calibration(f, f) for name, f in errors.items()})


def _trains(starts_s: list[float], drawn: World, swell: float, random: np.random.Generator) -> Arrivals:
    per_train = max(int(drawn.train_s * drawn.train_bps * swell / 8 / PRODUCT_BYTES), 1)
    at_s = [np.sort(random.uniform(0, drawn.train_s, per_train)) + start_s for start_s in starts_s]
    times_s = np.clip(np.sort(np.concatenate([np.empty(0), *at_s])), 0.0, STEP_S - 1e-6)
    sizes = random.lognormal(np.log(PRODUCT_BYTES) - 0.125, 0.5, len(times_s))
    return Arrivals(times_s, sizes, STEP_S)


def _costs(
    best: Mapping[Transport, Evaluated], actual: Evaluated, objective: Objective
) -> tuple[dict[Transport, float], float]:
    """Costs of each transport in hindsight, and of the actual service, judged beside the same possibilities.

    These worlds have no static circuits: the actual service stands in their place.
    """
    beside = costs_of({**best, Transport.STATIC_CIRCUIT: actual}, objective)
    paid = beside.pop(Transport.STATIC_CIRCUIT, max(beside.values()))
    return beside, paid


def _happens(asked: Asked) -> tuple[Evaluated, dict[Transport, Evaluated]]:
    """Circuits on demand, and every transport as hindsight may choose it.

    Hindsight keeps the rule of the product: no order where no silence outlasts the set-up. A feed on circuits on
    demand is then served as by unicast.
    """
    found = {one.transport: one for one in evaluate(asked)}
    offered = found[Transport.DYNAMIC_CIRCUIT]
    if not offered.demand or not offered.feasible:
        found[Transport.DYNAMIC_CIRCUIT] = replace(found[Transport.UNICAST], transport=Transport.DYNAMIC_CIRCUIT)
    return offered, found


def _acted(asked: Asked, best: Evaluated, terms: DemandTerms) -> tuple[Evaluated, float]:
    """The hour under the terms in force, and the seconds of circuits in its last ten minutes."""
    offer = asked.served[0].facts.demand
    assert offer is not None
    found = ridden(asked, offer, asked.served, Choice(terms))
    outcome = together([part.outcome for part in found.parts if part.outcome is not None])
    share = asked.situation.objective.share
    late_s = outcome.latencies.quantile_s(share) * best.calibration.at(share)
    acted = replace(
        best, outcome=outcome, price_bps=found.price_bps, late_s=late_s, demand=found.terms, feasible=True
    )
    return acted, _last_step_s(asked, terms)


def _needs_s(asked: Asked, best: Evaluated) -> float:
    return _last_step_s(asked, best.demand[0]) if best.demand else 0.0


def _last_step_s(asked: Asked, terms: DemandTerms) -> float:
    span_s = asked.arrivals.span_s
    held = recurring(asked.arrivals, terms)
    begin_s, end_s = (np.clip(moments, span_s - STEP_S, span_s) for moments in (held.ordered_s, held.ended_s))
    return float((end_s - begin_s).sum()) * len(asked.situation.sites)


def _left(site: object, rest: Rest | None) -> SiteFacts:
    assert isinstance(site, SiteFacts)
    assert site.demand is not None
    is_spent = rest is not None and rest.circuit_s <= 0
    why = "the budget of the day is spent" if is_spent else site.demand.spent
    return replace(site, demand=replace(site.demand, rest=rest, spent=why))


def _hindsight(account: Account, budget_s: float, change: float) -> tuple[list[Transport], float]:
    """The cheapest sequence of transports within the budget of each day, by its use in 3,600 steps.

    Uses are rounded down, in favour of hindsight.
    """
    names, step_s = list(Transport), budget_s / LEVELS
    demand = names.index(Transport.DYNAMIC_CIRCUIT)
    total = np.full((len(names), LEVELS + 1), np.inf)
    total[:, 0] = 0.0
    came: list[np.ndarray] = []
    for number, of in enumerate(account.costs):
        if number % STEPS_A_DAY == 0 and number:
            levels = total.argmin(axis=1)
            total[:, 0], total[:, 1:] = total.min(axis=1), np.inf
            came.append(np.stack([np.arange(len(names)), levels], axis=1))
        moved = total[None] + (change * (1 - np.eye(len(names))) if number else np.zeros((4, 4)))[:, :, None]
        before, least = moved.argmin(axis=1), moved.min(axis=1)
        rise = _levels(account, number, step_s)
        least[demand] = np.concatenate([np.full(min(rise, LEVELS + 1), np.inf), least[demand]])[: LEVELS + 1]
        total = least + np.array([of.get(name, np.inf) for name in names])[:, None]
        came.append(before)
    return _path(account, came, total, step_s), float(total.min())


def _levels(account: Account, number: int, step_s: float) -> int:
    """The levels of the budget that orders of this look take."""
    return int(account.needs_s[number] // step_s) if np.isfinite(step_s) else 0


def _path(account: Account, came: list[np.ndarray], total: np.ndarray, step_s: float) -> list[Transport]:
    names = list(Transport)
    demand = names.index(Transport.DYNAMIC_CIRCUIT)
    at, level = (int(one) for one in np.unravel_index(total.argmin(), total.shape))
    path, number = [], len(account.costs) - 1
    for found in reversed(came):
        if found.shape == (len(names), 2):
            level = int(found[at, 1])
            continue
        path.append(names[at])
        level -= _levels(account, number, step_s) if at == demand else 0
        at, number = int(found[at, level]), number - 1
    return path[::-1]


PRODUCT_BYTES = 200_000
EVENTS = 1 / 100
LEVELS = 3_600
