"""Requests for probes: sweeps, bounds, ceilings, windows; the variation of a rate."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from downburst.domain.circuits import Direction
from downburst.domain.probes import ProbeKind, ProbeRequest, ProbeSchedule, ProbeStep, ProbeTransport
from downburst.domain.probes.ceilings import CeilingSide, ProbeCeiling, day_of, over_ceiling
from downburst.domain.probes.checks import check_request, check_schedule, stack_trials, sweep
from downburst.domain.probes.results import ProbeSecond, variation
from downburst.domain.probes.trials import MOST_TRIALS, FlowResult, Trial, TrialResult
from downburst.foundation.errors import BadInput
from factories import SOME_TIME, probe_request, stacks_request

GB = 10**9


def test_a_sweep_rises_by_equal_ratios_from_a_tenth_to_the_highest_rate() -> None:
    rates = [step.rate_bps for step in sweep(GB)]
    assert (rates[0], rates[-1], len(rates)) == (GB // 10, GB, 10)
    ratios = [after / before for before, after in pairwise(rates)]
    assert max(ratios) - min(ratios) < 1e-6
    assert probe_request(kind=ProbeKind.KNEE, rate_bps=GB).seconds == 10
    with pytest.raises(BadInput, match="2 to 64 steps"):
        sweep(GB, steps=1)


@pytest.mark.parametrize(
    ("kind", "change", "part"),
    [
        (ProbeKind.CBR, {"packet_bytes": 63}, "64 to 1472 bytes"),
        (ProbeKind.CBR, {"packet_bytes": 1_473}, "64 to 1472 bytes"),
        (ProbeKind.CBR, {"steps": ()}, "1 to 64 steps"),
        (ProbeKind.CBR, {"steps": (ProbeStep(GB, 1_000),) * 2}, "a cbr has one rate"),
        (ProbeKind.CBR, {"steps": (ProbeStep(1_000, 1_000),)}, "not 1 kb/s"),
        (ProbeKind.CBR, {"steps": (ProbeStep(10**12, 1_000),)}, "not 1000 Gb/s"),
        (ProbeKind.CBR, {"steps": (ProbeStep(GB, 99),)}, "0.1 to 3600 s"),
        (ProbeKind.KNEE, {"steps": (ProbeStep(GB, 61_000),)}, "0.1 to 60 s"),
        (ProbeKind.SOAK, {"steps": (ProbeStep(GB, 8 * 86_400_000),)}, "604800 s"),
        (ProbeKind.KNEE, {"steps": (ProbeStep(GB, 1_000), ProbeStep(GB // 2, 1_000))}, "rise"),
        (ProbeKind.KNEE, {"patience_s": 1e9}, "24 hours"),
        (ProbeKind.KNEE, {"steps": (ProbeStep(64_000, 1_000),)}, "sends 6 packets, and needs 50"),
        (ProbeKind.KNEE, {"transport": ProbeTransport.TCP}, "a sweep has no TCP"),
        (ProbeKind.CBR, {"transport": ProbeTransport.TCP, "packet_bytes": 1_449}, "a record over TCP has 64 to 1448"),
        (ProbeKind.CBR, {"congestion": "bbr"}, "--transport tcp"),
        (ProbeKind.CBR, {"transport": ProbeTransport.TCP, "congestion": "BBR"}, "such as cubic or bbr"),
        (ProbeKind.SOAK, {"trials": (Trial(("cubic",), (), 1_000),)}, "other probes none"),
    ],
)
def test_a_request_beyond_the_bounds_is_refused(kind: ProbeKind, change: dict[str, object], part: str) -> None:
    request = probe_request(kind=kind, rate_bps=GB)
    check_request(request)
    with pytest.raises(BadInput) as refused:
        check_request(replace(request, **change))  # type: ignore[arg-type]
    assert part in refused.value.sentence


@pytest.mark.parametrize(
    "request_",
    [replace(probe_request(), transport=ProbeTransport.TCP), stacks_request()],
    ids=["cbr over TCP", "stacks"],
)
def test_tcp_is_not_probed_from_a_relay(request_: ProbeRequest) -> None:
    check_request(request_)
    check_request(replace(probe_request(), relay="omaha"))
    with pytest.raises(BadInput) as refused:
        check_request(replace(request_, relay="omaha"))
    assert refused.value.sentence == (
        "TCP is not probed from a relay, and the relay omaha was given; leave out the relay (--from), or ask for a "
        "probe over UDP"
    )


def test_each_stack_runs_alone_and_in_pairs_and_all_again_against_reverse_traffic() -> None:
    trials = stack_trials(["cubic", "bbr"], seconds=2.5, reverse_traffic=True)
    flows = [("cubic",), ("bbr",), ("cubic", "cubic"), ("cubic", "bbr"), ("bbr", "bbr")]
    assert [trial.flows for trial in trials] == flows * 2
    assert [trial.reverse for trial in trials] == [()] * 5 + [("cubic",)] * 5
    assert {trial.duration_ms for trial in trials} == {2_500}
    most = stack_trials(["a", "b", "c", "d"], seconds=60, reverse_traffic=True)
    assert len(most) == 28 <= MOST_TRIALS


@pytest.mark.parametrize(
    ("controls", "seconds", "part"),
    [
        ([], 10, "1 to 4"),
        (["a", "b", "c", "d", "e"], 10, "1 to 4"),
        (["bbr", "bbr"], 10, "different"),
        (["bbr", "../x"], 10, "'../x' can't be"),
        (["bbr"], 0.1, "0.5 to 60 s"),
        (["bbr"], 61, "0.5 to 60 s"),
    ],
)
def test_an_impossible_comparison_is_refused(controls: list[str], seconds: float, part: str) -> None:
    with pytest.raises(BadInput) as refused:
        stack_trials(controls, seconds=seconds, reverse_traffic=True)
    assert part in refused.value.sentence


def test_reverse_traffic_counts_for_rates_and_bytes_of_both_directions() -> None:
    both = stacks_request(rate_bps=80_000_000)
    check_request(both)
    assert both.seconds == 20
    assert (both.rate_bps(Direction.OUT), both.rate_bps(Direction.IN)) == (80_000_000, 80_000_000)
    assert both.frame_bytes == 10_000_000 * (20 + 10)
    one = stacks_request(rate_bps=80_000_000, reverse_traffic=False)
    assert (one.rate_bps(Direction.OUT), one.rate_bps(Direction.IN)) == (80_000_000, 0)
    assert one.frame_bytes == 10_000_000 * 10
    with pytest.raises(BadInput, match="1 to 32 trials"):
        check_request(replace(one, trials=()))


def test_a_trial_knows_the_shares_of_each_direction_and_its_bytes() -> None:
    flows = (FlowResult("cubic", False, 30e6, 2), FlowResult("bbr", False, 10e6), FlowResult("cubic", True, 5e6, 1))
    trial = TrialResult(8_000, None, 0.8, False, flows)
    assert trial.shares == [0.75, 0.25, 1.0]
    assert trial.frame_bytes == round(45e6 * 1_538 / 1_448) + 3 * 1_538
    assert TrialResult(8_000, None, None, False, (FlowResult("bbr", False, 0.0),)).shares == [None]


@pytest.mark.parametrize(
    ("hours", "open_hours"), [((0, 24), set(range(24))), ((2, 5), {2, 3, 4}), ((22, 2), {22, 23, 0, 1})]
)
def test_a_window_may_pass_midnight(hours: tuple[int, int], open_hours: set[int]) -> None:
    schedule = ProbeSchedule(1, probe_request(), 24, SOME_TIME, *hours)
    check_schedule(schedule)
    assert {hour for hour in range(24) if schedule.open_at(hour)} == open_hours


@pytest.mark.parametrize(
    ("every_h", "hours"), [(0, (0, 24)), (999, (0, 24)), (24, (5, 5)), (24, (24, 5)), (24, (0, 25))]
)
def test_an_impossible_schedule_is_refused(every_h: int, hours: tuple[int, int]) -> None:
    with pytest.raises(BadInput):
        check_schedule(ProbeSchedule(1, probe_request(), every_h, SOME_TIME, *hours))


def site_ceiling(rate_bps: int | None = None, bytes_per_day: int | None = None) -> ProbeCeiling:
    return ProbeCeiling("unl.edu", CeilingSide.SITE, rate_bps, bytes_per_day, "adam")


def test_the_lower_ceiling_of_both_sides_holds() -> None:
    request = probe_request(rate_bps=100_000_000)
    assert request.frame_bytes == 125_000_000
    assert over_ceiling(request, [], 0) is None
    assert over_ceiling(request, [site_ceiling(100_000_000, 125_000_000)], 0) is None
    reason = over_ceiling(request, [site_ceiling(99_000_000)], 0) or ""
    assert "the site's ceiling for probes of unl.edu is 99 Mb/s (set by adam)" in reason
    operator = ProbeCeiling("unl.edu", CeilingSide.OPERATOR, None, 130_000_000, "eve")
    reason = over_ceiling(request, [site_ceiling(None, 10**12), operator], 10_000_000) or ""
    assert "of the operator's ceiling for probes of unl.edu, 130,000,000 bytes a day, 10,000,000 are used" in reason
    assert "the ceiling of hubs without another" in (over_ceiling(request, [], 20 * GB) or "")


def test_a_day_begins_at_midnight_utc() -> None:
    assert day_of(datetime(2026, 3, 5, 23, 59, 59, 7, tzinfo=UTC)) == datetime(2026, 3, 5, tzinfo=UTC)


def test_the_variation_of_a_steady_rate_is_zero() -> None:
    def seconds(*counts: int) -> list[ProbeSecond]:
        return [ProbeSecond(at, 1, 1, 0, 0, 0, count) for at, count in enumerate(counts)]

    assert variation(seconds(100, 100, 100)) == 0
    assert variation(seconds(90, 110)) == pytest.approx(0.1)
    assert variation(seconds(100)) is None
    assert variation(seconds(0, 0)) is None


def test_a_request_knows_its_highest_rate_and_its_length() -> None:
    request: ProbeRequest = probe_request(kind=ProbeKind.KNEE, rate_bps=GB)
    assert (request.highest_bps, request.seconds) == (GB, 10.0)
    assert (
        request.frame_bytes
        == sum(step.rate_bps for step in request.steps) // 8 - sum(step.rate_bps % 8 for step in request.steps) // 8
    )
