"""The composition root: one hub, assembled from its parts. No other module knows the concrete parts."""

import asyncio
import gc
import logging
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial
from pathlib import Path

from downburst.bus.local import LocalBus
from downburst.bus.port import Bus
from downburst.domain.access import LINK_PREFIX, LinkKind, hashed, new_secret
from downburst.domain.circuits import FINISHED, Circuit
from downburst.foundation.clock import Clock, SystemClock
from downburst.foundation.errors import DownburstError, LedgerAway
from downburst.host.absent_transports import absent_transports
from downburst.kafka.batches import BatchReader, BatchSender
from downburst.kafka.bus import KafkaBus
from downburst.ledger import Ledger, Transaction, standing_of
from downburst.ledger.storage.databases import file_of
from downburst.live.state import LiveState
from downburst.settings.hub import Settings
from downburst.settings.watch import WatchSettings
from downburst.supervision import keep, start, starting
from downburst.supervision.disk import Reserve
from downburst.supervision.outside import tell_systemd
from downburst.supervision.probes import Probe
from downburst_alarms.hub_facts import LiveFacts
from downburst_alarms.notices import NetworkTeller
from downburst_alarms.remote import RemoteAlarms, answers_of_hub
from downburst_alarms.watch import AlarmWatch
from downburst_api.app import create_app, prepare
from downburst_api.metrics.counted import Counted
from downburst_api.runtime import AlarmTests, Circuits, Planner, Runtime
from downburst_app.retention.watch import RetentionWatch
from downburst_app.wiring.beside import Beside
from downburst_app.wiring.housekeeping import Housekeeping, Run
from downburst_app.wiring.http import Front
from downburst_app.wiring.ledger_watch import LedgerWatch, examined
from downburst_app.wiring.placing import keep_placing
from downburst_app.wiring.process import cancelled, lock_data_dir, make_data_dir, stopped_by_signals
from downburst_app.wiring.reports import FaultReports
from downburst_app.wiring.watchdogs import Watchdogs
from downburst_bridges.downloads import OfHub
from downburst_bridges.service import Bridges
from downburst_circuits.controller import CircuitController
from downburst_circuits.near_nodes import NearNodes
from downburst_circuits.provider_agent.parts import runs_of_provider
from downburst_circuits.providers.agents import Agents
from downburst_circuits.providers.makers import makers
from downburst_circuits.register import Register
from downburst_circuits.remote import RemoteCircuits
from downburst_circuits.remote_nodes import answers_of_node
from downburst_circuits.service import CircuitService
from downburst_ingest.directory import AfterIngest, DirectorySource, Ingest
from downburst_ingest.rules import PathRule, PathRules
from downburst_latency.batch import parse_batch
from downburst_latency.service import LatencyService
from downburst_probes.runner import ProbeRunner
from downburst_scheduler.demand.loop import DemandLoop
from downburst_scheduler.loop import SchedulerLoop
from downburst_scheduler.ways_loop import WaysLoop
from downburst_scheduler.what_if.desk import RemoteWhatIf, WhatIfDesk
from downburst_worker.agent import Agent
from downburst_worker.binary import find_node, find_node_for_kafka
from downburst_worker.ledger_writer import BatchLoader
from downburst_worker.roles import HubRole


async def serve(settings: Settings) -> None:
    """Runs a hub until SIGTERM or SIGINT, then stops it cleanly."""
    stop = stopped_by_signals()
    async with AsyncExitStack() as stack:
        hub = await _opened(Hub(settings), stop)
        if hub is None:
            _LOG.info("stopped before the start was complete")
            return
        stack.push_async_exit(hub)
        # Loaded objects stay: a garbage collection over ten thousand circuits takes a tenth of a second.
        gc.collect()
        gc.freeze()
        if link := await hub.first_link():
            _LOG.info("no administrator yet; whoever opens this within a day becomes the first: %s", link)
        tell_systemd("READY=1")
        _LOG.info("page and api at http://%s, sites connect to %s", hub.http_address, ", ".join(hub.sites_address))
        await hub.run_until(stop)
    _LOG.info("stopped")


async def _opened(hub: "Hub", stop: asyncio.Event) -> "Hub | None":
    """The hub when it is open; None if it was asked to stop before that."""
    opening, stopping = start("hub.open", hub.__aenter__()), start("hub.asked-to-stop", stop.wait())
    await asyncio.wait((opening, stopping), return_when=asyncio.FIRST_COMPLETED)
    if opening.done():
        await cancelled(stopping)
        return await opening
    # A step that waits for a disk or a server may never end.
    starting.leave_after(STOP_S)
    await cancelled(opening)
    return None


