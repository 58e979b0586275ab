"""`downburst measurements`: results and test points of a hub, and tasks at a test point's pScheduler."""

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from downburst_app.cli import main
from downburst_app.cli.sites import measurements as module
from downburst_measurements.tasks import Task

FIGURE: dict[str, Any] = {
    "value": 12_345.0,
    "unit": "us",
    "error": 250.0,
    "lost_share": 0.01,
    "note": "",
}
RESULT: dict[str, Any] = {
    "at": "2026-01-01T00:00:00Z",
    "kind": "latency",
    "source": "ps.unl.edu",
    "source_site": "unl.edu",
    "destination": "ps.example.edu",
    "destination_site": None,
    "figure": FIGURE,
    "point": "unl",
    "refused": "",
}
FAILED = RESULT | {"figure": None, "refused": "the archived run has no result"}
THROUGHPUT = RESULT | {"kind": "throughput", "figure": FIGURE | {"value": 9.4e8, "unit": "bps", "lost_share": None}}
POINT = {"point": "unl", "site": "unl.edu", "addresses": ["ps.unl.edu", "192.0.2.7"]}
MADE = POINT | {"token": "secret-token", "archive_path": "/v1/measurements/archive/secret-token"}


class Hub:
    """Answers by method and path; keeps the requests."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, Any]] = []
        self.answers: dict[str, Any] = {
            "GET v1/measurements": [RESULT, THROUGHPUT, FAILED],
            "GET v1/sites/unl.edu/measurements": [RESULT],
            "GET v1/test-points": [POINT],
            "POST v1/test-points": MADE,
            "DELETE v1/test-points/unl": None,
        }

    def ask(self, method: str, *path: str, params: Any = None, json: Any = None) -> Any:
        self.requests.append((method, "/".join(path), params or json))
        return self.answers[f"{method} {'/'.join(path)}"]


class Scheduler:
    """The pScheduler of a test point, as far as the commands use it; the real client has tests of its own."""

    made: ClassVar[list["Scheduler"]] = []

    def __init__(self, server: str, *, login: tuple[str, str] | None, ca_file: Path | None) -> None:
        self.server, self.login, self.ca_file = server, login, ca_file
        self.tasks: list[Task] = []
        self.ended: list[str] = []
        Scheduler.made.append(self)

    def __enter__(self) -> "Scheduler":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def add(self, task: Task) -> str:
        self.tasks.append(task)
        return f"{self.server}/tasks/1"

    def end(self, task: str) -> None:
        self.ended.append(task)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    hub = Hub()
    monkeypatch.setattr(module, "HubClient", lambda _: hub)
    return hub


@pytest.fixture
def scheduler(monkeypatch: pytest.MonkeyPatch) -> type[Scheduler]:
    Scheduler.made = []
    monkeypatch.setattr("downburst_measurements.pscheduler.PScheduler", Scheduler)
    return Scheduler


def ended(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(["measurements", *arguments])
    return int(end.value.code or 0)


def test_results_are_listed_with_their_error_and_those_without_a_figure_with_the_reason(
    hub: Hub, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert ended("list", "--point", "unl", "--wide") == 0
    out = capsys.readouterr().out
    assert "12.345 ms, +/- 0.250 ms" in out
    assert "ps.unl.edu (unl.edu)" in out
    assert "940 Mb/s" in out
    assert "the archived run has no result" in out
    assert hub.requests == [("GET", "v1/measurements", {"limit": 50, "point": "unl"})]


def test_results_of_a_site_are_asked_for_by_it_alone(hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("list", "--site", "unl.edu", "--json") == 0
    assert json.loads(capsys.readouterr().out) == [RESULT]
    assert ended("list", "--site", "unl.edu", "--point", "unl") == 2
    assert "exclude each other" in capsys.readouterr().err


def test_the_token_of_a_new_test_point_goes_to_a_file_that_its_owner_alone_reads(
    hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = tmp_path / "unl.token"
    arguments = ["points", "add", "unl", "ps.unl.edu", "192.0.2.7", "--site", "unl.edu", "--token-file", str(token)]
    assert ended(*arguments) == 0
    assert token.read_text() == "secret-token\n"
    assert token.stat().st_mode & 0o777 == 0o600
    assert "secret-token" not in capsys.readouterr().out
    asked = len(hub.requests)
    assert ended(*arguments) == 2
    assert "exists already" in capsys.readouterr().err
    assert len(hub.requests) == asked, "the hub made no second token"


def test_test_points_are_listed_and_removed(hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("points", "list") == 0
    assert "ps.unl.edu, 192.0.2.7" in capsys.readouterr().out
    assert ended("points", "remove", "unl") == 0
    assert "test point unl removed" in capsys.readouterr().out


def test_a_task_is_given_with_the_archive_and_its_token(
    scheduler: type[Scheduler], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = tmp_path / "token"
    token.write_text("secret-token\n")
    server = "https://ps.unl.edu/pscheduler"
    ends = ["--from", "ps.unl.edu", "--to", "ps.example.edu"]
    archive = ["--archive", "https://hub.example.edu/", "--token-file", str(token)]
    assert ended("task", server, "latency", *ends, *archive, "--repeat-minutes", "0") == 0
    assert capsys.readouterr().out.strip() == f"{server}/tasks/1"
    (task,) = scheduler.made[0].tasks
    assert (task.source, task.destination, task.repeat_s) == ("ps.unl.edu", "ps.example.edu", None)
    assert task.archive_url == "https://hub.example.edu/v1/measurements/archive/secret-token"
    assert ended("end-task", server, f"{server}/tasks/1") == 0
    assert scheduler.made[1].ended == [f"{server}/tasks/1"]


def test_a_user_needs_a_password_and_a_token_file_is_read(
    scheduler: type[Scheduler], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended("runs", "https://ps/pscheduler", "https://ps/pscheduler/tasks/1", "--user", "eve") == 2
    assert "belong together" in capsys.readouterr().err
    ends = ["--from", "a", "--to", "b", "--archive", "https://h", "--token-file", str(tmp_path / "none")]
    assert ended("task", "https://ps/pscheduler", "rtt", *ends) == 2
    assert "can't be read" in capsys.readouterr().err
    assert not scheduler.made
