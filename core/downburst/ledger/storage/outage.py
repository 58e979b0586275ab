"""Retries of work while the database is away, ended by a one-sentence refusal after a time limit.

Shared by all threads of a ledger: during an outage one thread at a time tries the database. Once the outage has
lasted longer than the patience, further calls are refused immediately, so that nothing piles up.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from downburst.foundation.errors import LedgerAway

T = TypeVar("T")


class ConnectionLost(Exception):
    """The connection failed; the work itself is not at fault. `failure` is the message for users."""

    def __init__(self, failure: LedgerAway) -> None:
        super().__init__(failure.sentence)
        self.failure = failure


@dataclass(frozen=True, slots=True)
class Outage:
    """The database is away."""

    seconds: float
    sentence: str
    """The reason, as far as known."""


class Outages:
    """The availability of the database, as found by the last work."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._lock = threading.Condition()
        self._since_s: float | None = None
        self._next_try_s = 0.0
        self._failure = LedgerAway("")
        self._ended = False

    @property
    def current(self) -> Outage | None:
        """The current outage, if there is one."""
        with self._lock:
            if self._since_s is None:
                return None
            return Outage(self._now_s() - self._since_s, self._failure.sentence)

    def through(self, attempt: Callable[[], T], *, patience_s: float) -> T:
        """Runs `attempt`, again while it loses its connection; raises `LedgerAway` after `patience_s`."""
        tries = 0
        while True:
            self._wait_for_turn(patience_s, tries)
            try:
                result = attempt()
            except ConnectionLost as lost:
                self._lost(lost.failure)
                tries += 1
            except BaseException:
                # A refusal proves that the database answers.
                self._back()
                raise
            else:
                self._back()
                return result

    def end(self) -> None:
        """Ends all waiting."""
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
        """A new exception for each caller: a shared one would accumulate the tracebacks of all of them."""
        return LedgerAway(self._failure.sentence, **self._failure.extra)

    def _lost(self, failure: LedgerAway) -> None:
        with self._lock:
            self._failure = failure
            if self._since_s is None:
                # The pool's other connections are as old as the failed one, so a fresh one is tried immediately.
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
"""Longer than a restart of the server takes; callers do not wait longer."""
MEANWHILE = "products are still received and sent, receipts wait in the data directory, and settings can't be changed"
LEDGER_STEP = "restore the server; the hub continues by itself"
