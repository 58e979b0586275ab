"""The port of the bus: guarantees for publishers and subscribers."""

from typing import Protocol

from downburst.bus.local import BusSubscription
from downburst.domain.events import Event, PlanMade


class Bus(Protocol):
    """Delivers each event to all current subscribers, in the order in which its publisher published."""

    def publish(self, event: Event) -> None:
        """Notifies every subscriber to events of its type; never waits."""

    def subscribe(self, *kinds: type[Event], limit: int = 1024) -> BusSubscription:
        """A queue of the given event types (all if none is given), of at most `limit` waiting events."""

    def plans(self) -> list[PlanMade]:
        """The newest plan of every feed that was ever published, by feed."""

    def close(self) -> None:
        """Ends every subscription; events published later are not delivered."""
