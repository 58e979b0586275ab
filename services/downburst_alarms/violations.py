"""What sites said that can't be, by site and bounded: a site that does so may do it a thousand times a minute."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from downburst.events import SiteViolated


@dataclass(frozen=True, slots=True)
class Violations:
    """Those of one site, one after the other."""

    since: datetime
    last_at: datetime
    sentence: str
    """The first of them: the others tend to follow from it."""


class ViolationWatch:
    """Remembers them for as long as they are watched."""

    def __init__(self, *, watched: timedelta) -> None:
        self._watched = watched
        self._by_site: dict[str, Violations] = {}

    def seen(self, event: SiteViolated) -> None:
        """Takes one in."""
        known = self._by_site.get(event.site)
        goes_on = known is not None and event.at - known.last_at < self._watched
        if known is not None and goes_on:
            self._by_site[event.site] = replace(known, last_at=max(known.last_at, event.at))
        else:
            self._by_site[event.site] = Violations(event.at, event.at, event.sentence)
        while len(self._by_site) > MOST_SITES:
            del self._by_site[min(self._by_site, key=lambda site: self._by_site[site].last_at)]

    def by_site(self) -> dict[str, Violations]:
        """All of them."""
        return dict(self._by_site)


MOST_SITES = 10_000
