"""The contract of all makers of circuits: nodes, third parties, NSI providers in memory and by HTTPS, other hubs."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from downburst.domain.circuits import (
    Circuit,
    CircuitCarriage,
    CircuitDriver,
    CircuitEnd,
    CircuitProblem,
    CircuitState,
)
from downburst.domain.ordering.providers import Certificate, Dialect
from downburst.foundation.clock import Clock, FakeClock, SystemClock
from downburst.foundation.errors import DownburstError, NodeAway
from downburst.ledger import Ledger
from downburst.settings.circuits import CircuitSettings
from downburst_circuits.lifecycle import Happening
from downburst_circuits.providers.agents import Way
from downburst_circuits.providers.makers import makers
from downburst_circuits.providers.port import Broken, CircuitProvider, Made, Removed, Waiting
from downburst_circuits.register import Said
from kit.circuits import M
from kit.nsi import words
from kit.nsi.server import Authority, serving
from unit.circuits.nsi.hub import BY_NSI, NsiHub
from unit.circuits.nsi.lender import Lender, TwoHubs

KINDS = ("linux", "linux-sites", "declared", "declared-sites", "nsi-supa", "nsi-opennsa", "nsi-https", "nsi-hub")


@dataclass
class World:
    """A maker of one kind, with the means to look behind it."""

    kind: str
    hub: NsiHub
    clock: Clock

    def maker(self) -> CircuitProvider:
        """A maker as a new process has it."""
        stage = self.hub.stage
        return makers(stage.register, stage.node, stage.agents, CircuitSettings()).of(self.wish())

    def wish(self) -> Circuit:
        wish = self.hub.stage.wish(rate=50, hours=10)
        near = "ttu.edu" if self.kind.endswith("-sites") else None
        if self.kind.startswith("linux"):
            return replace(wish, ends=(CircuitEnd("", near), CircuitEnd("", "unl.edu")))
        if self.kind.startswith("declared"):
            ends = (CircuitEnd("", near, address="10.10.0.1/24"), CircuitEnd("", "unl.edu", address="10.10.0.2/24"))
            return replace(wish, ends=ends, carriage=CircuitCarriage(CircuitDriver.DECLARED))
        return replace(wish, carriage=BY_NSI)

    async def begun(self) -> Circuit:
        circuit = (await self.hub.stage.service.request(self.wish())).circuit
        await self.hub.stage.register.happen(circuit.number, Happening.BEGIN, Said("begun"))
        return self.now(circuit)

    def now(self, circuit: Circuit) -> Circuit:
        return self.hub.stage.register.open[circuit.number]

    async def again(self) -> None:
        """The process ends and starts."""
        await self.hub.again()

    async def made(self, maker: CircuitProvider, circuit: Circuit) -> None:
        await self.until(lambda: maker.make(self.now(circuit)), Made)
        await self.hub.stage.register.happen(circuit.number, Happening.BUILT, Said("built"))

    async def until(self, step: Callable[[], Awaitable[object]], wanted: type) -> None:
        """Repeats a step while it waits."""
        give_up_s = time.monotonic() + 60
        while isinstance(found := await step(), Waiting):
            assert "\n" not in found.sentence
            assert time.monotonic() < give_up_s, found
            await self.turn()
        assert isinstance(found, wanted), found

    async def turn(self) -> None:
        if isinstance(self.clock, FakeClock):
            self.clock.advance(0.2)
        else:
            await asyncio.sleep(0.05)
        await self.hub.stage.agents.reload()
        await self.hub.stage.agents.turn()
        if isinstance(self.hub, TwoHubs):
            await self.hub.lender.turn()

    def existing(self) -> int:
        """Circuits behind the maker: leases of the node, or reservations at the provider."""
        if isinstance(self.hub, TwoHubs):
            return len(self.hub.lender.circuits())
        if self.kind.startswith("nsi"):
            return len(self.hub.machine.live())
        return len(self.hub.node.held)

    def refuse(self, circuit: Circuit) -> None:
        if isinstance(self.hub, TwoHubs):
            self.hub.lender.stage.register.calendar.capacity("hub-eth0", M)
        elif self.kind.startswith("nsi"):
            self.hub.machine.post = lambda body: (500, REFUSED)  # type: ignore[method-assign]
        else:
            self.hub.node.refuses[circuit.number] = CircuitProblem("the port has no room")


class HttpsHub(NsiHub):
    """The provider behind HTTPS with client certificates."""

    def _fresh(self):  # type: ignore[no-untyped-def]
        stage = super()._fresh()
        return type(stage)(self.ledger, self.clock, self.node, Way)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> tuple[Certificate, Certificate]:
    authority = Authority(tmp_path_factory.mktemp("certificates"), "authority").make()
    return authority.sign("hub"), authority.sign("provider")


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


@pytest.fixture(params=KINDS)
async def world(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    stack: ExitStack,
    certificates: tuple[Certificate, Certificate],
) -> AsyncIterator[World]:
    kind = request.param
    clock = SystemClock() if kind == "nsi-https" else FakeClock()
    ledger = Ledger.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}", clock)
    stack.callback(ledger.close)
    hub: NsiHub
    if kind == "nsi-hub":
        other = Ledger.open(f"sqlite:///{tmp_path / 'other.sqlite'}", clock)
        stack.callback(other.close)
        lender = await Lender(other, clock).open()  # type: ignore[arg-type]
        hub = TwoHubs(ledger, clock, "supa", Dialect.CAPACITY).lend(lender)  # type: ignore[arg-type]
    else:
        kinds = ("opennsa", Dialect.NONE) if kind == "nsi-opennsa" else ("supa", Dialect.P2PS)
        hub = (HttpsHub if kind == "nsi-https" else NsiHub)(ledger, clock, *kinds)  # type: ignore[arg-type]
    if kind == "nsi-https":
        ours, theirs = certificates
        served = stack.enter_context(serving(hub.machine, theirs))
        hub.provider = replace(hub.provider, url=served.url, certificate=ours)
    yield World(kind, await hub.open(), clock)
    for agent in list(hub.stage.agents._agents.values()):
        await agent.close()


async def test_a_circuit_is_made_once_however_often_it_is_asked_for(world: World) -> None:
    circuit, maker = await world.begun(), world.maker()
    await world.made(maker, circuit)
    assert isinstance(await maker.make(world.now(circuit)), Made)
    assert world.existing() == 1
    assert maker.is_held(world.now(circuit))
    assert maker.ended(world.now(circuit)) is None
    assert not maker.is_doubted(world.now(circuit))
    assert list(world.hub.node.held) == [circuit.number]


async def test_the_next_process_adopts_what_is_there(world: World) -> None:
    circuit = await world.begun()
    await world.made(world.maker(), circuit)
    await world.again()
    maker = world.maker()
    await world.until(lambda: maker.make(world.now(circuit)), Made)
    assert world.existing() == 1


async def test_removal_leaves_nothing_and_may_be_repeated(world: World) -> None:
    circuit, maker = await world.begun(), world.maker()
    await world.made(maker, circuit)
    await world.hub.stage.register.happen(circuit.number, Happening.CANCEL, Said("cancelled"))
    await world.until(lambda: maker.remove(world.now(circuit)), Removed)
    assert (world.existing(), world.hub.node.held) == (0, {})
    assert isinstance(await maker.remove(world.now(circuit)), Removed)


async def test_a_circuit_that_was_never_made_is_removed(world: World) -> None:
    circuit = await world.begun()
    await world.hub.stage.register.happen(circuit.number, Happening.CANCEL, Said("cancelled"))
    assert isinstance(await world.maker().remove(world.now(circuit)), Removed)


async def test_a_refusal_is_a_problem_in_one_sentence(world: World) -> None:
    circuit, maker = await world.begun(), world.maker()
    world.refuse(circuit)
    await world.until(lambda: maker.make(world.now(circuit)), Broken)
    broken = await maker.make(world.now(circuit))
    assert world.existing() == 0
    assert isinstance(broken, Broken | Waiting)


async def test_other_terms_are_given_or_refused_and_nothing_between(world: World) -> None:
    circuit, maker = await world.begun(), world.maker()
    await world.made(maker, circuit)
    before = world.now(circuit)
    work = asyncio.create_task(maker.change(before, replace(before, rate_out_bps=20 * M)))
    while not work.done():
        await asyncio.sleep(0.005)
        await world.turn()
    rate_bps = world.hub.node.held[circuit.number].circuit.rate_out_bps
    if world.kind == "nsi-opennsa":
        with pytest.raises(DownburstError):
            await work
        assert rate_bps == 50 * M
    else:
        await work
        assert rate_bps == 20 * M
    if world.kind.startswith("nsi"):
        assert world.hub.granted_mbps() == [rate_bps // M]


async def test_a_node_that_is_away_is_said_to_be(world: World) -> None:
    circuit, maker = await world.begun(), world.maker()
    await world.made(maker, circuit)
    world.hub.node.running = False
    with pytest.raises(NodeAway):
        await maker.make(world.now(circuit))
    with pytest.raises(NodeAway):
        await maker.remove(world.now(circuit))
    world.hub.node.running = True
    await world.hub.stage.register.happen(circuit.number, Happening.CANCEL, Said("cancelled"))
    await world.until(lambda: maker.remove(world.now(circuit)), Removed)
    assert world.now(circuit).state is CircuitState.CANCELLING
    assert world.existing() == 0


REFUSED = words.fault("00705", "CAPACITY_UNAVAILABLE")
