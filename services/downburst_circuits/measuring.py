"""Measures circuits by short trains inside their own reservations, and draws conclusions for their states."""

from dataclasses import dataclass

from downburst.domain.circuits import (
    LEAST_SHARE,
    Circuit,
    CircuitEnd,
    CircuitProblem,
    CircuitState,
    Direction,
    Measured,
    RateProbe,
    ReachProbe,
)
from downburst.domain.events import TrafficSeen
from downburst.domain.topology.bookings import KindOfTest, WantedTest
from downburst.foundation.clock import Clock
from downburst.foundation.rates import rate_text
from downburst.settings.circuits import CircuitSettings
from downburst_circuits.bookings import CIRCUIT_TRAIN, BookingDesk
from downburst_circuits.diagnosis import SLOW_SENDER, Asked, Finding, judge
from downburst_circuits.lifecycle import Happening
from downburst_circuits.node import CircuitNode
from downburst_circuits.register import Register, Said


@dataclass(frozen=True, slots=True)
class Verdict:
    """The conclusion from a round of probes for a circuit."""

    happening: Happening
    said: Said


class Measuring:
    """Schedules each circuit's measurements, from its near end to the far ones, and tracks products' use of it."""

    def __init__(
        self, register: Register, node: CircuitNode, tests: BookingDesk, clock: Clock, settings: CircuitSettings
    ) -> None:
        self._register = register
        self._node = node
        self._tests = tests
        tests.add_kind(KindOfTest(CIRCUIT_TRAIN, "measures a circuit inside its reservation", MOST_BPS, TRAIN_S))
        self._clock = clock
        self._settings = settings
        self._next_s: dict[int, float] = {}
        self._leaves: dict[int, set[str]] = {}
        """By circuit the leaves that the next round is about; without an entry it is about all."""
        self._used_bps: dict[tuple[int, str | None, Direction], float] = {}

    def due(self, circuit: Circuit, now_s: float) -> bool:
        """True if a circuit that is up should be measured again."""
        return circuit.state in _MEASURED and self._next_s.get(circuit.number, 0.0) <= now_s

    def soon(self, number: int, leaf: str | None = None) -> None:
        """Schedules the next round immediately, after a change; after one of a leaf of several, for that alone."""
        whole = number not in self._next_s and number not in self._leaves
        self._next_s.pop(number, None)
        if leaf is None:
            self._leaves.pop(number, None)
        elif not whole:
            self._leaves.setdefault(number, set()).add(leaf)

    def forget(self, number: int) -> None:
        """Forgets a removed circuit."""
        self._next_s.pop(number, None)
        self._leaves.pop(number, None)
        self._used_bps = {key: used for key, used in self._used_bps.items() if key[0] != number}

    def used(self, traffic: TrafficSeen) -> None:
        """Records products' use in the last second; it counts as carried."""
        for use in traffic.circuits:
            circuit = self._register.begun.get(use.circuit)
            sites = (use.site,) if use.site is not None or circuit is None else circuit.far_sites
            for site in sites:
                for direction, count in ((Direction.OUT, use.out_bytes), (Direction.IN, use.in_bytes)):
                    # Traffic to all ends is one copy for each of them, or the sum from them.
                    self._used_bps[use.circuit, site, direction] = count * 8 / traffic.seconds / len(sites)

    async def measure(self, circuit: Circuit) -> Verdict:
        """One round: the reachable sites, and the rate each way; results are stored."""
        if circuit.passes:
            return await self._joined(circuit)
        sites = self._sites(circuit)
        reached = [await self._node.probe_reach(circuit.number, site) for site in sites]
        self._next_s[circuit.number] = self._clock.monotonic_s() + AGAIN_S
        if circuit.state is CircuitState.DOWN and any(probe.received for probe in reached):
            return Verdict(Happening.RETURNED, Said("probes come back again; it is measured before it is used"))
        rows = [row for probe in reached for row in await self._of_site(circuit, probe)]
        await self._register.measured(circuit, rows)
        verdict = _verdict(circuit, reached, rows)
        if verdict.happening is Happening.PASSED:
            self._next_s[circuit.number] = self._clock.monotonic_s() + self._settings.probe_minutes * 60
        return verdict

    async def _joined(self, circuit: Circuit) -> Verdict:
        """Whether the nodes of a circuit that passes hold its hops; the networks at its ends measure it."""
        standing = await self._node.circuit_up(self._register.lease(circuit))
        again_s = AGAIN_S if standing.state == "up" else JOINTS_AGAIN_S
        self._next_s[circuit.number] = self._clock.monotonic_s() + again_s
        if standing.state != "up":
            found = next(iter(standing.problems), CircuitProblem("its nodes do not hold it"))
            said = Said(found.sentence, found.step, found.hop, found.remedy)
            return Verdict(Happening.BROKE if circuit.state is CircuitState.VERIFYING else Happening.LOST, said)
        if circuit.state is CircuitState.DOWN:
            return Verdict(Happening.RETURNED, Said("its nodes hold it again"))
        return Verdict(Happening.PASSED, Said("its nodes have joined its hops; the networks at its ends measure it"))

    def _sites(self, circuit: Circuit) -> tuple[str, ...]:
        """The sites that a round is about: leaves that have joined a circuit that is well, or all."""
        leaves = self._leaves.pop(circuit.number, set())
        if circuit.state is not CircuitState.ACTIVE:
            return circuit.far_sites
        return tuple(site for site in circuit.far_sites if site in leaves) or circuit.far_sites

    async def cut(self, circuit: Circuit, site: str, problem: CircuitProblem) -> None:
        """Records that one site of several can't be reached."""
        await self._register.measured(circuit, [self._dead(circuit, site, each, problem) for each in Direction])

    async def _of_site(self, circuit: Circuit, reach: ReachProbe) -> list[Measured]:
        ways = [each for each in Direction if circuit.rate_bps(each)]
        if not reach.received:
            problem = CircuitProblem(f"none of {reach.sent} probes to {reach.site} came back", remedy=_FAR_END)
            return [self._dead(circuit, reach.site, way, problem) for way in ways]
        rows = [await self._of_way(circuit, reach, way) for way in ways]
        return [row for row in rows if row is not None]

    async def _of_way(self, circuit: Circuit, reach: ReachProbe, direction: Direction) -> Measured | None:
        """None: products use nearly all of it, which leaves no room for a train and no doubt about the rate."""
        number, reserved_bps = circuit.number, circuit.rate_bps(direction)
        used_bps = self._used_bps.get((number, reach.site, direction), 0.0)
        short: list[Measured] = []
        for attempt in range(1, MOST_TRAINS + 1):
            shaped_bps = circuit.carriage.shaped_share * reserved_bps
            asked = Asked(reserved_bps, shaped_bps, shaped_bps - used_bps)
            if asked.train_bps < LEAST_ROOM * reserved_bps:
                return self._busy(circuit, reach, direction, round(used_bps))
            probe = await self._train(circuit, reach.site, direction, round(asked.train_bps))
            used_bps = probe.others_bps / len(circuit.far_sites)
            found = judge(probe, asked, used_bps=used_bps)
            if found is None:
                continue
            row = self._row(circuit, reach, probe, found)
            if not found.cause:
                return row
            # A busy host that could not send is no evidence about the circuit, unless it never can.
            if found.cause != SLOW_SENDER or attempt == MOST_TRAINS:
                short.append(row)
            if len(short) == SURE_TRAINS:
                break
        # If products vary too quickly for a train to fit beside them, the next round tries again.
        return max(short, key=lambda row: row.rate_bps, default=None)

    async def _train(self, circuit: Circuit, site: str, direction: Direction, rate_bps: int) -> RateProbe:
        """Sends a train, which is in the calendar meanwhile."""
        out_bps, in_bps = (rate_bps, 0) if direction is Direction.OUT else (0, rate_bps)
        far = CircuitEnd("", site)
        wanted = WantedTest(CIRCUIT_TRAIN, circuit.ends[0], far, out_bps, in_bps, TRAIN_S, circuit.number)
        with self._tests.train(wanted, circuit):
            return await self._node.probe_rate(
                circuit.number, site, direction, rate_bps=rate_bps, duration_ms=self._settings.probe_ms
            )

    def _row(self, circuit: Circuit, reach: ReachProbe, probe: RateProbe, found: Finding) -> Measured:
        reserved_bps = circuit.rate_bps(probe.direction)
        return Measured(
            circuit=circuit.number,
            site=reach.site,
            direction=probe.direction,
            at=self._clock.now(),
            rate_bps=min(found.rate_bps, reserved_bps),
            reserved_bps=reserved_bps,
            loss_share=probe.loss_share,
            round_trip_us=reach.round_trip_us,
            cause=found.cause,
            sentence=found.sentence,
            remedy=found.remedy,
        )

    def _busy(self, circuit: Circuit, reach: ReachProbe, direction: Direction, used_bps: int) -> Measured | None:
        reserved_bps = circuit.rate_bps(direction)
        if used_bps < LEAST_SHARE * reserved_bps:
            return None
        rate_bps = min(used_bps, reserved_bps)
        now = self._clock.now()
        return Measured(
            circuit.number, reach.site, direction, now, rate_bps, reserved_bps, round_trip_us=reach.round_trip_us
        )

    def _dead(self, circuit: Circuit, site: str, direction: Direction, problem: CircuitProblem) -> Measured:
        return Measured(
            circuit=circuit.number,
            site=site,
            direction=direction,
            at=self._clock.now(),
            rate_bps=0,
            reserved_bps=circuit.rate_bps(direction),
            loss_share=1.0,
            cause="cut",
            sentence=problem.sentence,
            remedy=problem.remedy,
        )


