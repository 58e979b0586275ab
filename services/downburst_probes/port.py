"""The other parts as probes need them."""

from typing import Protocol

from downburst.domain.probes import Probe
from downburst.domain.topology.bookings import BookedTest, BookingAnswer, WantedTest


class ProbeNode(Protocol):
    """The hub's node."""

    @property
    def running(self) -> bool:
        """True if the node is up and has sites and feeds."""

    async def start_probe(self, probe: Probe) -> None:
        """Starts the present attempt of a probe; raises the reason if the node or the site refuses."""

    async def stop_probe(self, name: str, reason: str) -> None:
        """Has an attempt end within a second."""


class Bookings(Protocol):
    """The booking desk of the circuits' calendar."""

    async def book(self, wanted: WantedTest) -> BookingAnswer:
        """Grants a test its rate, or says when to ask again; a refusal is raised."""

    async def release(self, number: int) -> None:
        """Ends a booking before its time."""

    async def booked(self) -> list[BookedTest]:
        """The running tests and the last of those that are over."""
