"""The lines about relays and the ways through them, from and to the types of the model."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from downburst.domain.events import RelaySeen
from downburst.domain.relays.relay import Relay
from downburst.domain.relays.report import RelayedLeg, RelayReport, Segment, Tunnel
from downburst.domain.relays.ways import SiteWay, by_name, via_of
from downburst.domain.sites import AMT
from downburst.domain.tcp.profiles import CONGESTION
from downburst.foundation.bounds import (
    OutOfBounds,
    SetAside,
    count,
    each,
    entries,
    flag,
    integer,
    maybe,
    number,
    sentence,
    shown,
    site_name,
)

Line = dict[str, Any]


def with_ways(job: Line, ways: Iterable[SiteWay], relays: Iterable[Relay]) -> Line:
    """The job with all sites, with the way of each site that the scheduler gave one; an empty list: direct."""
    known = by_name(relays)
    via = {way.site: via_of(way, known) for way in ways}
    for line in job["sites"]:
        if line["site"] in via:
            line["via"] = via[line["site"]]
    return job


def with_tunnels(job: Line, interface: str) -> Line:
    """The job with all sites; those with the interface `amt` get this one, which names the hub's AMT relays."""
    for line in job["sites"]:
        if line["interface"] == AMT:
            line["interface"] = interface
    return job


def relay_seen(line: Line, aside: list[SetAside], *, at: datetime) -> RelaySeen:
    """The report of a relay; an impossible entry goes to `aside`, and the others count; `at`: its time."""
    report = RelayReport(
        relay=site_name(line["relay"]),
        tunnels=each(entries(line["tunnels"], most=MOST_TUNNELS), _tunnel, "a tunnel of a relay", aside),
        legs=each(entries(line["legs"], most=MOST_LEGS), _leg, "a leg of a relay", aside),
        refused=count(line["refused"]),
    )
    return RelaySeen(at, report)


def _tunnel(tunnel: Any) -> Tunnel:
    return Tunnel(
        site=maybe(tunnel.get("site"), site_name),
        site_side=_address(tunnel["site_side"]),
        hub_side=_address(tunnel["hub_side"]),
        target=_address(tunnel["target"]),
        seconds=_seconds(tunnel["seconds"]),
        bytes_from_hub=count(tunnel["bytes_from_hub"]),
        bytes_from_site=count(tunnel["bytes_from_site"]),
        rate_from_hub_bps=count(tunnel["rate_from_hub_bps"]),
        near=_segment(tunnel["near"]),
        onward=_segment(tunnel["onward"]),
        ended=flag(tunnel.get("ended", False)),
    )


def _segment(segment: Any) -> Segment:
    return Segment(
        round_trip_us=maybe(segment.get("round_trip_us"), count),
        loss_ppm=maybe(segment.get("loss_ppm"), _millionth),
        congestion=_congestion(segment["congestion"]),
        rate_bps=count(segment["rate_bps"]),
    )


def _leg(leg: Any) -> RelayedLeg:
    return RelayedLeg(
        leg=integer(leg["leg"], least=0, most=2**32 - 1),
        datagrams=count(leg["datagrams"]),
        bytes=count(leg["bytes"]),
        dropped=count(leg["dropped"]),
    )


def _address(value: object) -> str:
    """Any address: it is for people, and compared with nothing."""
    return sentence(value)[:ADDRESS_CHARS]


def _seconds(value: object) -> float:
    seconds = number(value, most=MOST_SECONDS)
    if seconds < 0:
        raise OutOfBounds(f"{shown(value)} is not an age")
    return seconds


def _congestion(value: object) -> str:
    """The kernel's name; empty if it told the relay none."""
    if isinstance(value, str) and (not value or CONGESTION.fullmatch(value)):
        return value
    raise OutOfBounds(f"{shown(value)} is not the name of a congestion control")


def _millionth(value: object) -> int:
    return integer(value, least=0, most=1_000_000)


MOST_TUNNELS = 256
MOST_LEGS = 4_096
MOST_SECONDS = 10**10
ADDRESS_CHARS = 300
"""A name of 253 characters with its port, and room for a zone."""
