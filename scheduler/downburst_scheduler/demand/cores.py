"""Circuits on demand that carry the core of a way: the segment between two relays over which a site's session goes.

Such a circuit is on no leg of a plan. The way of its order's site is led over it: the relay towards the hub is then
addressed inside the circuit. All feeds of that site ride; other sites with the same core wait for the next order.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_interface

from downburst.domain.circuits import Circuit, CircuitEnd, CircuitState, CircuitUse, Port
from downburst.domain.events import Event, SessionChanged, TrafficSeen
from downburst.domain.ordering import Offer, OrderStep
from downburst.domain.plans import Plan, Transport
from downburst.domain.relays import Core, CoreCircuit, SiteWay
from downburst.ledger import Transaction

Ends = tuple[CircuitEnd, CircuitEnd]
"""The end towards the hub, and that towards the site."""


@dataclass(frozen=True, slots=True)
class CoreRide:
    """An ordered circuit that is up, and the core that it carries."""

    core: Core
    over: CoreCircuit


def core_rides(tx: Transaction) -> dict[str, CoreRide]:
    """By site, the circuit for its way; one that is in any state but ACTIVE, or to be given back, carries none."""
    found = {}
    for order in tx.planning.orders.open():
        circuit = tx.circuits.of_request(order.request_id) if order.step is OrderStep.UP else None
        ride = _ride(circuit) if circuit is not None and circuit.usable_state is CircuitState.ACTIVE else None
        if ride is not None:
            found[order.site] = ride
    return found


def carries_core(circuit: Circuit) -> bool:
    """True if neither of its ends is the hub's."""
    return circuit.ends[0].site is not None


def cores_joined(offer: Offer, ports: Mapping[str, Port]) -> list[Core]:
    """The cores that circuits of an offer can carry; none if they begin at the hub."""
    near = ports[offer.hub_port].site if offer.hub_port in ports else None
    if near is None:
        return []
    far = (ports[name].site for name in offer.ports if name in ports)
    return [Core(name, near) for name in far if name is not None]


def ends_for(offer: Offer, ports: Mapping[str, Port], site: str, way: SiteWay | None) -> Ends | None:
    """The ends of a circuit for a site: its own port and the hub's, or ports of two neighbours of its way."""
    if offer.hub_port not in ports:
        return None
    near, owners = ports[offer.hub_port].site, {name: ports[name].site for name in offer.ports if name in ports}
    fit = (
        {site} if near is None else {core.far for core in (way.cores if way is not None else ()) if core.near == near}
    )
    found = next(((name, owner) for name, owner in owners.items() if owner in fit), None)
    return None if found is None else (CircuitEnd(offer.hub_port, near), CircuitEnd(*found))


def led_otherwise(before: Mapping[str, SiteWay], now: Mapping[str, SiteWay]) -> list[str]:
    """The sites whose ways were led onto a circuit, or off one."""
    return [site for site, way in now.items() if site in before and before[site].over != way.over]


@dataclass(slots=True)
class Led:
    """Sites whose ways are led over circuits; one that is led back rides until its session has moved."""

    _ways: Mapping[str, SiteWay] = field(default_factory=dict)
    _leaving: dict[str, int] = field(default_factory=dict)
    """By site, the circuit that its way has left."""

    def told(self, ways: Mapping[str, SiteWay]) -> None:
        """Takes the ways of this moment."""
        for site, before in self._ways.items():
            if before.over is not None and (site not in ways or ways[site].over != before.over):
                self._leaving[site] = before.over.circuit
        self._ways = ways

    def heard(self, event: Event) -> None:
        """A new session of a site goes by the way that it was told."""
        if isinstance(event, SessionChanged) and event.state == "connected":
            self._leaving.pop(event.site, None)

    def rides(self, site: str, circuit: Circuit) -> bool:
        """True while the site's session may be on the circuit; one that died is worth no wait."""
        if circuit.usable_state not in (CircuitState.ACTIVE, CircuitState.DEGRADED):
            return False
        return self._on(site) == circuit.number or self._leaving.get(site) == circuit.number

    def seen(self, event: TrafficSeen, plans: Iterable[Plan]) -> tuple[TrafficSeen, dict[tuple[str, str], int]]:
        """A second of counters as one of these circuits alone, with the circuit of each feed and site that rides.

        The hub's node sends nothing into them: each carries the site's share of the copies by its session.
        """
        every = ((plan.feed, site) for plan in plans for site in _copied(plan))
        on = {(feed, site): self._on(site) for feed, site in every}
        riders = {pair: circuit for pair, circuit in on.items() if circuit is not None}
        ridden = {feed for feed, _ in riders}
        legs = [leg for leg in event.legs if leg.transport is Transport.UNICAST and leg.feed in ridden]
        uses = tuple(
            CircuitUse(circuit, site, out_bytes=leg.egress_bytes // max(leg.sites, 1), in_bytes=0)
            for leg in legs
            for (feed, site), circuit in riders.items()
            if feed == leg.feed
        )
        as_ridden = tuple(replace(leg, transport=Transport.DYNAMIC_CIRCUIT) for leg in legs)
        return replace(event, legs=as_ridden, circuits=uses), riders

    def _on(self, site: str) -> int | None:
        way = self._ways.get(site)
        return way.over.circuit if way is not None and way.over is not None else None


def joined_by(circuit: Circuit | None) -> Ends | None:
    """The ends of a circuit as they were asked for."""
    if circuit is None or len(circuit.ends) != 2:
        return None
    near, far = circuit.ends
    return CircuitEnd(near.port, near.site), CircuitEnd(far.port, far.site)


def _ride(circuit: Circuit) -> CoreRide | None:
    near, far = circuit.ends[0], circuit.ends[-1]
    if near.site is None or far.site is None or near.address is None:
        return None
    address = str(ip_interface(near.address).ip)
    return CoreRide(Core(far.site, near.site), CoreCircuit(circuit.number, near.site, address))


def _copied(plan: Plan) -> list[str]:
    return [site for leg in plan.legs if leg.transport is Transport.UNICAST for site in leg.sites]
