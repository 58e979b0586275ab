"""Watches the ledger: outages of its server, the hub's hold on it, and damage to its file."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from downburst.foundation.errors import AlreadyRunning, DownburstError, LedgerAway
from downburst.ledger import Ledger
from downburst.ledger.storage.databases import file_of
from downburst.ledger.storage.outage import LEDGER_STEP, MEANWHILE
from downburst.ledger.storage.soundness import break_seal, examine, flaw, seal
from downburst.settings.hub import Settings
from downburst.supervision import keep


class LedgerWatch:
    """Checks every few seconds; ends only by `AlreadyRunning`, when another hub has taken over the ledger."""

    def __init__(self, ledger: Ledger, *, say: Callable[[str, str], Awaitable[None]], every_s: float = 2.0) -> None:
        self._ledger = ledger
        self._say = say
        self._every_s = every_s
        self._away_s: float | None = None

    async def run(self) -> None:
        """Checks without end."""
        await asyncio.sleep(self._every_s)
        await keep("ledger.watch", self.look, every_s=self._every_s, refused=_goes_on)

    async def look(self) -> None:
        """Queries the database, and reports changes since the last check."""
        with suppress(LedgerAway):
            await self._ledger.renew_hold()
            await self._ledger.read(lambda tx: tx.feeds.all(), patience_s=0)
        outage = self._ledger.outage
        if outage is not None:
            if self._away_s is None:
                await self._say(f"{outage.sentence}; {MEANWHILE}", LEDGER_STEP)
            self._away_s = outage.seconds
        elif self._away_s is not None:
            away_s, self._away_s = self._away_s, None
            await self._say(f"the ledger is back after {away_s:.0f} s; counts of that time are being stored", "")


@asynccontextmanager
async def examined(url: str, node_dir: Path) -> AsyncIterator[list[str]]:
    """Guards an open ledger: refuses a damaged one, yields warnings for operators.

    A ledger on a server is left to its server.
    """
    file = file_of(url)
    if file is None:
        yield []
        return
    # The node's authority is created at the first start.
    is_expected = (node_dir / "tls" / "ca.pem").exists()
    doubts = await asyncio.to_thread(examine, file, is_expected=is_expected)
    break_seal(file)
    yield doubts
    await asyncio.to_thread(seal, file)


async def read_through(settings: Settings, say: Callable[[str], Awaitable[None]]) -> None:
    """Has SQLite check the ledger at the interval of the logs' checks; reports each finding once.

    The first check is immediate: a start checks for some seconds only, and not at all with an intact seal.
    """
    file = file_of(settings.url_of_ledger)
    if file is None:
        return
    told: set[str] = set()
    every_s = settings.scrub_hours * 3600

    async def look() -> None:
        found = await asyncio.to_thread(flaw, file)
        if found is not None and found not in told:
            told.add(found)
            await say(found)

    await keep("ledger.scrub", look, every_s=max(every_s, SHORTEST_S))


async def _goes_on(error: DownburstError) -> None:
    if isinstance(error, AlreadyRunning):
        raise error
    _LOG.warning("the ledger can't be read: %s", error.sentence)


SHORTEST_S = 1.0
_LOG = logging.getLogger("downburst.ledger")
