"""The terms of alarms: conditions, receivers and silences."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class AlarmKind(StrEnum):
    """What an alarm is about."""

    OBJECTIVE = "objective"
    """The latency of a feed at a site misses its objective."""
    SILENCE = "silence"
    """A feed is silent for longer than its own history makes likely."""
    SITE_DOWN = "site-down"
    SITE_DISK = "site-disk"
    """A site is connected and can't store."""
    LINKED_FILES = "linked-files"
    """A site's disk gets full, because files of products that left its log still exist."""
    ACTION = "action"
    """A site has the products, and its own rules fail for some."""
    STALLED = "stalled"
    """A site is connected, products wait for it, and it takes none."""
    GROUP_LOSS = "group-loss"
    """A site loses so much of a feed's group that it is served by unicast."""
    HEARTBEAT = "heartbeat"
    """A site is connected, and heartbeats of a feed do not come out at its end."""
    VIOLATION = "site-violation"
    """A site reports impossible values: its session ends each time, or the value is ignored."""
    PEER_VIOLATION = "peer-violation"
    """An LDM peer sends impossible values: its connection ends each time."""
    CLOCK = "clock"
    CREDENTIAL = "credential"
    """The credential of a site's receiver ends soon or has ended, without a replacement."""
    HUB_DISK = "hub-disk"
    RETENTION = "retention"
    """A feed's log holds less than the longest outage that sites may have."""
    CIRCUIT = "circuit"
    PREDICTION = "prediction"
    """Plans of a feed predict latencies that are far from the measured ones."""
    DAMAGED_DATA = "damaged-data"
    """A stored file of the hub's logs or of a site is not as it was written."""
    INTERNAL_FAULT = "internal-fault"
    """A handler of the hub met an unexpected error, set something aside and continued."""
    PART_SILENT = "part-silent"
    """A part in a process of its own, or the hub seen from there, gives no sign of life."""


class Severity(StrEnum):
    """How soon somebody has to do something; the worst first."""

    CRITICAL = "critical"
    """A site or the hub does not work, or products are lost."""
    WARNING = "warning"
    """It works, but not for long, or less well than promised."""
    INFORMATION = "information"
    """Products arrive without any action."""

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return list(Severity).index(self)


SEVERITIES: Mapping[AlarmKind, Severity] = {
    AlarmKind.SITE_DOWN: Severity.CRITICAL,
    AlarmKind.SITE_DISK: Severity.CRITICAL,
    AlarmKind.HEARTBEAT: Severity.CRITICAL,
    AlarmKind.DAMAGED_DATA: Severity.CRITICAL,
    AlarmKind.PART_SILENT: Severity.CRITICAL,
    AlarmKind.OBJECTIVE: Severity.WARNING,
    AlarmKind.SILENCE: Severity.WARNING,
    AlarmKind.ACTION: Severity.WARNING,
    AlarmKind.STALLED: Severity.WARNING,
    AlarmKind.GROUP_LOSS: Severity.WARNING,
    AlarmKind.VIOLATION: Severity.WARNING,
    AlarmKind.PEER_VIOLATION: Severity.WARNING,
    AlarmKind.LINKED_FILES: Severity.WARNING,
    AlarmKind.CLOCK: Severity.WARNING,
    AlarmKind.CREDENTIAL: Severity.WARNING,
    AlarmKind.HUB_DISK: Severity.WARNING,
    AlarmKind.RETENTION: Severity.WARNING,
    AlarmKind.CIRCUIT: Severity.WARNING,
    AlarmKind.INTERNAL_FAULT: Severity.WARNING,
    AlarmKind.PREDICTION: Severity.INFORMATION,
}
"""The initial severity of each kind. A lasting standstill, a full disk and an expired credential are critical."""
TOLD_BY_DEFAULT = (Severity.CRITICAL, Severity.WARNING)
"""The severities for a receiver that names neither severities nor kinds."""


def severities_told(given: Sequence[Severity] | None, kinds: Sequence[AlarmKind] | None) -> tuple[Severity, ...]:
    """The severities of a new receiver: those it names; by default all if it names kinds, or all but information."""
    if given is None and not kinds:
        return TOLD_BY_DEFAULT
    return tuple(severity for severity in Severity if not given or severity in given)


