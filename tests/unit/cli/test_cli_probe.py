"""`downburst probe`: requests to the hub, progress, and the text of its answers."""

import json
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from downburst_app.cli import main
from downburst_app.cli.probes import follow

STEP = {
    "rate_bps": 800_000_000,
    "sent_bps": 8e8,
    "received_bps": 7.1e8,
    "sent": 1_000,
    "received": 890,
    "lost": 110,
    "receiver_dropped": 3,
    "loss": 0.11,
    "reordered": 2,
    "duplicated": 0,
    "elapsed_us": 1_000_000,
    "jitter_us": 12.5,
    "delay_us": {"min": 1_000, "median": 2_000, "p99": 3_000, "max": 4_000},
}
RESULT: dict[str, Any] = {
    "steps": [STEP],
    "sender_lag_us": 120,
    "knee_bps": 600_000_000.0,
    "knee_reason": None,
    "losses": 3,
    "excess": [
        {
            "at_us": 500_000,
            "lost": 1,
            "excess_us": 40_000,
            "recovery_us": None,
            "peak_bps": None,
            "backlog_bytes": None,
            "predicted_us": None,
        }
    ],
    "variation": None,
    "delay_bound_us": 250,
    "congestion": None,
    "retransmits": None,
    "trials": None,
}
WAITING: dict[str, Any] = {
    "id": 7,
    "site": "unl.edu",
    "kind": "knee",
    "direction": "out",
    "state": "waiting",
    "requested_by": "eve",
    "relay": None,
    "steps": [{"rate_bps": 800_000_000, "duration_ms": 1_000}],
    "packet_bytes": 1_200,
    "patience_s": 60.0,
    "reason": "circuit 3 holds 1 Gb/s",
    "requested_at": "2026-01-01T00:00:00Z",
    "started_at": None,
    "ended_at": None,
    "attempts": 0,
    "schedule": None,
    "transport": "udp",
    "congestion": None,
    "trials": [],
    "circumstances": {},
    "gaps": [],
    "result": None,
}
DONE = WAITING | {"state": "done", "reason": "", "ended_at": "2026-01-01T00:00:20Z", "result": RESULT}
SECONDS = [
    {"second": at, "sent": 10, "received": 10, "lost": 0, "bytes": 1_000_000 + at % 2} for at in (*range(60), 3_600)
]
CEILINGS = {
    "site": "unl.edu",
    "default_bytes_per_day": 20_000_000_000,
    "used_bytes": 400_000_000,
    "ceilings": [{"side": "site", "rate_bps": 500_000_000, "bytes_per_day": None, "set_by": "adam"}],
}


@dataclass
class Asked:
    answers: dict[str, Any] = field(default_factory=dict)
    requests: list[tuple[str, str, Any]] = field(default_factory=list)

    def answer(self, method: str, url: str, **given: Any) -> httpx.Response:
        path = httpx.URL(url).path
        self.requests.append((method, path, given.get("json") or given.get("params")))
        found = self.answers[f"{method} {path}"]
        if isinstance(found, list) and found and isinstance(found[0], tuple):
            found = found.pop(0)[0] if len(found) > 1 else found[0][0]
        if path.endswith("/seconds"):
            found = [one for one in found if one["second"] >= given["params"]["first"]]
        return httpx.Response(200, json=found, request=httpx.Request(method, url))


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Asked:
    asked = Asked()

    def request(_: object, method: str, path: str, **given: Any) -> httpx.Response:
        return asked.answer(method, f"http://h{path}", **given)

    monkeypatch.setattr("downburst_client.hubs.Hub.request", request)
    monkeypatch.setattr(follow, "LOOK_S", 0.0)
    return asked


