"""A sender for a hub as a separate process: agent, registration in the ledger, and a few pages for probes."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from functools import partial
from hashlib import sha256
from socket import gethostname
from typing import Any

from downburst.domain.senders import BEAT_S, FENCED_S
from downburst.exposition import CONTENT_TYPE, catalogue, process_text, text_of
from downburst.foundation.clock import SystemClock
from downburst.foundation.errors import BadSettings, DownburstError, LedgerAway
from downburst.kafka.batches import BatchSender
from downburst.kafka.bus import KafkaBus
from downburst.ledger import Ledger
from downburst.live.state import LiveState
from downburst.parts.names import SenderPart
from downburst.parts.questions import answer_for_good
from downburst.settings.hub import Settings
from downburst.supervision import keep, start
from downburst.supervision.remote_faults import start_telling
from downburst.supervision.starting import step
from downburst_app.wiring.http import Pages, listening_socket
from downburst_app.wiring.ledger_watch import LedgerWatch
from downburst_app.wiring.placing import keep_placing
from downburst_app.wiring.process import cancelled, lock_data_dir, make_data_dir, stopped_by_signals
from downburst_app.wiring.reports import FaultReports
from downburst_circuits.remote_nodes import answers_of_node
from downburst_latency.batch import parse_batch
from downburst_probes.nodes import answers_of_probes
from downburst_worker.agent import Agent
from downburst_worker.binary import find_node_for_kafka
from downburst_worker.roles import SenderRole

Send = Callable[[dict[str, Any]], Awaitable[None]]


async def serve_sender(settings: Settings) -> None:
    """Sends its share of the hub's traffic until SIGTERM or SIGINT; then hands over to others first."""
    if not settings.kafka.servers or not settings.ledger_url.startswith("postgres"):
        raise BadSettings(
            "a sender needs the hub's ledger in PostgreSQL (ledger_url, DOWNBURST_LEDGER_URL) and the brokers that "
            "keep its feeds (kafka.servers, DOWNBURST_KAFKA__SERVERS)"
        )
    stop = stopped_by_signals()
    async with SenderProcess(_as_sender(settings)) as sender:
        await sender.run_until(stop)
    _LOG.info("stopped")


