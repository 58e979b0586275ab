"""Advice about circuits: the rate to order, the table of set-up and hold times, and the value of a faster set-up."""

from collections.abc import Callable

import numpy as np
import pytest

from downburst_analyze.advice import Advice, Terms, advise, whole_megabits_bps
from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.models.candidates import CircuitOffers, Situation
from downburst_scheduler.models.sizing import Objective, study
from unit.scheduler.feeds import ngrid_hour, steady


def advised(arrivals: Arrivals, *, setup_s: float = 60.0, hold_s: float = 60.0, late_s: float = 5.0) -> Advice:
    situation = Situation(
        circuits=CircuitOffers(setup_s=setup_s, hold_s=hold_s), objective=Objective(0.99, latency_s=late_s)
    )
    found = advise(arrivals, study(arrivals, situation.objective), situation)
    assert found is not None
    return found


def terms(found: Advice, setup_s: float, hold_s: float) -> Terms:
    (only,) = [one for one in found.terms if (one.setup_s, one.hold_s) == (setup_s, hold_s)]
    return only


def stand_in() -> Arrivals:
    """An hour with the gaps of the recorded one: 998 of up to 10 s, 7 up to 30 s, and short ones between.

    The excess of the long gaps over 1 s is 24.1 % of the time, that of the seven over 10 s is 0.7 %.
    """
    longest, hour_s = np.full(7, 10 + 0.007 * 3600 / 7), 3600.0
    long = np.full(998, 1 + (0.241 * hour_s - float((longest - 1).sum())) / 998)
    short = np.full(10_000, (hour_s - long.sum() - longest.sum()) / 10_000)
    gaps = np.concatenate([long, longest, short])[np.random.default_rng(1).permutation(11_005)]
    at_s = np.concatenate([[0.0], np.cumsum(gaps)])
    return Arrivals(at_s, np.full(len(at_s), 500_000.0), float(at_s[-1]))


@pytest.mark.parametrize("hour", [stand_in, ngrid_hour], ids=["stand-in", "recorded"])
def test_the_recorded_hour_has_the_published_releases(hour: Callable[[], Arrivals]) -> None:
    found = advised(hour(), setup_s=1.0)
    a_day = 86_400 / hour().span_s
    seen = [terms(found, 1.0, hold_s) for hold_s in (1.0, 10.0, 30.0)]
    assert [one.releases_a_day for one in seen] == pytest.approx([1_005 * a_day, 7 * a_day, 0], rel=0.02)
    assert [round(one.released_share, 3) for one in seen] == pytest.approx([0.241, 0.007, 0.0], rel=0.02)


def test_a_set_up_delays_the_first_product_after_each_silence_by_its_length() -> None:
    # Bursts of one product each 100 s: every product but the first waits for the circuit.
    arrivals = steady(products=200, every_s=100.0)
    found = advised(arrivals, setup_s=10.0, hold_s=20.0, late_s=15.0)
    one = terms(found, 10.0, 20.0)
    assert one.added_mean_s == pytest.approx(10 * 199 / 200)
    assert one.added_at_objective_s == pytest.approx(10.0)
    assert one.released_share == pytest.approx(0.8, rel=0.01)
    assert one.releases_a_day == pytest.approx(864, rel=0.01)
    assert one.keeps_objective
    kept = terms(found, 60.0, 60.0)
    assert kept.added_at_objective_s == pytest.approx(60.0)
    assert not kept.keeps_objective


def test_the_value_of_a_faster_set_up_is_the_rate_that_others_may_use() -> None:
    found = advised(steady(products=200, every_s=100.0), late_s=15.0)
    by_setup = {one.setup_s: one for one in found.worth}
    assert (by_setup[60.0].hold_s, by_setup[60.0].freed_bps) == (None, 0.0)
    assert by_setup[10.0].hold_s == 10.0
    assert by_setup[10.0].freed_bps == by_setup[10.0].gained_bps == pytest.approx(0.9 * found.order_bps, rel=0.01)
    assert by_setup[1.0].gained_bps == pytest.approx(0.09 * found.order_bps, rel=0.01)
    assert [one.setup_s for one in found.worth] == [60.0, 10.0, 1.0, 0.05]
    assert found.sentence.startswith("order 1.00 Mb/s and keep it up: with a set-up of 60 s no hold time")
    assert found.sentence.endswith("a set-up of 0.05 s frees 0.99 Mb/s more on average")


def test_the_order_covers_resampled_windows_in_whole_megabits() -> None:
    found, size = advised(ngrid_hour()), study(ngrid_hour(), Objective())
    assert size is not None
    assert size.high_bps <= found.order_bps < size.high_bps + 1e6
    assert [whole_megabits_bps(rate) for rate in (1.0, 1e6, 1.01e6)] == [1e6, 1e6, 2e6]


def test_a_longer_hold_never_gives_back_more_nor_adds_latency() -> None:
    found = advised(stand_in())
    for setup_s in {one.setup_s for one in found.terms}:
        row = sorted((one for one in found.terms if one.setup_s == setup_s), key=lambda one: one.hold_s)
        assert [one.released_share for one in row] == sorted((one.released_share for one in row), reverse=True)
        assert [one.added_mean_s for one in row] == sorted((one.added_mean_s for one in row), reverse=True)
        assert all(one.hold_s >= setup_s for one in row)


def test_a_steady_feed_has_nothing_to_give_back() -> None:
    found = advised(steady(), setup_s=1.0)
    assert {one.freed_bps for one in found.worth if one.setup_s >= 1} == {0.0}
    assert terms(found, 1.0, 1.0).added_mean_s == 0.0


def test_there_is_no_order_where_no_rate_keeps_the_objective() -> None:
    assert advise(steady(), None, Situation()) is None
