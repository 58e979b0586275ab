"""The hub's own journal: faults, arrivals by the minute, and egress by the quarter hour."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select

from downburst.domain.faults import Fault
from downburst.domain.feeds import TrafficMinute
from downburst.domain.latency import QUARTER_MINUTES
from downburst.domain.plans import EgressQuarter
from downburst.foundation.bounds import added
from downburst.ledger.storage.rows import found, key_of, put, put_all, same_key
from downburst.ledger.tables.feeds import egress_quarters, traffic_hours, traffic_minutes
from downburst.ledger.tables.processes import faults


class Faults:
    """The newest faults; only the newest thousand are kept."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, fault: Fault) -> None:
        """Stores a fault."""
        key = self._connection.execute(insert(faults).values(asdict(fault))).inserted_primary_key
        if key is not None:
            self._connection.execute(delete(faults).where(faults.c.number <= int(key[0]) - FAULTS_KEPT))

    def recent(self, *, since: datetime | None = None, limit: int = 100) -> list[Fault]:
        """The newest faults, oldest of them first."""
        columns = (faults.c.at, faults.c.sentence, faults.c.feed, faults.c.site, faults.c.next_step)
        query = select(*columns).order_by(faults.c.number.desc()).limit(limit)
        if since is not None:
            query = query.where(faults.c.at >= since)
        found = [Fault(**row._mapping) for row in self._connection.execute(query)]
        return found[::-1]


