"""Reads offers with their use of today, and announces changes of offers and providers to all parts."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime

from downburst.domain.circuits.signs import CircuitsChanged
from downburst.domain.ordering import DemandOrder, Offer, OrderStep, Provider
from downburst.ledger import Transaction
from downburst_api.runtime import Runtime
from downburst_contract.ordering import CircuitOffer, UsedToday


async def offers(hub: Runtime) -> list[CircuitOffer]:
    """Every offer, by name."""
    now = hub.clock.now()
    return await hub.ledger.read(lambda tx: shown(tx, tx.planning.offers.all(), now))


async def offer(hub: Runtime, name: str) -> CircuitOffer:
    """One offer; refuses an unknown name."""
    now = hub.clock.now()
    (found,) = await hub.ledger.read(lambda tx: shown(tx, [tx.planning.offers.one(name)], now))
    return found


async def put_offer(hub: Runtime, wanted: Offer) -> None:
    """Stores an offer."""
    await hub.ledger.write(lambda tx: tx.planning.offers.put(wanted))
    hub.bus.publish(CircuitsChanged())


async def remove_offer(hub: Runtime, name: str) -> None:
    """Removes an offer; refused while an order of it is open."""
    await hub.ledger.write(lambda tx: tx.planning.offers.remove(name))
    hub.bus.publish(CircuitsChanged())


async def put_provider(hub: Runtime, wanted: Provider) -> Provider:
    """Stores a provider."""
    kept = await hub.ledger.write(lambda tx: tx.planning.providers.put(wanted))
    hub.bus.publish(CircuitsChanged())
    return kept


async def remove_provider(hub: Runtime, name: str) -> None:
    """Removes a provider; refused while an offer or a circuit needs it."""
    await hub.ledger.write(lambda tx: tx.planning.providers.remove(name))
    hub.bus.publish(CircuitsChanged())


def shown(tx: Transaction, found: Sequence[Offer], now: datetime) -> list[CircuitOffer]:
    """Offers with their measured set-up times and the use of today's budgets."""
    measured = tx.planning.orders.setups([one.name for one in found])
    orders = defaultdict[str, list[DemandOrder]](list)
    for order in tx.planning.orders.since(midnight_before(now)):
        orders[order.offer].append(order)
    return [
        CircuitOffer.of(one, measured=measured.get(one.name), used_today=used_today(orders[one.name], now))
        for one in found
    ]


def used_today(orders: Iterable[DemandOrder], now: datetime) -> UsedToday:
    """The use of a day's budget by the orders of one offer; only their hours since midnight UTC count."""
    midnight = midnight_before(now)
    counted = [order for order in orders if order.step is not OrderStep.WOULD]
    return UsedToday(
        circuit_hours=sum(_reserved_s(order, midnight, now) for order in counted) / 3_600,
        orders=sum(order.times.ordered_at >= midnight for order in counted),
    )


def midnight_before(now: datetime) -> datetime:
    """The begin of the day in UTC."""
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def _reserved_s(order: DemandOrder, midnight: datetime, now: datetime) -> float:
    yesterday_s = max((midnight - order.times.ordered_at).total_seconds(), 0.0)
    return max(order.reserved_s(now) - yesterday_s, 0.0)
