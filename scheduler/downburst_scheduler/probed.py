"""The last sweeps of sites' paths, from the ledger, in the form of the models."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from downburst.domain.circuits import Direction
from downburst.domain.probes import Probe
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
    """By site, its newest sweep from the hub to the site that shows a limit of the path."""
    found = tx.measured.probing.probes.last_knees(tx.clock.now() - COUNTS)
    sweeps = {probe.request.site: _timed(probe) for probe in found if probe.request.direction is Direction.OUT}
    return {site: sweep for site, sweep in sweeps.items() if sweep is not None}


def _timed(probe: Probe) -> TimedSweep | None:
    steps = sorted(probe.result.steps if probe.result else (), key=lambda step: step.rate_bps)
    sent = [step for step in steps if step.sent]
    if probe.result is None or probe.ended_at is None or not sent:
        return None
    # A sender that could not keep up tried the rate that it reached.
    rates = {min(step.sent_bps, float(step.rate_bps)): step.loss for step in sent}
    curve = LossCurve(tuple(sorted(rates)), tuple(rates[rate] for rate in sorted(rates)))
    words = f"probe {probe.id} of {probe.request.site} at {probe.ended_at:%Y-%m-%d %H:%M} UTC"
    return TimedSweep(Sweep(curve, probe.result.confirmed_knee_bps, words), probe.ended_at)


COUNTS = timedelta(days=14)
