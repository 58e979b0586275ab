"""The port of the bus: what publishers and subscribers may rely on."""

from typing import Protocol

from downburst.bus.local import BusSubscription
from downburst.domain.events import Event, PlanMade


class Bus(Protocol):
    """Hands each event to all who subscribed at that moment, in the order in which its publisher published."""

    def publish(self, event: Event) -> None:
        """Tells everybody who wants events of its type; never waits."""

    def subscribe(self, *kinds: type[Event], limit: int = 1024) -> BusSubscription:
        """A queue of the given event types (all if none is given), of at most `limit` waiting events."""

    def plans(self) -> list[PlanMade]:
        """The newest plan of every feed that was ever published, by feed."""

    def close(self) -> None:
        """Ends every subscription; what is published later reaches nobody."""
