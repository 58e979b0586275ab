"""The acting loop is killed at each write and each request, and random days: no orphan, no second order."""

import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

import pytest

from downburst.domain.circuits import Circuit, CircuitAnswer, CircuitChange, CircuitProblem
from downburst.domain.ordering import OPEN
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import PartAway
from downburst.ledger import Ledger, Transaction
from downburst_scheduler.demand.loop import DemandLoop
from downburst_scheduler.demand.port import CircuitOrders
from unit.demand.world import FEED, TERMS, World, offer

T = TypeVar("T")


class Killed(BaseException):
    """The process ends here."""


class Fate:
    """Ends the process before or after its n-th effect."""

    def __init__(self, at: int, *, after: bool) -> None:
        self.left, self.after = at, after

    async def of(self, effect: Callable[[], Awaitable[T]]) -> T:
        self.left -= 1
        if self.left == -1 and not self.after:
            raise Killed
        result = await effect()
        if self.left == -1:
            raise Killed
        return result


class MortalLedger:
    """The ledger of a process that ends at a write."""

    def __init__(self, ledger: Ledger, fate: Fate) -> None:
        self._ledger, self._fate = ledger, fate

    async def read(self, of: Callable[[Transaction], T]) -> T:
        return await self._ledger.read(of)

    async def write(self, of: Callable[[Transaction], T]) -> T:
        return await self._fate.of(lambda: self._ledger.write(of))


class MortalService:
    """The circuit service, asked by a process that ends at a request; or one whose answers get lost."""

    def __init__(self, service: CircuitOrders, fate: Fate) -> None:
        self._service, self._fate = service, fate

    async def request(self, wanted: Circuit, *, dry_run: bool = False) -> CircuitAnswer:
        return await self._fate.of(lambda: self._service.request(wanted, dry_run=dry_run))

    async def modify(self, number: int, change: CircuitChange, *, by: str, dry_run: bool = False) -> CircuitAnswer:
        return await self._fate.of(lambda: self._service.modify(number, change, by=by, dry_run=dry_run))

    async def cancel(self, number: int, *, by: str, dry_run: bool = False) -> CircuitAnswer:
        return await self._fate.of(lambda: self._service.cancel(number, by=by, dry_run=dry_run))


class Lossy(MortalService):
    """The circuit service of another process: answers get lost before or after the request took effect."""

    def __init__(self, service: CircuitOrders, drawn: random.Random, share: float) -> None:
        super().__init__(service, self)  # type: ignore[arg-type]
        self._drawn, self._share = drawn, share

    async def of(self, effect: Callable[[], Awaitable[T]]) -> T:
        chance = self._drawn.random()
        if chance < self._share / 2:
            raise PartAway("the circuit service is silent")
        result = await effect()
        if chance < self._share:
            raise PartAway("the circuit service is silent")
        return result


def mortal(world: World, fate: Fate) -> None:
    """Starts a loop of this fate."""
    world.loop = DemandLoop(
        world.bus,
        MortalLedger(world.ledger, fate),  # type: ignore[arg-type]
        world.settings,
        MortalService(world.stage.service, fate),
        world.clock,
        drawn=random.Random(1),
    )


async def train(world: World) -> None:
    await world.stir()
    await world.after(100)


async def release(world: World) -> None:
    await world.silence()
    await world.after(5)


@pytest.mark.parametrize("after", [False, True])
async def test_a_loop_that_is_killed_at_any_effect_leaves_no_orphan_and_no_second_order(
    ledger: Ledger, clock: FakeClock, tmp_path: Path, after: bool
) -> None:
    world = await World(ledger, clock, tmp_path).open(TERMS)
    for at in range(20):
        before = len(world.orders())
        fate = Fate(at, after=after)
        mortal(world, fate)
        killed_in_train = killed_in_release = False
        try:
            await train(world)
        except Killed:
            killed_in_train = True
            world = await world.again()
            await train(world)
        try:
            await release(world)
        except Killed:
            killed_in_release = True
            world = await world.again()
            await world.after(10)
        assert len(world.orders()) == before + 1, f"killed at effect {at}"
        assert world.orders()[-1].step == "ended", world.orders()[-1].outcome
        assert (world.circuits(), world.riders(), world.stage.node.held) == ([], {}, {})
        if not (killed_in_train or killed_in_release):
            assert at >= 8, "order, request, its number, up, extension twice, leave, cancel, end"
            return
    raise AssertionError("a train has fewer effects")


@pytest.mark.parametrize("share", [0.3, 0.6])
async def test_lost_answers_of_the_circuit_service_leave_no_orphan(
    ledger: Ledger, clock: FakeClock, tmp_path: Path, share: float
) -> None:
    world = World(ledger, clock, tmp_path)
    world.service = Lossy(world.service, random.Random(7), share)
    await world.open(TERMS)
    for _ in range(6):
        await world.stir()
        await world.after(20)
        await world.silence()
        await world.after(20)
    assert len(world.orders()) >= 6
    assert all(order.step not in OPEN for order in world.orders())
    assert (world.circuits(), world.stage.node.held) == ([], {})


@pytest.mark.parametrize("seed", range(4))
async def test_random_days_keep_every_promise(ledger: Ledger, clock: FakeClock, tmp_path: Path, seed: int) -> None:
    print(f"seed {seed}")
    drawn = random.Random(seed)
    budget = offer(circuit_hours=drawn.uniform(0.05, 0.3), orders=drawn.randint(3, 20))
    world = await World(ledger, clock, tmp_path, seed=seed).open(TERMS, replace(TERMS, site="ttu.edu"), offer=budget)
    await world.open(TERMS, offer=budget, feed="CONDUIT")
    began = clock.now()
    for _ in range(60):
        world = await _something(world, drawn)
        _check(world, budget.budget.circuit_hours or 0.0, budget.budget.orders or 0, began)
    for feed in (FEED, "CONDUIT"):
        await world.silence(feed=feed)
    world.stage.node.silent.clear()
    await world.after(30)
    assert [order for order in world.orders() if order.step in OPEN] == []
    assert (world.circuits(), world.stage.node.held) == ([], {})
    assert all(order.outcome for order in world.orders())


async def _something(world: World, drawn: random.Random) -> World:
    feed = drawn.choice([FEED, FEED, "CONDUIT"])
    match drawn.randrange(8):
        case 0 | 1:
            await world.stir(feed)
        case 2:
            await world.silence(feed=feed)
        case 3:
            world.stage.node.silent ^= {"unl.edu"}
        case 4 if world.circuits():
            await world.stage.told(drawn.choice(world.circuits()), "down")
        case 5:
            mortal(world, Fate(drawn.randrange(6), after=drawn.random() < 0.5))
            with suppress(Killed):
                await world.stir(feed)
            return await world.again()
        case 6:
            world.stage.node.refuses = {drawn.randrange(30): CircuitProblem("no room in the kernel")}
        case _:
            await world.after(drawn.choice([1.0, 7.0, 40.0]))
    return world


def _check(world: World, hours: float, most: int, began: datetime) -> None:
    orders = world.orders()
    ends = [order.site for order in orders if order.step in OPEN]
    assert len(ends) == len(set(ends)), "two orders for one pair of ends"
    assert len(orders) <= most
    used_s = sum(order.reserved_s(world.clock.now()) for order in orders)
    assert world.clock.now() - began < timedelta(days=1)
    assert used_s <= hours * 3_600 + 1e-6
    known = {order.request_id for order in orders}
    assert {circuit.request.request_id for circuit in world.circuits()} <= known
