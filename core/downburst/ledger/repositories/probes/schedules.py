"""Schedules and ceilings of probes."""

from datetime import datetime

from sqlalchemy import Connection, delete, insert, select, update

from downburst.domain.probes import ProbeSchedule
from downburst.domain.probes.ceilings import ProbeCeiling
from downburst.foundation.clock import Clock
from downburst.foundation.errors import NotFound
from downburst.ledger.repositories.audit import Audit
from downburst.ledger.repositories.probes.rows import ceiling_of, ceiling_row, request_row, schedule_of
from downburst.ledger.storage import limits
from downburst.ledger.tables.probes import probe_ceilings, probe_schedules


class ProbeSchedules:
    """Schedules by number."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._audit = Audit(connection, clock)

    def all(self, *, site: str | None = None) -> list[ProbeSchedule]:
        """The schedules, of all sites or one, by number."""
        query = select(probe_schedules).order_by(probe_schedules.c.id)
        if site is not None:
            query = query.where(probe_schedules.c.site == site)
        return [schedule_of(row) for row in self._connection.execute(query)]

    def one(self, number: int) -> ProbeSchedule:
        """The schedule; refuses an unknown number."""
        row = self._connection.execute(select(probe_schedules).where(probe_schedules.c.id == number)).one_or_none()
        if row is None:
            raise NotFound(f"there is no schedule {number} of probes; `downburst probe schedule list` shows all")
        return schedule_of(row)

    def add(self, wanted: ProbeSchedule) -> ProbeSchedule:
        """Adds a schedule under a new number; its own id is ignored."""
        limits.PROBE_SCHEDULES_OF_SITE.check(
            self._connection,
            probe_schedules,
            probe_schedules.c.site == wanted.request.site,
            holder=f"site {wanted.request.site!r}",
        )
        values = request_row(wanted.request) | {
            "every_h": wanted.every_h,
            "first_hour": wanted.first_hour,
            "end_hour": wanted.end_hour,
            "next_at": wanted.next_at,
            "created_at": self._clock.now(),
        }
        key = self._connection.execute(insert(probe_schedules).values(values)).inserted_primary_key
        kept = self.one(0 if key is None else int(key[0]))
        self._audit.record("probe schedule", kept.id, "added", after=kept)
        return kept

    def due_again(self, number: int, next_at: datetime) -> None:
        """Sets the time of the next probe."""
        change = update(probe_schedules).where(probe_schedules.c.id == number)
        self._connection.execute(change.values(next_at=next_at))

    def remove(self, number: int) -> None:
        """Removes a schedule; its probes stay."""
        before = self.one(number)
        self._connection.execute(delete(probe_schedules).where(probe_schedules.c.id == number))
        self._audit.record("probe schedule", number, "removed", before=before)


class ProbeCeilings:
    """Ceilings by site and side."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._audit = Audit(connection, clock)

    def of(self, site: str) -> list[ProbeCeiling]:
        """The ceilings of a site: of its administrator, of the operator, both or none."""
        query = select(probe_ceilings).where(probe_ceilings.c.site == site).order_by(probe_ceilings.c.side)
        return [ceiling_of(row) for row in self._connection.execute(query)]

    def put(self, wanted: ProbeCeiling) -> ProbeCeiling:
        """Sets one side's ceiling; one without any value is removed."""
        before = next((one for one in self.of(wanted.site) if one.side is wanted.side), None)
        this = probe_ceilings.c.site == wanted.site, probe_ceilings.c.side == wanted.side.value
        self._connection.execute(delete(probe_ceilings).where(*this))
        if wanted.rate_bps is None and wanted.bytes_per_day is None:
            if before is not None:
                self._audit.record("probe ceiling", f"{wanted.site} {wanted.side}", "removed", before=before)
            return ProbeCeiling(wanted.site, wanted.side)
        kept = ProbeCeiling(
            wanted.site, wanted.side, wanted.rate_bps, wanted.bytes_per_day, wanted.set_by, self._clock.now()
        )
        self._connection.execute(insert(probe_ceilings).values(ceiling_row(kept)))
        self._audit.record("probe ceiling", f"{wanted.site} {wanted.side}", "changed", before=before, after=kept)
        return kept
