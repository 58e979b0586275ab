"""Metrics of sites: connection, transport, clock, and backlog."""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import datetime

from downburst.domain.backlog import Backlog
from downburst.domain.relays.siblings import Saved
from downburst.exposition import Sample, catalogue, text_of
from downburst.live.state import SiteSession


def sites_text(sites: Sequence[str], sessions: Mapping[str, SiteSession], ldm_sites: Set[str]) -> Iterator[str]:
    """All existing sites; the session's facts only for connected ones."""
    known = [name for name in sites if name in sessions and sessions[name].connected]
    up = {*known, *ldm_sites}
    yield text_of(catalogue.SITE_UP, (((name,), name in up) for name in sites))
    here = [sessions[name] for name in known]
    yield text_of(catalogue.SITE_BUILD_INFO, (((one.site, version_of(one.software)), 1) for one in here))
    yield text_of(catalogue.TRANSPORT_INFO, _transports(here))
    offsets = ((one.site, one.clock_offset_us) for one in here)
    yield text_of(catalogue.CLOCK_OFFSET, (((site,), us / 1e6) for site, us in offsets if us is not None))
    own = [((one.site,), one.clock) for one in here if one.clock is not None]
    yield text_of(catalogue.SITE_CLOCK_SYNCHRONISED, ((site, clock.synchronised) for site, clock in own))
    yield text_of(catalogue.SITE_CLOCK_ERROR, ((site, clock.error_us / 1e6) for site, clock in own))
    yield from _readings(here)
    bounds = ((one.site, one.clock_bound_us) for one in here)
    yield text_of(catalogue.CLOCK_BOUND, (((site,), us / 1e6) for site, us in bounds if us is not None))


def backlogs_text(sites: Sequence[str], backlogs: Mapping[str, Backlog], now: datetime) -> Iterator[str]:
    """Sites' backlogs, connected or not; none for sites with an unknown backlog."""
    known = [((name,), backlogs[name]) for name in sites if name in backlogs]
    yield text_of(catalogue.PENDING_PRODUCTS, ((site, one.products) for site, one in known))
    yield text_of(catalogue.PENDING_BYTES, ((site, one.bytes) for site, one in known))
    yield text_of(catalogue.PENDING_OLDEST, ((site, one.oldest_s(now)) for site, one in known))
    yield text_of(catalogue.PENDING_LOST, ((site, one.lost_products) for site, one in known))


def saved_text(saved: Sequence[Saved]) -> str:
    """Bytes that siblings gave, by site and feed."""
    return text_of(catalogue.SIBLING_SAVED, (((one.site, one.feed), one.bytes) for one in saved))


def _transports(sessions: Sequence[SiteSession]) -> Iterator[Sample]:
    for session in sessions:
        for progress in session.progress.values():
            yield (progress.feed, session.site, progress.transport.value), 1


def _readings(sessions: Sequence[SiteSession]) -> Iterator[str]:
    """How sites' hosts read the groups of feeds that came by multicast."""
    found = [
        ((feed.feed, session.site), feed.reading)
        for session in sessions
        for feed in session.progress.values()
        if feed.reading is not None
    ]
    yield text_of(catalogue.RECEIVE_DROPPED, ((labels, reading.dropped) for labels, reading in found))
    yield text_of(catalogue.RECEIVE_BUFFER, ((labels, reading.granted_bytes) for labels, reading in found))
    yield text_of(catalogue.RECEIVE_DEMOTIONS, ((labels, reading.demotions) for labels, reading in found))


def version_of(software: str | None) -> str:
    """The version that a site's receiver reports, as one of few values: a site may send any text."""
    told = re.fullmatch(r"downburst-node (\d{1,4}(?:\.\d{1,4}){1,2})", software or "")
    return told[1] if told else "other"
