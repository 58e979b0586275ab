"""Impossible values reported by sites and LDM peers, in bounded memory: one may send a thousand a minute."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from downburst.domain.events import LdmViolated, SiteViolated


@dataclass(frozen=True, slots=True)
class Violations:
    """The violations of one site or peer, in sequence."""

    since: datetime
    last_at: datetime
    sentence: str
    """The first of them: the others are usually consequences."""
    site: str | None = None
    """The site that the peer belongs to, if known."""


class ViolationWatch:
    """Remembers violations for the time that they are watched."""

    def __init__(self, *, watched: timedelta) -> None:
        self._watched = watched
        self._by_site: dict[str, Violations] = {}
        self._by_peer: dict[str, Violations] = {}

    def seen(self, event: SiteViolated | LdmViolated) -> None:
        """Records a violation."""
        if isinstance(event, LdmViolated):
            self._add(self._by_peer, event.peer, event)
        else:
            self._add(self._by_site, event.site, event)

    def by_site(self) -> dict[str, Violations]:
        """The violations of sites."""
        return dict(self._by_site)

    def by_peer(self) -> dict[str, Violations]:
        """The violations of LDM peers."""
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
