"""Who gives feeds and sites to senders: any node of the hub that is at work may, and the ledger lets one do it."""

import asyncio
import logging
from contextlib import suppress

from downburst.errors import AlreadyRunning, DownburstError, LedgerAway
from downburst.ledger import Ledger
from downburst.ledger_watch import LedgerWatch
from downburst.settings import Settings
from downburst_scheduler.placement_loop import PlacementLoop


async def keep_placing(settings: Settings) -> None:
    """Places while nobody else does, for good; on a ledger without a server there is nobody to place on."""
    if not settings.ledger_url.startswith("postgres"):
        await asyncio.Event().wait()
    while True:
        try:
            await _take_a_turn(settings)
        except DownburstError as error:
            _LOG.info("feeds are not placed from here for now: %s", error.sentence)
        except Exception:  # noqa: BLE001
            _LOG.exception("placing feeds failed; it is tried again")
        await asyncio.sleep(AGAIN_S)


async def _take_a_turn(settings: Settings) -> None:
    ledger = await asyncio.to_thread(Ledger.look_into, settings.url_of_ledger)
    try:
        while not await asyncio.to_thread(_may_hold, ledger):  # noqa: ASYNC110
            await asyncio.sleep(STAND_BY_S)
        _LOG.info("feeds and sites are given to senders from here")
        works = (LedgerWatch(ledger, say=_silent).run(), PlacementLoop(ledger).run())
        tasks = [asyncio.create_task(work) for work in works]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                await task
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        await asyncio.to_thread(ledger.close)


def _may_hold(ledger: Ledger) -> bool:
    with suppress(AlreadyRunning, LedgerAway):
        ledger.hold(ROLE)
        return True
    return False


async def _silent(_sentence: str, _next_step: str) -> None:
    """The process's own watch over the ledger has said it."""


_LOG = logging.getLogger("downburst.placement")
ROLE = "placement"
STAND_BY_S = 1.0
AGAIN_S = 1.0
