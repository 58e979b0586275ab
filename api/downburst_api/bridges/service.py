"""Sources of WIS2 as the ledger and the present have them."""

from collections.abc import Callable, Sequence
from datetime import UTC
from typing import TypeVar

from downburst.domain.bridges import CentreDay, Hole, Notice, PassedOver, SourceNow, Unsettled, Wis2Source
from downburst.domain.bridges.signs import BridgesChanged
from downburst.ledger import Transaction
from downburst_api.runtime import Runtime
from downburst_contract.bridges.sources import Bridge, BridgeChange, CentreAccount, Seen

T = TypeVar("T")


async def listed(hub: Runtime) -> list[Bridge]:
    """All sources."""
    return await hub.ledger.read(lambda tx: [_bridge(hub, tx, one) for one in tx.wis2.sources.all()])


async def shown(hub: Runtime, name: str) -> Bridge:
    """One source; refuses an unknown name."""
    return await hub.ledger.read(lambda tx: _bridge(hub, tx, tx.wis2.sources.one(name)))


async def add(hub: Runtime, wanted: Wis2Source) -> Bridge:
    """Stores a source, and has it connected."""
    return await _changed(hub, lambda tx: _bridge(hub, tx, tx.wis2.sources.add(wanted)))


async def change(hub: Runtime, name: str, wanted: BridgeChange) -> Bridge:
    """Changes a source, and has it connected anew."""

    def changed(tx: Transaction) -> Bridge:
        return _bridge(hub, tx, tx.wis2.sources.change(wanted.applied_to(tx.wis2.sources.one(name))))

    return await _changed(hub, changed)


async def remove(hub: Runtime, name: str) -> None:
    """Removes a source."""
    await _changed(hub, lambda tx: tx.wis2.sources.remove(name))


async def retry(hub: Runtime, name: str) -> int:
    """Has failed products fetched once more; returns their number."""
    return await _changed(hub, lambda tx: tx.wis2.notices.again(tx.wis2.sources.one(name).name))


async def failed(hub: Runtime, name: str) -> list[Notice]:
    """The last failed products."""
    return await hub.ledger.read(lambda tx: tx.wis2.notices.failed(tx.wis2.sources.one(name).name))


async def centres(hub: Runtime, name: str) -> list[CentreAccount]:
    """Today's accounts, and those of centres from which products are still to come, by name."""
    today = hub.clock.now().astimezone(UTC).date()

    def found(tx: Transaction) -> list[CentreAccount]:
        source = tx.wis2.sources.one(name).name
        days = {day.centre: day for day in tx.wis2.days.of(source, today)}
        left = {one.centre: one for one in tx.wis2.notices.unsettled(source)}
        return [
            CentreAccount.of(
                days.get(centre) or CentreDay(source, centre, today), left.get(centre) or Unsettled(centre)
            )
            for centre in sorted(days.keys() | left.keys())
        ]

    return await hub.ledger.read(found)


async def holes(hub: Runtime, name: str) -> list[Hole]:
    """All holes."""
    return await hub.ledger.read(lambda tx: tx.wis2.holes.of(tx.wis2.sources.one(name).name))


async def passed_over(hub: Runtime, name: str) -> Sequence[PassedOver]:
    """The last messages that were passed over, the newest first."""
    await hub.ledger.read(lambda tx: tx.wis2.sources.one(name))
    now = hub.live.bridges.sources.get(name)
    return [] if now is None else list(now.passed_over)[::-1]


async def _changed(hub: Runtime, work: Callable[[Transaction], T]) -> T:
    done = await hub.ledger.write(work)
    hub.bus.publish(BridgesChanged())
    return done


def _bridge(hub: Runtime, tx: Transaction, source: Wis2Source) -> Bridge:
    now = hub.live.bridges.sources.get(source.name) or SourceNow()
    count, oldest_at = tx.wis2.notices.count(source.name), tx.wis2.notices.oldest_coming(source.name)
    return Bridge.of(source, Seen(now, count, oldest_at, hub.clock.now()))
