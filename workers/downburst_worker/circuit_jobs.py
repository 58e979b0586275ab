"""The node's jobs for circuits."""

from collections.abc import Awaitable, Callable, Iterable, Sequence

from downburst.domain.circuits import CircuitProblem, Direction, Lease, RateProbe, ReachProbe, Standing
from downburst_worker.messages import circuit_lines as lines
from downburst_worker.node import NodeProcess
from downburst_worker.shares import Share


class CircuitJobs:
    """The circuit service's requests to a node of the hub."""

    def __init__(self, node: NodeProcess, share: Share, apply_plans: Callable[[], Awaitable[None]]) -> None:
        """`apply_plans` sends the plans again: a sender's part of them depends on the circuits that it has."""
        self._node = node
        self._share = share
        self._apply_plans = apply_plans

    @property
    def running(self) -> bool:
        """True if the node is up and has sites and feeds."""
        return self._node.running

    async def hold_circuits(self, leases: Sequence[Lease]) -> list[Standing]:
        """Sends the whole set of leases; other interfaces under our names are removed."""
        answer = await self._node.request("circuits", circuits=[lines.lease_line(lease) for lease in leases])
        found = [lines.standing(line) for line in answer["circuits"]]
        await self._has(standing.circuit for standing in found if standing.state != FAILED)
        return found

    async def circuit_up(self, lease: Lease) -> Standing:
        """Builds one circuit, or changes it in place; restored to its old state if a step fails."""
        found = lines.standing(await self._node.request("circuit-up", circuit=lines.lease_line(lease)))
        if found.state != FAILED:
            await self._has(self._share.leases | {found.circuit})
        return found

    async def circuit_down(self, circuit: int) -> list[CircuitProblem]:
        """Removes one circuit; returns the parts that could not be removed."""
        answer = await self._node.request("circuit-down", lease=circuit)
        await self._has(self._share.leases - {circuit})
        return [lines.problem(line) for line in answer.get("left", [])]

    async def probe_reach(self, circuit: int, site: str) -> ReachProbe:
        """Five packets to a site and back."""
        return lines.reach_probe(await self._node.request("circuit-probe", lease=circuit, site=site, kind="reach"))

    async def probe_rate(
        self, circuit: int, site: str, direction: Direction, *, rate_bps: int, duration_ms: int
    ) -> RateProbe:
        """A train of packets to or from a site."""
        answer = await self._node.request(
            "circuit-probe",
            lease=circuit,
            site=site,
            kind="rate",
            direction=direction.value,
            rate_bps=rate_bps,
            duration_ms=duration_ms,
        )
        return lines.rate_probe(answer)

    async def _has(self, leases: Iterable[int]) -> None:
        if self._share.has(leases):
            await self._apply_plans()


FAILED = "failed"
