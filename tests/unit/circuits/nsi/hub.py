"""A hub whose circuits are made by a simulated NSI provider: real service, ledger and requester, virtual time."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from downburst.domain.circuits import Circuit, CircuitCarriage, CircuitDriver, CircuitState
from downburst.domain.ordering.providers import Dialect, Provider
from downburst.foundation.clock import FakeClock, to_us
from downburst.ledger import Ledger
from downburst_circuits.nsi.refusals import Kind, Problem
from downburst_circuits.nsi.transport import Posted
from kit.circuits import NodeInMemory
from kit.nsi.provider import ProviderMachine
from kit.nsi.scene import Killed, Trial, a_provider
from unit.circuits.stage import PORTS, Stage


class Line:
    """The way to the machine. It counts as steps what a killed hub may or may not have sent and got."""

    def __init__(self, machine: ProviderMachine, trial: Trial) -> None:
        self.machine = machine
        self.trial = trial
        self.cut = False

    async def post(self, _action: str, body: bytes) -> Posted | Problem:
        self.trial.step()
        if self.cut:
            return Problem(Kind.UNREACHABLE, "provider north can't be reached (refused); check its URL")
        status, answer = self.machine.post(body)
        self.trial.step()
        return Posted(status, answer)


class NsiHub:
    """One hub and the provider north. `after` lets time pass on both sides."""

    def __init__(
        self,
        ledger: Ledger,
        clock: FakeClock,
        kind: str = "supa",
        dialect: Dialect = Dialect.P2PS,
        kill_at: frozenset[int] = frozenset(),
    ) -> None:
        self.ledger, self.clock = ledger, clock
        self.machine = ProviderMachine(self.now_us, kind=kind)
        self.trial = Trial(kill_at)
        self.line = Line(self.machine, self.trial)
        self.provider: Provider = a_provider(dialect)
        self.node = NodeInMemory()
        self.stage = self._fresh()

    def now_us(self) -> int:
        return to_us(self.clock.now())

    async def open(self) -> "NsiHub":
        with self.ledger.transaction() as tx:
            tx.planning.providers.put(self.provider)
        await self.stage.open()
        with self.ledger.transaction() as tx:
            for port in PORTS:
                tx.ports.change(replace(port, stp=f"urn:ogf:network:north.example:2026:topology:{port.name}"))
        await self.stage.register.load()
        return self

    async def again(self) -> None:
        """The process of the hub ends; the next one finds the ledger, the node and the provider."""
        self.stage = await self._fresh().open()

    async def order(self, *, rate: int = 50, **given: Any) -> Circuit:
        return await self.stage.reserve(rate=rate, carriage=BY_NSI, **given)

    async def active(self, **given: Any) -> Circuit:
        circuit = await self.order(**given)
        await self.until(lambda: self.state(circuit) is CircuitState.ACTIVE)
        return self.stage.kept(circuit)

    async def until(self, holds: Callable[[], bool], *, seconds: float = 900) -> None:
        """Lets time pass until something holds; a killed hub starts again."""
        for _ in range(int(seconds)):
            if holds():
                return
            await self.after(1)
        raise AssertionError((self.stage.register.open, self.machine.connections, self.machine.requests[-20:]))

    async def after(self, seconds: float) -> None:
        """Lets time pass, with turns of requester and controller."""
        self.clock.advance(seconds)
        try:
            await self._turn()
        except Killed:
            await self.again()

    async def while_it_waits(self, work: "asyncio.Task[Any]") -> None:
        """Lets time pass until a request to the service is answered."""
        async with asyncio.timeout(60):
            while not work.done():
                await self.after(0.2)
                # The request writes to the ledger meanwhile, in a thread.
                await asyncio.sleep(0.005)

    def state(self, circuit: Circuit) -> CircuitState:
        return self.stage.state(circuit)

    def reason(self, circuit: Circuit) -> str:
        return self.stage.kept(circuit).reason

    def granted_mbps(self) -> list[int]:
        """Of the committed reservations that the provider has."""
        return [one.granted.capacity for one in self.machine.live() if one.granted]

    def _fresh(self) -> Stage:
        return Stage(self.ledger, self.clock, self.node, lambda _: self.line)

    async def _turn(self) -> None:
        await self.stage.agents.reload()
        await self.stage.controller.tick()
        await self.stage.controller.idle()
        await self.stage.agents.turn()
        await self.stage.controller.tick()
        await self.stage.controller.idle()


BY_NSI = CircuitCarriage(CircuitDriver.NSI, provider="north")
