"""Lines by the losses of their groups: capacities, noise, trials of faster rates, and their back-off."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from downburst_scheduler.models.lines.trials import Line, Point, Trial, TrialRules, left, observed, probed, stepped

RULES = TrialRules(return_s=90, retry_s=1_800)
SECOND_PACKETS = 500


def seconds(line: Line, rate_bps: float, loss: float, *, at_s: float, count: int = 3) -> Line:
    """The line after seconds in which a group at this rate lost this share."""
    for number in range(count):
        arrived_bps = rate_bps * (1 - loss)
        point = Point(rate_bps, SECOND_PACKETS, SECOND_PACKETS * loss, at_s + number, arrived_bps)
        line = observed(line, point, RULES)
    return line


def full(line: Line, rate_bps: float, capacity_bps: float, *, at_s: float, count: int = 3) -> Line:
    """The line after seconds in which a group at this rate met a line of this capacity."""
    return seconds(line, rate_bps, max(1 - capacity_bps / rate_bps, 0.0), at_s=at_s, count=count)


@pytest.mark.parametrize(
    ("rate_bps", "loss", "limit_bps"),
    [
        (40e6, 0.5, 19e6),
        (40e6, 0.9, 3.8e6),
        (19e6, 0.8, 3.61e6),
        (40e6, 0.03, None),
        (40e6, 0.0, None),
    ],
)
def test_what_arrives_of_a_lossy_group_is_the_capacity_less_a_margin(
    rate_bps: float, loss: float, limit_bps: float | None
) -> None:
    found = seconds(Line(), rate_bps, loss, at_s=10)
    assert found.usable_bps == (None if limit_bps is None else pytest.approx(limit_bps))


def test_two_lossy_seconds_are_a_stall_unless_the_site_left_its_group() -> None:
    once, twice = (full(Line(), 40e6, 4e6, at_s=10, count=count) for count in (1, 2))
    assert twice.usable_bps is None
    assert left(once, 11, RULES).usable_bps == pytest.approx(3.8e6)
    assert full(left(Line(), 9, RULES), 40e6, 4e6, at_s=10, count=1).usable_bps == pytest.approx(3.8e6)
    assert full(twice, 40e6, 4e6, at_s=100, count=2).usable_bps is None, "seconds far apart are two stalls"
    assert left(twice, 30, RULES).usable_bps is None, "it left for another reason"


def test_a_site_that_left_as_it_received_next_to_nothing_needs_another_second() -> None:
    once = full(Line(), 40e6, 1e6, at_s=10, count=1)
    assert left(once, 11, RULES).usable_bps is None
    assert full(left(once, 11, RULES), 40e6, 1e6, at_s=12, count=1).usable_bps == pytest.approx(0.95e6)


def test_seconds_that_disagree_set_no_limit() -> None:
    """One value that is far off, as beside a repair that took the line, never counts."""
    line = Line()
    for second, capacity_bps in enumerate([20e6, 0.05e6, 20e6, 4e6, 20e6, 0.05e6, 20e6]):
        line = full(line, 40e6, capacity_bps, at_s=10 + second, count=1)
        assert line.usable_bps is None
    line = full(line, 40e6, 19e6, at_s=17, count=1)
    assert full(line, 40e6, 18.5e6, at_s=18, count=1).usable_bps == pytest.approx(19e6 * 0.95), "the median of three"


def test_a_second_in_which_nothing_arrived_is_no_measurement() -> None:
    assert seconds(Line(), 40e6, 1.0, at_s=10, count=9) == Line()
    assert seconds(Line(), 40e6, 1.5, at_s=10, count=9) == Line()


@given(st.lists(st.floats(0.031, 1.5), max_size=20))
def test_a_limit_is_close_to_several_seconds(losses: list[float]) -> None:
    line, now_s = Line(), 0.0
    for loss in losses:
        now_s += 1
        line = seconds(line, 40e6, loss, at_s=now_s, count=1)
    if line.seen is not None:
        arrived = [40e6 * (1 - loss) for loss in losses if loss < 1]
        near = [one for one in arrived if 1 / 1.26 <= one / line.seen.received_bps <= 1.26]
        assert len(near) >= 3


def test_what_repairs_and_copies_take_of_a_line_belongs_to_its_capacity() -> None:
    line = Line()
    for second in range(3):
        line = observed(line, Point(40e6, 500, 470, second, 4e6), RULES)
    assert line.usable_bps == pytest.approx(3.8e6), "and not 2.3 Mb/s"


def test_losses_of_a_group_that_the_line_carries_are_those_of_copies_beside_it() -> None:
    line = full(Line(), 40e6, 4e6, at_s=10)
    for second in range(20, 40):
        line = observed(line, Point(3.5e6, 290, 40, second, 3.9e6), RULES)
    assert line.usable_bps == pytest.approx(3.8e6)


def test_losses_without_a_measurement_at_the_site_change_nothing() -> None:
    line = Line()
    for second in range(9):
        line = observed(line, Point(40e6, 500, 450, second), RULES)
    assert line == Line()


def test_few_packets_say_nothing() -> None:
    assert observed(Line(), Point(40e6, 50, 50, 1), RULES) == Line()


def test_a_clean_second_at_a_lower_rate_is_no_word_against_the_loss_at_a_higher_one() -> None:
    line = full(Line(), 40e6, 20e6, at_s=10, count=2)
    line = full(line, 19e6, 20e6, at_s=12, count=1)
    line = full(line, 40e6, 20e6, at_s=13, count=1)
    assert line.usable_bps == pytest.approx(19e6)
    assert line.carried_bps == 19e6


def test_loss_that_does_not_fall_with_the_rate_is_noise_and_limits_nothing() -> None:
    line = seconds(Line(), 40e6, 0.1, at_s=10)
    assert line.usable_bps == pytest.approx(34.2e6)
    line = seconds(line, 34.2e6, 0.1, at_s=20)
    assert line.usable_bps is None
    assert line.noise == pytest.approx(0.1)
    assert seconds(line, 40e6, 0.12, at_s=30).usable_bps is None
    assert seconds(line, 40e6, 0.5, at_s=40).usable_bps == pytest.approx(19e6), "far more than noise"


def test_a_limit_follows_a_line_down_and_a_queue_that_hid_the_first_losses() -> None:
    line = seconds(Line(), 40e6, 0.4, at_s=10)
    assert line.usable_bps == pytest.approx(22.8e6)
    line = full(line, 22.8e6, 20e6, at_s=20)
    assert line.usable_bps == pytest.approx(19e6)
    assert full(line, 19e6, 4e6, at_s=30).usable_bps == pytest.approx(3.8e6)


def slow_again(at_s: float = 100) -> Line:
    """A line that carried 19 Mb/s and was slow from then on."""
    line = full(Line(), 40e6, 20e6, at_s=1)
    line = full(line, 19e6, 20e6, at_s=50)
    return full(line, 19e6, 4e6, at_s=at_s - 1)


def test_a_line_that_carried_more_is_tried_sooner_than_one_that_never_did() -> None:
    assert slow_again().retry_at_s == 101 + RULES.return_s
    assert full(Line(), 40e6, 4e6, at_s=10).retry_at_s == 12 + RULES.retry_s


def test_a_slow_site_is_tried_in_the_next_faster_group_and_stays_after_clean_seconds() -> None:
    lines = {"c": slow_again(), "a": full(Line(), 40e6, 20e6, at_s=1)}
    assert stepped(lines, 190, RULES)["c"].usable_bps == lines["c"].usable_bps
    lines = stepped(lines, 200, RULES)
    assert (lines["c"].trial, lines["c"].usable_bps) == (Trial(19e6, 200), 19e6)
    back = full(lines["c"], 19e6, 20e6, at_s=201, count=4)
    assert (back.trial, back.limit_bps) == (None, 19e6)
    assert back.retry_at_s == 204 + RULES.retry_s


def test_failed_trials_come_ever_later_and_a_day_of_them_stays_rare() -> None:
    line, now_s, tries = slow_again(), 101.0, []
    while now_s < 86_400:
        now_s = line.retry_at_s
        tried = stepped({"c": line, "a": Line()}, now_s, RULES)["c"]
        assert tried.trial is not None
        tries.append(now_s)
        line = left(full(tried, 19e6, 4e6, at_s=now_s + 1, count=2), now_s + 3, RULES)
        assert line.usable_bps == pytest.approx(3.8e6)
    waits = [later - earlier for earlier, later in pairwise(tries)]
    assert waits == sorted(waits)
    assert waits[0] == pytest.approx(2 * RULES.return_s, abs=3)
    assert max(waits) <= RULES.longest_s + 3
    assert len(tries) < 16


def test_a_site_that_leaves_during_a_trial_fails_it_even_without_figures() -> None:
    tried = replace(slow_again(), trial=Trial(19e6, 200))
    gone = left(tried, 210, RULES)
    assert (gone.trial, gone.retry_at_s) == (None, 210 + 2 * RULES.return_s)


def test_one_site_is_tried_at_a_time_and_the_fastest_ones_together() -> None:
    slow = {name: replace(full(Line(), 40e6, 4e6, at_s=1), retry_at_s=50.0 + n) for n, name in enumerate("st")}
    fast = {name: full(Line(), 40e6, 20e6, at_s=1) for name in "ab"}
    lines = stepped(slow | fast, 100, RULES)
    assert [site for site, line in lines.items() if line.trial] == ["s"]
    assert [site for site, line in stepped(lines, 101, RULES).items() if line.trial] == ["s"]
    ready = {site: replace(line, retry_at_s=100.0 if site == "a" else math.inf) for site, line in fast.items()}
    together = stepped(slow | ready | {"s": replace(slow["s"], retry_at_s=math.inf), "t": Line(3.8e6)}, 100, RULES)
    assert {site: line.usable_bps for site, line in together.items() if line.trial} == {
        "a": pytest.approx(28.5e6),
        "b": pytest.approx(28.5e6),
    }


@pytest.mark.parametrize(("knee_bps", "due"), [(20e6, True), (4e6, False)])
def test_a_knee_above_the_limit_makes_the_trial_due(knee_bps: float, due: bool) -> None:
    tried = stepped({"c": probed(slow_again(), knee_bps, 120), "a": Line()}, 120, RULES)["c"]
    assert (tried.trial is not None) is due
    assert probed(Line(), knee_bps, 120) == Line()


def test_a_trial_without_traffic_ends_and_is_repeated_no_later() -> None:
    tried = replace(slow_again(), trial=Trial(19e6, 200))
    ended = stepped({"c": tried}, 261, RULES)["c"]
    assert (ended.trial, ended.backoff_s) == (None, RULES.return_s)


def test_a_site_without_limit_beside_it_is_tried_as_fast_as_any() -> None:
    tried = stepped({"c": slow_again(), "a": Line(carried_bps=40e6)}, 200, RULES)["c"]
    assert (tried.trial, tried.usable_bps) == (Trial(math.inf, 200), None)
    free = full(tried, 40e6, 50e6, at_s=201, count=4)
    assert (free.limit_bps, free.usable_bps, free.retry_at_s) == (None, None, math.inf)


def test_a_line_that_was_well_for_long_begins_with_the_first_back_off() -> None:
    again = full(replace(slow_again(), limit_bps=None, carried_bps=19e6), 19e6, 4e6, at_s=200)
    assert again.backoff_s == 2 * RULES.return_s, "soon after"
    later = full(replace(slow_again(), limit_bps=None, carried_bps=19e6), 19e6, 4e6, at_s=10_000)
    assert later.backoff_s == RULES.return_s


def test_a_site_that_left_unmeasured_is_tried_in_the_slowest_known_group_and_stays_there() -> None:
    lines = {
        "c": left(Line(), 100, RULES),
        "a": full(Line(), 40e6, 20e6, at_s=1),
        "b": full(Line(), 40e6, 4e6, at_s=1),
    }
    assert stepped(lines, 114, RULES)["c"].trial is None
    tried = stepped(lines, 115, RULES)["c"]
    assert tried.usable_bps == pytest.approx(3.8e6)
    back = full(tried, 3.8e6, 4e6, at_s=116, count=4)
    assert (back.trial, back.retry_at_s) == (None, 119 + RULES.return_s)
    assert back.limit_bps == pytest.approx(3.8e6)
    quiet = stepped({"c": tried}, 176, RULES)["c"]
    assert (quiet.trial, quiet.retry_at_s) == (None, 176 + RULES.return_s)
    assert quiet.limit_bps == pytest.approx(3.8e6)


def test_a_fast_site_that_left_unmeasured_is_soon_back_in_the_fast_group() -> None:
    others = {"a": full(Line(), 40e6, 20e6, at_s=1), "b": full(Line(), 40e6, 4e6, at_s=1)}
    tried = stepped(others | {"c": left(Line(), 100, RULES)}, 115, RULES)["c"]
    slow = full(tried, 3.8e6, 20e6, at_s=116, count=4)
    again = stepped(others | {"c": slow}, 119 + RULES.return_s, RULES)["c"]
    assert again.usable_bps == pytest.approx(19e6)
    assert full(again, 19e6, 20e6, at_s=220, count=4).limit_bps == pytest.approx(19e6)


def test_a_site_that_left_unmeasured_and_alone_is_measured_in_its_former_group() -> None:
    tried = stepped({"c": left(Line(), 100, RULES)}, 115, RULES)["c"]
    assert (tried.trial, tried.usable_bps) == (Trial(math.inf, 115), None)
    slow = full(tried, 40e6, 4e6, at_s=116, count=2)
    assert (slow.trial, slow.retry_at_s) == (None, 117 + RULES.retry_s)
    assert slow.limit_bps == pytest.approx(3.8e6)
    free = full(tried, 40e6, 50e6, at_s=116, count=4)
    assert (free.trial, free.limit_bps, free.retry_at_s) == (None, None, math.inf)
    quiet = stepped({"c": tried}, 176, RULES)["c"]
    assert (quiet.trial, quiet.limit_bps, quiet.retry_at_s) == (None, None, math.inf)


def test_a_site_that_leaves_unmeasured_again_and_again_is_tried_ever_later() -> None:
    line, now_s, waits = Line(), 100.0, []
    while now_s < 86_400:
        line = left(line, now_s, RULES)
        waits.append(line.retry_at_s - now_s)
        now_s = line.retry_at_s
        line = stepped({"c": line}, now_s, RULES)["c"]
        assert line.trial is not None
        now_s += 3
    assert waits[:3] == [15, 30, 60]
    assert max(waits) == RULES.longest_s
    assert len(waits) < 20
    assert left(line, now_s + 9 * RULES.longest_s, RULES).backoff_s == RULES.rejoin_s, "it was well for long"


CHANGES = st.lists(
    st.tuples(st.floats(2e6, 60e6), st.floats(1e6, 50e6), st.integers(1, 400), st.booleans()), max_size=30
)


@given(CHANGES)
def test_a_limit_is_never_above_what_arrived_nor_trials_closer_than_their_back_off(
    changes: list[tuple[float, float, int, bool]],
) -> None:
    line, now_s, last_trial_s = Line(), 0.0, -math.inf
    for rate_bps, capacity_bps, wait_s, leaves in changes:
        now_s += wait_s
        before = line
        line = stepped({"c": line, "a": Line()}, now_s, RULES)["c"]
        if line.trial is not None and before.trial is None:
            assert now_s - last_trial_s >= RULES.rejoin_s
            last_trial_s = now_s
        sent_bps = min(rate_bps, line.usable_bps or math.inf)
        line = full(line, sent_bps, capacity_bps, at_s=now_s)
        now_s += 2
        line = left(line, now_s, RULES) if leaves and sent_bps > capacity_bps else line
        if line.limit_bps is not None and line.trial is None:
            assert line.limit_bps <= max(sent_bps, before.limit_bps or 0.0)
            assert line.retry_at_s > now_s - 3 or line.retry_at_s == before.retry_at_s
        assert len(line.points) <= 12
