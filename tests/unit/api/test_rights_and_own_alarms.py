"""Limits on a site's access to a feed, objectives of single sites, future windows, and a site's own receivers."""

from datetime import timedelta

import pytest

from downburst.domain.alarms import Alarm, AlarmKind, Receiver, ReceiverKind, Silence
from downburst.domain.feeds import Feed
from downburst.domain.sites import Site
from downburst.domain.subscriptions import Subscription
from downburst.foundation.clock import FakeClock
from downburst.ledger import Transaction
from downburst_worker.messages import lines
from factories import Told
from unit.api.conftest import Asked


@pytest.fixture(autouse=True)
async def two_sites(hub: Asked) -> None:
    def make(tx: Transaction) -> None:
        tx.feeds.add(Feed("NGRID"))
        tx.sites.add(Site("unl.edu"))
        tx.sites.add(Site("other.edu"))

    await hub.runtime.ledger.write(make)


async def test_an_operator_limits_what_of_a_feed_a_site_may_take(hub: Asked) -> None:
    limits = [{"feed": "NGRID", "pattern": "^YZ", "not_pattern": "TEST"}, {"feed": "NGRID", "pattern": "^SA"}]
    kept = await hub.ask("PATCH", "/v1/sites/unl.edu", json={"limits": limits})
    assert kept["limits"] == [limits[0], limits[1] | {"not_pattern": None}]
    site = await hub.runtime.ledger.read(lambda tx: tx.sites.one("unl.edu"))
    assert [limit.pattern for limit in site.limits_of("NGRID")] == ["^YZ", "^SA"]
    assert site.limits_of("NEXRAD2") == ()
    (change,) = (await hub.ask("GET", "/v1/audit?kind=site&limit=1"))["items"]
    assert (change["subject"], list(change["after"])) == ("unl.edu", ["limits"])
    problem = await hub.problem(
        "PATCH", "/v1/sites/unl.edu", 422, "bad-pattern", json={"limits": [{"feed": "NGRID", "pattern": "("}]}
    )
    assert problem["field"] == "limits.pattern"
    assert (await hub.ask("PATCH", "/v1/sites/unl.edu", json={"limits": []}))["limits"] == []


async def test_the_node_is_told_of_limits(hub: Asked) -> None:
    limits = [{"feed": "NGRID", "pattern": "^YZ", "not_pattern": None}]
    await hub.ask("PATCH", "/v1/sites/unl.edu", json={"limits": limits})
    site = await hub.runtime.ledger.read(lambda tx: tx.sites.one("unl.edu"))
    (told,) = lines.sites_job([site], [], [Subscription(1, "unl.edu", "NGRID")])["sites"]
    assert told["limits"] == limits


async def test_an_objective_of_a_site_from_its_making_to_its_end(hub: Asked) -> None:
    wanted = {"objective_ms": 500, "quantile": 0.95, "minutes": 30}
    made = await hub.ask("PUT", "/v1/feeds/NGRID/objectives/unl.edu", json=wanted)
    assert made == {"objective": "NGRID/unl.edu", "feed": "NGRID", "site": "unl.edu"} | wanted
    await hub.ask("PUT", "/v1/feeds/NGRID/objectives/unl.edu", json={"objective_ms": 400})
    assert await hub.ask("GET", "/v1/objectives") == [made | {"objective_ms": 400, "quantile": None, "minutes": None}]
    assert await hub.ask("GET", "/v1/objectives?site=other.edu") == []
    await hub.problem("PUT", "/v1/feeds/NGRID/objectives/nobody", 404, "not-found", json=wanted)
    await hub.ask("DELETE", "/v1/feeds/NGRID/objectives/unl.edu", 204)
    await hub.problem("DELETE", "/v1/feeds/NGRID/objectives/unl.edu", 404, "not-found")


