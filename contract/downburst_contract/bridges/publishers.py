"""Publishers of WIS2: the products of a feed that are announced, and the way of each of them."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from downburst.domain import bridges
from downburst.domain.bridges import publishers
from downburst.domain.bridges.datasets import Dataset
from downburst.domain.bridges.health import outlet_health
from downburst_contract.base import Answer, Shape
from downburst_contract.bridges.sources import BrokerState, BrokerWanted

_Name = Annotated[str, Field(max_length=63)]
_Text = Annotated[str, Field(max_length=300)]
_Long = Annotated[str, Field(min_length=1, max_length=4_000)]
_Pattern = Annotated[str, Field(min_length=1, max_length=500)]


class DatasetFacts(Shape):
    """The facts about a dataset that catalogues show."""

    title: _Long
    description: _Long
    organization: _Long
    email: _Text
    website: _Text
    country: Annotated[str, Field(max_length=3)]
    """ISO 3166, two or three letters."""
    keywords: Annotated[list[_Text], Field(min_length=3, max_length=50)]
    begin: datetime
    """The time of the first data."""
    bounds: Annotated[list[float], Field(min_length=4, max_length=4)] | None = None
    """West, south, east and north, degrees; null: the whole world."""
    license_url: _Text | None = None

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"bounds", "license_url"}

    def to_model(self) -> Dataset:
        """The dataset; refuses impossible facts."""
        given = self.model_dump()
        bounds = None if self.bounds is None else tuple(self.bounds)
        return Dataset(**given | {"keywords": tuple(self.keywords), "bounds": bounds})


class PublisherChange(Shape):
    """Properties of a publisher; those left out keep their value."""

    feed: _Name | None = None
    centre: _Text | None = None
    topic: _Text | None = None
    """Below `origin/a/wis2/CENTRE/data/`, such as `core/weather/surface-based-observations/synop`."""
    metadata_id: _Text | None = None
    broker: BrokerWanted | None = None
    base_url: _Text | None = None
    pattern: _Pattern | None = None
    media_type: _Text | None = None
    by_heading: bool | None = None
    republishes: bool | None = None
    enabled: bool | None = None
    dataset: DatasetFacts | None = None
    """Null: its record is published elsewhere."""

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"dataset"}

    def applied_to(self, publisher: publishers.Wis2Publisher) -> publishers.Wis2Publisher:
        """The publisher with these changes; refuses impossible values."""
        given = self.model_dump(exclude_unset=True, exclude={"broker", "topic", "dataset"})
        if "dataset" in self.model_fields_set:
            given["dataset"] = None if self.dataset is None else self.dataset.to_model()
        if self.topic is not None:
            given["subtopic"] = self.topic
        if self.broker is not None:
            given["broker"] = self.broker.to_model()
        return replace(publisher, **given)


class PublisherWanted(Shape):
    """Products of a feed that are to be announced on a topic of WIS2."""

    publisher: _Name
    feed: _Name
    centre: _Text
    """The centre-id under which this hub publishes; `-test` at its end is for tests."""
    topic: _Text
    """Below `origin/a/wis2/CENTRE/data/`, such as `core/weather/surface-based-observations/synop`."""
    metadata_id: _Text
    """Of the dataset's record, such as `urn:wmo:md:us-unidata:synop`."""
    broker: BrokerWanted
    """The hub's own broker, from which Global Brokers take notifications."""
    base_url: _Text
    """The address under which others reach this hub, such as `https://hub.example`."""
    pattern: _Pattern = ".*"
    """Products whose ids match are announced."""
    media_type: _Text = "application/octet-stream"
    by_heading: bool = False
    """A gateway of the GTS: topics end with the headings of bulletins."""
    republishes: bool = False
    """Products that came by WIS2 are announced too, with their centre as the producer."""
    enabled: bool = False
    """Look at the preview first."""
    dataset: DatasetFacts | None = None
    """For the record of discovery; null: it is published elsewhere."""

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"dataset"}

    def to_model(self) -> publishers.Wis2Publisher:
        """The publisher; refuses impossible values."""
        return publishers.Wis2Publisher(
            self.publisher,
            self.feed,
            self.centre,
            self.topic,
            self.metadata_id,
            self.broker.to_model(),
            self.base_url,
            self.pattern,
            self.media_type,
            self.by_heading,
            self.republishes,
            self.enabled,
            None if self.dataset is None else self.dataset.to_model(),
        )


