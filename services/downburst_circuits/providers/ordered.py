"""Circuits that providers of other networks make, by NSI: the path is ordered there, the ends are the nodes' part."""

from dataclasses import replace

from downburst.domain.circuits import STANDING, Circuit, CircuitEnd, CircuitProblem, CircuitState
from downburst.foundation.errors import BadInput, DownburstError
from downburst_circuits.calendar import NoRoom
from downburst_circuits.node import CircuitNode
from downburst_circuits.nsi.circuit import change_of, criteria_of, granted_ends, own_address
from downburst_circuits.nsi.order import Standing, is_gone, new_order, renewed
from downburst_circuits.nsi.record import Goal, Order
from downburst_circuits.nsi.words import Criteria
from downburst_circuits.providers.agents import Agent, Agents, new_id
from downburst_circuits.providers.nodes import Nodes
from downburst_circuits.providers.port import Broken, Made, Removed, Waiting
from downburst_circuits.register import Register, Said


class Ordered:
    """Circuits at all NSI providers. Each has an order, whose record decides: the calls repeat until it says so."""

    def __init__(self, register: Register, node: CircuitNode, nodes: Nodes, agents: Agents) -> None:
        self._register = register
        self._node = node
        self._nodes = nodes
        self._agents = agents
        self._ends_told: dict[int, str] = {}
        """By circuit the reservation whose end has made it fail; the next attempt orders anew."""
        self._active: dict[int, bool] = {}
        self._taken_down: set[int] = set()

    async def make(self, circuit: Circuit) -> Made | Waiting | Broken:
        """Orders it and waits for the provider; then the nodes set up the granted ends."""
        agent = await self._agents.of(_provider(circuit))
        if isinstance(agent, str):
            return Waiting(agent)
        try:
            return await self._make(agent, circuit)
        except BadInput as error:
            return Broken(_problem(agent, error.sentence))

    async def change(self, circuit: Circuit, wanted: Circuit) -> None:
        """Negotiates the terms with the provider, then changes the ends; back to the old terms if the ends fail."""
        agent = await self._agents.of(_provider(circuit))
        if isinstance(agent, str):
            raise BadInput(agent)
        order = agent.order(circuit.number)
        if order is None or order.serving.goal is Goal.END:
            # The next order has the new terms.
            return
        before, after = change_of(circuit), change_of(wanted)
        if before != after:
            await agent.negotiate(circuit.number, after)
        try:
            await self._nodes.change(circuit, wanted)
        except DownburstError:
            if before != after:
                await agent.negotiate(circuit.number, before)
            raise

    async def remove(self, circuit: Circuit) -> Removed | Waiting | Broken:
        """Takes down the ends and has the reservation removed; done when the provider shows it no more."""
        number = circuit.number
        agent = await self._agents.of(_provider(circuit))
        try:
            if number not in self._taken_down:
                left = await self._node.circuit_down(number)
                if left:
                    return Broken(left[0])
                self._taken_down.add(number)
        finally:
            if isinstance(agent, Agent):
                await agent.cancel(number)
        if isinstance(agent, str):
            return Waiting(agent)
        order = agent.order(number)
        if order is not None and not is_gone(order):
            return Waiting(agent.unreached or f"provider {agent.provider.name} is asked to remove its reservation")
        self._forget(number)
        if order is not None and circuit.state is CircuitState.TEARING_DOWN:
            # Its next path is an order anew, without a failure to tell first.
            self._ends_told[number] = order.serving.global_id
        return Removed()

    def is_held(self, circuit: Circuit) -> bool:
        """True while its ends have what was granted."""
        return circuit.state in STANDING

    def ended(self, circuit: Circuit) -> Broken | None:
        """The provider's reason if it has ended the reservation before its time."""
        agent = self._agents.known(_provider(circuit))
        if agent is None:
            return None
        order = agent.order(circuit.number)
        if order is None:
            words = f"the hub has no record of its order at provider {agent.provider.name}; it is ordered again"
            return Broken(_problem(agent, words))
        return self._end(agent, order) if order.serving.goal is Goal.END else None

    def is_doubted(self, circuit: Circuit) -> bool:
        """True once after the provider tells another state of its path than before."""
        agent = self._agents.known(_provider(circuit))
        order = agent.order(circuit.number) if agent else None
        if order is None or order.serving.seen is None:
            return False
        active = order.serving.seen.active
        before = self._active.get(circuit.number, active)
        self._active[circuit.number] = active
        return before != active

    async def _make(self, agent: Agent, circuit: Circuit) -> Made | Waiting | Broken:
        order, name = agent.order(circuit.number), agent.provider.name
        if order is None:
            criteria = criteria_of(circuit, self._register.ports)
            words = circuit.request.description or f"circuit {circuit.number}"
            await agent.put(new_order(circuit.number, agent.provider, criteria, words, new_id))
            return Waiting(f"it is ordered from provider {name}: {criteria.capacity_mbps} Mb/s")
        if order.serving.goal is Goal.END:
            return await self._again(agent, circuit, order)
        found = agent.verdict(order)
        if found.granted is not None and found.standing in (Standing.ACTIVE, Standing.REPLACED):
            return await self._granted(agent, circuit, found.granted)
        problem = found.problem.sentence if found.problem else _WAITS.get(found.standing, "").format(name=name)
        return Waiting(agent.unreached or problem)

    async def _granted(self, agent: Agent, circuit: Circuit, granted: Criteria) -> Made | Waiting | Broken:
        """The provider calls it active: the ends get their tags. Another circuit may have them by other ways."""
        ends = granted_ends(circuit, granted, self._addresses(circuit))
        if ends != circuit.ends:
            try:
                self._register.calendar.fit_instead(self._register.reservation(replace(circuit, ends=ends)))
            except NoRoom as refused:
                await agent.cancel(circuit.number)
                return self._taken(agent, circuit, refused)
            said = Said(f"provider {agent.provider.name} granted {granted.source} and {granted.dest}")
            kept = await self._register.change(circuit.number, lambda now: replace(now, ends=ends), "granted", said)
            circuit = kept or circuit
        return await self._nodes.set_up(circuit)

    def _taken(self, agent: Agent, circuit: Circuit, refused: NoRoom) -> Broken:
        order = agent.order(circuit.number)
        if order is not None:
            self._ends_told[circuit.number] = order.serving.global_id
        clash = refused.clash
        holders = ", ".join(str(number) for number in clash.with_numbers)
        sentence = (
            f"provider {agent.provider.name} granted the tag {clash.tag} of port {clash.resource}, which circuit "
            f"{holders} has; give tags that the provider may grant to NSI's ports alone"
        )
        return Broken(_problem(agent, sentence), AGAIN_S)

    async def _again(self, agent: Agent, circuit: Circuit, order: Order) -> Waiting | Broken:
        """The first time the reason, then, as soon as nothing of the former reservation is left, a new order."""
        if self._ends_told.get(circuit.number) != order.serving.global_id:
            return self._end(agent, order)
        if not is_gone(order):
            return Waiting(agent.unreached or f"provider {agent.provider.name} still lists the former reservation")
        left = await self._node.circuit_down(circuit.number)
        if left:
            return Broken(left[0])
        ends = tuple(self._bare(end) for end in circuit.ends)
        said = Said("the ends of the former reservation are removed")
        kept = await self._register.change(circuit.number, lambda now: replace(now, ends=ends), "released", said)
        criteria = criteria_of(kept or circuit, self._register.ports)
        await agent.put(renewed(order, criteria, new_id))
        return Waiting(f"it is ordered again from provider {agent.provider.name}")

    def _end(self, agent: Agent, order: Order) -> Broken:
        self._ends_told[order.circuit] = order.serving.global_id
        problem = order.serving.problem
        words = f"provider {agent.provider.name} ended the reservation at the end that it knows; check both clocks"
        return Broken(_problem(agent, problem.sentence if problem else words), AGAIN_S)

    def _addresses(self, circuit: Circuit) -> tuple[str, ...]:
        ports = [self._register.ports[end.port] for end in circuit.ends]
        if all(port.first_vlan is None for port in ports):
            return tuple(own_address(end, port) for end, port in zip(circuit.ends, ports, strict=True))
        given = [end.address for end in circuit.ends if end.address is not None]
        return tuple(given) if len(given) == len(circuit.ends) else self._nodes.addresses(circuit)

    def _bare(self, end: CircuitEnd) -> CircuitEnd:
        """The end without its granted tag, and without an address that came with that."""
        has_tags = self._register.ports[end.port].first_vlan is not None
        return replace(end, vlan=None, address=None if has_tags else end.address)

    def _forget(self, number: int) -> None:
        self._taken_down.discard(number)
        self._ends_told.pop(number, None)
        self._active.pop(number, None)


def _provider(circuit: Circuit) -> str:
    return circuit.carriage.provider or ""


def _problem(agent: Agent, sentence: str) -> CircuitProblem:
    return CircuitProblem(sentence, step="order", hop=f"provider {agent.provider.name}")


_WAITS = {
    Standing.ASKING: "provider {name} is asked for it, and has not decided",
    Standing.ORDERED: "provider {name} has reserved it, and sets up its path",
}
AGAIN_S = 60.0
"""A provider that refused or ended a reservation is not asked again at once."""
