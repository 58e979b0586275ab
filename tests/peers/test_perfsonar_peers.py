"""pScheduler's own HTTP archiver posts to a hub; its own validators judge the tasks that our client sends.

docs/measuring-systems.md has the directory's layout. pScheduler's server is not run.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from downburst.domain.measurements import MeasuredKind
from downburst_measurements.tasks import Task
from kit.peers.found import prepared
from kit.whole_hub import WholeHub

pytestmark = pytest.mark.peers

GOLDEN = Path(__file__).parents[1] / "golden" / "pscheduler"
RECORD = "\x1e"
"""Begins each text of a JSON sequence (RFC 7464)."""


class PSchedulerCode:
    """The source of pScheduler, with the Python that runs it."""

    def __init__(self) -> None:
        self.python, self.source = prepared("perfsonar-venv/bin/python", "pscheduler")

    def run(self, program: str, given: str) -> str:
        """Runs a program of pScheduler with this input; returns its output."""
        path = self.source / program
        done = subprocess.run(
            [self.python, path],
            input=given,
            env=os.environ | {"PYTHONPATH": str(self.source / "python-pscheduler" / "pscheduler")},
            cwd=path.parent,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def archived(self, data: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
        """The archiver's word on one result."""
        given = json.dumps({"data": data, "result": result, "attempts": 0, "last-attempt": None})
        said: dict[str, Any] = json.loads(
            self.run("pscheduler-archiver-http/http/archive", f"{RECORD}{given}\n").strip().strip(RECORD)
        )
        return said


@pytest.fixture
def pscheduler() -> PSchedulerCode:
    return PSchedulerCode()


@pytest.fixture
def hub(tmp_path: Path, pscheduler: PSchedulerCode) -> Iterator[WholeHub]:
    del pscheduler  # Without it, the test is skipped before a hub starts.
    running = WholeHub(tmp_path / "hub").start()
    running.ask("POST", "/v1/sites", json={"site": "unl.edu"})
    yield running
    assert running.stop() == 0


def recorded(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text())
    found["schedule"]["start"] = datetime.now(UTC).isoformat()
    return found


def test_results_of_the_real_archiver_stand_at_the_site(hub: WholeHub, pscheduler: PSchedulerCode) -> None:
    point = {"point": "unl", "addresses": ["ps.unl.edu"], "site": "unl.edu"}
    made = hub.ask("POST", "/v1/test-points", json=point)
    data = {"schema": 3, "_url": f"http://{hub.http}{made['archive_path']}", "verify-ssl": True}
    results = [recorded(name) for name in ("latency", "rtt", "throughput")]
    for operation in ("post", "put"):
        for result in results:
            assert pscheduler.archived(data | {"op": operation}, result) == {"succeeded": True}
    shown = hub.ask("GET", "/v1/sites/unl.edu/measurements")
    assert [one["kind"] for one in shown] == ["throughput", "rtt", "latency"], "each once, the newest first"
    assert {one["source_site"] for one in shown} == {"unl.edu"}
    figures = [round(one["figure"]["value"]) for one in shown]
    assert figures == [938_500_000, 84_200, 42_100]


def test_the_archiver_is_refused_with_a_wrong_token(hub: WholeHub, pscheduler: PSchedulerCode) -> None:
    url = f"http://{hub.http}/v1/measurements/archive/dbm_wrong"
    said = pscheduler.archived({"schema": 3, "_url": url, "op": "post"}, recorded("latency"))
    assert said["succeeded"] is False
    assert "404" in said["error"]
    assert hub.ask("GET", "/v1/measurements") == []


@pytest.mark.parametrize("kind", list(MeasuredKind))
def test_pschedulers_validators_take_our_tasks(pscheduler: PSchedulerCode, kind: MeasuredKind) -> None:
    body = Task(kind, "ps.unl.edu", "2001:db8::1", "https://hub.example.edu/v1/measurements/archive/dbm_x").body()
    program = f"pscheduler-test-{kind}/{kind}/spec-is-valid"
    said = json.loads(pscheduler.run(program, json.dumps(body["test"]["spec"])))
    assert said["valid"] is True, said
    archiver = json.loads(
        pscheduler.run("pscheduler-archiver-http/http/data-is-valid", json.dumps(body["archives"][0]["data"]))
    )
    assert archiver["valid"] is True, archiver


def test_pschedulers_validator_refuses_what_is_no_task(pscheduler: PSchedulerCode) -> None:
    spec = {"schema": 1, "source": "ps.unl.edu", "packet-count": "many"}
    said = json.loads(pscheduler.run("pscheduler-test-latency/latency/spec-is-valid", json.dumps(spec)))
    assert said["valid"] is False
