"""The routes of the page *Now*, over a real ledger."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from downburst.domain.alarms import AlarmKind, Condition, Objective
from downburst.domain.backlog import FeedBacklog
from downburst.domain.events import BacklogSeen, SessionChanged, SiteBacklog
from downburst.domain.feeds import Feed, TrafficMinute
from downburst.domain.sites import Site
from downburst.domain.subscriptions import Subscription
from downburst.foundation.clock import FakeClock, to_us
from downburst.foundation.errors import LedgerAway
from downburst.ledger import Transaction
from downburst_api.strip import memory
from downburst_api.strip.memory import StripMemory
from downburst_api.strip.worst import worst_by_quarter
from factories import sketch_row
from unit.api.conftest import Asked


def minute_of(clock: FakeClock) -> int:
    return to_us(clock.now()) // 60_000_000


@pytest.fixture
def now(hub: Asked, clock: FakeClock) -> Asked:
    """A hub at 00:30 with two sites that are connected, a third that never was, and an hour of latencies."""
    clock.advance(1_800)
    minute = minute_of(clock)
    with hub.runtime.ledger.transaction() as tx:
        tx.feeds.add(Feed("NGRID", objective_ms=1_000))
        tx.feeds.add(Feed("HDS", objective_ms=1_000, retention_hours=2))
        for site in ("a.edu", "b.edu", "never.edu"):
            tx.sites.add(Site(site))
            tx.subscriptions.add(Subscription(0, site, "NGRID"))
            tx.subscriptions.add(Subscription(0, site, "HDS", pattern="^X"))
        tx.alerting.objectives.put(Objective("NGRID", "b.edu", 100))
        measured = ((back, site, ms) for back in range(0, 61, 10) for site, ms in (("a.edu", 200), ("b.edu", 50)))
        rows = (sketch_row([ms] * 20, minute=minute - back, site=site) for back, site, ms in measured)
        tx.measured.latency.add(*rows)
        tx.measured.traffic.add([TrafficMinute("NGRID", minute - back, 20, 6_000, 100) for back in range(61)])
        tx.measured.egress.add(minute, egress_bytes=1_000, unicast_equivalent_bytes=4_000)
    for site in ("a.edu", "b.edu"):
        hub.runtime.live.apply(SessionChanged(site, "connected", clock.now(), "192.0.2.1:5"))
    return hub


async def test_the_strip_has_the_worst_feed_as_a_share_of_the_site_s_own_objective(now: Asked) -> None:
    found = await now.ask("GET", "/v1/now/strip", params={"hours": 2})
    assert [row["site"] for row in found["rows"]] == ["b.edu", "a.edu"]
    assert (len(found["quarters"]), found["others"], found["never_connected"]) == (8, None, 1)
    assert found["quarters"][-1] == "2026-01-01T00:30:00Z"
    shares = {row["site"]: row["now"] for row in found["rows"]}
    assert shares["a.edu"]["share"] == pytest.approx(0.2, rel=0.02)
    assert shares["b.edu"]["share"] == pytest.approx(0.5, rel=0.02)
    assert (shares["b.edu"]["feed"], shares["b.edu"]["objective_ms"], shares["b.edu"]["products"]) == (
        "NGRID",
        100,
        40,
    )
    states = [cell["state"] for cell in found["rows"][0]["cells"]]
    assert states == ["nothing"] * 3 + ["within"] * 5


async def test_a_site_without_reports_is_not_measured_and_a_late_one_is_late(now: Asked, clock: FakeClock) -> None:
    clock.advance(3_600)
    minute = minute_of(clock)

    def fill(tx: Transaction) -> None:
        tx.measured.traffic.add([TrafficMinute("NGRID", minute - 5, 20, 6_000, 100)])
        tx.measured.latency.add(sketch_row([5_000] * 20, minute=minute - 5, site="a.edu"))

    await now.runtime.ledger.write(fill)
    found = await now.ask("GET", "/v1/now/strip", params={"hours": 1, "limit": 1})
    assert (found["rows"][0]["site"], found["rows"][0]["now"]["state"]) == ("a.edu", "late")
    assert (found["others"]["sites"], found["others"]["now"]["state"]) == (1, "no-report")
    status = (await now.ask("GET", "/v1/now/incidents"))["status"]
    assert status["sentence"] == "Of 2 sites, 1 is late; 1 sent no latency reports"
    assert (status["counts"]["late"], status["counts"]["not_measured"]) == (1, 1)


async def test_an_alarm_that_ended_marks_the_quarters_in_which_the_site_was_down(
    now: Asked, clock: FakeClock
) -> None:
    condition = Condition(AlarmKind.SITE_DOWN, "away", "call", site="a.edu")
    number = await now.runtime.ledger.write(lambda tx: tx.alerting.alarms.raise_(condition))
    clock.advance(900)
    await now.runtime.ledger.write(lambda tx: tx.alerting.alarms.end([number], clock.now()))
    clock.advance(900)
    found = await now.ask("GET", "/v1/now/strip", params={"site": "a.edu", "hours": 1})
    (row,) = found["rows"]
    assert [cell["state"] for cell in row["cells"]] == ["within", "down", "nothing", "nothing"]
    assert (row["now"]["state"], row["now"]["since"]) == ("nothing", None)


async def test_all_is_well_is_said_of_measured_sites_alone(now: Asked) -> None:
    found = await now.ask("GET", "/v1/now/incidents")
    assert found["status"]["sentence"] == "All 2 sites receive their feeds within the objectives"
    (never,) = found["incidents"]
    assert (never["title"], never["severity"]) == ("never.edu has never enrolled", "information")
    overview = await now.ask("GET", "/v1/overview")
    assert (overview["status"], overview["incidents"]) == (found["status"], found["incidents"])


async def test_a_site_that_is_down_is_an_incident_with_its_backlog_and_next_step(
    now: Asked, clock: FakeClock
) -> None:
    live = now.runtime.live
    live.apply(SessionChanged("a.edu", "closed", clock.now(), "192.0.2.1:5", reason="the connection was cut"))
    oldest_us = to_us(clock.now())
    clock.advance(360)
    lacking = FeedBacklog("HDS", True, 27_412, 2_770_000_000, oldest_us)
    live.apply(BacklogSeen((SiteBacklog("a.edu", (lacking,)),)))
    found = await now.ask("GET", "/v1/now/incidents", params={"site": "a.edu"})
    assert found["status"]["sentence"] == "a.edu has been down for 6 min"
    (one,) = found["incidents"]
    assert (one["title"], one["cause"], one["severity"]) == ("a.edu is down", "The connection was cut.", "warning")
    affected = one["affected"]
    assert (affected["sites"], affected["feeds"], affected["waiting_products"]) == (1, 2, 27_412)
    assert affected["kept_until"] == "2026-01-01T02:30:00Z"
    assert affected["words"] == "27,412 products (2.77 GB) wait here; all are kept until 02:30."
    assert one["next"].startswith("Check the receiver's log at a.edu")
    assert [action["kind"] for action in one["actions"]] == ["open-site", "probe-path"]


async def test_criticals_come_first_then_the_newest_and_silenced_ones_last(now: Asked, clock: FakeClock) -> None:
    def raise_(site: str, kind: AlarmKind) -> int:
        with now.runtime.ledger.transaction() as tx:
            return tx.alerting.alarms.raise_(Condition(kind, f"{site}: {kind}", "look", site=site))

    raise_("b.edu", AlarmKind.CLOCK)
    clock.advance(60)
    raise_("a.edu", AlarmKind.CLOCK)
    raise_("a.edu", AlarmKind.HEARTBEAT)
    quiet = raise_("b.edu", AlarmKind.HEARTBEAT)
    await now.ask("POST", "/v1/silences", 201, json={"alarm": quiet, "minutes": 60, "reason": "known"})
    found = await now.ask("GET", "/v1/now/incidents")
    named = [(one["kind"], one["site"]) for one in found["incidents"]]
    assert named == [
        ("heartbeat", "a.edu"),
        ("clock", "a.edu"),
        ("clock", "b.edu"),
        ("site-down", "never.edu"),
        ("heartbeat", "b.edu"),
    ]
    assert found["incidents"][-1]["silence"]["by"] == "local"
    counts = found["status"]["counts"]
    assert (counts["critical"], counts["warning"], counts["information"], counts["silenced"]) == (1, 2, 1, 1)


async def test_the_cards_history_ends_now_and_names_the_uplink(now: Asked) -> None:
    found = await now.ask("GET", "/v1/now/history", params={"hours": 1})
    assert (len(found["points"]), found["latency_read"], found["egress_capacity_bps"]) == (4, True, 1e9)
    newest, before = found["points"][-1], found["points"][-2]
    assert (newest["saved_share"], before["out_bps"]) == (0.75, None)
    assert before["in_bps"] == 15 * 6_000 * 8 / 900
    assert newest["worst_share"] == pytest.approx(0.5, rel=0.02)
    today = found["today"]
    assert (today["since"], today["egress_bytes"]) == ("2026-01-01T00:30:00Z", 1_000)


@pytest.mark.parametrize("params", [{"hours": 25}, {"hours": 0}, {"limit": 101}, {"limit": 0}, {"site": "x" * 64}])
async def test_parameters_are_bounded(hub: Asked, params: dict[str, Any]) -> None:
    await hub.problem("GET", "/v1/now/strip", 400, "bad-request", params=params)


async def test_an_unknown_site_is_refused(hub: Asked) -> None:
    for route in ("strip", "incidents"):
        await hub.problem("GET", f"/v1/now/{route}", 404, "not-found", params={"site": "no.edu"})


async def test_finished_quarters_are_read_once_and_late_receipts_of_the_last_one_still_count(
    now: Asked, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranges: list[tuple[int, int]] = []
    whole = worst_by_quarter

    def noting(tx: Transaction, begin: int, end: int, *given: Any) -> Any:
        ranges.append((begin, end))
        return whole(tx, begin, end, *given)

    monkeypatch.setattr(memory, "worst_by_quarter", noting)
    strip = StripMemory(now.runtime.ledger, clock)
    await strip.day()
    assert len(strip.quarters()) == 96
    assert len(await strip.day()) == 96
    read_once = len(ranges)
    assert read_once == 25
    clock.advance(120)
    minute = minute_of(clock)
    late = sketch_row([9_000] * 20, minute=minute - 4, site="a.edu")
    await now.runtime.ledger.write(lambda tx: tx.measured.latency.add(late))
    await strip.present()
    await strip.fresh()
    found = await strip.day()
    assert len(ranges) == read_once
    assert found[strip.quarters()[-2]]["a.edu"].share == pytest.approx(9, rel=0.02)


async def test_a_page_does_not_wait_for_a_long_history(now: Asked, clock: FakeClock) -> None:
    strip = StripMemory(now.runtime.ledger, clock)
    await strip.present()
    found = await strip.day(patience_s=0.0)
    assert strip.quarters()[-1] in found
    tasks = [task for task in asyncio.all_tasks() if task.get_name() == "api.strip-day"]
    await asyncio.wait(tasks, timeout=60)
    assert len(await strip.day()) == 96


async def test_the_last_reading_stays_while_the_ledger_is_away(
    now: Asked, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    strip = StripMemory(now.runtime.ledger, clock)
    before = await strip.present()

    async def away(*_: Any, **__: Any) -> None:
        raise LedgerAway("the ledger is away")

    monkeypatch.setattr(now.runtime.ledger, "read", away)
    clock.advance(timedelta(minutes=2).total_seconds())
    assert await strip.present() == before
    await strip.fresh()
    assert await strip.present() == before
    assert await StripMemory(now.runtime.ledger, clock).present() is None


@pytest.mark.parametrize("broken", ["newest_worst", "worst_by_quarter"])
async def test_an_unknown_error_goes_to_the_page_and_the_next_one_reads(
    hub: Asked, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def fail(*_: Any) -> None:
        raise KeyError("x")

    strip = StripMemory(hub.runtime.ledger, clock)
    with monkeypatch.context() as patch:
        patch.setattr(memory, broken, fail)
        with pytest.raises(KeyError):
            await strip.day()
    assert len(await strip.day()) == 96
