"""`downburst tracer`: its output, the file of samples, and the page of plots."""

import csv
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from downburst_app.cli import main

FOUND: dict[str, Any] = {
    "site": "unl.edu",
    "unable": None,
    "missed_ticks": 0,
    "damaged": 3,
    "recorded_since": "2026-01-01T00:00:00+00:00",
    "recorded_until": "2026-01-01T00:10:00+00:00",
    "complete": True,
    "variables": ["rtt", "bytes_acked"],
    "counters": ["bytes_acked"],
    "connections": [
        {
            "local": "192.0.2.1:7370",
            "peer": "192.0.2.9:40000",
            "role": "session",
            "samples": [[0, 20_000, 5], [100_000, None, 8], [200_000, 21_000, 8]],
            "verdict": {
                "leading": "network-loss",
                "sentence": "In 75 % of the time the network lost packets.",
                "seconds": 4.0,
                "shares": [{"limit": "network-loss", "share": 0.75}, {"limit": "pacing", "share": 0.0}],
            },
            "stalls": [
                {
                    "begun_at": "2026-01-01T00:00:01+00:00",
                    "until": "2026-01-01T00:00:02.500000+00:00",
                    "waiting_bytes": 900,
                    "ended": False,
                }
            ],
        }
    ],
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """Answers every request with `FOUND` and records the requests."""
    requests: list[tuple[str, Any]] = []

    def request(method: str, url: str, **given: Any) -> httpx.Response:
        requests.append((url.partition("/v1/")[2], given.get("params")))
        return httpx.Response(200, text=json.dumps(FOUND), request=httpx.Request(method, url))

    monkeypatch.setattr(httpx.Client, "request", staticmethod(request))
    return requests


def run(*argv: str, code: int = 0) -> None:
    with pytest.raises(SystemExit) as end:
        main(["tracer", *argv])
    assert end.value.code == code


def test_verdict_shares_and_stalls_are_printed(
    asked: list[tuple[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    run("unl.edu", "--last", "2m", "--variable", "rtt")
    assert asked == [("sites/unl.edu/tracer", {"last_s": 120.0, "points": 2000, "variable": ["rtt"]})]
    shown = capsys.readouterr().out
    assert "network-loss: In 75 % of the time" in shown
    assert "of 4.0 s: network-loss 75%\n" in shown
    assert "stall of 1.5 s from 00:00:01" in shown
    assert "900 bytes waited, and it may last on" in shown
    assert "3 damaged records" in shown


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ((), [["20000", "5"], ["", "8"], ["21000", "8"]]),
        (("--deltas",), [["", "3"], ["21000", "0"]]),
    ],
)
def test_the_file_has_values_or_what_counters_grew_by(
    asked: list[tuple[str, Any]], tmp_path: Path, options: tuple[str, ...], rows: list[list[str]]
) -> None:
    file = tmp_path / "samples.csv"
    run("unl.edu", "--csv", str(file), *options)
    with file.open(newline="") as lines:
        head, *read = csv.reader(lines)
    assert head == ["time", "local", "peer", "role", "rtt", "bytes_acked"]
    assert [row[4:] for row in read] == rows
    assert read[-1][:4] == ["1970-01-01T00:00:00.200000+00:00", "192.0.2.1:7370", "192.0.2.9:40000", "session"]


def test_a_node_that_takes_no_samples_is_said(
    asked: list[tuple[str, Any]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FOUND, "unable", "the kernel does not report sockets")
    monkeypatch.setitem(FOUND, "connections", [])
    run("unl.edu")
    shown = capsys.readouterr().out
    assert "samples are missing: the kernel does not report sockets" in shown
    assert "no connection of unl.edu was recorded in this period; samples are kept since 2026-01-01T00:00:00" in shown


def test_the_page_of_plots_asks_for_its_variables(
    asked: list[tuple[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "plots.html"
    run("unl.edu", "--html", str(file), "--variable", "rtt", "--variable", "bytes_acked")
    assert asked[0][1]["variable"] == ["rtt", "bytes_acked", "total_retrans"]
    run("unl.edu", "--html", str(file))
    assert asked[1][1]["variable"] == []
    assert f"the plots are in {file}; open it in a browser" in capsys.readouterr().out
    assert 'data-seconds="1.500"' in file.read_text()


@pytest.mark.parametrize("option", ["--csv", "--html"])
def test_a_file_that_can_not_be_written_is_named(
    asked: list[tuple[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    run("unl.edu", option, str(tmp_path / "none" / "a.out"), code=1)
    said = f"a.out can't be written: No such file or directory; name another file with {option}"
    assert said in capsys.readouterr().err
