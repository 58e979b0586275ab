"""Orders of circuits on demand: the account of the scheduler's reservations."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from downburst.domain.ordering.offers import Setups
from downburst.domain.ordering.orders import OPEN, DemandOrder, OrderStep, OrderTimes, OrderUse
from downburst.foundation.clock import Clock
from downburst.foundation.errors import Failure, NotFound
from downburst.ledger.repositories.audit import Audit
from downburst.ledger.storage import limits
from downburst.ledger.tables.ordering import demand_orders


@dataclass(frozen=True, slots=True)
class WhichOrders:
    """A selection of orders; None stands for all."""

    offer: str | None = None
    feed: str | None = None
    site: str | None = None
    before: int | None = None
    """Only numbers below this one."""
    limit: int = 50


class DemandOrders:
    """Orders by number; only the scheduler writes them."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._audit = Audit(connection, clock)

    def add(self, order: DemandOrder) -> DemandOrder:
        """Stores an order before it is sent, under a new number; its own number is ignored."""
        ended = demand_orders.c.step.not_in(_OPEN)
        limits.DEMAND_ORDERS.make_room(
            self._connection, demand_orders, ended, by=demand_orders.c.number, holder="this hub"
        )
        row = _row(order)
        del row["number"]
        key = self._connection.execute(insert(demand_orders).values(row)).inserted_primary_key
        if key is None:
            raise Failure("the ledger gave no number to an order; check the database")
        kept = replace(order, number=int(key[0]))
        self._audit.record(KIND, kept.number, kept.step.value, after=kept)
        return kept

    def save(self, order: DemandOrder) -> None:
        """Stores the present state of an order; its end with the outcome is in the audit as well."""
        before = self.one(order.number)
        changed = update(demand_orders).where(demand_orders.c.number == order.number)
        self._connection.execute(changed.values(_row(order)))
        if before.step is not order.step:
            self._audit.record(KIND, order.number, order.step.value, before=before, after=order)

    def one(self, number: int) -> DemandOrder:
        """The order; refuses an unknown number."""
        row = self._connection.execute(select(demand_orders).where(demand_orders.c.number == number)).one_or_none()
        if row is None:
            raise NotFound(f"there is no order {number}; `downburst circuits orders` shows all")
        return _order(row)

    def open(self) -> list[DemandOrder]:
        """Every order with a circuit that may exist, by number."""
        query = select(demand_orders).where(demand_orders.c.step.in_(_OPEN)).order_by(demand_orders.c.number)
        return [_order(row) for row in self._connection.execute(query)]

    def since(self, moment: datetime, *, offers: Sequence[str] | None = None) -> list[DemandOrder]:
        """The orders since a moment, and the open ones, by number: a budget counts them. `offers` narrows them."""
        recent = (demand_orders.c.ordered_at >= moment) | demand_orders.c.step.in_(_OPEN)
        query = select(demand_orders).where(recent | (demand_orders.c.ended_at >= moment))
        if offers is not None:
            query = query.where(demand_orders.c.offer.in_(offers))
        return [_order(row) for row in self._connection.execute(query.order_by(demand_orders.c.number))]

    def trains(self, moment: datetime) -> dict[str, list[datetime]]:
        """The starts of trains since a moment that orders were for, by feed and in order of time."""
        query = select(demand_orders.c.feed, demand_orders.c.train_at).distinct()
        rows = self._connection.execute(
            query.where(demand_orders.c.train_at >= moment).order_by(demand_orders.c.train_at)
        )
        found: dict[str, list[datetime]] = {}
        for row in rows:
            found.setdefault(row.feed, []).append(row.train_at)
        return found

    def page(self, which: WhichOrders) -> list[DemandOrder]:
        """The newest orders of a selection."""
        query = select(demand_orders).order_by(demand_orders.c.number.desc()).limit(which.limit)
        for column, value in (("offer", which.offer), ("feed", which.feed), ("site", which.site)):
            if value is not None:
                query = query.where(demand_orders.c[column] == value)
        if which.before is not None:
            query = query.where(demand_orders.c.number < which.before)
        return [_order(row) for row in self._connection.execute(query)]

    def setups(self, offers: Sequence[str]) -> dict[str, Setups]:
        """Measured set-up times of offers that have some: of their last `SETUPS_COUNTED` circuits."""
        found = {}
        for name in offers:
            query = select(demand_orders.c.ordered_at, demand_orders.c.up_at).where(
                demand_orders.c.offer == name, demand_orders.c.up_at.is_not(None)
            )
            rows = self._connection.execute(query.order_by(demand_orders.c.number.desc()).limit(SETUPS_COUNTED))
            measured = Setups.of([(row.up_at - row.ordered_at).total_seconds() for row in rows])
            if measured is not None:
                found[name] = measured
        return found


def _row(order: DemandOrder) -> dict[str, Any]:
    row = {name: value for name, value in asdict(order).items() if name not in ("times", "use")}
    use = {it.name: None if order.use is None else getattr(order.use, it.name) for it in fields(OrderUse)}
    return row | asdict(order.times) | use | {"step": order.step.value}


def _order(row: Row[Any]) -> DemandOrder:
    values = dict(row._mapping)
    used_share, products, gained_ms = (values.pop(name) for name in ("used_share", "products", "gained_ms"))
    use = None if used_share is None else OrderUse(used_share, products or 0, gained_ms)
    times = OrderTimes(**{it.name: values.pop(it.name) for it in fields(OrderTimes)})
    return DemandOrder(**values | {"step": OrderStep(values["step"])}, times=times, use=use)


KIND = "circuit order"
SETUPS_COUNTED = 20
_OPEN = tuple(step.value for step in OPEN)
