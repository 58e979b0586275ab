"""Ports and circuits on the command line: requests to the hub, and the text of its answers."""

import json
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from downburst_app.cli import main

PORT = {"port": "unl-eth1", "site": "unl.edu", "rate_bps": 10**9, "first_vlan": 100, "last_vlan": 199}
CIRCUIT = {
    "circuit": 17,
    "state": "degraded",
    "reason": "250 Mb/s of 500 Mb/s get to unl.edu",
    "sites": ["unl.edu"],
    "rate_out_bps": 500_000_000,
    "rate_in_bps": 0,
    "measured_out_bps": 250_000_000,
    "used_out_bps": 0.0,
    "begin": "2026-07-01T12:00:00Z",
    "end": None,
    "provider": None,
    "creation": "automatic",
    "held_until": None,
    "overridden": None,
    "override_by": None,
    "override_reason": None,
    "probed_state": "degraded",
    "path": [],
    "ends": [{"site": None, "port": "hub-eth0", "vlan": 100, "address": None}],
    "measurements": [],
    "events": [],
    "done": True,
}


@dataclass
class Asked:
    status: int = 200
    circuit: dict[str, Any] = field(default_factory=lambda: dict(CIRCUIT))
    requests: list[tuple[str, str, Any, Any]] = field(default_factory=list)

    def request(self, method: str, url: str, **given: Any) -> httpx.Response:
        path = url.partition("/v1/")[2]
        self.requests.append((method, path, given.get("json"), given.get("params")))
        port = PORT | {"interface": "eth1", "underlay": ""}
        answer: Any = port if path.startswith("ports/") or (method == "POST" and path == "ports") else self.circuit
        if (method, path) == ("GET", "ports"):
            answer = [port]
        if (method, path) == ("GET", "circuits"):
            answer = [self.circuit]
        return httpx.Response(self.status, json=answer, request=httpx.Request(method, url))

    def last(self) -> tuple[str, str, Any, Any]:
        return self.requests[-1]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    stand_in = Asked()
    monkeypatch.setattr(httpx.Client, "request", staticmethod(stand_in.request))
    return stand_in


def run(*argv: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(argv))
    return int(end.value.code or 0)


