"""The desk's answers to people: the topology, and the two questions about windows and rates."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

from downburst.bus.port import Bus
from downburst.domain.circuits import Circuit, CircuitEnd, CircuitRequest, Direction
from downburst.domain.circuits.signs import CircuitsChanged
from downburst.domain.topology import Topology
from downburst.domain.topology.questions import (
    PathQuestion,
    RateAnswer,
    RateQuestion,
    TopologyAnswer,
    WindowAnswer,
    WindowFound,
    WindowQuestion,
)
from downburst.foundation.clock import Clock, from_us, to_us
from downburst.foundation.errors import AlreadyThere, BadInput, CircuitConflict
from downburst.foundation.rates import rate_text
from downburst.ledger import Ledger
from downburst_circuits.desk.booking import NoPath
from downburst_circuits.desk.circuits import check_elements, hops_of, wanted_of, wish_of
from downburst_circuits.desk.network import Network
from downburst_circuits.register import Register
from downburst_circuits.requests import Known, check_rates, moment_text, resolved


class DeskService:
    """Questions and the topology of one hub."""

    def __init__(
        self, register: Register, *, ledger: Ledger, bus: Bus, clock: Clock, one_at_a_time: asyncio.Lock
    ) -> None:
        self._register = register
        self._ledger = ledger
        self._bus = bus
        self._clock = clock
        self._one_at_a_time = one_at_a_time
        """No request is admitted while the topology changes."""

    async def put_topology(self, wanted: Topology, *, dry_run: bool = False) -> TopologyAnswer:
        """Replaces the topology, unless circuits would lose a link or a rate that they have reserved."""
        async with self._one_at_a_time:
            return await self._put(wanted, dry_run=dry_run)

    async def find_window(self, asked: WindowQuestion) -> WindowAnswer:
        """The first window in which a circuit would be admitted."""
        known = await self._register.known()
        if asked.last < asked.first or not 0 < asked.seconds <= LONGEST.total_seconds():
            raise BadInput(f"give a window of up to {LONGEST.days} days, and a last begin not before the first")
        if asked.first < self._clock.now() - JUST_NOW or asked.last - asked.first > LONGEST:
            raise BadInput(f"give begins that are not past and not more than {LONGEST.days} days apart")
        circuit = _circuit(asked.path, known, asked.first, asked.first + timedelta(seconds=asked.seconds))
        circuit = replace(circuit, rate_out_bps=asked.rate_out_bps, rate_in_bps=asked.rate_in_bps)
        check_rates(circuit, known.ports)
        check_elements(asked.path.include | asked.path.exclude, self._register.network)
        wanted = wanted_of(circuit, known.ports, self._register.network)
        length_us = round(asked.seconds * 1e6)
        try:
            booked = self._register.desk.opening(wanted, length_us, to_us(asked.first), to_us(asked.last))
        except NoPath:
            raise no_path(circuit) from None
        rates = f"{rate_text(asked.rate_out_bps)} out and {rate_text(asked.rate_in_bps)} in"
        if booked is None:
            until = moment_text(asked.last)
            return WindowAnswer(f"no window for {rates} begins up to {until}; ask for less, or for a later begin")
        hub, far = circuit.ends
        begin, end = from_us(booked.reservation.begin_us), from_us(booked.reservation.end_us)
        found = WindowFound(begin, end, hub.port, far.port, hops_of(booked.path, booked))
        return WindowAnswer(f"{rates} are free from {moment_text(begin)} to {moment_text(end)}", found)

    async def find_rate(self, asked: RateQuestion) -> RateAnswer:
        """The most that a circuit could have throughout a window, on the path with the most out."""
        if asked.end <= asked.begin:
            raise BadInput("the window ends not after its begin; give a later end")
        circuit = _circuit(asked.path, await self._register.known(), asked.begin, asked.end)
        hub, far = (end.port for end in circuit.ends)
        check_elements(asked.path.include | asked.path.exclude, self._register.network)
        wish = wish_of(circuit, self._register.network)
        begin_us, end_us = to_us(asked.begin), to_us(asked.end)
        try:
            free = self._register.desk.available(hub, far, wish, begin_us, end_us)
        except NoPath:
            raise no_path(circuit) from None
        window = f"from {moment_text(asked.begin)} to {moment_text(asked.end)}"
        sentence = f"{rate_text(free.out_bps)} out and {rate_text(free.in_bps)} in are free {window}"
        return RateAnswer(sentence, free.out_bps, free.in_bps, hub, far, hops_of(free.path))

    async def _put(self, wanted: Topology, *, dry_run: bool) -> TopologyAnswer:
        register = self._register
        try:
            wanted.check(register.ports)
        except ValueError as error:
            raise BadInput(f"the topology can't be used: {error}") from None
        self._check_paths(wanted)
        self._check_rates(wanted)
        changes = tuple(register.network.topology.difference(wanted))
        if not dry_run:
            await self._ledger.write(lambda tx: tx.planning.topology.put(wanted))
            register.take(Network(wanted, register.ports))
            self._bus.publish(CircuitsChanged())
        return TopologyAnswer(wanted, changes, self._affected(wanted), done=not dry_run)

    def _check_paths(self, wanted: Topology) -> None:
        """Refuses to take a link from circuits, or to move it."""
        before = {link.name: link for link in self._register.network.topology.links}
        after = {link.name: link for link in wanted.links}
        for circuit in self._register.open.values():
            for hop in circuit.path:
                old, new = before.get(hop.link), after.get(hop.link)
                if old and (new is None or (old.a, old.z) != (new.a, new.z)):
                    raise AlreadyThere(
                        f"link {hop.link} is needed by circuit {circuit.number}; cancel that first",
                        circuits=[circuit.number],
                    )

    def _check_rates(self, wanted: Topology) -> None:
        """Refuses a rate below what is reserved."""
        calendar = self._register.calendar_over(Network(wanted, self._register.ports))
        for resource in calendar.resources():
            for direction in Direction:
                rate_bps, most_bps = calendar.rate_bps(resource, direction), calendar.most_bps(resource, direction)
                if most_bps > rate_bps and resource not in self._register.ports:
                    users = calendar.users(resource)
                    raise CircuitConflict(
                        f"{resource} can't have {rate_text(rate_bps)} {direction}: circuits hold up to "
                        f"{rate_text(most_bps)} of it; cancel or modify some first",
                        # Bookings of tests have numbers below zero.
                        circuits=[{"circuit": number} for number in users if number > 0],
                    )

    def _affected(self, wanted: Topology) -> tuple[int, ...]:
        """The circuits with a window that a maintenance reaches into."""
        closures = Network(wanted, self._register.ports).closures()
        return tuple(
            number
            for number, circuit in sorted(self._register.open.items())
            if any(
                closed.begin_us < place.end_us and place.begin_us < closed.end_us
                for place in (self._register.reservation(circuit),)
                for claim in place.claims
                for closed in closures.get(claim.resource, ())
            )
        )


def no_path(circuit: Circuit) -> BadInput:
    """The refusal of ports that no path joins."""
    hub, far = (end.port for end in circuit.ends)
    passing = f" over {', '.join(circuit.request.include)}" if circuit.request.include else ""
    avoiding = f" without {', '.join(circuit.request.exclude)}" if circuit.request.exclude else ""
    return BadInput(
        f"no path leads from {hub} to {far}{passing}{avoiding}; `downburst topology show` lists the links"
    )


def _circuit(asked: PathQuestion, known: Known, begin: datetime, end: datetime) -> Circuit:
    ends: tuple[CircuitEnd, ...] = resolved((asked.hub, asked.far), known)
    include, exclude = tuple(sorted(asked.include)), tuple(sorted(asked.exclude))
    request = CircuitRequest("question", include=include, exclude=exclude, path_order=asked.order)
    return Circuit(0, request, ends, 0, 0, begin, end)


LONGEST = timedelta(days=366)
JUST_NOW = timedelta(seconds=60)
