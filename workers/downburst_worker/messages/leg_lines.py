"""The node's lines about the traffic of legs."""

from collections.abc import Mapping
from typing import Any

from downburst.domain.events import LegTraffic
from downburst.domain.plans import LegTrial, Transport
from downburst.foundation.bounds import count, entries, feed_name, integer, maybe, site_name
from downburst_worker.messages.catch_up_lines import transport_of

Line = dict[str, Any]


def leg_traffic(leg: Line, transports: Mapping[int, Transport]) -> LegTraffic:
    """The traffic of a leg since the last line; its transport is that of the plan."""
    number = leg_number(leg["leg"])
    return LegTraffic(
        leg=number,
        feed=feed_name(leg["feed"]),
        egress_bytes=count(leg["egress_bytes"]),
        repair_bytes=count(leg["repair_bytes"]),
        products=count(leg["products"]),
        product_bytes=count(leg["product_bytes"]),
        sites=integer(leg["sites"], least=0, most=MOST_SITES),
        backlog_bytes=count(leg["backlog_bytes"]),
        transport=transport_of(number, transports),
        rate_bps=maybe(leg.get("rate_bps"), count),
        trials=tuple(map(_trial, entries(leg.get("trials", []), most=MOST_TRIALS))),
    )


def leg_number(value: object) -> int:
    """The number of a leg."""
    return integer(value, least=0, most=2**32 - 1)


def _trial(trial: Any) -> LegTrial:
    return LegTrial(
        rate_bps=integer(trial["rate_bps"], least=1, most=MOST_BPS),
        packets=count(trial["packets"]),
        lost=tuple(map(_loss, entries(trial["lost"], most=MOST_LOSSES))),
    )


def _loss(loss: Any) -> tuple[str, int]:
    return site_name(loss["site"]), count(loss["packets"])


MOST_SITES = 2**31 - 1
MOST_TRIALS = 64
MOST_LOSSES = 4_096
MOST_BPS = 10**13
