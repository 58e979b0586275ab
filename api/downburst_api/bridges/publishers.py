"""Routes of publishers of WIS2."""

import asyncio
import uuid
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

from fastapi import APIRouter

from downburst.deliveries.browsing import Browse
from downburst.domain.bridges.publishers import Outgoing, Step, Wis2Publisher
from downburst.domain.bridges.signs import BridgesChanged
from downburst.foundation.errors import BadInput, NotFound
from downburst.ledger import Transaction
from downburst.wis2.announcing import Announcing, Ready, outgoing_of, withdrawal_of
from downburst.wis2.notifications import LONGEST_INLINE
from downburst_api.http.pagination import Paged
from downburst_api.http.parameters import Hub
from downburst_api.runtime import Runtime
from downburst_contract.bridges.publishers import (
    AnnouncedProduct,
    Publisher,
    PublisherChange,
    PublisherWanted,
    Withdrawal,
)

router = APIRouter(prefix="/v1", tags=["bridges"])
T = TypeVar("T")


@router.get("/publishers")
async def list_publishers(hub: Hub, page: Paged) -> list[Publisher]:
    """All publishers with the state of their brokers, by name."""
    found = await hub.ledger.read(lambda tx: [_publisher(hub, tx, one) for one in tx.wis2.publishers.all()])
    return page.of(found, "publisher")


@router.post("/publishers", status_code=201, responses={404: {}, 409: {}, 422: {}})
async def add_publisher(hub: Hub, wanted: PublisherWanted) -> Publisher:
    """Adds a publisher. It begins with the products that come after it is switched on."""
    made = wanted.to_model()
    await hub.node.check_pattern(made.pattern)

    def added(tx: Transaction) -> Publisher:
        kept = tx.wis2.publishers.add(made)
        _check_retention(tx, kept)
        return _publisher(hub, tx, kept)

    return await _changed(hub, added)


@router.get("/publishers/{publisher}", responses={404: {}})
async def show_publisher(hub: Hub, publisher: str) -> Publisher:
    """A publisher with the state of its broker."""
    return await hub.ledger.read(lambda tx: _publisher(hub, tx, tx.wis2.publishers.one(publisher)))


@router.patch("/publishers/{publisher}", responses={404: {}, 422: {}})
async def change_publisher(hub: Hub, publisher: str, wanted: PublisherChange) -> Publisher:
    """Changes a publisher; products that it has announced stay announced."""
    if wanted.pattern is not None:
        await hub.node.check_pattern(wanted.pattern)

    def changed(tx: Transaction) -> Publisher:
        kept = tx.wis2.publishers.change(wanted.applied_to(tx.wis2.publishers.one(publisher)))
        _check_retention(tx, kept)
        return _publisher(hub, tx, kept)

    return await _changed(hub, changed)


@router.delete("/publishers/{publisher}", status_code=204, responses={404: {}})
async def remove_publisher(hub: Hub, publisher: str) -> None:
    """Removes a publisher; its products are served no more."""
    await _changed(hub, lambda tx: tx.wis2.publishers.remove(publisher))


@router.get("/publishers/{publisher}/products", responses={404: {}})
async def list_announced_products(
    hub: Hub, publisher: str, page: Paged, step: Step | None = None
) -> list[AnnouncedProduct]:
    """The last 1,000 products of a publisher, by the number of their notification, with what was sent."""

    def found(tx: Transaction) -> list[Outgoing]:
        name = tx.wis2.publishers.one(publisher).name
        return tx.wis2.outbox.newest(name, step, limit=1_000)

    return page.of(map(AnnouncedProduct.of, await hub.ledger.read(found)), "id")


@router.post("/publishers/{publisher}/preview", responses={404: {}, 410: {}})
async def preview_notification(hub: Hub, publisher: str) -> AnnouncedProduct:
    """The notification of the newest product that matches, as it would be sent; nothing is sent."""
    wanted = await hub.ledger.read(lambda tx: tx.wis2.publishers.one(publisher))
    since = hub.clock.now() - timedelta(days=2)
    found = await hub.node.browse(Browse(wanted.feed, since, pattern=wanted.pattern, limit=1))
    if not found.products:
        raise NotFound(f"feed {wanted.feed} has no product that matches {wanted.pattern!r}; put one, and ask again")
    newest = found.products[0]
    file = await hub.node.exported(newest.feed, newest.epoch, newest.sequence)
    begin = await asyncio.to_thread(_begin, file.path)
    now = Announcing(str(uuid.uuid4()), hub.clock.now(), None)
    return AnnouncedProduct.of(outgoing_of(wanted, Ready(file.product, file.sha512, begin), now))


@router.post("/publishers/{publisher}/withdraw", responses={404: {}})
async def withdraw_product(hub: Hub, publisher: str, wanted: Withdrawal) -> AnnouncedProduct:
    """Announces that the data of a data id are withdrawn, and serves them no more; the product stays in its feed."""
    return await _changed(hub, partial(_withdrawn, hub, publisher, wanted.data_id))


def _withdrawn(hub: Runtime, name: str, data_id: str, tx: Transaction) -> AnnouncedProduct:
    publisher = tx.wis2.publishers.one(name)
    latest = tx.wis2.outbox.latest(name, [data_id]).get(data_id)
    if latest is None:
        raise NotFound(f"{name} has announced nothing as {data_id[:100]!r}: see its products")
    made = withdrawal_of(publisher, latest, str(uuid.uuid4()), hub.clock.now())
    tx.wis2.outbox.put([made])
    return AnnouncedProduct.of(made)


def _check_retention(tx: Transaction, publisher: Wis2Publisher) -> None:
    """Announced addresses have to work for a day (guide to WIS2, 1.3.3.6)."""
    feed = tx.feeds.one(publisher.feed)
    if publisher.enabled and feed.retention_hours < LEAST_RETENTION_HOURS:
        raise BadInput(
            f"feed {feed.name} keeps its products for {feed.retention_hours:g} h, and WIS2 asks for "
            f"{LEAST_RETENTION_HOURS} h: change it first (downburst feeds change, --retention-hours)"
        )


async def _changed(hub: Runtime, work: Callable[[Transaction], T]) -> T:
    done = await hub.ledger.write(work)
    hub.bus.publish(BridgesChanged())
    return done


def _publisher(hub: Runtime, tx: Transaction, publisher: Wis2Publisher) -> Publisher:
    now = hub.live.bridges.publishers.get(publisher.name)
    count, place = tx.wis2.outbox.count(publisher.name), tx.wis2.publishers.place(publisher.name)
    return Publisher.of(publisher, now, count, place, at=hub.clock.now())


def _begin(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(LONGEST_INLINE)


LEAST_RETENTION_HOURS = 24
