"""The receiver of pScheduler's archiver, and the results on their sites."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from unit.api.conftest import Asked

GOLDEN = Path(__file__).parents[2] / "golden" / "pscheduler"
POINT: dict[str, Any] = {"point": "unl", "addresses": ["ps.unl.edu"], "site": "unl.edu"}


def recorded(name: str, start: str = "") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text())
    if start:
        found["schedule"]["start"] = start
    return found


@pytest.fixture
async def pointed(hub: Asked) -> tuple[Asked, str]:
    await hub.ask("POST", "/v1/sites", 201, json={"site": "unl.edu"})
    made = await hub.ask("POST", "/v1/test-points", 201, json=POINT)
    assert made["archive_path"] == f"/v1/measurements/archive/{made['token']}"
    return hub, made["archive_path"]


async def archived(hub: Asked, path: str, body: object, *, method: str = "POST") -> httpx.Response:
    """As the archiver sends it: without a login."""
    transport = hub.client._transport
    async with httpx.AsyncClient(transport=transport, base_url="http://hub") as archiver:
        return await archiver.request(method, path, json=body)


async def test_a_result_stands_at_its_site(pointed: tuple[Asked, str]) -> None:
    hub, path = pointed
    body = recorded("latency", hub.runtime.clock.now().isoformat())
    for method in ("POST", "PUT"):
        answer = await archived(hub, path, body, method=method)
        assert (answer.status_code, answer.json()) == (201, {"taken": True, "reason": ""})
    (shown,) = await hub.ask("GET", "/v1/sites/unl.edu/measurements")
    assert shown["figure"]["value"] == pytest.approx(42_100)
    assert (shown["figure"]["unit"], shown["figure"]["error"]) == ("us", pytest.approx(820))
    assert (shown["source_site"], shown["destination_site"], shown["point"]) == ("unl.edu", None, "unl")
    assert await hub.ask("GET", "/v1/measurements?point=unl") == [shown]
    assert await hub.ask("GET", "/v1/measurements?point=other") == []
    await hub.problem("GET", "/v1/sites/nowhere/measurements", 404, "not-found")


async def test_a_result_without_a_figure_is_kept_with_the_reason(pointed: tuple[Asked, str]) -> None:
    hub, path = pointed
    body = recorded("latency", hub.runtime.clock.now().isoformat())
    body["test"]["type"] = "trace"
    answer = await archived(hub, path, body)
    assert answer.status_code == 201
    assert answer.json()["taken"] is False
    (shown,) = await hub.ask("GET", "/v1/measurements")
    assert (shown["figure"], shown["kind"]) == (None, "trace")
    assert shown["refused"].startswith("results of trace are not read here")


async def test_a_wrong_token_gets_nothing_in_and_is_counted(pointed: tuple[Asked, str]) -> None:
    hub, path = pointed
    wrong = path[:-3] + "xxx"
    answers = [await archived(hub, wrong, recorded("latency")) for _ in range(31)]
    assert {answer.status_code for answer in answers[:30]} == {404}
    assert answers[30].status_code == 429
    assert await hub.ask("GET", "/v1/measurements") == []
    listed = await hub.ask("GET", "/v1/test-points")
    assert path.rpartition("/")[2] not in json.dumps(listed), "a token is shown once"
    await hub.ask("DELETE", "/v1/test-points/unl", 204)
    assert (await archived(hub, path, recorded("latency"))).status_code in (404, 429)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", "no JSON"),
        (b"[]", "no result of pScheduler"),
        (b"[" * 100_000, ""),
        (b'{"id": "' + b"x" * 1_100_000 + b'"}', "1048576 bytes"),
    ],
)
async def test_a_body_of_something_else_is_refused(pointed: tuple[Asked, str], content: bytes, said: str) -> None:
    hub, path = pointed
    problem = await hub.client.request("POST", path, content=content)
    assert problem.status_code in (400, 413)
    assert said in problem.json()["detail"]
    assert await hub.ask("GET", "/v1/measurements") == []


async def test_test_points_are_checked(pointed: tuple[Asked, str]) -> None:
    hub, _ = pointed
    await hub.problem("POST", "/v1/test-points", 409, "already-there", json=POINT)
    await hub.problem(
        "POST", "/v1/test-points", 404, "not-found", json=POINT | {"point": "b", "addresses": ["b"], "site": "x"}
    )
    await hub.problem("DELETE", "/v1/test-points/other", 404, "not-found")
