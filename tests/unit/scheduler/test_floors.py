"""The floor of predictions: measured from latencies of small products, with golden figures."""

from collections.abc import Sequence

import numpy as np
import pytest

from downburst.sketches.sketch import LatencySketch
from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.models.floors import Expected, Floor, Residuals, SiteFloors, expected
from downburst_scheduler.models.rates import PathFacts

NEAR = Expected(away_ms=0.05, own_p50_ms=0.02, own_p99_ms=0.04)
"""A site beside the hub, and products of 2 kB on a line of 1 Gb/s."""
FAR = Expected(away_ms=40.0, own_p50_ms=0.02, own_p99_ms=0.04)
"""As far as another continent."""
IDLE_MS = [0.5] * 90 + [0.8] * 8 + [3.0] * 2
BUSY_MS = [71.0] * 90 + [110.0] * 8 + [240.0] * 2


def sketch(values_ms: Sequence[float], *, bound_ms: float = 0.05) -> LatencySketch:
    made = LatencySketch()
    for value_ms in values_ms:
        made.add(value_ms, bound_ms)
    return made


def floors(*measured: tuple[str, Expected, Sequence[float]], hub_ms: Sequence[float] = ()) -> SiteFloors:
    return SiteFloors.of((site, known, sketch(values), sketch(hub_ms)) for site, known, values in measured)


def only(*measured: tuple[str, Expected, Sequence[float]]) -> Floor:
    found = floors(*measured).floor([site for site, _, _ in measured])
    assert found is not None
    return found


def small(size_bytes: float = 2_000.0, *, large: int = 0) -> Arrivals:
    sizes = np.full(1_000, size_bytes)
    sizes[:large] = 100_000
    return Arrivals(np.linspace(0, 99.9, 1_000), sizes, 100.0)


@pytest.mark.parametrize(
    ("values_ms", "golden"), [(IDLE_MS, (0.43, 0.73, 2.93)), (BUSY_MS, (70.93, 109.9, 239.9))], ids=["idle", "busy"]
)
def test_what_is_left_beside_the_path_is_the_machines(
    values_ms: Sequence[float], golden: tuple[float, float, float]
) -> None:
    found = only(("near", NEAR, values_ms))
    assert (found.p50_ms, found.p95_ms, found.p99_ms) == pytest.approx(golden, rel=0.03)
    assert (found.deliveries, found.slowest_site) == (100, "near")


def test_distance_is_the_paths_and_not_the_machines() -> None:
    away_ms = [value + 40 for value in BUSY_MS]
    assert only(("far", FAR, away_ms)).p50_ms == pytest.approx(71.0, abs=0.02 * 111)


def test_a_machine_that_becomes_quiet_is_noticed_with_the_next_window() -> None:
    """Only measurements in the ledger's window count, so nothing has to fade."""
    busy, mixed, quiet = (only(("near", NEAR, some)) for some in (BUSY_MS, BUSY_MS + IDLE_MS * 4, IDLE_MS))
    assert busy.p50_ms > 70
    assert (mixed.p50_ms, mixed.p95_ms) == pytest.approx((0.43, 70.93), rel=0.03)
    assert quiet.p99_ms < 3


@pytest.mark.parametrize(
    "values_ms",
    [
        pytest.param([-40.0] * 200, id="a clock that is ahead"),
        pytest.param([3.6e6] * 200, id="a clock that is an hour off"),
        pytest.param([9_000.0] * 120 + [1.0] * 80, id="mostly an outage"),
        pytest.param([], id="nothing"),
    ],
)
def test_absurd_stamps_are_no_floor(values_ms: Sequence[float]) -> None:
    assert floors(("near", NEAR, values_ms)).floor(["near"]) is None


def test_a_few_absurd_values_are_left_out() -> None:
    found = only(("near", NEAR, [*BUSY_MS, 3.6e6, -500.0]))
    assert found.deliveries == 100
    assert found.p99_ms == pytest.approx(239.9, rel=0.03)


def test_values_below_zero_within_the_clocks_bound_count_as_zero() -> None:
    found = Residuals.of(sketch([-0.02] * 60 + [1.0] * 60, bound_ms=0.1), NEAR)
    assert found is not None
    assert (found.quantile_ms(0.5), found.count) == (0.0, 120)


def test_fewer_than_a_hundred_deliveries_are_no_floor() -> None:
    assert floors(("near", NEAR, BUSY_MS[1:])).floor(["near"]) is None
    assert only(("near", NEAR, BUSY_MS[:50]), ("other", NEAR, BUSY_MS[:50])).slowest_site is None


def test_sites_weigh_by_their_deliveries_and_the_slowest_is_named() -> None:
    several = floors(("quick", NEAR, IDLE_MS * 3), ("slow", NEAR, BUSY_MS), hub_ms=[0.2] * 100)
    found = several.floor(["quick", "slow", "unknown"])
    assert found is not None
    assert (found.p50_ms, found.p95_ms) == pytest.approx((0.43, 70.93), rel=0.03)
    assert found.slowest_site == "slow"
    assert found.slowest_site_p50_ms == pytest.approx(70.93, rel=0.03)
    assert found.hub_p50_ms == pytest.approx(0.2, rel=0.03)
    of_quick = several.floor(["quick"])
    assert of_quick is not None
    assert of_quick.p99_ms == pytest.approx(2.93, rel=0.03)


def test_where_products_wait_for_each_other_latencies_tell_of_queues() -> None:
    queued = Expected(away_ms=0.05, own_p50_ms=3.0, own_p99_ms=12.0)
    assert floors(("near", queued, [20.0] * 200)).floor(["near"]) is None
    assert floors(("near", queued, [200.0] * 200)).floor(["near"]) is not None, "a tenth of what is left"


def test_lossy_paths_tell_nothing() -> None:
    path = PathFacts(0.08, 0.0)
    found = expected(small(), {"clean": (path, 1e9), "lossy": (PathFacts(0.08, 0.002), 1e9), "dead": (path, 0.0)})
    assert set(found) == {"clean"}
    assert found["clean"].away_ms == 40.0
    assert found["clean"].own_p99_ms == pytest.approx(0.0298, rel=0.01)
    assert expected(Arrivals(np.empty(0), np.empty(0), 0.0), {"clean": (path, 1e9)}) == {}


@pytest.mark.parametrize(("large", "round_trip_s", "tells"), [(9, 0.08, True), (20, 0.08, False), (20, 0.0001, True)])
def test_products_for_which_windows_open_tell_of_the_path(large: int, round_trip_s: float, tells: bool) -> None:
    """Products of 100 kB wait two or three round trips: negligible beside the hub, and the whole latency far away."""
    known = expected(small(large=large), {"a": (PathFacts(round_trip_s), 1e9)})["a"]
    measured = [round_trip_s * 500 + value for value in BUSY_MS]
    assert (floors(("a", known, measured)).floor(["a"]) is not None) is tells


def test_a_floor_survives_in_the_figures_of_a_plan() -> None:
    found = only(("near", NEAR, BUSY_MS))
    assert Floor.of_figures(found.figures()) == found
    assert Floor.of_figures(Floor().figures()) == Floor()
    assert Floor.of_figures({"floor_p50_ms": "many"}) == Floor()


@pytest.mark.parametrize(("share", "ms"), [(0.5, 1.0), (0.89, 1.0), (0.95, 2.0), (0.99, 3.0), (1.0, 3.0)])
def test_each_quantile_has_its_own_term(share: float, ms: float) -> None:
    assert Floor(1.0, 2.0, 3.0).at_ms(share) == ms
