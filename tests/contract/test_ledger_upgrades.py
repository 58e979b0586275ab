"""The schema of every earlier release, with data in it, comes up to date on both databases; and what is refused."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import BigInteger, Boolean, Float, Integer, LargeBinary, MetaData, Table, insert, select, text
from sqlalchemy.types import JSON

from downburst.errors import Failure
from downburst.ledger import Ledger, standing_of
from downburst.ledger.databases import connect
from downburst.ledger.dump import NOT_KEPT, _reflected
from downburst.ledger.schema import Standing, migrate

DOWNBURST = str(Path(sys.executable).with_name("downburst"))
EARLIER = Standing.nowhere().pending[:-1]


@pytest.mark.parametrize("revision", EARLIER)
def test_an_earlier_schema_is_brought_up_to_date_with_all_its_rows(empty_url: str, revision: str) -> None:
    engine = connect(empty_url)
    migrate(engine, to=revision)
    with engine.begin() as connection:
        before = _reflected(connection)
        for table in before.sorted_tables:
            if table.name not in NOT_KEPT:
                connection.execute(insert(table), [_row(table, number) for number in (1, 2, 3)])
    kept = _contents(empty_url, before)
    assert all(len(rows) == 3 for rows in kept.values()), kept
    engine.dispose()
    assert standing_of(empty_url).found == revision
    Ledger.open(empty_url).close()
    assert standing_of(empty_url).pending == ()
    assert _contents(empty_url, before) == kept


def test_of_two_that_migrate_at_once_one_does_it(empty_url: str) -> None:
    argv = [DOWNBURST, "migrate", "--ledger", empty_url, "--json"]
    running = [subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    ended = [process.communicate(timeout=120) for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], ended
    head = Standing.nowhere().wanted
    said = sorted(str(json.loads(out)["before"]) for out, _ in ended)
    assert said == sorted([head, head, "None"])
    assert standing_of(empty_url).found == head


def test_a_check_says_what_is_pending_and_changes_nothing(empty_url: str) -> None:
    argv = [DOWNBURST, "migrate", "--check", "--ledger", empty_url]
    first = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert (first.returncode, first.stderr) == (1, "")
    assert first.stdout.startswith("the ledger has schema none; downburst migrate would bring 0001, 0002")
    assert standing_of(empty_url).found is None
    Ledger.open(empty_url).close()
    second = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert (second.returncode, second.stdout) == (
        0,
        f"the ledger is up to date (schema {Standing.nowhere().wanted})\n",
    )


def test_a_newer_schema_is_refused_in_one_sentence(empty_url: str) -> None:
    Ledger.open(empty_url).close()
    engine = connect(empty_url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    for look in (Ledger.open, Ledger.look_into, standing_of):
        with pytest.raises(Failure, match=r"has schema 9999.*a newer release wrote it; use that one"):
            look(empty_url)


def test_a_migration_that_fails_leaves_what_was_there(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = connect(empty_url)
    migrate(engine, to=EARLIER[-2])

    def broken(_: object) -> None:
        raise RuntimeError("no more")

    with monkeypatch.context() as patched:
        patched.setattr("alembic.op.create_table", broken)
        patched.setattr("alembic.op.add_column", broken)
        with pytest.raises((RuntimeError, TypeError)):
            migrate(engine)
    engine.dispose()
    assert standing_of(empty_url).found == EARLIER[-2]
    Ledger.open(empty_url).close()


def _contents(url: str, shape: MetaData) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of every table, as far as its columns were there then."""
    engine = connect(url)
    with engine.connect() as connection:
        found = {
            table.name: sorted(tuple(row) for row in connection.execute(_plainly(table)))
            for table in shape.sorted_tables
            if table.name not in NOT_KEPT
        }
    engine.dispose()
    return found


def _plainly(table: Table) -> Any:
    """Every column that can be compared."""
    columns = (column for column in table.columns if not isinstance(column.type, JSON))
    return select(*(text(f'"{column.name}"') for column in columns)).select_from(table)


def _row(table: Table, number: int) -> dict[str, Any]:
    """Something in every column; what refers to another row refers to one of the same number."""
    return {column.name: _value(column.type, column.name, number) for column in table.columns}


def _value(kind: object, name: str, number: int) -> object:
    match kind:
        case JSON():
            return {"1": number}
        case Boolean():
            return number % 2 == 0
        case Integer() | BigInteger():
            # Instants, minutes and the rest: of this week, some hours or days apart.
            return int(time.time() * 1e6) - number * 86_400_000_000 if name.endswith("at") else 490_000 + number * 60
        case Float():
            return number + 0.25
        case LargeBinary():
            return bytes([number] * 3)
        case _:
            return f"{number}"