def _verdict(circuit: Circuit, reached: list[ReachProbe], rows: list[Measured]) -> Verdict:
    # Leaves that have just joined say nothing about the others.
    if len(reached) == len(circuit.far_sites) and not any(probe.received for probe in reached):
        return _nobody(circuit, reached)
    short = next((row for row in rows if not row.enough), None)
    if short is None:
        worst = min((row.rate_bps for row in rows), default=circuit.rate_out_bps)
        return Verdict(Happening.PASSED, Said(f"probes got through at {rate_text(worst)} and more"))
    said = Said(short.sentence, step="measuring", hop=short.site, remedy=short.remedy)
    return Verdict(Happening.FELL_SHORT, said)


def _nobody(circuit: Circuit, reached: list[ReachProbe]) -> Verdict:
    """A circuit that never carried anything failed to build; otherwise it is cut, and may return by itself."""
    sites = ", ".join(probe.site for probe in reached)
    sent = sum(probe.sent for probe in reached)
    said = Said(f"none of {sent} probes to {sites} came back", step="verify", hop=sites, remedy=_FAR_END)
    new = circuit.state is CircuitState.VERIFYING
    return Verdict(Happening.BROKE if new else Happening.LOST, said)


_FAR_END = (
    "check that the receiver or relay there runs with --circuits and is connected, and that its port and the path "
    "between the ports are up"
)
_MEASURED = (CircuitState.ACTIVE, CircuitState.DEGRADED, CircuitState.DOWN)
SURE_TRAINS = 2
"""Trains that fell short: a stall of the machine affects one, a fault of the path both."""
LEAST_ROOM = 0.2
"""A train at a smaller share is too weak evidence for the rest."""
MOST_TRAINS = 3
"""In a row: each leaves the room that products needed during its predecessor, and a host is only briefly busy."""
TRAIN_S = 10.0
"""The longest train on a slow host, with the reports on it."""
MOST_BPS = 10**15
AGAIN_S = 60.0
"""A degraded circuit is measured more often: feeds wait to return to it."""
JOINTS_AGAIN_S = 5.0
"""A question to the nodes of a circuit that passes sends nothing through it."""
