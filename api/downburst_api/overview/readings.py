"""Readings of the ledger: what was read last stands in while the database is away, and where reading is dear."""

import asyncio
from collections.abc import Callable
from time import perf_counter
from typing import Generic, TypeVar

from downburst.foundation.clock import Clock
from downburst.foundation.errors import LedgerAway
from downburst.ledger import Ledger, Transaction
from downburst.ledger.storage.outage import PATIENCE_S
from downburst.supervision import start

T = TypeVar("T")


class Remembered(Generic[T]):
    """Fresh, or what was read last while the database is away: nobody waits for it then."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._known: T | None = None

    async def read(self, work: Callable[[Transaction], T]) -> T:
        """What `work` reads, or has read; raises `LedgerAway` as long as it has read nothing."""
        known = self._known
        try:
            fresh = await self._ledger.read(work, patience_s=PATIENCE_S if known is None else 0.0)
        except LedgerAway:
            if known is None:
                raise
            return known
        self._known = fresh
        return fresh


class Paced(Generic[T]):
    """Fresh while reading is cheap. On a hub so large that it is not, some seconds old, and nobody waits for it."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger = Remembered[T](ledger)
        self._clock = clock
        self._known: T | None = None
        self._cost_s = 0.0
        self._due_s = 0.0
        self._reading: asyncio.Task[T] | None = None

    async def read(self, work: Callable[[Transaction], T]) -> T:
        """What `work` reads, or has read a while ago."""
        if self._reading is None and (self._known is None or self._clock.monotonic_s() >= self._due_s):
            self._reading = start("api.paced-reading", self._read(work))
        reading = self._reading
        if self._known is not None and (reading is None or (self._cost_s >= CHEAP_S and not reading.done())):
            return self._known
        assert reading is not None  # noqa: S101 - nothing is known, or it is being read
        try:
            # Whoever goes away while waiting does not end what others wait for.
            return await asyncio.shield(reading)
        finally:
            if reading.done() and self._reading is reading:
                self._reading = None

    async def _read(self, work: Callable[[Transaction], T]) -> T:
        begun_s = perf_counter()
        known = self._known = await self._ledger.read(work)
        self._cost_s = perf_counter() - begun_s
        self._due_s = self._clock.monotonic_s() + (0.0 if self._cost_s < CHEAP_S else PAUSE_TO_COST * self._cost_s)
        return known


CHEAP_S = 0.05
PAUSE_TO_COST = 10
"""Reading takes a tenth of a processor at most."""
