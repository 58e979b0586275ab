"""`downburst relays`: requests to the hub, the text of its answers, and refusals before any request."""

import json
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from downburst_app.cli import main

SEGMENT = {"round_trip_us": 2_000, "loss_ppm": 1_000, "congestion": "cubic", "rate_bps": 980_000_000}
TUNNEL = {
    "site": "oslo",
    "site_side": "192.0.2.9:1",
    "hub_side": "198.51.100.1:2",
    "target": "hub:7370",
    "seconds": 62.5,
    "bytes_from_hub": 7_500_000_000,
    "bytes_from_site": 4_000,
    "rate_from_hub_bps": 960_000_000,
    "near": SEGMENT,
    "onward": {"round_trip_us": None, "loss_ppm": None, "congestion": "", "rate_bps": 960_000_000},
    "ended": False,
}
RELAY: dict[str, Any] = {
    "relay": "campus",
    "address": "relay.campus.edu:7379",
    "fan_out": "group",
    "sites": ["bergen", "oslo"],
    "feeds": ["NGRID"],
    "created_at": "2026-01-01T00:00:00Z",
    "state": "never-enrolled",
    "state_words": "never enrolled",
    "connected": False,
    "reported_at": "2026-01-01T00:00:10+00:00",
    "refused": 3,
    "tunnels": [TUNNEL, TUNNEL | {"site": None}],
    "legs": [{"leg": 7, "datagrams": 1_200, "bytes": 1_500_000, "dropped": 4}],
}
RECORD = {"number": 5, "at": "2026-01-01T12:00:00+00:00", "tunnel": TUNNEL | {"ended": True}}


@dataclass
class Asked:
    relay: dict[str, Any] = field(default_factory=lambda: dict(RELAY))
    requests: list[tuple[str, str, Any]] = field(default_factory=list)

    def request(self, method: str, url: str, **given: Any) -> httpx.Response:
        path = url.partition("/v1/")[2]
        self.requests.append((method, path, given.get("json")))
        answers: dict[str, Any] = {
            "relays": [self.relay],
            "relays/campus/log": [RECORD],
            "sites/campus/tokens": {"token": "dbt1.secret"},
        }
        answer = answers.get(path.partition("?")[0], self.relay)
        return httpx.Response(200, json=answer, request=httpx.Request(method, url))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    # Tables have whole lines.
    monkeypatch.setenv("COLUMNS", "250")
    stand_in = Asked()
    monkeypatch.setattr(httpx.Client, "request", staticmethod(stand_in.request))
    return stand_in


def run(*argv: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(["relays", *argv])
    return int(str(end.value.code or 0))


ADD = ("add", "campus", "--address", "relay.campus.edu:7379", "--fan-out", "group", "--feeds", "NGRID")


def test_a_new_relay_gets_a_token_and_the_command_for_its_host(
    asked: Asked, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*ADD, "--sites", "oslo, bergen,") == 0
    body = {"address": "relay.campus.edu:7379", "fan_out": "group", "sites": ["oslo", "bergen"], "feeds": ["NGRID"]}
    assert asked.requests == [("PUT", "relays/campus", body), ("POST", "sites/campus/tokens", None)]
    said = capsys.readouterr().out
    assert (
        "relay campus: carries connections at relay.campus.edu:7379, fans out NGRID (group), 2 sites behind" in said
    )
    assert "token, which enrols it once: dbt1.secret" in said
    assert (
        "at its host: downburst-node relay --hub HOST:7370 --token-file campus.token "
        "--dir /var/lib/downburst-relay --listen 0.0.0.0:7379"
    ) in said


def test_the_token_goes_into_a_file_that_only_its_owner_reads(
    asked: Asked, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked.relay |= {"address": None}
    token = tmp_path / "campus.token"
    assert run(*ADD, "-o", str(token)) == 0
    assert token.read_text() == "dbt1.secret\n"
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    said = capsys.readouterr().out
    assert "dbt1.secret" not in said
    assert f"written to {token}" in said
    assert f"--token-file {token} --dir /var/lib/downburst-relay\n" in said, "it listens only if it has an address"


def test_an_enrolled_relay_is_changed_without_a_token(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    asked.relay |= {"state": "connected"}
    assert run(*ADD, "--json") == 0
    assert [path for _, path, _ in asked.requests] == ["relays/campus"]
    assert json.loads(capsys.readouterr().out)["token"] is None


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("campus",), "relay campus carries nothing; give an address for its sites, a fan-out, or both"),
        (("campus", "--address", "campus"), "'campus' is not the address of a relay; write HOST:PORT"),
        (("campus", "--address", "campus:70000"), "'campus:70000' is not the address of a relay"),
        (("campus", "--fan-out", "group", "--feeds", ""), "relay campus may carry no feed; name its feeds"),
        (("campus", "--address", "a:1", "--sites", "a,campus"), "relay campus can't be behind itself"),
        (("Cam pus", "--address", "a:1"), "'Cam pus' can't be a site's name"),
    ],
)
def test_an_impossible_relay_is_refused_before_any_request(
    asked: Asked, capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], said: str
) -> None:
    assert run("add", *argv) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
    assert asked.requests == []


def test_the_list_has_state_and_present_traffic(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list", "--wide") == 0
    said = capsys.readouterr().out
    for word in ("campus", "never enrolled", "relay.campus.edu:7379", "group", "bergen oslo", "1.92 Gb/s"):
        assert word in said
    assert run("list", "--json") == 0
    assert json.loads(capsys.readouterr().out) == [asked.relay]


def test_a_relay_is_shown_with_both_segments_of_each_tunnel(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", "campus") == 0
    said = capsys.readouterr().out
    assert "980 Mb/s, 2 ms, 0.1 % resent, cubic" in said
    assert "192.0.2.9:1" in said, "the address of a peer that is no known site"
    assert "group: NGRID" in said
    assert "1,200" in said
    asked.relay |= {"tunnels": [], "legs": [], "address": None, "fan_out": None, "reported_at": None, "refused": None}
    assert run("show", "campus") == 0
    said = capsys.readouterr().out
    for word in ("none: it carries no connections", "none since the hub started", "not yet known", "fans out no leg"):
        assert word in said


def test_the_log_is_shown(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("log", "campus", "--limit", "20") == 0
    said = capsys.readouterr().out
    for word in ("2026-01-01 12:00", "oslo", "960 Mb/s", "ended"):
        assert word in said
    assert run("log", "campus", "--json") == 0
    assert json.loads(capsys.readouterr().out) == [RECORD]
    assert run("log", "campus", "--limit", "0") == 2


def test_a_relay_is_removed(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("remove", "campus", "--yes") == 0
    assert asked.requests == [("DELETE", "relays/campus", None)]
    assert "relay campus removed" in capsys.readouterr().out
