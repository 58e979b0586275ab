"""The present measurements of the paths to sites, with the forecasts of their rates."""

from downburst.domain.events import TrafficSeen
from downburst.domain.path_facts import PathWatch
from downburst.forecasts.path_rates import PathRates


class LivePaths(PathWatch):
    """Follows sessions and legs, and the rates that sessions measured."""

    def __init__(self) -> None:
        super().__init__()
        self.rates = PathRates()

    def traffic(self, event: TrafficSeen) -> None:
        """Records the reports of sessions, with their time."""
        super().traffic(event)
        self.rates.traffic(event)

    def forget(self, site: str) -> None:
        """Drops a removed site."""
        super().forget(site)
        self.rates.forget(site)
