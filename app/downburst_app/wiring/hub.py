"""The composition root: one hub, assembled from its parts. No other module knows the concrete parts."""

import asyncio
import fcntl
import gc
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import IO

from downburst.bus.local import LocalBus
from downburst.bus.port import Bus
from downburst.domain.access import LINK_PREFIX, LinkKind, hashed, new_secret
from downburst.domain.circuits import FINISHED, Circuit
from downburst.domain.events import FaultSeen
from downburst.domain.faults import Fault
from downburst.foundation.clock import Clock, SystemClock
from downburst.foundation.errors import AlreadyRunning, DownburstError, Failure, LedgerAway, NotWritable
from downburst.host import local_token
from downburst.host.privacy import make_private
from downburst.kafka.batches import BatchReader, BatchSender
from downburst.kafka.bus import KafkaBus
from downburst.ledger import Ledger, Transaction, standing_of
from downburst.ledger.storage.databases import file_of
from downburst.live.state import LiveState
from downburst.settings.addresses import split_address
from downburst.settings.hub import Settings
from downburst.settings.watch import WatchSettings
from downburst.supervision import hear_the_loop, keep, start, starting
from downburst.supervision.disk import Reserve
from downburst.supervision.outside import DeadMan, tell_systemd
from downburst.supervision.probes import Probes
from downburst_alarms.hub_facts import LiveFacts
from downburst_alarms.notices import NetworkTeller
from downburst_alarms.remote import RemoteAlarms, answers_of_hub
from downburst_alarms.watch import AlarmWatch
from downburst_api.app import create_app
from downburst_api.metrics.counted import Counted
from downburst_api.runtime import Circuits, Runtime
from downburst_app.retention.watch import RetentionWatch
from downburst_app.wiring.beside import Beside
from downburst_app.wiring.http import Server, address_of, http_config, listening_socket
from downburst_app.wiring.ledger_watch import LedgerWatch, examined, read_through
from downburst_app.wiring.placing import keep_placing
from downburst_circuits.controller import CircuitController
from downburst_circuits.register import Register
from downburst_circuits.remote import RemoteCircuits, answers_of_node
from downburst_circuits.service import CircuitService
from downburst_ingest.directory import AfterIngest, DirectorySource, Ingest
from downburst_ingest.rules import PathRule, PathRules
from downburst_latency.batch import parse_batch
from downburst_latency.service import LatencyService
from downburst_scheduler.loop import SchedulerLoop
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
        self.http_address = ""

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
        server = Server(http_config(self._app, self._settings, timeout_keep_alive=KEEP_ALIVE_S))
        serving = start("hub.http", server.serve(sockets=[self._socket]))
        stopping = start("hub.stop", stop.wait())
        watching = start("hub.ledger-watch", LedgerWatch(self._ledger, say=self._tell).run())
        kept = [start(name, keep(name, run, refused=partial(self._refused, name))) for name, run in self._parts()]
        try:
            await asyncio.wait((serving, stopping, watching), return_when=asyncio.FIRST_COMPLETED)
        finally:
            server.should_exit = True
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
        with step("the data directory"):
            released = await self._prepare_data_dir()
        self._socket = listening_socket(settings.http)
        self._stack.callback(self._socket.close)
        self.http_address = address_of(self._socket)
        with step("Kafka"):
            self._bus = await self._open_bus()
        with step("a check of the ledger"):
            doubts = await self._stack.enter_async_context(examined(settings.url_of_ledger, settings.node_dir))
            is_current = await asyncio.to_thread(_is_current, settings.url_of_ledger)
        with step("the ledger's schema", limit_s=settings.start_step_s if is_current else None):
            # In a thread, so that the event loop handles signals during a migration, which may take a while.
            self._ledger = await asyncio.to_thread(Ledger.open, settings.url_of_ledger, self._clock)
        self._stack.callback(self._ledger.close)
        with step("the ledger"):
            await asyncio.to_thread(self._ledger.hold)
            self._live.remember(await self._ledger.read(lambda tx: tx.measured.traffic.totals()))
            self._counted = await self._ledger.read(partial(Counted.at_start, now=self._clock.now()))
            await self._report(doubts)
        self._latency = LatencyService(self._ledger, bus=self._bus, clock=self._clock)
        self._beside = Beside(self._settings, ledger=self._ledger, bus=self._bus, live=self._live, say=self._say)
        with step("the node and its state in the ledger"):
            await self._start_agent()
            self._circuits = await self._open_circuits()
        self._alarms = self._alarm_watch()
        self._local_token = self._leave_token()
        self._dead_man = DeadMan(settings.alarms.dead_man_url, settings.alarms.dead_man_s)
        self._probes = self._end_to_end()
        if released:
            await self._say(
                "the disk was full at the start, and the reserve was released for it",
                "free space, or keep fewer hours: downburst log advise shows the use of each feed",
            )
        self._app = create_app(self._runtime(), page=_dashboard(self._settings))

    async def _prepare_data_dir(self) -> bool:
        """Takes the data directory for this process; true if the reserve was released, because the disk was full."""
        settings = self._settings
        self._reserve = Reserve(settings.data_dir, settings.reserve_bytes)
        released = await asyncio.to_thread(self._reserve.give_up_if_full)
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

    def _end_to_end(self) -> Probes:
        return Probes(
            {
                "ledger": lambda: self._ledger.write(lambda tx: tx.access.answers.prove(), patience_s=0),
                "node": self._agent.prove,
                "store": self._agent.prove_store,
                **self._beside.presence.probes(),
                **({"alarms": self._alarms.prove} if isinstance(self._alarms, AlarmWatch) else {}),
            },
            after_round=self._after_probes,
        )

    async def _report(self, doubts: list[str]) -> None:
        for doubt in doubts:
            await self._say(doubt)
        feeds, users = await self._ledger.read(lambda tx: (tx.feeds.misnamed(), tx.access.users.misnamed()))
        for name in feeds:
            await self._say(
                f"the feed {name!r} has a name that is no longer valid, and is set aside: no products go in or out",
                "create another feed and subscriptions to it, then remove this one: downburst feeds remove",
            )
        for name in users:
            await self._say(
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
        self._controller = CircuitController(register, node, bus=self._bus, clock=self._clock, settings=settings)
        register.watchers.append(self._forget_finished)
        return CircuitService(register, self._controller, node, ledger=self._ledger, bus=self._bus, clock=self._clock)

    def _alarm_watch(self) -> AlarmWatch | RemoteAlarms:
        facts = LiveFacts(self._live, self._settings.data_dir, silent=self._beside.presence.silent)
        if self._settings.alarms.apart:
            self._beside.answer(answers_of_hub(facts))
            return RemoteAlarms(self._bus)
        return AlarmWatch(
            self._ledger,
            self._bus,
            facts,
            clock=self._clock,
            settings=self._settings,
            teller=NetworkTeller(self._settings.name, self._settings.alarms),
            say=self._say,
        )

    def _leave_token(self) -> str:
        port = split_address(self.http_address)[1]
        self._stack.callback(local_token.take_back, port=port)
        return local_token.leave(self._settings.data_dir, port=port)

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

    def _runtime(self) -> Runtime:
        return Runtime(
            settings=self._settings,
            ledger=self._ledger,
            bus=self._bus,
            live=self._live,
            clock=self._clock,
            node=self._agent,
            circuits=self._circuits,
            alarms=self._alarms,
            probes=self._probes,
            local_token=self._local_token,
            counted=self._counted,
        )

    def _parts(self) -> "Iterator[tuple[str, Run]]":
        if not self._settings.scheduler.apart:
            yield "scheduler.run", SchedulerLoop(self._bus, self._ledger, self._settings, self._clock).run
        if self._settings.kafka.products != "here":
            # Senders' receipts, and the placement of their feeds.
            yield "hub.placement", partial(keep_placing, self._settings)
            if not self._settings.latency_apart:
                yield "hub.receipts-of-senders", self._load_of_senders
        yield "hub.probes", self._probes.run
        yield (
            "hub.reserve",
            partial(keep, "hub.reserve", partial(asyncio.to_thread, self._reserve.hold), every_s=RESERVE_S),
        )
        yield from self._beside.runs()
        if not self._settings.circuits.apart:
            yield "circuits.run", self._controller.run
        if isinstance(self._alarms, AlarmWatch):
            yield "alarms.run", self._alarms.run
        yield "hub.housekeeping", partial(keep, "hub.house", self._keep_house, every_s=HOUSEKEEPING_S)
        if self._settings.scrub_hours > 0:
            yield "hub.ledger-scrub", partial(read_through, self._settings, self._say)
        if not self._settings.latency_apart:
            yield "latency.history", partial(self._latency.keep_history, days=self._settings.latency_days)
        watch = self._settings.watch
        source = directory_source(watch, self._agent.ingest, on_fault=self._say_later)
        if source is not None and not watch.apart:
            yield "ingest.directory", source.run
        if (hours := self._settings.outage_hours) is not None:
            advice = RetentionWatch(self._ledger, self._live, clock=self._clock, outage_hours=hours, say=self._say)
            yield "hub.retention-watch", advice.run

    async def _load_of_senders(self) -> None:
        """Loads other nodes' receipts from the brokers; the hub's own node leaves files."""
        reader = await BatchReader(self._settings.kafka).open()
        try:
            await reader.run(self._latency.load_text, self._say)
        finally:
            reader.close()

    async def _refused(self, name: str, error: DownburstError) -> None:
        """Reports to operators why a part failed; an outage of the ledger is reported by its own watch."""
        if isinstance(error, LedgerAway):
            _LOG.info("%s waits for the ledger: %s", name, error.sentence)
        else:
            await self._say(f"{name} failed: {error.sentence}")

    async def _after_probes(self, probes: Probes) -> None:
        """Reports progress and health to external watchdogs; restarts a hung node."""
        tell_systemd("WATCHDOG=1")
        if probes.failing_s("node") > HUNG_S and self._agent.running:
            await self._say(f"the node did not answer for {HUNG_S:.0f} s; it is being restarted")
            self._agent.restart_node()
        if not probes.failing():
            await self._dead_man.tell(self._clock.monotonic_s())

    async def _keep_house(self) -> None:
        """Deletes history beyond its retention."""
        oldest = int(self._clock.now().timestamp() // 60 - self._settings.history_days * 24 * 60)
        audited = self._clock.now() - timedelta(days=self._settings.access.audit_days)
        await self._ledger.write(partial(_forget, oldest_minute=oldest, audited=audited))

    async def _say(self, sentence: str, next_step: str = "") -> None:
        fault = Fault(self._clock.now(), sentence, next_step=next_step)
        _LOG.warning("%s", sentence)
        with suppress(Failure):
            await self._ledger.write(lambda tx: tx.measured.faults.add(fault), patience_s=0)
        self._bus.publish(FaultSeen(fault.at, sentence))

    async def _tell(self, sentence: str, next_step: str) -> None:
        """Notifies pages of a condition that they show while it lasts: they refresh, and nothing is stored."""
        _LOG.warning("%s", sentence)
        self._bus.publish(FaultSeen(self._clock.now(), sentence, next_step=next_step))

    def _say_later(self, sentence: str) -> None:
        start("hub.say", self._say(sentence))


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


def stopped_by_signals() -> asyncio.Event:
    """An event, set when the process is asked to end."""
    hear_the_loop()
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


def make_data_dir(settings: Settings) -> None:
    """Makes the data directory and its subdirectories, private to the hub's user; one sentence if that fails."""
    directory = settings.data_dir
    try:
        for wanted in (directory, settings.node_dir, settings.batch_dir, settings.spool_dir):
            wanted.mkdir(mode=0o700, parents=True, exist_ok=True)
        make_private(directory, apart=settings.watch.directory)
        probe = directory / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise NotWritable(
            f"the data directory {directory} can't be written ({error.strerror}); "
            "correct its rights, or name another one with --data-dir"
        ) from error


def _is_current(url_of_ledger: str) -> bool:
    """True if a server's ledger already has this release's schema. A ledger in a file has no server to wait for."""
    return file_of(url_of_ledger) is None and not standing_of(url_of_ledger).pending


def node_binary(settings: Settings) -> Path:
    """The path of the node's binary."""
    return find_node(settings.node)


@contextmanager
def lock_data_dir(directory: Path) -> Iterator[IO[str]]:
    """Locks the directory for this process; the system releases the lock however the process ends."""
    with (directory / "hub.lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise AlreadyRunning(
                f"another hub (process {file.read().strip() or 'unknown'}) runs on the data directory {directory}; "
                "stop it first, or name another directory with --data-dir"
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield file


def _empty(directory: Path) -> None:
    """Removes uploads left by an earlier hub; none of them was acknowledged."""
    for path in directory.iterdir():
        path.unlink(missing_ok=True)


def _dashboard(settings: Settings) -> Path | None:
    places = (settings.dashboard_dir, _ROOM / "downburst/dashboard", _ROOM.parent / "services/dashboard/dist")
    return next((place for place in places if place is not None and (place / "index.html").is_file()), None)


def _forget(tx: Transaction, *, oldest_minute: int, audited: datetime) -> None:
    tx.measured.traffic.forget_before(oldest_minute)
    tx.access.audit.forget_before(audited)


async def cancelled(*tasks: "asyncio.Task[object]") -> None:
    """Cancels tasks and waits until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


Run = Callable[[], Awaitable[None]]
_LOG = logging.getLogger("downburst.hub")
_ROOM = Path(__file__).resolve().parents[2]
"""This package's location: a folder of a checkout, or the folder of installed packages."""
KEEP_ALIVE_S = 75
HOUSEKEEPING_S = 3600.0
RESERVE_S = 60.0
STOP_S = 10.0
HUNG_S = 60.0
"""A node without any answer for this long is stopped or stuck; busy ones answer within seconds."""
FIRST_LINK = timedelta(days=1)
