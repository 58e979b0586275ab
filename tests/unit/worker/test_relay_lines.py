"""Relays between the agent and its node: the ways of sites, legs by a relay, and the reports of relays."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from downburst.domain.events import RelaySeen, SitesChanged
from downburst.domain.relays import FanOut, Relay, RelayReport, SiteWay
from downburst.domain.relays.ways import via_of
from downburst.domain.sites import Site
from downburst.foundation.bounds import OutOfBounds, SetAside
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import BadInput
from downburst.ledger import Ledger, Transaction
from downburst.settings.multicast import MulticastSettings
from downburst_worker.accounts import TunnelRecords
from downburst_worker.messages import lines
from downburst_worker.messages.relay_lines import relay_seen, with_tunnels, with_ways
from factories import SOME_TIME, multicast, plan
from unit.worker.test_absurd_lines import relay as relay_line
from unit.worker.test_agent import Stage

CAMPUS = Relay("campus", "relay.campus.edu:7379", sites=("oslo",))
CORE = Relay("core", "[2001:db8::1]:7379", sites=("campus",))


@pytest.fixture
async def stage(tmp_path: Path, ledger: Ledger, clock: FakeClock) -> AsyncIterator[Stage]:
    made = Stage(tmp_path / "hub", ledger, clock)
    await made.agent.start()
    yield made
    await made.agent.stop()


def test_a_site_has_a_way_only_if_the_scheduler_chose_one() -> None:
    job = lines.sites_job([Site("bergen"), Site("oslo"), Site("paris")], [], [])
    ways = [SiteWay("oslo", ("campus", "core"), "faster"), SiteWay("paris", (), "direct is no slower")]
    told = {line["site"]: line.get("via") for line in with_ways(job, ways, [CAMPUS, CORE])["sites"]}
    assert told == {"bergen": None, "oslo": ["relay.campus.edu:7379,[2001:db8::1]:7379"], "paris": []}


def test_the_hubs_amt_relays_stand_in_the_lines_of_sites_that_ask_for_them() -> None:
    sites = [
        Site("bergen"),
        Site("oslo", multicast_interface="amt"),
        Site("rome", multicast_interface="amt:192.0.2.9"),
    ]
    told = with_tunnels(lines.sites_job(sites, [], []), "amt:192.0.2.1,192.0.2.2")["sites"]
    assert [line["interface"] for line in told] == ["", "amt:192.0.2.1,192.0.2.2", "amt:192.0.2.9"]


@pytest.mark.parametrize("relays", [{}, {"campus": Relay("campus", None, FanOut.GROUP, feeds=("*",))}])
def test_a_chain_that_no_longer_splices_is_the_direct_way(relays: dict[str, Relay]) -> None:
    assert via_of(SiteWay("oslo", ("campus",), "faster"), relays) == []


def test_a_chain_of_too_many_relays_is_refused() -> None:
    with pytest.raises(BadInput, match="has 5 relays, and the limit is 4"):
        SiteWay("oslo", ("a", "b", "c", "d", "e"), "no")


def test_the_leg_of_a_plan_names_its_relay_and_the_way_from_there() -> None:
    by_relay = replace(multicast(2, "b"), relay="campus")
    legs = (multicast(1, "a"), by_relay, replace(by_relay, leg=3, fan_out=FanOut.UNICAST))
    told = lines.plan_job(plan("NGRID", *legs), MulticastSettings())["legs"]
    assert [leg.get("relay") for leg in told] == [None, "campus", "campus"]
    assert [leg.get("fan_out") for leg in told] == [None, "group", "unicast"]
    assert told[1]["group"] == multicast(2).group


def test_a_report_is_read_whole() -> None:
    aside: list[SetAside] = []
    seen = relay_seen(relay_line(), aside, at=SOME_TIME)
    assert (seen.at, seen.report.relay, seen.report.refused, aside) == (SOME_TIME, "campus", 1, [])
    first, second = seen.report.tunnels
    assert (first.site, second.site, first.site_side, first.seconds) == ("oslo", None, "192.0.2.9:1", 60.0)
    assert (first.near.loss_ppm, first.near.congestion, first.onward.round_trip_us) == (1_000, "cubic", None)
    assert [leg.leg for leg in seen.report.legs] == [7, 8]


def test_more_tunnels_than_a_relay_reports_are_refused() -> None:
    (tunnel, _) = relay_line()["tunnels"]
    assert len(relay_seen(relay_line() | {"tunnels": [tunnel] * 256}, [], at=SOME_TIME).report.tunnels) == 256
    with pytest.raises(OutOfBounds, match="257 entries; at most 256"):
        relay_seen(relay_line() | {"tunnels": [tunnel] * 257}, [], at=SOME_TIME)


def test_a_tunnel_is_recorded_each_hour_and_at_its_end() -> None:
    (tunnel, _) = relay_seen(relay_line(), [], at=SOME_TIME).report.tunnels
    records, ages = TunnelRecords(), [60.0, 3_600.0, 3_610.0, 7_190.0, 7_200.0]
    recorded = [bool(records.to_record(RelayReport("campus", (replace(tunnel, seconds=age),)))) for age in ages]
    assert recorded == [False, True, False, False, True]
    ended = replace(tunnel, seconds=7_201.0, ended=True)
    assert records.to_record(RelayReport("campus", (ended,))) == [ended]
    assert records._recorded_s == {"campus": {}}, "nothing is remembered of tunnels that are gone"


def _campus(tx: Transaction) -> None:
    tx.sites.add(Site("oslo"))
    tx.fleet.relays.put(CAMPUS)


async def _with_campus(stage: Stage) -> None:
    """The agent knows the relay as soon as its node has been told of its site."""
    await stage.ledger.write(_campus)
    stage.bus.publish(SitesChanged())
    await stage.last_job("sites", lambda job: any(line["site"] == "campus" for line in job["sites"]))


async def test_a_report_of_a_site_without_the_record_of_a_relay_is_passed_over(stage: Stage) -> None:
    await _with_campus(stage)
    ended = {"tunnels": [tunnel | {"ended": True} for tunnel in relay_line()["tunnels"]]}
    await stage.says(**relay_line() | ended | {"relay": "oslo"})
    await stage.says(**relay_line())
    seen = await stage.event(RelaySeen)
    assert seen.report.relay == "campus", "a site that merely lacks subscriptions is no relay"
    assert await stage.ledger.read(lambda tx: tx.fleet.relay_log.newest("oslo")) == []


async def test_a_report_is_an_event_and_ended_tunnels_go_into_the_log(stage: Stage) -> None:
    await _with_campus(stage)
    line = relay_line()
    line["tunnels"][0]["ended"] = True
    await stage.says(**line)
    seen = await stage.event(RelaySeen)
    assert [tunnel.ended for tunnel in seen.report.tunnels] == [True, False]
    logged = await stage.ledger.read(lambda tx: tx.fleet.relay_log.newest("campus"))
    assert [record.tunnel for record in logged] == [seen.report.tunnels[0]]


async def test_the_way_of_a_site_reaches_the_node(stage: Stage) -> None:
    def choose(tx: Transaction) -> None:
        _campus(tx)
        tx.fleet.ways.put(SiteWay("oslo", ("campus",), "faster"))

    await stage.ledger.write(choose)
    stage.bus.publish(SitesChanged())
    job: dict[str, Any] = await stage.last_job("sites", lambda job: any(line.get("via") for line in job["sites"]))
    assert {line["site"]: line.get("via") for line in job["sites"]} == {
        "campus": None,
        "oslo": ["relay.campus.edu:7379"],
    }
