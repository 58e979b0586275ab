"""Days of a feed in virtual time: the real planner with its calibration, against the best choice in hindsight.

A look every ten minutes uses the hour before and decides for the next ten minutes. The outcome is the models'
prediction for the actual products, times an error of each transport that the planner can only learn by
measuring. Objectives are judged by the hour up to then: a quantile of the few products of ten minutes is chance.
Rates go by day and night with noise; sites join and leave, other feeds take egress, paths lose packets, and circuits
and groups die and come back.

The best in hindsight knows all of it and the cost of a change; it is found by dynamic programming over the looks.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from downburst.domain.plans import Transport
from downburst_scheduler.calibration import FeedCalibration, Quantiles
from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.models.candidates import Evaluated, Situation, evaluate
from downburst_scheduler.models.costs import Service, costs_bps
from downburst_scheduler.models.offers import CircuitOffer
from downburst_scheduler.models.parts import asked_of
from downburst_scheduler.models.queues import Order
from downburst_scheduler.models.situation import Calibration, SiteFacts
from downburst_scheduler.models.sizing import Objective
from downburst_scheduler.planner import Because, Memory, Question, Rules, decide


@dataclass(frozen=True, slots=True)
class Step:
    """Ten minutes of a world."""

    arrivals: Arrivals
    situation: Situation
    errors: Mapping[Transport, Calibration]


@dataclass(slots=True)
class Account:
    """The outcome, look by look."""

    standing: list[Transport] = field(default_factory=list)
    forced: list[bool] = field(default_factory=list)
    costs: list[dict[Transport, float]] = field(default_factory=list)
    """Costs of each possible transport."""
    missed: list[bool] = field(default_factory=list)
    """True where the feed missed its objective while some transport met it."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A world's days against the best in hindsight."""

    days: int
    regret: float
    excess_per_day: float
    worst_day_excess: int
    missed_share: float
    longest_miss_steps: int
    changes: int
    best_changes: int


def lived(seed: int, days: int, rules: Rules) -> Account:
    """A world's days under the planner."""
    account, memory, calibration = Account(), Memory(), FeedCalibration()
    window: list[Arrivals] = []
    for number, step in enumerate(world(seed, days)):
        now_s = number * STEP_S
        happens = _happens(step, joined([*window[1 - WINDOW_STEPS :], step.arrivals]))
        seen = joined(window[-WINDOW_STEPS:]) if window else Arrivals(np.empty(0), np.empty(0), 0.0)
        situation = replace(step.situation, calibration=calibration.factors())
        asked = Question(seen, situation, now_s, memory, rules, mistrust=calibration.mistrust(memory.transport))
        decision = decide(asked)
        memory = decision.memory
        account.standing.append(memory.transport)
        account.forced.append(decision.because is Because.FALLBACK)
        account.costs.append(costs_of(happens, step.situation.objective))
        account.missed.append(_missed(happens, memory.transport, step.situation.objective))
        calibrate(calibration, step, happens[memory.transport], memory.transport)
        window = [*window[1 - WINDOW_STEPS :], step.arrivals]
    return account


def judged(account: Account, days: int) -> Verdict:
    """The planner's days beside the best in hindsight."""
    best, best_cost = _hindsight(account.costs)
    change = change_cost(account.costs)
    moved, best_moved = moves(account.standing), moves(best)
    paid = [of.get(at, max(of.values())) for of, at in zip(account.costs, account.standing, strict=True)]
    chosen_moves = moved & ~np.array(account.forced)
    by_day = (chosen_moves.reshape(days, -1).sum(axis=1) - best_moved.reshape(days, -1).sum(axis=1)).astype(int)
    return Verdict(
        days=days,
        regret=(sum(paid) + change * int(moved.sum())) / best_cost - 1,
        excess_per_day=float(by_day.mean()),
        worst_day_excess=int(by_day.max()),
        missed_share=float(np.mean(account.missed)),
        longest_miss_steps=_longest(account.missed),
        changes=int(chosen_moves.sum()),
        best_changes=int(best_moved.sum()),
    )


