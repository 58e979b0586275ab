"""Places feeds and sites on senders: any active node of the hub may, and the ledger admits one at a time."""

import asyncio
import logging
from contextlib import suppress
from functools import partial

from downburst.foundation.errors import AlreadyRunning, DownburstError, LedgerAway
from downburst.ledger import Ledger
from downburst.settings.hub import Settings
from downburst.supervision import keep, side_by_side
from downburst_app.wiring.ledger_watch import LedgerWatch
from downburst_scheduler.placement_loop import PlacementLoop


async def keep_placing(settings: Settings) -> None:
    """Places feeds and sites while no other process does; a ledger without a server has no senders to place on."""
    if not settings.ledger_url.startswith("postgres"):
        await asyncio.Event().wait()
    await keep("placement.turn", partial(_take_a_turn, settings), every_s=AGAIN_S, refused=_log)


async def _log(error: DownburstError) -> None:
    _LOG.info("feeds are not placed from here for now: %s", error.sentence)


async def _take_a_turn(settings: Settings) -> None:
    ledger = await asyncio.to_thread(Ledger.look_into, settings.url_of_ledger)
    try:
        while not await asyncio.to_thread(_may_hold, ledger):  # noqa: ASYNC110
            await asyncio.sleep(STAND_BY_S)
        _LOG.info("feeds and sites are given to senders from here")
        await side_by_side(LedgerWatch(ledger, say=_silent).run(), PlacementLoop(ledger).run())
    finally:
        await asyncio.to_thread(ledger.close)


def _may_hold(ledger: Ledger) -> bool:
    with suppress(AlreadyRunning, LedgerAway):
        ledger.hold(ROLE)
        return True
    return False


async def _silent(_sentence: str, _next_step: str) -> None:
    """Nothing: the process's own watch over the ledger has reported it."""


_LOG = logging.getLogger("downburst.placement")
ROLE = "placement"
STAND_BY_S = 1.0
AGAIN_S = 1.0
