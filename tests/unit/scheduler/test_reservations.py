"""Reservations in virtual time: worked examples, a loop that steps through time, and the recorded hour."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.models.demand.habit import Habit
from downburst_scheduler.models.demand.playing import Reservations, reservations, sojourns_s
from downburst_scheduler.models.demand.terms import DemandTerms
from downburst_scheduler.models.transports import releases
from unit.scheduler.feeds import arrivals, ngrid_hour

products = st.lists(st.tuples(st.integers(0, 400), st.integers(1, 50)), min_size=1, max_size=40).map(sorted)


def terms(setup_s: float = 1.0, hold_s: float = 1.0, *, ahead: bool = False) -> DemandTerms:
    return DemandTerms("a", "metro", 8_000_000, setup_s, hold_s, ahead)


@pytest.mark.parametrize(("hold_s", "count", "share"), [(1, 1005, 0.241), (10, 7, 0.007), (30, 0, 0.0)])
def test_the_recorded_hour_is_given_back_as_the_closed_form_says(hold_s: float, count: int, share: float) -> None:
    held, form = reservations(ngrid_hour(), terms(hold_s=hold_s)), releases(ngrid_hour(), setup_s=1, hold_s=hold_s)
    assert held.releases == form.releases == count
    assert held.released_share == pytest.approx(form.share_of_time)
    assert held.released_share == pytest.approx(share, abs=0.0005)


def test_a_circuit_is_ordered_at_a_start_and_given_back_a_hold_after_the_last_product() -> None:
    held = reservations(arrivals((10, 1), (12, 1), (40, 1), span_s=100), terms(2, 5))
    assert held.ordered_s.tolist() == [10, 40]
    assert held.up_s.tolist() == [12, 42]
    assert held.ended_s.tolist() == [17, 45]
    assert held.releases == 1
    assert held.released_share == pytest.approx(0.23)
    assert held.reserved_share(100.0) == pytest.approx(0.12)


def test_no_hold_is_shorter_than_the_setup_and_no_products_order_nothing() -> None:
    assert reservations(arrivals((0, 1), (30, 1)), terms(60, 0)).releases == 0
    assert reservations(arrivals(), terms()).ordered_s.size == 0


def regular(trains: int, *, every_s: float = 60.0) -> Arrivals:
    at_s = np.concatenate([n * every_s + np.arange(0, 20, 0.5) for n in range(trains)])
    return Arrivals(at_s, np.full(len(at_s), 1e5), trains * every_s)


def test_trains_with_a_habit_find_their_circuit_up() -> None:
    held = reservations(regular(10), terms(3, 4, ahead=True))
    assert held.ordered_s[:5].tolist() == [0, 60, 120, 180, 240]
    assert held.ordered_s[5:10].tolist() == [297, 357, 417, 477, 537]
    assert held.up_s[5:10].tolist() == [300, 360, 420, 480, 540]
    # A train after the last one is expected, ordered for, and does not come.
    assert held.ordered_s.tolist()[10:] == [597]
    assert held.ended_s[-1] == 604


def test_a_train_that_does_not_come_is_waited_for_a_hold_and_orders_are_not_repeated() -> None:
    feed = regular(10)
    gone = Arrivals(feed.at_s, feed.size_bytes, 1_200.0)
    held = reservations(gone, terms(3, 4, ahead=True))
    assert held.ordered_s[-2:].tolist() == [537, 597]
    assert held.ended_s[-1] == 604


def test_a_circuit_is_kept_where_the_next_order_would_come_before_the_release() -> None:
    held = reservations(regular(10), terms(25, 25, ahead=True))
    assert held.releases == 4
    assert held.ordered_s.tolist() == [0, 60, 120, 180, 240]
    assert held.ended_s[-1] == 625


@settings(max_examples=150, deadline=None)
@given(products, st.integers(1, 30), st.integers(1, 30), st.booleans())
def test_reservations_are_those_of_a_loop_that_steps_through_time(
    feed: list[tuple[int, int]], setup_s: int, hold_s: int, ahead: bool
) -> None:
    came = arrivals(*[(at, size) for at, size in feed], span_s=500)
    held, stepped = (
        reservations(came, terms(setup_s, hold_s, ahead=ahead)),
        Loop(max(setup_s, hold_s), setup_s, ahead),
    )
    spans = stepped.run([at for at, _ in feed], 500)
    assert list(zip(held.ordered_s.tolist(), held.ended_s.tolist(), strict=True)) == spans


@pytest.mark.parametrize("seed", range(1, 41))
def test_reservations_for_trains_with_a_habit_are_those_of_the_loop_too(seed: int) -> None:
    print(f"seed {seed}")
    random = np.random.default_rng(seed)
    every_s, spread_s = random.integers(40, 120), random.integers(1, 8)
    starts = [n * every_s + int(random.integers(0, spread_s)) for n in range(60) if random.random() > 0.08]
    feed = sorted({int(start + step) for start in starts for step in range(0, random.integers(1, 20), 2)})
    span_s, setup_s, hold_s = int(60 * every_s), int(random.integers(1, 30)), int(random.integers(2, 30))
    held = reservations(arrivals(*[(at, 1) for at in feed], span_s=span_s), terms(setup_s, hold_s, ahead=True))
    spans = Loop(max(setup_s, hold_s), setup_s, True).run(feed, span_s)
    assert list(zip(held.ordered_s.tolist(), held.ended_s.tolist(), strict=True)) == spans


class Loop:
    """The acting rules by events, in the order of time, without knowledge of later products."""

    def __init__(self, hold_s: float, setup_s: float, ahead: bool) -> None:
        self.hold_s, self.setup_s, self.ahead = hold_s, setup_s, ahead
        self.habit, self.spans = Habit(), list[tuple[float, float]]()
        self.ordered: float | None = None
        self.last: float | None = None
        self.give_back, self.order_at, self.wait_until = math.inf, math.inf, math.inf
        self.consulted = False

    def run(self, products_s: list[int], span_s: float) -> list[tuple[float, float]]:
        for at_s in products_s:
            self.until(at_s, span_s)
            self.product(float(at_s))
        self.until(math.inf, span_s)
        return self.spans

    def product(self, at_s: float) -> None:
        if self.last is None or at_s - self.last > self.hold_s:
            self.habit.seen(at_s)
        if self.ordered is None:
            self.ordered = at_s
        self.last, self.give_back, self.order_at, self.consulted = at_s, at_s + self.hold_s, math.inf, False

    def until(self, now_s: float, span_s: float) -> None:
        """The timers due before this moment; one that is due with a product comes after it."""
        while min(self.give_back, self.order_at) < now_s:
            if self.order_at < self.give_back:
                self.ordered = self.order_at if self.order_at < span_s else None
                self.order_at, self.give_back = math.inf, self.wait_until if self.ordered is not None else math.inf
            else:
                self.silence(self.give_back)

    def silence(self, at_s: float) -> None:
        expected = self.habit.next_after(at_s) if self.ahead and not self.consulted else None
        self.consulted, self.give_back = True, math.inf
        order_at = math.inf if expected is None else expected.at_s - self.setup_s - expected.early_s
        self.wait_until = math.inf if expected is None else expected.at_s + expected.early_s + self.hold_s
        if order_at <= at_s:
            self.give_back = self.wait_until
            return
        assert self.ordered is not None
        self.spans.append((self.ordered, at_s))
        self.ordered, self.order_at = None, order_at


def test_products_take_the_routed_path_during_the_setup_and_the_circuit_afterwards() -> None:
    came = arrivals((0, 1e6), (3, 1e6), (50, 1e6), span_s=100)
    held = reservations(came, terms(2, 5))
    # 0.8 Mb/s for 2 s, then 8 Mb/s: 1.6 of 8 Mb go routed, the rest in 0.8 s.
    assert sojourns_s(came, held, routed_bps=0.8e6, circuit_bps=8e6) == pytest.approx([2.8, 1.0, 2.8])
    always = Reservations(np.zeros(1), np.zeros(1), np.array([100.0]), 0, 0.0)
    assert sojourns_s(came, always, routed_bps=1.0, circuit_bps=8e6) == pytest.approx([1.0, 1.0, 1.0])


def test_a_site_that_takes_half_the_bytes_waits_for_half_the_others() -> None:
    came = arrivals((0, 1e6), (0, 1e6), span_s=100)
    held = reservations(came, terms(50, 50))
    assert sojourns_s(came, held, routed_bps=8e6, circuit_bps=8e6, share=0.5) == pytest.approx([1.0, 1.5])


@settings(max_examples=80, deadline=None)
@given(products, st.integers(1, 20), st.integers(1, 30), st.booleans())
def test_sojourns_are_those_of_a_queue_that_serves_bit_by_bit(
    feed: list[tuple[int, int]], setup_s: int, hold_s: int, ahead: bool
) -> None:
    came = arrivals(*[(at, size) for at, size in feed], span_s=500)
    held = reservations(came, terms(setup_s, hold_s, ahead=ahead))
    assert sojourns_s(came, held, routed_bps=16.0, circuit_bps=64.0) == pytest.approx(
        served(came, held, routed_bps=16.0, circuit_bps=64.0), abs=1e-6
    )


def served(came: Arrivals, held: Reservations, *, routed_bps: float, circuit_bps: float) -> list[float]:
    """First come, first served; each product from one change of the rate to the next."""
    free_s, found = 0.0, []
    changes = sorted({*held.up_s.tolist(), *held.ended_s.tolist(), math.inf})
    for at_s, size in zip(came.at_s.tolist(), came.size_bytes.tolist(), strict=True):
        now_s, bits = max(free_s, at_s), size * 8
        while bits > 1e-9:
            up = any(begin <= now_s < end for begin, end in zip(held.up_s, held.ended_s, strict=True))
            rate_bps, change_s = circuit_bps if up else routed_bps, next(one for one in changes if one > now_s)
            step_s = min(bits / rate_bps, change_s - now_s)
            now_s, bits = (change_s if step_s == change_s - now_s else now_s + step_s), bits - step_s * rate_bps
        free_s = now_s
        found.append(now_s - at_s)
    return found
