"""The records of feeds with a deadline, by site and second; the newest hour."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, select

from downburst.domain.receipts import Delays, FeedSecond
from downburst.foundation.bounds import PRODUCTS_MAX
from downburst.ledger.storage.rows import found, key_of, put_all
from downburst.ledger.tables.receipts import feed_seconds
from downburst.sketches.sketch import LatencySketch


class FeedSeconds:
    """Seconds of feeds with a deadline at sites."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, *seconds: FeedSecond, at: datetime) -> None:
        """Adds counts to those of the same feed, site and second, and removes what is older than an hour at `at`."""
        oldest = int(at.timestamp()) - KEPT_S
        rows = [asdict(second) for second in seconds if second.second >= oldest]
        known = {key: dict(row._mapping) for key, row in found(self._connection, feed_seconds, rows).items()}
        for row in rows:
            key = key_of(feed_seconds, row)
            known[key] = _together(known[key], row) if key in known else row
        put_all(self._connection, feed_seconds, [known[key_of(feed_seconds, row)] for row in rows])
        self._connection.execute(delete(feed_seconds).where(feed_seconds.c.second < oldest))

    def of_feed(
        self,
        feed: str,
        *,
        site: str | None = None,
        since: int = 0,
        before: tuple[int, str] | None = None,
        limit: int = 3_600,
    ) -> list[FeedSecond]:
        """The newest seconds of a feed from one on, newest first; of a second by the site's name, last name first.

        `before`: the second and the site of the last one known.
        """
        table = feed_seconds.c
        query = select(feed_seconds).where(table.feed == feed, table.second >= since)
        if site is not None:
            query = query.where(table.site == site)
        if before is not None:
            second, name = before
            query = query.where((table.second < second) | ((table.second == second) & (table.site < name)))
        query = query.order_by(table.second.desc(), table.site.desc()).limit(limit)
        return list(_seconds(self._connection.execute(query)))


def _seconds(rows: Iterable[Any]) -> Iterable[FeedSecond]:
    for row in rows:
        values = dict(row._mapping)
        delays = values.pop("delays")
        yield FeedSecond(**values, delays=None if delays is None else Delays(**delays))


def _together(before: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    counts = {name: min(before[name] + more[name], PRODUCTS_MAX) for name in _COUNTED}
    jitter = before["jitter_us"] if more["jitter_us"] is None else more["jitter_us"]
    return {**more, **counts, "jitter_us": jitter, "delays": _merged(before["delays"], more["delays"])}


def _merged(before: Mapping[str, Any] | None, more: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if before is None or more is None:
        return more if before is None else before
    sketch = LatencySketch()
    for delays in (before, more):
        sketch.merge(Delays(**delays))
    return asdict(sketch)


KEPT_S = 3_600
_COUNTED = ("stored", "late_at_hub", "late_at_site", "lost", "reordered")
