"""Memory of processes, sampled while something runs."""

import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self


@dataclass(frozen=True)
class Memory:
    """Memory of one process over a span."""

    anonymous_before_bytes: int
    anonymous_least_bytes: int
    anonymous_most_bytes: int
    peak_resident_bytes: int
    """The highest value since the process started; pages of files that it maps count as well."""

    @property
    def growth_bytes(self) -> int:
        """The most anonymous memory above that at the beginning."""
        return self.anonymous_most_bytes - self.anonymous_before_bytes

    @property
    def spread_bytes(self) -> int:
        """The most anonymous memory less the least."""
        return self.anonymous_most_bytes - self.anonymous_least_bytes


class Samples:
    """Reads the memory of processes from a thread, for the duration of a block."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._pids = dict(pids)
        self._anonymous = {name: [_status(pid, "RssAnon")] for name, pid in self._pids.items()}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def of(self) -> dict[str, Memory]:
        """Sum up the samples so far by process; all of them must still live."""
        return {name: self._memory(name, pid) for name, pid in self._pids.items()}

    def _memory(self, name: str, pid: int) -> Memory:
        samples = [*self._anonymous[name], _status(pid, "RssAnon")]
        return Memory(samples[0], min(samples), max(samples), _status(pid, "VmHWM"))

    def _run(self) -> None:
        while not self._over.wait(SAMPLE_S):
            for name, pid in self._pids.items():
                # A process that has ended is noticed by the measurement itself.
                with suppress(OSError, StopIteration):
                    self._anonymous[name].append(_status(pid, "RssAnon"))


def memory_bytes(status: str, name: str) -> int:
    """Read a size in kilobytes of /proc/PID/status, such as VmRSS, VmHWM or RssAnon."""
    kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith(f"{name}:"))
    return int(kilobytes) * 1024


def _status(pid: int, name: str) -> int:
    return memory_bytes(Path(f"/proc/{pid}/status").read_text(), name)


SAMPLE_S = 0.2
"""Several samples a second, so that a peak between two of them is short."""
