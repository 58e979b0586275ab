"""The notification of a product, or the reason for which there is none; pure.

A product that came by WIS2 has a centre already: it is announced again only where the publisher says so, under its
own data id and publication time, and never as core data if it was recommended. Products of this hub's own centre do
not go round.
"""

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime
from urllib.parse import quote, quote_plus

from downburst.domain.bridges.exporting import ExportedProduct
from downburst.domain.bridges.publishers import RECORD, Outgoing, Step, Wis2Publisher
from downburst.foundation.errors import BadInput
from downburst.wis2.gts import Heading, heading_in
from downburst.wis2.integrity import Integrity
from downburst.wis2.notifications import LONGEST_INLINE, Kind, read_notification
from downburst.wis2.properties import Stated, stated_in
from downburst.wis2.topics import Policy
from downburst.wis2.writing import Announced, notification_of


@dataclass(frozen=True, slots=True)
class Ready:
    """A product whose bytes are in a file."""

    product: ExportedProduct
    sha512: bytes
    begin: bytes
    """Its first bytes: all of them, if it is short enough to be within a notification."""


@dataclass(frozen=True, slots=True)
class Announcing:
    """The circumstances of a notification."""

    id: str
    """A new UUID."""
    at: datetime
    latest: Outgoing | None
    """The last one of the same data id."""


def data_id_of(publisher: Wis2Publisher, product: ExportedProduct) -> str:
    """The product's name in WIS2: the one that it came by, or a readable path of this centre."""
    stated = _stated(product)
    if stated is not None and publisher.republishes:
        return stated.notification.data_id
    dataset = publisher.metadata_id.rsplit(":", maxsplit=1)[-1]
    return f"{publisher.centre}/{dataset}/{quote_plus(product.product_id, safe='/')}"


def outgoing_of(publisher: Wis2Publisher, ready: Ready, now: Announcing) -> Outgoing:
    """The product as it is announced, or refused with a sentence."""
    try:
        return _announced(publisher, ready, now)
    except BadInput as error:
        return replace(_outgoing(publisher, ready, now), step=Step.REFUSED, reason=error.sentence)


def withdrawal_of(publisher: Wis2Publisher, latest: Outgoing, notification_id: str, at: datetime) -> Outgoing:
    """The notification by which the data of an announced product are withdrawn."""
    before = read_notification(latest.payload)
    announced = Announced(
        id=notification_id,
        kind=Kind.DELETION,
        data_id=latest.data_id,
        metadata_id=publisher.metadata_id,
        published_at=at,
        url=before.link.url,
        length_bytes=latest.size_bytes,
        integrity=Integrity("sha512", bytes.fromhex(latest.digest)),
        media_type=publisher.media_type,
    )
    made = replace(latest, id=notification_id, kind=Kind.DELETION.value, payload=notification_of(announced))
    return replace(made, made_at=at, step=Step.WAITING, announced_at=None)


def record_announced(publisher: Wis2Publisher, record: bytes, latest: Outgoing | None, now: Announcing) -> Outgoing:
    """The notification of the dataset's record, which is given again every day (guide to WIS2, 1.3.3.4)."""
    kind = Kind.NEW if latest is None else Kind.UPDATE
    digest = hashlib.sha512(record).digest()
    announced = Announced(
        id=now.id,
        kind=kind,
        data_id=f"{publisher.centre}/metadata/{publisher.metadata_id.rsplit(':', maxsplit=1)[-1]}",
        metadata_id=publisher.metadata_id,
        published_at=now.at,
        url=f"{publisher.base_url.rstrip('/')}/wis2/{publisher.name}/record.json",
        length_bytes=len(record),
        integrity=Integrity("sha512", digest),
        media_type="application/geo+json",
    )
    return Outgoing(
        publisher=publisher.name,
        epoch=RECORD,
        sequence=now.at.toordinal(),
        data_id=announced.data_id,
        product_id="record.json",
        id=now.id,
        kind=kind.value,
        topic=publisher.metadata_topic,
        payload=notification_of(announced),
        digest=digest.hex(),
        size_bytes=len(record),
        made_at=now.at,
    )


