"""Watches processes for growth: memory and descriptors, sample by sample, and the line through them."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

MIB = 1 << 20


@dataclass
class Series:
    """One figure of one process over time."""

    name: str
    tolerated: float
    """The tolerated growth between the beginning and the end of the line through its second half."""
    samples: list[tuple[float, float]] = field(default_factory=list)

    def growth(self) -> float:
        """The growth of the line through the second half of the samples, from its beginning to its end.

        The first half is the process finding its size: caches fill, the log reaches its ceiling.
        """
        settled = self.samples[len(self.samples) // 2 :]
        if len(settled) < MIN_SAMPLES:
            return 0.0
        middle_s = sum(at for at, _ in settled) / len(settled)
        middle = sum(value for _, value in settled) / len(settled)
        spread = sum((at - middle_s) ** 2 for at, _ in settled)
        slope = sum((at - middle_s) * (value - middle) for at, value in settled) / spread
        return slope * (settled[-1][0] - settled[0][0])

    def complaint(self) -> str | None:
        """A sentence if it grows more than tolerated."""
        growth = self.growth()
        if growth <= self.tolerated:
            return None
        first, last = self.samples[len(self.samples) // 2][1], self.samples[-1][1]
        return f"{self.name} grew by {growth:.0f}, more than {self.tolerated:.0f}: from {first:.0f} to {last:.0f}"


class Watch:
    """Samples of several processes; a restarted process begins new series."""

    def __init__(self) -> None:
        self.series: dict[tuple[int, str], Series] = {}

    def sample(self, at_s: float, pids: Mapping[str, int]) -> None:
        """Samples each process; an ended one is skipped."""
        for name, pid in pids.items():
            with suppress(OSError, StopIteration):
                memory, descriptors = memory_bytes(pid), len(list(Path(f"/proc/{pid}/fd").iterdir()))
                self._add(pid, f"memory of {name}, bytes", at_s, memory, max(16 * MIB, memory * 0.1))
                self._add(pid, f"descriptors of {name}", at_s, descriptors, 8)

    def complaints(self) -> list[str]:
        """Sentences about the growing figures."""
        found = (series.complaint() for series in self.series.values())
        return [complaint for complaint in found if complaint]

    def _add(self, pid: int, name: str, at_s: float, value: float, tolerated: float) -> None:
        series = self.series.setdefault((pid, name), Series(name, tolerated))
        series.samples.append((at_s, value))


def memory_bytes(pid: int) -> int:
    """The private memory of a process; pages of logs belong to the system."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("RssAnon"))


MIN_SAMPLES = 6
