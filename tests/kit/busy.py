"""Detects that the machine is too busy for meaningful timings."""

import os
import threading
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from kit.capabilities import skip


@dataclass(frozen=True)
class Busyness:
    """The load of the machine: load average of the last minute per core, and the delay of a sleeper's wake-up."""

    load_per_core: float
    lag_p99_ms: float

    def reason(self, *, max_load_per_core: float, max_lag_ms: float) -> str:
        """Return a sentence that names the excessive value; empty if there is none."""
        if self.load_per_core > max_load_per_core:
            return f"load average is {self.load_per_core:.1f} per core, more than {max_load_per_core:.1f}"
        if self.lag_p99_ms > max_lag_ms:
            return f"sleepers wake {self.lag_p99_ms:.1f} ms late (p99), more than {max_lag_ms:.1f} ms"
        return ""


def measure(*, samples: int = 200) -> Busyness:
    """Measure for about a millisecond per sample."""
    lags_ms = sorted(_lag_ms() for _ in range(samples))
    cores = len(os.sched_getaffinity(0))
    return Busyness(os.getloadavg()[0] / cores, lags_ms[int(samples * 0.99) - 1])


YIELDS = ("chrt", "--idle", "0")
"""Before a command: it has only the processor time that other processes leave. Hosts have processors of their own
outside a lab, so that the work of one takes nothing from the others."""


def needs_quiet_machine(*, max_load_per_core: float = 1.5, max_lag_ms: float = 5.0, wait_s: float = 60.0) -> None:
    """Wait for the machine to calm down, and skip the running test with the reason if it does not."""
    until_s = time.monotonic() + wait_s
    while reason := measure().reason(max_load_per_core=max_load_per_core, max_lag_ms=max_lag_ms):
        if time.monotonic() > until_s:
            skip(f"too busy to judge a timing: {reason} after waiting {wait_s:.0f} s")
        time.sleep(1)


class Stalls:
    """The time that the machine withheld in a block, measured by the late wake-ups of a thread that only sleeps.

    Tests add this time to a bound of a few seconds, so that a stalled host does not break the bound.
    """

    def __enter__(self) -> Self:
        self._lost_s, self._over = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join(timeout=10)

    def lost_s(self) -> float:
        """Seconds so far."""
        return self._lost_s

    def _watch(self) -> None:
        while not self._over.is_set():
            late_s = _lag_ms(asleep_ms=ASLEEP_MS) / 1000
            self._lost_s += late_s if late_s > ORDINARY_S else 0.0


def _lag_ms(*, asleep_ms: float = 1.0) -> float:
    started_s = time.perf_counter()
    time.sleep(asleep_ms / 1000)
    return (time.perf_counter() - started_s) * 1000 - asleep_ms


ASLEEP_MS = 10.0
ORDINARY_S = 0.001
"""So late everybody is woken on a quiet machine."""
