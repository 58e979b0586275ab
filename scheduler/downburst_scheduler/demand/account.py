"""The acting loop's account in the ledger: orders, their circuits, offers and ports. The ledger is written first."""

from datetime import datetime, timedelta

from downburst.domain.circuits import FINISHED, LEAVING, Circuit
from downburst.domain.ordering import OPEN, DemandOrder, OrderStep
from downburst.domain.plans import Plan
from downburst.foundation.clock import to_us
from downburst.foundation.errors import NotFound
from downburst.ledger import Ledger, Transaction
from downburst_scheduler.demand.budgets import DAY, midnight
from downburst_scheduler.demand.cores import Ends, Led, joined_by
from downburst_scheduler.demand.records import OpenOrders, Terms
from downburst_scheduler.demand.riding import REQUESTS


class Account:
    """Orders of today and open ones, with the circuits of the open ones; only this loop writes orders."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._orders: dict[int, DemandOrder] = {}
        self._open: dict[tuple[str, str], DemandOrder] = {}
        self.circuits: dict[int, Circuit] = {}
        """By the number of the order."""
        self.terms = Terms()
        self.led = Led()
        self.plans = dict[str, Plan]()
        """The plans in force, by feed."""

    async def load(self, now: datetime) -> list[Circuit]:
        """Reads everything; returns ordered circuits that belong to no open order."""
        since = min(midnight(now), now - REMEMBERED)

        def read(tx: Transaction) -> list[Circuit]:
            self._orders = {order.number: order for order in tx.planning.orders.since(since)}
            opened = OpenOrders.of(tx)
            self._open, self.circuits = dict(opened.orders), dict(opened.circuits)
            self.terms = Terms.of(tx)
            self.plans = {plan.feed: plan for plan in tx.planning.plans.all_current()}
            asked = {order.request_id for order in self.open}
            return [one for one in tx.circuits.unfinished() if is_stray(one) and one.request.request_id not in asked]

        strays = await self._ledger.read(read)
        self.led.told(self.terms.ways)
        return strays

    async def trains(self, now: datetime) -> dict[str, list[float]]:
        """The starts of the last days' trains, by feed, in seconds of the wall clock."""
        found = await self._ledger.read(lambda tx: tx.planning.orders.trains(now - LEARNT))
        return {feed: [to_us(start) / 1e6 for start in starts] for feed, starts in found.items()}

    async def refresh(self) -> None:
        """Reads offers, ports, measured set-up times and ways."""
        self.terms = await self._ledger.read(Terms.of)
        self.led.told(self.terms.ways)

    async def changed(self, number: int) -> Circuit | None:
        """Reads a circuit after a change; returns it if it is one of ours that belongs to no open order."""
        try:
            circuit = await self._ledger.read(lambda tx: tx.circuits.one(number))
        except NotFound:
            return None
        for order in self.open:
            if order.request_id == circuit.request.request_id:
                self.circuits[order.number] = circuit
                return None
        return circuit if is_stray(circuit) else None

    async def add(self, order: DemandOrder) -> DemandOrder:
        """Stores a new order, before it is sent."""
        kept = await self._ledger.write(lambda tx: tx.planning.orders.add(order))
        first = midnight(kept.times.ordered_at) - DAY
        self._orders = {
            number: one for number, one in self._orders.items() if one.step in OPEN or one.times.ordered_at >= first
        }
        self._keep(kept)
        return kept

    async def save(self, order: DemandOrder) -> None:
        """Stores the state of an order."""
        await self._ledger.write(lambda tx: tx.planning.orders.save(order))
        self._keep(order)

    @property
    def open(self) -> list[DemandOrder]:
        """The orders with a circuit that may exist."""
        return list(self._open.values())

    @property
    def orders(self) -> list[DemandOrder]:
        """The known orders: of today, of the last hour, and the open ones."""
        return list(self._orders.values())

    def of_pair(self, feed: str, site: str) -> list[DemandOrder]:
        """The known orders of a feed and site for which there was a circuit, or may have been one."""
        none = (OrderStep.WOULD, OrderStep.REFUSED)
        return [one for one in self.orders if (one.feed, one.site) == (feed, site) and one.step not in none]

    def of_offer(self, offer: str) -> list[DemandOrder]:
        """The known orders under an offer."""
        return [order for order in self._orders.values() if order.offer == offer]

    def order_of(self, feed: str, site: str) -> DemandOrder | None:
        """The open order of a feed and site."""
        return self._open.get((feed, site))

    def is_taken(self, ends: Ends | None) -> bool:
        """True if an open order joins the same ports."""
        return ends is not None and any(
            joined_by(self.circuits.get(one.number)) == ends or self.terms.ends(one.offer, one.site) == ends
            for one in self.open
        )

    def _keep(self, order: DemandOrder) -> None:
        self._orders[order.number] = order
        if order.step in OPEN:
            self._open[order.feed, order.site] = order
        elif self._open.pop((order.feed, order.site), None) is not None:
            self.circuits.pop(order.number, None)


def is_stray(circuit: Circuit) -> bool:
    """True for an ordered circuit that still stands."""
    ours = circuit.request.request_id.startswith(REQUESTS)
    return ours and circuit.state not in LEAVING and circuit.state not in FINISHED


REMEMBERED = timedelta(hours=1)
"""Longer than any pause after a failure."""
LEARNT = timedelta(days=2.5)
"""A habit by the time of day needs the trains of a day and some before them."""
