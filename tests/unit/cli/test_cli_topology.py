"""The topology on the command line: requests to the hub, and the text of its answers."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from downburst_app.cli import main
from kit.played_api import TOPOLOGY

PRESENT: dict[str, Any] = {
    **TOPOLOGY,
    "links": [{"cost": 1, "tags": None, **link} for link in TOPOLOGY["links"]],
}
PATH = [{"link": "up", "forward": True, "tag": 100}, {"link": "unl", "forward": True, "tag": None}]
FOUND = {"begin": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:45:00Z", "hub_port": "h", "port": "u", "path": PATH}
WINDOW = {"sentence": "2 Gb/s out and 0 b/s in are free", "found": FOUND}
RATE = {"sentence": "1 Gb/s out is free", "rate_out_bps": 1, "rate_in_bps": 1, "path": PATH}
Ask = Callable[..., tuple[int, list[tuple[str, str, Any, Any]]]]


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Ask:
    requests: list[tuple[str, str, Any, Any]] = []
    answers: dict[str, Any] = {
        "topology": PRESENT,
        "topology/window": WINDOW,
        "topology/rate": RATE,
    }

    def request(method: str, url: str, **given: Any) -> httpx.Response:
        path = url.partition("/v1/")[2]
        requests.append((method, path, given.get("json"), given.get("params")))
        answer = answers[path] | ({"changes": [], "affected": [7], "done": True} if method == "PUT" else {})
        return httpx.Response(200, json=answer, request=httpx.Request(method, url))

    def run(*argv: str, **changed: Any) -> tuple[int, list[tuple[str, str, Any, Any]]]:
        requests.clear()
        answers.update(changed)
        with pytest.raises(SystemExit) as ended:
            main(["topology", *argv])
        return int(ended.value.code or 0), requests

    monkeypatch.setattr(httpx.Client, "request", staticmethod(request))
    return run


def test_links_hosts_and_maintenance_are_shown(ask: Ask, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask("show", "--wide")[0] == 0
    said = capsys.readouterr().out
    for expected in ("vlan 100-149", "chic", "host hub-1: hub-eth0, 10 Gb/s", "maintenance fibre-work of unl: 2027"):
        assert expected in said


def test_the_export_is_what_apply_takes(ask: Ask, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask("export", "--json")[0] == 0
    exported = json.loads(capsys.readouterr().out)["topology"]
    assert exported["hosts"] == TOPOLOGY["hosts"]
    assert exported["links"][1]["cost"] == 3
    assert "cost" not in exported["links"][0]


def test_a_window_is_asked_for_and_its_path_told(ask: Ask, capsys: pytest.CaptureFixture[str]) -> None:
    code, requests = ask("window", "--to", "unl.edu", "--rate", "2G", "--minutes", "45", "--exclude", "wide")
    assert (code, requests[0][:2]) == (0, ("POST", "topology/window"))
    asked = requests[0][2]
    assert (asked["rate_out_bps"], asked["minutes"], asked["exclude"]) == (2_000_000_000, 45.0, ["wide"])
    assert "path: up (tag 100), unl" in capsys.readouterr().out
    none = {"topology/window": {"sentence": "no window", "found": None}}
    assert ask("window", "--to", "unl.edu", "--rate", "2G", "--minutes", "45", "--json", **none)[0] == 1
    assert json.loads(capsys.readouterr().out)["found"] is None


def test_a_rate_is_asked_for(ask: Ask, capsys: pytest.CaptureFixture[str]) -> None:
    code, requests = ask("rate", "--to", "unl.edu", "--begin", "+1h", "--end", "+2h", "--json")
    assert (code, requests[0][2]["order"], requests[0][2]["end"]) == (0, "widest", "+2h")
    assert json.loads(capsys.readouterr().out)["rate_out_bps"] == 1


def test_parts_are_closed_and_reopened(ask: Ask, capsys: pytest.CaptureFixture[str]) -> None:
    times = ("--begin", "2027-04-01T06:00:00Z", "--end", "2027-04-01T08:00:00Z")
    code, requests = ask("close", "fan", "--of", "chic", *times, "--dry-run")
    assert (code, requests[1][0], requests[1][3]) == (0, "PUT", {"dry_run": True})
    assert [one["name"] for one in requests[1][2]["maintenance"]] == ["fibre-work", "fan"]
    assert "circuits with a window in a maintenance: 7; they stay" in capsys.readouterr().out
    _, requests = ask("reopen", "fibre-work")
    assert requests[1][2]["maintenance"] == []
    assert ask("reopen", "nothing")[0] == 2
    assert "there is no maintenance 'nothing'" in capsys.readouterr().err
