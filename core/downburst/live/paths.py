"""The present measurements of the paths to sites, with the forecasts of their rates."""

from downburst.domain.events import RelaySeen, TrafficSeen
from downburst.domain.path_facts import PathWatch
from downburst.forecasts.path_rates import PathRates
from downburst.live.catch_ups import CatchUps
from downburst.live.circuit_rates import CircuitRates


class LivePaths(PathWatch):
    """Follows sessions and legs, and the rates that sessions measured."""

    def __init__(self) -> None:
        super().__init__()
        self.rates = PathRates()
        self.relays: dict[str, RelaySeen] = {}
        """By relay, its newest report."""
        self.circuits = CircuitRates()
        self.catch_ups = CatchUps()

    def traffic(self, event: TrafficSeen) -> None:
        """Records the reports of sessions and circuits, with their time."""
        super().traffic(event)
        self.rates.traffic(event)
        self.circuits.add(event.circuits, event.to_us)

    def relay(self, event: RelaySeen) -> None:
        """Records the report of a relay."""
        self.relays[event.report.relay] = event

    def forget(self, site: str) -> None:
        """Drops a removed site."""
        super().forget(site)
        self.rates.forget(site)
        self.relays.pop(site, None)
