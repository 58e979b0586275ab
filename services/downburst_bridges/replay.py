"""Holes of a source filled from a Global Replay service: what brokers dropped is judged as if they had sent it."""

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial

from downburst.domain.bridges import Hole, Wis2Source
from downburst.foundation.errors import DownburstError
from downburst.ledger import Ledger, Transaction
from downburst.supervision import keep
from downburst.wis2.replay import Page, Walk, fits, items_url, prefixes_of, read_page
from downburst_bridges.downloads import OfHub
from downburst_bridges.intake import Heard, Taken, take
from downburst_bridges.web import Web


class Replayer:
    """The replay service of one source. Open holes are in the ledger, so those of earlier runs are filled too."""

    def __init__(self, source: Wis2Source, ledger: Ledger, hub: OfHub, took: Callable[[Taken], None]) -> None:
        self._source, self._ledger, self._clock, self._ca_file = source, ledger, hub.clock, hub.ca_file
        self._took = took
        self._more = asyncio.Event()
        self._walks: dict[int, list[Walk]] = {}
        """By hole, the pages that are still to come: an attempt goes on where the last one failed."""
        self._ended: set[int] = set()
        """Holes of which the service has no more."""
        self._pause_s = FIRST_PAUSE_S

    def look(self) -> None:
        """Has the ledger looked at, as there is a hole more."""
        self._more.set()

    async def run(self) -> None:
        """Fills holes until cancelled; a source without a service has them shown alone."""
        if self._source.replay_url is None:
            return
        web = Web(allows_private=self._source.may_ask_private, ca_file=self._ca_file)
        try:
            while True:
                self._more.clear()
                await keep("bridges.replay", partial(self._fill_due, web))
                with suppress(TimeoutError):
                    async with asyncio.timeout(await self._wait_s()):
                        await self._more.wait()
        finally:
            await web.close()

    async def _fill_due(self, web: Web) -> None:
        """Fills the holes of which the service has everything by now, the oldest first."""
        for hole in await self._open():
            if self._clock.now() >= hole.to_at + SETTLE:
                await self._fill_one(web, hole)

    async def _wait_s(self) -> float:
        """The time to the next hole that is due."""
        waits = [(hole.to_at + SETTLE - self._clock.now()).total_seconds() for hole in await self._open()]
        return max(MIN_WAIT_S, min([LONGEST_WAIT_S, *waits]))

    async def _open(self) -> list[Hole]:
        def found(tx: Transaction) -> list[Hole]:
            return tx.wis2.holes.of(self._source.name, open_only=True)[::-1]

        return [one for one in await self._ledger.read(found) if one.number not in self._ended]

    async def _fill_one(self, web: Web, hole: Hole) -> None:
        number, url = hole.number or 0, self._source.replay_url or ""
        kept_from = self._clock.now() - KEPT
        if hole.to_at < kept_from:
            await self._end(number, "replay services keep 24 hours: nothing is left of this time")
            return
        try:
            await self._ask(web, number, max(hole.from_at - MARGIN, kept_from), hole.to_at + MARGIN)
        except DownburstError as error:
            await self._fail(number, error.sentence)
            return
        self._pause_s = FIRST_PAUSE_S
        if hole.from_at < kept_from:
            await self._end(number, f"filled from {kept_from:%Y-%m-%d %H:%M} UTC on: replay services keep 24 hours")
            return
        _LOG.info("the hole of %s from %s to %s is filled from %s", hole.source, hole.from_at, hole.to_at, url)
        await self._ledger.write(lambda tx: tx.wis2.holes.filled(number, url))

    async def _ask(self, web: Web, number: int, begin: datetime, end: datetime) -> None:
        """Takes all pages of a hole."""
        url = items_url(self._source.replay_url or "")
        walks = self._walks.setdefault(
            number, [Walk(prefix, begin, end) for prefix in prefixes_of(self._source.filters)]
        )
        pages = 0
        while walks:
            if pages >= MOST_PAGES:
                raise TooMuch(f"more than {MOST_PAGES} pages are to be replayed: the next attempt goes on from there")
            page = read_page(await web.get(url, walks[0].parameters))
            await self._take(page)
            pages += 1
            walks[0].take(page)
            if walks[0].is_over:
                walks.pop(0)
        del self._walks[number]

    async def _take(self, page: Page) -> None:
        now, source = self._clock.now(), self._source
        heard = [
            Heard(source.replay_url or "", one.topic, one.payload, now)
            for one in page.notifications
            if fits(one.topic, source.filters)
        ]
        for first in range(0, len(heard), TOGETHER):
            judge = partial(take, source=source, heard=heard[first : first + TOGETHER])
            self._took(await self._ledger.write(judge))

    async def _end(self, number: int, sentence: str) -> None:
        self._ended.add(number)
        self._walks.pop(number, None)
        await self._ledger.write(lambda tx: tx.wis2.holes.failed(number, sentence))

    async def _fail(self, number: int, sentence: str) -> None:
        """Leaves the service alone for a while, and longer after each failure."""
        _LOG.warning("the replay service of %s has not filled a hole: %s", self._source.name, sentence)
        await self._ledger.write(lambda tx: tx.wis2.holes.failed(number, sentence))
        await asyncio.sleep(self._pause_s * random.uniform(0.5, 1.0))  # noqa: S311
        self._pause_s = min(self._pause_s * 2, LONGEST_PAUSE_S)


class TooMuch(DownburstError):
    """One attempt is not enough for a hole."""


_LOG = logging.getLogger(__name__)
TOGETHER = 200
MOST_PAGES = 600
KEPT = timedelta(hours=24)
"""Notifications that a service keeps (wmo-im/wis2-grep, `WIS2_GREP_MESSAGE_RETENTION_HOURS`)."""
MARGIN = timedelta(minutes=10)
"""Notifications come minutes after their publication, by a cache and a broker."""
SETTLE = timedelta(seconds=60)
"""The time after which a service has what was published."""
FIRST_PAUSE_S = 30.0
LONGEST_PAUSE_S = 1_800.0
MIN_WAIT_S = 0.05
LONGEST_WAIT_S = 600.0
