"""The ledger on SQLite and on PostgreSQL: the same tests on both."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger, Transaction, migrate_ledger
from kit.postgres import Postgres


@pytest.fixture(scope="session")
def template(server: Postgres) -> str:
    """A database whose schema was made once, to copy."""
    name = server.database()
    migrate_ledger(server.url(name))
    return name


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a ledger that is still to be created."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'ledger.sqlite'}"
        return
    started: Postgres = request.getfixturevalue("server")
    name = started.database()
    yield started.url(name)
    started.drop(name)


@pytest.fixture
def postgres_url(server: Postgres, template: str) -> Iterator[str]:
    """A ledger of the current schema on PostgreSQL."""
    name = server.database(template)
    yield server.url(name)
    server.drop(name)


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger(request: pytest.FixtureRequest, empty_ledger: Path, tmp_path: Path, clock: FakeClock) -> Iterator[Ledger]:
    if request.param == "sqlite":
        url = f"sqlite:///{shutil.copy(empty_ledger, tmp_path / 'ledger.sqlite')}"
    else:
        url = request.getfixturevalue("postgres_url")
    opened = Ledger.open(url, clock)
    yield opened
    opened.close()


@pytest.fixture
def tx(ledger: Ledger) -> Iterator[Transaction]:
    with ledger.transaction() as opened:
        yield opened
