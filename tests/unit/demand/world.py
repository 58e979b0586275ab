"""The acting loop on a real ledger and the real circuit service; the node is in memory, and time is virtual."""

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from downburst.domain.circuits import Circuit, CircuitState
from downburst.domain.circuits.signs import CircuitsChanged
from downburst.domain.events import Event, FaultSeen, PlanMade, TrafficSeen
from downburst.domain.feeds import Feed
from downburst.domain.ordering import Budget, DemandOrder, Offer
from downburst.domain.ordering.signs import FeedSilent, FeedStirred, SilencesWatched
from downburst.domain.plans import Leg, Plan, Transport
from downburst.foundation.clock import FakeClock, to_us
from downburst.ledger import Ledger, Transaction
from downburst.settings.hub import Settings
from downburst.settings.scheduler import SchedulerSettings
from downburst_scheduler.demand.loop import DemandLoop
from downburst_scheduler.demand.port import CircuitOrders
from downburst_scheduler.demand.riding import OnDemand, moved, riding
from downburst_scheduler.demand.written import figures_of
from downburst_scheduler.models.demand.terms import DemandTerms
from kit.circuits import M, NodeInMemory
from unit.circuits.stage import Stage

T = TypeVar("T")
OFFER = Offer("campus", "hub-eth0", ("unl.edu-eth1", "ttu.edu-eth1"), (10 * M, 50 * M), setup_s=1.0)
TERMS = DemandTerms("unl.edu", "campus", 50 * M, setup_s=1.0, hold_s=5.0)
FEED = "NGRID"
BEFORE_ACTIVE = (CircuitState.ADMITTED, CircuitState.PROVISIONING, CircuitState.VERIFYING)


