"""Habits of trains: the period and the time of day are found where they are sure, and nowhere else."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from downburst_scheduler.models.demand.habit import DAY_S, MOST, Habit


def at_hours(hours: list[float], days: int) -> list[float]:
    return [day * DAY_S + hour * 3600 for day in range(days) for hour in hours]


def test_trains_every_minute_are_expected_a_minute_after_the_last() -> None:
    expected = Habit.of([60.0 * n for n in range(6)]).next_after(320.0)
    assert expected is not None
    assert (expected.at_s, expected.early_s, expected.sure) == (360.0, 0.0, 1.0)


def test_a_missing_train_and_a_late_one_do_not_move_the_period() -> None:
    starts = [60.0 * n for n in range(17) if n != 7]
    starts[3] += 5
    expected = Habit.of(starts).next_after(starts[-1] + 20)
    assert expected is not None
    assert expected.at_s == pytest.approx(starts[-1] + 60)
    assert expected.early_s <= 5
    assert expected.sure == pytest.approx(14 / 15)


@pytest.mark.parametrize("starts", [[], [1.0], [0.0, 60.0, 120.0], [0.0, 60.0, 120.0, 180.0]])
def test_few_trains_are_no_habit(starts: list[float]) -> None:
    assert Habit.of(starts).next_after(200.0) is None


def test_an_expected_moment_that_is_past_is_no_prediction() -> None:
    habit = Habit.of([60.0 * n for n in range(6)])
    assert habit.next_after(359.0) is not None
    assert habit.next_after(361.0) is None


def test_trains_at_their_times_of_day_are_expected_at_the_same_time_a_day_later() -> None:
    hours = [0.5, 3.0, 9.0, 11.0, 20.0]
    habit = Habit.of([at_s + 20 * (number % 3) for number, at_s in enumerate(at_hours(hours, 2))])
    expected = habit.next_after(2 * DAY_S - 60.0)
    assert expected is not None
    assert expected.at_s == pytest.approx(2 * DAY_S + 0.5 * 3600, abs=60)
    assert expected.early_s <= 40


def test_less_than_a_day_of_uneven_trains_is_no_habit() -> None:
    assert Habit.of(at_hours([0.5, 3.0, 9.0, 11.0, 20.0], 1)).next_after(DAY_S - 60) is None


@pytest.mark.parametrize("seed", range(1, 6))
def test_trains_by_chance_are_hardly_ever_expected(seed: int) -> None:
    print(f"seed {seed}")
    starts = np.cumsum(np.random.default_rng(seed).exponential(60.0, 3_000)).tolist()
    habit, expected = Habit(), 0
    for start_s in starts:
        habit.seen(start_s)
        expected += habit.next_after(start_s + 1.0) is not None
    assert expected <= len(starts) / 100


def test_memory_is_bounded_and_the_latest_starts_are_kept() -> None:
    habit = Habit.of(60.0 * n for n in range(3 * MOST))
    assert len(habit._starts_s) <= MOST
    expected = habit.next_after(60.0 * 3 * MOST - 30)
    assert expected is not None
    assert expected.at_s == 60.0 * 3 * MOST


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=40), st.floats(-1e6, 1e6))
def test_any_starts_in_any_order_give_a_later_moment_or_none(starts: list[float], now_s: float) -> None:
    expected = Habit.of(starts).next_after(now_s)
    assert expected is None or (expected.at_s + expected.early_s > now_s and 0 <= expected.sure <= 1)
