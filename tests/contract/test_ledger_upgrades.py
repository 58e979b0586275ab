"""The next release upgrades a schema with data in it, on both databases; and the refused upgrades."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import (
    BigInteger,
    Boolean,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    insert,
    inspect,
    select,
    text,
)
from sqlalchemy.types import JSON

from downburst.domain.alarms import TOLD_BY_DEFAULT, Objective, Receiver, ReceiverKind, Silence
from downburst.domain.circuits import CircuitCreation, PathOrder
from downburst.domain.feeds import Feed, TrafficMinute
from downburst.domain.sites import Site
from downburst.domain.subscriptions import Limit, Subscription
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import Failure
from downburst.ledger import Ledger, Transaction, standing_of
from downburst.ledger.repositories.answers import Answered
from downburst.ledger.storage.databases import connect
from downburst.ledger.storage.dump import NOT_KEPT, _reflected
from downburst.ledger.storage.schema import Standing, migrate
from factories import sketch_row
from kit.next_release import next_program, next_release

pytestmark = pytest.mark.all

DOWNBURST = str(Path(sys.executable).with_name("downburst"))
HEAD = Standing.nowhere().wanted
NEXT = f"{int(HEAD) + 1:04}"


def test_the_next_release_brings_the_schema_up_to_date_with_all_rows(empty_url: str, tmp_path: Path) -> None:
    engine = connect(empty_url)
    migrate(engine)
    with engine.begin() as connection:
        before = _reflected(connection)
        for table in before.sorted_tables:
            if table.name not in NOT_KEPT:
                connection.execute(insert(table), [_row(table, number) for number in (1, 2, 3)])
    kept = _contents(empty_url, before)
    assert all(len(rows) == 3 for rows in kept.values()), kept
    engine.dispose()
    with next_release(tmp_path) as revision:
        assert standing_of(empty_url) == Standing(HEAD, revision, (revision,))
        Ledger.open(empty_url).close()
        assert standing_of(empty_url) == Standing(revision, revision, ())
    assert _contents(empty_url, before) == kept
    with pytest.raises(Failure, match=rf"has schema {revision}.*a newer release wrote it; use that one"):
        Ledger.open(empty_url)


def test_circuits_of_before_are_automatic_and_neither_held_nor_overridden(empty_url: str, clock: FakeClock) -> None:
    engine = connect(empty_url)
    migrate(engine, "0006")
    with engine.begin() as connection:
        table = _reflected(connection).tables["circuits"]
        values = {"state": "admitted", "driver": "linux", "replication": "head-end", "cap": "hard"}
        connection.execute(insert(table).values(_row(table, 1) | values))
    engine.dispose()
    with _opened(empty_url, clock) as ledger, ledger.transaction() as tx:
        (circuit,) = tx.circuits.unfinished()
        assert (circuit.held_until, circuit.override, circuit.creation) == (None, None, CircuitCreation.AUTOMATIC)
        request = circuit.request
        assert (request.include, request.exclude, request.path_order) == ((), (), PathOrder.SHORTEST)
        tx.circuits.save(circuit)
        assert tx.circuits.one(circuit.number) == circuit


def test_sweeps_of_before_say_whether_they_were_conclusive(empty_url: str, clock: FakeClock) -> None:
    engine = connect(empty_url)
    migrate(engine, "0012")
    step = {"sent": 1_000, "lost": 200}
    results = [
        {"knee_bps": 6e7, "knee_reason": None, "steps": []},
        {"knee_bps": 6e7, "knee_reason": "the sender was too slow", "steps": [step]},
        {"knee_bps": None, "knee_reason": "the lowest rate lost packets", "steps": [step]},
        {"knee_bps": None, "knee_reason": "no rate lost packets", "steps": [{"sent": 1_000, "lost": 1}]},
        None,
    ]
    with engine.begin() as connection:
        tables = _reflected(connection).tables
        connection.execute(insert(tables["sites"]).values(_row(tables["sites"], 1)))
        site, table = connection.scalar(select(tables["sites"].c.name)), tables["probes"]
        for number, result in enumerate(results, 1):
            row = _row(table, number) | {"site": site, "kind": "knee", "result": result}
            connection.execute(insert(table).values(row))
    engine.dispose()
    Ledger.open(empty_url, clock).close()
    engine = connect(empty_url)
    with engine.begin() as connection:
        table = _reflected(connection).tables["probes"]
        found = connection.execute(select(table.c.conclusive).order_by(table.c.id)).scalars()
        assert [bool(one) for one in found] == [True, False, True, False, False]
    engine.dispose()


def test_what_this_release_kept_is_read_by_the_next(empty_url: str, tmp_path: Path, clock: FakeClock) -> None:
    with _opened(empty_url, clock) as ledger, ledger.transaction() as tx:
        _fill(tx, clock)
        hours = _hours(tx)
        measured = tx.measured.latency.rows()
    with next_release(tmp_path), _opened(empty_url, clock) as ledger, ledger.transaction() as tx:
        site = tx.sites.one("a.edu")
        assert (site.organisation, site.limits) == ("A", (LIMIT,))
        (window,) = tx.alerting.silences.current()
        assert (window.site, window.begins) == ("a.edu", clock.now() + HOUR)
        assert tx.alerting.objectives.all() == [OBJECTIVE]
        assert tx.alerting.site_receivers.of("a.edu") == [RECEIVER]
        assert _hours(tx) == hours
        assert tx.measured.latency.rows() == measured
        assert tx.access.answers.begin(ANSWERED) == ANSWERED
        tx.sites.change(replace(site, limits=(LIMIT, replace(LIMIT, feed="TEXT"))))
        tx.alerting.objectives.put(replace(OBJECTIVE, objective_ms=5.0))
        tx.measured.latency.add(sketch_row([3.0], site="a.edu", feed="NGRID", minute=MINUTE))


def _fill(tx: Transaction, clock: FakeClock) -> None:
    for feed in ("NGRID", "TEXT"):
        tx.feeds.add(Feed(feed))
    tx.sites.add(Site("a.edu", organisation="A", limits=(LIMIT,)))
    tx.subscriptions.add(Subscription(0, "a.edu", "NGRID"))
    tx.alerting.silences.add(Silence(0, clock.now() + 2 * HOUR, "anna", site="a.edu", begins=clock.now() + HOUR))
    tx.alerting.objectives.put(OBJECTIVE)
    tx.alerting.site_receivers.add(RECEIVER)
    tx.access.answers.begin(ANSWERED)
    tx.measured.latency.add(
        *(sketch_row([5.0, 9.0], site="a.edu", feed="NGRID", minute=MINUTE + n) for n in range(25))
    )
    while tx.measured.latency.roll_up(before_minute=MINUTE + 20):
        pass
    tx.measured.traffic.add(TrafficMinute("NGRID", MINUTE + n, 2, 700, 350) for n in range(90))


def _hours(tx: Transaction) -> list[tuple[str, int, int, int]]:
    found = tx.measured.traffic.spans(since_minute=0)
    return sorted((one.feed, one.minute, one.products, one.bytes) for one in found)


@contextmanager
def _opened(url: str, clock: FakeClock) -> Iterator[Ledger]:
    ledger = Ledger.open(url, clock)
    try:
        yield ledger
    finally:
        ledger.close()


HOUR = timedelta(hours=1)
MINUTE = 29_000_000
LIMIT = Limit("NGRID", "^Y", "TEST")
OBJECTIVE = Objective("NGRID", "a.edu", 900.0, quantile=0.9)
ANSWERED = Answered("key", "request")
RECEIVER = Receiver("duty", ReceiverKind.MAIL, "duty@a.edu", severities=TOLD_BY_DEFAULT, owner="a.edu")


@pytest.mark.parametrize("release", ["this", "next"])
def test_of_two_that_migrate_at_once_one_does_it(empty_url: str, release: str, tmp_path: Path) -> None:
    """Starts from nothing, and from this release's schema."""
    environment, before, head = None, "None", HEAD
    if release == "next":
        Ledger.open(empty_url).close()
        environment, before, head = next_program(tmp_path / "next"), HEAD, NEXT
    argv = [DOWNBURST, "migrate", "--ledger", empty_url, "--json"]
    pipe = subprocess.PIPE
    running = [subprocess.Popen(argv, stdout=pipe, stderr=pipe, text=True, env=environment) for _ in range(3)]
    ended = [process.communicate(timeout=120) for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], ended
    said = sorted(str(json.loads(out)["before"]) for out, _ in ended)
    assert said == sorted([head, head, before])
    with next_release(tmp_path):
        assert standing_of(empty_url).found == head


