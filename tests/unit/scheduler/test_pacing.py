"""The pace of budgets: what is left pays for the greatest gains of the rest of the day."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from downburst.domain.ordering import Budget, DemandOrder, OrderStep, OrderTimes
from downburst.domain.plans import Transport
from downburst_scheduler.demand.budgets import rest
from downburst_scheduler.models.demand.pacing import Saving, affordable_share, saving
from downburst_scheduler.models.offers import Rest
from downburst_scheduler.models.sizing import Objective
from downburst_scheduler.planner import Decision, Memory, Question, Rules, decide
from unit.scheduler.feeds import live
from unit.scheduler.test_terms_of_orders import METRO, beside_flows, trains

DAY_S = 86_400.0
LOOK_S = 600.0
LOOKS = 144


@pytest.mark.parametrize(
    ("left", "circuits", "share"),
    [
        (Rest(3_600.0, 7_200.0), 0.5, 1.0),
        (Rest(3_600.0, 7_200.0), 1.0, 0.5),
        (Rest(3_600.0, 7_200.0), 0.0, 1.0),
        (Rest(0.0, 7_200.0), 1.0, 0.0),
        (Rest(-1.0, 7_200.0), 1.0, 0.0),
        (Rest(0.0, 0.0), 1.0, 1.0),
        (Rest(3_600.0, 0.0), 1e9, 1.0),
        (Rest(3_600.0, -5.0), 1.0, 1.0),
    ],
)
def test_the_share_of_the_rest_of_the_day_that_a_budget_pays(left: Rest, circuits: float, share: float) -> None:
    assert affordable_share(left, circuits) == share


def test_a_budget_that_suffices_keeps_nothing_and_forgets_the_least_gain() -> None:
    assert saving(Saving(5.0, saves=True), gain=1.0, share=1.0, now_s=7.0, day_s=DAY_S) == Saving(0.0, at_s=7.0)


def spent(gains: list[float], share: float) -> list[bool]:
    """A day of looks with these gains under a budget of a share of its looks; True where orders are made."""
    left, made, known = share * len(gains), list[bool](), None
    for number, gain in enumerate(gains):
        of_day = Rest(max(left, 0.0) * LOOK_S, (len(gains) - number) * LOOK_S)
        known = saving(
            known, gain=gain, share=affordable_share(of_day, 1.0), now_s=number * LOOK_S, day_s=len(gains) * LOOK_S
        )
        made.append(not known.saves and left >= 1)
        left -= made[-1]
    return made


@pytest.mark.parametrize(("share", "of_best"), [(0.2, 0.35), (0.5, 0.5), (0.8, 0.65)])
@pytest.mark.parametrize("seed", range(1, 13))
def test_hours_of_small_gains_leave_the_budget_to_those_of_great_ones(
    share: float, of_best: float, seed: int
) -> None:
    """Orders as trains come have 0.12, 0.25 and 0.6 of the best gains if the great ones are last."""
    print(f"seed {seed}")
    random = np.random.default_rng(seed)
    gains = np.repeat(random.permutation([1.0, 2.0, 4.0, 8.0]), LOOKS // 4) * random.lognormal(0, 0.05, LOOKS)
    count = int(share * LOOKS)
    assert gains[spent(gains.tolist(), share)].sum() >= of_best * np.sort(gains)[-count:].sum()


@pytest.mark.parametrize("share", [0.1, 0.4, 0.7])
def test_equal_gains_use_most_of_the_budget_and_never_more(share: float) -> None:
    used = sum(spent([3.0] * LOOKS, share))
    assert 0.9 * share * LOOKS <= used <= share * LOOKS + 1e-9


@example([1e308, 1e308], 0.5)
@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=30), st.floats(0.0, 1.0))
def test_no_gain_makes_the_least_gain_anything_but_a_number(gains: list[float], share: float) -> None:
    known = None
    for number, gain in enumerate(gains):
        known = saving(known, gain=gain, share=share, now_s=number * 10.0, day_s=DAY_S)
        assert known.least_gain >= 0
        assert math.isfinite(known.least_gain)


def looks(rests: Sequence[Rest | None], *, ridden: bool = True) -> list[Decision]:
    """A feed of equal trains, each ten minutes with another rest of the offer's budget."""
    memory, found = Memory(Transport.DYNAMIC_CIRCUIT if ridden else Transport.UNICAST, chosen_at_s=0.0), []
    for number, left in enumerate(rests):
        site = beside_flows(replace(METRO, rest=left))
        situation = live(site, egress_bps=50e6, no_multicast="no groups", objective=Objective(0.99, 5.0))
        rules = Rules(agreeing_windows=1, dwell_s=0.0)
        found.append(decide(Question(trains(), situation, 1e6 + number * LOOK_S, memory, rules)))
        memory = found[-1].memory
    return found


