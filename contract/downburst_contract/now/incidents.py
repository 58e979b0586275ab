"""Incidents: what is wrong, who is affected, what to do next; and one sentence on all of it."""

from datetime import datetime
from enum import StrEnum

from downburst.domain.alarms import AlarmKind, Severity
from downburst_contract.alarms import Silence
from downburst_contract.base import Answer


class ActionKind(StrEnum):
    """A place to go or a thing to do; clients word it."""

    OPEN_SITE = "open-site"
    OPEN_FEED = "open-feed"
    OPEN_LATENCY = "open-latency"
    OPEN_CIRCUIT = "open-circuit"
    PROBE_PATH = "probe-path"
    PREVIEW_MOVE = "preview-move"
    """A preview of the feed by another transport to this site."""


class IncidentAction(Answer):
    """An action with its target; what it is not about is null."""

    kind: ActionKind
    site: str | None
    feed: str | None
    circuit: int | None


class Affected(Answer):
    """Sites and feeds that an incident affects."""

    sites: int
    feeds: int
    waiting_products: int | None
    """Products that wait at the hub for the site; null: not counted."""
    waiting_bytes: int | None
    lost_products: int | None
    """Products that left the hub's log before the site had them."""
    kept_until: datetime | None
    """When the first of the waiting products leaves the hub's log; null: none waits."""
    words: str | None


class Incident(Answer):
    """Something that is wrong now. Sentences begin with a capital letter, but for names."""

    severity: Severity
    kind: AlarmKind | None
    """Of the alarm that is raised for it if it lasts; null for an incident that raises none."""
    alarm: int | None
    """Its number, if one is open."""
    title: str
    since: datetime
    cause: str | None
    """Null: the title says all that is known."""
    feed: str | None
    site: str | None
    affected: Affected
    next: str | None
    actions: list[IncidentAction]
    """The first one is the most likely."""
    silence: Silence | None
    """The silence that covers it: until when, and by whom."""
    over: bool
    """True for an event of the last minutes that is not known to continue."""


class StatusCounts(Answer):
    """Incidents by severity, without the silenced ones; sites by their latency in the last 15 minutes."""

    critical: int
    warning: int
    information: int
    silenced: int
    sites: int
    """Sites with a subscription that have received something before."""
    within: int
    """Sites that receive all measured feeds within the objectives."""
    late: int
    down: int
    not_measured: int
    """Sites for which products arrived, and that reported no latency."""
    idle: int
    """Sites for which no products were known to be due."""


class StatusSentence(Answer):
    """The state of the hub in one sentence, the same on the page, in `downburst status` and here."""

    sentence: str
    detail: str | None
    """A second sentence, about the other sites."""
    counts: StatusCounts


class NowIncidents(Answer):
    """The state and its incidents: the worst first, causes before consequences, then the newest."""

    status: StatusSentence
    incidents: list[Incident]
    """At most 100; the counts include the others."""
