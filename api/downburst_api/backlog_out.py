"""What a site lacks, for clients."""

from datetime import datetime
from typing import Any

from downburst.backlog import Backlog


def backlog_out(backlog: Backlog | None, now: datetime) -> dict[str, Any]:
    """Products, bytes and the age of the oldest; null while it is not known. What was lost comes no more."""
    if backlog is None:
        return dict.fromkeys(_FIELDS)
    values = (
        backlog.products,
        backlog.bytes,
        backlog.oldest_s(now),
        backlog.lost_products,
        backlog.lost_bytes,
        backlog.counting,
    )
    return dict(zip(_FIELDS, values, strict=True))


_FIELDS = ("behind_products", "behind_bytes", "behind_s", "lost_products", "lost_bytes", "behind_counting")
