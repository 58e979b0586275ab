"""A requester and a provider's machine in one process, in virtual time; either may lose what it sends."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count

from downburst.domain.ordering.providers import Dialect, Provider
from downburst.foundation.clock import FakeClock, to_us
from downburst_circuits.nsi.order import Change, changed, in_transit, new_order
from downburst_circuits.nsi.record import Order, Stage, as_json, from_json
from downburst_circuits.nsi.refusals import Kind, Problem, Unsent
from downburst_circuits.nsi.requester import Requester, World
from downburst_circuits.nsi.stp import stp
from downburst_circuits.nsi.transport import Posted
from downburst_circuits.nsi.words import Criteria
from kit.nsi import words
from kit.nsi.provider import ProviderMachine


class Killed(BaseException):
    """The requester's process ends here."""


@dataclass
class Trial:
    """The number of the step at which the process is killed; steps are counted across lives."""

    kill_at: frozenset[int] = frozenset()
    steps: int = 0

    def step(self) -> None:
        self.steps += 1
        if self.steps in self.kill_at:
            raise Killed


@dataclass
class Disk:
    """The stored records, as JSON."""

    trial: Trial
    stored: dict[int, object] = field(default_factory=dict)

    async def save(self, order: Order) -> None:
        self.trial.step()
        self.stored[order.circuit] = as_json(order)
        self.trial.step()

    def orders(self) -> list[Order]:
        return [from_json(stored) for stored in self.stored.values()]  # type: ignore[arg-type]


@dataclass
class Way:
    """The exchange: by turns it may refuse connections, lose requests or answers, or deliver a request later."""

    machine: ProviderMachine
    trial: Trial
    fate: Callable[[], str] = lambda: "arrives"
    delayed: list[bytes] = field(default_factory=list)

    async def post(self, action: str, body: bytes) -> Posted | Problem:
        assert action.startswith('"http://schemas.ogf.org/nsi/2013/12/connection/service/')
        self.trial.step()
        fate = self.fate()
        if fate == "lost":
            return Problem(Kind.UNREACHABLE, "provider north can't be reached")
        if fate == "refused":
            return Unsent(Kind.UNREACHABLE, "provider north can't be reached (connection refused)")
        if fate == "late":
            self.delayed.append(body)
            return Problem(Kind.UNREACHABLE, "provider north did not answer")
        status, answer = self.machine.post(body)
        self.trial.step()
        return Problem(Kind.UNREACHABLE, "answer lost") if fate == "answer lost" else Posted(status, answer)

    def deliver_late(self) -> None:
        while self.delayed:
            self.machine.post(self.delayed.pop(0))


class Scene:
    """Both sides. `run` lives on after each kill, from the stored records."""

    def __init__(
        self, kind: str = "supa", dialect: Dialect = Dialect.P2PS, kill_at: frozenset[int] = frozenset()
    ) -> None:
        self.clock = FakeClock()
        self.trial = Trial(kill_at)
        self.machine = ProviderMachine(self.now_us, kind=kind)
        self.disk, self.way = Disk(self.trial), Way(self.machine, self.trial)
        self.provider = a_provider(dialect)
        self.ids = numbered_ids()
        self.requester = self._fresh()

    def now_us(self) -> int:
        return to_us(self.clock.now())

    def _fresh(self) -> Requester:
        world = World(self.clock, self.id, lambda: 0.5)
        return Requester(self.provider, self.way, self.disk, world, self.disk.orders())

    @property
    def order(self) -> Order:
        return self.requester.orders[7]

    async def begin(self, criteria: Criteria | None = None) -> None:
        wanted = new_order(7, self.provider, criteria or some_criteria(), "circuit 7", self.id)
        await self.safely(lambda: self.requester.add(wanted), again=lambda: 7 not in self.disk.stored)

    async def change(self, change: Callable[[Order], Order], again: Callable[[Order], bool]) -> None:
        await self.safely(lambda: self.requester.change(7, change), again=lambda: again(self.order))

    async def safely(self, act: Callable[[], object], again: Callable[[], bool]) -> None:
        """Acts; after a kill once more unless the record shows that it was done."""
        while True:
            try:
                await act()  # type: ignore[misc]
            except Killed:
                self.requester = self._fresh()
                if again():
                    continue
            return

    async def run(self, until: Callable[[], bool], *, seconds: float = 1_200) -> None:
        """Turns in virtual time until something holds."""
        last_us = self.now_us() + int(seconds * 1e6)
        while not until():
            assert self.now_us() < last_us, f"{self.order}\n{self.machine.connections}\n{self.machine.requests[-20:]}"
            self.clock.advance(await self._turn() or 0.1)

    async def settle(self, seconds: float) -> None:
        """Turns for so long."""
        end_us = self.now_us() + int(seconds * 1e6)
        await self.run(lambda: self.now_us() >= end_us, seconds=seconds + 60)

    async def at_rest(self) -> None:
        await self.run(lambda: not in_transit(self.order))

    async def _turn(self) -> float:
        try:
            return await self.requester.turn()
        except Killed:
            self.requester = self._fresh()
            return 0.1

    def id(self) -> str:
        return next(self.ids)

    def changed_to(self, capacity_mbps: int) -> Callable[[Order], Order]:
        wanted = Change(capacity_mbps, None)
        return lambda order: changed(order, wanted, self.provider, self.now_us(), self.id)

    def committing(self) -> bool:
        ask = self.order.serving.ask
        return ask is not None and ask.stage is Stage.COMMITTING

    def granted_mbps(self) -> list[int]:
        """Of the reservations that exist and are committed."""
        return [one.granted.capacity for one in self.machine.live() if one.granted]

    def known(self) -> set[str]:
        """The connections that the requester believes to exist."""
        return {
            one.connection_id for one in self.order.reservations if one.connection_id and one.life.value != "gone"
        }

    def existing(self) -> set[str]:
        return {one.connection_id for one in self.machine.live()}


def a_provider(dialect: Dialect = Dialect.P2PS, url: str = "http://127.0.0.1:9/nsi") -> Provider:
    return Provider(
        "north", url, words.PROVIDER_NSA, words.REQUESTER_NSA, dialect, reply_to="https://hub.example/nsi"
    )


def some_criteria(capacity_mbps: int = 50, port: str = "hub", end_us: int | None = None) -> Criteria:
    topology = "urn:ogf:network:north.example:2026:topology"
    return Criteria(
        capacity_mbps, stp(f"{topology}:{port}?vlan=100-119"), stp(f"{topology}:unl?vlan=120-139"), end_us=end_us
    )


def numbered_ids() -> Iterator[str]:
    return (f"urn:uuid:00000000-0000-4000-8000-{number:012x}" for number in count(1))
