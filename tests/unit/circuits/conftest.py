"""A stage for each test."""

import pytest

from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from unit.circuits.stage import Stage


@pytest.fixture
async def stage(ledger: Ledger, clock: FakeClock) -> Stage:
    return await Stage(ledger, clock).open()
