"""Worlds in virtual time: senders that die, stall, return and start again, under reservations of random ports."""

import asyncio
import contextlib
import random
from dataclasses import replace

import pytest

from downburst.domain.circuits import Circuit, CircuitEnd, CircuitState, Port
from downburst.domain.senders import SenderSeen
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import CircuitConflict
from downburst.ledger import Ledger
from downburst.parts import questions
from downburst.parts.names import SenderPart
from downburst.parts.questions import answer_for_good
from downburst.supervision import start
from downburst_circuits.near_nodes import SILENT_S
from downburst_circuits.remote_nodes import answers_of_node
from kit.circuits import M, NodeInMemory
from unit.circuits.stage import SITES, Stage

SENDERS = ("one", "two")


class World:
    """The stage with two senders; each step takes half a second."""

    def __init__(self, ledger: Ledger, clock: FakeClock, chance: random.Random) -> None:
        self.stage, self.chance = Stage(ledger, clock), chance
        self.nodes = {name: NodeInMemory() for name in SENDERS}
        self.runs = dict.fromkeys(SENDERS, 1)
        self.mute: set[str] = set()
        self.silent_s = dict.fromkeys(SENDERS, 0.0)
        self.made: list[Circuit] = []

    async def open(self) -> None:
        await self.stage.open()
        self.answering = [
            start("test.sender", answer_for_good(self.stage.bus, SenderPart(name), answers_of_node(node)))
            for name, node in self.nodes.items()
        ]
        await asyncio.sleep(0)
        for name in SENDERS:
            own = Port(f"{name}-eth0", 1000 * M, interface="eth0", underlay="192.0.2.2", sender=name)
            port = replace(own, first_vlan=100, last_vlan=199)
            await self.stage.service.add_port(port)

    async def close(self) -> None:
        for task in self.answering:
            task.cancel()
        await asyncio.gather(*self.answering, return_exceptions=True)

    async def step(self) -> None:
        await self.chance.choice((self.reserve, self.cancel, self.kill, self.start_again, self.stall, self.nothing))()
        await self.pass_half_a_second()

    async def reserve(self) -> None:
        port = self.chance.choice(("hub-eth0", *(f"{name}-eth0" for name in SENDERS)))
        ends = (CircuitEnd(port), CircuitEnd("", self.chance.choice(SITES)))
        with contextlib.suppress(CircuitConflict):
            self.made.append(await self.stage.reserve(rate=self.chance.randint(10, 300), ends=ends))

    async def cancel(self) -> None:
        known = [one for one in self.made if one.number in self.stage.register.open]
        if known:
            await self.stage.service.cancel(self.chance.choice(known).number, by="eve")

    async def kill(self) -> None:
        self.nodes[self.chance.choice(SENDERS)].running = False

    async def start_again(self) -> None:
        """A node that starts holds nothing; remains of the former one are not in its memory."""
        name = self.chance.choice(SENDERS)
        if not self.nodes[name].running:
            self.runs[name] += 1
            self.nodes[name].running = True
            self.nodes[name].held.clear()

    async def stall(self) -> None:
        """The brokers or the machine hold a sender's signs back; its node goes on."""
        self.mute ^= {self.chance.choice(SENDERS)}

    async def nothing(self) -> None:
        pass

    async def pass_half_a_second(self) -> None:
        self.stage.clock.advance(0.5)
        for name, node in self.nodes.items():
            if node.running and name not in self.mute:
                await self.stage.controller.handle(SenderSeen(name, str(self.runs[name]), running=True))
                self.silent_s[name] = 0.0
            else:
                self.silent_s[name] += 0.5
        await self.stage.settle()
        self.check_moment()

    def near(self, circuit: Circuit) -> str:
        port = self.stage.register.ports[circuit.ends[0].port]
        return port.sender or ""

    def check_moment(self) -> None:
        """No feed may ride a circuit of a sender that was silent for two seconds."""
        for circuit in self.stage.register.open.values():
            name = self.near(circuit)
            if name and self.silent_s[name] > SILENT_S:
                usable = circuit.state in (CircuitState.ACTIVE, CircuitState.DEGRADED)
                assert not usable, (name, circuit.number)

    def check_end(self) -> None:
        """When all is well, each node holds the circuits of its own ports, and nothing else."""
        wanted: dict[str, set[int]] = {name: set() for name in ("", *SENDERS)}
        for circuit in self.stage.register.open.values():
            assert circuit.state is CircuitState.ACTIVE, (circuit.number, circuit.state, circuit.reason)
            wanted[self.near(circuit)].add(circuit.number)
        held = {name: set(node.held) for name, node in {"": self.stage.node, **self.nodes}.items()}
        assert held == wanted


@pytest.mark.parametrize("seed", range(25))
async def test_circuits_settle_at_their_senders(
    ledger: Ledger, clock: FakeClock, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    print(f"seed {seed}")
    monkeypatch.setattr(questions, "SIGN_S", 0.2)
    world = World(ledger, clock, random.Random(seed))
    await world.open()
    for _ in range(40):
        await world.step()
    world.mute.clear()
    for name, node in world.nodes.items():
        if not node.running:
            world.runs[name] += 1
            node.running = True
            node.held.clear()
    for _ in range(150):
        await world.pass_half_a_second()
    world.check_end()
    await world.close()
