"""Parts of a hub as processes of their own: the scheduler and the latency service, each once at work.

The ledger chooses: who holds the role there works, others stand by and take over when it is gone.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from functools import partial

from downburst.bus import Bus
from downburst.clock import SystemClock
from downburst.errors import AlreadyRunning, BadSettings, Failure, LedgerAway
from downburst.events import FaultSeen
from downburst.kafka.batches import BatchReader
from downburst.kafka.bus import KafkaBus
from downburst.ledger import Ledger
from downburst.ledger_watch import LedgerWatch
from downburst.model import Fault
from downburst.settings import Settings
from downburst.wiring import cancelled, stopped_by_signals
from downburst_latency.service import LatencyService
from downburst_scheduler.loop import SchedulerLoop


async def serve_scheduler(settings: Settings) -> None:
    """Runs the scheduler of a hub beside it until SIGTERM or SIGINT; while another one does, stands by."""
    if not settings.scheduler.apart:
        raise BadSettings(
            "the hub runs its scheduler itself; to run one beside it set scheduler.apart = true, for the hub as well"
        )
    await _serve(settings, "scheduler", _schedule)


async def serve_latency(settings: Settings) -> None:
    """Brings receipts into the ledger and keeps their history, beside the hub; while another one does, stands by."""
    if not settings.latency_apart:
        raise BadSettings(
            "the hub runs its latency service itself; to run one beside it set latency_apart = true, for the hub too"
        )
    await _serve(settings, "latency service", _keep_latencies)


class _Part:
    """What a part that runs by itself is given."""

    def __init__(self, settings: Settings, ledger: Ledger, bus: Bus) -> None:
        self.settings = settings
        self.ledger = ledger
        self.bus = bus

    async def say(self, sentence: str, next_step: str = "") -> None:
        """Tells operators of a fault."""
        fault = Fault(SystemClock().now(), sentence, next_step=next_step)
        _LOG.warning("%s", sentence)
        with suppress(Failure):
            await self.ledger.write(lambda book: book.faults.add(fault), patience_s=0)
        self.bus.publish(FaultSeen(fault.at, sentence, next_step=next_step))


Work = Callable[[_Part], Awaitable[None]]


async def _serve(settings: Settings, role: str, work: Work) -> None:
    # Signals count from here on, while servers are waited for too: the first process of a container has no other end.
    stop = asyncio.create_task(stopped_by_signals().wait(), name="stop")
    working = asyncio.create_task(_with_servers(settings, role, work), name=role)
    await asyncio.wait((stop, working), return_when=asyncio.FIRST_COMPLETED)
    if working.done():
        await working
    await cancelled(stop, working)
    _LOG.info("stopped")


async def _with_servers(settings: Settings, role: str, work: Work) -> None:
    async with AsyncExitStack() as stack:
        ledger = Ledger.look_into(settings.url_of_ledger)
        stack.callback(ledger.close)
        bus = await KafkaBus(settings.kafka).open()
        stack.callback(bus.close)
        await _take_turns(_Part(settings, ledger, bus), role, work)


async def _take_turns(part: _Part, role: str, work: Work) -> None:
    """Stands by until nobody else has the role, then works until somebody else took it."""
    stands_by = False
    while not await asyncio.to_thread(_may_hold, part.ledger, role):
        if not stands_by:
            _LOG.info("another %s is at work; this one stands by", role)
        stands_by = True
        await asyncio.sleep(STAND_BY_S)
    _LOG.info("at work as %s", role)
    watch = asyncio.create_task(LedgerWatch(part.ledger, say=part.say).run(), name="ledger watch")
    working = asyncio.create_task(_again_and_again(part, work), name=role)
    try:
        done, _ = await asyncio.wait((watch, working), return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            await task
    finally:
        await cancelled(watch, working)


async def _again_and_again(part: _Part, work: Work) -> None:
    """A part that has begun goes on: servers that are away come back."""
    while True:
        try:
            await work(part)
        except AlreadyRunning:
            raise
        except Failure as error:
            _LOG.warning("waits: %s", error.sentence)
        await asyncio.sleep(AGAIN_S)


def _may_hold(ledger: Ledger, role: str) -> bool:
    with suppress(AlreadyRunning, LedgerAway):
        ledger.hold(role)
        return True
    return False


async def _schedule(part: _Part) -> None:
    await SchedulerLoop(part.bus, part.ledger, part.settings).run()


async def _keep_latencies(part: _Part) -> None:
    latency = LatencyService(part.ledger, bus=part.bus)
    reader = await BatchReader(part.settings.kafka).open()
    works = (
        partial(reader.run, latency.load_text, part.say),
        partial(latency.keep_history, days=part.settings.latency_days),
    )
    tasks = [asyncio.create_task(work()) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            await task
    finally:
        await cancelled(*tasks)
        reader.close()


_LOG = logging.getLogger("downburst.hub")
STAND_BY_S = 1.0
AGAIN_S = 5.0
