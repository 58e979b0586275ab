"""`/healthz` names what does not work; `/readyz` says whether products go on, `/livez` that somebody answers."""

import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from integration.conftest import RunningHub, Starter, until

pytestmark = [pytest.mark.system, pytest.mark.beside]


@pytest.fixture
def starter(tmp_path: Path) -> Iterator[Starter]:
    with ExitStack() as stack:
        yield Starter(tmp_path, stack)


@pytest.fixture
def hub(starter: Starter) -> RunningHub:
    running = starter.hub()
    until("every probe passes", lambda: running.client.get("/healthz").is_success)
    return running


def failing(hub: RunningHub, path: str = "/healthz") -> set[str]:
    """The probes that a path names as failing."""
    answer = hub.client.get(path)
    probes = answer.json().get("probes", {})
    bad = {name for name, fault in probes.items() if fault != "ok"}
    assert (answer.status_code == 503) == bool(bad), answer.text
    return bad


def test_finding_14_health_names_a_node_that_was_stopped_and_the_hub_starts_another(hub: RunningHub) -> None:
    stopped = hub.node_pid()
    os.kill(stopped, signal.SIGSTOP)
    until("health names the node", lambda: failing(hub) == {"node"}, patience_s=60)
    assert failing(hub, "/readyz") == {"node"}
    assert hub.client.get("/livez").is_success
    until("another node answers", lambda: _is_well(hub) and hub.node_pid() != stopped, patience_s=150)


def test_finding_14_health_names_a_ledger_that_is_locked(hub: RunningHub) -> None:
    with closing(sqlite3.connect(hub.directory / "ledger.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        until("health names the ledger", lambda: "ledger" in failing(hub), patience_s=60)
        assert failing(hub, "/readyz") == set()
        other.execute("ROLLBACK")
    until("every probe passes again", lambda: _is_well(hub), patience_s=90)


def _is_well(hub: RunningHub) -> bool:
    return hub.client.get("/healthz").is_success
