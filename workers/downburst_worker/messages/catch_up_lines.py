"""Catch-up by group in the node's lines: settings in the line of a leg, and reports."""

from collections.abc import Mapping
from typing import Any, Literal

from downburst.domain.backlog import FIRST_CATCH_UP, CatchUpChanged, is_catch_up
from downburst.domain.plans import Leg, Transport
from downburst.foundation.bounds import (
    OutOfBounds,
    clock_us,
    count,
    entries,
    feed_name,
    integer,
    sentence,
    site_name,
)
from downburst.foundation.clock import from_us
from downburst.settings.multicast import MulticastSettings

Line = dict[str, Any]


def catch_up_line(leg: Leg, multicast: MulticastSettings) -> Line | None:
    """How sites of a multicast leg catch up together; None: each by its own session.

    The group of the stream is counted from the end of the network, that of the leg from its beginning.
    """
    usable = multicast.network.num_addresses - 1
    if not multicast.catch_up.streams or usable <= 1 or leg.relay is not None or leg.leg >= FIRST_CATCH_UP:
        return None
    offset = usable - (leg.leg - 1) % usable
    return {
        "leg": FIRST_CATCH_UP + leg.leg,
        "group": str(multicast.network.network_address + offset),
        "port": multicast.port_base + (leg.leg + HALF_OF_PORTS) % PORTS,
        "least_bytes": multicast.catch_up.least_bytes,
        "wait_ms": round(multicast.catch_up.wait_s * 1000),
        "streams": multicast.catch_up.streams,
    }


def catch_up_changed(line: Line) -> CatchUpChanged:
    """The report that a stream began or ended."""
    return CatchUpChanged(
        feed=feed_name(line["feed"]),
        leg=_leg(line["leg"]),
        live_leg=_leg(line["live_leg"]),
        state=_state(line["state"]),
        at=from_us(clock_us(line["at_us"])),
        sites=tuple(map(site_name, entries(line["sites"], most=MOST_SITES))),
        from_sequence=count(line["from"]),
        to_sequence=count(line["to"]),
        lacked_bytes=count(line["lacked_bytes"]),
        sent_bytes=count(line["sent_bytes"]),
        saved_bytes=count(line["saved_bytes"]),
        sentence=sentence(line["sentence"]),
    )


def transport_of(leg: int, transports: Mapping[int, Transport]) -> Transport:
    """The transport of a leg; a stream beside a leg is in no plan."""
    return Transport.MULTICAST if is_catch_up(leg) else transports.get(leg, Transport.UNICAST)


def _state(value: object) -> Literal["began", "ended"]:
    for state in STATES:
        if value == state:
            return state
    raise OutOfBounds(f"a stream is not {value!r}")


def _leg(value: object) -> int:
    return integer(value, least=0, most=2**32 - 1)


PORTS, HALF_OF_PORTS = 1_000, 500
"""Ports of legs; that of a stream is never the one of its live leg."""
MOST_SITES = 100_000
STATES: tuple[Literal["began", "ended"], ...] = ("began", "ended")
