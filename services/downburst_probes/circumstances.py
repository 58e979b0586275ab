"""The state of a path when a probe of it begins."""

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from downburst.domain.plans import Plan
from downburst.domain.probes import ProbeRequest
from downburst.domain.relays import SiteWay
from downburst.domain.sites import Site
from downburst.domain.topology.bookings import BookedTest
from downburst.live.state import LiveState


def circumstances(
    request: ProbeRequest,
    live: LiveState,
    *,
    plans: Sequence[Plan],
    way: SiteWay | None,
    booking: BookedTest | None,
    sender: str = "",
) -> dict[str, Any]:
    """Plain values: the sender, software of both ends, the feeds' transports, load, way, clock, reserved ports."""
    session, known = live.sessions.get(request.site), live.paths.of(request.site)
    ends = None if booking is None else [booking.wanted.near.port, booking.wanted.far.port]
    return {
        "sender": sender or None,
        "hub_software": version("downburst"),
        "site_software": session.software if session else None,
        "plans": [
            {"feed": plan.feed, "version": plan.version, "transport": leg.transport.value, "rate_bps": leg.rate_bps}
            for plan in plans
            for leg in plan.legs
            if request.site in leg.sites
        ],
        "feeds_bps": feeds_bps(request.site, live),
        "chain": list(way.chain) if way else [],
        "circuit": way.over.circuit if way and way.over else None,
        "round_trip_us": known.least_round_trip_us,
        "clock_bound_us": known.clock_bound_us,
        "reserved": ends,
    }


def feeds_bps(site: str, live: LiveState) -> float:
    """The mean rate of the site's feeds in the last two minutes, as they arrive at the hub."""
    session = live.sessions.get(site)
    feeds = session.progress if session else {}
    return sum(live.arrivals[feed].mean_bps() for feed in feeds if feed in live.arrivals)


def too_much(request: ProbeRequest, site: Site, live: LiveState) -> str | None:
    """The reason why a probe has to wait for the site's own load, where its access rate is configured."""
    if site.access_rate_bps is None:
        return None
    load_bps = feeds_bps(request.site, live)
    if request.highest_bps + load_bps <= site.access_rate_bps * (1 + SLACK):
        return None
    return (
        f"{request.site} has an access rate of {site.access_rate_bps / 1e6:.4g} Mb/s, its feeds take "
        f"{load_bps / 1e6:.4g} Mb/s of it, and the probe would send {request.highest_bps / 1e6:.4g} Mb/s; "
        "ask for less"
    )


SLACK = 0.1
"""A sweep has to pass the access rate a little to find the knee there."""
