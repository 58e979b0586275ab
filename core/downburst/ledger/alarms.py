"""Alarms, silences and receivers in the ledger."""

from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, or_, select, update

from downburst.alarm_tables import alarm_receivers, alarms, silences
from downburst.alarms import Alarm, AlarmKind, Condition, Receiver, ReceiverKind, Silence
from downburst.clock import Clock
from downburst.errors import AlreadyThere, NotFound
from downburst.ledger.audit import Audit


class Alarms:
    """Alarms by number; ended ones beyond the newest ten thousand are forgotten."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def open(self) -> list[Alarm]:
        """Those whose condition has not ended, oldest first."""
        query = select(alarms).where(alarms.c.ended_at.is_(None)).order_by(alarms.c.number)
        return [_alarm(row) for row in self._connection.execute(query)]

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
        row = asdict(condition) | {"key": condition.key, "since": self._clock.now()}
        key = self._connection.execute(insert(alarms).values(row)).inserted_primary_key
        number = 0 if key is None else int(key[0])
        old = alarms.c.ended_at.is_not(None) & (alarms.c.number <= number - ENDED_KEPT)
        self._connection.execute(delete(alarms).where(old))
        return number

    def update(self, number: int, condition: Condition) -> None:
        """Keeps the figures of an alarm as they are now."""
        change = update(alarms).where(alarms.c.number == number)
        self._connection.execute(change.values(sentence=condition.sentence, next_step=condition.next_step))

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
        """Those that are not over, the one that ends first first."""
        query = select(silences).where(silences.c.until > self._clock.now()).order_by(silences.c.until)
        return [_silence(row) for row in self._connection.execute(query)]

    def add(self, silence: Silence) -> Silence:
        """Keeps a silence under a number of its own."""
        row = asdict(silence)
        del row["number"]
        key = self._connection.execute(insert(silences).values(row)).inserted_primary_key
        number = 0 if key is None else int(key[0])
        self._audit.record("silence", number, "added", after=row)
        return Silence(number, **row)

    def end(self, number: int) -> None:
        """Ends a silence before its time."""
        row = self._connection.execute(select(silences).where(silences.c.number == number)).one_or_none()
        if row is None:
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
            raise AlreadyThere(f"there is a receiver {receiver.name!r} already; remove it first")
        row = asdict(receiver) | {name: list(getattr(receiver, name)) for name in ("kinds", "feeds", "sites")}
        self._connection.execute(insert(alarm_receivers).values(row))
        self._audit.record("receiver", receiver.name, "added", after=receiver)
        return receiver

    def remove(self, name: str) -> None:
        """Forgets a receiver."""
        before = self.one(name)
        self._connection.execute(delete(alarm_receivers).where(alarm_receivers.c.name == name))
        self._audit.record("receiver", name, "removed", before=before)


def _alarm(row: Row[Any]) -> Alarm:
    return Alarm(**_values(row) | {"kind": AlarmKind(row.kind)})


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
    )


def _values(row: Row[Any]) -> dict[str, Any]:
    return dict(row._mapping)


ENDED_KEPT = 10_000
