"""Rates of ways: the worked examples of depots, the hub's own data connections, and segments never used."""

import math
import os
from random import Random

import pytest

from downburst.domain.tcp.rates import CongestionControl, cubic_bps, reno_bps
from downburst_scheduler.models.ways import (
    Connections,
    DirectWay,
    RelayWay,
    Segment,
    automatic_connections,
    beyond,
    direct_price,
    relay_price,
    segment_bps,
    shared_line_bps,
    way_bps,
)

RENO, CUBIC, BBR = CongestionControl.RENO, CongestionControl.CUBIC, CongestionControl.BBR
ONE = Connections(fixed=1)
LINE_BPS = 100e6


def by_campus(core: Segment, edge: Segment) -> RelayWay:
    return RelayWay(("campus",), (core, edge))


def edge_loss(control: CongestionControl) -> tuple[DirectWay, RelayWay]:
    """68 ms of clean core and 2 ms of edge with 0.1 % loss on a line of 100 Mb/s (networking.md, E2)."""
    direct = DirectWay(Segment(control, 0.07, 0.001), ONE, LINE_BPS)
    return direct, by_campus(Segment(control, 0.068, 0.0), Segment(control, 0.002, 0.001))


def half_and_half(control: CongestionControl) -> tuple[DirectWay, RelayWay]:
    direct = DirectWay(Segment(control, 0.07, 0.002), ONE, LINE_BPS)
    return direct, by_campus(Segment(control, 0.035, 0.001), Segment(control, 0.035, 0.001))


def gain(direct: DirectWay, way: RelayWay) -> float:
    over, alone = relay_price(way, direct).rate_bps, direct_price(direct).rate_bps
    assert over is not None
    assert alone is not None
    return over / alone


def test_a_segment_goes_by_its_congestion_control() -> None:
    assert segment_bps(Segment(RENO, 0.07, 0.001)) == pytest.approx(6.4e6, rel=0.01), "Mathis"
    assert segment_bps(Segment(CUBIC, 0.2, 1e-5)) == pytest.approx(cubic_bps(0.2, 1e-5))
    assert segment_bps(Segment(CUBIC, 0.01, 0.01)) == pytest.approx(reno_bps(0.01, 0.01)), "never less than Reno"
    assert segment_bps(Segment(BBR, None, None)) == math.inf, "no term for loss"
    assert segment_bps(Segment(RENO, 0.07, None)) is None
    assert segment_bps(Segment(CUBIC, None, 0.001)) is None


@pytest.mark.parametrize(("control", "least", "most"), [(RENO, 5, 14), (CUBIC, 4, 14), (BBR, 0.8, 1.0)])
def test_loss_at_the_edge_is_worth_a_relay_to_reno_and_cubic_alone(
    control: CongestionControl, least: float, most: float
) -> None:
    assert least <= gain(*edge_loss(control)) <= most


def test_half_the_loss_on_half_the_path_is_worth_85_percent_of_2_83_to_reno() -> None:
    assert gain(*half_and_half(RENO)) == pytest.approx(2 * math.sqrt(2) * 0.85, rel=0.01)
    assert gain(*half_and_half(BBR)) == pytest.approx(0.85)


def test_a_way_is_its_slowest_segment_less_15_percent() -> None:
    clean = Segment(RENO, 0.02, 0.0)
    assert way_bps((clean, clean, clean), line_bps=900e6) == pytest.approx(762e6, rel=0.01), "Phoebus"
    lossy = Segment(RENO, 0.02, 0.001)
    assert way_bps((clean, lossy)) == pytest.approx(reno_bps(0.02, 0.001) * 0.85)
    assert way_bps((clean, Segment(RENO, 0.02, None))) is None
    assert way_bps(()) is None


def test_the_direct_way_has_the_connections_that_the_hub_opens_by_itself() -> None:
    lossy = Segment(RENO, 0.07, 0.001)
    eight = direct_price(DirectWay(lossy, Connections(), 45e6))
    assert eight.connections == 8
    assert eight.rate_bps == pytest.approx(33.8e6, rel=0.01), "51 Mb/s by loss, 45 by the line"
    assert direct_price(DirectWay(lossy, Connections(fixed=3))).rate_bps == pytest.approx(3 * reno_bps(0.07, 0.001))
    assert direct_price(DirectWay(lossy, Connections(fixed=0))).connections == 1, "the first one carries products too"
    assert direct_price(DirectWay(lossy, Connections(), measured_bps=9e6)).rate_bps == 9e6, "measured is better"
    assert direct_price(DirectWay(Segment(RENO, 0.07, None))).rate_bps is None


