"""Acknowledged writes of the ledger survive a power cut: both databases sync each commit, whatever their defaults."""

from pathlib import Path

import pytest
from sqlalchemy import text

from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst.ledger.storage.databases import connect, options
from kit.postgres import Postgres


def setting(url: str, question: str) -> list[object]:
    """The answers of as many connections as a hub has at a time, on a database with its schema."""
    engine = connect(url)
    with engine.connect() as one, engine.connect() as other:
        found = [options(connection, writes=False).scalar(text(question)) for connection in (one, other)]
    engine.dispose()
    return found


def test_finding_16_a_ledger_in_sqlite_syncs_each_commit(tmp_path: Path, clock: FakeClock) -> None:
    url, full = f"sqlite:///{tmp_path / 'ledger.sqlite'}", 2
    Ledger.open(url, clock).close()
    assert setting(url, "PRAGMA synchronous") == [full, full]


@pytest.mark.parametrize(
    ("default", "wanted"), [("off", "on"), ("local", "on"), ("on", "on"), ("remote_apply", "remote_apply")]
)
def test_finding_16_a_ledger_in_postgresql_waits_for_its_log_whatever_the_database_says(
    server: Postgres, postgres_url: str, default: str, wanted: str
) -> None:
    name = postgres_url.rpartition("/")[2]
    server.execute(f"ALTER DATABASE {name} SET synchronous_commit = '{default}'")
    assert setting(postgres_url, "SHOW synchronous_commit") == [wanted, wanted]


def test_finding_16_what_the_url_says_of_options_does_not_turn_it_off(server: Postgres, postgres_url: str) -> None:
    url = f"{postgres_url}?options=-c%20synchronous_commit%3Doff"
    assert setting(url, "SHOW synchronous_commit") == ["on", "on"]
