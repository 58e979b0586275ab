"""The words of alarms: what is wrong, whom to tell, and what not to tell for a while."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class AlarmKind(StrEnum):
    """What an alarm is about."""

    OBJECTIVE = "objective"
    """Latency of a feed at a site misses its objective."""
    SILENCE = "silence"
    """A feed is silent for longer than its own history makes likely."""
    SITE_DOWN = "site-down"
    SITE_DISK = "site-disk"
    """A site is connected and can't store."""
    ACTION = "action"
    """A site has the products, and its own rules fail for some."""
    STALLED = "stalled"
    """A site is connected, products wait for it, and it takes none."""
    HEARTBEAT = "heartbeat"
    """A site is connected, and what goes into a feed does not come out at its end."""
    VIOLATION = "site-violation"
    """A site says what can't be: its session ends each time, or what it says does not count."""
    CLOCK = "clock"
    CREDENTIAL = "credential"
    """What a site's receiver shows ends soon or has ended, and nothing took its place."""
    HUB_DISK = "hub-disk"
    RETENTION = "retention"
    """A feed's log holds less than the longest outage that sites may have."""
    CIRCUIT = "circuit"
    PREDICTION = "prediction"
    """Plans of a feed predict latencies that are far from what is measured."""
    DAMAGED_DATA = "damaged-data"
    """A stored file of the hub's logs or of a site is not as it was written."""
    INTERNAL_FAULT = "internal-fault"
    """A handler of the hub met an error that it does not know, set something aside and went on."""


class ReceiverKind(StrEnum):
    """How a receiver is told."""

    WEBHOOK = "webhook"
    ALERTMANAGER = "alertmanager"
    MAIL = "mail"


@dataclass(frozen=True, slots=True)
class Condition:
    """Something that is wrong at a moment."""

    kind: AlarmKind
    sentence: str
    next_step: str
    feed: str | None = None
    site: str | None = None
    subject: str = ""
    """What else it is about, a circuit for one."""

    @property
    def key(self) -> str:
        """The same for the same trouble, however its figures change."""
        return "/".join((self.kind.value, self.feed or "", self.site or "", self.subject))


@dataclass(frozen=True, slots=True)
class Alarm:
    """A condition from its first look to its end."""

    number: int
    key: str
    kind: AlarmKind
    feed: str | None
    site: str | None
    subject: str
    sentence: str
    next_step: str
    since: datetime
    ended_at: datetime | None = None
    told_at: datetime | None = None
    """When receivers were told; None: a silence covers it, or nobody was told yet."""
    end_told_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Silence:
    """Alarms that nobody is told of until a moment; None stands for all."""

    number: int
    until: datetime
    by: str
    reason: str = ""
    kind: AlarmKind | None = None
    feed: str | None = None
    site: str | None = None
    begins: datetime | None = None
    """None: it began when it was made."""

    def holds(self, now: datetime) -> bool:
        """Whether it has begun, and is not over."""
        return (self.begins is None or self.begins <= now) and now < self.until

    def covers(self, alarm: Alarm, now: datetime) -> bool:
        """Whether it is about this alarm, and holds."""
        return self.holds(now) and all(
            wanted is None or wanted == found
            for wanted, found in ((self.kind, alarm.kind), (self.feed, alarm.feed), (self.site, alarm.site))
        )


@dataclass(frozen=True, slots=True)
class Receiver:
    """Whom to tell, and of what; empty stands for all."""

    name: str
    kind: ReceiverKind
    address: str = field(repr=False)
    """A URL, or an address for mail; it may hold a secret."""
    kinds: tuple[AlarmKind, ...] = ()
    feeds: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()
    owner: str | None = None
    """The site whose administrator made it: it hears of that site alone."""

    def wants(self, alarm: Alarm) -> bool:
        """Whether it is to be told of this alarm."""
        return (
            self.owner in (None, alarm.site)
            and (not self.kinds or alarm.kind in self.kinds)
            and (not self.feeds or alarm.feed in self.feeds)
            and (not self.sites or alarm.site in self.sites)
        )


@dataclass(frozen=True, slots=True)
class Objective:
    """What the latency of a feed at one site has to meet, in place of the feed's objective."""

    feed: str
    site: str
    objective_ms: float
    quantile: float | None = None
    """Share of deliveries that has to meet it; None: as the settings say."""
    minutes: float | None = None
    """Over how long that is judged; None: as the settings say."""
