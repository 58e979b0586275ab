"""How a site's host reads multicast groups: datagrams that found no room, receive buffers, and real-time priority."""

from dataclasses import dataclass
from enum import StrEnum


class PriorityStanding(StrEnum):
    """The priority of the thread that reads a group; names are promises."""

    NORMAL = "normal"
    """None other was requested."""
    REAL_TIME = "real-time"
    LOST = "lost"
    """It ran for too long without a pause, and has normal priority until it pauses again."""
    REFUSED = "refused"
    """The site's system grants none."""


@dataclass(frozen=True, slots=True)
class LineReading:
    """What a host's line carried while a group lost packets, over about a second: its capacity (decision 71)."""

    arrived_bps: int
    """Everything that arrived from the hubs, in Ethernet-frame bits per second."""
    offered_bps: int
    """The rate at which the group was sent in that time."""
    packets: int
    """Packets of the group that were sent in that time."""
    lost: int
    """Of these, the packets that did not arrive."""
    windows: int
    """Measured stretches since the receiver started: it tells a new reading from the last one."""


@dataclass(frozen=True, slots=True)
class HostReading:
    """The reading of a feed's groups by a site's host, as its receiver reports it (decision 72)."""

    leg: int
    """The newest one."""
    dropped: int
    """Datagrams that the kernel dropped since the receiver started, as the receive buffer had no room for them."""
    asked_bytes: int
    """The requested receive buffer, of which the kernel grants and accounts the double."""
    granted_bytes: int
    needed_bytes: int
    """Needed on a busy host at the leg's rate, as the kernel accounts it."""
    limit_bytes: int | None = None
    """`net.core.rmem_max` at the site; None: not known."""
    priority: int | None = None
    """The requested real-time priority; None: none."""
    standing: PriorityStanding = PriorityStanding.NORMAL
    demotions: int = 0
    """The number of times that a reading thread lost its priority since the receiver started."""
    line: LineReading | None = None
    """The last one; None: the groups of the feed never lost packets in a steady stream, or it is not reported."""


def advice(feed: str, reading: HostReading) -> str | None:
    """One sentence for the site's administrator on the setting to change; None: nothing is to be done."""
    dropped = f"{reading.dropped:,} datagrams of {feed} found no room in the receive buffer"
    size = f"{reading.granted_bytes:,} bytes of the {reading.needed_bytes:,} that its rate needs on a busy host"
    if reading.granted_bytes < reading.needed_bytes:
        found = dropped if reading.dropped else f"datagrams of {feed} may find no room in the receive buffer"
        return f"{found}, which has {size}: {_larger(reading)}"
    if reading.standing is PriorityStanding.REFUSED:
        found = f"{dropped}, and " if reading.dropped else ""
        remedy = f"give the receiver CAP_SYS_NICE, or LimitRTPRIO={reading.priority} in its unit"
        return f"{found}real-time priority {reading.priority} was refused at the site: {remedy}"
    if not reading.dropped:
        return None
    large = f"{dropped}, though it is as large as its rate needs"
    if reading.standing is PriorityStanding.NORMAL:
        return (
            f"{large}: other work kept the reading thread from running; start the receiver with --receive-priority 20"
        )
    return f"{large} and the thread has real-time priority: the host is too slow for the leg's rate"


def _larger(reading: HostReading) -> str:
    if reading.asked_bytes * 2 <= reading.granted_bytes:
        # All that was asked for is there, so the request is the limit: by an option, or by the standard size.
        return f"start the receiver with --receive-buffer {-(-reading.needed_bytes // 2)}"
    now = "" if reading.limit_bytes is None else f" (it is {reading.limit_bytes})"
    return (
        f"set net.core.rmem_max={reading.needed_bytes} at the site{now}, or give the receiver CAP_NET_ADMIN; "
        "then start the receiver anew"
    )
