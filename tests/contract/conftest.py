"""The ledger on SQLite, and on PostgreSQL where DOWNBURST_TEST_POSTGRES names one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from downburst.clock import FakeClock
from downburst.ledger import Book, Ledger
from postgres import POSTGRES, wipe


@pytest.fixture(params=["sqlite", *(["postgres"] if POSTGRES else [])])
def ledger(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[Ledger]:
    url = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    if request.param == "postgres" and POSTGRES:
        url = POSTGRES
        wipe(url)
    opened = Ledger.open(url, clock)
    yield opened
    opened.close()


@pytest.fixture
def book(ledger: Ledger) -> Iterator[Book]:
    with ledger.transaction() as opened:
        yield opened
