"""The controller of circuits: triggers begin and end of windows, has the node act for each state, measures.

Its memory beyond the register (times of retries and measurements) is lost with a restart, which costs time only: the
states are in the ledger, every step can be repeated, and the node gets the whole set of leases whenever it or this
service has started. Windows follow the wall clock; retries and measurements follow a monotonic clock.
"""

import asyncio
import heapq
import logging
from collections.abc import Coroutine
from contextlib import suppress
from datetime import datetime

from downburst.bus.local import BusSubscription
from downburst.bus.port import Bus
from downburst.domain.circuits import (
    LEAVING,
    STANDING,
    WANTED,
    Circuit,
    CircuitProblem,
    CircuitShape,
    CircuitState,
    Standing,
)
from downburst.domain.circuits.signs import CircuitTold
from downburst.domain.events import (
    Event,
    NodeChanged,
    SessionChanged,
    SitesChanged,
    TrafficSeen,
)
from downburst.domain.senders import SenderSeen
from downburst.foundation.clock import Clock, to_us
from downburst.foundation.errors import DownburstError, NodeAway
from downburst.settings.circuits import CircuitSettings
from downburst.supervision import FAULTS, call, start
from downburst_circuits.bookings import BookingDesk
from downburst_circuits.lifecycle import Happening, Work, due_by_window, next_moment_us, work_in
from downburst_circuits.measuring import Measuring
from downburst_circuits.near_nodes import OWN, NearNodes
from downburst_circuits.providers.makers import Makers
from downburst_circuits.providers.nodes import first_problem
from downburst_circuits.providers.port import Broken, Made, Removed, Waiting
from downburst_circuits.register import Register, Said
from downburst_circuits.requests import moment_text


