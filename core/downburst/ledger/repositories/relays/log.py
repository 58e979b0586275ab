"""The log of tunnels: the performance that relays achieved."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Row, insert, select

from downburst.domain.relays.report import LoggedTunnel, Segment, Tunnel
from downburst.foundation.clock import Clock
from downburst.ledger.storage import limits
from downburst.ledger.tables.relays import relay_log, relays


class RelayLog:
    """Tunnels of relays, of each relay the newest."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def add(self, relay: str, tunnels: Iterable[Tunnel]) -> None:
        """Records tunnels; those of a relay that is gone are no news."""
        rows = [asdict(tunnel) | {"relay": relay, "at": self._clock.now()} for tunnel in tunnels]
        if not rows or self._connection.scalar(select(relays.c.name).where(relays.c.name == relay)) is None:
            return
        self._connection.execute(insert(relay_log), rows)
        of_relay = relay_log.c.relay == relay
        limits.LOG_OF_RELAY.trim(self._connection, relay_log, of_relay, by=relay_log.c.id, holder=relay)

    def newest(self, relay: str, *, before: int | None = None, limit: int = 100) -> list[LoggedTunnel]:
        """The records of a relay, newest first; `before`: only those with a lower number."""
        query = select(relay_log).where(relay_log.c.relay == relay).order_by(relay_log.c.id.desc()).limit(limit)
        if before is not None:
            query = query.where(relay_log.c.id < before)
        return [_logged(row) for row in self._connection.execute(query)]


def _logged(row: Row[Any]) -> LoggedTunnel:
    values = dict(row._mapping)
    number, relay, at = (values.pop(name) for name in ("id", "relay", "at"))
    segments = {name: Segment(**values[name]) for name in ("near", "onward")}
    return LoggedTunnel(number, relay, at, Tunnel(**values | segments))
