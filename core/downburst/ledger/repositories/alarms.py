"""Alarms, silences and receivers in the ledger."""

from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, delete, insert, or_, select, update

from downburst.domain.alarms import (
    Alarm,
    AlarmKind,
    Condition,
    Objective,
    Receiver,
    ReceiverKind,
    Severity,
    Silence,
    worst_first,
)
from downburst.foundation.clock import Clock
from downburst.foundation.errors import AlreadyThere, NotFound
from downburst.ledger.repositories.audit import Audit
from downburst.ledger.storage import limits
from downburst.ledger.tables.alarms import alarm_receivers, alarms, objectives, silences, site_receivers


class Alarms:
    """Alarms by number; ended ones beyond the newest ten thousand are removed."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def open(self) -> list[Alarm]:
        """The open alarms, the worst first, then the newest."""
        query = select(alarms).where(alarms.c.ended_at.is_(None))
        return worst_first(_alarm(row) for row in self._connection.execute(query))

    def keys_begun(self, kind: AlarmKind, *, since: datetime) -> set[str]:
        """The keys of the alarms of a kind that began since then, including ended ones."""
        query = select(alarms.c.key).where(alarms.c.kind == kind, alarms.c.since >= since)
        return set(self._connection.scalars(query))

    def lasting(self, kind: AlarmKind, *, since: datetime) -> list[Alarm]:
        """The alarms of a kind that held at any time since then, oldest first."""
        query = select(alarms).where(
            alarms.c.kind == kind, or_(alarms.c.ended_at.is_(None), alarms.c.ended_at > since)
        )
        return [_alarm(row) for row in self._connection.execute(query.order_by(alarms.c.number))]

    def find_open(self, number: int) -> Alarm:
        """The open alarm; refuses a number that is unknown or of an ended alarm."""
        for alarm in self.open():
            if alarm.number == number:
                return alarm
        raise NotFound(f"no open alarm {number}; `downburst alarms list` shows open ones")

    def to_tell(self) -> list[Alarm]:
        """The alarms with a beginning or an end that was not yet reported to receivers."""
        begun = alarms.c.ended_at.is_(None) & alarms.c.told_at.is_(None)
        ended = alarms.c.ended_at.is_not(None) & alarms.c.told_at.is_not(None) & alarms.c.end_told_at.is_(None)
        query = select(alarms).where(or_(begun, ended)).order_by(alarms.c.number)
        return [_alarm(row) for row in self._connection.execute(query)]

    def newest(self, *, before: int | None = None, limit: int = 100) -> list[Alarm]:
        """The newest alarms, including ended ones."""
        query = select(alarms).order_by(alarms.c.number.desc()).limit(limit)
        if before is not None:
            query = query.where(alarms.c.number < before)
        return [_alarm(row) for row in self._connection.execute(query)]

    def raise_(self, condition: Condition) -> int:
        """Begins an alarm; returns its number."""
        row = asdict(condition) | {"key": condition.key, "since": self._clock.now(), "severity": condition.severity}
        del row["grave"]
        key = self._connection.execute(insert(alarms).values(row)).inserted_primary_key
        number = 0 if key is None else int(key[0])
        old = alarms.c.ended_at.is_not(None) & (alarms.c.number <= number - ENDED_KEPT)
        self._connection.execute(delete(alarms).where(old))
        return number

    def update(self, alarm: Alarm, condition: Condition) -> None:
        """Updates the figures of an alarm. One that gets worse is reported again."""
        values: dict[str, Any] = {"sentence": condition.sentence, "next_step": condition.next_step}
        if condition.severity.rank < alarm.severity.rank:
            values |= {"severity": condition.severity, "told_at": None}
        self._connection.execute(update(alarms).where(alarms.c.number == alarm.number).values(values))

    def end(self, numbers: Iterable[int], at: datetime) -> None:
        """Ends alarms."""
        self._connection.execute(update(alarms).where(alarms.c.number.in_(list(numbers))).values(ended_at=at))

    def told(self, alarm: Alarm) -> None:
        """Notes that its beginning, or its end, was reported to receivers."""
        name = "told_at" if alarm.ended_at is None else "end_told_at"
        change = update(alarms).where(alarms.c.number == alarm.number)
        self._connection.execute(change.values({name: self._clock.now()}))


class Silences:
    """Silences: conditions without notices for a time."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._audit = Audit(connection, clock)

    def current(self) -> list[Silence]:
        """The silences that are not over, by their end; some may not have begun."""
        query = select(silences).where(silences.c.until > self._clock.now()).order_by(silences.c.until)
        return [_silence(row) for row in self._connection.execute(query)]

    def add(self, silence: Silence) -> Silence:
        """Adds a silence under a new number; removes those that are over."""
        self._connection.execute(delete(silences).where(silences.c.until <= self._clock.now()))
        self._check_limits(silence)
        row = asdict(silence)
        del row["number"]
        key = self._connection.execute(insert(silences).values(row)).inserted_primary_key
        number = 0 if key is None else int(key[0])
        self._audit.record("silence", number, "added", after=row)
        return Silence(number, **row)

    def of_site(self, site: str) -> list[Silence]:
        """The silences of a site that are not over, including future ones."""
        return [silence for silence in self.current() if silence.site == site]

    def _check_limits(self, silence: Silence) -> None:
        if silence.is_window:
            window = silences.c.kind.is_(None), silences.c.feed.is_(None), silences.c.alarm_key.is_(None)
            limits.WINDOWS_OF_SITE.check(
                self._connection,
                silences,
                silences.c.site == silence.site,
                *window,
                holder=f"site {silence.site!r}",
            )
        of_maker = silences.c.by == silence.by
        limits.SILENCES_OF_MAKER.check(self._connection, silences, of_maker, holder=f"{silence.by!r}")
        limits.SILENCES.check(self._connection, silences, holder="this hub")

    def end(self, number: int, *, site: str | None = None) -> None:
        """Ends a silence early; one of another site than the given one counts as unknown."""
        row = self._connection.execute(select(silences).where(silences.c.number == number)).one_or_none()
        if row is None or site not in (None, row.site):
            raise NotFound(f"there is no silence {number}; `downburst alarms silences` shows all")
        self._connection.execute(delete(silences).where(silences.c.number == number))
        self._audit.record("silence", number, "removed", before=_silence(row))


