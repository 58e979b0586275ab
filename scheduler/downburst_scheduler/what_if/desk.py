"""Questions about other conditions, from the api to the scheduler: in this process, or over the bus."""

import asyncio
import time
from collections.abc import Callable, Mapping

from downburst.bus.port import Bus
from downburst.domain.plans import OtherConditions, WhatIf
from downburst.foundation.errors import TooMany
from downburst.parts.names import Part
from downburst.parts.questions import Answer, Remote, answers_of
from downburst_scheduler.loop import SchedulerLoop
from downburst_scheduler.what_if.trying import Inputs, try_other


class WhatIfDesk:
    """Tries other conditions on the live planner's inputs, one question at a time and beside its own work.

    A search of flips ends early once another question waits: a slider that moves on asks anew.
    """

    def __init__(self, loop: SchedulerLoop, now_s: Callable[[], float] = time.monotonic) -> None:
        self._loop = loop
        self._now_s = now_s
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def what_if(self, feed: str, other: OtherConditions, search: bool) -> WhatIf:  # noqa: FBT001
        """The answer for one feed, with its flips if they are searched.

        Raises `NothingToCompare` if it has no sites or products.
        """
        await self._take_turn()
        try:
            question, busiest = self._loop.asked_about(feed)
            may_search = self._search() if search else _never
            return await asyncio.to_thread(try_other, feed, Inputs(question, *busiest), other, may_search=may_search)
        finally:
            self._turn.release()

    async def _take_turn(self) -> None:
        self._waiting += 1
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._turn.acquire()
        except TimeoutError:
            raise TooMany(
                "the scheduler is busy with other questions about conditions; ask again in a few seconds",
                retry_after_s=PATIENCE_S,
            ) from None
        finally:
            self._waiting -= 1

    def _search(self) -> Callable[[], bool]:
        began_s = self._now_s()
        return lambda: self._now_s() - began_s < (LEAST_SEARCH_S if self._waiting else SEARCH_S)


class RemoteWhatIf:
    """The scheduler in a process of its own, for the api."""

    def __init__(self, bus: Bus) -> None:
        self._scheduler = Remote(bus, Part.SCHEDULER)

    async def what_if(self, feed: str, other: OtherConditions, search: bool) -> WhatIf:  # noqa: FBT001
        """The answer for one feed; raises `PartAway` if the scheduler is silent."""
        return await self._scheduler.ask(WhatIfDesk.what_if, feed=feed, other=other, search=search)


def answers_of_desk(desk: WhatIfDesk) -> Mapping[str, Answer]:
    """The scheduler's answers to the api."""
    return answers_of(desk, WhatIfDesk.what_if)


def _never() -> bool:
    return False


SEARCH_S, LEAST_SEARCH_S = 6.0, 0.5
"""The time for flips, alone and with other questions waiting; a choice alone takes a fraction of a second."""
PATIENCE_S = 15