def test_a_port_is_made_with_its_unit(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("ports", "add", "hub-eth0", "--rate", "1G", "--vlan", "100-199", "--interface", "eth0") == 0
    assert asked.last()[2] == {
        "port": "hub-eth0",
        "rate_bps": 10**9,
        "first_vlan": 100,
        "last_vlan": 199,
        "interface": "eth0",
    }
    assert "1 Gb/s each way, tags 100-199" in capsys.readouterr().out


def test_ports_are_listed_changed_and_removed(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("ports", "list") == 0
    assert "unl-eth1" in capsys.readouterr().out
    assert run("ports", "set", "hub-eth0", "--vlan", "none", "--rate", "500M") == 0
    assert asked.last()[2] == {"first_vlan": None, "last_vlan": None, "rate_bps": 500_000_000}
    assert run("ports", "remove", "hub-eth0", "--json") == 0
    assert asked.last()[:2] == ("DELETE", "ports/hub-eth0")


def test_circuits_are_listed_in_eighty_columns_with_all_of_their_names(
    asked: Asked, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    asked.circuit |= {"circuit": 1018, "state": "provisioning", "sites": ["meteorology.wisconsin.example.edu"]}
    assert run("circuits", "list") == 0
    table, _, why = capsys.readouterr().out.partition("└")
    assert max(map(len, table.splitlines())) <= 80
    assert "…" not in table
    assert ("500" in table, "250" in table, "2026-07-01" in table) == (True, True, True)
    assert "1018: 250 Mb/s of 500 Mb/s get to unl.edu" in why


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["ports", "add", "hub-eth0", "--rate", "1000"], "is not a rate"),
        (["ports", "add", "hub-eth0", "--rate", "1G", "--vlan", "a-b"], "not a range of tags"),
        (["ports", "add", "hub-eth0", "--rate", "1G", "--vlan", "100-5000"], "tags are 1 to 4094"),
        (["circuits", "add", "--to", "unl.edu", "--rate", "1G", "--vlan", "9-8"], "the lower one first"),
        (["ports", "set", "hub-eth0"], "nothing to change"),
        (["circuits", "modify", "17"], "nothing to change"),
        (["circuits", "add", "--to", "unl.edu", "--rate", "1G", "--hold", "soon"], "'soon' is not a duration"),
        (["circuits", "add", "--to", "unl.edu", "--rate", "112.5mbps"], "is not a rate"),
        (
            ["circuits", "add", "--to", "unl.edu", "--rate", "1G", "--address", "10.0.0.1/24"],
            "1 addresses for 2 ends",
        ),
        (
            ["circuits", "add", "--from", "ttu.edu", "--port", "hub-eth0", "--to", "unl.edu", "--rate", "1G"],
            "the hub's port hub-eth0 has no part in it",
        ),
    ],
)
def test_what_cannot_be_used_is_one_sentence_and_two(
    asked: Asked, argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*argv) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_circuit_is_asked_for_by_site_and_by_port(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["--to", "unl-eth1", "--to", "ttu.edu", "--rate", "500M", "--rate-back", "10M", "--vlan", "120"]
    assert run("circuits", "add", *argv, "--end", "+2h", "--request-id", "n1", "--dry-run") == 0
    method, path, body, params = asked.last()
    assert (method, path, params) == ("POST", "circuits", {"dry_run": True})
    assert body["hub"] == {"first_vlan": 120, "last_vlan": 120}
    assert body["sites"] == [{"port": "unl-eth1"}, {"site": "ttu.edu"}]
    assert (body["rate_out_bps"], body["rate_in_bps"], body["end"], body["request_id"]) == (
        500_000_000,
        10_000_000,
        "+2h",
        "n1",
    )
    assert capsys.readouterr().out.startswith("dry run, nothing was changed: circuit 17 to unl.edu")


def test_a_circuit_between_two_sites_has_no_end_at_the_hub(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    asked.circuit |= {"ends": [{"site": "ttu.edu"}, {"site": "unl.edu"}], "sites": ["ttu.edu", "unl.edu"]}
    addresses = ["--address", "10.0.0.1/24", "--address", "10.0.0.2/24"]
    argv = ["--from", "ttu.edu", "--to", "unl-eth1", "--rate", "500M", "--vlan", "120", *addresses]
    assert run("circuits", "add", *argv) == 0
    body = asked.last()[2]
    assert body["hub"] is None
    assert body["sites"] == [
        {"site": "ttu.edu", "first_vlan": 120, "last_vlan": 120, "address": "10.0.0.1/24"},
        {"port": "unl-eth1", "address": "10.0.0.2/24"},
    ]
    assert capsys.readouterr().out.startswith("circuit 17 from ttu.edu to unl.edu: degraded")


def test_a_circuit_is_asked_of_a_provider(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    asked.circuit |= {"provider": "surf"}
    assert run("circuits", "add", "--to", "unl.edu", "--rate", "1G", "--driver", "nsi", "--provider", "surf") == 0
    assert [asked.last()[2][name] for name in ("driver", "provider")] == ["nsi", "surf"]
    assert run("circuits", "show", "17") == 0
    assert "asked of provider surf" in capsys.readouterr().out


def test_circuits_are_listed_and_shown(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("circuits", "list", "--site", "unl.edu") == 0
    assert asked.last()[3] == {"site": "unl.edu", "finished": False, "archived": False, "limit": 100}
    shown = capsys.readouterr().out
    assert "degra" in shown
    assert run("circuits", "show", "17") == 0
    shown = capsys.readouterr().out
    assert "250 Mb/s of 500 Mb/s get to unl.edu" in shown
    assert "cancellation" in shown
    assert run("circuits", "show", "17", "--json") == 0
    assert json.loads(capsys.readouterr().out)["circuit"] == 17


def test_circuits_are_modified_cancelled_cloned_and_measured(asked: Asked) -> None:
    assert run("circuits", "modify", "17", "--rate", "900M", "--end", "never") == 0
    assert asked.last()[:3] == ("PATCH", "circuits/17", {"rate_out_bps": 900_000_000, "end": None, "by": "operator"})
    assert run("circuits", "cancel", "17", "--by", "op", "--dry-run") == 0
    assert asked.last() == ("DELETE", "circuits/17", None, {"dry_run": True, "by": "op"})
    assert run("circuits", "clone", "17", "--begin", "+1d") == 0
    assert asked.last()[:3] == ("POST", "circuits/17/clone", {"begin": "+1d", "by": "operator"})
    assert run("circuits", "measure", "17") == 0
    assert asked.last()[:2] == ("POST", "circuits/17/measure")


def test_a_circuit_is_held_by_hand_and_with_wishes_for_its_path(
    asked: Asked, capsys: pytest.CaptureFixture[str]
) -> None:
    wishes = ["--hold", "2m", "--by-hand", "--include", "up", "--exclude", "wide", "--exclude", "s2"]
    argv = ["circuits", "add", "--to", "unl.edu", "--rate", "500M", *wishes, "--path-order", "widest"]
    assert run(*argv) == 0
    body = asked.last()[2]
    assert [body[name] for name in ("hold_s", "creation", "include", "exclude", "path_order")] == [
        120.0,
        "by-hand",
        ["up"],
        ["wide", "s2"],
        "widest",
    ]
    asked.circuit |= {
        "state": "held",
        "creation": "by-hand",
        "held_until": "2026-07-01T11:02:00Z",
        "path": [{"link": "up", "forward": True, "tag": 150}, {"link": "unl", "forward": True, "tag": None}],
    }
    assert run("circuits", "show", "17") == 0
    shown = capsys.readouterr().out
    for expected in (
        "held until 2026-07-01T11:02:00Z; downburst circuits commit 17",
        "its path is created by hand",
        "path: up (tag 150), unl",
    ):
        assert expected in shown


@pytest.mark.parametrize("act", ["commit", "create-path", "tear-down-path"])
def test_holds_and_paths_are_moved_on(asked: Asked, act: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("circuits", act, "17", "--by", "eve", "--dry-run") == 0
    assert asked.last() == ("POST", f"circuits/17/{act}", None, {"dry_run": True, "by": "eve"})
    assert capsys.readouterr().out.startswith("dry run, nothing was changed: circuit 17 to unl.edu")
    sure = ["--yes"] if act == "tear-down-path" else []
    assert run("circuits", act, "17", "--json", *sure) == 0
    assert asked.last() == ("POST", f"circuits/17/{act}", None, {"by": "operator"})
    assert json.loads(capsys.readouterr().out)["circuit"] == 17


def test_a_path_is_not_torn_down_without_a_word(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("circuits", "tear-down-path", "17") == 2
    assert "repeat the command with --yes" in capsys.readouterr().err
    assert asked.requests == []


def test_a_state_is_overridden_and_given_back_to_the_probes(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("circuits", "override", "17", "down", "--reason", "new switch", "--by", "ann", "--dry-run") == 0
    assert asked.last() == (
        "POST",
        "circuits/17/override",
        {"reason": "new switch", "state": "down", "by": "ann"},
        {"dry_run": True},
    )
    assert run("circuits", "override", "17", "clear", "--json") == 0
    assert asked.last()[2] == {"state": None, "by": "operator"}
    assert run("circuits", "override", "17", "degraded") == 2
    asked.circuit |= {"state": "active", "overridden": "active", "override_by": "ann", "override_reason": "bad probe"}
    capsys.readouterr()
    assert run("circuits", "show", "17") == 0
    assert "overridden as active by ann: bad probe; by its probes it is degraded" in capsys.readouterr().out


def test_the_archive_is_listed_on_request_and_a_window_moved(asked: Asked) -> None:
    assert run("circuits", "list", "--archived") == 0
    assert asked.last()[3] == {"finished": False, "archived": True, "limit": 100}
    assert run("circuits", "modify", "17", "--begin", "+3h") == 0
    assert asked.last()[2] == {"begin": "+3h", "by": "operator"}
