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
    """Alarms by number; ended ones beyond the newest ten thousand are forgotten."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def open(self) -> list[Alarm]:
        """Those whose condition has not ended, the worst first, of those the newest."""
        query = select(alarms).where(alarms.c.ended_at.is_(None))
        return worst_first(_alarm(row) for row in self._connection.execute(query))

    def keys_begun(self, kind: AlarmKind, *, since: datetime) -> set[str]:
        """Of alarms of a kind that began since then, ended ones too."""
        query = select(alarms.c.key).where(alarms.c.kind == kind, alarms.c.since >= since)
        return set(self._connection.scalars(query))

    def find_open(self, number: int) -> Alarm:
        """The alarm; one that is over or that nobody raised is not there."""
        for alarm in self.open():
            if alarm.number == number:
                return alarm
        raise NotFound(f"no open alarm {number}; `downburst alarms list` shows open ones")

    def to_tell(self) -> list[Alarm]:
        """Those of which receivers were not told, and those of whose end they were not."""
        begun = alarms.c.ended_at.is_(None) & alarms.c.told_at.is_(None)
        ended = alarms.c.ended_at.is_not(None) & alarms.c.told_at.is_not(None) & alarms.c.end_told_at.is_(None)
        query = select(alarms).where(or_(begun, ended)).order_by(alarms.c.number)
        return [_alarm(row) for row in self._connection.execute(query)]

    def newest(self, *, before: int | None = None, limit: int = 100) -> list[Alarm]:
        """The newest, ended ones too."""
        query = select(alarms).order_by(alarms.c.number.desc()).limit(limit)
        if before is not None:
            query = query.where(alarms.c.number < before)
        return [_alarm(row) for row in self._connection.execute(query)]

    def raise_(self, condition: Condition) -> int:
        """Begins an alarm; its number."""
        row = asdict(condition) | {"key": condition.key, "since": self._clock.now(), "severity": condition.severity}
        del row["grave"]
        key = self._connection.execute(insert(alarms).values(row)).inserted_primary_key
        number = 0 if key is None else int(key[0])
        old = alarms.c.ended_at.is_not(None) & (alarms.c.number <= number - ENDED_KEPT)
        self._connection.execute(delete(alarms).where(old))
        return number

    def update(self, alarm: Alarm, condition: Condition) -> None:
        """Keeps the figures of an alarm as they are now. One that gets worse is told again."""
        values: dict[str, Any] = {"sentence": condition.sentence, "next_step": condition.next_step}
        if condition.severity.rank < alarm.severity.rank:
            values |= {"severity": condition.severity, "told_at": None}
        self._connection.execute(update(alarms).where(alarms.c.number == alarm.number).values(values))

    def end(self, numbers: Iterable[int], at: datetime) -> None:
        """Ends alarms."""
        self._connection.execute(update(alarms).where(alarms.c.number.in_(list(numbers))).values(ended_at=at))

    def told(self, alarm: Alarm) -> None:
        """Notes that receivers were told of its beginning, or of its end."""
        name = "told_at" if alarm.ended_at is None else "end_told_at"
        change = update(alarms).where(alarms.c.number == alarm.number)
        self._connection.execute(change.values({name: self._clock.now()}))


class Silences:
    """What nobody is told of for a while."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._audit = Audit(connection, clock)

    def current(self) -> list[Silence]:
        """Those that are not over, the one that ends first first; some may not have begun."""
        query = select(silences).where(silences.c.until > self._clock.now()).order_by(silences.c.until)
        return [_silence(row) for row in self._connection.execute(query)]

    def add(self, silence: Silence) -> Silence:
        """Keeps a silence under a number of its own; those that are over are forgotten."""
        self._connection.execute(delete(silences).where(silences.c.until <= self._clock.now()))
        self._check_limits(silence)
        row = asdict(silence)
        del row["number"]
        key = self._connection.execute(insert(silences).values(row)).inserted_primary_key
        number = 0 if key is None else int(key[0])
        self._audit.record("silence", number, "added", after=row)
        return Silence(number, **row)

    def of_site(self, site: str) -> list[Silence]:
        """Those of a site that are not over, those ahead among them."""
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
        """Ends a silence before its time; one of another site than the given one is not there."""
        row = self._connection.execute(select(silences).where(silences.c.number == number)).one_or_none()
        if row is None or site not in (None, row.site):
            raise NotFound(f"there is no silence {number}; `downburst alarms silences` shows all")
        self._connection.execute(delete(silences).where(silences.c.number == number))
        self._audit.record("silence", number, "removed", before=_silence(row))


class Receivers:
    """Whom to tell, by name."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._audit = Audit(connection, clock)

    def all(self) -> list[Receiver]:
        """Every receiver, by name."""
        query = select(alarm_receivers).order_by(alarm_receivers.c.name)
        return [_receiver(row) for row in self._connection.execute(query)]

    def one(self, name: str) -> Receiver:
        """The receiver; a name nobody gave is refused."""
        for receiver in self.all():
            if receiver.name == name:
                return receiver
        raise NotFound(f"there is no receiver {name!r}; `downburst alarms receivers` shows all")

    def add(self, receiver: Receiver) -> Receiver:
        """Keeps a receiver under a name that is free."""
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
        """Forgets a receiver."""
        before = self.one(name)
        self._connection.execute(delete(alarm_receivers).where(alarm_receivers.c.name == name))
        self._audit.record("receiver", name, "removed", before=before)


class SiteReceivers:
    """Whom the administrators of sites want told of their own site."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._audit = Audit(connection, clock)

    def all(self) -> list[Receiver]:
        """Every one, by site and name."""
        query = select(site_receivers).order_by(site_receivers.c.site, site_receivers.c.name)
        return [_site_receiver(row) for row in self._connection.execute(query)]

    def of(self, site: str) -> list[Receiver]:
        """Those of a site, by name."""
        return [receiver for receiver in self.all() if receiver.owner == site]

    def one(self, site: str, name: str) -> Receiver:
        """The receiver; a name that the site did not give is refused."""
        for receiver in self.of(site):
            if receiver.name == name:
                return receiver
        raise NotFound(f"site {site!r} has no receiver {name!r}; GET /v1/sites/{site}/alarm-receivers shows all")

    def add(self, receiver: Receiver) -> Receiver:
        """Keeps a receiver under a name that is free at its site."""
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
        """Forgets a receiver."""
        before = self.one(site, name)
        found = (site_receivers.c.site == site) & (site_receivers.c.name == name)
        self._connection.execute(delete(site_receivers).where(found))
        self._audit.record("receiver", f"{name} of {site}", "removed", before=before)


class Objectives:
    """What latencies of a feed at single sites have to meet."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._audit = Audit(connection, clock)

    def all(self) -> list[Objective]:
        """Every one, by feed and site."""
        query = select(objectives).order_by(objectives.c.feed, objectives.c.site)
        return [Objective(**_values(row)) for row in self._connection.execute(query)]

    def find(self, feed: str, site: str) -> Objective | None:
        """That of a feed at a site, if there is one."""
        return next((one for one in self.all() if (one.feed, one.site) == (feed, site)), None)

    def put(self, objective: Objective) -> Objective:
        """Keeps it in place of what was there."""
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
        """The feed's own objective holds again."""
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
