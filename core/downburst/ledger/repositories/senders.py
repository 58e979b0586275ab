"""The nodes that send for a hub, and their assignments."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from downburst.domain.senders import Assignment, Sender
from downburst.foundation.clock import Clock, to_us
from downburst.ledger.storage.rows import put, put_all
from downburst.ledger.tables.senders import assignments, placements, senders


class Senders:
    """Senders by name."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def all(self) -> list[Sender]:
        """Every registered sender, by name."""
        return [_sender(row) for row in self._connection.execute(select(senders).order_by(senders.c.name))]

    def find(self, name: str) -> Sender | None:
        """The sender, if it registered."""
        row = self._connection.execute(select(senders).where(senders.c.name == name)).one_or_none()
        return None if row is None else _sender(row)

    def register(self, name: str, *, address: str, public_key: str) -> Sender:
        """Registers a sender at its start; a certificate for another key is dropped."""
        before = self.find(name)
        known = before if before is not None and before.public_key == public_key else None
        row = {
            "name": name,
            "address": address,
            "public_key": public_key,
            "certificate": known.certificate if known else None,
            "authority": known.authority if known else None,
            "beats": (before.beats if before else 0) + 1,
            "load_bps": 0.0,
            "draining": False,
            "seen_at": self._clock.now(),
        }
        put(self._connection, senders, row)
        return _sender(self._connection.execute(select(senders).where(senders.c.name == name)).one())

    def certify(self, name: str, public_key: str, *, certificate: str, authority: str) -> None:
        """Stores the certificate signed by the hub's authority, unless the sender has another key by now."""
        mine = (senders.c.name == name) & (senders.c.public_key == public_key)
        change = update(senders).where(mine).values(certificate=certificate, authority=authority)
        self._connection.execute(change)

    def beat(self, name: str, *, load_bps: float, draining: bool) -> bool:
        """Records a sign of life of a sender; False if it was removed."""
        change = update(senders).where(senders.c.name == name)
        values = {"load_bps": load_bps, "draining": draining, "seen_at": self._clock.now()}
        return self._connection.execute(change.values(beats=senders.c.beats + 1, **values)).rowcount == 1

    def remove(self, name: str) -> None:
        """Removes a sender that ended."""
        self._connection.execute(delete(senders).where(senders.c.name == name))


class Assignments:
    """The sender of each feed to each site."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def all(self) -> list[Assignment]:
        """All assignments, by feed and site."""
        query = select(assignments).order_by(assignments.c.feed, assignments.c.site)
        return [Assignment(row.feed, row.site, row.sender) for row in self._connection.execute(query)]

    def version(self) -> int:
        """The version of the whole set; 0 if there never was one."""
        return int(self._connection.scalar(select(placements.c.version)) or 0)

    def replace(self, wanted: Iterable[Assignment]) -> int:
        """Replaces the set; returns its version."""
        before, after = set(self.all()), set(wanted)
        if before == after:
            return self.version()
        keys = {(one.feed, one.site) for one in after}
        for one in before:
            if (one.feed, one.site) not in keys:
                here = (assignments.c.feed == one.feed) & (assignments.c.site == one.site)
                self._connection.execute(delete(assignments).where(here))
        rows = [{"feed": one.feed, "site": one.site, "sender": one.sender} for one in sorted(after - before)]
        put_all(self._connection, assignments, rows)
        return self._rise()

    def touch(self) -> int:
        """Raises the version after a change of the senders, which sites are notified of."""
        return self._rise()

    def _rise(self) -> int:
        # Sites store it: it must rise even if the ledger was restored from a backup in between.
        version = max(self.version() + 1, to_us(self._clock.now()))
        changed = self._connection.execute(update(placements).values(version=version))
        if changed.rowcount == 0:
            self._connection.execute(insert(placements).values(number=1, version=version))
        return version


def _sender(row: Row[Any]) -> Sender:
    return Sender(**row._mapping)
