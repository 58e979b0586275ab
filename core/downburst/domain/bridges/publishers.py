"""Publishers of WIS2: the products of a feed that this hub announces, and the place of each of them on its way."""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from downburst.domain.bridges.datasets import Dataset
from downburst.domain.bridges.sources import Broker
from downburst.foundation.errors import BadInput
from downburst.foundation.names import check_feed_name


@dataclass(frozen=True, slots=True)
class Wis2Publisher:
    """Products of one feed that are announced on one topic."""

    name: str
    feed: str
    centre: str
    """The centre-id under which this hub publishes, such as `us-unidata`."""
    subtopic: str
    """The topic below `…/data/`: policy, discipline and so on."""
    metadata_id: str
    """Of the dataset's record of discovery."""
    broker: Broker
    """The hub's own broker, from which Global Brokers take notifications."""
    base_url: str
    """The address under which others reach this hub's origin server."""
    pattern: str = ".*"
    """Products whose ids match are announced."""
    media_type: str = "application/octet-stream"
    by_heading: bool = False
    """A gateway of the GTS: the topic ends with the heading of each bulletin, in place of the subtopic's own end."""
    republishes: bool = False
    """Products that came by WIS2 are announced too, with their centre as the producer."""
    enabled: bool = False
    dataset: Dataset | None = None
    """For the record of discovery; None: it is published elsewhere."""
    created_at: datetime | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise BadInput(f"{self.name!r} is no name of a publisher; use up to 63 of a-z, 0-9, dots and hyphens")
        check_feed_name(self.feed)
        if not _CENTRE.fullmatch(self.centre):
            raise BadInput(f"{self.centre[:100]!r} is no centre-id; write a domain's end and a name, as us-unidata")
        if not _SUBTOPIC.fullmatch(self.subtopic) or len(self.subtopic) > LONGEST_SUBTOPIC:
            raise BadInput(f"{self.subtopic[:100]!r} is no topic of data; write one as {EXAMPLE}")
        if not _METADATA_ID.fullmatch(self.metadata_id) or len(self.metadata_id) > LONGEST_METADATA_ID:
            raise BadInput(
                f"{self.metadata_id[:100]!r} is no metadata id; write one as urn:wmo:md:{self.centre}:synop"
            )
        if not _BASE_URL.fullmatch(self.base_url) or len(self.base_url) > LONGEST_BASE_URL:
            raise BadInput(f"{self.base_url[:100]!r} is no address of a server; write one as https://hub.example")
        if not _MEDIA_TYPE.fullmatch(self.media_type):
            raise BadInput(f"{self.media_type[:100]!r} is no media type; write one as application/bufr")
        if self.broker.mqtt != NEEDED_MQTT:
            raise BadInput("a publisher needs MQTT 5, as brokers of 3.1.1 take what they refuse without a word")

    @property
    def topic(self) -> str:
        """The topic of its notifications; of a gateway without the heading."""
        return f"origin/a/wis2/{self.centre}/data/{self.subtopic}"

    @property
    def metadata_topic(self) -> str:
        """The topic of its dataset's record."""
        return f"origin/a/wis2/{self.centre}/metadata"


RECORD = "record"
"""In place of the epoch of a log: an announcement of the dataset's record."""


class Step(StrEnum):
    """The place of a product on its way to a broker."""

    WAITING = "waiting"
    ANNOUNCED = "announced"
    """The broker has acknowledged it, and somebody is subscribed."""
    REFUSED = "refused"
    """It is not announced, for a reason of its own."""
    EXPIRED = "expired"
    """The broker did not take it within a day."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A product that is announced."""

    publisher: str
    epoch: str
    sequence: int
    data_id: str
    product_id: str
    id: str
    """Of the notification, which keeps it over all attempts."""
    kind: str
    topic: str
    payload: bytes
    """The notification; empty if it is refused."""
    digest: str
    """SHA-512 of the product, in hexadecimal digits."""
    size_bytes: int
    made_at: datetime
    step: Step = Step.WAITING
    announced_at: datetime | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """The last product of its feed that a publisher has looked at."""

    epoch: str
    sequence: int


NEEDED_MQTT = 5
EXAMPLE = "core/weather/surface-based-observations/synop"
LONGEST_SUBTOPIC = 300
LONGEST_METADATA_ID = 200
LONGEST_BASE_URL = 300
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,62}")
_CENTRE = re.compile(r"[a-z]{2,10}(-[a-z0-9_]+)+")
_SUBTOPIC = re.compile(r"(core|recommended)(/[a-z0-9][a-z0-9_-]*)+")
_METADATA_ID = re.compile(r"urn:wmo:md:[a-z0-9_-]+:[A-Za-z0-9._:/-]+")
_BASE_URL = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+(/[A-Za-z0-9._~/-]*)?")
_MEDIA_TYPE = re.compile(r"[a-z]+/[A-Za-z0-9.+-]{1,80}")
