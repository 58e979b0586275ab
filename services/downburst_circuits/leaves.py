"""Leaves of multipoint circuits: a site joins or leaves one, and the other sites' ends are not touched."""

import asyncio
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial

from downburst.domain.circuits import (
    STANDING,
    Circuit,
    CircuitAnswer,
    CircuitDriver,
    CircuitEnd,
    CircuitHop,
    CircuitShape,
)
from downburst.foundation.clock import Clock, to_us
from downburst.foundation.errors import AlreadyThere, BadInput, DownburstError, NotFound
from downburst.ledger import Ledger
from downburst_circuits.addresses import spare
from downburst_circuits.calendar import NoRoom, Reservation
from downburst_circuits.controller import CircuitController
from downburst_circuits.desk.network import Network
from downburst_circuits.desk.trees import Growing, has_tree, ways
from downburst_circuits.lifecycle import check_modifiable
from downburst_circuits.providers.makers import Makers
from downburst_circuits.register import Register, Said
from downburst_circuits.requests import Known, check_leaf, conflict, resolved, with_tags


class LeafService:
    """Leaves of one hub's circuits. The node changes its end in place: it goes on sending to the other leaves."""

    def __init__(
        self,
        register: Register,
        controller: CircuitController,
        makers: Makers,
        *,
        ledger: Ledger,
        clock: Clock,
        one_at_a_time: asyncio.Lock,
    ) -> None:
        self._register = register
        self._controller = controller
        self._makers = makers
        self._ledger = ledger
        self._clock = clock
        self._one_at_a_time = one_at_a_time
        """No leaf is admitted while the topology changes or a request is admitted."""

    async def add_leaf(self, number: int, leaf: CircuitEnd, *, by: str, dry_run: bool = False) -> CircuitAnswer:
        """Adds a site's end, all or nothing. Probes have to pass before feeds ride to it; the others go on."""
        before, known = await self._open(number), await self._register.known()
        async with self._register.lock(number):
            circuit = self._register.open.get(number, before)
            _check_multipoint(circuit)
            with ExitStack() as promise:
                async with self._one_at_a_time:
                    fitting = partial(self._fitting, circuit, leaf, known)
                    wanted = self._controller.tests.cleared(fitting, for_good=not dry_run)
                    if dry_run:
                        return CircuitAnswer(wanted, done=False)
                    promise.enter_context(self._register.growing(wanted))
                added = wanted.ends[-1]
                said = Said(f"{added.site} joined at port {added.port}", by=by)
                kept = await self._carry_out(circuit, wanted, LEAF_ADDED, said)
        self._controller.measure_leaf(number, str(added.site))
        return CircuitAnswer(kept)

    async def remove_leaf(self, number: int, site: str, *, by: str, dry_run: bool = False) -> CircuitAnswer:
        """Removes a site's end; what it held is free when the node has removed it. The others go on."""
        before = await self._open(number)
        async with self._register.lock(number):
            circuit = self._register.open.get(number, before)
            _check_multipoint(circuit)
            wanted = _without(circuit, site, self._register.network)
            if dry_run:
                return CircuitAnswer(wanted, done=False)
            return CircuitAnswer(await self._carry_out(circuit, wanted, LEAF_REMOVED, Said(f"{site} left", by=by)))

    async def _open(self, number: int) -> Circuit:
        if number in self._register.open:
            return self._register.open[number]
        return await self._ledger.read(lambda tx: tx.circuits.one(number))

    def _with(self, circuit: Circuit, leaf: CircuitEnd, known: Known) -> Circuit:
        """The circuit with the leaf at the end, its address and tag included."""
        near, added = resolved((circuit.ends[0], leaf), known)
        if added.site in circuit.sites:
            raise AlreadyThere(f"circuit {circuit.number} has an end at {added.site} already")
        if circuit.carriage.driver is CircuitDriver.LINUX:
            added = replace(added, address=spare(circuit) if near.address else None)
        wanted = replace(circuit, ends=(*circuit.ends, added))
        check_leaf(wanted, known)
        return replace(wanted, path=(*circuit.path, *self._path(circuit, wanted)))

    def _path(self, circuit: Circuit, wanted: Circuit) -> tuple[CircuitHop, ...]:
        """The path to the leaf, if the topology reaches it."""
        network, port = self._register.network, wanted.ends[-1].port
        if not (network.has(port) and has_tree(wanted, network)):
            return ()
        window = self._window(wanted)
        try:
            return Growing(circuit, self._register.desk, network, *window).path_to(port)
        except NoRoom as refused:
            raise conflict(wanted, refused.clash, self._register.holders, instead_of=circuit) from None

    def _window(self, circuit: Circuit) -> tuple[int, int]:
        """The rest of its window."""
        whole = self._register.reservation(circuit)
        return max(whole.begin_us, to_us(self._clock.now())), whole.end_us

    def _fitting(self, circuit: Circuit, leaf: CircuitEnd, known: Known) -> Circuit:
        """The circuit with the leaf and its tag. The leaf's own claims are looked at: other leaves hold theirs."""
        wanted = self._with(circuit, leaf, known)
        before = {claim.resource: claim for claim in self._register.reservation(circuit).claims}
        whole = self._register.reservation(wanted)
        more = tuple(claim for claim in whole.claims if before.get(claim.resource) != claim)
        begin_us, end_us = self._window(wanted)
        try:
            fitting = self._register.calendar.fit_instead(Reservation(whole.number, begin_us, end_us, more))
        except NoRoom as refused:
            raise conflict(wanted, refused.clash, self._register.holders, instead_of=circuit) from None
        added = wanted.ends[-1]
        tag = next(claim.tag for claim in fitting.claims if claim.resource == added.port)
        return replace(wanted, ends=(*circuit.ends, replace(added, vlan=tag)))

    async def _carry_out(self, circuit: Circuit, wanted: Circuit, event: str, said: Said) -> Circuit:
        """Changes the node's end, then the record; if one of them refuses, both stay as they were."""
        maker = self._makers.of(circuit) if circuit.state in STANDING else None
        try:
            if maker is not None:
                await maker.change(circuit, wanted)
        except DownburstError as error:
            refused = Said(f"the change requested by {said.by} was not made: {error.sentence}", by=said.by)
            await self._register.note(circuit, event, refused)
            raise
        try:
            kept = await self._register.change(circuit.number, lambda now: _with_ends(now, wanted), event, said)
        except DownburstError:
            if maker is not None:
                with suppress(DownburstError):
                    await maker.change(wanted, circuit)
            raise
        return kept or wanted


