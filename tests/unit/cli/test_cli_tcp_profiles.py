"""`downburst tcp-profiles`: requests to the hub, the text of its answers, and refusals before any request."""

import json
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from downburst_app.cli import main

NONE = dict.fromkeys(("congestion", "send_buffer_bytes", "receive_buffer_bytes", "pacing_bps", "connections"))
TRIAL = {
    "step": "kept",
    "knobs": NONE | {"congestion": "bbr"},
    "before": NONE,
    "canaries": 1,
    "others": 3,
    "canary_bps": 24_000_000,
    "others_bps": 15_000_000,
    "ratio": 1.6,
    "windows": 2,
    "reason": "the canaries were faster in two windows",
    "at": "2026-01-01T12:00:00+00:00",
    "sender": "east",
}
PROFILE = {
    "profile": "overseas",
    "prefix": "192.0.2.0/24",
    "mode": "trial",
    "knobs": NONE | {"congestion": "bbr", "send_buffer_bytes": 8_388_608},
    "learnt": None,
    "trial": TRIAL,
    "created_at": "2026-01-01T00:00:00Z",
    "changed_at": "2026-01-01T00:00:00Z",
}


@dataclass
class Asked:
    profile: dict[str, Any] = field(default_factory=lambda: dict(PROFILE))
    requests: list[tuple[str, str, Any]] = field(default_factory=list)

    def request(self, method: str, url: str, **given: Any) -> httpx.Response:
        path = url.partition("/v1/")[2]
        self.requests.append((method, path, given.get("json")))
        answer: Any = [self.profile] if (method, path) == ("GET", "tcp-profiles") else self.profile
        return httpx.Response(200, json=answer, request=httpx.Request(method, url))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    # Tables have whole lines.
    monkeypatch.setenv("COLUMNS", "200")
    stand_in = Asked()
    monkeypatch.setattr(httpx.Client, "request", staticmethod(stand_in.request))
    return stand_in


def run(*argv: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(["tcp-profiles", *argv])
    return int(str(end.value.code or 0))


def test_a_profile_is_added_with_units(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    values = ("--congestion", "bbr", "--send-buffer", "8MiB", "--pacing", "50M", "--connections", "4")
    assert run("add", "overseas", "192.0.2.0/24", *values, "--trial") == 0
    knobs = {"congestion": "bbr", "send_buffer_bytes": 8_388_608, "pacing_bps": 50_000_000, "connections": 4}
    body = {"prefix": "192.0.2.0/24", "mode": "trial", "knobs": knobs}
    assert asked.requests == [("PUT", "tcp-profiles/overseas", body)]
    assert "bbr, send buffer 8 MiB on trial; see the outcome: downburst tcp-profiles list" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "mode", "knobs"),
    [
        (("--receive-buffer", "64KiB"), "static", {"receive_buffer_bytes": 65_536}),
        (("--learn",), "learn", {}),
    ],
)
def test_modes(asked: Asked, argv: tuple[str, ...], mode: str, knobs: dict[str, Any]) -> None:
    assert run("add", "campus", "2001:DB8::/32", *argv) == 0
    assert asked.requests[0][2] == {"prefix": "2001:db8::/32", "mode": mode, "knobs": knobs}


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("x", "192.0.2.9/24", "--congestion", "bbr"), "has bits of a host; write 192.0.2.0/24"),
        (("x", "nowhere", "--congestion", "bbr"), "is not a prefix of addresses"),
        (("x", "192.0.2.0/24"), "sets nothing"),
        (("x", "192.0.2.0/24", "--learn", "--congestion", "bbr"), "learns its values, so it takes none"),
        (("x", "192.0.2.0/24", "--learn", "--trial"), "--trial and --learn exclude each other"),
        (("x", "192.0.2.0/24", "--congestion", "BBR"), "can't be a congestion control"),
        (("x", "192.0.2.0/24", "--send-buffer", "1B"), "a send buffer of 1 is impossible"),
        (("x", "192.0.2.0/24", "--receive-buffer", "2GiB"), "a receive buffer of 2147483648 is impossible"),
        (("x", "192.0.2.0/24", "--send-buffer", "8M"), "is not a size"),
        (("x", "192.0.2.0/24", "--pacing", "5"), "is not a rate"),
        (("x", "192.0.2.0/24", "--pacing", "1k"), "a pacing rate of 1000 is impossible"),
        (("x", "192.0.2.0/24", "--connections", "99"), "a number of connections of 99 is impossible"),
        (("X!", "192.0.2.0/24", "--congestion", "bbr"), "can't be a profile's name"),
    ],
)
def test_impossible_values_are_one_sentence_and_no_request(
    asked: Asked, capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], said: str
) -> None:
    assert run("add", *argv) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert asked.requests == []


def test_the_list_shows_values_and_the_last_trial(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list", "--wide") == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("overseas", "192.0.2.0/24", "trial", "bbr, send buffer 8 MiB"))
    assert "kept 2026-01-01 12:00, 1.60 times the rate of the others" in shown
    assert run("list", "--json") == 0
    assert json.loads(capsys.readouterr().out) == [PROFILE]


def test_one_profile_is_shown_with_the_figures_of_its_trial(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", "overseas") == 0
    shown = capsys.readouterr().out
    assert all(
        word in shown
        for word in (
            "1 connection, 24 Mb/s each",
            "3 connections, 15 Mb/s each",
            "the kernel's values",
            "the canaries were faster in two windows",
            "east",
        )
    )
    asked.profile |= {"mode": "learn", "knobs": NONE, "learnt": NONE | {"connections": 4}, "trial": None}
    assert run("show", "overseas") == 0
    shown = capsys.readouterr().out
    assert "4 connections" in shown
    assert "none with these values" in shown
    assert run("show", "overseas", "--json") == 0
    assert json.loads(capsys.readouterr().out)["learnt"]["connections"] == 4


def test_a_profile_is_removed(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("remove", "overseas") == 0
    assert asked.requests == [("DELETE", "tcp-profiles/overseas", None)]
    assert capsys.readouterr().out == "TCP profile overseas removed\n"