class SenderProcess:
    """All parts of a sender; open it as a context, then run it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._name = settings.sender.name or gethostname()[:63]
        self._address = settings.sender.public or settings.sites
        self._stack = AsyncExitStack()
        self._draining = False
        self._beaten_s = time.monotonic()

    async def __aenter__(self) -> "SenderProcess":
        try:
            await self._open()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def run_until(self, stop: asyncio.Event) -> None:
        """Serves until the stop, then drains; ends by itself only if another sender took its name."""
        stopping = start("sender.stop", stop.wait())
        starting = start("sender.agent", self._agent.start())
        reports = FaultReports(self._ledger, self._bus, _LOG, prefix=f"sender {self._name}: ")
        watching = start("sender.ledger-watch", LedgerWatch(self._ledger, say=reports.say).run())
        beating = start("sender.beat", keep("sender.beat", self._beat, every_s=BEAT_S))
        answers = {**answers_of_node(self._agent.circuits), **answers_of_probes(self._agent.probes)}
        answering = start(
            "sender.circuits",
            keep("sender.circuits", partial(answer_for_good, self._bus, SenderPart(self._name), answers)),
        )
        placing = start("sender.placing", keep("sender.placing", partial(keep_placing, self._settings)))
        try:
            await asyncio.wait((stopping, watching, starting), return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                await starting
                _LOG.info("sender %s serves sites at %s", self._name, self._address)
                await asyncio.wait((stopping, watching), return_when=asyncio.FIRST_COMPLETED)
            if watching.done():
                await watching
            await self._drain()
        finally:
            await cancelled(stopping, starting, answering, placing, beating, watching)
            with suppress(DownburstError):
                await self._ledger.write(lambda tx: tx.fleet.senders.remove(self._name), patience_s=0)

    async def _open(self) -> None:
        settings = self._settings
        make_data_dir(settings)
        self._stack.enter_context(lock_data_dir(settings.data_dir))
        page = listening_socket(settings.http)
        self._stack.callback(page.close)
        pages = Pages(self._answer, page, self._settings)
        self._stack.push_async_callback(pages.end)
        with step("the ledger", limit_s=settings.start_step_s):
            self._ledger = await asyncio.to_thread(Ledger.look_into, settings.url_of_ledger)
            self._stack.callback(self._ledger.close)
            # A second sender with this name would overwrite this one's registration.
            await asyncio.to_thread(self._ledger.hold, _role(self._name))
        with step("Kafka", limit_s=settings.start_step_s):
            self._bus = await KafkaBus(settings.kafka).open()
        self._stack.callback(self._bus.close)
        telling = start_telling(self._bus, f"sender {self._name}")
        self._stack.push_async_callback(cancelled, telling)
        receipts = await BatchSender(settings.kafka, check=parse_batch).open()
        self._stack.callback(receipts.close)
        self._live = LiveState()
        self._agent = Agent(
            settings=settings,
            ledger=self._ledger,
            bus=self._bus,
            live=self._live,
            clock=SystemClock(),
            load_batch=receipts.hand_over,
            argv=(str(find_node_for_kafka(settings.node)), "hub"),
            role=SenderRole(self._ledger, name=self._name, address=self._address),
        )
        self._stack.push_async_callback(self._agent.stop)

    async def _beat(self) -> None:
        """Records a heartbeat each second; ends its multicast legs before others may begin them."""
        began_s = time.monotonic()
        try:
            # A node that does not run serves no sites: its feeds belong elsewhere.
            if self._agent.running:
                await self._ledger.write(self._beat_once, patience_s=0)
                self._beaten_s = began_s
        except LedgerAway as error:
            _LOG.info("no beat: %s", error.sentence)
        finally:
            await self._agent.fence(fenced=time.monotonic() - self._beaten_s > FENCED_S)

    def _beat_once(self, tx: Any) -> bool:
        return bool(tx.fleet.senders.beat(self._name, load_bps=self._agent.egress_bps, draining=self._draining))

    async def _drain(self) -> None:
        """Hands over to other senders while still sending; returns when nothing is left here, or after the limit."""
        self._draining = True
        _LOG.info("draining: sites go to other senders, for %g s at most", self._settings.sender.drain_s)
        give_up_s = time.monotonic() + self._settings.sender.drain_s
        with suppress(LedgerAway):
            await self._ledger.write(self._beat_once, patience_s=0)
            while time.monotonic() < give_up_s:
                others, mine = await self._ledger.read(self._left, patience_s=0)
                if not others:
                    # No other sender can take over: sites fetch missing products at the next start.
                    break
                if not mine and not await self._has_sessions():
                    break
                await asyncio.sleep(DRAIN_LOOK_S)

    def _left(self, tx: Any) -> tuple[int, int]:
        others = [one for one in tx.fleet.senders.all() if one.name != self._name and not one.draining]
        mine = [one for one in tx.fleet.assignments.all() if one.sender == self._name]
        return len(others), len(mine)

    async def _has_sessions(self) -> bool:
        with suppress(DownburstError):
            status = await self._agent.status()
            return bool(status.get("sessions"))
        return False

    async def _answer(self, scope: dict[str, Any], _receive: object, send: Send) -> None:
        """Answers requests for probes and metrics; nothing else is served here."""
        path = scope.get("path", "")
        if path == "/health/live":
            return await _page(send, 200, "alive\n")
        if path == "/health/ready":
            ready = self._is_ready()
            return await _page(send, 200 if ready else 503, "ready\n" if ready else "not ready\n")
        if path == "/metrics":
            return await _page(send, 200, self._metrics())
        return await _page(send, 404, "a sender answers at /health/live, /health/ready and /metrics\n")

    def _is_ready(self) -> bool:
        agent = getattr(self, "_agent", None)
        return agent is not None and agent.running and not self._draining

    def _metrics(self) -> str:
        agent = getattr(self, "_agent", None)
        live = getattr(self, "_live", None)
        connected = sum(one.connected for one in live.sessions.values()) if live is not None else 0
        figures = (
            (catalogue.SENDER_READY, int(self._is_ready())),
            (catalogue.SENDER_DRAINING, int(self._draining)),
            (catalogue.SENDER_SESSIONS, connected),
            (catalogue.SENDER_EGRESS, agent.egress_bps / 8 if agent else 0.0),
            (catalogue.SENDER_RESTARTS, agent.restarts if agent else 0),
            (catalogue.SENDER_BEAT, time.monotonic() - self._beaten_s),
        )
        return process_text("sender") + "".join(text_of(metric, [((), value)]) for metric, value in figures)


async def _page(send: Send, status: int, text: str) -> None:
    headers = [(b"content-type", CONTENT_TYPE.encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})


def _as_sender(settings: Settings) -> Settings:
    """The settings of a sender: its node keeps copies of the brokers' products, whatever the hub's settings say."""
    kafka = settings.kafka.model_copy(update={"products": "ingest"})
    return settings.model_copy(update={"kafka": kafka})


def _role(name: str) -> str:
    return f"sender {sha256(name.encode()).hexdigest()[:16]}"


_LOG = logging.getLogger("downburst.sender")
DRAIN_LOOK_S = 0.2
