"""Faults in order of priority: the worst first, causes before their consequences."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Self

from downburst.domain.alarms import SEVERITIES, Alarm, AlarmKind, Severity, Silence, alarm_key, silence_of
from downburst.domain.faults import Fault


@dataclass(frozen=True, slots=True)
class Wrong:
    """A fault, its urgency, and the alarm that is raised for it if it lasts."""

    fault: Fault
    severity: Severity
    kind: AlarmKind | None = None
    subject: str = ""
    of_hub: bool = False
    """The hub itself does not work: all other faults may follow from that."""
    is_over: bool = False
    """A past event, with no sign that it continues."""

    @classmethod
    def of(cls, kind: AlarmKind, fault: Fault, *, severity: Severity | None = None, subject: str = "") -> Self:
        """A fault with its kind's severity, unless another is given."""
        return cls(fault, severity or SEVERITIES[kind], kind, subject)

    @property
    def key(self) -> str | None:
        """The key of its alarm."""
        return alarm_key(self.kind, self.fault.feed, self.fault.site, self.subject) if self.kind else None


def graded(found: Iterable[Wrong], alarms: Sequence[Alarm]) -> list[Wrong]:
    """Faults, with the severity of the alarms raised for them."""
    raised = {alarm.key: alarm.severity for alarm in alarms}
    return [replace(one, severity=raised.get(one.key or "", one.severity)) for one in found]


def in_order(found: Sequence[Wrong]) -> list[Wrong]:
    """Sorts by priority: the hub's own, then faults with a cause here, then those that follow from another.

    Past faults come after present ones; among equals the newest is first.
    """
    stand = {(one.kind, one.fault.feed, one.fault.site) for one in found if one.kind is not None}
    newest_first = sorted(found, key=lambda one: one.fault.at, reverse=True)
    return sorted(
        newest_first, key=lambda one: (one.severity.rank, one.is_over, not one.of_hub, _follows(one, stand))
    )


def out(wrong: Wrong, alarm: Alarm | None, silences: Iterable[Silence], now: datetime) -> dict[str, Any]:
    """For clients. A fault may be silenced before it is an alarm."""
    fault = wrong.fault
    expected = alarm
    if alarm is None and wrong.kind is not None:
        about = (fault.feed, fault.site, wrong.subject)
        expected = Alarm(0, wrong.key or "", wrong.kind, *about, fault.sentence, fault.next_step, fault.at)
    return {
        "at": fault.at,
        "severity": wrong.severity.value,
        "kind": wrong.kind,
        "alarm": alarm.number if alarm else None,
        "sentence": fault.sentence,
        "feed": fault.feed,
        "site": fault.site,
        "next": fault.next_step,
        "silence": silence_of(expected, silences, now) if expected else None,
    }


def _follows(one: Wrong, stand: set[tuple[AlarmKind, str | None, str | None]]) -> bool:
    if one.kind in SYMPTOMS:
        return True
    feed, site = one.fault.feed, one.fault.site
    places = {(feed, site), (None, site), (feed, None)} - {(None, None)}
    causes = CAUSES.get(one.kind, ()) if one.kind else ()
    return any((cause, *place) in stand for cause in causes for place in places)


_AT_THE_SITE = (
    AlarmKind.SITE_DOWN,
    AlarmKind.SITE_DISK,
    AlarmKind.CIRCUIT,
    AlarmKind.GROUP_LOSS,
    AlarmKind.DAMAGED_DATA,
)
CAUSES: Mapping[AlarmKind, Sequence[AlarmKind]] = {
    AlarmKind.SITE_DOWN: (AlarmKind.CREDENTIAL, AlarmKind.CIRCUIT),
    AlarmKind.STALLED: _AT_THE_SITE,
    AlarmKind.HEARTBEAT: _AT_THE_SITE,
}
"""By kind, other kinds of the same feed or site that cause it."""
SYMPTOMS = frozenset({AlarmKind.OBJECTIVE, AlarmKind.PREDICTION})
"""Late latencies may have any cause, and last for the whole period that is looked back on."""
