"""Counters of this run of the hub, beside those from the ledger, and the state of its clock."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime

from downburst.host.host_clock import HostClockWatch
from downburst.ledger import Transaction
from downburst.ledger.repositories.latency.selection import Selection
from downburst.ledger.repositories.receipts import LossKey
from downburst_api.metrics.histograms import OPEN_MINUTES, Histograms
from downburst_api.metrics.since_start import SinceStart


@dataclass(slots=True)
class Counted:
    """Counters that begin at 0 with the process."""

    histograms: Histograms = field(default_factory=Histograms)
    losses: SinceStart[LossKey] = field(default_factory=SinceStart)
    host_clock: HostClockWatch = field(default_factory=HostClockWatch)
    one_scrape: asyncio.Lock = field(default_factory=asyncio.Lock)
    """One scrape at a time: each counts the increase since the last, and a large hub writes one text at a time."""

    @classmethod
    def at_start(cls, tx: Transaction, now: datetime) -> "Counted":
        """Subtracts the ledger's content before the hub's node starts."""
        histograms = Histograms(first_open_minute=int(now.timestamp() // 60) - OPEN_MINUTES)
        open_minutes = Selection(since_minute=histograms.first_open_minute)
        histograms.begin(tx.measured.latency.sheet(open_minutes, step_minutes=1))
        counted = cls(histograms)
        counted.losses.begin(tx.measured.settled.losses())
        return counted
