"""Probes without a node or a calendar: both keep what they were asked for."""

from dataclasses import dataclass, field, replace
from datetime import timedelta

from downburst.domain.probes import Probe
from downburst.domain.probes.results import ProbeResult, StepResult
from downburst.domain.probes.signs import ProbeOver
from downburst.domain.topology.bookings import BookedTest, BookingAnswer, WantedTest
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import DownburstError, NodeAway


@dataclass
class ProbeNodeInMemory:
    running: bool = True
    started: list[Probe] = field(default_factory=list)
    stopped: list[tuple[str, str]] = field(default_factory=list)
    refusal: DownburstError | None = None

    async def start_probe(self, probe: Probe) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.started.append(probe)

    async def stop_probe(self, name: str, reason: str) -> None:
        if not self.running:
            raise NodeAway("the node is not running")
        self.stopped.append((name, reason))


@dataclass
class BookingsInMemory:
    clock: FakeClock
    booked_ones: list[BookedTest] = field(default_factory=list)
    answer: BookingAnswer | None = None
    """Instead of a grant."""
    refusal: DownburstError | None = None

    async def book(self, wanted: WantedTest) -> BookingAnswer:
        if self.refusal is not None:
            raise self.refusal
        if self.answer is not None:
            return self.answer
        begin = self.clock.now()
        booking = BookedTest(len(self.booked_ones) + 1, wanted, begin, begin + timedelta(seconds=wanted.seconds))
        self.booked_ones.append(booking)
        return BookingAnswer("granted", booking)

    async def release(self, number: int) -> None:
        self.booked_ones[number - 1] = replace(self.booked_ones[number - 1], end=self.clock.now())

    async def booked(self) -> list[BookedTest]:
        return self.booked_ones


def step(rate_bps: int, *, lost: int = 0, sent: int = 1_000, elapsed_us: int = 1_000_000) -> StepResult:
    received_bps = rate_bps * (1 - lost / sent)
    return StepResult(rate_bps, rate_bps, received_bps, sent, sent - lost, lost, 0, 0, elapsed_us)


def over(
    name: str, *steps: StepResult, outcome: str = "done", reason: str | None = None, knee: float | None = None
) -> ProbeOver:
    return ProbeOver(name, outcome, reason, ProbeResult(steps, knee_bps=knee))  # type: ignore[arg-type]
