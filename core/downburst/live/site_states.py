"""The state of a site: determined by one function for every page, command, route and alarm."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from downburst.domain.sites import Site
    from downburst.live.state import LdmLink, SiteSession


class SiteState(StrEnum):
    """Words for programs; names are promises."""

    REMOVED = "removed"
    """It may not connect."""
    NEVER_ENROLLED = "never-enrolled"
    """None of its receivers ever had a credential."""
    NEVER_CONNECTED = "never-connected"
    """A receiver was enrolled, and none has received anything yet."""
    CONNECTED = "connected"
    STANDS_BY = "stands-by"
    """It is connected, and receives its feeds from another hub."""
    AWAY = "away"


@dataclass(frozen=True, slots=True)
class SiteStanding:
    """The state of a site, its beginning and its reason."""

    state: SiteState
    since: datetime | None = None
    """None: unknown, as for events before the start of the hub."""
    reason: str | None = None

    @property
    def connected(self) -> bool:
        """True if there is a connection."""
        return self.state in (SiteState.CONNECTED, SiteState.STANDS_BY)

    @property
    def words(self) -> str:
        """The state for users: `away since 2026-01-31 06:00:00 UTC: the site ended`."""
        words = _WORDS[self.state]
        if self.since is not None and self.state in (SiteState.AWAY, SiteState.CONNECTED, SiteState.STANDS_BY):
            words += f" since {self.since:%Y-%m-%d %H:%M:%S} UTC"
        return words + (f": {self.reason}" if self.reason and not self.connected else "")


def standing(
    site: "Site",
    session: "SiteSession | None",
    by_ldm: "LdmLink | None" = None,
    *,
    enrolled: bool,
    last_heard: datetime | None = None,
    ever_stood: bool = False,
) -> SiteStanding:
    """The state of a site.

    `enrolled`: a receiver of it ever had a credential. `ever_stood`: the hub knows an earlier position of it in a
    feed; `last_heard`: time of the last receipt. Both survive a restart of the hub, and sessions do not.
    """
    if not site.active:
        return SiteStanding(SiteState.REMOVED)
    if site.ldm_host is not None:
        return _by_ldm(by_ldm)
    if session is not None and session.connected:
        return SiteStanding(SiteState.STANDS_BY if session.stand_by else SiteState.CONNECTED, session.since)
    if session is not None:
        return SiteStanding(SiteState.AWAY, session.since, session.reason)
    if ever_stood:
        return SiteStanding(SiteState.AWAY, last_heard)
    return SiteStanding(SiteState.NEVER_CONNECTED if enrolled else SiteState.NEVER_ENROLLED)


def _by_ldm(link: "LdmLink | None") -> SiteStanding:
    if link is None:
        return SiteStanding(SiteState.NEVER_CONNECTED)
    return SiteStanding(SiteState.CONNECTED if link.connections else SiteState.AWAY, link.since, link.reason)


_WORDS = {
    SiteState.REMOVED: "removed",
    SiteState.NEVER_ENROLLED: "never enrolled",
    SiteState.NEVER_CONNECTED: "enrolled, never connected",
    SiteState.CONNECTED: "connected",
    SiteState.STANDS_BY: "stands by",
    SiteState.AWAY: "away",
}