@pytest.mark.parametrize(
    ("round_trip_s", "one_bps", "line_bps", "most", "count"),
    [
        (0.07, 20e6, 100e6, 16, 8),
        (0.07, 100e6, 100e6, 16, 1),
        (0.004, 20e6, 100e6, 16, 1),
        (0.2, 1e6, 100e6, 5, 5),
        (0.02, 1e6, None, 16, 16),
        (0.07, 1e6, None, 0, 1),
        (0.07, math.inf, None, 16, 1),
    ],
)
def test_automatic_connections_are_those_of_the_nodes_policy(
    round_trip_s: float, one_bps: float, line_bps: float | None, most: int, count: int
) -> None:
    """The cases of `stream_policy.rs`."""
    assert automatic_connections(round_trip_s, one_bps, line_bps=line_bps, most=most) == count


def test_a_segment_that_was_never_used_is_the_whole_less_the_core() -> None:
    edge = beyond(Segment(CUBIC, 0.07, 0.0015), Segment(CUBIC, 0.068, 0.0005), RENO)
    assert edge.congestion is RENO
    assert edge.round_trip_s == pytest.approx(0.002)
    assert edge.loss == pytest.approx(1 - (1 - 0.0015) / (1 - 0.0005))
    off_the_path = beyond(Segment(CUBIC, 0.02, 0.001), Segment(CUBIC, 0.05, 0.01), CUBIC)
    assert off_the_path.round_trip_s == pytest.approx(0.03)
    assert off_the_path.loss == 0.0
    assert beyond(Segment(CUBIC, None, 0.001), Segment(CUBIC, 0.01, 0.0), CUBIC).round_trip_s is None
    unmeasured = beyond(Segment(CUBIC, 0.07, 0.001), Segment(CUBIC, 0.06, None), CUBIC)
    assert unmeasured.loss == pytest.approx(0.001), "a core of unknown loss counts as clean"


def test_the_parts_of_any_way_make_the_whole() -> None:
    seed = int(os.environ.get("DOWNBURST_SEED", "1"))
    print(f"seed {seed}")
    random = Random(seed)
    for _ in range(200):
        core = Segment(CUBIC, random.uniform(0.001, 0.2), random.choice([0.0, random.uniform(0, 0.05)]))
        edge = Segment(CUBIC, random.uniform(0.001, 0.2), random.uniform(0, 0.05))
        assert core.round_trip_s is not None
        assert edge.round_trip_s is not None
        passed = (1 - (core.loss or 0)) * (1 - (edge.loss or 0))
        found = beyond(Segment(CUBIC, core.round_trip_s + edge.round_trip_s, 1 - passed), core, CUBIC)
        assert found.round_trip_s == pytest.approx(edge.round_trip_s)
        assert found.loss == pytest.approx(edge.loss)


def test_a_limit_that_loss_does_not_explain_is_there_with_a_relay_too() -> None:
    slow_line = DirectWay(Segment(RENO, 0.07, 0.0), Connections(), measured_bps=20e6)
    way = by_campus(Segment(RENO, 0.068, 0.0), Segment(RENO, 0.002, 0.0))
    assert relay_price(way, slow_line).rate_bps == pytest.approx(17e6)
    by_loss = DirectWay(Segment(RENO, 0.07, 0.001), ONE, measured_bps=8.1e6)
    assert relay_price(way, by_loss).rate_bps == math.inf, "Linux is a little faster than Mathis"


def test_connections_near_the_rate_of_the_line_leave_a_part_of_it_free() -> None:
    """Eight Reno connections of 7.4 Mb/s on a line of 100 Mb/s: 41 and 51 Mb/s were measured."""
    assert shared_line_bps(8 * 7.4e6, 100e6) == pytest.approx(51e6, rel=0.01)
    assert shared_line_bps(7.4e6, 100e6) == pytest.approx(7.4e6, rel=0.01), "far below it"
    assert shared_line_bps(1e12, 100e6) == pytest.approx(100e6, rel=0.01), "the line alone"
    assert (shared_line_bps(math.inf, 100e6), shared_line_bps(9e6, None)) == (100e6, 9e6)
    assert math.isinf(shared_line_bps(math.inf, None))
