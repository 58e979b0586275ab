"""A node that holds circuits in memory: it can be away, refuse, lose and forget."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from downburst.domain.circuits import CircuitProblem, Direction, Lease, RateProbe, ReachProbe, Standing
from downburst.foundation.errors import NodeAway


@dataclass
class NodeInMemory:
    """Holds leases as a node would; a path carries the rate that `carries_bps` gives for a site."""

    running: bool = True
    held: dict[int, Lease] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    refuses: dict[int, CircuitProblem] = field(default_factory=dict)
    """By circuit: why it can't be made, or changed."""
    stuck: list[CircuitProblem] = field(default_factory=list)
    """Parts that cannot be removed."""
    silent: set[str] = field(default_factory=set)
    """Sites from which no reply arrives."""
    away: set[str] = field(default_factory=set)
    carries_bps: dict[str, float] = field(default_factory=dict)
    uses_bps: dict[str, float] = field(default_factory=dict)
    """The rate of products to a site during its measurement."""
    slow_trains: int = 0
    """The number of further trains that leave at half of the requested rate: the host is busy."""
    held_up_trains: int = 0
    """The number of further trains that lose half of their packets on the way, whatever the path carries."""
    dies_after: int | None = None
    """So many more answers, then it is away."""

    async def hold_circuits(self, leases: Sequence[Lease]) -> list[Standing]:
        self._note("hold " + " ".join(str(lease.circuit.number) for lease in leases))
        wanted = {lease.circuit.number: lease for lease in leases}
        self.held = wanted
        return [Standing(number, "up", 5.0) for number in wanted]

    async def circuit_up(self, lease: Lease) -> Standing:
        circuit = lease.circuit
        self._note(f"up {circuit.number} {circuit.rate_out_bps // M}M")
        problem = self.refuses.get(circuit.number)
        if problem is not None and self.held.get(circuit.number) != lease:
            return Standing(circuit.number, "failed", 5.0, (problem,))
        self.held[circuit.number] = lease
        gone = [
            CircuitProblem(f"{site} is not connected", "site", site, site=site)
            for site in circuit.sites
            if site in self.away
        ]
        return Standing(circuit.number, "partial" if gone else "up", 22.0, tuple(gone))

    async def circuit_down(self, circuit: int) -> list[CircuitProblem]:
        self._note(f"down {circuit}")
        if not self.stuck:
            self.held.pop(circuit, None)
        return list(self.stuck)

    async def probe_reach(self, circuit: int, site: str) -> ReachProbe:
        self._note(f"reach {circuit} {site}")
        good = site not in self.silent and site not in self.away
        return ReachProbe(site, 5, 5 if good else 0, 36_000 if good else None)

    async def probe_rate(
        self, circuit: int, site: str, direction: Direction, *, rate_bps: int, duration_ms: int
    ) -> RateProbe:
        self._note(f"rate {circuit} {site} {direction} {rate_bps // M}M")
        if self.slow_trains > 0:
            self.slow_trains -= 1
            rate_bps //= 2
        passed_bps = min(self.carries_bps.get(site, rate_bps), rate_bps)
        if self.held_up_trains > 0:
            self.held_up_trains -= 1
            passed_bps /= 2
        received = round(10_000 * passed_bps / rate_bps)
        others_bps = sum(self.uses_bps.values())
        probe = RateProbe(site, direction, 10_000, received, rate_bps, passed_bps, (passed_bps,) * 10)
        return replace(probe, others_bps=others_bps)

    def _note(self, what: str) -> None:
        if not self.running or self.dies_after == 0:
            self.running = False
            raise NodeAway("the node is away")
        if self.dies_after is not None:
            self.dies_after -= 1
        self.done.append(what)


M = 1_000_000
