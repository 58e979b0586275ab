"""A hub that is a provider for others, in virtual time; its process can end before and after each write."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from lxml import etree

from downburst.domain.circuits import FINISHED, Circuit
from downburst.domain.ordering.providers import Dialect
from downburst.foundation.clock import FakeClock, to_us
from downburst.ledger import Ledger
from downburst.settings.circuits import NsiProviderSettings
from downburst_circuits.nsi.refusals import Kind, Problem
from downburst_circuits.nsi.soap.asked import read_request
from downburst_circuits.nsi.soap.writing import envelope
from downburst_circuits.nsi.stp import stp
from downburst_circuits.nsi.transport import Posted
from downburst_circuits.nsi.words import Criteria, LifecycleState, Operation, Request
from downburst_circuits.provider_agent.agent import ProviderAgent
from downburst_circuits.provider_agent.carrying import Circuits
from downburst_circuits.provider_agent.delivery import ACKNOWLEDGE_S
from downburst_circuits.provider_agent.record import Connection
from kit.circuits import NodeInMemory
from kit.nsi import words
from kit.nsi.scene import Killed, Trial, a_provider, some_criteria
from unit.circuits.nsi.hub import NsiHub
from unit.circuits.stage import PORTS, Stage

SUBJECT = "CN=hub"
STPS = "urn:ogf:network:north.example:2026:topology"


class MortalLedger:
    """The ledger of a process that may end before and after each write."""

    def __init__(self, ledger: Ledger, trial: Trial) -> None:
        self._ledger = ledger
        self._trial = trial

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    async def write(self, work: Callable[[Any], Any], **given: Any) -> Any:
        self._trial.step()
        kept = await self._ledger.write(work, **given)
        self._trial.step()
        return kept


class Lender:
    """The provider agent of a hub with the ports of `Stage`, each with an STP."""

    def __init__(self, ledger: Ledger, clock: FakeClock, kill_at: frozenset[int] = frozenset()) -> None:
        self.trial = Trial(kill_at)
        self.ledger, self.clock = ledger, clock
        self.node = NodeInMemory()
        self.requests: list[str] = []
        self.posted: list[tuple[str, str, bytes]] = []
        self.refusal = ""
        """The reason for which requesters take no callback."""
        self.ids = (f"urn:uuid:00000000-0000-4000-9000-{number:012x}" for number in count(1))
        self.lives = 1
        self._fresh()

    async def open(self) -> "Lender":
        await self.stage.open()
        with self.ledger.transaction() as tx:
            for port in PORTS:
                tx.ports.change(replace(port, stp=f"{STPS}:{port.name}"))
        await self.stage.register.load()
        await self.agent.open()
        return self

    async def again(self) -> None:
        """The process ends; the next one finds ledger and node."""
        self.lives += 1
        self._fresh()
        await self.stage.open()
        await self.agent.open()

    async def safely(self, work: Callable[[], Any]) -> Any:
        """Does it; None if the process ended meanwhile, and a new one has begun."""
        try:
            return await work()
        except Killed:
            while True:
                try:
                    await self.again()
                except Killed:
                    continue
                return None

    async def turn(self) -> None:
        await self.safely(self._turn)

    async def after(self, seconds: float) -> None:
        self.clock.advance(seconds)
        await self.turn()

    async def ask(self, operation: Operation, connection_id: str | None = None, **given: Any) -> tuple[int, bytes]:
        """A request of our own requester, and what follows from it at this moment."""
        dialect = given.pop("dialect", Dialect.CAPACITY)
        request = Request(operation, next(self.ids), connection_id, **given)
        answered = await self.post(envelope(request, a_provider(dialect)))
        await self.turn()
        assert answered is not None
        return answered

    async def reserve(self, mbps: int = 50, criteria: Criteria | None = None) -> str:
        """The connection of a reservation that was acknowledged."""
        asked = criteria or between("hub-eth0", "unl.edu-eth1", mbps)
        status, body = await self.ask(Operation.RESERVE, version=1, criteria=asked, global_id="urn:uuid:g")
        assert status == 200, body
        return str(etree.fromstring(body).findtext(".//connectionId"))

    async def in_service(self, mbps: int = 50) -> str:
        connection_id = await self.reserve(mbps)
        for operation in (Operation.COMMIT, Operation.PROVISION):
            status, body = await self.ask(operation, connection_id)
            assert status == 200, body
        for _ in range(4):
            await self.after(1)
        return connection_id

    async def post(self, body: bytes, subject: str = SUBJECT) -> tuple[int, bytes] | None:
        """The status and body of the answer; None if the process ended before it."""
        found = await self.safely(lambda: self.agent.answer(body, subject))
        try:
            self.requests.append(str(read_request(body).operation))
        except Exception:  # noqa: BLE001
            self.requests.append("unreadable")
        return None if found is None else (500 if found.is_fault else 200, found.body)

    def live(self) -> list[Connection]:
        """Connections that have, or may still have, a place in the calendar."""
        return [one for one in self.agent.book.open() if one.lifecycle is not LifecycleState.TERMINATED]

    def one(self, connection_id: str) -> Connection:
        found = self.agent.book.get(connection_id)
        assert found is not None
        return found

    def circuit(self, connection_id: str) -> Circuit:
        number = self.one(connection_id).circuit
        assert number is not None
        with self.ledger.transaction(writes=False) as tx:
            return tx.circuits.one(number)

    def circuits(self) -> list[Circuit]:
        """Those that are not finished."""
        with self.ledger.transaction(writes=False) as tx:
            return [one for one in tx.circuits.unfinished() if one.state not in FINISHED]

    def told(self) -> list[str]:
        """The names of all callbacks so far."""
        return [name for _, name, _ in self.posted]

    def now_us(self) -> int:
        return to_us(self.clock.now())

    def _fresh(self) -> None:
        mortal: Any = MortalLedger(self.ledger, self.trial)
        self.stage = Stage(mortal, self.clock, self.node)
        settings = NsiProviderSettings(
            listen="127.0.0.1:0",
            nsa=words.PROVIDER_NSA,
            certificate=Path("c"),
            key=Path("k"),
            authorities=Path("a"),
            subjects=(SUBJECT,),
            hold_s=30,
        )
        circuits = Circuits(self.stage.service, self.stage.register, mortal, self.clock)
        self.agent = ProviderAgent(circuits, settings, self._post)

    async def _post(self, address: str, name: str, body: bytes) -> str:
        self.posted.append((address, name, body))
        return self.refusal

    async def _turn(self) -> None:
        for _ in range(3):
            self.agent.carrier.tick()
            await self.agent.carrier.idle()
            await self.stage.controller.tick()
            await self.stage.controller.idle()
        self.agent.carrier.tick()
        await self.agent.carrier.idle()
        await self.deliver()

    async def deliver(self) -> None:
        """Delivers what is due; acknowledgments take a moment."""
        self.clock.advance(2 * ACKNOWLEDGE_S)
        before = -1
        while before < len(self.posted):
            before = len(self.posted)
            self.agent.delivery.tick()
            await self.agent.delivery.idle()


class TwoHubs(NsiHub):
    """A hub whose provider north is another hub."""

    lender: Lender

    def lend(self, lender: Lender) -> "TwoHubs":
        self.lender = lender
        self.line.post = self._post  # type: ignore[method-assign]
        return self

    def granted_mbps(self) -> list[int]:
        return [one.committed.capacity_mbps for one in self.lender.live() if one.committed]

    async def _post(self, _action: str, body: bytes) -> Posted | Problem:
        self.trial.step()
        if self.line.cut:
            return Problem(Kind.UNREACHABLE, "provider north can't be reached (refused); check its URL")
        answered = await self.lender.post(body)
        self.trial.step()
        if answered is None:
            return Problem(Kind.UNREACHABLE, "provider north can't be reached (reset); check its URL")
        return Posted(*answered)

    async def _turn(self) -> None:
        await self.lender.turn()
        await super()._turn()
        await self.lender.turn()


def between(source: str, dest: str, mbps: int = 50, **given: Any) -> Criteria:
    """Criteria between two ports of the lender, with tags."""
    return replace(
        some_criteria(mbps),
        source=stp(f"{STPS}:{source}?vlan=100-119"),
        dest=stp(f"{STPS}:{dest}?vlan=120-139"),
        **given,
    )
