"""The rate of a probe in the circuits' calendar."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from downburst.domain.circuits import CircuitEnd, Direction, Port
from downburst.domain.probes import ProbeRequest
from downburst.domain.topology.bookings import BookedTest, WantedTest
from downburst_probes.port import Bookings


@dataclass(frozen=True, slots=True)
class Place:
    """The answer of the calendar."""

    booking: BookedTest | None = None
    """None: there is no calendar between the hub and the site, or the probe has to wait."""
    waits_until: datetime | None = None
    """The first moment with room; None: it may start."""
    sentence: str = ""
    """The reason to wait, with the holders of the rate."""


async def reserve(
    desk: Bookings, request: ProbeRequest, ports: Sequence[Port], seconds: float, *, sender: str = ""
) -> Place:
    """Reserves the probe's highest rate for its seconds and a margin; a refusal is raised.

    `sender` has the site's session; empty: the hub's own node. If the site or its other end, that node or a relay,
    has no port, there is no calendar. Reverse traffic has the same limit as the flows against it, so both directions
    are reserved then.
    """
    near = _widest([port for port in ports if port.site == request.relay and (port.sender or "") == sender])
    far = _widest([port for port in ports if port.site == request.site])
    if near is None or far is None:
        return Place()
    wanted = WantedTest(
        KIND,
        CircuitEnd(near, request.relay),
        CircuitEnd(far, request.site),
        request.rate_bps(Direction.OUT),
        request.rate_bps(Direction.IN),
        seconds + MARGIN_S,
        by=request.by or "hub",
    )
    answer = await desk.book(wanted)
    if answer.booking is None:
        return Place(waits_until=answer.begin, sentence=answer.sentence)
    return Place(answer.booking)


def _widest(found: Sequence[Port]) -> str | None:
    return max(found, key=lambda port: (port.rate_bps, port.name)).name if found else None


KIND = "probe"
MARGIN_S = 2.0
"""The node begins a moment later, and the last packets are on their way."""
