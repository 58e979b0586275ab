"""Circuits for the core of a way: the acting loop orders them, and the loop of ways leads the site over and back."""

from dataclasses import replace
from pathlib import Path

import pytest

from downburst.domain.circuits import Port
from downburst.domain.events import LegTraffic, SessionChanged, SitesChanged
from downburst.domain.ordering import Offer
from downburst.domain.plans import Transport
from downburst.domain.relays import CoreCircuit, Relay, SiteWay
from downburst.domain.relays.ways import by_name, via_of
from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst_scheduler.models.demand.terms import DemandTerms
from downburst_scheduler.ways_loop import WaysLoop
from kit.circuits import M, NodeInMemory
from unit.demand.world import FEED, World

CORE_OFFER = Offer("core", "depot-eth1", ("campus-eth1",), (20 * M,), setup_s=1.0)
TERMS = DemandTerms("unl.edu", "core", 20 * M, setup_s=1.0, hold_s=5.0)
CHAIN = ("campus", "depot")


class Chained(World):
    """Two sites go by the relays `campus` and `depot`; both loops hear every event."""

    moves = True
    """True if a site begins another session as soon as its way changes."""

    async def open(self, *terms: DemandTerms, offer: Offer = CORE_OFFER, feed: str = FEED) -> "Chained":
        await self.stage.open()
        with self.ledger.transaction() as tx:
            if not tx.fleet.relays.all():
                behind_of = (("campus", ("unl.edu", "ttu.edu")), ("depot", ("campus",)))
                for number, (name, behind) in enumerate(behind_of, start=8):
                    tx.fleet.relays.put(Relay(name, f"{name}.example:7379", sites=behind))
                    underlay = f"192.0.2.{number}"
                    tx.ports.add(Port(f"{name}-eth1", 100 * M, name, interface="eth1", underlay=underlay))
                for site in ("unl.edu", "ttu.edu"):
                    tx.fleet.ways.put(SiteWay(site, CHAIN, "faster"))
        await self.stage.register.load()
        self.ways, self.heard = WaysLoop(self.bus, self.ledger, self.settings, self.clock), self.bus.subscribe()
        await self.ways.start()
        await super().open(*terms, offer=offer, feed=feed)
        return self

    async def settle(self) -> None:
        """Lets everything happen that is due at this moment, also what one loop causes for the other."""
        await super().settle()
        while self.heard._waiting:
            event = self.heard._waiting.popleft()
            await self.ways.handle(event)
            if isinstance(event, SitesChanged) and self.moves:
                self.connected("unl.edu")
            await super().settle()

    def connected(self, site: str) -> None:
        self.bus.publish(SessionChanged(site, "connected", self.clock.now(), "192.0.2.1:9"))

    def over(self, site: str = "unl.edu") -> CoreCircuit | None:
        return self.read(lambda tx: tx.fleet.ways.find(site)).over  # type: ignore[union-attr]


@pytest.fixture
async def world(ledger: Ledger, clock: FakeClock, tmp_path: Path) -> Chained:
    return await Chained(ledger, clock, tmp_path).open(TERMS)


async def test_a_way_is_led_over_the_circuit_of_its_core_and_back_before_that_is_cancelled(world: Chained) -> None:
    world.moves = False
    await world.stir()
    (order,) = world.orders()
    (circuit,) = world.circuits()
    assert order.step == "up"
    assert [(end.port, end.site) for end in circuit.ends] == [("depot-eth1", "depot"), ("campus-eth1", "campus")]
    address = str(circuit.ends[0].address).partition("/")[0]
    assert (world.over(), world.over("ttu.edu")) == (CoreCircuit(circuit.number, "depot", address), None)
    assert world.riders() == {}, "the plan's legs stay"
    way = world.read(lambda tx: tx.fleet.ways.find("unl.edu"))
    relays = by_name(world.read(lambda tx: tx.fleet.relays.all()))
    assert way is not None
    assert via_of(way, relays) == [f"campus.example:7379,{address}:7379", "campus.example:7379,depot.example:7379"]

    await world.after(20)
    await world.silence()
    assert (world.steps(), len(world.circuits()), world.over()) == (["releasing"], 1, None), "its session is on it"
    world.connected("unl.edu")
    await world.settle()
    (order,) = world.orders()
    assert (order.step, world.circuits()) == ("ended", [])


async def test_a_session_that_does_not_move_is_waited_for_two_seconds(world: Chained) -> None:
    world.moves = False
    await world.stir()
    await world.silence()
    world.clock.advance(1.9)
    await world.settle()
    assert world.steps() == ["releasing"]
    world.clock.advance(0.2)
    await world.settle()
    assert world.steps() == ["ended"]


async def test_a_circuit_that_dies_leads_the_way_back_at_once_and_is_cancelled_at_once(world: Chained) -> None:
    world.moves = False
    await world.stir()
    (circuit,) = world.circuits()
    await world.stage.told(circuit, "down", "campus")
    await world.settle()
    assert world.over() is None
    assert (world.steps(), world.circuits()) == (["failed"], [])
    assert "the circuit died: it is down" in world.orders()[0].outcome


async def test_its_use_is_the_share_of_its_site(world: Chained) -> None:
    await world.stir()
    await world.after(19)
    legs = (
        LegTraffic(1, FEED, 25_000_000, 0, 14, 0, 2, 0, Transport.UNICAST),
        LegTraffic(1, "IDS", 10**9, 0, 14, 0, 2, 0, Transport.UNICAST),
    )
    world.bus.publish(world.traffic(legs=legs))
    await world.after(1)
    await world.silence()
    (order,) = world.orders()
    assert order.use is not None
    assert (order.step, order.use.products) == ("ended", 7)
    assert order.use.used_share == pytest.approx(100 / (20 * 20))


async def test_one_order_at_a_time_for_a_core_and_the_next_site_follows(world: Chained) -> None:
    world.choose(TERMS, replace(TERMS, site="ttu.edu"))
    await world.settle()
    await world.stir()
    first = world.orders()[0].site
    assert len(world.orders()) == 1, "the circuits would join the same ports"
    await world.after(3)
    other = {"unl.edu": "ttu.edu", "ttu.edu": "unl.edu"}[first]
    world.choose(replace(TERMS, site=other))
    await world.after(3)
    assert [(order.site, order.step) for order in world.orders()] == [(first, "ended"), (other, "up")]
    assert world.over(first) is None
    assert world.over(other) is not None


async def test_a_site_that_goes_another_way_leaves_its_circuit(world: Chained) -> None:
    await world.stir()
    assert world.over() is not None
    # No relay reports, so the chain is given up half a minute after the start.
    await world.after(40)
    assert world.over() is None
    assert (world.steps(), world.circuits()) == (["ended"], [])


async def test_a_restart_finds_the_way_as_it_was_led(world: Chained, ledger: Ledger, clock: FakeClock) -> None:
    await world.stir()
    before = world.over()
    again = Chained(ledger, clock, world.directory, node=world.stage.node)
    await again.open()
    assert before is not None
    assert again.over() == before
    await again.silence()
    await again.after(8)
    assert (again.over(), again.circuits(), again.steps()) == (None, [], ["ended"])


async def test_a_circuit_that_ended_while_nobody_looked_leads_no_way(
    world: Chained, ledger: Ledger, clock: FakeClock
) -> None:
    await world.stir()
    (circuit,) = world.circuits()
    await world.stage.service.cancel(circuit.number, by="test")
    await world.stage.settle()
    again = Chained(ledger, clock, world.directory, node=NodeInMemory())
    await again.open()
    assert again.over() is None