class Hub:
    """All parts of a hub on one machine; open it as a context, then run it."""

    def __init__(self, settings: Settings, clock: Clock | None = None) -> None:
        self._settings = settings
        self._clock = clock or SystemClock()
        self._live = LiveState()
        self._stack = AsyncExitStack()
        self._runs: list[tuple[str, Run]] = []
        """The tasks of parts that were opened, by name."""

    @property
    def http_address(self) -> str:
        """HOST:PORT of page and api."""
        return self._front.address

    @property
    def sites_address(self) -> tuple[str, ...]:
        """The address that sites connect to."""
        return self._agent.sites_address

    async def __aenter__(self) -> "Hub":
        try:
            await self._open()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def run_until(self, stop: asyncio.Event) -> None:
        """Serves until the stop; parts that fail in between are restarted and reported.

        A hub stops by itself if another one takes over its ledger, and raises that.
        """
        serving = start("hub.http", self._front.serve())
        stopping = start("hub.stop", stop.wait())
        watching = start("hub.ledger-watch", LedgerWatch(self._ledger, say=self._reports.show).run())
        kept = [start(name, keep(name, run, refused=partial(self._refused, name))) for name, run in self._parts()]
        try:
            await asyncio.wait((serving, stopping, watching), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._front.end()
            # Ends the pages' event streams, which the server would wait for otherwise.
            self._bus.close()
            await cancelled(stopping, *kept)
            await serving
        if watching.done():
            await watching
        await cancelled(watching)

    async def _open(self) -> None:
        settings = self._settings
        step = partial(starting.step, limit_s=settings.start_step_s)
        reserve = Reserve(settings.data_dir, settings.reserve_bytes)
        with step("the data directory"):
            released = await self._prepare_data_dir(reserve)
        self._front = Front(settings, self._stack)
        with step("Kafka"):
            self._bus = await self._open_bus()
        with step("a check of the ledger"):
            doubts = await self._stack.enter_async_context(examined(settings.url_of_ledger, settings.node_dir))
            is_current = await asyncio.to_thread(_is_current, settings.url_of_ledger)
        with step("the ledger's schema", limit_s=settings.start_step_s if is_current else None):
            # In a thread, so that the event loop handles signals during a migration, which may take a while.
            self._ledger = await asyncio.to_thread(Ledger.open, settings.url_of_ledger, self._clock)
        self._stack.callback(self._ledger.close)
        self._reports = FaultReports(self._ledger, self._bus, _LOG, clock=self._clock)
        say = self._reports.say
        self._house = Housekeeping(settings, self._ledger, reserve, clock=self._clock, say=say)
        with step("the ledger"):
            await asyncio.to_thread(self._ledger.hold)
            self._live.remember(await self._ledger.read(lambda tx: tx.measured.traffic.totals()))
            counted = await self._ledger.read(partial(Counted.at_start, now=self._clock.now()))
            await self._report(doubts)
        self._latency = LatencyService(self._ledger, bus=self._bus, clock=self._clock)
        self._beside = Beside(settings, ledger=self._ledger, bus=self._bus, live=self._live, say=say)
        with step("the node and its state in the ledger"):
            await self._start_agent()
            self._circuits = await self._open_circuits()
        planner = self._open_planner()
        alarms = self._open_alarms()
        probes = self._end_to_end(alarms)
        self._watchdogs = Watchdogs(probes, self._agent, settings.alarms, clock=self._clock, say=say)
        if released:
            await say(
                "the disk was full at the start, and the reserve was released for it",
                "free space, or keep fewer hours: downburst log advise shows the use of each feed",
            )
        runtime = self._runtime(alarms, planner, counted)
        self._front.open(prepare(create_app(runtime, page=_dashboard(settings), guide=_guide(settings))))

    async def _prepare_data_dir(self, reserve: Reserve) -> bool:
        """Takes the data directory for this process; true if the reserve was released, because the disk was full."""
        settings = self._settings
        released = await asyncio.to_thread(reserve.give_up_if_full)
        make_data_dir(settings)
        self._stack.enter_context(lock_data_dir(settings.data_dir))
        _empty(settings.spool_dir)
        return released

    async def _start_agent(self) -> None:
        on_kafka = self._settings.kafka.products != "here"
        program = (find_node_for_kafka if on_kafka else find_node)(self._settings.node)
        self._agent = Agent(
            settings=self._settings,
            ledger=self._ledger,
            bus=self._bus,
            live=self._live,
            clock=self._clock,
            load_batch=await self._way_of_batches(),
            argv=(str(program), "hub"),
            role=HubRole(self._ledger, has_neighbours=on_kafka),
        )
        self._stack.push_async_callback(self._agent.stop)
        await self._agent.start()

    def _end_to_end(self, alarms: AlarmTests) -> dict[str, Probe]:
        return {
            "ledger": lambda: self._ledger.write(lambda tx: tx.access.answers.prove(), patience_s=0),
            "node": self._agent.prove,
            "store": self._agent.prove_store,
            **self._beside.presence.probes(),
            **({"alarms": alarms.prove} if isinstance(alarms, AlarmWatch) else {}),
        }

    async def _report(self, doubts: list[str]) -> None:
        for doubt in doubts:
            await self._reports.say(doubt)
        feeds, users = await self._ledger.read(lambda tx: (tx.feeds.misnamed(), tx.access.users.misnamed()))
        for name in feeds:
            await self._reports.say(
                f"the feed {name!r} has a name that is no longer valid, and is set aside: no products go in or out",
                "create another feed and subscriptions to it, then remove this one: downburst feeds remove",
            )
        for name in users:
            await self._reports.say(
                f"the user {name!r} has a name that is no longer valid, and can't sign in",
                "invite the user under another name, then remove this one: downburst users remove",
            )

    async def _open_bus(self) -> Bus:
        if not self._settings.kafka.servers:
            return LocalBus()
        bus = KafkaBus(self._settings.kafka)
        bus.hear_others(self._live.hear_sender)
        await bus.open()
        self._stack.callback(bus.close)
        return bus

    async def _way_of_batches(self) -> BatchLoader:
        if not self._settings.latency_apart:
            return self._latency.load
        sender = await BatchSender(self._settings.kafka, check=parse_batch).open()
        self._stack.callback(sender.close)
        return sender.hand_over

    async def _open_circuits(self) -> Circuits:
        node, settings = self._agent.circuits, self._settings.circuits
        if settings.apart:
            self._beside.answer(answers_of_node(node))
            return RemoteCircuits(self._bus)
        register = Register(self._ledger, self._bus, self._clock)
        await register.load()
        agents = Agents(register, ledger=self._ledger, bus=self._bus, clock=self._clock)
        nodes = NearNodes(register, node, self._bus, self._clock)
        made_by = makers(register, nodes, agents, settings)
        controller = CircuitController(register, nodes, made_by, bus=self._bus, clock=self._clock, settings=settings)
        register.watchers.append(self._forget_finished)
        service = CircuitService(register, controller, made_by, ledger=self._ledger, bus=self._bus, clock=self._clock)
        lent = runs_of_provider(service, register, settings, ledger=self._ledger, clock=self._clock)
        self._runs += [("circuits.run", controller.run), *made_by.runs(), *lent]
        return service

    def _open_planner(self) -> Planner:
        if self._settings.scheduler.apart:
            return RemoteWhatIf(self._bus)
        given = (self._bus, self._ledger, self._settings, self._clock)
        scheduler = SchedulerLoop(*given, absent=absent_transports())
        self._runs += _runs_of_scheduler(scheduler, WaysLoop(*given))
        return WhatIfDesk(scheduler)

    def _open_alarms(self) -> AlarmTests:
        facts = LiveFacts(self._live, self._settings.data_dir, silent=self._beside.presence.silent)
        if self._settings.alarms.apart:
            self._beside.answer(answers_of_hub(facts))
            return RemoteAlarms(self._bus)
        watch = AlarmWatch(
            self._ledger,
            self._bus,
            facts,
            clock=self._clock,
            settings=self._settings,
            teller=NetworkTeller(self._settings.name, self._settings.alarms),
            say=self._reports.say,
        )
        self._runs.append(("alarms.run", watch.run))
        return watch

    async def first_link(self) -> str | None:
        """The link that creates the first administrator, once; None if there is one."""
        secret = new_secret(LINK_PREFIX)

        def make(tx: Transaction) -> bool:
            if tx.access.users.has_admin():
                return False
            tx.access.links.add(hashed(secret), LinkKind.FIRST, lifetime=FIRST_LINK)
            return True

        made = await self._ledger.write(make)
        return f"http://{self.http_address}/#welcome={secret}" if made else None

    def _forget_finished(self, circuit: Circuit) -> None:
        if circuit.state in FINISHED:
            self._live.forget_circuit(circuit.number)

    def _runtime(self, alarms: AlarmTests, planner: Planner, counted: Counted) -> Runtime:
        return Runtime(
            settings=self._settings,
            ledger=self._ledger,
            bus=self._bus,
            live=self._live,
            clock=self._clock,
            node=self._agent,
            circuits=self._circuits,
            alarms=alarms,
            planner=planner,
            probes=self._watchdogs.probes,
            local_token=self._front.leave_token(),
            counted=counted,
        )

    def _parts(self) -> "Iterator[tuple[str, Run]]":
        if not (self._settings.scheduler.apart and self._settings.circuits.apart):
            # Beside the circuit service, if that is here.
            acting = DemandLoop(self._bus, self._ledger, self._settings, self._circuits, self._clock)
            yield "scheduler.orders", acting.run
        if self._settings.kafka.products != "here":
            # Senders' receipts, and the placement of their feeds.
            yield "hub.placement", partial(keep_placing, self._settings)
            if not self._settings.latency_apart:
                yield "hub.receipts-of-senders", self._load_of_senders
        yield "hub.probes", self._watchdogs.probes.run
        facts = (self._ledger, self._bus, self._live, self._clock)
        yield "probes.run", ProbeRunner(*facts, node=self._agent.probes, bookings=self._circuits.tests).run
        of_hub = OfHub(
            self._settings.data_dir / "announced",
            f"downburst-{self._settings.name}",
            self._clock,
            self._settings.bridges_ca_file,
        )
        yield "bridges.run", Bridges(self._bus, self._ledger, self._agent, of_hub, self._live.bridges).run
        yield from self._house.runs()
        yield from self._beside.runs()
        yield from self._runs
        if not self._settings.latency_apart:
            yield "latency.history", partial(self._latency.keep_history, days=self._settings.latency_days)
        watch = self._settings.watch
        source = directory_source(watch, self._agent.ingest, on_fault=self._reports.say_later)
        if source is not None and not watch.apart:
            yield "ingest.directory", source.run
        if (hours := self._settings.outage_hours) is not None:
            advice = RetentionWatch(
                self._ledger, self._live, clock=self._clock, outage_hours=hours, say=self._reports.say
            )
            yield "hub.retention-watch", advice.run

    async def _load_of_senders(self) -> None:
        """Loads other nodes' receipts from the brokers; the hub's own node leaves files."""
        reader = await BatchReader(self._settings.kafka).open()
        try:
            await reader.run(self._latency.load_text, self._reports.say)
        finally:
            reader.close()

    async def _refused(self, name: str, error: DownburstError) -> None:
        """Reports the failure of a part to operators; an outage of the ledger is reported by its own watch."""
        if isinstance(error, LedgerAway):
            _LOG.info("%s waits for the ledger: %s", name, error.sentence)
        else:
            await self._reports.say(f"{name} failed: {error.sentence}")


def directory_source(
    watch: WatchSettings, ingest: Ingest, *, on_fault: Callable[[str], None]
) -> DirectorySource | None:
    """The watched directory; None if none is named."""
    if watch.directory is None:
        return None
    rules = [PathRule.parse(rule.match, feed=rule.feed, product_id=rule.product_id) for rule in watch.rules]
    return DirectorySource(
        watch.directory,
        ingest,
        rules=PathRules(rules),
        after=AfterIngest(watch.after),
        concurrency=watch.concurrency,
        on_fault=on_fault,
    )


def _runs_of_scheduler(scheduler: SchedulerLoop, ways: WaysLoop) -> Iterator[tuple[str, Run]]:
    yield "scheduler.run", scheduler.run
    yield "scheduler.ways", ways.run


def _is_current(url_of_ledger: str) -> bool:
    """True if a server's ledger already has this release's schema. A ledger in a file has no server to wait for."""
    return file_of(url_of_ledger) is None and not standing_of(url_of_ledger).pending


def node_binary(settings: Settings) -> Path:
    """The path of the node's binary."""
    return find_node(settings.node)


def _empty(directory: Path) -> None:
    """Removes uploads left by an earlier hub; none of them was acknowledged."""
    for path in directory.iterdir():
        path.unlink(missing_ok=True)


def _dashboard(settings: Settings) -> Path | None:
    return _built(settings.dashboard_dir, _ROOM / "downburst/dashboard", _ROOM.parent / "services/dashboard/dist")


def _guide(settings: Settings) -> Path | None:
    return _built(settings.guide_dir, _ROOM / "downburst/guide", _ROOM.parent / "dist/docs/html")


def _built(*places: Path | None) -> Path | None:
    """The first of these directories that has pages."""
    return next((place for place in places if place is not None and (place / "index.html").is_file()), None)


_LOG = logging.getLogger("downburst.hub")
_ROOM = Path(__file__).resolve().parents[2]
"""This package's location: a folder of a checkout, or the folder of installed packages."""
STOP_S = 10.0
FIRST_LINK = timedelta(days=1)
