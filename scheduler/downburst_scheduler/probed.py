"""The last sweeps of sites' paths, from the ledger, in the form of the models."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from downburst.domain.circuits import Direction
from downburst.domain.probes import Probe
from downburst.domain.probes.results import ProbeResult
from downburst.ledger import Transaction
from downburst_scheduler.models.sweeps import LossCurve, Sweep


@dataclass(frozen=True, slots=True)
class TimedSweep:
    """A sweep with its time: an old one says nothing about the path of today."""

    sweep: Sweep
    at: datetime

    def counts(self, now: datetime) -> bool:
        """True if it is recent."""
        return now - self.at <= COUNTS


def last_sweeps(tx: Transaction) -> Mapping[str, TimedSweep]:
    """By site, its newest completed sweep from the hub to the site that counts."""
    found = tx.measured.probing.probes.last_knees(tx.clock.now() - COUNTS)
    sweeps = {probe.request.site: _timed(probe) for probe in found if probe.request.direction is Direction.OUT}
    return {site: sweep for site, sweep in sweeps.items() if sweep is not None}


def _timed(probe: Probe) -> TimedSweep | None:
    steps = sorted(probe.result.steps if probe.result else (), key=lambda step: step.rate_bps)
    sent = [step for step in steps if step.sent]
    if probe.result is None or probe.ended_at is None or not _shows_a_limit(probe.result):
        return None
    # A sender that could not keep up tried the rate that it reached.
    rates = {min(step.sent_bps, float(step.rate_bps)): step.loss for step in sent}
    curve = LossCurve(tuple(sorted(rates)), tuple(rates[rate] for rate in sorted(rates)))
    words = f"probe {probe.id} of {probe.request.site} at {probe.ended_at:%Y-%m-%d %H:%M} UTC"
    return TimedSweep(Sweep(curve, probe.result.confirmed_knee_bps, words), probe.ended_at)


def _shows_a_limit(result: ProbeResult) -> bool:
    """False if the path carried all that the sender managed: such a sweep says nothing about higher rates."""
    if result.knee_bps is None:
        return any(step.sent and step.loss > KNEE_LOSS for step in result.steps)
    return result.confirmed_knee_bps is not None


COUNTS = timedelta(days=14)
KNEE_LOSS = 0.001
"""The node takes a rate with less loss as free of it (docs/node-lines.md, *Probes of paths*)."""