async def test_a_window_of_maintenance_may_lie_ahead(hub: Asked, clock: FakeClock) -> None:
    made = await hub.ask("POST", "/v1/sites/unl.edu/silences", 201, json={"minutes": 60, "begins": "+2h"})
    await hub.ask("POST", "/v1/sites/other.edu/silences", 201, json={"minutes": 1})
    assert [one["number"] for one in await hub.ask("GET", "/v1/sites/unl.edu/silences")] == [made["number"]]
    assert await maintenance(hub, "unl.edu") is None
    clock.advance(2 * 3600 + 1)
    assert (await maintenance(hub, "unl.edu"))["number"] == made["number"]  # type: ignore[index]
    clock.advance(3600)
    assert await maintenance(hub, "unl.edu") is None
    await hub.problem(
        "POST",
        "/v1/sites/unl.edu/silences",
        400,
        "bad-request",
        json={"minutes": 5, "begins": (clock.now() - timedelta(hours=1)).isoformat()},
    )


async def test_a_site_ends_its_own_windows_alone(hub: Asked) -> None:
    made = await hub.ask("POST", "/v1/sites/unl.edu/silences", 201, json={"minutes": 60})
    await hub.problem("DELETE", f"/v1/sites/other.edu/silences/{made['number']}", 404, "not-found")
    await hub.ask("DELETE", f"/v1/sites/unl.edu/silences/{made['number']}", 204)


def test_a_silence_covers_what_happens_between_its_begin_and_its_end(clock: FakeClock) -> None:
    now = clock.now()
    alarm = Alarm(1, "k", AlarmKind.SITE_DOWN, None, "unl.edu", "", "it is away", "look", now)
    ahead = Silence(1, now + timedelta(hours=2), "ops", site="unl.edu", begins=now + timedelta(hours=1))
    covered = [ahead.covers(alarm, now + timedelta(minutes=minutes)) for minutes in (0, 59, 60, 119, 120)]
    assert covered == [False, False, True, True, False]


async def test_a_site_is_told_of_itself_by_receivers_of_its_own(hub: Asked) -> None:
    wanted = {"receiver": "noc", "kind": "webhook", "address": "https://noc.unl.edu/secret"}
    path = "/v1/sites/unl.edu/alarm-receivers"
    await hub.ask("POST", path, 201, json=wanted)
    await hub.problem("POST", path, 409, "already-there", json=wanted)
    await hub.ask("POST", "/v1/sites/other.edu/alarm-receivers", 201, json=wanted)
    assert [one["owner"] for one in await hub.ask("GET", path)] == ["unl.edu"]
    assert await hub.ask("GET", "/v1/alarm-receivers") == []
    await hub.ask("POST", f"{path}/noc/test", 204)
    assert isinstance(hub.runtime.alarms, Told)
    assert hub.runtime.alarms.tests == ["noc"]
    assert "secret" not in (await hub.client.get("/v1/audit")).text
    await hub.problem("POST", path, 400, "bad-request", json=wanted | {"receiver": "am", "kind": "alertmanager"})
    for number in range(9):
        await hub.ask("POST", path, 201, json=wanted | {"receiver": f"noc{number}"})
    await hub.problem("POST", path, 409, "limit-reached", json=wanted | {"receiver": "one-too-many"})
    await hub.ask("DELETE", f"{path}/noc", 204)
    await hub.problem("DELETE", f"{path}/noc", 404, "not-found")


def test_it_hears_of_its_own_site_alone(clock: FakeClock) -> None:
    receiver = Receiver("noc", ReceiverKind.WEBHOOK, "https://noc/", owner="unl.edu")
    of = [
        Alarm(1, "k", AlarmKind.SITE_DOWN, None, site, "", "", "", clock.now()) for site in ("unl.edu", "other", None)
    ]
    assert [receiver.wants(alarm) for alarm in of] == [True, False, False]


async def maintenance(hub: Asked, site: str) -> dict[str, object] | None:
    (found,) = [one for one in (await hub.ask("GET", "/v1/overview"))["sites"] if one["site"] == site]
    window: dict[str, object] | None = found["maintenance"]
    return window
