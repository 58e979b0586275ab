"""Upstreams over the api: a hub becomes a site of another one."""

from hashlib import sha256

import pytest

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
