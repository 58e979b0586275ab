"""The overview's memory between requests, so that many pages cost as much as one."""

from typing import Any

from downburst.foundation.clock import Clock
from downburst.ledger import Ledger
from downburst_api.overview.readings import Paced, Remembered
from downburst_api.overview.shared import SharedOverview
from downburst_api.strip.memory import StripMemory


class OverviewMemory:
    """The last overview, and the readings of the ledger behind it."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self.begun_at = clock.now()
        self.document = SharedOverview(clock)
        self.facts: Remembered[Any] = Remembered(ledger)
        """The rows that the overview shows."""
        self.latency: Paced[dict[str, dict[str, Any]]] = Paced(ledger, clock)
        """The latencies of the last hour by feed."""
        self.strip = StripMemory(ledger, clock)
        """Latencies of the last day by the quarter hour."""
