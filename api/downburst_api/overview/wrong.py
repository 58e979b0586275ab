"""What is wrong, in the order in which somebody should look at it: the worst first, causes before what follows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Self

from downburst.domain.alarms import SEVERITIES, Alarm, AlarmKind, Severity, Silence, alarm_key, silence_of
from downburst.domain.faults import Fault


@dataclass(frozen=True, slots=True)
class Wrong:
    """A fault, how soon somebody has to do something, and the alarm that is raised for it if it lasts."""

    fault: Fault
    severity: Severity
    kind: AlarmKind | None = None
    subject: str = ""
    of_hub: bool = False
    """The hub itself does not work: everything else may follow from that."""
    is_over: bool = False
    """It happened of late, and nothing says that it goes on."""

    @classmethod
    def of(cls, kind: AlarmKind, fault: Fault, *, severity: Severity | None = None, subject: str = "") -> Self:
        """As the kind is graded, unless said otherwise."""
        return cls(fault, severity or SEVERITIES[kind], kind, subject)

    @property
    def key(self) -> str | None:
        """Of its alarm."""
        return alarm_key(self.kind, self.fault.feed, self.fault.site, self.subject) if self.kind else None


def graded(found: Iterable[Wrong], alarms: Sequence[Alarm]) -> list[Wrong]:
    """As bad as the alarms that were raised for them."""
    raised = {alarm.key: alarm.severity for alarm in alarms}
    return [replace(one, severity=raised.get(one.key or "", one.severity)) for one in found]


def in_order(found: Sequence[Wrong]) -> list[Wrong]:
    """The worst first. Of these the hub's own, then what has its cause here, then what follows from another one.

    What is over comes behind what goes on; among equals the newest is first.
    """
    stand = {(one.kind, one.fault.feed, one.fault.site) for one in found if one.kind is not None}
    newest_first = sorted(found, key=lambda one: one.fault.at, reverse=True)
    return sorted(
        newest_first, key=lambda one: (one.severity.rank, one.is_over, not one.of_hub, _follows(one, stand))
    )


def out(wrong: Wrong, alarm: Alarm | None, silences: Iterable[Silence], now: datetime) -> dict[str, Any]:
    """For clients. A fault that is no alarm yet may be silenced already."""
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
"""By kind, others of the same feed or site that it follows from."""
SYMPTOMS = frozenset({AlarmKind.OBJECTIVE, AlarmKind.PREDICTION})
"""Latencies are late for a reason, which may be anywhere, and stay so for as long as they are looked back on."""