class World:
    """One hub with the feed NGRID, which the planner has put on circuits on demand."""

    def __init__(
        self,
        ledger: Ledger,
        clock: FakeClock,
        directory: Path,
        *,
        node: NodeInMemory | None = None,
        dry_run: bool = False,
        seed: int = 1,
    ) -> None:
        self.ledger, self.clock, self.directory, self.seed = ledger, clock, directory, seed
        self.stage = Stage(ledger, clock, node)
        self.bus = self.stage.bus
        self.settings = Settings(data_dir=directory, scheduler=SchedulerSettings(dry_run=dry_run))
        self.setup_s = 0.0
        """Circuits are set up no sooner than this."""
        self.service: CircuitOrders = self.stage.service
        self.said: list[Event] = []
        self._events = self.bus.subscribe()

    async def open(self, *terms: DemandTerms, offer: Offer = OFFER, feed: str = FEED) -> "World":
        """Makes the feed, its plan and the offer, once, and starts the loop."""
        await self.stage.open()
        with self.ledger.transaction() as tx:
            if not tx.planning.offers.all():
                tx.planning.offers.put(offer)
            if tx.feeds.find(feed) is None:
                tx.feeds.add(Feed(feed))
        if terms:
            self.choose(*terms, feed=feed)
        self.loop = DemandLoop(
            self.bus, self.ledger, self.settings, self.service, self.clock, drawn=random.Random(self.seed)
        )
        await self.settle()
        return self

    async def again(self, service: Callable[[CircuitOrders], CircuitOrders] | None = None) -> "World":
        """Everything after an abrupt end of the hub's process; the node keeps running."""
        world = World(self.ledger, self.clock, self.directory, node=self.stage.node, seed=self.seed)
        world.setup_s = self.setup_s
        if service is not None:
            world.service = service(world.service)
        return await world.open()

    def choose(self, *terms: DemandTerms, feed: str = FEED) -> None:
        """A plan of the scheduler with these terms; none: the feed goes by unicast."""
        before = self.plan(feed)
        sites = tuple(sorted({"unl.edu", "ttu.edu"}))
        legs = before.legs if before is not None and terms else (Leg(1, Transport.UNICAST, sites),)
        plan = Plan(feed, 0, legs, "for a test", self.clock.now(), figures=figures_of(terms))
        with self.ledger.transaction() as tx:
            kept = tx.planning.plans.append(plan)
        self.bus.publish(PlanMade(kept))

    async def settle(self) -> None:
        """Lets everything happen that is due at this moment."""
        for _ in range(40):
            if not self._is_setting_up():
                await self.stage.settle()
            waiting = self._taken()
            self.said += waiting
            if any(isinstance(event, CircuitsChanged) for event in waiting):
                self._replan()
            for event in waiting:
                await self.loop.handle(event)
            await self.loop.handle(None)
            if not waiting and not self._events._waiting:
                return

    async def after(self, seconds: float) -> None:
        """Lets time pass in steps of at most a second, with the node's counters."""
        end_s = self.clock.monotonic_s() + seconds
        while (left_s := end_s - self.clock.monotonic_s()) > 1e-9:
            self.clock.advance(min(left_s, 1.0))
            self.bus.publish(self.traffic())
            await self.settle()

    async def stir(self, feed: str = FEED) -> None:
        self.bus.publish(FeedStirred(feed, to_us(self.clock.now())))
        await self.settle()

    async def silence(self, hold_s: float = TERMS.hold_s, feed: str = FEED) -> None:
        """The last product came a hold time ago."""
        now_us = to_us(self.clock.now())
        self.bus.publish(FeedSilent(feed, now_us - int(hold_s * 1e6), now_us))
        await self.settle()

    def traffic(self, *, ahead_s: float = 0.0, **fields: object) -> TrafficSeen:
        now_us = to_us(self.clock.now()) + int(ahead_s * 1e6)
        seen = TrafficSeen(now_us - 1_000_000, now_us, (), (), (), 0)
        return replace(seen, **fields)  # type: ignore[arg-type]

    def plan(self, feed: str = FEED) -> Plan | None:
        return self.read(lambda tx: tx.planning.plans.current(feed))

    def riders(self, feed: str = FEED) -> dict[str, int]:
        return riding(self.plan(feed))

    def orders(self) -> list[DemandOrder]:
        return self.read(lambda tx: tx.planning.orders.since(FakeClock().now()))

    def steps(self) -> list[str]:
        return [order.step.value for order in self.orders()]

    def circuits(self) -> list[Circuit]:
        """The unfinished ones."""
        return self.read(lambda tx: tx.circuits.unfinished())

    def faults(self) -> list[str]:
        return [event.sentence for event in self.said if isinstance(event, FaultSeen)]

    def watched(self) -> list[SilencesWatched]:
        return [event for event in self.said if isinstance(event, SilencesWatched)]

    def read(self, of: Callable[[Transaction], T]) -> T:
        with self.ledger.transaction(writes=False) as tx:
            return of(tx)

    def _taken(self) -> list[Event]:
        taken = list(self._events._waiting)
        self._events._waiting.clear()
        return taken

    def _is_setting_up(self) -> bool:
        age_s = [(self.clock.now() - one.begin).total_seconds() for one in self._coming()]
        return any(one < self.setup_s for one in age_s)

    def _coming(self) -> Iterable[Circuit]:
        return (one for one in self.stage.register.open.values() if one.state in BEFORE_ACTIVE)

    def _replan(self) -> None:
        """The scheduler's part: it moves feeds onto active circuits and off them."""
        with self.ledger.transaction(writes=False) as tx:
            known = OnDemand.of(tx, now=self.clock.now(), price=1.0)
            plans = [plan for plan in tx.planning.plans.all_current() if plan.figures.get("demand")]
        for plan in plans:
            made = moved(plan, known, unicast_leg=1, circuit_leg=2, at=self.clock.now())
            if made is not None:
                with self.ledger.transaction() as tx:
                    kept = tx.planning.plans.append(made)
                self.bus.publish(PlanMade(kept))


def offer(**budget: float) -> Offer:
    return replace(OFFER, budget=Budget(**budget))  # type: ignore[arg-type]
