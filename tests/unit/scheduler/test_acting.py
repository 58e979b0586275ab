"""Conditions for a change to a better transport: the day's budget, urgency, trust in predictions, dry runs."""

from dataclasses import replace

import pytest

from downburst.domain.plans import Transport
from downburst_scheduler.calibration import FEWEST, FeedCalibration, Quantiles, Ratio
from downburst_scheduler.models.situation import Calibration
from downburst_scheduler.models.sizing import Objective
from downburst_scheduler.planner import Because, Memory, Question, Rules, decide
from downburst_scheduler.sentences import figures, reason
from unit.scheduler.exact import statistics_of
from unit.scheduler.feeds import live, peaked, sites, steady

CHOSEN = Memory(chosen_at_s=-1e9)
AT_ONCE = Rules(agreeing_windows=1, dwell_s=0)
BETTER = live(*sites(5, round_trip_s=0.02))
"""A group costs a third of copies here."""
MISSING = live(*sites(3), egress_bps=6e6, multicast_rate_bps=400e6, objective=Objective(0.99, 0.3))
"""Copies take 0.4 s here and a group 0.15."""


def asked(situation: object = BETTER, **other: object) -> Question:
    given_ = {"now_s": 0.0, "memory": CHOSEN, "rules": AT_ONCE} | other
    return Question(steady(), situation, **given_)  # type: ignore[arg-type]


def test_a_change_by_figures_is_counted() -> None:
    decision = decide(asked())
    assert (decision.transport, decision.memory.changed_at_s) == (Transport.MULTICAST, (0.0,))


def test_the_first_choice_of_a_feed_is_no_change() -> None:
    assert decide(asked(memory=Memory())).memory.changed_at_s == ()


def test_when_the_days_budget_is_spent_the_feed_stays_and_says_so() -> None:
    question = asked(rules=replace(AT_ONCE, changes_per_day=4), memory=replace(CHOSEN, changed_at_s=(-50.0, -40.0)))
    decision = decide(question)
    assert (decision.transport, decision.because) == (Transport.UNICAST, Because.SPENT)
    assert "multicast is preferred, but 2 of 4 changes of the day are used" in reason(question, decision)


def test_two_changes_a_day_are_kept_for_missed_objectives() -> None:
    memory, rules = replace(CHOSEN, changed_at_s=(-50.0, -40.0)), replace(AT_ONCE, changes_per_day=4)
    assert decide(asked(memory=memory, rules=rules)).because is Because.SPENT
    assert decide(asked(MISSING, memory=memory, rules=rules)).transport is Transport.MULTICAST
    spent = replace(memory, changed_at_s=(-50.0, -40.0, -30.0, -20.0))
    assert decide(asked(MISSING, memory=spent, rules=rules)).because is Because.SPENT


def test_changes_of_the_day_before_are_forgotten() -> None:
    memory = replace(CHOSEN, changed_at_s=(-90_000.0, -89_000.0, -88_000.0, -87_000.0))
    decision = decide(asked(memory=memory, rules=replace(AT_ONCE, changes_per_day=4)))
    assert (decision.transport, decision.memory.changed_at_s) == (Transport.MULTICAST, (0.0,))


def test_a_missed_objective_does_not_wait_for_the_last_change_and_a_better_price_does() -> None:
    just_now, rules = Memory(chosen_at_s=-1.0), replace(AT_ONCE, dwell_s=300.0)
    assert decide(asked(MISSING, memory=just_now, rules=rules)).transport is Transport.MULTICAST
    assert decide(asked(memory=just_now, rules=rules)).because is Because.WAITING


def test_an_overload_that_no_other_transport_is_better_in_moves_nobody() -> None:
    """The feed's busiest minute exceeds the egress, and a slow group would take longer."""
    tight = live(*sites(2), egress_bps=3.9e6, multicast_rate_bps=1.9e6)
    question = replace(asked(tight), arrivals=peaked(1.6e6, 2e6, minutes=20))
    decision = decide(question)
    assert not decision.option(Transport.UNICAST).feasible
    assert (decision.transport, decision.because) == (Transport.UNICAST, Because.LEAST_BAD)
    assert "no possible transport is better by enough (it needs 4.23 Mb/s" in reason(question, decision)


