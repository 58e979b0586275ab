"""Sources of WIS2 over the api: their brokers, their accounts, and what could not be fetched."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from downburst.domain.bridges import CentreDay, Ended, Hole, Last, Notice, PassedOver, SourceNow, Standing, State
from downburst.domain.bridges.signs import BridgesChanged
from downburst.foundation.clock import FakeClock
from unit.api.conftest import Asked
from unit.api.test_configuration import site_and_feed

URL = "mqtts://globalbroker.example"
WANTED: dict[str, Any] = {
    "bridge": "dwd",
    "feed": "NGRID",
    "brokers": [{"url": URL, "user": "me", "password": "secret-word"}],
    "topics": ["cache/a/wis2/de-dwd/data/core/#", "origin/a/wis2/de-dwd/data/core/#"],
}


async def test_a_source_is_added_changed_and_removed_and_its_password_shown_to_nobody(hub: Asked) -> None:
    await site_and_feed(hub)
    with hub.runtime.bus.subscribe(BridgesChanged) as changes:
        made = await hub.ask("POST", "/v1/bridges", 201, json=WANTED)
        assert (made["bridge"], made["enabled"], made["products"]["coming"]) == ("dwd", True, 0)
        (broker,) = made["brokers"]
        assert (broker["url"], broker["connected_at"], broker["fault"]) == (URL, None, "not connected yet")
        assert "use cache/" in made["advice"][0]
        changed = await hub.ask("PATCH", "/v1/bridges/dwd", json={"enabled": False, "bytes_per_day": 10**9})
        assert changed["brokers"][0]["fault"] == "switched off"
        assert await hub.ask("GET", "/v1/bridges/dwd") == changed
        assert await hub.ask("GET", "/v1/bridges") == [changed]
        assert "secret-word" not in str(made) + str(changed)
        await hub.ask("DELETE", "/v1/bridges/dwd", 204)
        await hub.problem("GET", "/v1/bridges/dwd", 404, "not-found")
        heard = aiter(changes)
        assert [await anext(heard) for _ in range(3)] == [BridgesChanged()] * 3


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"feed": "NONE"}, 404, "not-found"),
        ({"brokers": []}, 400, "bad-request"),
        ({"brokers": [{"url": "http://x"}]}, 400, "bad-request"),
        ({"brokers": [{"url": "mqtt://user:secret@x"}]}, 400, "bad-request"),
        ({"topics": ["#"]}, 400, "bad-request"),
        ({"topics": []}, 400, "bad-request"),
        ({"bytes_per_day": 0}, 400, "bad-request"),
        ({"bridge": "DWD"}, 400, "bad-request"),
    ],
)
async def test_impossible_sources_are_refused(hub: Asked, change: dict[str, object], status: int, code: str) -> None:
    await site_and_feed(hub)
    await hub.problem("POST", "/v1/bridges", status, code, json=WANTED | change)
    assert await hub.ask("GET", "/v1/bridges") == []


async def test_the_state_of_brokers_is_shown_while_the_source_is_at_work(hub: Asked, clock: FakeClock) -> None:
    await site_and_feed(hub)
    await hub.ask("POST", "/v1/bridges", 201, json=WANTED)
    now = SourceNow({URL: Standing(clock.now(), session_present=True, bound=2, last_at=clock.now(), fault="")})
    now.passed_over.append(
        PassedOver(clock.now(), URL, "cache/a/wis2/x", "refused", "the message is no JSON in UTF-8")
    )
    hub.runtime.live.bridges.sources["dwd"] = now
    (broker,) = (await hub.ask("GET", "/v1/bridges/dwd"))["brokers"]
    assert (broker["bound"], broker["session_present"], broker["fault"]) == (2, True, "")
    (passed_over,) = await hub.ask("GET", "/v1/bridges/dwd/passed-over")
    assert passed_over["sentence"] == "the message is no JSON in UTF-8"


async def test_the_speed_of_a_source_is_that_of_the_broker_that_is_ahead(hub: Asked, clock: FakeClock) -> None:
    await site_and_feed(hub)
    second = "mqtt://second.example"
    brokers = [*WANTED["brokers"], {"url": second}]
    made = await hub.ask("POST", "/v1/bridges", 201, json=WANTED | {"brokers": brokers})
    assert made["pace"] == dict.fromkeys(made["pace"]) | {"products": 0}
    connected = Standing(clock.now(), bound=2, last_at=clock.now(), fault="")
    now = hub.runtime.live.bridges.sources["dwd"] = SourceNow({URL: connected, second: replace(connected, bound=1)})
    for url, delay_s in ((URL, 4.0), (second, 90.0)):
        now.paces[url].count(clock.now())
        now.paces[url].heard(clock.now() - timedelta(seconds=delay_s), clock.now())
    now.latencies.add(6.5)
    one, other = (found := await hub.ask("GET", "/v1/bridges/dwd"))["brokers"]
    assert (one["health"], one["messages_per_s"], one["delay_s"]) == ("good", pytest.approx(1 / 60), 4.0)
    assert (other["health"], other["sentence"]) == ("error", "bound to 1 of 2 topics")
    pace = found["pace"]
    assert (pace["behind_s"], pace["products"], pace["p50_s"], pace["p99_s"]) == (4.0, 1, 6.5, 6.5)
    last = Last("31e9d66a-cd83-4174-9429-b932f1abe1be", ("de-dwd/1", "ab"), clock.now(), State.COMING)
    notice = Notice("dwd", "de-dwd/1", last, "cache/a/wis2/de-dwd/data/core/weather", b"{}", clock.now(), "de-dwd")
    with hub.runtime.ledger.transaction() as tx:
        tx.wis2.notices.take([notice])
    clock.advance(600)
    found = await hub.ask("GET", "/v1/bridges/dwd")
    assert found["pace"]["behind_s"] == 600, "the oldest product that is still to be fetched"
    clock.advance(3_600)
    assert (await hub.ask("GET", "/v1/bridges/dwd"))["brokers"][0]["health"] == "warning"


async def test_failed_products_accounts_and_holes_are_listed_and_tried_again(hub: Asked, clock: FakeClock) -> None:
    await site_and_feed(hub)
    await hub.ask("POST", "/v1/bridges", 201, json=WANTED)
    last = Last("31e9d66a-cd83-4174-9429-b932f1abe1be", ("de-dwd/1", "ab"), clock.now(), State.COMING)
    notice = Notice("dwd", "de-dwd/1", last, "cache/a/wis2/de-dwd/data/core/weather", b"{}", clock.now(), "de-dwd")
    with hub.runtime.ledger.transaction() as tx:
        tx.wis2.notices.take([notice, replace(notice, data_id="de-dwd/2")])
        tx.wis2.notices.settle("dwd", [Ended(notice, State.FAILED, "the server answers with status 404")])
        tx.wis2.days.add([CentreDay("dwd", "de-dwd", clock.now().date(), products=2, bytes=1_000, copies=5)])
        tx.wis2.holes.add(Hole("dwd", URL, clock.now(), clock.now(), "the broker lost the session"))
    (failed,) = await hub.ask("GET", "/v1/bridges/dwd/failed")
    assert (failed["data_id"], failed["reason"]) == ("de-dwd/1", "the server answers with status 404")
    (centre,) = await hub.ask("GET", "/v1/bridges/dwd/centres")
    assert (centre["centre"], centre["bytes"], centre["copies"]) == ("de-dwd", 1_000, 5)
    (hole,) = await hub.ask("GET", "/v1/bridges/dwd/holes")
    assert (hole["reason"], hole["filled_at"]) == ("the broker lost the session", None)
    counts = await hub.ask("GET", "/v1/bridges/dwd")
    assert (counts["products"]["coming"], counts["products"]["failed"]) == (1, 1)
    assert await hub.ask("POST", "/v1/bridges/dwd/failed/retry") == {"products": 1}
    assert await hub.ask("GET", "/v1/bridges/dwd/failed") == []
    for path in ("failed", "centres", "passed-over", "holes"):
        await hub.problem("GET", f"/v1/bridges/none/{path}", 404, "not-found")


async def test_logins_at_origins_are_stored_and_shown_without_their_secrets(hub: Asked) -> None:
    await site_and_feed(hub)
    logins = [
        {"host": "data.example", "user": "me", "password": "secret-word"},
        {"host": "b", "token": "secret-word"},
    ]
    wanted = WANTED | {"logins": logins, "replay_url": "https://replay.example"}
    made = await hub.ask("POST", "/v1/bridges", 201, json=wanted)
    assert made["logins"] == [{"host": "data.example", "user": "me"}, {"host": "b", "user": None}]
    assert made["replay_url"] == "https://replay.example"
    with hub.runtime.ledger.transaction(writes=False) as tx:
        assert [one.password or one.token for one in tx.wis2.sources.one("dwd").logins] == ["secret-word"] * 2
    for wrong in ({"logins": [logins[0] | {"token": "secret-word"}]}, {"logins": [{"host": "a b"} | logins[1]] * 2}):
        problem = await hub.problem("PATCH", "/v1/bridges/dwd", 400, "bad-request", json=wrong)
        assert "secret-word" not in str(problem)
    await hub.problem("PATCH", "/v1/bridges/dwd", 400, "bad-request", json={"replay_url": "ftp://replay.example"})
    changed = await hub.ask("PATCH", "/v1/bridges/dwd", json={"logins": logins[1:], "replay_url": None})
    assert (changed["logins"], changed["replay_url"]) == (made["logins"][1:], None)
    assert "secret-word" not in str(await hub.ask("GET", "/v1/audit")) + str(made) + str(changed)
