"""The hub's traffic and worst latency by the quarter hour: pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from downburst.domain.feeds import TrafficMinute
from downburst.domain.latency import QUARTER_MINUTES
from downburst.domain.plans import EgressQuarter
from downburst.foundation.clock import from_us
from downburst_api.strip.worst import BySite


def points_of(
    quarters: Sequence[int],
    arrived: Iterable[TrafficMinute],
    sent: Iterable[EgressQuarter],
    read: Mapping[int, BySite],
    now: datetime,
) -> list[dict[str, Any]]:
    """A point for each quarter hour, with null where nothing was stored; rates are means over the time that passed.

    A quarter hour in which something was sent and nothing arrived has an incoming rate of 0.
    """
    in_bytes: Counter[int] = Counter()
    for one in arrived:
        in_bytes[one.minute] += one.bytes
    egress = {one.minute: one for one in sent}
    return [_point(at, in_bytes.get(at), egress.get(at), read.get(at, {}), now) for at in quarters]


def today_of(
    arrived: Iterable[TrafficMinute], sent: Sequence[EgressQuarter], *, midnight_minute: int
) -> dict[str, Any]:
    """Sums since midnight; since a later moment if nothing was counted before. `sent` is sorted by time."""
    kept = [one for one in sent if one.minute >= midnight_minute]
    sizes = [one.bytes for one in arrived if one.minute >= midnight_minute]
    if not kept:
        nothing = dict.fromkeys(("egress_bytes", "unicast_equivalent_bytes"))
        return nothing | {"since": None, "in_bytes": sum(sizes) if sizes else None}
    since_minute = midnight_minute if sent[0].minute < midnight_minute else kept[0].minute
    return {
        "since": from_us(since_minute * 60_000_000),
        "in_bytes": sum(sizes),
        "egress_bytes": sum(one.egress_bytes for one in kept),
        "unicast_equivalent_bytes": sum(one.unicast_equivalent_bytes for one in kept),
    }


def _point(
    minute: int, in_bytes: int | None, sent: EgressQuarter | None, worst: BySite, now: datetime
) -> dict[str, Any]:
    begin = from_us(minute * 60_000_000)
    seconds = min(max((now - begin).total_seconds(), 1.0), QUARTER_MINUTES * 60)
    apart = sent.unicast_equivalent_bytes if sent else 0
    if in_bytes is None and sent is not None:
        in_bytes = 0
    return {
        "at": begin,
        "in_bps": None if in_bytes is None else in_bytes * 8 / seconds,
        "out_bps": None if sent is None else sent.egress_bytes * 8 / seconds,
        "saved_share": 1 - sent.egress_bytes / apart if sent and apart else None,
        "worst_share": max((one.share for one in worst.values()), default=None),
    }
