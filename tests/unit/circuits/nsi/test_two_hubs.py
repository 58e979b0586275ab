"""Two domains are two hubs: A's circuit is a reservation at B; either may be killed at each step."""

import asyncio
import os
import random
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from downburst.domain.circuits import FINISHED, Circuit, CircuitChange, CircuitState
from downburst.domain.ordering.providers import Dialect
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import CircuitConflict, DownburstError, Failure
from downburst.ledger import Ledger
from downburst_circuits.nsi.words import LifecycleState, Operation, ProvisionState
from downburst_circuits.providers import agents
from kit.circuits import M
from kit.nsi.scene import Killed
from unit.circuits.nsi.hub import BY_NSI
from unit.circuits.nsi.lender import Lender, TwoHubs, between


async def opened(
    empty: Path,
    directory: Path,
    name: str = "whole",
    kill_a: frozenset[int] = frozenset(),
    kill_b: frozenset[int] = frozenset(),
) -> TwoHubs:
    """Both hubs on fresh ledgers. B's steps count from here on."""
    clock, ledgers = FakeClock(), []
    for side in ("a", "b"):
        path = directory / f"{side}-{name}.sqlite"
        shutil.copy(empty, path)
        ledgers.append(Ledger.open(f"sqlite:///{path}", clock))
    lender = await Lender(ledgers[1], clock).open()
    hub = TwoHubs(ledgers[0], clock, "supa", Dialect.CAPACITY, kill_a).lend(lender)
    await hub.open()
    lender.trial.kill_at, lender.trial.steps = kill_b, 0
    return hub


def close(hub: TwoHubs) -> None:
    for ledger in (hub.ledger, hub.lender.ledger):
        ledger.close()


async def ordered_and_given_back(hub: TwoHubs) -> None:
    """A whole life with a change of the rate; afterwards nothing is left at either."""
    circuit = await hub.order(hours=10)
    await hub.until(lambda: hub.state(circuit) is CircuitState.ACTIVE)
    assert hub.granted_mbps() == [50]
    assert [one.rate_out_bps for one in hub.lender.circuits()] == [50_000_000]
    (connection,) = [one for one in hub.lender.live() if one.committed]
    ends = hub.stage.kept(circuit).ends
    assert [end.vlan for end in ends] == [connection.service.source.first_vlan, connection.service.dest.first_vlan]
    await hub.stage.service.cancel(circuit.number, by="op")
    await hub.until(lambda: hub.state(circuit) is CircuitState.CANCELLED)
    await hub.until(lambda: not hub.lender.circuits())
    assert (hub.node.held, hub.lender.node.held) == ({}, {})
    assert hub.lender.live() == []


async def test_a_circuit_of_two_domains_is_reserved_changed_and_given_back(
    empty_ledger: Path, tmp_path: Path
) -> None:
    hub = await opened(empty_ledger, tmp_path)
    circuit = await hub.active(hours=10)
    work = asyncio.create_task(hub.stage.service.modify(circuit.number, CircuitChange(20 * M), by="op"))
    await hub.while_it_waits(work)
    assert (hub.granted_mbps(), hub.lender.circuits()[0].rate_out_bps) == ([20], 20_000_000)
    await hub.stage.service.cancel(circuit.number, by="op")
    await hub.until(lambda: hub.state(circuit) is CircuitState.CANCELLED)
    assert (hub.lender.live(), hub.lender.circuits()) == ([], [])
    close(hub)


async def test_a_refused_change_leaves_the_old_terms_at_both(empty_ledger: Path, tmp_path: Path) -> None:
    hub = await opened(empty_ledger, tmp_path)
    circuit = await hub.active(hours=10)
    await hub.lender.stage.reserve(rate=900)
    work = asyncio.create_task(hub.stage.service.modify(circuit.number, CircuitChange(300 * M), by="op"))
    await hub.while_it_waits(work)
    error = work.exception()
    assert error is not None
    assert "circuit 2 holds 900 Mb/s out" in str(error)
    assert hub.stage.kept(circuit).rate_out_bps == 50_000_000
    await hub.until(lambda: hub.lender.live()[0].asked is None)
    assert hub.granted_mbps() == [50]
    close(hub)


async def test_the_other_domains_refusal_is_shown_in_its_own_words(empty_ledger: Path, tmp_path: Path) -> None:
    hub = await opened(empty_ledger, tmp_path)
    await hub.lender.stage.reserve(rate=980)
    circuit = await hub.order(hours=10)
    await hub.until(lambda: hub.state(circuit) is CircuitState.FAILED)
    reason = hub.reason(circuit)
    assert "it answered: 00705" in reason
    assert "circuit 1 holds 980 Mb/s out" in reason
    await hub.stage.service.cancel(circuit.number, by="op")
    await hub.until(lambda: hub.state(circuit) is CircuitState.CANCELLED)
    assert len(hub.stage.register.calendar) == 0
    assert len(hub.lender.circuits()) == 1
    close(hub)


