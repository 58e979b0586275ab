"""Runs the probes of one hub: starts what is due, watches the products meanwhile, and stores what was found.

Two loops: one looks at the products and the calendar four times a second and works on memory alone, so that a slow
ledger does not delay the end of a probe; the other reads and writes the ledger. A probe that ran when the hub ended
has failed; a soak continues, and its gap is stated.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from downburst.bus.local import BusSubscription
from downburst.bus.port import Bus
from downburst.domain.circuits import Port
from downburst.domain.events import Event, NodeChanged, PlanMade
from downburst.domain.plans import Plan
from downburst.domain.probes import Probe, ProbeKind, ProbeState
from downburst.domain.probes.ceilings import day_of, over_ceiling
from downburst.domain.probes.results import ProbeResult
from downburst.domain.probes.signs import PathsMeasured, ProbeOver, ProbesChanged, ProbeSecondReported
from downburst.domain.senders import SenderSeen
from downburst.domain.sites import Site
from downburst.foundation.clock import Clock
from downburst.foundation.errors import DownburstError
from downburst.ledger import Ledger, Transaction
from downburst.live.state import LiveState
from downburst.supervision import attempt, side_by_side, start
from downburst_probes.attempts import (
    OVERDUE_S,
    Attempt,
    after_attempt,
    as_attempted,
    begun,
    continues,
    frame_bytes,
    interrupted,
    longest_s,
    numbered,
    planned_end,
)
from downburst_probes.circumstances import circumstances, too_much
from downburst_probes.ends import away_relay, wrong_end
from downburst_probes.lateness import REMEMBERED_S, Late, LateArrivals, Objectives, late_paths
from downburst_probes.legs import legs_to, new_leg
from downburst_probes.nodes import OWN, ProbeNodes, node_words
from downburst_probes.port import Bookings, ProbeNode
from downburst_probes.reserving import Place, reserve
from downburst_probes.soaks import whole_variation
from downburst_probes.timetable import add_due, any_due


@dataclass(frozen=True, slots=True)
class _Known:
    """The ledger's part in the decisions, as last read."""

    unfinished: Sequence[Probe] = ()
    ports: Sequence[Port] = ()
    objectives: Objectives = field(default_factory=Objectives)


