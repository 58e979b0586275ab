"""A start that a lock in the ledger blocks for ever ends, and names the awaited lock."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from kit import running
from kit.patience import wait_for
from kit.postgres import Postgres
from kit.whole_hub import DOWNBURST, WholeHub

pytestmark = [pytest.mark.system]


@pytest.mark.parametrize(("table", "step"), [("alembic_version", "a check of the ledger"), ("feeds", "the ledger")])
def test_a_start_that_waits_for_a_lock_ends_with_the_step_and_the_next_one_works(
    tmp_path: Path, server: Postgres, table: str, step: str
) -> None:
    url = server.url(server.database())
    hub = WholeHub(tmp_path / "hub", ledger_url=url, top="start_step_s = 2.0").start()
    assert hub.stop() == 0
    with _locked(url, table), pytest.raises(AssertionError, match="the hub does not start again"):
        hub.start(seconds=0)
    assert hub.process.poll() == 1
    assert f"the start waited 2 s for one step ({step}) and ends" in hub.log()
    hub.top = ""
    assert hub.start().stop() == 0


def test_a_start_that_waits_for_a_lock_heeds_a_stop(tmp_path: Path, server: Postgres) -> None:
    url = server.url(server.database())
    hub = WholeHub(tmp_path / "hub", ledger_url=url)
    assert hub.start().stop() == 0
    with _locked(url, "feeds"), (hub.directory / "waiting.log").open("wb") as log:
        process = subprocess.Popen([DOWNBURST, "hub", "--settings", str(hub.write_settings())], stderr=log)
        running.note(process)
        wait_for("a start that waits", lambda: _waits(server))
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0


def _waits(server: Postgres) -> bool:
    return bool(server.execute("SELECT 1 FROM pg_locks WHERE NOT granted"))


@contextmanager
def _locked(url: str, table: str) -> Iterator[None]:
    with psycopg.connect(url) as other:
        other.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield
