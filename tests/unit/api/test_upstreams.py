"""Upstreams over the api: a hub becomes a site of another one."""

from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

import pytest

from downburst.domain.events import NodeChanged, UpstreamChanged
from downburst.foundation.clock import FakeClock
from unit.api.conftest import Asked
from unit.api.test_configuration import site_and_feed

TOKEN = f"dbt1.{'ab' * 32}.secret-words"
WANTED = {"upstream": "unidata", "address": "idd.example.edu:7370", "token": TOKEN, "feeds": ["NGRID"]}


async def test_an_upstream_reaches_the_node_and_its_token_nobody_else(hub: Asked) -> None:
    await site_and_feed(hub)
    made = await hub.ask("POST", "/v1/upstreams", 201, json=WANTED)
    assert "token" not in made
    assert hub.node.fake.upstreams == [WANTED]
    listed = await hub.ask("GET", "/v1/upstreams")
    assert (listed[0]["upstream"], listed[0]["feeds"], listed[0]["connected"]) == ("unidata", ["NGRID"], False)
    assert "secret-words" not in str(listed)
    await hub.problem("POST", "/v1/upstreams", 409, "already-there", json=WANTED)
    await hub.ask("DELETE", "/v1/upstreams/unidata", 204)
    assert hub.node.fake.upstreams == []
    await hub.problem("DELETE", "/v1/upstreams/unidata", 404, "not-found")


async def test_an_upstream_that_the_node_refuses_is_not_kept(hub: Asked) -> None:
    await site_and_feed(hub)
    own = f"dbt1.{sha256(b'fake').hexdigest()}.secret"
    problem = await hub.problem("POST", "/v1/upstreams", 400, "bad-request", json=WANTED | {"token": own})
    assert "this hub itself" in problem["detail"]
    assert await hub.ask("GET", "/v1/upstreams") == []
    assert hub.node.fake.upstreams == []


async def test_the_overview_tells_how_it_stands_with_an_upstream(hub: Asked, clock: FakeClock) -> None:
    await site_and_feed(hub)
    await hub.ask("POST", "/v1/upstreams", 201, json=WANTED)
    shown = {"upstream": "unidata", "address": "idd.example.edu:7370", "feeds": ["NGRID"]}
    assert await _upstreams(hub) == [shown | {"connected": False, "since": None, "hub": None, "reason": None}]
    connected_at = clock.now()
    hub.runtime.live.apply(UpstreamChanged("unidata", "connected", connected_at, "idd"))
    (seen,) = await _upstreams(hub)
    assert (seen["connected"], seen["since"], seen["hub"]) == (True, written(connected_at), "idd")
    assert await _faults(hub) == []
    away_at = connected_at + timedelta(seconds=60)
    for seconds in (60, 70):
        at = connected_at + timedelta(seconds=seconds)
        hub.runtime.live.apply(UpstreamChanged("unidata", "closed", at, reason="no answer"))
    (seen,) = await _upstreams(hub)
    assert (seen["connected"], seen["since"], seen["hub"]) == (False, written(away_at), "idd")
    (fault,) = await _faults(hub)
    assert fault["sentence"] == "no connection to the upstream unidata at idd.example.edu:7370: no answer"
    assert "ask the operator of unidata" in fault["next"]
    await hub.ask("DELETE", "/v1/upstreams/unidata", 204)
    assert (await _upstreams(hub), await _faults(hub)) == ([], [])


async def test_without_a_node_no_upstream_is_connected(hub: Asked, clock: FakeClock) -> None:
    await site_and_feed(hub)
    await hub.ask("POST", "/v1/upstreams", 201, json=WANTED)
    hub.runtime.live.apply(UpstreamChanged("unidata", "connected", clock.now(), "idd"))
    hub.runtime.live.apply(NodeChanged(clock.now(), running=False, restarts=0))
    (seen,) = await _upstreams(hub)
    assert (seen["connected"], seen["reason"]) == (False, "this hub's node is not running")


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"feeds": ["NONE"]}, 404, "unknown-feed"),
        ({"address": "no port"}, 400, "bad-request"),
        ({"token": "hello"}, 400, "bad-request"),
        ({"upstream": "Not A Name"}, 400, "bad-request"),
    ],
)
async def test_a_bad_upstream_is_refused(hub: Asked, change: dict[str, object], status: int, code: str) -> None:
    await site_and_feed(hub)
    await hub.problem("POST", "/v1/upstreams", status, code, json=WANTED | change)
    assert await hub.ask("GET", "/v1/upstreams") == []


async def _upstreams(hub: Asked) -> Any:
    return (await hub.ask("GET", "/v1/overview"))["upstreams"]


async def _faults(hub: Asked) -> list[dict[str, str]]:
    faults = (await hub.ask("GET", "/v1/overview"))["faults"]
    return [fault for fault in faults if "upstream" in fault["sentence"]]


def written(moment: datetime) -> str:
    """The moment in the API's format."""
    return moment.isoformat().replace("+00:00", "Z")
