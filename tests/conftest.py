"""What all tests share."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst.supervision import FAULTS
from kit import running
from kit.kafka import Kafka, kafka
from kit.postgres import Postgres, postgres


@pytest.fixture(autouse=True)
def nothing_left_running() -> Iterator[None]:
    """Set up before all others, so ended after them: what a failed test did not end itself."""
    yield
    for command in running.end_what_is_left():
        print(f"ended after the test: {command}")


@pytest.fixture(autouse=True)
def no_faults_of_others() -> None:
    """What handlers of an earlier test met is no news in this one."""
    FAULTS.forget()


@pytest.fixture(scope="session")
def server() -> Iterator[Postgres]:
    """The PostgreSQL of this test process; each test makes databases of its own."""
    with postgres() as started:
        yield started


@pytest.fixture(scope="session")
def broker_of_process() -> Iterator[Kafka]:
    """The Kafka of this test process, which takes seconds to start."""
    with kafka() as started:
        yield started


@pytest.fixture
def broker(broker_of_process: Kafka) -> Iterator[Kafka]:
    """A Kafka that other tests use before and after: each has a prefix of its own. One that is killed comes back."""
    yield broker_of_process
    broker_of_process.revive()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(scope="session")
def empty_ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger's file without rows: all migrations take ten times as long as a copy of their result."""
    path = tmp_path_factory.mktemp("ledger") / "empty.sqlite"
    Ledger.open(f"sqlite:///{path}").close()
    return path


@pytest.fixture
def ledger(empty_ledger: Path, tmp_path: Path, clock: FakeClock) -> Iterator[Ledger]:
    path = tmp_path / "ledger.sqlite"
    shutil.copy(empty_ledger, path)
    opened = Ledger.open(f"sqlite:///{path}", clock)
    yield opened
    opened.close()


# Tests count every number of a log; those of heartbeats turn them on.
os.environ.setdefault("DOWNBURST_ALARMS__HEARTBEAT_S", "0")

# A loaded machine is slow, not wrong; a failure prints what replays it.
settings.register_profile("downburst", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("downburst")

# Hubs of tests share the disk of whoever runs them; how full that is shall not be on their pages.
os.environ.setdefault("DOWNBURST_ALARMS__DISK_FREE_SHARE", "0")