def test_a_check_says_what_is_pending_and_changes_nothing(empty_url: str, tmp_path: Path) -> None:
    first = _check(empty_url)
    assert (first.returncode, first.stderr) == (1, "")
    steps = ", ".join(Standing.nowhere().pending)
    assert first.stdout == f"the ledger has schema none; downburst migrate would bring {steps}\n"
    assert standing_of(empty_url).found is None
    Ledger.open(empty_url).close()
    second = _check(empty_url)
    assert (second.returncode, second.stdout) == (0, f"the ledger is up to date (schema {HEAD})\n")
    later = _check(empty_url, environment=next_program(tmp_path))
    assert (later.returncode, later.stderr) == (1, "")
    assert later.stdout == f"the ledger has schema {HEAD}; downburst migrate would bring {NEXT}\n"
    assert standing_of(empty_url).found == HEAD


def _check(url: str, environment: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    argv = [DOWNBURST, "migrate", "--check", "--ledger", url]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60, env=environment)


def test_a_newer_schema_is_refused_in_one_sentence(empty_url: str) -> None:
    Ledger.open(empty_url).close()
    engine = connect(empty_url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    for look in (Ledger.open, Ledger.look_into, standing_of):
        with pytest.raises(Failure, match=r"has schema 9999.*a newer release wrote it; use that one"):
            look(empty_url)


def test_a_migration_that_fails_leaves_what_was_there(
    empty_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Ledger.open(empty_url).close()
    engine = connect(empty_url)

    def broken(*_: object) -> None:
        raise RuntimeError("no more")

    with next_release(tmp_path) as revision:
        with monkeypatch.context() as patched:
            patched.setattr("alembic.op.create_table", broken)
            with pytest.raises(RuntimeError, match="no more"):
                migrate(engine)
        assert standing_of(empty_url).found == HEAD
        columns = {column["name"] for column in inspect(engine).get_columns("feeds")}
        assert "made_up" not in columns, "what it did before it failed is undone"
        engine.dispose()
        Ledger.open(empty_url).close()
        assert standing_of(empty_url).found == revision


def _contents(url: str, shape: MetaData) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of every table, limited to the columns of that schema."""
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
    """A value for every column; a reference points to a row of the same number."""
    return {column.name: _value(column.type, column.name, number) for column in table.columns}


def _value(kind: object, name: str, number: int) -> object:
    match kind:
        case JSON():
            return {"1": number}
        case Boolean():
            return number % 2 == 0
        case Integer() | BigInteger():
            # Instants, minutes and the rest: in this week, some hours or days apart.
            return int(time.time() * 1e6) - number * 86_400_000_000 if name.endswith("at") else 490_000 + number * 60
        case Float():
            return number + 0.25
        case LargeBinary():
            return bytes([number] * 3)
        case _:
            return f"{number}"