def ended(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main([*arguments, "--hub", "http://h"])
    return int(end.value.code or 0)


def test_a_sweep_is_followed_to_its_knee(hub: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    running = WAITING | {"state": "running", "reason": ""}
    hub.answers = {"POST /v1/probes": WAITING, "GET /v1/probes/7": [(running,), (running,), (DONE,)]}
    assert ended("probe", "knee", "unl.edu", "--highest", "800M", "--direction", "in") == 0
    assert hub.requests[0][2] == {
        "site": "unl.edu",
        "kind": "knee",
        "direction": "in",
        "steps": 10,
        "seconds": 1.0,
        "rate_bps": 800_000_000,
        "packet_bytes": 1_200,
        "patience_s": 60.0,
    }
    out, err = capsys.readouterr()
    assert err.splitlines() == ["probe 7 is waiting: circuit 3 holds 1 Gb/s", "probe 7 is running"]
    assert "probe 7 of unl.edu: knee to the site, done: the knee is at 600 Mb/s" in out
    assert "11.000%" in out
    assert "│ 0.500 s │ 1    │ 40.000 ms │ never           │           │" in out
    assert "at 800 Mb/s the receiver's host dropped 3 packets" in out
    assert "delays are differences of two clocks; their bound: 0.250 ms" in out
    assert "up to 0.12 ms behind its schedule" in out


def test_a_probe_from_a_relay_names_it(hub: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    from_relay = DONE | {"relay": "omaha"}
    hub.answers = {"POST /v1/probes": from_relay, "GET /v1/probes": [from_relay | {"direction": "in"}]}
    kinds = [("knee", "unl.edu"), *[(kind, "unl.edu", "--rate", "10M") for kind in ("cbr", "soak")]]
    for kind in kinds:
        assert ended("probe", *kind, "--from", "omaha") == 0
        assert hub.requests[-1][2]["relay"] == "omaha"
    assert "knee to the site, from relay omaha, done: the knee is at 600 Mb/s" in capsys.readouterr().out
    assert ended("probe", "list") == 0
    assert "knee from the site, to relay omaha, done" in " ".join(capsys.readouterr().out.replace("│", " ").split())


def test_a_knee_that_no_loss_confirms_is_a_lower_limit(hub: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    result = DONE["result"] | {"knee_reason": "no step lost packets"}
    hub.answers = {"GET /v1/probes/7": DONE | {"result": result}}
    assert ended("probe", "show", "7") == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "at least 600 Mb/s: no step lost packets" in out
    assert "the knee is" not in out


def test_one_rate_is_sent_by_tcp_and_its_recovery_is_compared(hub: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    excess = RESULT["excess"][0] | {"peak_bps": 97e6, "backlog_bytes": 480_000}
    recovered = excess | {"recovery_us": 150_000, "predicted_us": 170_000}
    result = RESULT | {
        "excess": [recovered, excess, *[excess | {"at_us": 600_000}] * 20],
        "congestion": "cubic",
        "retransmits": 5,
    }
    sent = DONE | {"kind": "cbr", "transport": "tcp", "congestion": "cubic", "result": result}
    hub.answers = {"POST /v1/probes": sent}
    assert ended("probe", "cbr", "unl.edu", "--rate", "100M", "--transport", "tcp", "--congestion", "cubic") == 0
    assert hub.requests[0][2] == {
        "site": "unl.edu",
        "kind": "cbr",
        "direction": "out",
        "rate_bps": 100_000_000,
        "seconds": 10.0,
        "packet_bytes": 1_200,
        "patience_s": 60.0,
        "transport": "tcp",
        "congestion": "cubic",
    }
    out = capsys.readouterr().out
    assert "cbr over TCP to the site, done" in out
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in out.splitlines() if "0.500 s" in line]
    assert rows == [
        ["0.500 s", "1", "40.000 ms", "150.000 ms", "170.000 ms"],
        ["0.500 s", "1", "40.000 ms", "never", "never"],
    ]
    assert "2 more are in downburst probe show 7 --json" in out
    assert "TCP with cubic sent 5 segments again" in out


def test_stacks_are_compared_in_a_table_of_trials(hub: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    flow = {"congestion": "cubic", "reverse": False, "goodput_bps": 6e7, "retransmits": 3}
    cubic = flow | {"round_trip_us": {"min": 40_000, "mean": 52_000}}
    reno = flow | {
        "congestion": "reno",
        "reverse": True,
        "goodput_bps": 3e7,
        "round_trip_us": {"min": None, "mean": None},
    }
    trial = {"duration_ms": 10_000, "reason": None, "fairness": 0.8, "limited": False}
    trials = [
        trial
        | {"flows": [cubic, cubic | {"congestion": "bbr", "goodput_bps": 2e7}, reno], "shares": [0.75, 0.25, 1.0]},
        trial | {"fairness": None, "limited": True, "flows": [cubic], "shares": [1.0]},
        trial | {"fairness": None, "reason": "bbr is not available at unl.edu", "flows": [], "shares": []},
    ]
    result = RESULT | {"steps": [], "excess": None, "trials": trials}
    hub.answers = {"POST /v1/probes": DONE | {"kind": "stacks", "transport": "tcp", "result": result}}
    arguments = ("--controls", "cubic, bbr", "--rate", "200M", "--seconds", "5", "--no-reverse")
    assert ended("probe", "stacks", "unl.edu", *arguments) == 0
    assert hub.requests[0][2] == {
        "site": "unl.edu",
        "kind": "stacks",
        "direction": "out",
        "rate_bps": 200_000_000,
        "seconds": 5.0,
        "patience_s": 60.0,
        "stacks": ["cubic", "bbr"],
        "reverse_traffic": False,
    }
    out = capsys.readouterr().out
    assert "stacks to the site, done: 2 of 3 trials ran, the least fair 0.80 with cubic beside bbr" in out
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in out.splitlines() if " ms " in line]
    assert rows == [
        ["1", "cubic", "60 Mb/s", "75%", "3", "52.000 ms", "0.80"],
        ["", "bbr", "20 Mb/s", "25%", "3", "52.000 ms", ""],
        ["2", "cubic", "60 Mb/s", "100%", "3", "52.000 ms", ""],
    ]
    assert "reno (reverse)" in out
    assert "held back by the probe's own limit, and not by the path: trials 2\n" in out
    assert "trial 3 did not run: bbr is not available at unl.edu" in out


def test_a_refusal_ends_the_command_with_its_reason(hub: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    refused = DONE | {"state": "refused", "reason": "the site's ceiling", "result": None}
    hub.answers = {"POST /v1/probes": WAITING, "GET /v1/probes/7": refused}
    assert ended("probe", "cbr", "unl.edu", "--rate", "100M") == 2
    assert "downburst: probe 7 was refused: the site's ceiling" in capsys.readouterr().err
    hub.answers["GET /v1/probes/7"] = DONE | {"state": "stopped", "reason": "products became late"}
    assert ended("probe", "cbr", "unl.edu", "--rate", "100M") == 1
    assert "probe 7 is stopped: products became late" in capsys.readouterr().err
    assert ended("probe", "cbr", "unl.edu", "--rate", "100") == 2
    assert "is not a rate" in capsys.readouterr().err


def test_a_soak_is_started_and_shown_hour_by_hour(hub: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    hub.answers = {"POST /v1/probes": WAITING}
    assert ended("probe", "soak", "unl.edu", "--rate", "10M", "--hours", "2") == 0
    assert hub.requests[0][2]["seconds"] == 7_200
    assert "follow it: downburst probe show 7" in capsys.readouterr().out
    gap = {"since": "2026-01-01T01:00:00Z", "until": None, "reason": "the hub restarted"}
    soaked = DONE | {"kind": "soak", "gaps": [gap], "result": RESULT | {"excess": None, "variation": 0.012}}
    hub.answers = {"GET /v1/probes/7": soaked, "GET /v1/probes/7/seconds": SECONDS}
    assert ended("probe", "show", "7") == 0
    out = capsys.readouterr().out
    assert "variation 1.20%" in out
    assert "interrupted from 2026-01-01T01:00:00Z to now: the hub restarted" in out
    assert [line.split("│")[1].strip() for line in out.splitlines() if line.startswith("│ ")][-2:] == ["0", "1"]


def test_probes_are_listed_and_stopped(hub: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    hub.answers = {"GET /v1/probes": [DONE], "DELETE /v1/probes/7": WAITING}
    assert ended("probe", "list", "unl.edu", "--kind", "knee", "--json") == 0
    assert json.loads(capsys.readouterr().out) == [DONE]
    assert hub.requests[0][2] == {"site": "unl.edu", "kind": "knee"}
    assert ended("probe", "list") == 0
    assert "unl.edu" in capsys.readouterr().out
    assert ended("probe", "stop", "7") == 0
    assert capsys.readouterr().out == "probe 7 ends in a moment\n"


def test_a_ceiling_is_shown_and_set(hub: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    path = "/v1/sites/unl.edu/probe-ceiling"
    hub.answers = {f"GET {path}": CEILINGS, f"PUT {path}": CEILINGS}
    assert ended("probe", "ceiling", "unl.edu") == 0
    out = capsys.readouterr().out
    assert "500 Mb/s" in out
    assert "20 GB" in out
    assert "0.4 GB" in out
    assert ended("probe", "ceiling", "unl.edu", "--rate", "500M", "--gigabytes", "5") == 0
    assert hub.requests[-1] == ("PUT", path, {"rate_bps": 500_000_000, "bytes_per_day": 5_000_000_000})
    assert ended("probe", "ceiling", "unl.edu", "--none") == 0
    assert hub.requests[-1][:2] == ("PUT", path)


def test_schedules_are_added_listed_and_removed(hub: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    schedule = WAITING | {"every_h": 24, "first_hour": 2, "end_hour": 5, "next_at": "2026-01-01T02:00:00Z"}
    hub.answers = {
        "POST /v1/probe-schedules": schedule,
        "GET /v1/probe-schedules": [schedule],
        "DELETE /v1/probe-schedules/7": None,
    }
    assert ended("probe", "schedule", "add", "unl.edu", "knee", "--window", "2-5") == 0
    sent = {"site": "unl.edu", "kind": "knee", "direction": "out", "every_h": 24, "first_hour": 2, "end_hour": 5}
    assert hub.requests[0][2] == sent
    assert ended("probe", "schedule", "add", "unl.edu", "--from", "omaha") == 0
    assert hub.requests[-1][2]["relay"] == "omaha"
    assert ended("probe", "schedule", "list") == 0
    assert "2-5 UTC" in capsys.readouterr().out
    assert ended("probe", "schedule", "remove", "7") == 0
    assert ended("probe", "schedule", "add", "unl.edu", "--window", "night") == 2
    assert "hours of the day in UTC" in capsys.readouterr().err
