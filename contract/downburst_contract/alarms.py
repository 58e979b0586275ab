"""Alarms: what is wrong and was, whom to tell, what not to tell for a while, and what latencies have to meet."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from downburst.domain import alarms
from downburst.domain.alarms import AlarmKind, ReceiverKind, Severity
from downburst_contract.base import Answer, Shape, Text, members

Begins = Annotated[str, Field(max_length=64)] | None
"""RFC 3339 with an offset, or how long from now: `+2h`."""
_Names = Annotated[list[Annotated[str, Field(min_length=1, max_length=64)]], Field(max_length=1000)]
_ReceiverName = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[\w.-]+$")]
_Address = Annotated[str, Field(min_length=3, max_length=2000)]
_Kinds = Annotated[list[AlarmKind], Field(max_length=20)]
_Severities = Annotated[list[Severity], Field(max_length=len(Severity))]


class SilenceNew(Shape):
    """Alarms that nobody is told of for a while: a single one that goes on, or those of a kind, feed and site."""

    minutes: Annotated[float, Field(gt=0, le=60 * 24 * 366)]
    reason: Text = ""
    alarm: Annotated[int, Field(ge=1, le=2**53)] | None = None
    """Number of an alarm that goes on: it alone, whenever it begins again. Kind, feed and site are its own then."""
    kind: AlarmKind | None = None
    feed: Annotated[str, Field(max_length=64)] | None = None
    site: Annotated[str, Field(max_length=63)] | None = None
    begins: Begins = None
    """When; now, if left out."""

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"alarm", "kind", "feed", "site"}


class Maintenance(Shape):
    """A window in which nobody is told of the site's alarms."""

    minutes: Annotated[float, Field(gt=0, le=60 * 24 * 31)]
    reason: Text = ""
    begins: Begins = None
    """When; now, if left out."""


class ReceiverNew(Shape):
    """Whom to tell; empty lists stand for all. Without severities and kinds: of all but information."""

    receiver: _ReceiverName
    kind: ReceiverKind
    address: _Address
    kinds: _Kinds | None = None
    feeds: _Names | None = None
    sites: _Names | None = None
    severities: _Severities | None = None


class OwnReceiver(Shape):
    """Whom to tell of this site's alarms; empty lists stand for all. Without both severities and kinds: no
    information."""

    receiver: _ReceiverName
    kind: Literal[ReceiverKind.MAIL, ReceiverKind.WEBHOOK]
    address: _Address
    kinds: _Kinds | None = None
    feeds: _Names | None = None
    severities: _Severities | None = None


class ObjectiveWanted(Shape):
    """A latency that a share of deliveries has to meet over some minutes; what is left out is as the settings say."""

    objective_ms: Annotated[float, Field(gt=0, le=86_400_000)]
    quantile: Annotated[float, Field(gt=0, lt=1)] | None = None
    minutes: Annotated[float, Field(gt=0, le=1_440)] | None = None


class Silence(Answer):
    """Alarms that nobody is told of until a moment; null stands for all."""

    number: int
    until: datetime
    by: str
    reason: str
    kind: AlarmKind | None
    feed: str | None
    site: str | None
    begins: datetime | None
    """Null: it began when it was made."""
    alarm_key: str | None
    """Of the only alarm that it is about, however often that begins and ends."""

    @classmethod
    def of(cls, silence: alarms.Silence) -> Self:
        """A silence for clients."""
        return cls(**members(silence))


class Alarm(Answer):
    """A condition from its first look to its end, and the silence that stops notifications, if any."""

    alarm: int
    kind: AlarmKind
    feed: str | None
    site: str | None
    subject: str
    """What else it is about, a circuit for one."""
    sentence: str
    next_step: str
    since: datetime
    ended_at: datetime | None
    told_at: datetime | None
    """When receivers were told; null: a silence covers it, or nobody was told yet."""
    severity: Severity
    """The worst that it has been."""
    silenced_until: datetime | None
    silence: Silence | None

    @classmethod
    def of(cls, alarm: alarms.Alarm, silence: alarms.Silence | None) -> Self:
        """An alarm for clients."""
        silenced: dict[str, Any] = {"silenced_until": silence.until if silence else None, "silence": silence}
        return cls(**members(alarm, without=("key", "end_told_at"), alarm="number"), **silenced)


class AlarmPage(Answer):
    """A page of alarms."""

    items: list[Alarm]
    next: int | None
    """The cursor of the next page; null: there is none."""


class Receiver(Answer):
    """Whom to tell, and of what; empty stands for all."""

    receiver: str
    kind: ReceiverKind
    address: str
    """A URL, or an address for mail; it may hold a secret."""
    kinds: list[AlarmKind]
    feeds: list[str]
    sites: list[str]
    severities: list[Severity]
    owner: str | None
    """The site whose administrator made it: it hears of that site alone."""

    @classmethod
    def of(cls, receiver: alarms.Receiver) -> Self:
        """A receiver for clients."""
        return cls(**members(receiver, receiver="name"))


class SiteReceiver(Answer):
    """A receiver that a site's administrator made."""

    site_receiver: str
    """Site and name, joined by a slash."""
    site: str | None
    receiver: str
    kind: ReceiverKind
    address: str
    kinds: list[AlarmKind]
    feeds: list[str]
    sites: list[str]
    severities: list[Severity]
    owner: str | None

    @classmethod
    def of(cls, receiver: alarms.Receiver) -> Self:
        """A site's receiver for clients."""
        named: dict[str, Any] = {"site_receiver": f"{receiver.owner}/{receiver.name}", "site": receiver.owner}
        return cls(**named, **members(receiver, receiver="name"))


class Objective(Answer):
    """What the latency of a feed at one site has to meet, in place of the feed's objective."""

    objective: str
    """Feed and site, joined by a slash."""
    feed: str
    site: str
    objective_ms: float
    quantile: float | None
    """Share of deliveries that has to meet it; null: as the settings say."""
    minutes: float | None
    """Over how long that is judged; null: as the settings say."""

    @classmethod
    def of(cls, objective: alarms.Objective) -> Self:
        """An objective for clients."""
        return cls(objective=f"{objective.feed}/{objective.site}", **members(objective))
