"""Unexpected errors, counted by handler: one record for a process, as there is one log."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from downburst.foundation.clock import Clock, SystemClock


@dataclass(frozen=True, slots=True)
class HandlerFault:
    """Unexpected errors of a handler: the count since the start of the process, and the last one."""

    handler: str
    count: int
    last_at: datetime
    error: str
    """Type and text of the last exception, cut to one line."""
    what: str
    """A description of the item that was set aside the last time."""
    process: str = ""
    """The name of a process beside the hub; empty: this process."""

    @property
    def place(self) -> str:
        """The handler, with its process if that is a different one."""
        return f"{self.handler} of the {self.process}" if self.process else self.handler

    @property
    def sentence(self) -> str:
        """A description for users."""
        about = f" ({self.what})" if self.what else ""
        times = "once" if self.count == 1 else f"{self.count} times"
        return (
            f"{self.place} met an unexpected error, {times} since the start, "
            f"last {self.last_at:%H:%M:%S} UTC{about}: {self.error}"
        )


class Faults:
    """A bounded record: handler names are fixed in the code, and only the last fault of each is kept."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        # Errors occur in threads too.
        self._lock = threading.Lock()
        self._by_handler: dict[str, HandlerFault] = {}
        self._logged_at: dict[str, datetime] = {}
        self._listeners: list[Callable[[HandlerFault], None]] = []

    def caught(self, handler: str, error: BaseException, what: str = "") -> HandlerFault:
        """Counts an error and logs its traceback, at most once a minute for each handler."""
        now = self._clock.now()
        with self._lock:
            before = self._by_handler.get(handler)
            fault = HandlerFault(handler, before.count + 1 if before else 1, now, _one_line(error), cut(what))
            self._by_handler[handler] = fault
            logged_at = self._logged_at.get(handler)
            logs = logged_at is None or now - logged_at >= BETWEEN_TRACES
            if logs:
                self._logged_at[handler] = now
            listeners = list(self._listeners) if logs else []
        _LOG.log(logging.ERROR if logs else logging.DEBUG, "%s", fault.sentence, exc_info=error)
        for listener in listeners:
            listener(fault)
        return fault

    def now(self) -> datetime:
        """The time by the clock that stamps faults."""
        return self._clock.now()

    def listen(self, listener: Callable[[HandlerFault], None]) -> Callable[[], None]:
        """Calls `listener` for each fault with a logged traceback; returns a function that removes it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def all(self) -> list[HandlerFault]:
        """The last unexpected error of each handler, by name."""
        with self._lock:
            return [self._by_handler[name] for name in sorted(self._by_handler)]

    def recent(self, now: datetime) -> list[HandlerFault]:
        """The faults of the last minutes: the span of an alarm."""
        return [fault for fault in self.all() if now - fault.last_at < HOLDS]

    def forget(self) -> None:
        """Forgets everything; for tests."""
        with self._lock:
            self._by_handler.clear()
            self._logged_at.clear()


def _one_line(error: BaseException) -> str:
    return cut(f"{type(error).__name__}: {error}")


def cut(text: str) -> str:
    """One line of bounded length."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


_LOG = logging.getLogger("downburst.supervision")
LONGEST = 200
"""Characters: the text of an error may come from a stranger."""
BETWEEN_TRACES = timedelta(minutes=1)
HOLDS = timedelta(minutes=10)
"""An alarm for an error that does not recur ends after this time."""
FAULTS = Faults()
