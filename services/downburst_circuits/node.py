"""The service's requests to the node that builds circuits."""

from collections.abc import Sequence
from typing import Protocol

from downburst.domain.circuits import CircuitProblem, Direction, Lease, RateProbe, ReachProbe, Standing


class CircuitNode(Protocol):
    """The hub's node, by way of the agent; every request raises `NodeAway` while it is away."""

    @property
    def running(self) -> bool:
        """True if the node is up."""

    async def hold_circuits(self, leases: Sequence[Lease]) -> list[Standing]:
        """Sends the whole set of leases; other interfaces under our names are removed."""

    async def circuit_up(self, lease: Lease) -> Standing:
        """Builds one circuit, or changes it in place; restored to its old state if a step fails."""

    async def circuit_down(self, circuit: int) -> list[CircuitProblem]:
        """Removes one circuit; returns the parts that could not be removed."""

    async def probe_reach(self, circuit: int, site: str) -> ReachProbe:
        """Five packets to a site and back."""

    async def probe_rate(
        self, circuit: int, site: str, direction: Direction, *, rate_bps: int, duration_ms: int
    ) -> RateProbe:
        """A train of packets to or from a site."""
