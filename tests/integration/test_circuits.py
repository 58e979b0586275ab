"""Circuits on a running hub: requested with its users' commands, kept through a crash, judged by the real node."""

import json
import signal
from typing import Any

from integration.conftest import Starter, until


def test_circuits_are_kept_through_a_crash_and_never_active_without_their_far_end(starter: Starter) -> None:
    hub = starter.hub()
    hub.ask("POST", "/v1/sites", 201, json={"site": "a.example"})
    for argv in (
        ["hub-port", "--interface", "lo", "--underlay", "127.0.0.1"],
        ["far-port", "--site", "a.example", "--interface", "lo", "--underlay", "127.0.0.2"],
    ):
        made = hub.command("ports", "add", *argv, "--rate", "100M", "--vlan", "100-199")
        assert (made.returncode, made.stderr) == (0, "")
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


def failed(circuit: dict[str, Any]) -> dict[str, Any] | None:
    return circuit if circuit["state"] == "failed" else None
