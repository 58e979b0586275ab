"""Readings of the ledger: the last one is used while the database is away, or while reading is expensive."""

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
    """A fresh reading, or the last one without a wait while the database is away."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._known: T | None = None

    async def read(self, work: Callable[[Transaction], T]) -> T:
        """The fresh or last result of `work`; raises `LedgerAway` until `work` has succeeded once."""
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
    """A fresh reading while reading is cheap; on a large hub one some seconds old, without a wait."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger = Remembered[T](ledger)
        self._clock = clock
        self._known: T | None = None
        self._cost_s = 0.0
        self._due_s = 0.0
        self._reading: asyncio.Task[T] | None = None

    async def read(self, work: Callable[[Transaction], T]) -> T:
        """The result of `work`, fresh or recent."""
        if self._reading is None and (self._known is None or self._clock.monotonic_s() >= self._due_s):
            self._reading = start("api.paced-reading", self._read(work))
        reading = self._reading
        if self._known is not None and (reading is None or (self._cost_s >= CHEAP_S and not reading.done())):
            return self._known
        assert reading is not None  # noqa: S101 - nothing is known, or it is being read
        try:
            # A cancelled caller does not cancel the reading for the others.
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
"""Readings take a tenth of a processor at most."""
