"""What the overview remembers between two requests, so that many pages cost as much as one."""

from typing import Any

from downburst.foundation.clock import Clock
from downburst.ledger import Ledger
from downburst_api.overview.readings import Paced, Remembered
from downburst_api.overview.shared import SharedOverview


class OverviewMemory:
    """The overview as it was made last, and the readings of the ledger that it is made of."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self.document = SharedOverview(clock)
        self.facts: Remembered[Any] = Remembered(ledger)
        """The rows that the overview shows."""
        self.latency: Paced[dict[str, dict[str, Any]]] = Paced(ledger, clock)
        """The latencies of the last hour by feed."""
