"""What sites and LDM peers said that can't be, bounded: who does so may do it a thousand times a minute."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from downburst.domain.events import LdmViolated, SiteViolated


@dataclass(frozen=True, slots=True)
class Violations:
    """Those of one site or peer, one after the other."""

    since: datetime
    last_at: datetime
    sentence: str
    """The first of them: the others tend to follow from it."""
    site: str | None = None
    """Whose LDM a peer is, where that is known."""


class ViolationWatch:
    """Remembers them for as long as they are watched."""

    def __init__(self, *, watched: timedelta) -> None:
        self._watched = watched
        self._by_site: dict[str, Violations] = {}
        self._by_peer: dict[str, Violations] = {}

    def seen(self, event: SiteViolated | LdmViolated) -> None:
        """Takes one in."""
        if isinstance(event, LdmViolated):
            self._add(self._by_peer, event.peer, event)
        else:
            self._add(self._by_site, event.site, event)

    def by_site(self) -> dict[str, Violations]:
        """Those of sites."""
        return dict(self._by_site)

    def by_peer(self) -> dict[str, Violations]:
        """Those of LDM peers."""
        return dict(self._by_peer)

    def _add(self, known_by: dict[str, Violations], who: str, event: SiteViolated | LdmViolated) -> None:
        known = known_by.get(who)
        goes_on = known is not None and event.at - known.last_at < self._watched
        if known is not None and goes_on:
            known_by[who] = replace(known, last_at=max(known.last_at, event.at))
        else:
            known_by[who] = Violations(event.at, event.at, event.sentence, event.site)
        while len(known_by) > MOST_KNOWN:
            del known_by[min(known_by, key=lambda one: known_by[one].last_at)]


MOST_KNOWN = 10_000