class CircuitController:
    """Keeps the circuits of one hub in the state that follows from their windows, the node and the probes."""

    def __init__(
        self,
        register: Register,
        nodes: NearNodes,
        makers: Makers,
        *,
        bus: Bus,
        clock: Clock,
        settings: CircuitSettings,
    ) -> None:
        self._register = register
        self._nodes = nodes
        self._makers = makers
        self._bus = bus
        self._clock = clock
        self.tests = BookingDesk(register, clock)
        self._measuring = Measuring(register, nodes, self.tests, clock, settings)
        self._agenda: list[tuple[int, int]] = []
        self._retries = _Retries()
        self._at_work: dict[int, asyncio.Task[None]] = {}
        self._wake = asyncio.Event()
        self._clocks = (clock.now(), clock.monotonic_s())
        self._reconciled: set[str] = set()
        """The nodes that have their whole sets of leases."""
        register.watchers.append(self._changed)

    async def run(self) -> None:
        """Works until cancelled."""
        try:
            with self._bus.subscribe(*_HEARD) as events:
                self.start()
                while not events.closed:
                    await self.tick()
                    event = None
                    with suppress(TimeoutError):
                        async with asyncio.timeout(TICK_S):
                            event = await self._news(events)
                    # Without the limit: a ledger that is slow would lose the event.
                    if event is not None:
                        await self.handle(event)
                    if events.take_dropped():
                        self._reconciled.clear()
        finally:
            await self._stop_work()

    async def _news(self, events: BusSubscription) -> Event | None:
        """The next event; most signs of life are none."""
        while isinstance(event := await events.next(), SenderSeen):
            if self._nodes.seen(event):
                self._reconciled.discard(event.sender)
                return None
        return event

    def start(self) -> None:
        """Loads the circuits from the register."""
        self._agenda.clear()
        self._reconciled.clear()
        for circuit in self._register.open.values():
            self._changed(circuit)

    async def handle(self, event: Event) -> None:
        """Handles an event from the node or another part."""
        match event:
            case CircuitTold():
                await self._told(event)
            case NodeChanged():
                self._reconciled.discard(OWN)
            case SenderSeen():
                if self._nodes.seen(event):
                    self._reconciled.discard(event.sender)
            case SessionChanged(state="connected"):
                self._try_again(event.site)
            case SitesChanged():
                await self._without_site()
            case TrafficSeen():
                self._measuring.used(event)
            case _:
                pass

    async def tick(self) -> None:
        """Performs all due actions; work with the node goes on in tasks."""
        self._nodes.look()
        await self._watch_clock()
        await self._fire()
        for name in self._nodes.running_ones():
            if name not in self._reconciled:
                await self._reconcile(name)
        for circuit in list(self._register.begun.values()):
            near = self._nodes.near(circuit)
            if self._nodes.is_away(near):
                await self._without_node(circuit, near)
            can_be_cleared = self._nodes.is_away(near) and work_in(circuit.state) is Work.CLEAR
            if self._nodes.runs(near) or can_be_cleared:
                await self._next_step(circuit)

    def measure_soon(self, number: int) -> None:
        """Schedules a measurement of a circuit at the next tick."""
        self._measuring.soon(number)

    def measure_leaf(self, number: int, site: str) -> None:
        """Schedules a measurement of one leaf, and of no other while the circuit is well."""
        self._measuring.soon(number, site)

    async def idle(self) -> None:
        """Waits until all tasks are done."""
        while self._at_work:
            await asyncio.gather(*self._at_work.values())

    async def _fire(self) -> None:
        now_us = to_us(self._clock.now())
        while self._agenda and self._agenda[0][0] <= now_us:
            _, number = heapq.heappop(self._agenda)
            circuit = self._register.open.get(number)
            happening = due_by_window(circuit, now_us) if circuit else None
            if circuit is not None and happening is not None:
                await self._register.happen(number, happening, Said(_due_sentence(circuit, happening)))

    async def _next_step(self, circuit: Circuit) -> None:
        number, now_s = circuit.number, self._clock.monotonic_s()
        if number in self._at_work or await self._has_ended(circuit) or not self._retries.due(number, now_s):
            return
        work = work_in(circuit.state)
        if circuit.state is CircuitState.FAILED:
            await self._register.happen(number, Happening.RETRY, Said("it is retried"))
        elif work is Work.BUILD:
            self._begin_work(number, self._build(number))
        elif work is Work.CLEAR:
            self._begin_work(number, self._clear(number))
        elif work is Work.VERIFY or self._measuring.due(circuit, now_s):
            self._begin_work(number, self._measure(number))

    async def _has_ended(self, circuit: Circuit) -> bool:
        """True if the maker of a circuit that stands has ended it; probes follow if its words are less clear."""
        maker = self._makers.of(circuit)
        if circuit.state not in STANDING:
            return False
        ended = maker.ended(circuit)
        if ended is not None:
            await self._broke(circuit.number, ended)
        elif maker.is_doubted(circuit):
            self._measuring.soon(circuit.number)
        return ended is not None

    def _begin_work(self, number: int, work: Coroutine[None, None, None]) -> None:
        task = start("circuits.work", self._guarded(number, work))
        self._at_work[number] = task
        task.add_done_callback(lambda _: self._at_work.pop(number, None))

    async def _guarded(self, number: int, work: Coroutine[None, None, None]) -> None:
        try:
            async with self._register.lock(number):
                await call("circuits.work", lambda: work)
        except NodeAway:
            self._retries.later(number, self._clock.monotonic_s())
        except DownburstError as error:
            await self._broke(number, Broken(CircuitProblem(error.sentence, step="node", hop=self._host(number))))
        except Exception as error:  # noqa: BLE001
            FAULTS.caught("circuits.work", error, f"circuit {number}")
            self._retries.later(number, self._clock.monotonic_s())

    def _host(self, number: int) -> str:
        """The node at which a circuit begins, for sentences."""
        circuit = self._register.open.get(number)
        sender = OWN if circuit is None else self._nodes.near(circuit)
        return f"the sender {sender}" if sender else "the hub's node"

    async def _build(self, number: int) -> None:
        circuit = self._register.open.get(number)
        if circuit is None or circuit.state is not CircuitState.PROVISIONING:
            return
        match await self._makers.of(circuit).make(circuit):
            case Made(took_ms):
                said = Said(f"it is up after {took_ms:.0f} ms; probes follow")
                await self._register.happen(number, Happening.BUILT, said)
            case Waiting(sentence):
                await self._register.happen(number, Happening.WAITS, Said(sentence))
            case Broken() as broken:
                await self._broke(number, broken)

    async def _measure(self, number: int) -> None:
        circuit = self._register.open.get(number)
        if circuit is None or circuit.state not in STANDING:
            return
        verdict = await self._measuring.measure(circuit)
        await self._register.happen(number, verdict.happening, verdict.said)
        if verdict.happening is Happening.BROKE:
            self._retries.later(number, self._clock.monotonic_s())
        elif verdict.happening is Happening.PASSED:
            self._retries.forget(number)

    async def _clear(self, number: int) -> None:
        circuit = self._register.open.get(number)
        if circuit is None:
            return
        match await self._makers.of(circuit).remove(circuit):
            case Removed():
                self._retries.forget(number)
                self._measuring.forget(number)
                await self._register.happen(number, Happening.CLEARED, Said(_cleared_sentence(circuit)))
            case Waiting(sentence):
                await self._register.happen(number, Happening.WAITS, Said(sentence))
            case Broken() as broken:
                await self._broke(number, broken)

    async def _broke(self, number: int, broken: Broken) -> None:
        problem = broken.problem
        said = Said(problem.sentence, problem.step, problem.hop, problem.remedy)
        self._retries.later(number, self._clock.monotonic_s(), least_s=broken.pause_s)
        await self._register.happen(number, Happening.BROKE, said)

    async def _without_node(self, circuit: Circuit, sender: str) -> None:
        """Takes a circuit out of use whose sender is away, or tells the reason why it is not made."""
        words = f"the sender {sender} at its near end does not run"
        said = Said(words, "node", f"the sender {sender}", "start it again; its feeds take other ways until then")
        if circuit.state is CircuitState.PROVISIONING:
            await self._register.happen(circuit.number, Happening.WAITS, said)
        elif circuit.state in STANDING:
            await self._register.happen(circuit.number, Happening.LOST, said)

    async def _reconcile(self, name: str) -> None:
        """Sends a node its whole set; its answer counts as the truth, wherever it or this hub stopped before."""
        begun = [circuit for circuit in self._register.begun.values() if self._nodes.near(circuit) == name]
        wanted = [circuit for circuit in begun if circuit.state in WANTED]
        if not wanted and not self._register.ports:
            self._reconciled.add(name)
            return
        held = [circuit for circuit in wanted if self._makers.of(circuit).is_held(circuit)]
        leases = [self._register.lease(circuit) for circuit in held]
        try:
            async with asyncio.timeout(None if name == OWN else LONGEST_ANSWER_S):
                standings = await self._nodes.of(name).hold_circuits(leases)
        except (NodeAway, TimeoutError):
            return
        except DownburstError as error:
            node = f"the sender {name}" if name else "the node"
            await self._register.fault(f"{node} did not get the circuits: {error.sentence}")
            standings = []
        self._reconciled.add(name)
        for standing in standings:
            await self._found(standing)

    async def _found(self, standing: Standing) -> None:
        circuit = self._register.open.get(standing.circuit)
        if circuit is None:
            return
        if circuit.state in (CircuitState.PROVISIONING, CircuitState.FAILED):
            self._retries.forget(circuit.number)
        elif standing.state == "failed":
            await self._broke(circuit.number, Broken(first_problem(standing)))
        else:
            self._measuring.soon(circuit.number)
            if circuit.state is CircuitState.DOWN:
                await self._register.happen(circuit.number, Happening.RETURNED, Said("the node holds it again"))

    async def _told(self, event: CircuitTold) -> None:
        circuit = self._register.begun.get(event.circuit)
        if circuit is None or circuit.state not in WANTED:
            return
        if event.site and event.site not in circuit.sites and not circuit.passes:
            return
        if event.state == "removed":
            if not circuit.over_at(self._clock.now()):
                said = Said("the node removed it before its window was over; it is set up again")
                await self._register.happen(circuit.number, Happening.REBUILD, said)
        elif event.state == "down":
            await self._lost(circuit, event)
        elif circuit.state is CircuitState.DOWN:
            said = Said(f"{event.site or 'its far end'} answers again; it is measured before it carries traffic")
            await self._register.happen(circuit.number, Happening.RETURNED, said)
        else:
            self._measuring.soon(circuit.number, event.site)

    async def _lost(self, circuit: Circuit, event: CircuitTold) -> None:
        problem = event.problem or CircuitProblem(f"no probe comes back from {event.site or 'the far end'}")
        said = Said(problem.sentence, problem.step or "probe", problem.hop or event.site or "", problem.remedy)
        if circuit.shape is CircuitShape.POINT_TO_POINT or event.site is None:
            await self._register.happen(circuit.number, Happening.LOST, said)
        else:
            # The other sites of a multipoint circuit may be well; measurements will show it.
            await self._measuring.cut(circuit, event.site, problem)
            await self._register.happen(circuit.number, Happening.FELL_SHORT, said)
            self._measuring.soon(circuit.number)

    def _try_again(self, site: str) -> None:
        """Retries immediately for a site that has connected, before its scheduled time."""
        for circuit in self._register.begun.values():
            if site in circuit.sites:
                self._retries.now(circuit.number)
                if circuit.state is CircuitState.DEGRADED:
                    self._measuring.soon(circuit.number)

    async def _without_site(self) -> None:
        known = await self._register.known()
        for circuit in list(self._register.open.values()):
            gone = next((site for site in circuit.sites if site not in known.sites), None)
            if gone is not None and circuit.state not in LEAVING:
                said = Said(f"the site {gone} was removed")
                await self._register.happen(circuit.number, Happening.CANCEL, said)

    async def _watch_clock(self) -> None:
        before, self._clocks = self._clocks, (self._clock.now(), self._clock.monotonic_s())
        step_s = (self._clocks[0] - before[0]).total_seconds() - (self._clocks[1] - before[1])
        if abs(step_s) >= CLOCK_STEP_S and self._register.open:
            await self._register.fault(_clock_sentence(before[0], self._clocks[0], step_s))

    def _changed(self, circuit: Circuit) -> None:
        moment_us = next_moment_us(circuit)
        if moment_us is not None:
            heapq.heappush(self._agenda, (moment_us, circuit.number))
        if circuit.state not in WANTED and circuit.state is not CircuitState.ADMITTED:
            self._retries.now(circuit.number)

    async def _stop_work(self) -> None:
        tasks = list(self._at_work.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Retries:
    """The times of each circuit's retries: soon at first, then with growing intervals."""

    def __init__(self) -> None:
        self._at: dict[int, tuple[float, float]] = {}

    def due(self, number: int, now_s: float) -> bool:
        return number not in self._at or self._at[number][0] <= now_s

    def later(self, number: int, now_s: float, *, least_s: float = 0.0) -> None:
        pause_s = min(self._at[number][1] * 2, LONGEST_PAUSE_S) if number in self._at else FIRST_PAUSE_S
        pause_s = max(pause_s, least_s)
        self._at[number] = (now_s + pause_s, pause_s)

    def now(self, number: int) -> None:
        if number in self._at:
            self._at[number] = (0.0, self._at[number][1])

    def forget(self, number: int) -> None:
        self._at.pop(number, None)


def _due_sentence(circuit: Circuit, happening: Happening) -> str:
    match happening:
        case Happening.EXPIRE:
            return f"it was held until {moment_text(circuit.held_until)} and not committed"
        case Happening.OPEN:
            create = f"downburst circuits create-path {circuit.number}"
            return f"its window is begun, at {moment_text(circuit.begin)}; its path is created by hand: {create}"
        case Happening.BEGIN:
            return f"its window is begun, at {moment_text(circuit.begin)}"
        case _:
            return f"its window is over, at {moment_text(circuit.end)}"


def _cleared_sentence(circuit: Circuit) -> str:
    if circuit.state is CircuitState.TEARING_DOWN:
        return f"its path is torn down; create it again: downburst circuits create-path {circuit.number}"
    return "it is completely removed"


def _clock_sentence(before: datetime, now: datetime, step_s: float) -> str:
    way = "forward" if step_s > 0 else "back"
    return (
        f"the hub's clock was set {way} by {abs(step_s):.0f} s, from {moment_text(before)} to {moment_text(now)}; "
        "windows of circuits follow it, and a running one continues"
    )


_LOG = logging.getLogger("downburst.circuits")
_HEARD = (CircuitTold, NodeChanged, SenderSeen, SessionChanged, SitesChanged, TrafficSeen)
TICK_S = 0.25
"""A begin or end of a window may be a second late; the service aims at a quarter."""
FIRST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 60.0
LONGEST_ANSWER_S = 5.0
"""A sender that is slower is asked again: the circuits of other nodes wait meanwhile."""
CLOCK_STEP_S = 2.0
"""A time server's ordinary corrections are smaller."""