class ProbeRunner:
    """The probes of one hub; the only writer of their states."""

    def __init__(
        self, ledger: Ledger, bus: Bus, live: LiveState, clock: Clock, *, node: ProbeNode, bookings: Bookings
    ) -> None:
        self._ledger = ledger
        self._bus = bus
        self._live = live
        self._clock = clock
        self._nodes = ProbeNodes(node, bus, clock)
        self._bookings = bookings
        self._known = _Known()
        self._arrivals = LateArrivals()
        self._running: dict[int, Attempt] = {}
        self._beginning: dict[int, asyncio.Task[None]] = {}
        self._stopping: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()

    @property
    def running(self) -> list[Probe]:
        """The probes that run now."""
        return [active.probe for active in self._running.values()]

    async def run(self) -> None:
        """Works until cancelled."""
        with self._bus.subscribe(
            *(ProbesChanged, ProbeSecondReported, ProbeOver, NodeChanged, PlanMade, PathsMeasured, SenderSeen),
            limit=EVENTS,
        ) as events:
            await self.recover()
            try:
                await side_by_side(self._hear(events), self._guard_for_good(), self._work_for_good())
            finally:
                for task in (*self._beginning.values(), *self._stopping):
                    task.cancel()

    async def recover(self) -> None:
        """States the end of probes that ran when the hub ended; soaks are to continue."""

        def write(tx: Transaction) -> None:
            probes = tx.measured.probing.probes
            for probe in probes.unfinished():
                if probe.state is ProbeState.RUNNING and probe.id not in self._running:
                    probes.save(_restarted(probe, self._clock.now(), last_second(tx, probe)))

        await self._ledger.write(write)

    def handle(self, event: Event) -> None:
        """Takes one event into memory."""
        match event:
            case ProbeSecondReported():
                if (running := self._named(event.name)) is not None:
                    running.reported.append(event)
            case ProbeOver():
                if (ended := self._named(event.name)) is not None:
                    ended.over = event
            case NodeChanged() if not event.running:
                self._lose([active for active in self._running.values() if not active.node], event.reason)
            case PlanMade():
                self._note_new_legs(event.plan)
                return
            case PathsMeasured():
                self._arrivals.take(event, self._known.objectives, self._clock.monotonic_s())
                return
            case SenderSeen() if not self._nodes.seen(event):
                return
            case _:
                pass
        if not isinstance(event, ProbeSecondReported):
            self._wake.set()

    def _note_new_legs(self, plan: Plan) -> None:
        for active in self._running.values():
            found = new_leg(active.probe.request.ends, active.legs, plan)
            active.new_leg = active.new_leg or found

    async def guard(self) -> None:
        """Ends probes that hurt products, or that have lost their node or their reservation."""
        self._nodes.look()
        if not self._running:
            return
        for active in list(self._running.values()):
            await self._keep_to_node(active)
        late = late_paths(self._live, self._known.objectives, self._clock.now())
        taken = await self._taken()
        for active in list(self._running.values()):
            seen = late | self._arrivals.since(active.began_s + REPORT_S)
            fresh = next((seen[path] for path in seen if path not in active.late_before), None)
            if fresh is not None:
                await self._end(active, ProbeState.STOPPED, f"products became late: {fresh.words}")
            elif active.booking is not None and active.booking.number in taken:
                await self._end(active, ProbeState.STOPPED, "a circuit was reserved that needs its rate")
            elif active.new_leg is not None:
                # A soak continues beside the leg.
                soaks = active.probe.request.kind is ProbeKind.SOAK
                state = ProbeState.FAILED if soaks else ProbeState.STOPPED
                await self._end(active, state, active.new_leg.words)

    async def _keep_to_node(self, active: Attempt) -> None:
        """Ends a probe whose sender is gone, or whose site is connected to another node."""
        if active.node and self._nodes.run_of(active.node) != active.run:
            self._lose([active], None)
            return
        site = active.probe.request.site
        nodes = self._live.nodes_of(site)
        if nodes and active.node not in nodes:
            await self._end(active, ProbeState.FAILED, f"{site} moved to {node_words(nodes[0])}")

    def _lose(self, lost: Sequence[Attempt], reason: str | None) -> None:
        for active in lost:
            active.over = active.over or _ended_with_node(active, reason)
            self._wake.set()

    async def work(self) -> None:
        """Reads the ledger, ends and starts what is due, and stores seconds."""
        known, due = await self._ledger.read(self._look)
        if due:
            await self._ledger.write(lambda tx: add_due(tx, self._clock.now()))
            known, _ = await self._ledger.read(self._look)
        self._known = known
        for probe in self._known.unfinished:
            running = self._running.get(probe.id)
            if running is not None and probe.stop_by:
                await self._end(running, ProbeState.STOPPED, f"stopped by {probe.stop_by}")
        finished = await self._finish_all()
        for probe in self._known.unfinished:
            if probe.state is ProbeState.WAITING and probe.id not in {*self._running, *self._beginning, *finished}:
                await attempt("probes.turn", partial(self._turn, probe), what=f"probe {probe.id}")

    async def settle(self) -> None:
        """Waits for the starts and stops under way."""
        await asyncio.gather(*self._beginning.values(), *self._stopping, return_exceptions=True)

    async def _finish_all(self) -> set[int]:
        """Stores what was reported, and ends the attempts that are over."""
        finished = set()
        for active in list(self._running.values()):
            await self._store(active)
            if active.is_over(self._clock.monotonic_s()):
                await self._finish(active)
                finished.add(active.probe.id)
        return finished

    async def _hear(self, events: BusSubscription) -> None:
        async for event in events:
            self.handle(event)

    async def _guard_for_good(self) -> None:
        while True:
            await attempt("probes.guard", self.guard)
            await asyncio.sleep(GUARD_S)

    async def _work_for_good(self) -> None:
        while True:
            self._wake.clear()
            await attempt("probes.work", self.work)
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S if self._known.unfinished else IDLE_S):
                    await self._wake.wait()

    def _look(self, tx: Transaction) -> tuple[_Known, bool]:
        objectives = Objectives.of(tx.feeds.all(), tx.alerting.objectives.all())
        known = _Known(tx.measured.probing.probes.unfinished(), tx.ports.all(), objectives)
        return known, any_due(tx, self._clock.now())

    def _named(self, name: str) -> Attempt | None:
        return next((one for one in self._running.values() if one.probe.name == name), None)

    async def _taken(self) -> set[int]:
        """The bookings that ended before their time; none while the calendar does not answer."""
        ends = {one.booking.number: one.booking.end for one in self._running.values() if one.booking is not None}
        if ends:
            with suppress(DownburstError):
                booked = await self._bookings.booked()
                return {one.number for one in booked if one.end < ends.get(one.number, one.end)}
        return set()

    async def _end(self, active: Attempt, state: ProbeState, reason: str) -> None:
        if active.stopping is not None or active.over is not None:
            return
        active.stopping, active.stopped_s = (state, reason), self._clock.monotonic_s()
        _LOG.info("probe %d ends: %s", active.probe.id, reason)
        # A sender that does not answer delays the end of no other probe.
        task = start("probes.stop", self._stop(active, reason))
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)

    async def _stop(self, active: Attempt, reason: str) -> None:
        with suppress(DownburstError):
            await self._nodes.of(active.node).stop_probe(active.probe.name, reason)

    async def _turn(self, probe: Probe) -> None:
        """Starts a waiting probe, or says why not yet; one whose patience has ended is refused."""
        if probe.stop_by:
            await self._close(probe, ProbeState.STOPPED, f"stopped by {probe.stop_by}")
            return
        refused, waits = await self._in_the_way(probe)
        place, node = Place(), self._node_of(probe)
        if not refused and not waits:
            try:
                rest_s = self._rest_s(probe)
                place = await reserve(self._bookings, probe.request, self._known.ports, rest_s, sender=node)
            except DownburstError as error:
                refused = error.sentence
            waits = place.sentence
        if refused:
            await self._close(probe, ProbeState.REFUSED, refused)
        elif not waits:
            self._beginning[probe.id] = start("probes.begin", self._begin(probe, place, node))
        elif self._is_patient(probe):
            if probe.reason != waits:
                await self._save(replace(probe, reason=waits))
        else:
            words = f"it waited {probe.request.patience_s:g} s: {waits}"
            await self._close(probe, ProbeState.FAILED if probe.attempts else ProbeState.REFUSED, words)

    async def _in_the_way(self, probe: Probe) -> tuple[str, str]:
        """The reason to refuse a probe, and the reason to wait; empty: there is none."""
        now, request = self._clock.now(), probe.request

        def read(tx: Transaction) -> tuple[Site, str | None]:
            probing = tx.measured.probing
            # A soak that continues has its bytes already.
            if not probe.attempts:
                for end in request.ends:
                    used = probing.probes.used_bytes(end, day_of(now))
                    if over := over_ceiling(request, probing.ceilings.of(end), used):
                        return tx.sites.one(request.site), over
            wrong = wrong_end(request, self._live, tx.fleet.ways.find(request.site), self._node_of(probe))
            return tx.sites.one(request.site), wrong

        site, refused = await self._ledger.read(read)
        return refused or "", self._busy(probe) or too_much(request, site, self._live) or ""

    def _busy(self, probe: Probe) -> str:
        """The reason to wait that needs no ledger."""
        site, node = probe.request.site, self._node_of(probe)
        others = [*self._running, *self._beginning]
        taken = {end: one.id for one in self._known.unfinished if one.id in others for end in one.request.ends}
        if self._nodes.run_of(node) is None:
            return f"{node_words(node)} is not running"
        if not self._live.nodes_of(site):
            return f"{site} is not connected"
        for end in probe.request.ends:
            if end in taken:
                return f"probe {taken[end]} of {end} runs; one of a site runs at a time"
        if away := away_relay(probe.request, self._live):
            return away
        if len(others) >= MOST_AT_ONCE:
            return f"{len(others)} probes of this hub run, the most at a time"
        late = self._late_now()
        return next((f"products are late: {one.words}" for path, one in late.items() if path[0] == site), "")

    def _late_now(self) -> dict[tuple[str, str], Late]:
        """The paths that are late, or were a moment ago."""
        late = late_paths(self._live, self._known.objectives, self._clock.now())
        return late | self._arrivals.since(self._clock.monotonic_s() - REMEMBERED_S)

    def _node_of(self, probe: Probe) -> str:
        """The node that has the site's session; the first one, if a site has several."""
        return next(iter(self._live.nodes_of(probe.request.site)), OWN)

    def _is_patient(self, probe: Probe) -> bool:
        now = self._clock.now()
        if probe.attempts:
            return continues(probe, now)
        return now - probe.requested_at < timedelta(seconds=probe.request.patience_s)

    def _rest_s(self, probe: Probe) -> float:
        now = self._clock.now()
        return (planned_end(probe, now) - now).total_seconds() if probe.attempts else longest_s(probe.request)

    async def _begin(self, probe: Probe, place: Place, node: str) -> None:
        try:
            await self._start(probe, place, node)
        finally:
            del self._beginning[probe.id]
            self._wake.set()

    async def _start(self, probe: Probe, place: Place, node: str) -> None:
        now, first = self._clock.now(), not probe.attempts
        running = begun(probe, now)
        plans, way = await self._ledger.read(
            lambda tx: (tx.planning.plans.all_current(), tx.fleet.ways.find(probe.request.site))
        )
        if first:
            facts = circumstances(probe.request, self._live, plans=plans, way=way, booking=place.booking, sender=node)
            running = replace(running, circumstances=facts)
        await self._save(running, sent_bytes=probe.request.frame_bytes if first else 0)
        sent = as_attempted(running, now)
        late, run = frozenset(self._late_now()), self._nodes.run_of(node)
        ends_by_s = self._clock.monotonic_s() + longest_s(sent.request) + OVERDUE_S
        active = self._running[probe.id] = Attempt(running, now, ends_by_s, place.booking, late, node, run)
        active.legs, active.began_s = legs_to(probe.request.ends, plans), self._clock.monotonic_s()
        try:
            await self._nodes.of(node).start_probe(sent)
        except DownburstError as error:
            active.over = ProbeOver(running.name, "failed", error.sentence, ProbeResult(()))
        _LOG.info(
            "probe %d of %s: %s", probe.id, probe.request.site, "it runs" if not active.over else "it is refused"
        )

    async def _store(self, active: Attempt) -> None:
        seconds = [report.second for report in numbered(active)]
        active.reported.clear()
        if seconds:
            number = active.probe.id
            await self._ledger.write(lambda tx: tx.measured.probing.probes.add_seconds(number, seconds))

    async def _finish(self, active: Attempt) -> None:
        now = self._clock.now()
        probe = after_attempt(active, now)
        if probe.ended and probe.request.kind is ProbeKind.SOAK and probe.result is not None:
            rates = await self._ledger.read(lambda tx: whole_variation(tx.measured.probing.probes, probe.id))
            probe = replace(probe, result=replace(probe.result, variation=rates))
        unsent = frame_bytes(probe.result) - probe.request.frame_bytes if probe.ended else 0
        await self._save(probe, sent_bytes=unsent)
        del self._running[probe.id]
        if active.booking is not None:
            with suppress(DownburstError):
                await self._bookings.release(active.booking.number)
        _LOG.info("probe %d of %s is %s: %s", probe.id, probe.request.site, probe.state, probe.reason)

    async def _close(self, probe: Probe, state: ProbeState, reason: str) -> None:
        await self._save(replace(probe, state=state, reason=reason, ended_at=self._clock.now()))

    async def _save(self, probe: Probe, *, sent_bytes: int = 0) -> None:
        await self._ledger.write(lambda tx: tx.measured.probing.probes.save(probe, sent_bytes=sent_bytes))
        self._bus.publish(ProbesChanged())


def last_second(tx: Transaction, probe: Probe) -> int:
    """The number of the last stored second; 0 if there is none."""
    seconds = tx.measured.probing.probes.last_minute(probe.id)
    return max((one.second for one in seconds), default=0)


def _restarted(probe: Probe, now: datetime, last: int) -> Probe:
    reason = "the hub restarted"
    if probe.stop_by or not continues(probe, now):
        return replace(probe, state=ProbeState.FAILED, reason=reason, ended_at=now)
    since = (probe.started_at or now) + timedelta(seconds=last + 1)
    return interrupted(probe, min(since, now), reason)


def _ended_with_node(active: Attempt, reason: str | None) -> ProbeOver:
    ended = f"{node_words(active.node)} ended"
    words = f"{ended}: {reason}" if reason else ended
    return ProbeOver(active.probe.name, "failed", words, ProbeResult(()))


_LOG = logging.getLogger("downburst.probes")
GUARD_S = 0.25
"""Products that become late end a probe within this, the node's report of each second, and its stop."""
LOOK_S = 1.0
IDLE_S = 10.0
"""Without probes only schedules may become due."""
REPORT_S = 1.5
"""Reports that come earlier tell of products from before the probe."""
MOST_AT_ONCE = 4
EVENTS = 4_096