class Receivers:
    """Receivers of alarms, by name."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._audit = Audit(connection, clock)

    def all(self) -> list[Receiver]:
        """Every receiver, by name."""
        query = select(alarm_receivers).order_by(alarm_receivers.c.name)
        return [_receiver(row) for row in self._connection.execute(query)]

    def one(self, name: str) -> Receiver:
        """The receiver; refuses an unknown name."""
        for receiver in self.all():
            if receiver.name == name:
                return receiver
        raise NotFound(f"there is no receiver {name!r}; `downburst alarms receivers` shows all")

    def add(self, receiver: Receiver) -> Receiver:
        """Adds a receiver; refuses a name that is taken."""
        if any(known.name == receiver.name for known in self.all()):
            raise AlreadyThere(f"receiver {receiver.name!r} already exists; remove it first")
        limits.RECEIVERS.check(self._connection, alarm_receivers, holder="this hub")
        lists = ("kinds", "feeds", "sites", "severities")
        row = asdict(receiver) | {name: list(getattr(receiver, name)) for name in lists}
        del row["owner"]
        self._connection.execute(insert(alarm_receivers).values(row))
        self._audit.record("receiver", receiver.name, "added", after=receiver)
        return receiver

    def remove(self, name: str) -> None:
        """Removes a receiver."""
        before = self.one(name)
        self._connection.execute(delete(alarm_receivers).where(alarm_receivers.c.name == name))
        self._audit.record("receiver", name, "removed", before=before)


class SiteReceivers:
    """Receivers that the administrators of sites want for alarms of their own site."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._audit = Audit(connection, clock)

    def all(self) -> list[Receiver]:
        """All of them, by site and name."""
        query = select(site_receivers).order_by(site_receivers.c.site, site_receivers.c.name)
        return [_site_receiver(row) for row in self._connection.execute(query)]

    def of(self, site: str) -> list[Receiver]:
        """Those of a site, by name."""
        return [receiver for receiver in self.all() if receiver.owner == site]

    def one(self, site: str, name: str) -> Receiver:
        """The receiver; refuses a name that is unknown at the site."""
        for receiver in self.of(site):
            if receiver.name == name:
                return receiver
        raise NotFound(f"site {site!r} has no receiver {name!r}; GET /v1/sites/{site}/alarm-receivers shows all")

    def add(self, receiver: Receiver) -> Receiver:
        """Adds a receiver; refuses a name that is taken at its site."""
        known = self.of(receiver.owner or "")
        if any(one.name == receiver.name for one in known):
            raise AlreadyThere(f"receiver {receiver.name!r} already exists; remove it first")
        limits.RECEIVERS_OF_SITE.check(
            self._connection,
            site_receivers,
            site_receivers.c.site == receiver.owner,
            holder=f"site {receiver.owner!r}",
        )
        row = asdict(receiver) | {
            "site": receiver.owner,
            "kinds": list(receiver.kinds),
            "feeds": list(receiver.feeds),
            "severities": list(receiver.severities),
        }
        del row["owner"], row["sites"]
        self._connection.execute(insert(site_receivers).values(row))
        self._audit.record("receiver", f"{receiver.name} of {receiver.owner}", "added", after=receiver)
        return receiver

    def remove(self, site: str, name: str) -> None:
        """Removes a receiver."""
        before = self.one(site, name)
        found = (site_receivers.c.site == site) & (site_receivers.c.name == name)
        self._connection.execute(delete(site_receivers).where(found))
        self._audit.record("receiver", f"{name} of {site}", "removed", before=before)