def world(seed: int, days: int) -> Iterator[Step]:
    """A feed whose size, sites, objective and hub are drawn once, and the events that happen to them day by day."""
    random = np.random.default_rng(seed)
    mean_bytes, per_s = float(random.choice([0.3e6, 1e6, 3e6])), float(random.choice([0.05, 0.1]))
    latency_s, capacity_bps = float(random.choice([5.0, 20.0, 60.0])), float(random.choice([20e6, 100e6, 1e9]))
    with_circuits, pace_bps = random.random() < 0.5, float(random.choice([5e6, 50e6]))
    sites, load, deaf, down, loss, swell = int(random.integers(1, 12)), 0.3, False, False, 0.0, 1.0
    errors = {name: float(random.lognormal(0, 0.25)) for name in Transport}
    for number in range(days * STEPS_A_DAY):
        hour = number % STEPS_A_DAY / STEPS_A_DAY * 24
        if random.random() < STEPS_CHANGE:
            sites = int(np.clip(sites + random.integers(-4, 5), 1, 20))
        if random.random() < STEPS_CHANGE / 2:
            swell, load = float(random.choice([0.5, 1.0, 2.0])), float(random.uniform(0.1, 0.8))
        if random.random() < STEPS_CHANGE / 4:
            loss = float(random.choice([0.0, 0.0, 1e-4, 2e-3]))
        deaf = random.random() < (0.97 if deaf else STEPS_CHANGE / 8)
        down = random.random() < (0.95 if down else STEPS_CHANGE / 4)
        daily = 1 + 0.6 * np.sin((hour - 8) / 24 * 2 * np.pi)
        count = int(random.poisson(per_s * STEP_S * daily * swell * random.lognormal(0, 0.1)))
        at_s = np.sort(random.uniform(0, STEP_S, count))
        sizes: npt.NDArray[np.float64] = random.lognormal(np.log(mean_bytes) - 0.5, 1.0, count)
        circuit = CircuitOffer(1, 20_000_000) if with_circuits and not down else None
        wanted = tuple(
            SiteFacts(
                name=f"s{site}", round_trip_s=0.04, loss=loss, circuit=circuit,
                no_multicast="the group died" if deaf else None,
            )
            for site in range(sites)
        )  # fmt: skip
        situation = Situation(
            wanted, egress_bps=capacity_bps * (1 - load * random.uniform(0.9, 1.1)), order=Order.FIRST_COME,
            multicast_rate_bps=pace_bps, objective=Objective(0.99, latency_s), headers=True,
        )  # fmt: skip
        yield Step(Arrivals(at_s, sizes, STEP_S), situation, {name: Calibration(f, f) for name, f in errors.items()})


def _happens(step: Step, hour: Arrivals) -> dict[Transport, Evaluated]:
    situation = replace(step.situation, calibration=step.errors)
    return {one.transport: one for one in evaluate(asked_of(hour, situation))}


def costs_of(happens: Mapping[Transport, Evaluated], objective: Objective) -> dict[Transport, float]:
    """The cost of each possible transport, by the product's own formula (`downburst_scheduler.models.costs`)."""
    possible = {name: one for name, one in happens.items() if one.parts}
    services = [Service(one.price_bps, one.late_s or 0.0, is_possible=one.feasible) for one in possible.values()]
    return dict(zip(possible, costs_bps(services, objective.latency_s), strict=True))


def _missed(happens: Mapping[Transport, Evaluated], transport: Transport, objective: Objective) -> bool:
    def meets(one: Evaluated) -> bool:
        return one.feasible and (one.late_s or 0.0) <= objective.latency_s

    return not meets(happens[transport]) and any(meets(one) for one in happens.values())


def calibrate(calibration: FeedCalibration, step: Step, happened: Evaluated, transport: Transport) -> None:
    if happened.outcome is None:
        return
    error, seen = step.errors[transport], happened.outcome.latencies
    predicted = Quantiles(seen.quantile_s(0.5) * 1e3, seen.quantile_s(0.99) * 1e3)
    measured = Quantiles(predicted.p50_ms * error.p50, predicted.p99_ms * error.p99)
    calibration.add(transport, measured.over(predicted, floor_ms=step.situation.objective.latency_s * 20))


def _hindsight(costs: list[dict[Transport, float]]) -> tuple[list[Transport], float]:
    """The cheapest sequence of transports, including the cost of changes between looks."""
    change, names = change_cost(costs), list(Transport)
    table = np.array([[of.get(name, np.inf) for name in names] for of in costs])
    total, came = table[0].copy(), np.zeros(table.shape, dtype=int)
    for number in range(1, len(table)):
        before = total[None, :] + change * (1 - np.eye(len(names)))
        came[number] = before.argmin(axis=1)
        total = before.min(axis=1) + table[number]
    path = [int(total.argmin())]
    for number in range(len(table) - 1, 0, -1):
        path.append(int(came[number, path[-1]]))
    return [names[one] for one in reversed(path)], float(total.min())


def change_cost(costs: list[dict[Transport, float]]) -> float:
    """A change costs a third of ten minutes of the cheapest transport: joins, duplicate sending, repair."""
    return float(np.mean([min(of.values()) for of in costs])) / 3


def moves(standing: list[Transport]) -> npt.NDArray[np.bool_]:
    return np.array([False, *(one is not other for one, other in pairwise(standing))])


def joined(some: list[Arrivals]) -> Arrivals:
    at_s = np.concatenate([one.at_s + number * STEP_S for number, one in enumerate(some)])
    return Arrivals(at_s, np.concatenate([one.size_bytes for one in some]), len(some) * STEP_S)


def _longest(flags: list[bool]) -> int:
    longest = run = 0
    for flag in flags:
        run = run + 1 if flag else 0
        longest = max(longest, run)
    return longest


STEP_S = 600.0
STEPS_A_DAY = 144
WINDOW_STEPS = 6
STEPS_CHANGE = 1 / 144
"""The probability for each look: sites come or go about once a day."""
