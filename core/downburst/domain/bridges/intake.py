"""Notifications on their way into a feed."""

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum


class State(StrEnum):
    """The state of a data id's last notification that was taken."""

    COMING = "coming"
    WAITING = "waiting"
    """Its centre has used up its bytes of the day: it comes on a later one."""
    HELD = "held"
    FAILED = "failed"
    """Every attempt failed: a person decides."""
    DELETED = "deleted"
    """The centre has withdrawn the data."""


@dataclass(frozen=True, slots=True)
class Last:
    """The last notification of a data id that was taken."""

    id: str
    identity: tuple[str, str]
    published_at: datetime
    state: State


@dataclass(frozen=True, slots=True)
class Notice:
    """A notification that was taken, from the broker to the log."""

    source: str
    data_id: str
    last: Last
    topic: str
    payload: bytes
    """As the broker sent it."""
    received_at: datetime
    centre: str
    announced_bytes: int = 0
    attempts: int = 0
    reason: str = ""
    """Of a failure."""
    sequence: int | None = None
    """The product's number in its feed."""
    settled_at: datetime | None = None
    """The time at which it was held, or failed."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a notification: its product is held, or every attempt failed."""

    notice: Notice
    state: State
    reason: str = ""
    """Of a failure."""
    sequence: int | None = None
    size_bytes: int = 0
    """Of the product."""


@dataclass(frozen=True, slots=True)
class CentreDay:
    """The account of a centre for a day, UTC."""

    source: str
    centre: str
    day: date
    products: int = 0
    bytes: int = 0
    copies: int = 0
    """Notifications of products that came before."""
    refused: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Unsettled:
    """The products of a centre that are not in the log yet."""

    centre: str
    coming: int = 0
    waiting: int = 0
    waiting_bytes: int = 0
    """As announced."""


@dataclass(frozen=True, slots=True)
class Hole:
    """A time in which a broker may have dropped notifications."""

    source: str
    broker: str
    from_at: datetime
    to_at: datetime
    reason: str
    number: int | None = None
    filled_at: datetime | None = None
    """The time from which another broker, or a replay, has brought all of it."""
    filled_by: str | None = None
    """The address of that broker or replay service."""
    fault: str = ""
    """The reason for which a replay has not filled it; empty: none has failed."""