class ReceiverKind(StrEnum):
    """How a receiver is told."""

    WEBHOOK = "webhook"
    ALERTMANAGER = "alertmanager"
    MAIL = "mail"


@dataclass(frozen=True, slots=True)
class Condition:
    """A problem at a moment."""

    kind: AlarmKind
    sentence: str
    next_step: str
    feed: str | None = None
    site: str | None = None
    subject: str = ""
    """A further subject, for example a circuit."""
    grave: bool = False
    """The worst case of its kind: it is critical, irrespective of the kind's initial severity."""

    @property
    def severity(self) -> Severity:
        """The urgency of a remedy."""
        return Severity.CRITICAL if self.grave else SEVERITIES[self.kind]

    @property
    def key(self) -> str:
        """The same for the same problem, however its figures change."""
        return alarm_key(self.kind, self.feed, self.site, self.subject)


def alarm_key(kind: AlarmKind, feed: str | None, site: str | None, subject: str) -> str:
    """The same for the same problem, however its figures change."""
    return "/".join((kind.value, feed or "", site or "", subject))


@dataclass(frozen=True, slots=True)
class Alarm:
    """A condition from its first observation to its end."""

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
    """The time of the notice to receivers; None: a silence covers it, or no notice was sent yet."""
    end_told_at: datetime | None = None
    severity: Severity = Severity.WARNING
    """The worst severity so far."""


def worst_first(alarms: Iterable[Alarm]) -> list[Alarm]:
    """Sorts by severity, worst first, then newest first."""
    newest_first = sorted(alarms, key=lambda one: (one.since, one.number), reverse=True)
    return sorted(newest_first, key=lambda one: one.severity.rank)


@dataclass(frozen=True, slots=True)
class Silence:
    """Suppresses notices of alarms until a moment; None stands for all."""

    number: int
    until: datetime
    by: str
    reason: str = ""
    kind: AlarmKind | None = None
    feed: str | None = None
    site: str | None = None
    begins: datetime | None = None
    """None: it began when it was created."""
    alarm_key: str | None = None
    """The key of the only alarm that it covers, however often that begins and ends."""

    @property
    def is_window(self) -> bool:
        """True for a maintenance window: all alarms of one site."""
        return self.site is not None and self.kind is None and self.feed is None and self.alarm_key is None

    def holds(self, now: datetime) -> bool:
        """True if it has begun, and is not over."""
        return (self.begins is None or self.begins <= now) and now < self.until

    def covers(self, alarm: Alarm, now: datetime) -> bool:
        """True if it applies to this alarm, and holds."""
        return (
            self.holds(now)
            and self.alarm_key in (None, alarm.key)
            and all(
                wanted is None or wanted == found
                for wanted, found in ((self.kind, alarm.kind), (self.feed, alarm.feed), (self.site, alarm.site))
            )
        )


def silence_of(alarm: Alarm, silences: Iterable[Silence], now: datetime) -> Silence | None:
    """The silence that lasts longest, of those that cover an alarm."""
    return max((one for one in silences if one.covers(alarm, now)), key=lambda one: one.until, default=None)


@dataclass(frozen=True, slots=True)
class Receiver:
    """A receiver of notices, with a filter; empty stands for all."""

    name: str
    kind: ReceiverKind
    address: str = field(repr=False)
    """A URL, or an address for mail; it may hold a secret."""
    kinds: tuple[AlarmKind, ...] = ()
    feeds: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()
    severities: tuple[Severity, ...] = tuple(Severity)
    owner: str | None = None
    """The site whose administrator created it: it gets notices of that site only."""

    def wants(self, alarm: Alarm) -> bool:
        """True if it gets notices of this alarm."""
        return (
            self.owner in (None, alarm.site)
            and alarm.severity in self.severities
            and (not self.kinds or alarm.kind in self.kinds)
            and (not self.feeds or alarm.feed in self.feeds)
            and (not self.sites or alarm.site in self.sites)
        )


@dataclass(frozen=True, slots=True)
class Objective:
    """The objective for the latency of a feed at one site, in place of the feed's own."""

    feed: str
    site: str
    objective_ms: float
    quantile: float | None = None
    """The share of deliveries that has to meet it; None: from the settings."""
    minutes: float | None = None
    """The time over which it is judged; None: from the settings."""
