"""The strip's cells and rows, and the points of the cards: pure."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

import pytest

from downburst.domain.feeds import TrafficMinute
from downburst.domain.plans import EgressQuarter
from downburst.foundation.clock import from_us
from downburst_api.strip.cells import Day, Outage, StripSite, row_out, rows_of, state_now
from downburst_api.strip.history import points_of, today_of
from downburst_api.strip.worst import BySite, Worst
from downburst_contract.now.strip import CellState

QUARTER = 15
ONE, TWO, THREE = 0, QUARTER, 2 * QUARTER


def at(minute: float) -> datetime:
    return from_us(round(minute * 60_000_000))


def worst(share: float, feed: str = "NGRID") -> Worst:
    return Worst(share, feed, share * 2_000, 2_000, 20)


def site(name: str = "a.edu", *, since: float | None = None, outages: tuple[Outage, ...] = ()) -> StripSite:
    return StripSite(name, frozenset({"NGRID"}), None if since is None else at(since), outages)


def day(
    read: Mapping[int, BySite],
    *,
    arrived: Mapping[int, Collection[str]] | None = None,
    present: BySite | None = None,
    due: Collection[str] = (),
) -> Day:
    return Day((ONE, TWO, THREE), read, arrived or {}, present or {}, due)


def states(one: StripSite, of: Day) -> list[CellState]:
    ((row,), others) = rows_of([one], of, limit=10)
    assert others is None
    return [cell.state for cell in row.cells]


def test_a_share_is_within_up_to_the_objective_and_late_above() -> None:
    read = {ONE: {"a.edu": worst(1.0)}, TWO: {"a.edu": worst(1.001)}, THREE: {"a.edu": worst(-0.1)}}
    assert states(site(), day(read)) == [CellState.WITHIN, CellState.LATE, CellState.WITHIN]


def test_silence_is_no_report_if_a_whole_feed_had_products_and_nothing_otherwise() -> None:
    arrived = {ONE: ("NGRID",), TWO: ("OTHER",)}
    assert states(site(), day({ONE: {}, TWO: {}, THREE: {}}, arrived=arrived)) == [
        CellState.NO_REPORT,
        CellState.NOTHING,
        CellState.NOTHING,
    ]


def test_nothing_was_due_before_a_site_existed() -> None:
    arrived = dict.fromkeys((ONE, TWO, THREE), ("NGRID",))
    young = site(since=TWO + 1)
    assert states(young, day({ONE: {}, TWO: {}, THREE: {}}, arrived=arrived)) == [
        CellState.NOTHING,
        CellState.NOTHING,
        CellState.NO_REPORT,
    ]


def test_an_outage_marks_each_quarter_that_it_touches_even_with_a_latency_in_it() -> None:
    outage = Outage(at(TWO - 0.5), at(TWO + 1))
    read = {ONE: {"a.edu": worst(0.2)}, TWO: {}, THREE: {"a.edu": worst(0.2)}}
    ((row,), _) = rows_of([site(outages=(outage,))], day(read, present={"a.edu": worst(0.2)}), limit=1)
    assert [cell.state for cell in row.cells] == [CellState.DOWN, CellState.DOWN, CellState.WITHIN]
    assert row.cells[0].worst == worst(0.2)
    assert (row.now.state, row.down_since) == (CellState.WITHIN, None)


def test_a_quarter_that_was_not_read_is_never_shown_as_healthy() -> None:
    lasting = Outage(at(THREE))
    assert states(site(outages=(lasting,)), day({TWO: {}})) == [
        CellState.UNREAD,
        CellState.NOTHING,
        CellState.DOWN,
    ]


def test_sites_come_worst_first_and_the_others_are_summed_up() -> None:
    present = {"late": worst(1.6), "far": worst(0.5, "CONDUIT"), "near": worst(0.1), "spiky": worst(0.1)}
    read = {ONE: {"spiky": worst(0.9), "near": worst(0.2)}, TWO: {}, THREE: {}}
    named = [site(name) for name in ("idle", "near", "spiky", "far", "late", "silent")]
    named[0] = StripSite("idle", frozenset())
    named.append(site("down", outages=(Outage(at(THREE + 1)),)))
    rows, none = rows_of(named, day(read, present=present, due=("NGRID",)), limit=10)
    assert [row.site for row in rows] == ["down", "late", "silent", "far", "spiky", "near", "idle"]
    assert none is None
    first, others = rows_of(named, day(read, present=present, due=("NGRID",)), limit=2)
    assert others is not None
    assert ([row.site for row in first], others.site, others.sites) == (["down", "late"], None, 5)
    # The worst state and the worst share may be of different sites.
    assert (others.now.state, others.now.worst) == (CellState.NO_REPORT, worst(0.5, "CONDUIT"))
    assert others.cells[0].worst == worst(0.9)


def test_the_row_of_a_site_that_is_down_says_since_when() -> None:
    ((row,), _) = rows_of([site(outages=(Outage(at(THREE)),))], day({}), limit=1)
    shown = row_out(row)
    assert shown["now"] == {
        "state": CellState.DOWN,
        "share": None,
        "feed": None,
        "p99_ms": None,
        "objective_ms": None,
        "products": 0,
        "since": at(THREE),
    }
    assert state_now(site(), {}, ("NGRID",)).state is CellState.NO_REPORT


def test_points_are_null_where_nothing_was_stored_and_the_open_quarter_is_a_mean_of_its_time() -> None:
    arrived = [
        TrafficMinute("A", TWO, 1, 900, 1),
        TrafficMinute("B", TWO, 1, 900, 1),
        TrafficMinute("A", 45, 1, 60, 1),
    ]
    sent = [EgressQuarter(TWO, 9_000, 36_000), EgressQuarter(THREE, 450, 0)]
    read = {TWO: {"a.edu": worst(0.3), "b.edu": worst(0.7)}}
    points = points_of([ONE, TWO, THREE, 45], arrived, sent, read, at(46))
    assert points[0] == {"at": at(0), "in_bps": None, "out_bps": None, "saved_share": None, "worst_share": None}
    assert points[1] == {"at": at(15), "in_bps": 16.0, "out_bps": 80.0, "saved_share": 0.75, "worst_share": 0.7}
    assert points[2] == {"at": at(30), "in_bps": 0, "out_bps": 4.0, "saved_share": None, "worst_share": None}
    assert (points[3]["in_bps"], points[3]["out_bps"]) == (8.0, None)


@pytest.mark.parametrize(
    ("first", "since"),
    [(-QUARTER, 0), (0, 0), (30, 30)],
)
def test_the_sums_of_today_say_since_when_they_count(first: int, since: int) -> None:
    sent = [EgressQuarter(first, 5, 7), EgressQuarter(60, 10, 30)]
    arrived = [TrafficMinute("A", -15, 1, 100, 1), TrafficMinute("A", 60, 1, 3, 1)]
    found = today_of(arrived, sent, midnight_minute=0)
    assert (found["since"], found["in_bytes"]) == (at(0) + timedelta(minutes=since), 3)
    assert found["egress_bytes"] == (10 if first < 0 else 15)


def test_no_count_is_not_a_sum_of_zero() -> None:
    nothing = {"since": None, "in_bytes": None, "egress_bytes": None, "unicast_equivalent_bytes": None}
    assert today_of([], [], midnight_minute=0) == nothing