class PublisherProducts(Answer):
    """The number of a publisher's products by step, in the last two days."""

    waiting: int
    """The broker has not acknowledged them."""
    announced: int
    refused: int
    expired: int
    looked_at: int | None
    """The sequence of the last product of the feed that was looked at; null: the publisher has not begun."""
    behind: int
    """Products of the feed that were not looked at yet."""
    refusal: str
    """The broker's last refusal; empty after an announcement."""


class Publisher(Answer):
    """A publisher with the state of its broker and the number of its products."""

    publisher: str
    feed: str
    centre: str
    topic: str
    metadata_id: str
    broker: BrokerState
    base_url: str
    pattern: str
    media_type: str
    by_heading: bool
    republishes: bool
    enabled: bool
    dataset: str | None
    """The title of its record of discovery; null: Global Brokers drop notifications without one."""
    created_at: datetime | None
    products: PublisherProducts

    @classmethod
    def of(
        cls,
        publisher: publishers.Wis2Publisher,
        now: bridges.PublisherNow | None,
        count: Mapping[publishers.Step, int],
        place: publishers.Place | None,
        *,
        at: datetime,
    ) -> Self:
        """The publisher for clients."""
        return cls(
            publisher=publisher.name,
            feed=publisher.feed,
            centre=publisher.centre,
            topic=publisher.subtopic,
            metadata_id=publisher.metadata_id,
            broker=_broker(publisher, now or bridges.PublisherNow(), at),
            base_url=publisher.base_url,
            pattern=publisher.pattern,
            media_type=publisher.media_type,
            by_heading=publisher.by_heading,
            republishes=publisher.republishes,
            enabled=publisher.enabled,
            dataset=None if publisher.dataset is None else publisher.dataset.title,
            created_at=publisher.created_at,
            products=PublisherProducts(
                waiting=count.get(publishers.Step.WAITING, 0),
                announced=count.get(publishers.Step.ANNOUNCED, 0),
                refused=count.get(publishers.Step.REFUSED, 0),
                expired=count.get(publishers.Step.EXPIRED, 0),
                looked_at=None if place is None else place.sequence,
                behind=0 if now is None else now.behind,
                refusal="" if now is None else now.refusal,
            ),
        )


def _broker(publisher: publishers.Wis2Publisher, now: bridges.PublisherNow, at: datetime) -> BrokerState:
    if not publisher.enabled:
        return BrokerState.off(publisher.broker)
    judged = outlet_health(now.standing, now.refusal)
    return BrokerState.of(publisher.broker, now.standing, judged, pace=None, at=at)


class Withdrawal(Shape):
    """Data that are withdrawn."""

    data_id: Annotated[str, Field(max_length=255)]


class AnnouncedProduct(Answer):
    """A product on its way to a broker."""

    product_id: str
    sequence: int
    data_id: str
    id: str
    """Of the notification."""
    kind: str
    topic: str
    step: Literal["waiting", "announced", "refused", "expired"]
    made_at: datetime
    announced_at: datetime | None
    reason: str
    """Of a refusal."""
    notification: dict[str, Any] | None
    """As it is sent; null if it is refused."""

    @classmethod
    def of(cls, outgoing: publishers.Outgoing) -> Self:
        """The product for clients."""
        return cls(
            product_id=outgoing.product_id,
            sequence=outgoing.sequence,
            data_id=outgoing.data_id,
            id=outgoing.id,
            kind=outgoing.kind,
            topic=outgoing.topic,
            step=outgoing.step.value,
            made_at=outgoing.made_at,
            announced_at=outgoing.announced_at,
            reason=outgoing.reason,
            notification=json.loads(outgoing.payload) if outgoing.payload else None,
        )
