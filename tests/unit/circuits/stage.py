"""Register, service and controller of circuits on a real ledger; the node in memory can be away, refuse or forget."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from downburst.bus.local import LocalBus
from downburst.domain.circuits import (
    Circuit,
    CircuitEnd,
    CircuitEvent,
    CircuitProblem,
    CircuitRequest,
    CircuitState,
    Direction,
    Measured,
    Port,
)
from downburst.domain.circuits.signs import CircuitTold
from downburst.domain.ordering.providers import Provider
from downburst.domain.sites import Site
from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst.settings.circuits import CircuitSettings
from downburst_circuits.controller import CircuitController
from downburst_circuits.near_nodes import NearNodes
from downburst_circuits.nsi.transport import Exchange
from downburst_circuits.providers.agents import Agents, Way
from downburst_circuits.providers.makers import makers
from downburst_circuits.register import Register
from downburst_circuits.service import CircuitService
from kit.circuits import M, NodeInMemory

HOUR = timedelta(hours=1)


class Stage:
    """One hub with the port hub-eth0 (1 Gb/s, tags 100-199), and three sites with one port each."""

    def __init__(
        self,
        ledger: Ledger,
        clock: FakeClock,
        node: NodeInMemory | None = None,
        way: Callable[[Provider], Exchange] = Way,
    ) -> None:
        self.ledger = ledger
        self.clock = clock
        self.bus = LocalBus()
        self.node = node or NodeInMemory()
        self.way = way
        self.register = Register(ledger, self.bus, clock)
        self.agents = Agents(self.register, ledger=ledger, bus=self.bus, clock=clock, way=way)
        self.nodes = NearNodes(self.register, self.node, self.bus, clock)
        made_by = makers(self.register, self.nodes, self.agents, CircuitSettings())
        self.controller = CircuitController(
            self.register, self.nodes, made_by, bus=self.bus, clock=clock, settings=CircuitSettings()
        )
        self.service = CircuitService(
            self.register, self.controller, made_by, ledger=ledger, bus=self.bus, clock=clock
        )

    async def open(self) -> "Stage":
        """Makes sites and ports, once."""
        with self.ledger.transaction() as tx:
            if not tx.sites.all():
                for site in SITES:
                    tx.sites.add(Site(site))
                for port in PORTS:
                    tx.ports.add(port)
        await self.register.load()
        self.controller.start()
        return self

    async def again(self) -> "Stage":
        """Restarts the hub's process after an abrupt end; the node keeps running."""
        return await Stage(self.ledger, self.clock, self.node, self.way).open()

    async def settle(self, rounds: int = 10) -> None:
        """Runs everything that is due at this moment."""
        for _ in range(rounds):
            before = len(self.node.done), self.states()
            await self.controller.tick()
            await self.controller.idle()
            if before == (len(self.node.done), self.states()):
                return

    async def after(self, seconds: float) -> None:
        self.clock.advance(seconds)
        await self.settle()

    async def reserve(self, *, rate: int = 500, back: int = 0, **given: Any) -> Circuit:
        return (await self.service.request(self.wish(rate=rate, back=back, **given))).circuit

    def wish(
        self, *sites: str, rate: int = 500, back: int = 0, start: float = 0, hours: float = 1, **given: Any
    ) -> Circuit:
        """A request with rates in megabits per second and a start in hours from now."""
        begin = self.clock.now() + timedelta(hours=start)
        self._count = getattr(self, "_count", 0) + 1
        named = given.pop("to", sites or ("unl.edu",))
        ends = (CircuitEnd(""), *(CircuitEnd("", site) for site in named))
        request = CircuitRequest(f"r{id(self)}-{self._count}", given.pop("description", ""))
        wish = Circuit(0, request, ends, rate * M, back * M, begin, begin + hours * HOUR)
        return replace(wish, **given)

    async def active(self, **given: Any) -> Circuit:
        circuit = await self.reserve(**given)
        await self.settle()
        assert self.state(circuit) is CircuitState.ACTIVE, self.kept(circuit).reason
        return self.kept(circuit)

    async def told(self, circuit: Circuit, state: Any, site: str = "unl.edu") -> None:
        problem = CircuitProblem("nothing came back for 1 s", "probe", site) if state == "down" else None
        await self.controller.handle(CircuitTold(circuit.number, site, state, self.clock.now(), problem))
        await self.settle()

    def kept(self, circuit: Circuit) -> Circuit:
        with self.ledger.transaction(writes=False) as tx:
            return tx.circuits.one(circuit.number)

    def state(self, circuit: Circuit) -> CircuitState:
        return self.kept(circuit).state

    def states(self) -> list[tuple[int, CircuitState]]:
        return [(number, circuit.state) for number, circuit in self.register.open.items()]

    def events(self, circuit: Circuit) -> list[CircuitEvent]:
        with self.ledger.transaction(writes=False) as tx:
            return tx.circuits.events(circuit.number)

    def lived(self, circuit: Circuit) -> list[str]:
        """The states that the circuit went through."""
        states = [event.state.value for event in self.events(circuit)]
        return [state for before, state in zip(["", *states], states, strict=False) if before != state]

    def measured(self, circuit: Circuit) -> dict[tuple[str, Direction], Measured]:
        with self.ledger.transaction(writes=False) as tx:
            return {(row.site, row.direction): row for row in tx.circuits.measurements([circuit.number])}


SITES = ("unl.edu", "ttu.edu", "wisc.edu")
PORTS = (
    Port("hub-eth0", 1000 * M, interface="eth0", underlay="192.0.2.1", first_vlan=100, last_vlan=199),
    *(
        Port(f"{site}-eth1", 1000 * M, site, "eth1", f"192.0.2.{number}", first_vlan=100, last_vlan=199)
        for number, site in enumerate(SITES, start=10)
    ),
)