def test_a_dry_run_says_what_it_would_do_and_does_nothing() -> None:
    question = asked(rules=replace(AT_ONCE, dry_run=True))
    decision = decide(question)
    assert (decision.transport, decision.because) == (Transport.UNICAST, Because.WOULD)
    assert decision.memory.changed_at_s == ()
    assert "dry run: it would change to multicast (one group of 5 sites)" in reason(question, decision)
    shown = figures(question, decision, statistics_of(question.arrivals))
    assert (shown["would_be"], shown["dry_run"]) == ("multicast", True)


def test_predictions_that_are_far_off_move_nobody_and_are_named() -> None:
    calibration = FeedCalibration()
    for _ in range(FEWEST):
        calibration.add(Transport.UNICAST, Ratio(1.0, 3.0))
    question = asked(mistrust=calibration.mistrust(Transport.UNICAST))
    decision = decide(question)
    assert (decision.transport, decision.because) == (Transport.UNICAST, Because.MISTRUSTED)
    assert "the p99 measured by unicast is 3 times the predicted one, outside 0.5 to 2" in reason(question, decision)


@pytest.mark.parametrize("good", [0.6, 1.0, 1.9])
def test_one_good_review_ends_the_mistrust_and_so_does_somebody_who_acts(good: float) -> None:
    doubted = FeedCalibration()
    for _ in range(FEWEST):
        doubted.add(Transport.UNICAST, Ratio(1.0, 0.3))
    assert doubted.mistrust(Transport.UNICAST) is not None
    assert doubted.mistrust(Transport.MULTICAST) is None
    doubted.add(Transport.UNICAST, Ratio(1.0, good))
    assert doubted.mistrust(Transport.UNICAST) is None
    for _ in range(FEWEST):
        doubted.add(Transport.UNICAST, Ratio(1.0, 9.0))
    doubted.forget()
    assert doubted.mistrust(Transport.UNICAST) is None


def test_the_median_of_enough_reviews_is_the_factor_within_what_is_trusted() -> None:
    calibration = FeedCalibration()
    for ratio in (1.2, 1.3, 1.4, 50.0):
        calibration.add(Transport.MULTICAST, Ratio(1.0, ratio))
    assert calibration.factors() == {}
    calibration.add(Transport.MULTICAST, Ratio(1.0, 1.3))
    assert calibration.factors() == {Transport.MULTICAST: Calibration(1.0, 1.3)}
    for _ in range(40):
        calibration.add(Transport.MULTICAST, Ratio(9.0, 9.0))
    assert calibration.factors() == {Transport.MULTICAST: Calibration(2.0, 2.0)}


def test_factors_survive_in_the_figures_of_a_plan() -> None:
    calibration = FeedCalibration()
    for _ in range(FEWEST):
        calibration.add(Transport.MULTICAST, Ratio(0.9, 1.5))
    assert FeedCalibration.resumed(calibration.figures()).factors() == calibration.factors()


def test_what_is_far_below_the_objective_is_no_reason_for_doubt() -> None:
    assert Quantiles(5.0, 40.0).over(Quantiles(1.0, 2.0), floor_ms=100.0) == Ratio(1.0, 1.0)
    assert Quantiles(5.0, 400.0).over(Quantiles(1.0, 2.0), floor_ms=100.0) == Ratio(1.0, 4.0)


def test_a_factor_weighs_in_the_choice() -> None:
    """Copies that were measured to take twice as long as predicted miss an objective that they seemed to meet."""
    near = replace(live(*sites(2), egress_bps=6e6), objective=Objective(0.99, 0.4))
    assert decide(asked(near)).transport is Transport.UNICAST
    slow = replace(near, calibration={Transport.UNICAST: Calibration(2.0, 2.0)})
    assert decide(asked(slow)).transport is Transport.MULTICAST