def test_a_feed_on_circuits_stays_there_while_the_budget_is_kept_and_the_plan_says_so() -> None:
    scarce = [Rest(5_000.0, DAY_S - number * LOOK_S) for number in range(120)]
    found = looks(scarce)
    kept = [one for one in found if not one.chosen.demand]
    assert kept, "a third of the time is needed, and the budget pays for a fifth of that"
    assert found[0].chosen.demand
    assert {one.transport for one in found} == {Transport.DYNAMIC_CIRCUIT}
    assert "circuit-hours for the next" in kept[0].chosen.reason
    assert "are kept for trains with a greater gain" in kept[0].chosen.reason
    assert kept[0].chosen.unicast_sites == ("a",)


def test_an_ample_budget_or_none_orders_at_every_look() -> None:
    for left in (None, Rest(40_000.0, DAY_S), Rest(10.0, 0.0)):
        assert all(one.chosen.demand for one in looks([left] * 20))


def test_a_budget_is_kept_by_feeds_that_use_it_only() -> None:
    (first, *_) = looks([Rest(5_000.0, DAY_S)] * 3, ridden=False)
    assert first.transport is Transport.DYNAMIC_CIRCUIT
    assert first.memory.savings == {}


def order(step: OrderStep, begin_h: float, until_h: float, ended_h: float | None = None) -> DemandOrder:
    def at(hours: float) -> datetime:
        return NOON + timedelta(hours=hours - 12)

    times = OrderTimes(at(begin_h), at(until_h), ended_at=None if ended_h is None else at(ended_h))
    return DemandOrder(1, "metro", "NGRID", "a", 5_000_000, "a train", times, step)


NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def test_the_rest_of_a_budget_is_that_of_the_orders_of_the_day() -> None:
    day = Budget(circuit_hours=4.0)
    orders = [
        order(OrderStep.ENDED, 1.0, 3.0, 2.0),
        order(OrderStep.UP, 11.5, 13.0),
        order(OrderStep.ENDED, -2.0, 0.5, 0.5),
        order(OrderStep.WOULD, 5.0, 9.0),
        order(OrderStep.REFUSED, 5.0, 9.0, 5.0),
    ]
    left = rest(day, orders, now=NOON)
    assert left == Rest((4.0 - 1.0 - 0.5 - 0.5) * 3_600, 43_200.0)


def test_a_budget_that_is_used_up_has_nothing_left_and_one_without_hours_has_no_rest() -> None:
    long = [order(OrderStep.ENDED, 1.0, 9.0, 9.0)]
    assert rest(Budget(circuit_hours=4.0), long, now=NOON) == Rest(0.0, 43_200.0)
    assert rest(Budget(circuit_hours=0.0), [], now=NOON) == Rest(0.0, 43_200.0)
    assert rest(Budget(orders=5), long, now=NOON) is None
    midnight = NOON + timedelta(hours=12)
    assert rest(Budget(circuit_hours=4.0), long, now=midnight) == Rest(4 * 3_600.0, DAY_S)
    last = rest(Budget(circuit_hours=4.0), [], now=midnight - timedelta(seconds=1))
    assert last == Rest(4 * 3_600.0, 1.0)
