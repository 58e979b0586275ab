"""What this service asks of the node that makes circuits."""

from collections.abc import Sequence
from typing import Protocol

from downburst.domain.circuits import CircuitProblem, Direction, Lease, RateProbe, ReachProbe, Standing


class CircuitNode(Protocol):
    """The hub's node, by way of the agent; every question raises `NodeAway` while it is away."""

    @property
    def running(self) -> bool:
        """Whether the node is up."""

    async def hold_circuits(self, leases: Sequence[Lease]) -> list[Standing]:
        """Tells the whole set of leases; what else is found under our names is removed."""

    async def circuit_up(self, lease: Lease) -> Standing:
        """Makes one circuit, or changes it in place; put back as it was if a step fails."""

    async def circuit_down(self, circuit: int) -> list[CircuitProblem]:
        """Removes one circuit; tells what could not be removed."""

    async def probe_reach(self, circuit: int, site: str) -> ReachProbe:
        """Five packets to a site and back."""

    async def probe_rate(
        self, circuit: int, site: str, direction: Direction, *, rate_bps: int, duration_ms: int
    ) -> RateProbe:
        """A train of packets to or from a site."""
