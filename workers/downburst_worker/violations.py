"""Impossible values reported by sites and LDM peers: published each time, stored at intervals."""

from collections.abc import Awaitable, Callable, Sequence

from downburst.domain.events import Event, LdmViolated, SiteViolated
from downburst.foundation.bounds import SetAside, maybe, sentence, site_name
from downburst.foundation.clock import Clock
from downburst_worker.node import Line

WriteDown = Callable[..., Awaitable[None]]
"""Stores a fault: its sentence, and by name `site` and `next_step`."""


class ViolationReports:
    """Handles the node's reports of them."""

    def __init__(self, clock: Clock, *, say: Callable[[Event], None], write_down: WriteDown) -> None:
        self._clock = clock
        self._say = say
        self._write_down = write_down
        self._written_s: dict[str, float] = {}
        """By site or peer, the time of its last stored violation, by the monotonic clock."""

    async def hear(self, line: Line) -> None:
        """Handles one of them."""
        if line["event"] == "ldm-violation":
            await self._hear_peer(line)
        else:
            await self._hear_site(line)

    async def _hear_site(self, line: Line) -> None:
        event = SiteViolated(site_name(line["site"]), self._clock.now(), sentence(line["sentence"]))
        self._say(event)
        if self._is_due(event.site):
            await self._write_down(
                f"site {event.site} reports impossible values: {event.sentence}",
                site=event.site,
                next_step="check its receiver; no other site is affected",
            )

    async def _hear_peer(self, line: Line) -> None:
        peer, text = sentence(line["peer"]), sentence(line["sentence"])
        source, site = maybe(line.get("source"), sentence), maybe(line.get("site"), site_name)
        self._say(LdmViolated(peer, self._clock.now(), text, source=source, site=site))
        # A site's name has no blanks.
        if self._is_due(f"LDM {peer}"):
            await self._write_down(
                f"the LDM {peer} reports impossible values: {text}",
                site=site,
                next_step="check its program; no other peer is affected",
            )

    async def set_aside(self, entries: Sequence[SetAside]) -> None:
        """Entries of a line that do not count, attributed to the sites that they name."""
        # The first of each site: a line may hold any number.
        for entry in {entry.site: entry for entry in reversed(entries)}.values():
            text = sentence(entry.sentence)
            if entry.site is not None:
                self._say(SiteViolated(entry.site, self._clock.now(), text))
            if self._is_due(entry.site or ""):
                who = f" of site {entry.site}" if entry.site else ""
                await self._write_down(f"a report of the node{who} was ignored: {text}", site=entry.site)

    def _is_due(self, site: str) -> bool:
        now_s = self._clock.monotonic_s()
        self._written_s = {one: at_s for one, at_s in self._written_s.items() if now_s - at_s < WRITTEN_EVERY_S}
        if site in self._written_s:
            return False
        self._written_s[site] = now_s
        return True


WRITTEN_EVERY_S = 60.0
"""A site that reconnects immediately and repeats its violation would fill the ledger."""