async def held(hub: TwoHubs, **given: Any) -> Circuit:
    """A circuit that is held at both."""
    work = asyncio.create_task(hub.stage.service.request(hub.stage.wish(rate=50, carriage=BY_NSI, **given), 60))
    await hub.while_it_waits(work)
    return work.result().circuit


async def committed(hub: TwoHubs, circuit: Circuit) -> Circuit:
    work = asyncio.create_task(hub.stage.service.commit(circuit.number, by="op"))
    await hub.while_it_waits(work)
    return work.result().circuit


async def attempts(hub: TwoHubs, work: "asyncio.Task[Any]", count: int) -> None:
    """Lets time pass until so many attempts to reach the other domain have failed; then the hubs' clock stands.

    A hold ends after some seconds of theirs, and later attempts lie as far apart.
    """
    before = hub.trial.steps
    while hub.trial.steps < before + count and not work.done():
        await hub.after(0.2)
        # The request writes to the ledger in a thread.
        await asyncio.sleep(0.005)


async def test_a_hold_is_a_hold_in_both_domains_and_so_is_its_commit(empty_ledger: Path, tmp_path: Path) -> None:
    hub = await opened(empty_ledger, tmp_path)
    circuit = await held(hub, start=1, hours=10)
    assert [one.state for one in hub.lender.circuits()] == [CircuitState.HELD]
    assert (await committed(hub, circuit)).state is CircuitState.ADMITTED
    (other,) = hub.lender.circuits()
    assert (other.state, other.begin) == (CircuitState.ADMITTED, circuit.begin)
    await hub.until(lambda: hub.lender.live()[0].provision is ProvisionState.PROVISIONED)
    hub.clock.advance(3_600)
    await hub.until(lambda: hub.state(circuit) is CircuitState.ACTIVE)
    assert hub.lender.requests.count(Operation.RESERVE) == 1
    close(hub)


async def test_a_hold_that_the_other_domain_refuses_is_held_nowhere(empty_ledger: Path, tmp_path: Path) -> None:
    hub = await opened(empty_ledger, tmp_path)
    await hub.lender.stage.reserve(rate=980, hours=20)
    with pytest.raises(CircuitConflict, match=r"00705 .*circuit 1 holds 980 Mb/s out") as refused:
        await held(hub, start=1, hours=10)
    assert "\n" not in refused.value.sentence
    assert (len(hub.stage.register.calendar), hub.stage.register.open) == (0, {})
    await hub.until(lambda: not hub.lender.live())
    assert len(hub.lender.circuits()) == 1
    close(hub)


async def test_a_hold_while_the_other_domain_is_away_is_held_nowhere(
    empty_ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents, "CHANGE_S", 2.0)
    hub = await opened(empty_ledger, tmp_path)
    hub.line.cut = True
    wish = hub.stage.wish(rate=50, carriage=BY_NSI, start=1, hours=10)
    work = asyncio.create_task(hub.stage.service.request(wish, 60))
    await attempts(hub, work, agents.TOLD_AFTER)
    with pytest.raises(Failure, match="circuit 1 is not reserved: provider north can't be reached"):
        await work
    assert (len(hub.stage.register.calendar), hub.stage.register.open) == (0, {})
    hub.line.cut = False
    await hub.after(400)
    await hub.until(lambda: not hub.lender.live())
    assert hub.lender.circuits() == []
    close(hub)


