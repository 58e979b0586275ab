"""The measurement's history holds the rows of a hub's ledger, and every question to it is answered."""

from pathlib import Path

import numpy as np
import pytest
from bench.people.history import KINDS, NOW, Case, fill, made_up_hour
from bench.people.questions import measured

from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst.ledger.repositories.latency.selection import Selection
from downburst.ledger.tables.latency import latency_minutes, latency_sheets
from downburst.sketches.sheet import Sheet
from downburst_latency.service import OPEN_MINUTES


@pytest.mark.all
def test_a_history_is_written_as_batches_and_roll_ups_would(tmp_path: Path) -> None:
    case, clock = Case(sites=2, feeds=1, days=2), FakeClock(NOW)
    short, long = (Ledger.open(f"sqlite:///{tmp_path / name}.sqlite", clock) for name in ("short", "long"))
    fill(short, case, 1)
    with short.transaction() as tx:
        minutes = tx.measured.latency.sheet(Selection(), step_minutes=1)
    with long.transaction() as tx:
        tx.measured.latency.add(*minutes.rows())
        while tx.measured.latency.roll_up(before_minute=int(NOW.timestamp()) // 60 - OPEN_MINUTES):
            pass
    for table in (latency_minutes, latency_sheets):
        assert _rows(short, table) == _rows(long, table)
        assert _rows(short, table)
    short.close()
    long.close()


def test_an_hour_made_up_counts_what_it_holds() -> None:
    hour = made_up_hour(Case(sites=3), 9, KINDS[0], 12, np.random.default_rng(1))
    assert {path.site for path in hour.paths} == {"site-000.edu", "site-001.edu", "site-002.edu"}
    assert hour.count.sum() == hour.held.sum() > 0
    one = Sheet.of_rows(list(hour.rows())[:1])
    assert one.min_us[0] <= one.sum_us[0] / one.count[0] <= one.max_us[0]


def test_every_question_is_timed() -> None:
    notes: list[str] = []
    rows = measured("SQLite", Case(sites=2, feeds=2, days=2), 1, 1, notes)
    assert all(row.ours > 0 for row in rows)
    assert len({row.id for row in rows}) == len(rows) > 10
    assert "2 days of 2 sites and 2 feeds" in notes[0]


def _rows(ledger: Ledger, table: object) -> list[tuple[object, ...]]:
    with ledger.transaction(writes=False) as tx:
        found = tx.measured.latency._connection.execute(table.select())  # type: ignore[attr-defined]
        return sorted(tuple(row) for row in found)
