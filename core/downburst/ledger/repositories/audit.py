"""Audit of changes: the actor, the object and its earlier values; written in the transaction of the change."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from downburst.domain.access import Caller, Role, who_acts
from downburst.foundation.clock import Clock
from downburst.ledger.storage import limits
from downburst.ledger.tables.access import audit

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """One change; `before` and `after` hold the differences, or the whole of an added or removed object."""

    number: int
    at: datetime
    who: str
    role: str | None
    peer: str
    action: str
    kind: str
    subject: str
    before: Values | None
    after: Values | None


@dataclass(frozen=True, slots=True)
class Changes:
    """A selection of changes; None stands for all."""

    who: str | None = None
    kind: str | None = None
    subject: str | None = None
    begin: datetime | None = None
    end: datetime | None = None


class Audit:
    """The changes, newest first."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def record(self, kind: str, subject: object, action: str, *, before: object = None, after: object = None) -> None:
        """Records a change by the current actor; a change without a difference is not recorded.

        Refuses, and so undoes the change, if a site's user or a viewer has made too many within a day.
        """
        old, new = _plain_values(before), _plain_values(after)
        if old is not None and new is not None:
            differing = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
            if not differing:
                return
            old, new = ({name: it for name, it in values.items() if name in differing} for values in (old, new))
        caller = who_acts()
        self._check_limit(caller)
        row = {"at": self._clock.now(), "who": caller.name, "role": caller.role, "peer": caller.peer}
        row |= {"action": action, "kind": kind, "subject": str(subject), "before": old, "after": new}
        self._connection.execute(insert(audit), row)

    def _check_limit(self, caller: Caller) -> None:
        if caller.role in (Role.SITE, Role.VIEWER):
            of_late = audit.c.who == caller.name, audit.c.at > self._clock.now() - DAY
            limits.CHANGES_OF_TENANT.check(self._connection, audit, *of_late, holder=f"{caller.name!r}")

    def page(self, wanted: Changes, *, before: int | None = None, limit: int = 100) -> list[Change]:
        """The newest of the selected changes with a number below `before`."""
        query = select(audit).order_by(audit.c.number.desc()).limit(limit)
        for column, value in (
            (audit.c.who, wanted.who),
            (audit.c.kind, wanted.kind),
            (audit.c.subject, wanted.subject),
        ):
            if value is not None:
                query = query.where(column == value)
        if wanted.begin is not None:
            query = query.where(audit.c.at >= wanted.begin)
        if wanted.end is not None:
            query = query.where(audit.c.at < wanted.end)
        if before is not None:
            query = query.where(audit.c.number < before)
        return [Change(**row._mapping) for row in self._connection.execute(query)]

    def forget_before(self, instant: datetime) -> int:
        """Removes changes older than an instant; returns their number."""
        return self._connection.execute(delete(audit).where(audit.c.at < instant)).rowcount


def _plain_values(value: object) -> dict[str, Any] | None:
    """The fields of a value, without those excluded from its representation: secrets and their hashes."""
    if value is None:
        return None
    if is_dataclass(value):
        return {it.name: _plain(getattr(value, it.name)) for it in fields(value) if it.repr}
    if isinstance(value, Mapping):
        return {str(name): _plain(it) for name, it in value.items()}
    raise TypeError(f"{type(value).__name__} has no members to compare")


def _plain(value: object) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) or isinstance(value, Mapping):
        return _plain_values(value)
    if isinstance(value, tuple | list | set | frozenset):
        return [_plain(one) for one in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


DAY = timedelta(days=1)