async def test_a_commit_without_an_answer_leaves_the_hold_for_another_try(
    empty_ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = await opened(empty_ledger, tmp_path)
    circuit = await held(hub, start=1, hours=10)
    monkeypatch.setattr(agents, "CHANGE_S", 2.0)
    hub.line.cut = True
    work = asyncio.create_task(hub.stage.service.commit(circuit.number, by="op"))
    await attempts(hub, work, 1)
    with pytest.raises(Failure, match="its answer may still come"):
        await work
    assert hub.state(circuit) is CircuitState.HELD
    monkeypatch.setattr(agents, "CHANGE_S", 60.0)
    hub.line.cut = False
    assert (await committed(hub, circuit)).state is CircuitState.ADMITTED
    assert [one.state for one in hub.lender.circuits()] == [CircuitState.ADMITTED]
    close(hub)


async def test_a_hold_that_nobody_commits_ends_in_both_domains(empty_ledger: Path, tmp_path: Path) -> None:
    hub = await opened(empty_ledger, tmp_path)
    circuit = await held(hub, start=1, hours=10)
    await hub.until(lambda: hub.state(circuit) in FINISHED)
    await hub.until(lambda: not hub.lender.circuits() and not hub.lender.live())
    close(hub)


async def test_a_commit_after_the_other_domains_hold_has_ended_is_refused_in_both(
    empty_ledger: Path, tmp_path: Path
) -> None:
    hub = await opened(empty_ledger, tmp_path)
    circuit = await held(hub, start=1, hours=10)
    await hub.lender.after(31)
    with pytest.raises(CircuitConflict, match="gave up its hold before the commit"):
        await committed(hub, circuit)
    assert hub.state(circuit) is CircuitState.CANCELLED
    await hub.until(lambda: not hub.lender.circuits() and not hub.lender.live())
    close(hub)


async def test_a_cancelled_reservation_ahead_is_given_back_in_both_domains(
    empty_ledger: Path, tmp_path: Path
) -> None:
    hub = await opened(empty_ledger, tmp_path)
    circuit = await committed(hub, await held(hub, start=1, hours=10))
    await hub.stage.service.cancel(circuit.number, by="op")
    await hub.until(lambda: not hub.lender.circuits() and not hub.lender.live())
    assert len(hub.stage.register.calendar) == 0
    close(hub)


async def held_and_committed_or_nothing(hub: TwoHubs) -> None:
    """Whoever is killed: both have the reservation, or neither has it when the holds are over."""
    wish = hub.stage.wish(rate=50, carriage=BY_NSI, start=1, hours=10)
    for step in ("hold", "commit"):
        work = asyncio.create_task(
            hub.stage.service.request(wish, 60) if step == "hold" else hub.stage.service.commit(1, by="op")
        )
        process = hub.stage
        while not work.done() and hub.stage is process:
            await hub.after(0.2)
            await asyncio.sleep(0.005)
        work.cancel()
        with suppress(DownburstError, asyncio.CancelledError, Killed):
            await work
    for _ in range(100):
        await hub.after(1)
    ours = [one.state for one in hub.stage.register.open.values()]
    theirs = [one.state for one in hub.lender.circuits()]
    assert ours == theirs
    assert ours in ([], [CircuitState.ADMITTED])
    assert len(hub.lender.live()) == len(theirs)


@pytest.mark.all
async def test_held_and_committed_in_both_or_in_none_whoever_is_killed(empty_ledger: Path, tmp_path: Path) -> None:
    whole = await opened(empty_ledger, tmp_path)
    await held_and_committed_or_nothing(whole)
    assert len(whole.lender.circuits()) == 1
    steps = whole.trial.steps, whole.lender.trial.steps
    close(whole)
    for side, most in enumerate(steps):
        for step in range(1, most + 1):
            kills = [frozenset[int](), frozenset[int]()]
            kills[side] = frozenset({step})
            hub = await opened(empty_ledger, tmp_path, f"{side}-{step}", *kills)
            try:
                await held_and_committed_or_nothing(hub)
            except AssertionError as error:
                raise AssertionError(f"{'AB'[side]} killed at step {step}: {error}") from error
            close(hub)


@pytest.mark.all
async def test_b_is_killed_before_and_after_each_write(empty_ledger: Path, tmp_path: Path) -> None:
    whole = await opened(empty_ledger, tmp_path)
    await ordered_and_given_back(whole)
    steps = whole.lender.trial.steps
    close(whole)
    assert steps > 30
    for step in range(1, steps + 1):
        hub = await opened(empty_ledger, tmp_path, f"b{step}", kill_b=frozenset({step}))
        try:
            await ordered_and_given_back(hub)
        except AssertionError as error:
            raise AssertionError(f"B killed at step {step}: {error}") from error
        assert hub.lender.lives == 2
        close(hub)


@pytest.mark.all
async def test_a_is_killed_after_each_send_and_each_answer(empty_ledger: Path, tmp_path: Path) -> None:
    whole = await opened(empty_ledger, tmp_path)
    await ordered_and_given_back(whole)
    steps = whole.trial.steps
    close(whole)
    assert steps > 12
    for step in range(1, steps + 1):
        hub = await opened(empty_ledger, tmp_path, f"a{step}", kill_a=frozenset({step}))
        await ordered_and_given_back(hub)
        assert hub.lender.requests.count(Operation.RESERVE) == 1, f"A killed at step {step}"
        close(hub)


async def test_both_are_killed_many_times(empty_ledger: Path, tmp_path: Path) -> None:
    first = int(os.environ.get("DOWNBURST_SEED", "1"))
    for seed in range(first, first + 3):
        print(f"replay: DOWNBURST_SEED={seed} pytest tests/unit/circuits/nsi/test_two_hubs.py")
        chance = random.Random(seed)
        kills = [frozenset(chance.sample(range(1, most), 5)) for most in (30, 60)]
        hub = await opened(empty_ledger, tmp_path, f"seed{seed}", *kills)
        await ordered_and_given_back(hub)
        close(hub)


async def test_a_is_gone_for_good_after_a_hold_and_b_is_empty_afterwards(ledger: Ledger, clock: FakeClock) -> None:
    """B is killed while it holds, and starts again: the hold still ends."""
    lender = await Lender(ledger, clock).open()
    connection_id = await lender.reserve(criteria=between("hub-eth0", "unl.edu-eth1"))
    await lender.again()
    assert len(lender.circuits()) == 1
    await lender.after(31)
    assert lender.circuits() == []
    assert lender.one(connection_id).lifecycle is LifecycleState.CREATED
