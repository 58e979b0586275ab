"""Every route of the api on both databases: NULs and endless numbers are refused from every client."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from fastapi import APIRouter, FastAPI, Header

from downburst.domain.feeds import Feed
from downburst.domain.sites import Site
from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst_api.app import create_app
from downburst_api.border import values
from downburst_api.border.route_rules import RULES
from downburst_api.http.pagination import write_cursor
from downburst_api.overview import stream
from factories import AUTHORIZATION, runtime

PATHS = sorted((method, path.replace(":anytext", "").replace(":path", "")) for method, path in RULES)
NAMES = re.compile(r"\{[a-z_]+\}")
NUMBERS = (2**53 + 1, 2**63, -(10**30))


@pytest.fixture
async def client(
    tmp_path: Path, ledger: Ledger, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[httpx.AsyncClient]:
    with ledger.transaction() as tx:
        tx.feeds.add(Feed("NGRID"))
        tx.sites.add(Site("a.edu"))
    monkeypatch.setattr(stream, "overviews", _no_overviews)
    made, _ = runtime(tmp_path / "hub", ledger, clock)
    transport = httpx.ASGITransport(create_app(made), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://hub", headers=AUTHORIZATION) as opened:
        yield opened


async def _no_overviews(*_: object) -> AsyncIterator[None]:
    return
    yield


@pytest.mark.parametrize(
    "value", ["\0", *(pytest.param(value, marks=pytest.mark.all) for value in ("NGRID\0", "a\0.edu"))]
)
async def test_a_nul_in_a_path_is_refused(client: httpx.AsyncClient, value: str) -> None:
    for method, path in PATHS:
        for name in NAMES.findall(path):
            filled = NAMES.sub("1", path.replace(name, quote(value)).replace("{feed}", "NGRID"))
            await _refused(client, method, filled)


async def test_a_nul_in_a_query_is_refused(client: httpx.AsyncClient) -> None:
    for method, path in PATHS:
        for query in ("site=a%00", "feed=%00", "x%00=1"):
            await _refused(client, method, f"{NAMES.sub('1', path)}?{query}")


async def test_a_nul_in_a_header_is_refused(client: httpx.AsyncClient) -> None:
    for method, path in PATHS:
        for header in ("If-Match", "Idempotency-Key", "Downburst-Origin"):
            await _refused(client, method, NAMES.sub("1", path), headers={header: "a\0b"})


async def test_a_nul_in_a_document_is_refused(client: httpx.AsyncClient) -> None:
    point = await client.post("/v1/test-points", json={"point": "unl", "addresses": ["ps.unl.edu"]})
    # A body is read only from a test point that is known.
    token = point.json()["token"]
    for content in (b'{"site": "\\u0000"}', b'{"a\\u0000": 1}', b'[{"b": ["c\\u0000"]}]'):
        for method, path in PATHS:
            if method in ("POST", "PATCH") or (method == "PUT" and "products" not in path):
                filled = NAMES.sub("1", path.replace("{token}", token) if "/archive/" in path else path)
                await _refused(client, method, filled, content=content)


async def test_an_escaped_backslash_is_no_nul(client: httpx.AsyncClient) -> None:
    document = {"site": "b.edu", "organisation": "C:\\u0000"}
    answer = await client.post("/v1/sites", json=document)
    assert answer.status_code == 201, answer.text
    assert answer.json()["organisation"] == document["organisation"]
    assert (await client.post("/v1/sites", content=b'{"site": "\\u0000')).status_code == 400


@pytest.mark.parametrize(
    "number", [NUMBERS[0], *(pytest.param(number, marks=pytest.mark.all) for number in NUMBERS[1:])]
)
async def test_a_large_number_is_never_a_failure_of_the_hub(client: httpx.AsyncClient, number: int) -> None:
    described = (await client.get("/openapi.json")).json()["paths"]
    for path, methods in described.items():
        filled = NAMES.sub(str(number), path)
        for method, route in methods.items():
            names = [one["name"] for one in route.get("parameters", ()) if one["in"] == "query"]
            for params in ({}, *({name: number} for name in names)):
                answer = await client.request(method, filled, params=params)
                assert answer.status_code in ALLOWED, (method, path, params, answer.text)


@pytest.mark.parametrize(
    "key", ["a\0b", *(pytest.param(key, marks=pytest.mark.all) for key in ("\ud800", 2**63, -1))]
)
async def test_a_made_up_cursor_is_refused(client: httpx.AsyncClient, key: str | int) -> None:
    for method, path in PATHS:
        if method == "GET":
            answer = await client.get(NAMES.sub("1", path), params={"cursor": write_cursor(key)})
            assert answer.status_code in ALLOWED, (path, answer.text)


def test_a_number_without_bounds_is_no_route() -> None:
    router = APIRouter()

    @router.get("/things/{number}")
    async def thing(number: int, x_much: float | None = Header(None, ge=0), name: str = "") -> str:
        return f"{number} {x_much} {name}"

    FastAPI().include_router(router)
    assert values.unbounded([router]) == ["GET /things/{number}: number", "GET /things/{number}: x-much"]


async def _refused(client: httpx.AsyncClient, method: str, path: str, **request: Any) -> None:
    answer = await client.request(method, path, **request)
    assert answer.status_code == 400, (method, path, answer.text)
    assert "NUL" in answer.json()["detail"] or "U+0000" in answer.json()["detail"]


ALLOWED = frozenset({200, 201, 202, 204, 304, 400, 401, 403, 404, 405, 409, 411, 412, 422, 429, 503})
"""Answers of a hub that works; 503 where its node is asked."""
