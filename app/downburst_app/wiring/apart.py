"""Parts of a hub as separate processes: scheduler, latency service, circuit and alarm service; one of each is active.

The ledger decides: the holder of the role is active, others stand by and take over when it is gone.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from functools import partial
from socket import gethostname

from downburst.bus.port import Bus
from downburst.foundation.clock import SystemClock
from downburst.foundation.errors import AlreadyRunning, BadSettings, DownburstError, Failure, LedgerAway
from downburst.host.absent_transports import absent_transports
from downburst.kafka.batches import BatchReader
from downburst.kafka.bus import KafkaBus
from downburst.ledger import Ledger
from downburst.parts.names import Part
from downburst.parts.presence import at_work, show_life
from downburst.parts.questions import answer_for_good
from downburst.settings.hub import Settings
from downburst.supervision import keep, side_by_side, start
from downburst.supervision.remote_faults import start_telling
from downburst.supervision.starting import step
from downburst_alarms.notices import NetworkTeller
from downburst_alarms.remote import RemoteFacts, answers_of_watch
from downburst_alarms.watch import AlarmWatch
from downburst_app.wiring.ledger_watch import LedgerWatch
from downburst_app.wiring.process import cancelled, stopped_by_signals
from downburst_app.wiring.reports import FaultReports
from downburst_circuits.controller import CircuitController
from downburst_circuits.near_nodes import NearNodes
from downburst_circuits.provider_agent.parts import runs_of_provider
from downburst_circuits.providers.agents import Agents
from downburst_circuits.providers.makers import makers
from downburst_circuits.register import Register
from downburst_circuits.remote import RemoteCircuits, answers_of_service
from downburst_circuits.remote_nodes import RemoteNode
from downburst_circuits.service import CircuitService
from downburst_latency.service import LatencyService
from downburst_scheduler.demand.loop import DemandLoop
from downburst_scheduler.loop import SchedulerLoop
from downburst_scheduler.ways_loop import WaysLoop
from downburst_scheduler.what_if.desk import WhatIfDesk, answers_of_desk


async def serve_scheduler(settings: Settings) -> None:
    """Runs the scheduler of a hub beside it until SIGTERM or SIGINT; stands by while another is active."""
    if not settings.scheduler.apart:
        raise BadSettings(
            "the hub runs its scheduler itself; to run one beside it set scheduler.apart = true, for the hub as well"
        )
    await _serve(settings, Part.SCHEDULER, _schedule)


async def serve_latency(settings: Settings) -> None:
    """Stores receipts in the ledger and keeps their history, beside the hub; stands by while another is active."""
    if not settings.latency_apart:
        raise BadSettings(
            "the hub runs its latency service itself; to run one beside it set latency_apart = true, for the hub too"
        )
    await _serve(settings, Part.LATENCY, _keep_latencies)


async def serve_circuits(settings: Settings) -> None:
    """Keeps the calendar and the life of circuits, beside the hub; stands by while another is active."""
    if not settings.circuits.apart:
        raise BadSettings(
            "the hub runs its circuit service itself; to run one beside it set circuits.apart = true, for the hub too"
        )
    await _serve(settings, Part.CIRCUITS, _keep_circuits)


async def serve_alarms(settings: Settings) -> None:
    """Begins and ends alarms and notifies receivers, beside the hub; stands by while another is active."""
    if not settings.alarms.apart:
        raise BadSettings(
            "the hub runs its alarm service itself; to run one beside it set alarms.apart = true, for the hub too"
        )
    await _serve(settings, Part.ALARMS, _watch_alarms)


class _Given:
    """The inputs of a part that runs by itself."""

    def __init__(self, settings: Settings, ledger: Ledger, bus: Bus) -> None:
        self.settings = settings
        self.ledger = ledger
        self.bus = bus
        self.say = FaultReports(ledger, bus, _LOG).say
        self.proof: Callable[[], Awaitable[None]] = at_work

    async def prove(self) -> None:
        """Raises the reason why the part does not work; its signs of life carry the result."""
        await self.proof()


Work = Callable[[_Given], Awaitable[None]]


async def _serve(settings: Settings, role: Part, work: Work) -> None:
    # Signals count from here on, also during waits for servers: the first process of a container has no default
    # handler.
    stop = start("apart.stop", stopped_by_signals().wait())
    working = start("apart.run", _with_servers(settings, role, work))
    await asyncio.wait((stop, working), return_when=asyncio.FIRST_COMPLETED)
    if working.done():
        await working
    await cancelled(stop, working)
    _LOG.info("stopped")


async def _with_servers(settings: Settings, role: Part, work: Work) -> None:
    async with AsyncExitStack() as stack:
        with step("the ledger", limit_s=settings.start_step_s):
            ledger = await asyncio.to_thread(Ledger.look_into, settings.url_of_ledger)
        stack.callback(ledger.close)
        with step("Kafka", limit_s=settings.start_step_s):
            bus = await KafkaBus(settings.kafka).open()
        stack.callback(bus.close)
        telling = start_telling(bus, _process(role))
        stack.push_async_callback(cancelled, telling)
        await _take_turns(_Given(settings, ledger, bus), role, work)


async def _take_turns(part: _Given, role: Part, work: Work) -> None:
    """Stands by until the role is free, then works until another process takes it."""
    stands_by = False
    while not await asyncio.to_thread(_may_hold, part.ledger, role):
        if not stands_by:
            _LOG.info("another %s is at work; this one stands by", role)
        stands_by = True
        await asyncio.sleep(STAND_BY_S)
    _LOG.info("at work as %s", role)
    tasks = (
        start("apart.ledger-watch", LedgerWatch(part.ledger, say=part.say).run()),
        start("apart.work", keep("apart.work", partial(work, part), refused=_goes_on)),
        start("apart.life", show_life(part.bus, role, _process(role), part.prove)),
    )
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            await task
    finally:
        await cancelled(*tasks)


async def _goes_on(error: DownburstError) -> None:
    """Keeps a part running: servers that are away return. Only another active process ends it."""
    if isinstance(error, AlreadyRunning) or not isinstance(error, Failure):
        raise error
    _LOG.warning("waits: %s", error.sentence)


def _may_hold(ledger: Ledger, role: Part) -> bool:
    with suppress(AlreadyRunning, LedgerAway):
        ledger.hold(role.value)
        return True
    return False


def _process(role: Part) -> str:
    return f"{role} on {gethostname()}"


async def _schedule(part: _Given) -> None:
    given = (part.bus, part.ledger, part.settings)
    # The hub itself orders circuits on demand if it keeps circuits.
    acting = [DemandLoop(*given, RemoteCircuits(part.bus)).run()] if part.settings.circuits.apart else []
    scheduler = SchedulerLoop(*given, absent=absent_transports())
    answers = answers_of_desk(WhatIfDesk(scheduler))
    await side_by_side(
        scheduler.run(),
        WaysLoop(*given).run(),
        keep("apart.questions", partial(answer_for_good, part.bus, Part.SCHEDULER, answers)),
        *acting,
    )


async def _keep_latencies(part: _Given) -> None:
    latency = LatencyService(part.ledger, bus=part.bus)
    reader = await BatchReader(part.settings.kafka).open()
    try:
        await side_by_side(
            keep("apart.receipts", partial(reader.run, latency.load_text, part.say), refused=_goes_on),
            keep("apart.history", partial(latency.keep_history, days=part.settings.latency_days), refused=_goes_on),
        )
    finally:
        reader.close()


async def _keep_circuits(part: _Given) -> None:
    clock, node = SystemClock(), RemoteNode(part.bus)
    register = Register(part.ledger, part.bus, clock)
    await register.load()
    settings = part.settings.circuits
    nodes = NearNodes(register, node, part.bus, clock)
    made_by = makers(register, nodes, Agents(register, ledger=part.ledger, bus=part.bus, clock=clock), settings)
    controller = CircuitController(register, nodes, made_by, bus=part.bus, clock=clock, settings=settings)
    service = CircuitService(register, controller, made_by, ledger=part.ledger, bus=part.bus, clock=clock)
    lent = runs_of_provider(service, register, settings, ledger=part.ledger, clock=clock)
    answers = answers_of_service(service)
    await side_by_side(
        keep("apart.node", node.run),
        keep("circuits.run", controller.run),
        *(keep(name, run) for name, run in made_by.runs()),
        *(keep(name, run) for name, run in lent),
        keep("apart.questions", partial(answer_for_good, part.bus, Part.CIRCUITS, answers)),
    )


async def _watch_alarms(part: _Given) -> None:
    watch = AlarmWatch(
        part.ledger,
        part.bus,
        RemoteFacts(part.bus),
        clock=SystemClock(),
        settings=part.settings,
        teller=NetworkTeller(part.settings.name, part.settings.alarms),
        say=part.say,
    )
    part.proof = watch.prove
    answers = answers_of_watch(watch, part.ledger)
    await side_by_side(
        keep("alarms.run", watch.run),
        keep("apart.questions", partial(answer_for_good, part.bus, Part.ALARMS, answers)),
    )


_LOG = logging.getLogger("downburst.hub")
STAND_BY_S = 1.0