class Traffic:
    """Arrivals of each feed by the minute."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, minutes: Iterable[TrafficMinute]) -> None:
        """Adds arrivals to those of the same feed and minute."""
        rows = [asdict(more) for more in minutes]
        self._count_hours(rows)
        known = {key: dict(row._mapping) for key, row in found(self._connection, traffic_minutes, rows).items()}
        for row in rows:
            before = known.get(key_of(traffic_minutes, row))
            if before is not None:
                row["products"] = added(row["products"], before["products"])
                row["bytes"] = added(row["bytes"], before["bytes"])
                row["peak_1s_bytes"] = max(row["peak_1s_bytes"], before["peak_1s_bytes"])
            known[key_of(traffic_minutes, row)] = row
        put_all(self._connection, traffic_minutes, rows)

    def minutes(self, *, feed: str | None = None, since_minute: int = 0) -> list[TrafficMinute]:
        """Arrivals by minute, oldest first."""
        query = select(traffic_minutes).where(traffic_minutes.c.minute >= since_minute)
        if feed is not None:
            query = query.where(traffic_minutes.c.feed == feed)
        ordered = query.order_by(traffic_minutes.c.minute, traffic_minutes.c.feed)
        return [TrafficMinute(**row._mapping) for row in self._connection.execute(ordered)]

    def spans(self, *, since_minute: int) -> list[TrafficMinute]:
        """The same in fewer rows: whole hours, named by their first minutes, without the peak second."""
        first = -(-since_minute // 60)
        query = select(traffic_hours).where(traffic_hours.c.hour >= first - 1)
        hours = list(self._connection.execute(query))
        whole = [
            TrafficMinute(one.feed, one.hour * 60, one.products, one.bytes, 0) for one in hours if one.hour >= first
        ]
        return [*self._of_feeds(sorted({one.feed for one in hours}), since_minute, first * 60), *whole]

    def quarters(self, feeds: Sequence[str], *, since_minute: int, until_minute: int) -> list[TrafficMinute]:
        """Arrivals of feeds by the quarter hour of the clock, each named by its first minute; excludes the end.

        A quarter without arrivals is left out. A range that cuts a quarter counts the part inside it.
        """
        table = traffic_minutes.c
        quarter = (table.minute - table.minute % QUARTER_MINUTES).label("minute")
        sums = (func.sum(table[name]).label(name) for name in ("products", "bytes"))
        query = (
            select(table.feed, quarter, *sums, func.max(table.peak_1s_bytes).label("peak_1s_bytes"))
            # The key begins with the feed, so the feeds must be named.
            .where(table.feed.in_(feeds), table.minute >= since_minute, table.minute < until_minute)
            .group_by(table.feed, quarter)
            .having(func.sum(table.products) > 0)
        )
        rows = self._connection.execute(query)
        return [TrafficMinute(row.feed, row.minute, int(row.products), int(row[3]), row[4]) for row in rows]

    def hours(self, feed: str, *, since_minute: int, until_minute: int) -> list[int]:
        """The whole hours of a range in which products of a feed arrived, each by its first minute."""
        table = traffic_hours.c
        inside = (table.hour >= -(-since_minute // 60), table.hour < until_minute // 60)
        query = select(table.hour).where(table.feed == feed, table.products > 0, *inside).order_by(table.hour)
        return [hour * 60 for hour in self._connection.scalars(query)]

    def first_minute(self, *, since_minute: int) -> int | None:
        """The first minute of a range with an arrival."""
        for hour in self._connection.scalars(
            select(traffic_hours.c.hour)
            .where(traffic_hours.c.hour >= since_minute // 60)
            .distinct()
            .order_by(traffic_hours.c.hour)
            .limit(2)
        ).all():
            # The arrivals of the first hour may all be before the range.
            feeds = self._connection.scalars(select(traffic_hours.c.feed).where(traffic_hours.c.hour == hour)).all()
            found = self._of_feeds(feeds, max(since_minute, hour * 60), (hour + 1) * 60)
            if found:
                return min(one.minute for one in found)
        return None

    def totals(self) -> dict[str, TrafficMinute]:
        """The sum of all arrivals of each feed, with the newest minute."""
        columns = (
            traffic_minutes.c.feed,
            func.max(traffic_minutes.c.minute).label("minute"),
            func.sum(traffic_minutes.c.products).label("products"),
            func.sum(traffic_minutes.c.bytes).label("bytes"),
            func.max(traffic_minutes.c.peak_1s_bytes).label("peak_1s_bytes"),
        )
        rows = self._connection.execute(select(*columns).group_by(traffic_minutes.c.feed))
        return {row.feed: TrafficMinute(row.feed, row.minute, int(row.products), int(row[3]), row[4]) for row in rows}

    def forget_before(self, minute: int) -> int:
        """Removes arrivals older than a minute; returns their number."""
        self._connection.execute(delete(traffic_hours).where(traffic_hours.c.hour < minute // 60))
        return self._connection.execute(delete(traffic_minutes).where(traffic_minutes.c.minute < minute)).rowcount

    def _count_hours(self, rows: Iterable[dict[str, Any]]) -> None:
        """Adds arrivals to those of their hours."""
        hours: dict[tuple[str, int], dict[str, Any]] = {}
        for row in rows:
            hour = {"feed": row["feed"], "hour": row["minute"] // 60, "products": 0, "bytes": 0}
            kept = hours.setdefault((row["feed"], row["minute"] // 60), hour)
            kept["products"] = added(kept["products"], row["products"])
            kept["bytes"] = added(kept["bytes"], row["bytes"])
        for before in found(self._connection, traffic_hours, list(hours.values())).values():
            hour = hours[before.feed, before.hour]
            hour["products"] = added(hour["products"], before.products)
            hour["bytes"] = added(hour["bytes"], before.bytes)
        put_all(self._connection, traffic_hours, hours.values())

    def _of_feeds(self, feeds: Sequence[str], begin: int, end: int) -> list[TrafficMinute]:
        """The minutes of a short range; the key begins with the feed, so the feeds must be named."""
        if begin >= end or not feeds:
            return []
        inside = (traffic_minutes.c.feed.in_(feeds), traffic_minutes.c.minute.between(begin, end - 1))
        query = select(traffic_minutes).where(*inside)
        return [TrafficMinute(**row._mapping) for row in self._connection.execute(query)]


class Egress:
    """What the hub sent, by the quarter hour of the clock, beside the cost of separate copies for each site."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, minute: int, *, egress_bytes: int, unicast_equivalent_bytes: int) -> None:
        """Adds bytes to the quarter hour that holds a minute; several nodes of a hub take turns by `Legs.count`."""
        row = {"minute": minute // QUARTER_MINUTES * QUARTER_MINUTES}
        row |= {"egress_bytes": egress_bytes, "unicast_equivalent_bytes": unicast_equivalent_bytes}
        for before in self._connection.execute(select(egress_quarters).where(same_key(egress_quarters, row))):
            for name in ("egress_bytes", "unicast_equivalent_bytes"):
                row[name] = added(row[name], before._mapping[name])
        put(self._connection, egress_quarters, row)

    def quarters(self, *, since_minute: int) -> list[EgressQuarter]:
        """The quarter hours that begin at a minute or later, oldest first; those without a count are left out."""
        query = select(egress_quarters).where(egress_quarters.c.minute >= since_minute)
        rows = self._connection.execute(query.order_by(egress_quarters.c.minute))
        return [EgressQuarter(**row._mapping) for row in rows]

    def forget_before(self, minute: int) -> None:
        """Removes quarter hours older than a minute."""
        self._connection.execute(delete(egress_quarters).where(egress_quarters.c.minute < minute))


FAULTS_KEPT = 1_000
