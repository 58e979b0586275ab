"""Sites, their states and backlogs in answers."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from downburst.domain.backlog import Backlog
from downburst.domain.readings import advice
from downburst.foundation.clock import from_us
from downburst.live.site_states import SiteStanding
from downburst.live.state import SiteSession
from downburst_contract.sites import Heartbeat, HostReading, OwnClock


def standing_out(stands: SiteStanding) -> dict[str, Any]:
    """A standing; `connected` is for programs older than the states."""
    return {
        "state": stands.state,
        "state_words": stands.words,
        "since": stands.since,
        "reason": stands.reason,
        "connected": stands.connected,
    }


def backlog_out(backlog: Backlog | None, now: datetime) -> dict[str, Any]:
    """Products, bytes and the age of the oldest; null if unknown. Excludes lost products, which never arrive."""
    if backlog is None:
        return dict.fromkeys(_BACKLOG)
    values = (
        backlog.products,
        backlog.bytes,
        backlog.oldest_s(now),
        backlog.lost_products,
        backlog.lost_bytes,
        backlog.counting,
    )
    return dict(zip(_BACKLOG, values, strict=True))


def troubles_out(session: SiteSession | None) -> dict[str, str]:
    """By feed, a connected site's report on its disk."""
    if session is None or not session.connected:
        return {}
    return {feed.feed: feed.trouble for feed in session.progress.values() if feed.trouble}


def heartbeats_out(session: SiteSession | None) -> Mapping[str, Heartbeat]:
    """By feed, of a connected site that returns heartbeats: time of the newest that came out, and those pending."""
    if session is None or not session.connected:
        return {}
    return {
        feed.feed: Heartbeat(came_out=_moment(feed.heartbeat_us), waits_since=_moment(feed.heartbeat_waits_us))
        for feed in session.progress.values()
        if feed.heartbeat_us or feed.heartbeat_waits_us
    }


def own_clock_out(session: SiteSession | None) -> OwnClock | None:
    """A connected site's word on its clock."""
    if session is None or not session.connected or session.clock is None:
        return None
    clock = session.clock
    return OwnClock(
        synchronised=clock.synchronised,
        daemon=clock.daemon,
        error_ms=clock.error_us / 1000,
        estimated_error_ms=clock.estimated_error_us / 1000,
    )


def readings_out(session: SiteSession | None) -> dict[str, HostReading]:
    """By feed, how a connected site's host reads its group."""
    if session is None or not session.connected:
        return {}
    return {
        feed.feed: HostReading(**asdict(feed.reading), advice=advice(feed.feed, feed.reading))
        for feed in session.progress.values()
        if feed.reading is not None
    }


def _moment(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else from_us(microseconds)


_BACKLOG = ("behind_products", "behind_bytes", "behind_s", "lost_products", "lost_bytes", "behind_counting")
