"""Probes by number, with their seconds."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, insert, select, update

from downburst.domain.probes import ENDED, Probe, ProbeKind, ProbeRequest, ProbeState
from downburst.domain.probes.results import ProbeSecond, plain, second_of
from downburst.foundation.clock import Clock
from downburst.foundation.errors import NotFound
from downburst.ledger.repositories.audit import Audit
from downburst.ledger.repositories.probes.rows import probe_of, probe_row, request_row
from downburst.ledger.storage import limits
from downburst.ledger.tables.probes import probe_seconds, probes


@dataclass(frozen=True, slots=True)
class ProbeFilter:
    """The probes to list; None: any."""

    site: str | None = None
    kind: ProbeKind | None = None
    state: ProbeState | None = None
    since: datetime | None = None
    """Requested at this time or later."""


class Probes:
    """Probes; ended ones beyond the newest of a site are removed with their seconds."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._audit = Audit(connection, clock)

    def add(self, request: ProbeRequest, *, schedule: int | None = None) -> Probe:
        """Adds a waiting probe under a new number."""
        of_site = probes.c.site == request.site
        waits = probes.c.state.not_in([state.value for state in ENDED])
        limits.PROBES_OF_SITE.check(self._connection, probes, of_site, waits, holder=f"site {request.site!r}")
        limits.ENDED_PROBES_OF_SITE.make_room(
            self._connection, probes, of_site, ~waits, by=probes.c.id, holder=f"site {request.site!r}"
        )
        fresh = Probe(0, request, ProbeState.WAITING, self._clock.now(), schedule=schedule)
        values = request_row(request) | probe_row(fresh)
        values |= {"requested_at": fresh.requested_at, "schedule": schedule, "sent_bytes": 0}
        key = self._connection.execute(insert(probes).values(values)).inserted_primary_key
        kept = self.one(0 if key is None else int(key[0]))
        if schedule is None:
            self._audit.record("probe", kept.id, "added", after=request)
        return kept

    def one(self, number: int) -> Probe:
        """The probe; refuses an unknown number."""
        row = self._connection.execute(select(probes).where(probes.c.id == number)).one_or_none()
        if row is None:
            raise NotFound(f"there is no probe {number}; `downburst probe list` shows the newest")
        return probe_of(row)

    def newest(self, wanted: ProbeFilter, *, before: int | None = None, limit: int = 100) -> list[Probe]:
        """The newest probes with a number below `before`."""
        query = select(probes).order_by(probes.c.id.desc()).limit(limit)
        if before is not None:
            query = query.where(probes.c.id < before)
        if wanted.site is not None:
            query = query.where(probes.c.site == wanted.site)
        if wanted.kind is not None:
            query = query.where(probes.c.kind == wanted.kind.value)
        if wanted.state is not None:
            query = query.where(probes.c.state == wanted.state.value)
        if wanted.since is not None:
            query = query.where(probes.c.requested_at >= wanted.since)
        return [probe_of(row) for row in self._connection.execute(query)]

    def unfinished(self) -> list[Probe]:
        """Those that wait or run, oldest first."""
        states = [ProbeState.WAITING.value, ProbeState.RUNNING.value]
        query = select(probes).where(probes.c.state.in_(states)).order_by(probes.c.id)
        return [probe_of(row) for row in self._connection.execute(query)]

    def last_knees(self, since: datetime) -> list[Probe]:
        """Of each site and direction the newest conclusive sweep that ended at `since` or later, by site.

        A newer one without a limit of the path hides none. Sweeps from a relay are left out: they measured a part of
        the path.
        """
        kind, whole = probes.c.kind == ProbeKind.KNEE.value, probes.c.relay.is_(None)
        done = kind, whole, probes.c.state == ProbeState.DONE.value, probes.c.conclusive
        newest = (
            select(func.max(probes.c.id))
            .where(*done, probes.c.ended_at >= since)
            .group_by(probes.c.site, probes.c.direction)
        )
        query = select(probes).where(probes.c.id.in_(newest)).order_by(probes.c.site, probes.c.direction)
        return [probe_of(row) for row in self._connection.execute(query)]

    def save(self, probe: Probe, *, sent_bytes: int = 0) -> None:
        """Stores the present state of a probe, and adds to the bytes that it has used of its site's ceiling."""
        values = probe_row(probe) | {"sent_bytes": probes.c.sent_bytes + sent_bytes}
        # Set by the api while the probe runs.
        del values["stop_by"]
        self._connection.execute(update(probes).where(probes.c.id == probe.id).values(values))

    def ask_to_stop(self, number: int, by: str) -> Probe:
        """Records that somebody asked for its end; no news for one that has ended."""
        before = self.one(number)
        if not before.ended and not before.stop_by:
            self._connection.execute(update(probes).where(probes.c.id == number).values(stop_by=by))
            self._audit.record("probe", number, "stopped", before=before, after=self.one(number))
        return self.one(number)

    def used_bytes(self, site: str, since: datetime) -> int:
        """The bytes of frames that probes of a site, started at `since` or later, sent or will send."""
        query = select(func.sum(probes.c.sent_bytes)).where(probes.c.site == site, probes.c.started_at >= since)
        return int(self._connection.scalar(query) or 0)

    def add_seconds(self, number: int, seconds: Iterable[ProbeSecond]) -> None:
        """Stores seconds, a row for each minute; those of a minute that is stored already are added to it."""
        by_minute: dict[int, list[ProbeSecond]] = {}
        for one in seconds:
            by_minute.setdefault(one.second // 60, []).append(one)
        for minute, added in by_minute.items():
            place = probe_seconds.c.probe == number, probe_seconds.c.minute == minute
            before = self._connection.scalar(select(probe_seconds.c.seconds).where(*place))
            rows = [*(before or ()), *map(plain, added)]
            values = {"probe": number, "minute": minute, "seconds": rows[:MOST_OF_MINUTE]}
            query = insert(probe_seconds) if before is None else update(probe_seconds).where(*place)
            self._connection.execute(query.values(values))

    def last_minute(self, number: int) -> list[ProbeSecond]:
        """The last minute with stored seconds."""
        query = select(probe_seconds.c.seconds).where(probe_seconds.c.probe == number)
        rows = self._connection.scalar(query.order_by(probe_seconds.c.minute.desc()).limit(1))
        return [second_of(one) for one in rows or ()]

    def seconds(self, number: int, *, first: int = 0, limit: int = 3_600) -> list[ProbeSecond]:
        """The stored seconds of a probe from one on, in order."""
        query = (
            select(probe_seconds.c.seconds)
            .where(probe_seconds.c.probe == number, probe_seconds.c.minute >= first // 60)
            .order_by(probe_seconds.c.minute)
            .limit(limit // 60 + 2)
        )
        found = [second_of(one) for row in self._connection.scalars(query) for one in row]
        return [one for one in sorted(found, key=lambda one: one.second) if one.second >= first][:limit]


MOST_OF_MINUTE = 60
