"""`/healthz` names faults; `/readyz` shows that products flow, `/livez` that the process answers.

The hub is the real one, started by a program that shortens its timeouts: the tests take the same number of rounds of
probes, and each round a fifth of the time.
"""

import os
import signal
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from integration.conftest import RunningHub, Starter, until
from kit.capabilities import needs
from kit.read_only import OWN_MOUNTS, read_only

pytestmark = [pytest.mark.system]


@pytest.fixture
def starter(tmp_path: Path) -> Iterator[Starter]:
    with ExitStack() as stack:
        yield Starter(tmp_path, stack)


@pytest.fixture
def hub(starter: Starter) -> RunningHub:
    return started(starter)


def started(starter: Starter, prefix: Sequence[str] = ()) -> RunningHub:
    running = starter.hub(command=[*prefix, sys.executable, "-c", IMPATIENT])
    until("every probe passes", lambda: _is_well(running))
    return running


def failing(hub: RunningHub, path: str = "/healthz") -> set[str]:
    """The probes that a path reports as failing."""
    answer = hub.client.get(path)
    probes = answer.json().get("probes", {})
    bad = {name for name, fault in probes.items() if fault != "ok"}
    assert (answer.status_code == 503) == bool(bad), answer.text
    return bad


def test_finding_14_health_names_a_node_that_was_stopped_and_the_hub_starts_another(hub: RunningHub) -> None:
    stopped = hub.node_pid()
    os.kill(stopped, signal.SIGSTOP)
    until("health names the node", lambda: failing(hub) == {"node", "store"}, patience_s=60)
    assert failing(hub, "/readyz") == {"node", "store"}
    assert said(hub, "store").startswith("node: "), "where the product got no further"
    assert hub.client.get("/livez").is_success
    until("another node answers", lambda: _is_well(hub) and hub.node_pid() != stopped, patience_s=150)


def test_finding_14_health_names_a_ledger_that_is_locked(hub: RunningHub) -> None:
    with closing(sqlite3.connect(hub.directory / "ledger.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        until("health names the ledger", lambda: "ledger" in failing(hub), patience_s=60)
        assert failing(hub, "/readyz") == set()
        other.execute("ROLLBACK")
    until("every probe passes again", lambda: _is_well(hub), patience_s=90)


@pytest.mark.root
def test_health_names_the_step_at_which_a_product_gets_no_further(starter: Starter) -> None:
    needs("root")
    hub = started(starter, OWN_MOUNTS)
    log = hub.directory / "node" / "log"
    with read_only(hub.process.pid, log):
        until("health names the log", lambda: failing(hub) == {"store"})
        assert failing(hub, "/readyz") == {"store"}
        assert said(hub, "store").startswith("append: ")
        assert "is read-only" in said(hub, "store")
    until("every probe passes again", lambda: _is_well(hub))
    with read_only(hub.process.pid, hub.directory / "spool"):
        until("health names the spool", lambda: said(hub, "store").startswith("spool: "))
    until("every probe passes again", lambda: _is_well(hub))
    spoil(sorted((log / ".probe").glob("*.segment"))[-2])
    until("health names the product", lambda: said(hub, "store").startswith("read-back: product "))
    assert hub.ask("GET", "/v1/feeds") == [], "nobody sees the feed of the probe"
    assert [feed["feed"] for feed in hub.ask("GET", "/v1/status")["feeds"]] == []


def said(hub: RunningHub, probe: str) -> str:
    return str(hub.ask("GET", "/v1/status")["probes"][probe])


def spoil(segment: Path) -> None:
    """Changes bytes in the middle of a product, in place: a mapped file must not be truncated."""
    with segment.open("r+b") as file:
        file.seek(2048)
        bytes_there = file.read(64)
        file.seek(2048)
        file.write(bytes(byte ^ 255 for byte in bytes_there))


def _is_well(hub: RunningHub) -> bool:
    return hub.client.get("/healthz").is_success


IMPATIENT = """
import downburst.supervision.probes as probes, downburst_worker.asking as asking
import downburst_app.wiring.watchdogs as dogs
probes.EVERY_S, probes.LIMIT_S, asking.PROOF_S, dogs.HUNG_S = 1.0, 4.0, 3.0, 12.0
from downburst_app.cli import main
main()
"""
