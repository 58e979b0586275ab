"""Words to requesters at their addresses: one at a time for each address, repeated with growing pauses, bounded.

Whatever is given up stays in the ledger, where its requester may ask for it.
"""

import asyncio
import logging
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from downburst.foundation.clock import Clock
from downburst.ledger import Ledger
from downburst.supervision import attempt, start

Post = Callable[[str, str, bytes], Awaitable[str]]
"""Sends a message to an address, under a name; returns the reason if it was not taken."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """A message for an address."""

    reply_to: str
    name: str
    body: bytes
    number: int | None = None
    """In the ledger; None: the answer to a question, which is sent once or repeated, and never stored."""
    tries: int = 0
    not_before_s: float = 0.0


class Delivery:
    """The queues of all addresses."""

    def __init__(self, ledger: Ledger, clock: Clock, post: Post, share: Callable[[], float] = random.random) -> None:
        self._ledger = ledger
        self._clock = clock
        self._post = post
        self._share = share
        self._queues: defaultdict[str, list[Parcel]] = defaultdict(list)
        self._at_work: dict[str, asyncio.Task[None]] = {}
        self._wake = asyncio.Event()

    def __len__(self) -> int:
        return sum(len(queue) for queue in self._queues.values())

    def add(self, parcel: Parcel) -> None:
        """Queues a message, for after the acknowledgment of its request; drops it if the queue is full."""
        if parcel.number is not None and any(parcel.number == one.number for one in self._queues[parcel.reply_to]):
            return
        if len(self) >= QUEUE_MAX or len(self._queues[parcel.reply_to]) >= QUEUE_OF_ADDRESS_MAX:
            _LOG.warning("a %s for %s is not sent, as too many wait; it can be queried", parcel.name, parcel.reply_to)
            return
        not_before_s = self._clock.monotonic_s() + ACKNOWLEDGE_S
        self._queues[parcel.reply_to].append(_later(parcel, parcel.tries, not_before_s))
        self._wake.set()

    async def run(self) -> None:
        """Delivers until cancelled."""
        try:
            while True:
                self._wake.clear()
                pause_s = self.tick()
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause_s):
                        await self._wake.wait()
        finally:
            for task in list(self._at_work.values()):
                task.cancel()
            await asyncio.gather(*self._at_work.values(), return_exceptions=True)

    def tick(self) -> float:
        """Starts what is due; the seconds until more is."""
        now_s, next_s = self._clock.monotonic_s(), IDLE_S
        for address, queue in list(self._queues.items()):
            if not queue:
                del self._queues[address]
            elif address not in self._at_work and len(self._at_work) < AT_ONCE:
                if queue[0].not_before_s <= now_s:
                    self._begin(address, queue[0])
                else:
                    next_s = min(next_s, queue[0].not_before_s - now_s)
        return next_s

    async def idle(self) -> None:
        """Waits for attempts under way."""
        while self._at_work:
            await asyncio.gather(*self._at_work.values())

    def _begin(self, address: str, parcel: Parcel) -> None:
        work = attempt("circuits.nsi-reply", lambda: self._deliver(address, parcel), what=parcel.name)
        task = start("circuits.nsi-reply", work)
        self._at_work[address] = task
        task.add_done_callback(lambda _: self._finished(address))

    def _finished(self, address: str) -> None:
        self._at_work.pop(address, None)
        self._wake.set()

    async def _deliver(self, address: str, parcel: Parcel) -> None:
        queue = self._queues[address]
        tries = parcel.tries + 1
        # An unknown error leaves it in the queue for later.
        queue[0] = _later(parcel, tries, self._clock.monotonic_s() + LONGEST_PAUSE_S)
        problem = await self._post(address, parcel.name, parcel.body)
        is_done = not problem or tries >= TRIES_MAX
        if is_done:
            queue.pop(0)
        else:
            queue[0] = _later(parcel, tries, self._clock.monotonic_s() + self._pause_s(tries))
        if problem:
            way = "given up, it can be queried" if is_done else "tried again"
            _LOG.warning("a %s was not taken by %s and is %s: %s", parcel.name, address, way, problem)
        if (number := parcel.number) is not None:
            await self._ledger.write(lambda tx: tx.planning.connections.tried(number, tries=tries, done=is_done))

    def _pause_s(self, tries: int) -> float:
        longest_s: float = min(FIRST_PAUSE_S * 2 ** min(tries - 1, 12), LONGEST_PAUSE_S)
        return longest_s * (0.5 + 0.5 * min(max(self._share(), 0.0), 1.0))


def _later(parcel: Parcel, tries: int, not_before_s: float) -> Parcel:
    return Parcel(parcel.reply_to, parcel.name, parcel.body, parcel.number, tries, not_before_s)


_LOG = logging.getLogger("downburst.circuits")
ACKNOWLEDGE_S = 0.05
"""The acknowledgment is on its way before the callback."""
FIRST_PAUSE_S, LONGEST_PAUSE_S, IDLE_S = 1.0, 60.0, 30.0
TRIES_MAX = 10
"""Within some six minutes."""
QUEUE_MAX, QUEUE_OF_ADDRESS_MAX, AT_ONCE = 5_000, 500, 8
