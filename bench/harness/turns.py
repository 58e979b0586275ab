"""Contenders take turns, every run starts its processes afresh, and a run that fails is repeated once and noted."""

import subprocess
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from bench.harness.delivery import Contender, Delivery
from bench.harness.scratch import tell, warm_memory
from kit.namespaces import Lab

Start = Callable[[Lab, Path], Contender]
"""Starts a contender in a lab, with a directory of its own."""
T = TypeVar("T")
FAILURES = (AssertionError, RuntimeError, OSError, subprocess.SubprocessError)


@dataclass(frozen=True)
class Entry:
    """A contender of a case, and the number of its runs."""

    start: Start
    runs: int


class Turns:
    """Runs of one measurement."""

    def __init__(self, directory: Path, notes: list[str]) -> None:
        self._directory, self._notes = directory, notes

    def take(
        self,
        case: str,
        lab: Lab,
        entries: Mapping[str, Entry],
        product_bytes: int,
        beside: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> dict[str, list[Delivery]]:
        """Let contenders deliver these bytes in turns, until each has had its runs; `beside` surrounds each run."""
        runs: dict[str, list[Delivery]] = {name: [] for name in entries}
        for turn in range(max(entry.runs for entry in entries.values())):
            for name, entry in entries.items():
                if turn < entry.runs:
                    warm_memory(self._directory, product_bytes * len(lab.hosts) * COPIES)
                    run = partial(_deliver, lab, entry.start, product_bytes, beside)
                    runs[name].append(self.second_try(f"{case}: {name}", run))
                    self._tell(f"{case}: {name}", runs[name][-1], len(lab.hosts) - 1)
        return runs

    def second_try(self, what: str, run: Callable[[Path], T]) -> T:
        """Repeat a failed run once, and note it: a failure is a finding, and the other runs are still needed."""
        try:
            return self._in_directory(run)
        except FAILURES as failure:
            self._notes.append(f"{what} failed and was repeated: {failure}")
            tell(self._notes[-1])
            return self._in_directory(run)

    def repeat(self, case: str, run: Callable[[Path], T], times: int = 1) -> list[T]:
        """Run a case this number of times, with a second try of each."""
        runs = []
        for _ in range(times):
            runs.append(self.second_try(case, run))
            tell(f"{case}: {runs[-1]}")
        return runs

    def _in_directory(self, run: Callable[[Path], T]) -> T:
        with tempfile.TemporaryDirectory(dir=self._directory) as directory:
            return run(Path(directory))

    def _tell(self, what: str, delivery: Delivery, sites: int) -> None:
        if len(delivery.took_s) < sites:
            self._notes.append(f"{what} left {sites - len(delivery.took_s)} sites incomplete.")
        rate, cpu = delivery.goodput_bps() / 1e6, delivery.cpu_s_per_delivered_gb
        tell(f"{what} {rate:.1f} Mb/s, {delivery.sent_share:.3f} of the bytes sent, {cpu:.2f} s/GB")


def _deliver(
    lab: Lab,
    start: Start,
    product_bytes: int,
    beside: Callable[[], AbstractContextManager[None]],
    directory: Path,
) -> Delivery:
    contender = start(lab, directory)
    try:
        with beside():
            return contender.deliver(product_bytes)
    finally:
        contender.stop()


COPIES = 3
"""A site's spool or buffers, its log, its file."""