class Objectives:
    """Objectives for the latency of a feed at single sites."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._audit = Audit(connection, clock)

    def all(self) -> list[Objective]:
        """All of them, by feed and site."""
        query = select(objectives).order_by(objectives.c.feed, objectives.c.site)
        return [Objective(**_values(row)) for row in self._connection.execute(query)]

    def find(self, feed: str, site: str) -> Objective | None:
        """The objective of a feed at a site, if there is one."""
        return next((one for one in self.all() if (one.feed, one.site) == (feed, site)), None)

    def put(self, objective: Objective) -> Objective:
        """Sets an objective; replaces an earlier one."""
        before = self.find(objective.feed, objective.site)
        if before is not None:
            self._connection.execute(delete(objectives).where(self._of(objective.feed, objective.site)))
        self._connection.execute(insert(objectives).values(asdict(objective)))
        action = "added" if before is None else "changed"
        self._audit.record(
            "objective", f"{objective.feed} at {objective.site}", action, before=before, after=objective
        )
        return objective

    def remove(self, feed: str, site: str) -> None:
        """Removes it; the feed's own objective applies again."""
        before = self.find(feed, site)
        if before is None:
            raise NotFound(f"there is no objective of {feed} at {site}; `GET /v1/objectives` shows all")
        self._connection.execute(delete(objectives).where(self._of(feed, site)))
        self._audit.record("objective", f"{feed} at {site}", "removed", before=before)

    def _of(self, feed: str, site: str) -> ColumnElement[bool]:
        return (objectives.c.feed == feed) & (objectives.c.site == site)


def _alarm(row: Row[Any]) -> Alarm:
    return Alarm(**_values(row) | {"kind": AlarmKind(row.kind), "severity": Severity(row.severity)})


def _silence(row: Row[Any]) -> Silence:
    return Silence(**_values(row) | {"kind": None if row.kind is None else AlarmKind(row.kind)})


def _receiver(row: Row[Any]) -> Receiver:
    return Receiver(
        row.name,
        ReceiverKind(row.kind),
        row.address,
        tuple(AlarmKind(kind) for kind in row.kinds),
        tuple(row.feeds),
        tuple(row.sites),
        tuple(Severity(severity) for severity in row.severities),
    )


def _site_receiver(row: Row[Any]) -> Receiver:
    kinds = tuple(AlarmKind(kind) for kind in row.kinds)
    severities = tuple(Severity(severity) for severity in row.severities)
    way = ReceiverKind(row.kind)
    return Receiver(row.name, way, row.address, kinds, tuple(row.feeds), severities=severities, owner=row.site)


def _values(row: Row[Any]) -> dict[str, Any]:
    return dict(row._mapping)


ENDED_KEPT = 10_000