def _check_multipoint(circuit: Circuit) -> None:
    check_modifiable(circuit)
    if circuit.shape is not CircuitShape.MULTIPOINT:
        raise BadInput(
            f"circuit {circuit.number} joins two ends, and only circuits to several sites have leaves to add and "
            "remove; reserve one to all of them"
        )


def with_tree(circuit: Circuit, register: Register) -> Circuit:
    """A new multipoint circuit with its paths and tags; raises `NoRoom`, or a sentence if no path leads to a leaf."""
    network, bare = register.network, register.reservation(circuit)
    growing = Growing(circuit, register.desk, network, bare.begin_us, bare.end_us)
    reached = [leaf.port for leaf in circuit.ends[1:] if network.has(leaf.port)]
    whole = replace(circuit, path=tuple(hop for port in reached for hop in growing.path_to(port)))
    return with_tags(whole, register.desk.fit(register.reservation(whole)))


def _without(circuit: Circuit, site: str, network: Network) -> Circuit:
    near, *leaves = circuit.ends
    left = [end for end in leaves if end.site != site]
    if len(left) == len(leaves):
        raise NotFound(f"circuit {circuit.number} has no end at {site!r}; it has {', '.join(circuit.far_sites)}")
    if len(left) < LEAST_LEAVES:
        raise BadInput(
            f"circuit {circuit.number} needs two sites at least, so {site} can't leave it; cancel it, and reserve "
            f"one to {left[0].site} alone"
        )
    paths = ways(circuit, network)
    path = tuple(hop for end in left for hop in paths.get(end.port, ()))
    return replace(circuit, ends=(near, *left), path=path)


def _with_ends(now: Circuit, wanted: Circuit) -> Circuit:
    """The circuit in its present state, with the ends and paths of the wanted one."""
    check_modifiable(now)
    return replace(now, ends=wanted.ends, path=wanted.path)


LEAF_ADDED, LEAF_REMOVED = "leaf-added", "leaf-removed"
LEAST_LEAVES = 2
