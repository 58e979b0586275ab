"""A ledger for each test, whose schema was made once."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger


@pytest.fixture(scope="session")
def empty_ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demand") / "empty.sqlite"
    Ledger.open(f"sqlite:///{path}").close()
    return path


@pytest.fixture
def ledger(empty_ledger: Path, tmp_path: Path, clock: FakeClock) -> Iterator[Ledger]:
    path = tmp_path / "ledger.sqlite"
    shutil.copy(empty_ledger, path)
    opened = Ledger.open(f"sqlite:///{path}", clock)
    yield opened
    opened.close()
