"""A stage for each test, over a ledger whose schema was made once."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from unit.circuits.stage import Stage


@pytest.fixture(scope="session")
def empty_ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("circuits") / "empty.sqlite"
    Ledger.open(f"sqlite:///{path}").close()
    return path


@pytest.fixture
def ledger(empty_ledger: Path, tmp_path: Path, clock: FakeClock) -> Iterator[Ledger]:
    path = tmp_path / "ledger.sqlite"
    shutil.copy(empty_ledger, path)
    opened = Ledger.open(f"sqlite:///{path}", clock)
    yield opened
    opened.close()


@pytest.fixture
async def stage(ledger: Ledger, clock: FakeClock) -> Stage:
    return await Stage(ledger, clock).open()
