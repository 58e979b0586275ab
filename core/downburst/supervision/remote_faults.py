"""Unexpected errors in a process beside the hub: reported to the hub over the bus, and kept there."""

import asyncio
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from downburst.bus.port import Bus
from downburst.domain.events import HandlerFailed
from downburst.supervision.faults import FAULTS, HOLDS, HandlerFault, cut
from downburst.supervision.tasks import keep, start


def start_telling(bus: Bus, process: str) -> asyncio.Task[None]:
    """Starts to report this process's unexpected errors to the hub; continues after errors of the reporting."""
    return start("faults.telling", keep("faults.telling", partial(tell_faults, bus, process)))


async def tell_faults(bus: Bus, process: str) -> None:
    """Reports each fault when its traceback is logged, at most once a minute for each handler, until cancelled.

    Recent faults are reported again each minute: the hub, or the brokers, may have been unavailable.
    """
    loop = asyncio.get_running_loop()

    # Errors occur in threads too.
    def heard(fault: HandlerFault) -> None:
        loop.call_soon_threadsafe(_tell, bus, process, fault)

    end = FAULTS.listen(heard)

    async def tell_again() -> None:
        for fault in FAULTS.recent(FAULTS.now()):
            _tell(bus, process, fault)

    try:
        await keep("faults.tell-the-hub", tell_again, every_s=AGAIN_S)
    finally:
        end()


def _tell(bus: Bus, process: str, fault: HandlerFault) -> None:
    bus.publish(HandlerFailed(process, fault.handler, fault.count, fault.last_at, fault.error, fault.what))


@dataclass(frozen=True, slots=True)
class _Heard:
    event: HandlerFailed
    heard_at: datetime


class RemoteFaults:
    """The last fault of each handler of each other process, bounded."""

    def __init__(self) -> None:
        self._heard: dict[tuple[str, str], _Heard] = {}

    def seen(self, event: HandlerFailed, now: datetime) -> None:
        """Records a fault; a repeated report of the same fault is not counted as a new one."""
        place = cut(event.process), cut(event.handler)
        known = self._heard.get(place)
        if known is not None and (known.event.count, known.event.at) == (event.count, event.at):
            return
        self._heard[place] = _Heard(event, now)
        while len(self._heard) > MOST:
            del self._heard[min(self._heard, key=lambda one: self._heard[one].heard_at)]

    def recent(self, now: datetime) -> list[HandlerFault]:
        """The faults of the last minutes by this hub's clock, by place: the span of an alarm."""
        self._heard = {place: one for place, one in self._heard.items() if now - one.heard_at < HOLDS}
        return [
            HandlerFault(
                handler, one.event.count, one.event.at, cut(one.event.error), cut(one.event.what), process=process
            )
            for (process, handler), one in sorted(self._heard.items(), key=lambda item: item[0])
        ]


AGAIN_S = 60.0
MOST = 1_000
"""The number of faults kept: a hub's processes times the handlers of one, times ten."""
