"""A ledger file is checked before it is opened: missing or damaged parts are reported or refused."""

import asyncio
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from downburst.foundation.errors import Failure
from downburst.ledger import Ledger
from downburst.ledger.storage.soundness import break_seal, examine, flaw, seal, seal_of
from downburst.settings.hub import Settings
from downburst_app.wiring.ledger_watch import examined, read_through
from kit.damage.injuries import INJURIES, cut

CRASH = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA journal_mode=WAL")
connection.execute("CREATE TABLE facts (fact)")
for _ in range(40):
    connection.execute("INSERT INTO facts VALUES (?)", ("x" * 3000,))
os._exit(9)
"""


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """A ledger that was closed."""
    path = tmp_path / "ledger.sqlite"
    Ledger.open(f"sqlite:///{path}").close()
    return path


@pytest.fixture
def crashed(tmp_path: Path) -> Path:
    """A ledger whose process was killed, with all its writes in the log."""
    path = tmp_path / "crashed.sqlite"
    subprocess.run([sys.executable, "-c", CRASH, str(path)], check=False, timeout=60)
    return path


@pytest.mark.parametrize("injury", [Path.unlink, lambda path: path.write_bytes(b"")], ids=["missing", "empty"])
def test_a_ledger_that_is_gone_is_no_new_one_where_a_hub_worked(
    ledger: Path, injury: Callable[[Path], object]
) -> None:
    injury(ledger)
    assert examine(ledger, is_expected=False) == []
    with pytest.raises(Failure, match=r"ledger\.sqlite is (missing|empty).*; restore the last backup"):
        examine(ledger, is_expected=True)


@pytest.mark.parametrize("injury", ["cut", "scrambled"])
def test_a_ledger_that_can_not_be_read_is_refused_in_a_sentence(ledger: Path, injury: str) -> None:
    INJURIES[injury](ledger)
    with pytest.raises(Failure, match=r"ledger\.sqlite is damaged \(.*\); restore the last backup"):
        examine(ledger, is_expected=True)
    assert "is damaged" in (flaw(ledger) or "")


@pytest.mark.parametrize("injury", ["cut", "scrambled"])
def test_what_opens_a_damaged_ledger_says_so_without_a_traceback(ledger: Path, injury: str) -> None:
    INJURIES[injury](ledger)
    with pytest.raises(Failure, match="is damaged"):
        read_all(f"sqlite:///{ledger}")


def read_all(url: str) -> None:
    with Ledger.open(url).transaction() as tx:
        for repository in (tx.feeds, tx.sites, tx.subscriptions):
            repository.all()


def test_a_value_that_changed_while_the_hub_was_down_is_noticed_by_the_seal(ledger: Path) -> None:
    seal(ledger)
    assert examine(ledger, is_expected=True) == []
    with closing(sqlite3.connect(ledger)) as connection:
        connection.execute("PRAGMA user_version = 7")
    assert flaw(ledger) is None, "SQLite itself finds nothing"
    (said,) = examine(ledger, is_expected=True)
    assert "differs from the state" in said
    seal_of(ledger).write_text("{")
    (said,) = examine(ledger, is_expected=True)
    assert "differs from the state" in said, "and so it is where the seal is damaged"


def test_the_seal_is_of_a_ledger_that_nobody_has_open(ledger: Path) -> None:
    seal(ledger)
    opened = Ledger.open(f"sqlite:///{ledger}")
    assert not seal_of(ledger).exists(), "it is broken before anything is written"
    with opened.transaction() as tx:
        tx.access.answers.prove()
    seal(ledger)
    assert not seal_of(ledger).exists(), "the last transactions are not in the file yet"
    opened.close()
    seal(ledger)
    assert seal_of(ledger).exists()
    break_seal(ledger)
    assert not seal_of(ledger).exists()


def test_transactions_in_the_log_of_a_crash_are_there_or_said_to_be_lost(crashed: Path, tmp_path: Path) -> None:
    for injury in (None, *INJURIES):
        copy = copied(crashed, tmp_path / f"{injury}")
        if injury is not None:
            INJURIES[injury](copy.with_name(f"{copy.name}-wal"))
        said = examine(copy, is_expected=True)
        assert len(said) == (injury is not None), f"{injury}: {said}"
        assert all("crashed.sqlite-wal are lost" in sentence for sentence in said)


def test_an_index_that_is_damaged_or_missing_is_no_reason_for_an_alarm(crashed: Path, tmp_path: Path) -> None:
    for injury, injure in INJURIES.items():
        copy = copied(crashed, tmp_path / injury)
        injure(copy.with_name(f"{copy.name}-shm"))
        assert examine(copy, is_expected=True) == [], injury


def copied(ledger: Path, home: Path) -> Path:
    home.mkdir()
    for path in ledger.parent.glob(f"{ledger.name}*"):
        shutil.copy(path, home)
    return home / ledger.name


async def test_a_hub_seals_what_it_closes_and_tells_what_it_finds(ledger: Path, tmp_path: Path) -> None:
    url, node = f"sqlite:///{ledger}", tmp_path / "node"
    async with examined(url, node) as doubts:
        assert doubts == []
        assert not seal_of(ledger).exists()
    assert seal_of(ledger).exists()
    async with examined("postgresql://h/d", node) as doubts:
        assert doubts == []


async def test_the_scrub_says_once_that_the_ledger_is_damaged(ledger: Path) -> None:
    settings = Settings(data_dir=ledger.parent, scrub_hours=1e-9)
    cut(ledger)
    said: list[str] = []

    async def say(sentence: str) -> None:
        said.append(sentence)
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await read_through(settings, say)
    assert len(said) == 1
    assert "ledger.sqlite is damaged" in said[0]
