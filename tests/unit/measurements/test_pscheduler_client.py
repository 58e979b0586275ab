"""The client of pScheduler over recorded conversations.

The conversations follow pScheduler's documented routes (`pschedulerapiserver/{tasks,runs,tests}.py`, release 5.2); no
pScheduler server was run for them. Its own validators judge the tasks in `tests/peers/test_perfsonar_peers.py`.
"""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from downburst.domain.measurements import MeasuredKind
from downburst.foundation.errors import BadInput, DownburstError, Failure, NotFound
from downburst_measurements.pscheduler import MOST_BYTES, PScheduler, Run
from downburst_measurements.tasks import Task

SERVER = "https://ps.unl.edu/pscheduler"
TASK = f"{SERVER}/tasks/4f0d3e33-2d8e-4a5b-9d4e-6d2c5f3a1b11"
ARCHIVE = "https://hub.example.edu/v1/measurements/archive/dbm_secret"
RECORDED = json.loads((Path(__file__).parents[2] / "golden" / "pscheduler" / "conversation.json").read_text())
LATENCY = Task(MeasuredKind.LATENCY, "ps.unl.edu", "192.0.2.9", ARCHIVE)


def recorded(asked: list[httpx.Request]) -> httpx.MockTransport:
    """A pScheduler that answers what was recorded."""

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        one = RECORDED[f"{request.method} {request.url.path}"]
        return httpx.Response(one["status"], json=one["body"]) if "body" in one else httpx.Response(one["status"])

    return httpx.MockTransport(answer)


def answering(*answers: httpx.Response) -> PScheduler:
    left = list(answers)
    return PScheduler(SERVER, transport=httpx.MockTransport(lambda _: left.pop(0)))


def test_a_task_is_made_followed_and_ended() -> None:
    asked: list[httpx.Request] = []
    with PScheduler(SERVER, login=("anna", "secret"), transport=recorded(asked)) as scheduler:
        assert "latency" in scheduler.tests()
        assert scheduler.add(LATENCY) == TASK
        finished, failed = scheduler.runs(TASK)
        scheduler.end(TASK)
    assert finished == Run(finished.url, "finished", "2026-06-01T11:55:00Z", "2026-06-01T11:55:15Z", "")
    assert (failed.state, failed.error) == ("failed", "owping: connection refused")
    assert json.loads(asked[1].content) == LATENCY.body() == RECORDED[f"POST {httpx.URL(SERVER).path}/tasks"]["sent"]
    assert asked[2].url.params["limit"] == "10"
    assert all(request.headers["authorization"].startswith("Basic ") for request in asked)


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        (MeasuredKind.LATENCY, {"packet-count": 100, "packet-interval": 0.1}),
        (MeasuredKind.LATENCYBG, {"packet-interval": 0.1, "duration": "PT10S"}),
        (MeasuredKind.RTT, {"count": 100}),
        (MeasuredKind.THROUGHPUT, {"duration": "PT10S"}),
    ],
)
def test_a_task_names_its_test_and_this_hub(kind: MeasuredKind, spec: dict[str, Any]) -> None:
    body = Task(kind, "PS.unl.edu", "2001:DB8::1", ARCHIVE, until="2026-07-01T00:00:00Z").body()
    assert body["test"]["spec"] == {"schema": 1, "source": "ps.unl.edu", "dest": "2001:db8::1"} | spec
    assert body["archives"][0]["data"]["_url"] == ARCHIVE
    assert body["archives"][0]["data"]["verify-ssl"] is True
    repeats = {} if kind is MeasuredKind.LATENCYBG else {"repeat": "PT900S"}
    assert body["schedule"] == {"slip": "PT5M", "until": "2026-07-01T00:00:00Z"} | repeats


@pytest.mark.parametrize("bounds", [{"repeat_s": 59}, {"duration_s": 0}, {"packets": 10_001}])
def test_a_task_out_of_bounds_is_refused(bounds: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="should be from"):
        Task(MeasuredKind.RTT, "a", "b", ARCHIVE, **bounds)


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (
            httpx.Response(403, text="Task forbidden by limits:\n too long"),
            Failure,
            "403: Task forbidden by limits: too",
        ),
        (httpx.Response(404), NotFound, "refuses with 404"),
        (httpx.Response(302, headers={"location": "http://10.0.0.1/"}), Failure, "refuses with 302"),
        (httpx.Response(200, text="<html>"), Failure, "is not JSON"),
        (httpx.Response(200, json={"a": 1}), Failure, "is not the address of a task"),
        (
            httpx.Response(200, json="https://elsewhere.example/pscheduler/tasks/1"),
            Failure,
            "not below its own tasks",
        ),
        (httpx.Response(200, content=b" " * (MOST_BYTES + 1)), Failure, "is not read"),
    ],
)
def test_answers_that_are_none_are_refused(answer: httpx.Response, error: type[DownburstError], said: str) -> None:
    with pytest.raises(error) as raised, answering(answer) as scheduler:
        scheduler.add(LATENCY)
    assert said in raised.value.sentence
    assert "\n" not in raised.value.sentence


def test_a_run_of_another_server_is_not_asked() -> None:
    with (
        pytest.raises(Failure, match="not below its own"),
        answering(httpx.Response(200, json=["http://169.254.169.254/latest"])) as scheduler,
    ):
        scheduler.runs(TASK)


def test_a_server_that_is_away_is_named() -> None:
    def away(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("connection refused", request=request)

    with (
        pytest.raises(Failure, match=r"ps\.unl\.edu/pscheduler can't be asked: connection refused"),
        PScheduler(SERVER, transport=httpx.MockTransport(away)) as scheduler,
    ):
        scheduler.tests()


@pytest.mark.parametrize("url", ["ftp://x/", "ps.unl.edu", "https://u:p@x/pscheduler", ""])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(BadInput, match="no address of a pScheduler"):
        PScheduler(url)


def test_a_password_is_not_sent_in_the_clear() -> None:
    with pytest.raises(BadInput, match="not sent over plain HTTP"):
        PScheduler("http://ps.unl.edu/pscheduler", login=("anna", "secret"))
