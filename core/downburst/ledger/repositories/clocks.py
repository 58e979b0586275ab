"""How the clocks of a hub's nodes stand to that of the ledger's server, which all of them can ask."""

from sqlalchemy import Connection, Row, func, select

from downburst.domain.senders import ClockStanding
from downburst.foundation.clock import Clock, to_us
from downburst.ledger.storage.rows import put
from downburst.ledger.tables.senders import node_clocks


class Clocks:
    """By name of a node; the hub's own node has none."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def compare(self) -> ClockStanding | None:
        """Of this process, by the quickest of some questions; None where the ledger has no server."""
        if self._connection.dialect.name != "postgresql":
            return None
        return min((self._compare_once() for _ in range(QUESTIONS)), key=lambda one: one.bound_us)

    def keep(self, name: str, standing: ClockStanding) -> None:
        """Keeps what a node found."""
        row = {
            "name": name,
            "ahead_us": standing.ahead_us,
            "bound_us": standing.bound_us,
            "compared_at": standing.compared_at,
        }
        put(self._connection, node_clocks, row)

    def of(self, name: str) -> ClockStanding | None:
        """What a node found last."""
        query = select(node_clocks).where(node_clocks.c.name == name)
        row = self._connection.execute(query).one_or_none()
        return None if row is None else _standing(row)

    def _compare_once(self) -> ClockStanding:
        """The server read its clock between the two moments: the truth is within half of what lies between them."""
        asked_us = to_us(self._clock.now())
        server_us = to_us(self._connection.execute(select(func.clock_timestamp())).scalar_one())
        answered_at = self._clock.now()
        # An instant of ours may be cut off below the microsecond.
        bound_us = (to_us(answered_at) - asked_us) // 2 + 1
        return ClockStanding(asked_us + bound_us - server_us, max(bound_us, 1), answered_at)


def _standing(row: Row[tuple[object, ...]]) -> ClockStanding:
    return ClockStanding(row.ahead_us, row.bound_us, row.compared_at)


QUESTIONS = 5
