"""The tracer's findings about a site in answers."""

from downburst.live.traced import TracedSite
from downburst_contract import tracer as shapes
from downburst_contract.base import members


def traced_out(site: str, found: TracedSite) -> shapes.TracedSite:
    """The answer about a site."""
    since, until = found.recorded or (None, None)
    kept = members(found, without=("recorded",))
    return shapes.TracedSite(
        site=site, recorded_since=since, recorded_until=until, counters=list(found.counters), **kept
    )
