"""Times in which brokers may have dropped notifications."""

from datetime import datetime

from sqlalchemy import Connection, insert, select, update

from downburst.domain.bridges import Hole
from downburst.foundation.clock import Clock
from downburst.ledger.storage import limits
from downburst.ledger.tables.bridges import wis2_holes


class Holes:
    """Holes of sources; the newest are kept."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def add(self, hole: Hole, *, filled_by: str | None = None) -> None:
        """Records a hole; `filled_by`: another broker, which has brought all of it."""
        of_source = wis2_holes.c.source == hole.source
        limits.WIS2_HOLES_OF_SOURCE.make_room(
            self._connection, wis2_holes, of_source, by=wis2_holes.c.number, holder=hole.source
        )
        values = {"source": hole.source, "broker": hole.broker, "from_at": hole.from_at, "to_at": hole.to_at}
        values |= {"reason": hole.reason, "filled_at": self._clock.now() if filled_by else None}
        values |= {"filled_by": filled_by, "fault": hole.fault}
        self._connection.execute(insert(wis2_holes).values(values))

    def of(self, source: str, *, open_only: bool = False, limit: int = 1_000) -> list[Hole]:
        """The holes of a source, the newest first."""
        query = select(wis2_holes).where(wis2_holes.c.source == source)
        query = query.where(wis2_holes.c.filled_at.is_(None)) if open_only else query
        query = query.order_by(wis2_holes.c.number.desc()).limit(limit)
        return [Hole(**row._mapping) for row in self._connection.execute(query)]

    def filled(self, number: int, by: str, at: datetime | None = None) -> None:
        """Records that another broker, or a replay, has brought all of a hole."""
        is_it = wis2_holes.c.number == number
        values = {"filled_at": at or self._clock.now(), "filled_by": by, "fault": ""}
        self._connection.execute(update(wis2_holes).where(is_it).values(values))

    def failed(self, number: int, fault: str) -> None:
        """Records the reason for which a replay has not filled a hole."""
        self._connection.execute(update(wis2_holes).where(wis2_holes.c.number == number).values(fault=fault))
