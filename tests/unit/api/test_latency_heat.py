"""The heat map of latencies by site and hour, over a real ledger; objectives beside histories and histograms."""

from typing import Any

import pytest

from downburst.domain.alarms import AlarmKind, Condition, Objective
from downburst.domain.events import SessionChanged
from downburst.domain.feeds import Feed, TrafficMinute
from downburst.domain.latency import LatencyKind
from downburst.domain.sites import Site
from downburst.domain.subscriptions import Subscription
from downburst.foundation.clock import FakeClock, to_us
from downburst.ledger import Transaction
from downburst_api.latency.heat import HeatRange
from factories import sketch_row
from unit.api.conftest import Asked


@pytest.fixture
def heat(hub: Asked, clock: FakeClock) -> Asked:
    """A hub of 00:00 at 06:30: NGRID had products in every hour; two sites reported all of them, one site one."""
    sites = ("late.edu", "near.edu", "silent.edu", "some.edu")
    with hub.runtime.ledger.transaction() as tx:
        tx.feeds.add(Feed("NGRID", objective_ms=1_000))
        for site in sites:
            tx.sites.add(Site(site))
            tx.subscriptions.add(Subscription(0, site, "NGRID", pattern="^X" if site == "some.edu" else ".*"))
        tx.sites.add(Site("other.edu"))
        tx.alerting.objectives.put(Objective("NGRID", "near.edu", 100))
    clock.advance(6.5 * 3_600)
    for site in (*sites, "other.edu"):
        hub.runtime.live.apply(SessionChanged(site, "connected", clock.now(), "192.0.2.1:5"))
    with hub.runtime.ledger.transaction() as tx:
        _measure(tx, to_us(clock.now()) // 60_000_000)
    return hub


def _measure(tx: Transaction, minute: int) -> None:
    took = {"late.edu": 1_500.0, "near.edu": 50.0}
    hours = ((minute - 60 * back, site, ms) for back in range(6) for site, ms in took.items())
    tx.measured.latency.add(*(sketch_row([ms] * 20, minute=at, site=site) for at, site, ms in hours))
    tx.measured.latency.add(sketch_row([10.0] * 5, minute=minute - 240, site="silent.edu"))
    tx.measured.latency.add(sketch_row([9_000.0], minute=minute, site="near.edu", kind=LatencyKind.QUEUEING))
    tx.measured.traffic.add([TrafficMinute("NGRID", minute - 20 * back, 20, 6_000, 100) for back in range(19)])


async def _rows(heat: Asked, **asked: Any) -> dict[str, list[dict[str, Any]]]:
    found = await heat.ask("GET", "/v1/latency/heat", params={"feed": "NGRID", "minutes": 360, **asked})
    assert all(len(row["cells"]) == len(found["steps"]) for row in found["rows"])
    return {row["site"]: row["cells"] for row in found["rows"]}


async def test_each_site_has_its_p99_by_the_hour_as_a_share_of_its_objective(heat: Asked) -> None:
    found = await heat.ask("GET", "/v1/latency/heat", params={"feed": "NGRID", "minutes": 360})
    assert (found["step_minutes"], found["steps"][0], found["steps"][-1]) == (
        60,
        "2026-01-01T00:00:00+00:00",
        "2026-01-01T06:00:00+00:00",
    )
    rows = {row["site"]: row for row in found["rows"]}
    assert {site: row["objective_ms"] for site, row in rows.items()} == {
        "late.edu": 1_000,
        "near.edu": 100,
        "silent.edu": 1_000,
        "some.edu": 1_000,
    }
    newest = {site: row["cells"][-1] for site, row in rows.items()}
    assert (newest["late.edu"]["state"], newest["late.edu"]["products"]) == ("late", 20)
    assert newest["late.edu"]["share"] == pytest.approx(1.5, rel=0.02)
    assert (newest["near.edu"]["state"], newest["near.edu"]["p99_ms"]) == ("within", 50)
    assert newest["near.edu"]["share"] == pytest.approx(0.5, rel=0.02)


async def test_silence_is_no_report_where_the_site_takes_the_whole_feed_and_nothing_elsewhere(heat: Asked) -> None:
    rows = await _rows(heat)
    # The records of the sites are younger than the beginning of the first hour, in which they owe nothing.
    assert [cell["state"] for cell in rows["silent.edu"]] == ["nothing", "no-report", "within", *["no-report"] * 4]
    assert {cell["state"] for cell in rows["some.edu"]} == {"nothing"}
    assert {cell["share"] for cell in rows["some.edu"]} == {None}


async def test_products_of_the_last_minute_are_not_missing_yet(heat: Asked, clock: FakeClock) -> None:
    clock.advance(1_800)
    minute = to_us(clock.now()) // 60_000_000
    traffic = TrafficMinute("NGRID", minute, 5, 100, 10)
    await heat.runtime.ledger.write(lambda tx: tx.measured.traffic.add([traffic]))
    assert (await _rows(heat))["silent.edu"][-1]["state"] == "nothing"
    clock.advance(120)
    assert (await _rows(heat))["silent.edu"][-1]["state"] == "no-report"


async def test_the_worst_site_is_first_and_the_others_are_counted(heat: Asked) -> None:
    found = await heat.ask("GET", "/v1/latency/heat", params={"feed": "NGRID", "limit": 1})
    assert ([row["site"] for row in found["rows"]], found["others"]) == (["late.edu"], 3)
    assert [*await _rows(heat)] == ["late.edu", "silent.edu", "near.edu", "some.edu"]
    assert list(await _rows(heat, site="near.edu")) == ["near.edu"]
    await heat.problem("GET", "/v1/latency/heat", 404, "not-found", params={"feed": "NGRID", "site": "nowhere.edu"})


async def test_an_outage_is_down_in_every_hour_that_it_touches(heat: Asked, clock: FakeClock) -> None:
    condition = Condition(AlarmKind.SITE_DOWN, "away", "call", site="near.edu")
    number = await heat.runtime.ledger.write(lambda tx: tx.alerting.alarms.raise_(condition))
    clock.advance(3_600)
    await heat.runtime.ledger.write(lambda tx: tx.alerting.alarms.end([number], clock.now()))
    clock.advance(3_600)
    cells = (await _rows(heat, minutes=240))["near.edu"]
    assert [cell["state"] for cell in cells] == ["within", "within", "down", "down", "nothing"]
    assert cells[2]["p99_ms"] == 50


def test_a_range_begins_with_a_whole_step_and_has_a_bounded_number_of_them() -> None:
    assert HeatRange.of(90, 610) == HeatRange(480, 610, 60)
    assert list(HeatRange.of(90, 610).steps) == [480, 540, 600]
    assert len(HeatRange.of(7 * 1_440, 610_001).steps) == 169
    assert len(HeatRange.of(366 * 1_440, 610_001).steps) == 367


async def test_a_history_has_the_objective_and_a_histogram_counts_the_products_above_it(heat: Asked) -> None:
    for site, objective_ms, over in (("late.edu", 1_000, 120), ("near.edu", 100, 0)):
        asked = {"feed": "NGRID", "site": site, "minutes": 390}
        history = await heat.ask("GET", "/v1/latency/history", params=asked | {"step": "5-minutes"})
        assert (history["objective_ms"], history["step_minutes"], len(history["points"])) == (objective_ms, 5, 6)
        spread = await heat.ask("GET", "/v1/latency/histogram", params=asked)
        assert (spread["objective_ms"], spread["over_objective"]) == (objective_ms, over)
    other = {"feed": "NGRID", "site": "near.edu", "kind": "queueing"}
    assert (await heat.ask("GET", "/v1/latency/history", params=other))["objective_ms"] is None
    assert (await heat.ask("GET", "/v1/latency/histogram", params=other))["over_objective"] is None
