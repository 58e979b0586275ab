"""Circuits that begin at senders: made there, lost with the sender, and left to nobody when it is gone."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from downburst.domain.circuits import Circuit, CircuitEnd, CircuitState, Port
from downburst.domain.senders import SenderSeen
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import BadInput
from downburst.ledger import Ledger
from downburst.parts import questions
from downburst.parts.names import SenderPart
from downburst.parts.questions import answer_for_good
from downburst.supervision import start
from downburst_circuits.near_nodes import SILENT_S
from downburst_circuits.remote_nodes import answers_of_node
from kit.circuits import M, NodeInMemory
from unit.circuits.stage import Stage


class Scene:
    """The stage with a port at the sender `one`, whose node answers over the bus."""

    def __init__(self, ledger: Ledger, clock: FakeClock) -> None:
        self.stage = Stage(ledger, clock)
        self.sender = NodeInMemory()
        self.run = "first"

    async def open(self) -> "Scene":
        await self.stage.open()
        answers = answers_of_node(self.sender)
        self._answering = start("test.sender", answer_for_good(self.stage.bus, SenderPart("one"), answers))
        await asyncio.sleep(0)
        await self.stage.service.add_port(PORT)
        return self

    async def close(self) -> None:
        self._answering.cancel()
        await asyncio.gather(self._answering, return_exceptions=True)

    async def signs(self, seconds: float = 0.5) -> None:
        """Time passes in which the sender shows that it lives."""
        for _ in range(max(1, round(seconds / 0.5))):
            self.stage.clock.advance(0.5)
            await self.stage.controller.handle(SenderSeen("one", self.run, running=True))
            await self.stage.settle()

    async def dies(self) -> None:
        """The sender's machine is lost: no sign and no answer comes."""
        self.sender.running = False
        await self.silence()

    async def silence(self) -> None:
        """No sign comes for too long."""
        for _ in range(4):
            await self.stage.after(SILENT_S / 3)

    async def starts_again(self) -> None:
        self.run, self.sender.running = "second", True
        self.sender.held.clear()
        self.sender.done.clear()
        await self.signs()

    async def reserve(self, port: str = "one-eth0") -> Circuit:
        return await self.stage.reserve(ends=(CircuitEnd(port), CircuitEnd("", "unl.edu")))


@pytest.fixture
async def scene(ledger: Ledger, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    monkeypatch.setattr(questions, "SIGN_S", 0.3)
    made = await Scene(ledger, clock).open()
    yield made
    await made.close()


async def test_each_node_makes_the_circuits_of_its_own_ports(scene: Scene) -> None:
    await scene.signs()
    there, here = await scene.reserve(), await scene.reserve("hub-eth0")
    await scene.signs(2)
    assert [scene.stage.state(one) for one in (there, here)] == [CircuitState.ACTIVE] * 2
    assert set(scene.sender.held) == {there.number}
    assert set(scene.stage.node.held) == {here.number}
    await scene.stage.service.cancel(there.number, by="eve")
    await scene.signs(2)
    assert scene.stage.state(there) is CircuitState.CANCELLED
    assert not scene.sender.held
    assert not any(f" {there.number}" in done for done in scene.stage.node.done if done.startswith("down"))


async def test_a_circuit_waits_for_its_sender_and_tells_so(scene: Scene) -> None:
    await scene.silence()
    circuit = await scene.reserve()
    await scene.stage.settle()
    assert scene.stage.state(circuit) is CircuitState.PROVISIONING
    assert scene.stage.kept(circuit).reason == "the sender one at its near end does not run"
    await scene.signs(2)
    assert scene.stage.state(circuit) is CircuitState.ACTIVE


async def test_a_circuit_is_lost_with_its_sender_and_the_next_run_gets_it_again(scene: Scene) -> None:
    await scene.signs()
    there, here = await scene.reserve(), await scene.reserve("hub-eth0")
    await scene.signs(2)
    await scene.dies()
    assert scene.stage.state(there) is CircuitState.DOWN
    assert scene.stage.events(there)[-1].hop == "the sender one"
    assert scene.stage.state(here) is CircuitState.ACTIVE
    await scene.starts_again()
    assert scene.sender.done[0] == f"hold {there.number}"
    await scene.signs(2)
    assert scene.stage.state(there) is CircuitState.ACTIVE


async def test_a_silence_is_no_restart_but_the_sender_gets_its_set_again(scene: Scene) -> None:
    await scene.signs()
    circuit = await scene.reserve()
    await scene.signs(2)
    await scene.silence()
    assert scene.stage.state(circuit) is CircuitState.DOWN
    scene.sender.done.clear()
    await scene.signs(2)
    assert scene.sender.done[0] == f"hold {circuit.number}"
    assert scene.stage.state(circuit) is CircuitState.ACTIVE


async def test_a_service_that_stalled_holds_no_silence_against_a_sender(scene: Scene) -> None:
    await scene.signs()
    circuit = await scene.reserve()
    await scene.signs(2)
    await scene.stage.after(10 * SILENT_S)
    assert scene.stage.state(circuit) is CircuitState.ACTIVE
    await scene.silence()
    assert scene.stage.state(circuit) is CircuitState.DOWN


async def test_signs_of_life_reach_the_service_by_the_bus(scene: Scene) -> None:
    circuit = await scene.reserve()
    working = start("test.controller", scene.stage.controller.run())
    await asyncio.sleep(0)
    scene.stage.bus.publish(SenderSeen("one", "first", running=True))
    async with asyncio.timeout(20):
        while scene.stage.state(circuit) is not CircuitState.ACTIVE:  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0.01)
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    assert scene.sender.done[0].startswith("hold"), "it gets its whole set before anything else"


async def test_a_circuit_of_a_lost_sender_can_be_cancelled_and_its_return_removes_the_rest(scene: Scene) -> None:
    await scene.signs()
    circuit = await scene.reserve()
    await scene.signs(2)
    await scene.dies()
    await scene.stage.service.cancel(circuit.number, by="eve")
    await scene.stage.settle()
    assert scene.stage.state(circuit) is CircuitState.CANCELLED
    scene.sender.running = True
    scene.sender.done.clear()
    await scene.signs()
    assert scene.sender.done == ["hold "]
    assert not scene.sender.held


async def test_a_service_that_starts_again_gives_the_sender_time_for_a_sign(scene: Scene) -> None:
    await scene.signs()
    circuit = await scene.reserve()
    await scene.signs(2)
    again = await scene.stage.again()
    await again.settle()
    assert again.state(circuit) is CircuitState.ACTIVE
    for _ in range(4):
        await again.after(SILENT_S / 3)
    assert again.state(circuit) is CircuitState.DOWN


async def test_a_port_is_at_one_host_and_keeps_it_while_circuits_need_it(scene: Scene) -> None:
    with pytest.raises(BadInput, match=r"belongs to the site unl.edu, so it can't be at the sender one"):
        await scene.stage.service.add_port(Port("both", M, "unl.edu", sender="one"))
    await scene.reserve()
    with pytest.raises(BadInput, match="keeps its host and interface"):
        await scene.stage.service.change_port(Port(PORT.name, PORT.rate_bps, interface="eth0", underlay="192.0.2.2"))


PORT = Port("one-eth0", 1000 * M, interface="eth0", underlay="192.0.2.2", first_vlan=100, last_vlan=199, sender="one")
