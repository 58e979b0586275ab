"""The rates in use through circuits over the last hours, in memory and bounded."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from downburst.domain.circuits import CircuitUse


@dataclass(slots=True)
class RateStep:
    """The bytes of frames in one step of time, by site; None: all bytes that the hub sent into the circuit."""

    begin_us: int
    out_bytes: dict[str | None, int] = field(default_factory=dict)
    in_bytes: dict[str | None, int] = field(default_factory=dict)

    def add(self, use: CircuitUse) -> None:
        """Counts a report."""
        self.out_bytes[use.site] = self.out_bytes.get(use.site, 0) + use.out_bytes
        self.in_bytes[use.site] = self.in_bytes.get(use.site, 0) + use.in_bytes

    def out_bps(self, sites: Sequence[str]) -> float:
        """The mean rate out for the busiest site."""
        return _mean_bps(self.out_bytes, sites)

    def in_bps(self, sites: Sequence[str]) -> float:
        """The mean rate back from the busiest site."""
        return _mean_bps(self.in_bytes, sites)


class CircuitRates:
    """The steps of each circuit, the oldest first; those without traffic are not kept."""

    def __init__(self) -> None:
        self._steps: dict[int, deque[RateStep]] = {}
        self.since_us: int | None = None
        """The first report; None: there was none."""

    def add(self, uses: Iterable[CircuitUse], at_us: int) -> None:
        """Counts the reports of a moment."""
        begin_us = at_us - at_us % STEP_US
        if self.since_us is None:
            self.since_us = begin_us
        for use in uses:
            if use.out_bytes or use.in_bytes:
                self._step(use.circuit, begin_us).add(use)

    def steps(self, circuit: int) -> list[RateStep]:
        """The steps of a circuit."""
        return list(self._steps.get(circuit, ()))

    def _step(self, circuit: int, begin_us: int) -> RateStep:
        steps = self._steps.setdefault(circuit, deque(maxlen=STEPS_KEPT))
        if not steps or steps[-1].begin_us < begin_us:
            steps.append(RateStep(begin_us))
            self._forget_the_quietest()
        return steps[-1]

    def _forget_the_quietest(self) -> None:
        if len(self._steps) > CIRCUITS_KEPT:
            del self._steps[min(self._steps, key=lambda circuit: self._steps[circuit][-1].begin_us)]


def _mean_bps(counts: dict[str | None, int], sites: Sequence[str]) -> float:
    """The rate of the busiest site; of a sum for all sites alone, the even share."""
    share = counts.get(None, 0) / max(len(sites), 1)
    busiest = max((counts[site] for site in sites if site in counts), default=share)
    return busiest * 8 * 1e6 / STEP_US


STEP_S = 60
STEP_US = STEP_S * 1_000_000
STEPS_KEPT = 6 * 60
CIRCUITS_KEPT = 500
