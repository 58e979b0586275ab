"""`downburst doctor` and `watch` on a real machine, beside a running hub."""

import json
import os
import signal

import pytest

from integration.conftest import RunningHub, Starter, until


@pytest.mark.all
def test_the_machine_is_looked_at_and_products_are_watched(starter: Starter) -> None:
    hub = starter.hub()
    directory = str(hub.directory)
    told = hub.command("doctor", "--data-dir", directory, "--json")
    findings = json.loads(told.stdout)
    assert {one["about"] for one in findings} == {
        *("system", "clock", "multicast", "amt", "buffers", "privileges", "real-time", "transports"),
        *("disk", "ports", "versions", "probes", "bridges", "sign-in"),
    }
    bad = [one for one in findings if one["state"] == "bad"]
    assert told.returncode == (1 if bad else 0), told.stdout
    assert [one["sentence"] for one in findings if one["about"] == "versions" and one["state"] == "bad"] == []
    hub.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID"})
    hub.ask("PUT", "/v1/feeds/NGRID/products/YAAA85 KWBH", 201, content=b"some bytes")
    seen = hub.command("watch", "--data-dir", directory, "-f", "NGRID", "-p", "^YAAA", "-n", "5", "-c", "1")
    assert seen.returncode == 0, seen.stderr
    time, who, level, size, _, feed, number, *product = seen.stdout.split()
    assert (who, level, size, feed, number, product) == (
        "watch",
        "INFO",
        "10",
        "NGRID",
        "000000001",
        ["YAAA85", "KWBH"],
    )
    assert time.endswith("Z")


@pytest.mark.all
def test_the_probes_of_a_hub_that_runs_are_shown(starter: Starter, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = starter.hub()
    monkeypatch.setenv("DOWNBURST_HTTP", hub.http)
    passing = {f"{name} passes" for name in ("ledger", "node", "store", "alarms", "event-loop")}
    until("every probe passes", lambda: probes_of(hub) == passing)
    os.kill(hub.node_pid(), signal.SIGSTOP)
    until("the node's probe fails", lambda: any(one.startswith("node fails: ") for one in probes_of(hub)))
    hub.stop()
    (nothing,) = probes_of(hub)
    assert "no hub answers" in nothing


def probes_of(hub: RunningHub) -> set[str]:
    """The sentences of `doctor` about probes."""
    told = hub.command("doctor", "--data-dir", str(hub.directory), "--json")
    return {one["sentence"] for one in json.loads(told.stdout) if one["about"] == "probes"}
