"""A hub's process ends after any send or answer; the next one, on the same ledger, makes no second reservation."""

import os
import random
import shutil
from pathlib import Path

import pytest

from downburst.domain.circuits import CircuitState
from downburst.domain.ordering.providers import Dialect
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import BadInput
from downburst.ledger import Ledger
from unit.circuits.nsi.hub import NsiHub

KINDS = pytest.mark.parametrize(
    ("kind", "dialect"), [("supa", Dialect.P2PS), pytest.param("opennsa", Dialect.NONE, marks=pytest.mark.all)]
)


async def ordered_and_given_back(hub: NsiHub) -> None:
    """A whole life; in between the provider's own list shows exactly one reservation."""
    circuit = await hub.order(hours=10)
    await hub.until(lambda: hub.state(circuit) is CircuitState.ACTIVE)
    assert hub.granted_mbps() == [50]
    await hub.stage.service.cancel(circuit.number, by="op")
    await hub.until(lambda: hub.state(circuit) is CircuitState.CANCELLED)
    assert hub.machine.live() == []
    assert hub.node.held == {}


async def on_a_copy(empty: Path, directory: Path, kill_at: frozenset[int], kind: str, dialect: Dialect) -> NsiHub:
    path = directory / f"{'-'.join(map(str, sorted(kill_at))) or 'whole'}.sqlite"
    shutil.copy(empty, path)
    clock = FakeClock()
    ledger = Ledger.open(f"sqlite:///{path}", clock)
    try:
        hub = await NsiHub(ledger, clock, kind, dialect, kill_at).open()
        await ordered_and_given_back(hub)
    finally:
        ledger.close()
    return hub


@KINDS
async def test_killed_after_each_send_and_each_answer(
    empty_ledger: Path, tmp_path: Path, kind: str, dialect: Dialect
) -> None:
    whole = await on_a_copy(empty_ledger, tmp_path, frozenset(), kind, dialect)
    assert whole.trial.steps > 12
    for step in range(1, whole.trial.steps + 1):
        hub = await on_a_copy(empty_ledger, tmp_path, frozenset({step}), kind, dialect)
        reserves = hub.machine.requests.count("reserve")
        assert reserves == 1, f"killed at step {step}: {hub.machine.requests}"


@KINDS
async def test_killed_many_times(empty_ledger: Path, tmp_path: Path, kind: str, dialect: Dialect) -> None:
    first = int(os.environ.get("DOWNBURST_SEED", "1"))
    for seed in range(first, first + 5):
        print(f"replay: DOWNBURST_SEED={seed} pytest tests/unit/circuits/nsi/test_killed_hub.py")
        kill_at = frozenset(random.Random(seed).sample(range(1, 30), 6))
        hub = await on_a_copy(empty_ledger, tmp_path, kill_at, kind, dialect)
        assert hub.machine.requests.count("reserve") == 1, f"seed {seed}"


async def test_a_circuit_that_was_cancelled_while_the_hub_was_off_leaves_no_orphan(
    ledger: Ledger, clock: FakeClock
) -> None:
    hub = await NsiHub(ledger, clock, kill_at=frozenset({2})).open()
    circuit = await hub.order(hours=10)
    while hub.trial.steps < 2:
        await hub.after(1)
    assert len(hub.machine.live()) == 1
    await hub.stage.service.cancel(circuit.number, by="op")
    await hub.until(lambda: hub.state(circuit) is CircuitState.CANCELLED)
    assert hub.machine.live() == []
    with pytest.raises(BadInput):
        await hub.stage.service.cancel(circuit.number, by="op")
