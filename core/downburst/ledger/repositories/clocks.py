"""Offsets between the clocks of a hub's nodes and that of the ledger's server, which all of them can query."""

from sqlalchemy import Connection, Row, func, select

from downburst.domain.senders import ClockStanding
from downburst.foundation.clock import Clock, to_us
from downburst.ledger.storage.rows import put
from downburst.ledger.tables.senders import node_clocks


class Clocks:
    """Offsets by name of a node; the hub's own node has none."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def compare(self) -> ClockStanding | None:
        """The offset of this process, by the quickest of some queries; None if the ledger has no server."""
        if self._connection.dialect.name != "postgresql":
            return None
        return min((self._compare_once() for _ in range(QUESTIONS)), key=lambda one: one.bound_us)

    def keep(self, name: str, standing: ClockStanding) -> None:
        """Stores the offset that a node measured."""
        row = {
            "name": name,
            "ahead_us": standing.ahead_us,
            "bound_us": standing.bound_us,
            "compared_at": standing.compared_at,
        }
        put(self._connection, node_clocks, row)

    def of(self, name: str) -> ClockStanding | None:
        """The last offset that a node measured."""
        query = select(node_clocks).where(node_clocks.c.name == name)
        row = self._connection.execute(query).one_or_none()
        return None if row is None else _standing(row)

    def _compare_once(self) -> ClockStanding:
        """The server read its clock between two local times: the error is at most half the interval."""
        asked_us = to_us(self._clock.now())
        server_us = to_us(self._connection.execute(select(func.clock_timestamp())).scalar_one())
        answered_at = self._clock.now()
        # A local time may be truncated below the microsecond.
        bound_us = (to_us(answered_at) - asked_us) // 2 + 1
        return ClockStanding(asked_us + bound_us - server_us, max(bound_us, 1), answered_at)


def _standing(row: Row[tuple[object, ...]]) -> ClockStanding:
    return ClockStanding(row.ahead_us, row.bound_us, row.compared_at)


QUESTIONS = 5
