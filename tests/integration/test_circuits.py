"""Circuits on a running hub: requested with its users' commands, kept through a crash, judged by the real node."""

import json
import signal
from typing import Any

import pytest

from integration.conftest import RunningHub, Starter, until


@pytest.mark.all
def test_circuits_are_kept_through_a_crash_and_never_active_without_their_far_end(starter: Starter) -> None:
    hub = with_ports(starter.hub())
    wish = ["circuits", "add", "--to", "a.example", "--rate", "60M", "--begin", "+1h", "--end", "+1h"]
    reserved = hub.command(*wish, "--request-id", "first", "--json")
    assert reserved.returncode == 0, reserved.stderr
    number = json.loads(reserved.stdout)["circuit"]

    hub.stop(signal.SIGKILL)
    hub = starter.hub()
    again = hub.command(*wish, "--request-id", "first", "--json")
    assert json.loads(again.stdout)["circuit"] == number
    refused = hub.command(*wish)
    assert refused.returncode == 2
    assert f"circuit {number}" in refused.stderr
    assert refused.stderr.count("\n") == 1

    begun = json.loads(hub.command(*wish[:6], "--end", "+30m", "--json").stdout)["circuit"]
    shown = until("it fails", lambda: failed(hub.ask("GET", f"/v1/circuits/{begun}")))
    assert shown["reason"]
    assert "active" not in [event["state"] for event in shown["events"]]
    assert hub.command("circuits", "cancel", str(begun), "--yes").returncode == 0
    assert hub.command("circuits", "cancel", str(number), "--yes").returncode == 0
    assert hub.ask("GET", f"/v1/circuits/{number}")["state"] == "cancelled"


@pytest.mark.all
def test_holds_and_paths_by_hand_are_kept_through_a_crash(starter: Starter) -> None:
    hub = with_ports(starter.hub())

    def asked(*argv: str) -> dict[str, Any]:
        answered = hub.command("circuits", *argv, "--json")
        assert (answered.returncode, answered.stderr) == (0, ""), argv
        found: dict[str, Any] = json.loads(answered.stdout)
        return found

    def state(circuit: dict[str, Any]) -> str:
        return str(hub.ask("GET", f"/v1/circuits/{circuit['circuit']}")["state"])

    later = ["add", "--to", "a.example", "--begin", "+1h", "--end", "+1h"]
    held, short = asked(*later, "--rate", "60M", "--hold", "1h"), asked(*later, "--rate", "10M", "--hold", "5s")
    waits = asked("add", "--to", "a.example", "--rate", "10M", "--end", "+30m", "--by-hand")
    until("its window begins", lambda: state(waits) == "waiting" or None)

    hub.stop(signal.SIGKILL)
    hub = starter.hub()
    assert (state(held), state(waits)) == ("held", "waiting")
    until("the short hold expires", lambda: state(short) == "expired" or None)
    late = hub.command("circuits", "commit", str(short["circuit"]))
    assert (late.returncode, late.stderr.count("\n")) == (2, 1)
    assert "can't be committed" in late.stderr
    assert asked("commit", str(held["circuit"]))["state"] == "admitted"

    number = str(waits["circuit"])
    assert asked("create-path", number)["state"] == "provisioning"
    until("it fails without its far end", lambda: state(waits) == "failed" or None)
    down = asked("override", number, "active", "--reason", "the probe is wrong")
    assert (down["state"] != "active", down["overridden"]) == (True, "active")
    asked("tear-down-path", number, "--yes")
    until("its path is gone", lambda: state(waits) == "waiting" or None)
    events = [event["event"] for event in hub.ask("GET", f"/v1/circuits/{number}")["events"]]
    assert [one for one in events if one in ACTS] == ["admitted", "opened", "created", "overridden", "torn-down"]


def with_ports(hub: RunningHub) -> RunningHub:
    """The hub with a port of its own and one of a site, both on the loopback interface."""
    hub.ask("POST", "/v1/sites", 201, json={"site": "a.example"})
    for argv in (
        ["hub-port", "--interface", "lo", "--underlay", "127.0.0.1"],
        ["far-port", "--site", "a.example", "--interface", "lo", "--underlay", "127.0.0.2"],
    ):
        made = hub.command("ports", "add", *argv, "--rate", "100M", "--vlan", "100-199")
        assert (made.returncode, made.stderr) == (0, "")
    return hub


def failed(circuit: dict[str, Any]) -> dict[str, Any] | None:
    return circuit if circuit["state"] == "failed" else None


ACTS = ("admitted", "opened", "created", "overridden", "torn-down")
