"""What no handler expected, counted by handler: one record for a process, as its log is one."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from downburst.foundation.clock import Clock, SystemClock


@dataclass(frozen=True, slots=True)
class HandlerFault:
    """What a handler did not expect: how often since the start of the process, and the last time."""

    handler: str
    count: int
    last_at: datetime
    error: str
    """Type and text of the last exception, cut to one line."""
    what: str
    """What was set aside the last time, in words."""
    process: str = ""
    """Where: a process beside the hub; none: here."""

    @property
    def place(self) -> str:
        """The handler, with its process if that is another one."""
        return f"{self.handler} of the {self.process}" if self.process else self.handler

    @property
    def sentence(self) -> str:
        """What happened, for people."""
        about = f" ({self.what})" if self.what else ""
        times = "once" if self.count == 1 else f"{self.count} times"
        return (
            f"{self.place} met an unexpected error, {times} since the start, "
            f"last {self.last_at:%H:%M:%S} UTC{about}: {self.error}"
        )


class Faults:
    """Bounded: handlers are named in the code, and of each the last fault is kept."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        # Threads meet errors too.
        self._lock = threading.Lock()
        self._by_handler: dict[str, HandlerFault] = {}
        self._logged_at: dict[str, datetime] = {}
        self._listeners: list[Callable[[HandlerFault], None]] = []

    def caught(self, handler: str, error: BaseException, what: str = "") -> HandlerFault:
        """Counts an error; the log gets its trace, at most once a minute for each handler."""
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
        """By the clock that faults are stamped with."""
        return self._clock.now()

    def listen(self, listener: Callable[[HandlerFault], None]) -> Callable[[], None]:
        """Has `listener` hear of faults, as often as the log gets their traces; returns what ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def all(self) -> list[HandlerFault]:
        """Of each handler that met an unknown error the last one, by name."""
        with self._lock:
            return [self._by_handler[name] for name in sorted(self._by_handler)]

    def recent(self, now: datetime) -> list[HandlerFault]:
        """Those of the last minutes: what an alarm stands for."""
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
"""Characters: whatever set an error off may have been chosen by a stranger."""
BETWEEN_TRACES = timedelta(minutes=1)
HOLDS = timedelta(minutes=10)
"""An alarm for an error that does not come again ends after this."""
FAULTS = Faults()
