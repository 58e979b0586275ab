"""Says when the ledger's server went away and when it is back, once each, and keeps the hub's hold on the ledger."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from downburst.errors import AlreadyRunning, DownburstError, LedgerAway
from downburst.ledger import Ledger
from downburst.supervision import keep


class LedgerWatch:
    """Looks every few seconds; ends only by `AlreadyRunning`, when another hub took the ledger over."""

    def __init__(self, ledger: Ledger, *, say: Callable[[str, str], Awaitable[None]], every_s: float = 2.0) -> None:
        self._ledger = ledger
        self._say = say
        self._every_s = every_s
        self._away_s: float | None = None

    async def run(self) -> None:
        """Looks for good."""
        await asyncio.sleep(self._every_s)
        await keep("ledger.watch", self.look, every_s=self._every_s, refused=_goes_on)

    async def look(self) -> None:
        """Asks the database, and says what changed since the last look."""
        with suppress(LedgerAway):
            await self._ledger.renew_hold()
            await self._ledger.read(lambda book: book.feeds.all(), patience_s=0)
        outage = self._ledger.outage
        if outage is not None:
            if self._away_s is None:
                await self._say(f"{outage.sentence}; {MEANWHILE}", "bring the server back; the hub goes on by itself")
            self._away_s = outage.seconds
        elif self._away_s is not None:
            away_s, self._away_s = self._away_s, None
            await self._say(f"the ledger is back after {away_s:.0f} s; what was counted meanwhile is brought in", "")


async def _goes_on(error: DownburstError) -> None:
    if isinstance(error, AlreadyRunning):
        raise error
    _LOG.warning("the ledger can't be looked at: %s", error.sentence)


_LOG = logging.getLogger("downburst.ledger")
MEANWHILE = (
    "products are taken in and sent meanwhile, receipts wait in the data directory, and settings can't be changed"
)