def refused(publisher: Wis2Publisher, product: ExportedProduct, now: Announcing, reason: str) -> Outgoing:
    """A product that is not announced."""
    return replace(_outgoing(publisher, Ready(product, b"", b""), now), step=Step.REFUSED, reason=reason)


def file_name(product: ExportedProduct) -> str:
    """The last part of its address. Some programs know files by it alone, so that it has the number."""
    last = product.product_id.rsplit("/", maxsplit=1)[-1]
    return f"{product.sequence}-{quote(last, safe='')[:LONGEST_NAME]}"


def _announced(publisher: Wis2Publisher, ready: Ready, now: Announcing) -> Outgoing:
    product, heading, stated = ready.product, heading_in(ready.begin), _stated(ready.product)
    _check_source(publisher, stated)
    kind = _kind(ready, now)
    url = f"{publisher.base_url.rstrip('/')}/wis2/{publisher.name}/{product.epoch}/{file_name(product)}"
    announced = Announced(
        id=now.id,
        kind=kind,
        data_id=data_id_of(publisher, product),
        metadata_id=publisher.metadata_id,
        published_at=now.at if stated is None else stated.notification.published_at,
        url=url,
        length_bytes=product.size_bytes,
        integrity=Integrity("sha512", ready.sha512),
        media_type=publisher.media_type,
        gts=None if heading is None else (heading.ttaaii, heading.cccc),
        producer=None if stated is None else stated.topic.centre,
    )
    content = ready.begin if len(ready.begin) == product.size_bytes <= LONGEST_INLINE else None
    payload = notification_of(announced, content)
    made = _outgoing(publisher, ready, now)
    return replace(made, kind=kind.value, topic=_topic(publisher, heading), payload=payload)


def _check_source(publisher: Wis2Publisher, stated: Stated | None) -> None:
    if stated is None:
        return
    if stated.topic.centre == publisher.centre:
        raise BadInput(f"it is of {publisher.centre} already: it would go round")
    if not publisher.republishes:
        raise BadInput(f"it came by WIS2 from {stated.topic.centre}, whose products this publisher does not announce")
    if stated.topic.policy is Policy.RECOMMENDED and publisher.subtopic.startswith(Policy.CORE):
        raise BadInput(f"it is recommended data of {stated.topic.centre}, and the topic is one of core data")


def _kind(ready: Ready, now: Announcing) -> Kind:
    if now.latest is None or now.latest.kind == Kind.DELETION:
        return Kind.NEW
    if now.latest.digest == ready.sha512.hex():
        raise BadInput("the same bytes were announced before under this data id")
    return Kind.UPDATE


def _topic(publisher: Wis2Publisher, heading: Heading | None) -> str:
    if not publisher.by_heading:
        return publisher.topic
    if heading is None:
        raise BadInput("it has no heading of the GTS, of which a gateway's topic is made")
    policy = publisher.subtopic.split("/", maxsplit=1)[0]
    return f"origin/a/wis2/{publisher.centre}/data/{policy}/{heading.levels}"


def _stated(product: ExportedProduct) -> Stated | None:
    return None if product.properties is None else stated_in(product.properties)


def _outgoing(publisher: Wis2Publisher, ready: Ready, now: Announcing) -> Outgoing:
    product = ready.product
    return Outgoing(
        publisher=publisher.name,
        epoch=product.epoch,
        sequence=product.sequence,
        data_id=data_id_of(publisher, product)[:LONGEST_DATA_ID],
        product_id=product.product_id,
        id=now.id,
        kind=Kind.NEW.value,
        topic="",
        payload=b"",
        digest=ready.sha512.hex(),
        size_bytes=product.size_bytes,
        made_at=now.at,
    )


LONGEST_NAME = 100
LONGEST_DATA_ID = 255
