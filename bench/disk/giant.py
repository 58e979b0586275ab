"""A product of gigabytes beside warnings: latency of the warnings, memory of hub and site."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.disk.writing import Writing, by_part
from bench.harness.memory import Memory, Samples
from bench.harness.stamps import Stamps, percentile
from bench.product.http_hub import SITE, HttpHub, noise


@dataclass(frozen=True)
class Giant:
    """One run; the product and all warnings arrived with the right bytes."""

    size_bytes: int
    uploaded_s: float
    """From the first byte of the upload to the hub's answer."""
    travelled_s: float
    """From there until the file stands at the site."""
    p99_uploading_ms: float
    """Of warnings that the hub stored during the upload, from the hub's log to that of the site."""
    p99_travelling_ms: float
    """The same from the upload's end until the file stands."""
    warnings_uploading: int
    warnings_travelling: int
    memory: Mapping[str, Memory]
    """Of the hub's `api` and `node`, and of the `site`, over both spans."""
    writing: Writing
    """Of the same processes, over both spans."""


class Warnings:
    """A thread that uploads small products at a steady rate, for the duration of a block.

    A hub that answers late gets fewer of them: what was missed is not made up for in bursts.
    """

    def __init__(self, both: HttpHub) -> None:
        self._both, self._over = both, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.sent = 0
        self.failure: Exception | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            with self._both.client() as client:
                due_s = time.monotonic()
                for number in count():
                    due_s = max(due_s + 1 / WARNINGS_PER_S, time.monotonic())
                    if self._over.wait(due_s - time.monotonic()):
                        return
                    content = noise(number, WARNING_BYTES)
                    self._both.put(client, WARNINGS, f"warning {number:06d}", content, WARNING_BYTES)
                    self.sent = number + 1
        except Exception as failure:  # noqa: BLE001 (it ends the measurement, which asks for it)
            self.failure = failure


def beside_warnings(directory: Path, *, size_bytes: int) -> Giant:
    """Upload one product while warnings come, and wait until its file stands at the site."""
    with HttpHub(directory, {BULK: "bulk", WARNINGS: "warning"}) as both:
        with Warnings(both) as warnings, Samples(both.pids()) as samples:
            time.sleep(BEFORE_S)
            before, moments_s = by_part(both), [time.time()]
            with both.client() as client:
                both.put(client, BULK, "the giant", noise(0, size_bytes), size_bytes)
            moments_s.append(time.time())
            both.wait_files(BULK, 2)
            moments_s.append(time.time())
            counts = {part: count.since(before[part]) for part, count in by_part(both).items()}
            # A warning that is on its way at the end counts as well.
            time.sleep(BEFORE_S)
            memory = samples.of()
        if warnings.failure:
            raise RuntimeError(f"a warning could not be uploaded: {warnings.failure}")
        both.wait_files(WARNINGS, warnings.sent + 1)
        stamps = both.finish().at_sites[SITE].of(WARNINGS)
    writing = Writing(size_bytes, counts, None, moments_s[2] - moments_s[0])
    return result(moments_s, stamps, memory, writing)


def result(moments_s: list[float], warnings: Stamps, memory: Mapping[str, Memory], writing: Writing) -> Giant:
    """Sum up: moments of the upload's begin, of its end, and of the file; fails without warnings in both spans."""
    began_s, uploaded_s, stood_s = moments_s
    uploading = warnings.between(began_s * 1e6, uploaded_s * 1e6)
    travelling = warnings.between(uploaded_s * 1e6, stood_s * 1e6 + 1e6 / WARNINGS_PER_S)
    if not len(uploading.rows) or not len(travelling.rows):
        raise RuntimeError("no warning came beside the giant: nothing was measured")
    return Giant(
        writing.product_bytes,
        uploaded_s - began_s,
        stood_s - uploaded_s,
        percentile(uploading.latency_us, 99) / 1000,
        percentile(travelling.latency_us, 99) / 1000,
        len(uploading.rows),
        len(travelling.rows),
        memory,
        writing,
    )


BULK, WARNINGS = "SATELLITE", "WARNINGS"
WARNING_BYTES = 2_000
WARNINGS_PER_S = 50.0
BEFORE_S = 2.0
"""Warnings alone, before and behind the large product."""
