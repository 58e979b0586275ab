"""The way of a product through bridges: the notification by which it came, and those by which it went on."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from downburst.deliveries import ProductFacts
from downburst.domain.bridges import Notice
from downburst.domain.bridges.publishers import Outgoing
from downburst.ledger import Transaction
from downburst.wis2.properties import Stated, stated_in
from downburst_contract.products import Announcement, Bridged, Heard, Wis2Statement


@dataclass(frozen=True, slots=True)
class Records:
    """The ledger's records of a product at bridges."""

    notice: Notice | None
    outgoing: tuple[Outgoing, ...]


def records_of(tx: Transaction, products: Iterable[ProductFacts]) -> list[Records]:
    """The records of each product. A notice is kept for two days, and only the last one of its data id."""
    by_feed: dict[str, list[str]] = {}
    for one in tx.wis2.publishers.all():
        by_feed.setdefault(one.feed, []).append(one.name)
    return [_records(tx, product, by_feed.get(product.feed, [])) for product in products]


def _records(tx: Transaction, product: ProductFacts, publishers: Sequence[str]) -> Records:
    outgoing = tx.wis2.outbox.about_product(publishers, product.epoch, product.sequence) if publishers else []
    notice = tx.wis2.notices.of_product(product.feed, product.product_id, product.sequence)
    return Records(notice, tuple(outgoing))


def bridged_out(product: ProductFacts, records: Records) -> Bridged:
    """The way of a product from another system, and to others."""
    stated = None if product.properties is None else stated_in(product.properties.encode())
    return Bridged(
        properties=product.properties,
        statement=None if stated is None else _statement(stated, records.notice),
        announced=[_announcement(one) for one in records.outgoing],
    )


def _statement(stated: Stated, notice: Notice | None) -> Wis2Statement:
    notification = stated.notification
    return Wis2Statement(
        topic=stated.topic.text,
        centre=stated.topic.centre,
        notification_id=notification.id,
        data_id=notification.data_id,
        metadata_id=notification.metadata_id,
        kind=notification.kind.value,
        published_at=notification.published_at,
        url=notification.link.url,
        shortened=stated.shortened,
        heard=None if notice is None or notice.last.id != notification.id else _heard(notice),
    )


def _heard(notice: Notice) -> Heard:
    return Heard(bridge=notice.source, heard_at=notice.received_at, settled_at=notice.settled_at)


def _announcement(outgoing: Outgoing) -> Announcement:
    return Announcement(
        publisher=outgoing.publisher,
        notification_id=outgoing.id,
        data_id=outgoing.data_id,
        kind=outgoing.kind,
        topic=outgoing.topic,
        step=outgoing.step.value,
        announced_at=outgoing.announced_at,
        reason=outgoing.reason,
    )
