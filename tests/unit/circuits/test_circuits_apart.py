"""Circuits in a separate process: the API asks the service over the bus, and the service asks the hub's node."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from downburst.bus.local import LocalBus
from downburst.domain.circuits import CircuitChange, CircuitCreation, CircuitRequest, CircuitState, Direction, Port
from downburst.domain.events import NodeChanged
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import AlreadyThere, BadInput, CircuitConflict, NodeAway, NotFound, PartAway
from downburst.ledger import Ledger
from downburst.parts import questions
from downburst.parts.names import Part
from downburst.parts.questions import answer_for_good
from downburst.supervision import start
from downburst_circuits import remote
from downburst_circuits.remote import RemoteCircuits, RemoteNode, answers_of_node, answers_of_service
from kit.circuits import M, NodeInMemory
from unit.circuits.stage import Stage


@asynccontextmanager
async def answered(stage: Stage) -> AsyncIterator[RemoteCircuits]:
    """The service behind the stage's bus."""
    work = answer_for_good(stage.bus, Part.CIRCUITS, answers_of_service(stage.service))
    task = start("test.service", work)
    await asyncio.sleep(0)
    yield RemoteCircuits(stage.bus)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_requests_are_answered_as_by_the_service_itself(stage: Stage) -> None:
    async with answered(stage) as circuits:
        wish = stage.wish(rate=500)
        tried = await circuits.request(wish, dry_run=True)
        assert (tried.done, tried.circuit.state) == (False, CircuitState.REQUESTED)
        made = await circuits.request(wish)
        assert (made.done, made.circuit) == (True, stage.register.open[made.circuit.number])
        assert (await circuits.request(wish)).done is False
        number = made.circuit.number
        changed = await circuits.modify(number, CircuitChange(rate_out_bps=400 * M), by="eve")
        assert changed.circuit.rate_out_bps == 400 * M
        copied = await circuits.clone(number, request_id="again", begin=None, by="eve", dry_run=True)
        assert copied.circuit.request.request_id == "again"
        with pytest.raises(BadInput, match="it can be measured when it is up"):
            await circuits.measure(number)
        await circuits.cancel(number, by="eve")
        assert number not in stage.register.open


async def test_the_life_of_a_circuit_is_asked_for_as_at_the_service_itself(stage: Stage) -> None:
    async with answered(stage) as circuits:
        request = CircuitRequest("by hand", creation=CircuitCreation.BY_HAND)
        held = await circuits.request(stage.wish(rate=500, request=request), 60.0)
        number = held.circuit.number
        assert held.circuit.held_until == stage.clock.now() + timedelta(seconds=60)
        assert (await circuits.commit(number, by="eve")).circuit.state is CircuitState.ADMITTED
        await stage.settle()
        assert (await circuits.create_path(number, by="eve", dry_run=True)).circuit.state is CircuitState.PROVISIONING
        assert (await circuits.create_path(number, by="eve")).done
        await stage.settle()
        down = await circuits.override(number, CircuitState.DOWN, "new switch", by="ann")
        assert (down.circuit.overridden, down.circuit.usable_state) == (CircuitState.DOWN, CircuitState.DOWN)
        assert (await circuits.override(number, None, by="ann")).circuit.override is None
        assert (await circuits.tear_down_path(number, by="eve")).circuit.state is CircuitState.TEARING_DOWN
        with pytest.raises(AlreadyThere, match="being torn down"):
            await circuits.create_path(number, by="eve")


async def test_refusals_come_back_with_what_they_know(stage: Stage) -> None:
    async with answered(stage) as circuits:
        first = (await circuits.request(stage.wish(rate=800))).circuit
        with pytest.raises(CircuitConflict) as refused:
            await circuits.request(stage.wish(rate=800, request=CircuitRequest("second")))
        assert refused.value.extra["circuits"][0]["circuit"] == first.number  # type: ignore[index]
        with pytest.raises(NotFound):
            await circuits.cancel(999, by="eve")


async def test_ports_are_made_changed_and_removed(stage: Stage) -> None:
    async with answered(stage) as circuits:
        port = await circuits.add_port(Port("p", 100 * M))
        assert (await circuits.change_port(Port("p", 200 * M))).rate_bps == 200 * M
        assert port.name in stage.register.ports
        await circuits.remove_port("p")
        assert port.name not in stage.register.ports
        with pytest.raises(AlreadyThere):
            await circuits.add_port(Port("hub-eth0", M))


async def test_a_service_that_is_away_is_said_to_be(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "SIGN_S", 0.01)
    with pytest.raises(PartAway, match="circuit service"):
        await RemoteCircuits(stage.bus).remove_port("hub-eth0")


class HubAndService:
    """Two processes on one bus: the hub with its node, and the stage of a service without a node."""

    def __init__(self, ledger: Ledger, clock: FakeClock) -> None:
        self.bus, self.inner = LocalBus(), NodeInMemory()
        self.node = RemoteNode(self.bus)
        self.stage = Stage(ledger, clock, self.node)  # type: ignore[arg-type]
        self.tasks: list[asyncio.Task[None]] = []

    async def hub(self) -> None:
        self.tasks.append(start("test.hub", answer_for_good(self.bus, Part.HUB, answers_of_node(self.inner))))
        await asyncio.sleep(0)

    async def service(self) -> None:
        self.tasks.append(start("test.node", self.node.run()))

    async def until_running(self, wanted: bool) -> None:
        async with asyncio.timeout(20):
            while self.node.running is not wanted:  # noqa: ASYNC110 - there is no event
                await asyncio.sleep(0.01)

    async def end(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


@pytest.fixture
async def both(ledger: Ledger, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[HubAndService]:
    monkeypatch.setattr(remote, "LOOK_S", 0.01)
    monkeypatch.setattr(questions, "SIGN_S", 0.3)
    made = HubAndService(ledger, clock)
    yield made
    await made.end()


async def test_the_service_has_the_hubs_node_make_circuits(both: HubAndService) -> None:
    await both.hub()
    await both.service()
    await both.until_running(True)
    lease = (await both.stage.open()).register.lease(await both.stage.reserve())
    assert [one.circuit for one in await both.node.hold_circuits([lease])] == [lease.circuit.number]
    assert (await both.node.circuit_up(lease)).state == "up"
    assert both.inner.held[lease.circuit.number] == lease
    site = lease.circuit.sites[0]
    assert (await both.node.probe_reach(lease.circuit.number, site)).received == 5
    train = await both.node.probe_rate(lease.circuit.number, site, Direction.OUT, rate_bps=M, duration_ms=500)
    assert train.sent
    assert await both.node.circuit_down(lease.circuit.number) == []
    assert lease.circuit.number not in both.inner.held


async def test_a_node_or_a_hub_that_is_away_is_a_node_away(both: HubAndService) -> None:
    await both.service()
    with pytest.raises(NodeAway, match="hub does not answer"):
        await both.node.circuit_down(1)
    await both.hub()
    await both.until_running(True)
    both.bus.publish(NodeChanged(both.stage.clock.now(), running=False, restarts=1))
    both.inner.running = False
    await both.until_running(False)
