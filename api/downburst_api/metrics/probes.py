"""Metrics of probes: those that run, and the knees that they found."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from downburst.domain.probes import Probe, ProbeState
from downburst.exposition import text_of
from downburst.exposition.catalogue import PATH_KNEE, PATH_PROBES
from downburst.ledger import Transaction


def probes_of(tx: Transaction, now: datetime) -> list[Probe]:
    """The unfinished probes, and the newest sweeps."""
    probes = tx.measured.probing.probes
    return [*probes.unfinished(), *probes.last_knees(now - KNEES)]


def probes_text(found: Sequence[Probe]) -> Iterator[str]:
    """The metrics of these probes; a sweep without a confirmed knee has no rate."""
    yield text_of(PATH_PROBES, [((), sum(probe.state is ProbeState.RUNNING for probe in found))])
    knees = ((probe, probe.result.confirmed_knee_bps) for probe in found if probe.ended and probe.result is not None)
    rates = (
        ((probe.request.site, probe.request.direction.value), bps / 8) for probe, bps in knees if bps is not None
    )
    yield text_of(PATH_KNEE, rates)


KNEES = timedelta(days=14)
"""As long as plans follow them."""
