"""The choice: worked examples, pins, patience, and the absence of flapping."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from downburst.domain.plans import Pin, Transport
from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.figures.wording import duration
from downburst_scheduler.models.candidates import Evaluated, best_of, late_cost_bps
from downburst_scheduler.models.floors import Floor
from downburst_scheduler.models.sizing import Objective
from downburst_scheduler.planner import Because, Decision, Memory, Question, Rules, decide
from downburst_scheduler.sentences import figures, reason
from unit.scheduler.exact import statistics_of
from unit.scheduler.feeds import live, ngrid_hour, sites, steady

NO_CIRCUITS = (
    "static-circuit and dynamic-circuit are not available: no circuit is reserved to its sites, "
    "and no offer of circuits reaches its sites"
)
AT_ONCE = Rules(agreeing_windows=1, dwell_s=0)


def question(
    fan_out: int = 5, played: Arrivals | None = None, objective_ms: float = 5_000.0, **other: object
) -> Question:
    """A question about sites at 20 ms; `other` holds fields of the question and of its situation."""
    of_planner = {name: other.pop(name) for name in tuple(other) if name in Question.__dataclass_fields__}
    given_ = {"now_s": 0.0, "rules": AT_ONCE} | of_planner
    objective = Objective(0.99, objective_ms / 1e3)
    situation = live(*sites(fan_out, round_trip_s=0.02), objective=objective, **other)
    arrivals = steady() if played is None else played
    return Question(arrivals=arrivals, situation=situation, **given_)  # type: ignore[arg-type]


def pin(transport: Transport) -> Pin:
    return Pin("NGRID", transport, by="alice", at=datetime(2026, 1, 1, tzinfo=UTC))


def test_the_sentence_names_fan_out_both_prices_the_ratio_and_the_objective() -> None:
    asked = question(5, ngrid_hour())
    decision = decide(asked)
    assert decision.transport == Transport.MULTICAST
    assert reason(asked, decision) == (
        "multicast: 5 sites would cost 64.6 Mb/s by unicast and 13.3 Mb/s by multicast (4.9 times less), "
        f"predicted p99 93.2 ms within the objective of 5 s; {NO_CIRCUITS}"
    )


def test_example_7_conduit_to_104_sites_over_a_gigabit_goes_by_multicast() -> None:
    conduit = steady(products=300, size_bytes=60e9 / 86_400, every_s=1.0)
    asked = question(104, conduit)
    decision = decide(asked)
    assert decision.transport == Transport.MULTICAST
    unicast = decision.option(Transport.UNICAST).outcome
    assert unicast is not None
    assert unicast.egress_bps == pytest.approx(578e6 * 1.047, rel=0.01), "in frames"
    assert NO_CIRCUITS in reason(asked, decision)


@pytest.mark.parametrize("fan_out", [1, 2])
def test_example_9_one_or_two_near_sites_stay_on_unicast(fan_out: int) -> None:
    asked = question(fan_out, ngrid_hour())
    decision = decide(asked)
    assert (decision.transport, decision.because) == (Transport.UNICAST, Because.CHEAPEST)
    why = "needs at least 2 sites" if fan_out == 1 else "gains under 20%"
    assert why in reason(asked, decision)


def test_without_traffic_a_feed_starts_on_unicast() -> None:
    asked = question(5, Arrivals.of_trace([]))
    decision = decide(asked)
    assert decision.because == Because.NO_TRAFFIC
    assert reason(asked, decision) == f"unicast: no traffic measured yet, 5 sites to serve; {NO_CIRCUITS}"


def test_without_sites_there_is_nothing_to_choose() -> None:
    asked = question(0)
    decision = decide(asked)
    assert decision.because == Because.NO_SITES
    assert reason(asked, decision) == f"unicast: no site subscribes to the feed; {NO_CIRCUITS}"


def test_a_quiet_feed_keeps_its_transport() -> None:
    memory = Memory(Transport.MULTICAST, chosen_at_s=0.0)
    quiet = Arrivals(np.empty(0), np.empty(0), 60.0)
    asked = question(5, quiet, memory=memory)
    decision = decide(asked)
    assert (decision.transport, decision.because) == (Transport.MULTICAST, Because.QUIET)
    assert reason(asked, decision).startswith("multicast: no product came in the last 60 s, so the choice stays")


def test_if_nothing_meets_the_objective_the_fastest_is_taken() -> None:
    asked = question(5, objective_ms=1.0)
    decision = decide(asked)
    assert decision.because == Because.FASTEST
    assert "over the objective of 1 ms" in reason(asked, decision)
    fastest = min(option.quantile_ms(0.99) for option in decision.options if option.feasible)
    assert decision.chosen.quantile_ms(0.99) == fastest


def test_an_objective_that_only_copies_meet_is_worth_their_price() -> None:
    """A group is paced, so three copies over a wide port arrive sooner."""
    decision = decide(
        question(
            3,
            egress_bps=10e9,
            multicast_rate_bps=5e6,
            objective_ms=100.0,
            memory=Memory(Transport.MULTICAST, chosen_at_s=-1e9),
        )
    )
    assert (
        decision.option(Transport.MULTICAST).quantile_ms(0.99)
        > 100
        > decision.option(Transport.UNICAST).quantile_ms(0.99)
    )
    assert (decision.transport, decision.because) == (Transport.UNICAST, Because.CHEAPEST)


def test_a_missed_objective_is_left_for_a_met_one_however_small_the_gain() -> None:
    decision = decide(
        question(
            3,
            egress_bps=10e9,
            multicast_rate_bps=12e6,
            objective_ms=80.0,
            memory=Memory(Transport.MULTICAST, chosen_at_s=-1e9),
        )
    )
    group_ms, copies_ms = (
        decision.option(transport).quantile_ms(0.99) for transport in (Transport.MULTICAST, Transport.UNICAST)
    )
    assert group_ms > 80 > copies_ms > group_ms * (1 - Rules().min_gain)
    assert decision.transport == Transport.UNICAST


def test_a_cheaper_transport_that_only_just_meets_the_objective_is_left_alone() -> None:
    """A p99 of nine tenths of the objective would be over it at the next burst."""
    standing = Memory(chosen_at_s=-1e9)
    p99_ms = decide(question(5, multicast_rate_bps=5e6)).option(Transport.MULTICAST).quantile_ms(0.99)
    assert (
        decide(question(5, multicast_rate_bps=5e6, memory=standing, objective_ms=p99_ms / 0.9)).transport
        == Transport.UNICAST
    )
    assert (
        decide(question(5, multicast_rate_bps=5e6, memory=standing, objective_ms=p99_ms / 0.7)).transport
        == Transport.MULTICAST
    )


def test_if_nothing_fits_the_least_is_sent() -> None:
    decision = decide(question(5, egress_bps=1e6, multicast_rate_bps=9e5))
    assert (decision.transport, decision.because) == (Transport.MULTICAST, Because.LEAST_BAD)


def test_what_has_become_impossible_is_left_at_once() -> None:
    patient = Rules(agreeing_windows=99, dwell_s=1e9)
    memory = Memory(Transport.MULTICAST, chosen_at_s=0.0)
    assert decide(question(1, memory=memory, rules=patient)).transport == Transport.UNICAST


def test_a_pin_wins_at_once_and_is_named() -> None:
    asked = question(2, pin=pin(Transport.MULTICAST), rules=Rules(agreeing_windows=99, dwell_s=1e9))
    decision = decide(asked)
    assert (decision.transport, decision.because) == (Transport.MULTICAST, Because.PINNED)
    assert reason(asked, decision).startswith("multicast: pinned by alice, 2 sites would cost")


def test_a_pin_holds_before_any_traffic() -> None:
    asked = question(3, Arrivals.of_trace([]), pin=pin(Transport.MULTICAST))
    assert decide(asked).transport == Transport.MULTICAST
    assert reason(asked, decide(asked)).startswith("multicast: pinned by alice, one group of 3 sites;")


@pytest.mark.parametrize(
    ("wanted", "fan_out", "why"),
    [
        (Transport.STATIC_CIRCUIT, 5, "no circuit is reserved to its sites"),
        (Transport.MULTICAST, 1, "a group needs at least 2 sites that can join and there is 1"),
    ],
)
def test_a_pin_that_can_not_be_followed_leaves_the_plan_and_says_why(
    wanted: Transport, fan_out: int, why: str
) -> None:
    asked = question(fan_out, pin=pin(wanted))
    decision = decide(asked)
    assert (decision.transport, decision.because) == (Transport.UNICAST, Because.PIN_INFEASIBLE)
    assert f"pinned to {wanted} by alice, which is not possible ({why}), so the choice stays" in reason(
        asked, decision
    )


def looks(asked: Question, times: int, *, every_s: float = 10.0) -> list[Decision]:
    """The same question again and again, each with the memory of the one before."""
    decisions: list[Decision] = []
    for number in range(times):
        now = replace(asked, now_s=number * every_s, memory=decisions[-1].memory if decisions else asked.memory)
        decisions.append(decide(now))
    return decisions


def test_a_change_needs_three_looks_in_a_row() -> None:
    asked = question(5, rules=Rules(agreeing_windows=3, dwell_s=0))
    decisions = looks(asked, 3)
    assert [decision.transport.value for decision in decisions] == ["unicast", "unicast", "multicast"]
    assert [decision.because for decision in decisions[:2]] == [Because.WAITING] * 2
    assert "multicast preferred in 2 of 3 required checks" in reason(asked, decisions[1])


def test_questions_in_between_do_not_count_as_looks() -> None:
    asked = question(5, rules=Rules(agreeing_windows=3, dwell_s=0), look=False)
    assert {decision.transport for decision in looks(asked, 20)} == {Transport.UNICAST}


def test_a_change_waits_for_the_dwell_of_the_one_before() -> None:
    memory = Memory(Transport.UNICAST, chosen_at_s=0.0)
    asked = question(5, rules=Rules(agreeing_windows=3, dwell_s=100), memory=memory)
    decisions = looks(asked, 12)
    assert [decision.transport for decision in decisions].index(Transport.MULTICAST) == 10
    assert "follows when the last change is 100 s ago" in reason(asked, decisions[5])


def test_a_site_more_joins_the_group_without_patience() -> None:
    memory = Memory(Transport.MULTICAST, chosen_at_s=0.0)
    decision = decide(question(6, rules=Rules(agreeing_windows=99, dwell_s=1e9), memory=memory))
    assert "site-6" in decision.chosen.groups[0].sites


def test_two_members_that_are_left_stay_a_group() -> None:
    memory = Memory(Transport.MULTICAST, chosen_at_s=-1e9)
    assert {decision.transport for decision in looks(question(2, memory=memory), 20)} == {Transport.MULTICAST}


noise = st.lists(
    st.tuples(st.floats(0.2, 5), st.integers(1, 4), st.floats(0, 0.3), st.sampled_from([0.0, 1.0])),
    min_size=10,
    max_size=80,
)


@settings(max_examples=60, deadline=None)
@given(noise, st.floats(20, 2_000))
def test_changes_for_a_gain_are_never_nearer_than_the_dwell(
    seen: list[tuple[float, int, float, float]], objective_ms: float
) -> None:
    """Under any rates, fan-outs, losses and silences, a choice is kept for the dwell unless it fails."""
    rules = Rules(agreeing_windows=3, dwell_s=100)
    memory, changes = Memory(), list[float]()
    for number, (load, fan_out, repair_share, loud) in enumerate(seen):
        played = steady(products=60, size_bytes=100_000 * load) if loud else Arrivals(np.empty(0), np.empty(0), 30.0)
        asked = question(
            fan_out,
            played,
            egress_bps=20e6,
            multicast_rate_bps=10e6,
            group_loss=repair_share,
            objective_ms=objective_ms,
            now_s=number * 10.0,
            memory=memory,
            rules=rules,
        )
        decision = decide(asked)
        standing = decision.option(memory.transport)
        if decision.transport != memory.transport and standing.feasible and memory.chosen_at_s is not None:
            changes.append(asked.now_s - memory.chosen_at_s)
        memory = decision.memory
    assert all(kept_s >= rules.dwell_s for kept_s in changes)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0.5, 2), min_size=30, max_size=60), st.integers(2, 6), st.floats(5, 500))
@pytest.mark.all
def test_noise_around_one_state_makes_at_most_one_change(
    loads: list[float], fan_out: int, objective_ms: float
) -> None:
    """Rates that differ by a factor of four leave the price ratio unchanged, so nothing justifies a change back."""
    memory, changes = Memory(), 0
    for number, load in enumerate(loads):
        played = steady(products=60, size_bytes=100_000 * load)
        asked = question(
            fan_out, played, egress_bps=100e6, multicast_rate_bps=50e6, objective_ms=objective_ms,
            now_s=number * 10.0, memory=memory, rules=Rules(agreeing_windows=3, dwell_s=0),
        )  # fmt: skip
        decision = decide(asked)
        changes += decision.transport != memory.transport
        memory = decision.memory
    assert changes <= 1


def test_figures_carry_what_the_plan_rests_on() -> None:
    asked = question(5)
    shown = figures(asked, decide(asked), statistics_of(asked.arrivals))
    assert shown["because"] == "cheapest"
    assert shown["fan_out"] == 5
    assert shown["mean_bps"] == pytest.approx(1.6e6, rel=0.01)
    assert {"peak_1s_bps", "peak_60s_bps", "silent_share", "predicted_p99_ms", "unicast_egress_bps"} <= shown.keys()


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [(0.25, "0.25 ms"), (89.94, "89.9 ms"), (210, "0.21 s"), (5_000, "5 s"), (1_234, "1.23 s"), (60_000, "60 s")],
)
def test_durations_for_people(milliseconds: float, shown: str) -> None:
    assert duration(milliseconds) == shown


@pytest.mark.parametrize("floor_ms", [1.0, 71.0, 4_900.0, 50_000.0])
@pytest.mark.parametrize("fan_out", [1, 2, 5, 40])
def test_the_machines_floor_is_in_every_prediction_and_flips_no_choice(fan_out: int, floor_ms: float) -> None:
    """No transport causes a floor above the objective, so microseconds between transports must not decide."""
    before = decide(question(fan_out))
    after = decide(question(fan_out, floor=Floor.stated(floor_ms)))
    assert (after.transport, after.because) == (before.transport, before.because)
    told = {one.transport: one.predicted_p99_ms for one in after.candidates}
    for one in before.candidates:
        if one.predicted_p99_ms is not None:
            assert told[one.transport] == pytest.approx(one.predicted_p99_ms + floor_ms)


@pytest.mark.parametrize(
    ("floor_ms", "words"),
    [
        (71.0, "within the objective of 5 s; "),
        (410.0, "within the objective of 5 s (0.41 s of it processing at hub and sites); "),
        (
            9_000.0,
            "over the objective of 5 s (9 s of it processing at hub and sites, more than any transport can "
            "compensate); ",
        ),
    ],
)
def test_the_sentence_names_the_machines_floor_where_it_counts(floor_ms: float, words: str) -> None:
    asked = question(5, ngrid_hour(), floor=Floor(floor_ms, floor_ms, floor_ms, deliveries=200))
    decision = decide(asked)
    assert words in reason(asked, decision)
    shown = figures(asked, decision, statistics_of(asked.arrivals))
    assert (shown["floor_p99_ms"], shown["floor_deliveries"]) == (floor_ms, 200)
    assert shown["predicted_p99_ms"] == pytest.approx(93.2 + floor_ms, rel=0.01)


def test_a_floor_that_takes_what_an_objective_leaves_makes_the_sooner_transport_the_choice() -> None:
    """The floor counts up to half of the objective: of 1 s, copies need 0.8 s, a group 0.45 s, machines 0.3 s."""
    burst = steady(products=300, size_bytes=1.1e6, every_s=1.0)
    asked = question(2, burst, objective_ms=1_000.0, egress_bps=24e6)
    slow = {one.transport: one.predicted_p99_ms or 0.0 for one in decide(asked).candidates}
    assert slow[Transport.MULTICAST] < 500
    assert 700 < slow[Transport.UNICAST] < 1_000
    assert decide(asked).transport is Transport.UNICAST
    situation = replace(asked.situation, floor=Floor.stated(300.0))
    assert decide(replace(asked, situation=situation)).transport is Transport.MULTICAST


def test_the_first_choice_needs_no_reviews_that_agree_after_ten_minutes_of_arrivals() -> None:
    rules = Rules(agreeing_windows=3, dwell_s=100)
    for span_s, transport in ((599.0, Transport.UNICAST), (600.0, Transport.MULTICAST)):
        played = replace(steady(), span_s=span_s)
        assert decide(question(5, played, rules=rules)).transport is transport
    later = Memory(Transport.UNICAST, chosen_at_s=-1e9)
    played = replace(steady(), span_s=3_600.0)
    assert decide(question(5, played, rules=rules, memory=later)).because is Because.WAITING


def late(transport: Transport, price_bps: float, late_s: float, **other: object) -> Evaluated:
    """An option that misses the objective of 5 s; the score has the default cost of a miss."""
    score_bps = price_bps + (late_s / 5.0 - 1) * 1e12
    known = {"price_bps": price_bps, "late_s": late_s, "score_bps": score_bps} | other
    return Evaluated(transport, True, "", **known)  # type: ignore[arg-type]


def test_a_little_less_delay_is_not_worth_any_price_where_nothing_meets_the_objective() -> None:
    objective = Objective(0.99, 5.0)
    cheap, dear = late(Transport.DYNAMIC_CIRCUIT, 1e6, 20.4), late(Transport.UNICAST, 9e6, 20.0)
    assert best_of((cheap, dear), objective) is cheap
    assert best_of((cheap, dear), objective, standing=Transport.UNICAST, room=0.2) is cheap
    much_later = replace(cheap, late_s=45.0, score_bps=1e6 + 8e12)
    assert best_of((much_later, dear), objective) is dear
    assert late_cost_bps(dear, (cheap, dear), objective) == 9e6
    assert late_cost_bps(cheap, (cheap, dear), objective) == pytest.approx(1e6 + 0.02 * 9e6)


def test_a_low_cost_of_misses_set_by_operators_counts_below_that() -> None:
    objective = Objective(0.99, 5.0)
    much_later = replace(late(Transport.DYNAMIC_CIRCUIT, 1e6, 45.0), score_bps=1.5e6)
    assert best_of((much_later, late(Transport.UNICAST, 9e6, 20.0)), objective) is much_later
