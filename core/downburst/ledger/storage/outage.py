"""Work that is tried again while the database is away, and given up in one sentence when that takes too long.

Shared by all threads of a ledger: while the database is away one of them at a time tries whether it is back, and
what is asked once it has been away for longer than the patience is answered at once, so that nothing piles up.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from downburst.foundation.errors import LedgerAway

T = TypeVar("T")


class ConnectionLost(Exception):
    """Nothing is known against the work: the connection under it failed. `failure` says so to people."""

    def __init__(self, failure: LedgerAway) -> None:
        super().__init__(failure.sentence)
        self.failure = failure


@dataclass(frozen=True, slots=True)
class Outage:
    """The database is away."""

    seconds: float
    sentence: str
    """Why, as far as is known."""


class Outages:
    """Whether the database answers, as the last work found out."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._lock = threading.Condition()
        self._since_s: float | None = None
        self._next_try_s = 0.0
        self._failure = LedgerAway("")
        self._ended = False

    @property
    def current(self) -> Outage | None:
        """The outage of now, if there is one."""
        with self._lock:
            if self._since_s is None:
                return None
            return Outage(self._now_s() - self._since_s, self._failure.sentence)

    def through(self, attempt: Callable[[], T], *, patience_s: float) -> T:
        """What `attempt` returns, tried again while it loses its connection; raises `LedgerAway` after a while."""
        tries = 0
        while True:
            self._wait_for_turn(patience_s, tries)
            try:
                result = attempt()
            except ConnectionLost as lost:
                self._lost(lost.failure)
                tries += 1
            except BaseException:
                # A refusal is an answer too.
                self._back()
                raise
            else:
                self._back()
                return result

    def end(self) -> None:
        """Lets nobody wait any more."""
        with self._lock:
            self._ended = True
            self._lock.notify_all()

    def _wait_for_turn(self, patience_s: float, tries: int) -> None:
        with self._lock:
            while self._since_s is not None:
                now_s = self._now_s()
                # The first connection may have been stale, the second was fresh.
                if tries > 1 and now_s - self._since_s >= patience_s:
                    raise self._refusal()
                if now_s >= self._next_try_s and not self._ended:
                    self._next_try_s = now_s + BETWEEN_TRIES_S
                    return
                if self._ended or now_s - self._since_s >= patience_s:
                    raise self._refusal()
                self._lock.wait(self._next_try_s - now_s)

    def _refusal(self) -> LedgerAway:
        """One for each who asked: an exception that is raised again and again gathers the calls of all of them."""
        return LedgerAway(self._failure.sentence, **self._failure.extra)

    def _lost(self, failure: LedgerAway) -> None:
        with self._lock:
            self._failure = failure
            if self._since_s is None:
                # The pool's other connections are as old as the one that failed: a fresh one is tried at once.
                self._since_s = self._next_try_s = self._now_s()
            else:
                self._next_try_s = self._now_s() + BETWEEN_TRIES_S

    def _back(self) -> None:
        with self._lock:
            if self._since_s is not None:
                self._since_s = None
                self._lock.notify_all()


BETWEEN_TRIES_S = 0.5
PATIENCE_S = 10.0
"""A restart of the server is sat out; who asks is not kept for longer."""
MEANWHILE = "products are still received and sent, receipts wait in the data directory, and settings can't be changed"
LEDGER_STEP = "restore the server; the hub continues by itself"
