"""The agent: tells its node what the ledger wants, level-triggered, and writes down what the node says.

The ledger is the truth. Whatever changes there, the whole set is sent again; after a restart of the node everything
is sent again. So a lost message costs time, never correctness.
"""

import asyncio
import base64
import logging
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TypeVar, cast

from downburst.bus.port import Bus
from downburst.domain.credentials import EnrolmentToken
from downburst.domain.events import (
    Event,
    FaultSeen,
    FeedsChanged,
    FeedTraffic,
    LdmPeerChanged,
    LdmSourceChanged,
    NodeChanged,
    PlanMade,
    ResendsChanged,
    SitesChanged,
    SubscriptionsChanged,
    UpstreamChanged,
)
from downburst.domain.faults import Fault
from downburst.domain.plans import Plan, Transport
from downburst.domain.receipts import LogHead, Settled
from downburst.foundation.bounds import SetAside, sentence
from downburst.foundation.clock import Clock
from downburst.foundation.errors import DownburstError, Failure, LedgerAway, NodeAway
from downburst.ledger import Ledger, Transaction
from downburst.live.state import Damage, LiveState
from downburst.settings.addresses import split_address
from downburst.settings.hub import Settings
from downburst.supervision import attempt, keep, start
from downburst_worker.accounts import LegAccounts
from downburst_worker.asking import Asking
from downburst_worker.binary import find_node, find_node_for_kafka
from downburst_worker.circuit_jobs import CircuitJobs
from downburst_worker.enrolment import Enrolment
from downburst_worker.ledger_writer import BatchLoader, LedgerWriter
from downburst_worker.messages import backlog_lines, circuit_lines, lines
from downburst_worker.messages.starting import start_job
from downburst_worker.neighbours import Neighbours, Seat
from downburst_worker.node import Line, NodeProcess
from downburst_worker.reference_clock import ReferenceClock
from downburst_worker.remote_deliveries import RemoteDeliveries
from downburst_worker.violations import ViolationReports

T = TypeVar("T")


class Agent(Asking):
    """Everything the hub's other parts ask of the node."""

    def __init__(  # noqa: PLR0913
        self,
        *,
        settings: Settings,
        ledger: Ledger,
        bus: Bus,
        live: LiveState,
        clock: Clock,
        load_batch: BatchLoader,
        argv: tuple[str, ...] | None = None,
        seat: Seat | None = None,
    ) -> None:
        self._settings = settings
        self._ledger = ledger
        self._bus = bus
        self._live = live
        self._clock = clock
        self._writer = LedgerWriter(
            ledger,
            batch_dir=settings.batch_dir,
            load_batch=load_batch,
            loaded=lambda batch: self._node.request("batch-loaded", batch=batch),
            put_aside=self._put_aside,
        )
        self._accounts = LegAccounts()
        self._credential_lifetime = timedelta(days=settings.access.credential_days)
        self._seat = seat
        self._neighbours = Neighbours(ledger, seat)
        self._remote = RemoteDeliveries(bus)
        self._reference = ReferenceClock(ledger, sender=seat.name if seat else None)
        self._unmet: dict[str, Plan] = {}
        """By feed the plan that the node could not take because the circuit of a group was not up."""
        self._heads: dict[str, tuple[str, int]] = {}
        """By feed what the node told last."""
        self._applying = asyncio.Lock()
        self._read_last: dict[str, object] = {}
        """By question what the ledger answered last: a node that is restarted while the ledger is away gets that."""
        self._missed = False
        """Something changed and could not be looked up, because the ledger was away."""
        self._ending = asyncio.Event()
        self._batch_waits = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._node = NodeProcess(
            argv or (str(_program(settings)), "hub"),
            clock=clock,
            on_ready=self._make_ready,
            on_event=self._hear,
            on_death=self._mourn,
            answer_s=settings.node_answer_s,
        )
        self._enrolment = Enrolment(
            ledger, self._node, bus, apply_sites=self._apply_sites, credential_lifetime=self._credential_lifetime
        )
        self._violations = ViolationReports(clock, say=self._say, write_down=self._fault)
        self.circuits = CircuitJobs(self._node)
        """What the service of circuits asks of the node."""
        self.ca_sha256 = ""
        """SHA-256 of the hub's own certificate authority; known once the node has started."""
        self.sites_address: tuple[str, ...] = ()
        """Where sites connect, with the real port."""
        self.version = ""
        self.egress_bps = 0.0
        """What a sender sent in its last second, in bits per second."""

    async def start(self) -> None:
        """Starts the node and waits until it has all it needs; raises why if it can't."""
        await self._node.start()
        self._tasks = [
            start("agent.changes", keep("agent.changes", self._follow)),
            start(CATCHING_UP, keep(CATCHING_UP, self._catch_up)),
        ]
        if self._settings.kafka.products != "here":
            self._tasks.append(start("agent.neighbours", keep("agent.neighbours", self._look_around)))
        if self._seat is not None:
            answer = partial(self._remote.answer_for_good, self._seat.name, self._node.ask)
            self._tasks.append(start("agent.elsewhere", keep("agent.elsewhere", answer)))

    async def stop(self) -> None:
        """Stops the node cleanly and waits until it is gone."""
        self._ending.set()
        self._batch_waits.set()
        for task in self._tasks:
            # What waits for the ledger is brought in; it ends by itself.
            if task.get_name() != CATCHING_UP:
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._node.stop()
        self._say(NodeChanged(self._clock.now(), running=False, restarts=self.restarts, reason="stopped"))

    async def new_token(
        self, site: str, *, lifetime: timedelta, credential_lifetime: timedelta | None = None
    ) -> tuple[str, EnrolmentToken]:
        """An enrolment token for a site: the text for its administrator, told once, and what is kept of it."""
        if not self.ca_sha256:
            raise NodeAway("the node has not started, so its certificate is not known; try again in some seconds")
        text = base64.urlsafe_b64encode(secrets.token_bytes(32)).rstrip(b"=").decode()
        # The receiver shows the hash of the text it was given, and never decodes it.
        hashed = sha256(text.encode()).hexdigest()
        lasts = credential_lifetime or self._credential_lifetime
        kept = await self._ledger.write(
            lambda tx: tx.tokens.add(site, hashed, lifetime=lifetime, credential_lifetime=lasts)
        )
        return f"dbt1.{self.ca_sha256}.{text}", kept

    async def fence(self, *, fenced: bool) -> None:
        """Ends the multicast legs of a sender that may have lost them to another one, or begins them again."""
        if self._neighbours.fenced != fenced:
            self._neighbours.fenced = fenced
            with suppress(NodeAway):
                await self._apply_plans()

    async def refresh(self) -> None:
        """Sends feeds and sites as the ledger has them; what the node does not take now it gets at its next start."""
        with suppress(NodeAway):
            await self._apply_feeds()
            await self._apply_sites()

    async def connect_upstreams(self) -> None:
        """Has the node connect to the upstreams as the ledger has them; raises why it can't to one of them."""
        async with self._applying:
            upstreams = await self._look_up("upstreams", lambda tx: tx.upstreams.all())
            await self._node.request("upstreams", **lines.upstreams_job(upstreams))

    async def connect_ldm(self) -> tuple[str, ...]:
        """Has the node ask and serve LDMs as the ledger has them; raises what can't be done, else tells where."""
        async with self._applying:
            sources, accepts = await self._look_up("ldm", lambda tx: (tx.ldm_sources.all(), tx.ldm_accepts.all()))
            answer = await self._node.request("ldm", **lines.ldm_job(sources, accepts, self._settings.ldm))
            return tuple(answer.get("addresses", ()))

    async def _make_ready(self) -> None:
        job = start_job(self._settings, sends=self._seat is not None)
        if self._seat is not None:
            job["sender"] = await self._neighbours.certified(self._node.request, job["data_dir"])
        if self._settings.kafka.products != "here":
            with suppress(LedgerAway):
                await self._neighbours.look()
        answer = await self._start_node(job)
        self._reference.again()
        self.ca_sha256 = answer["ca_sha256"]
        self.sites_address = tuple(answer["sites_address"])
        self.version = answer["version"]
        await self._apply_feeds()
        await self._apply_sites(await self._look_up("positions", lambda tx: tx.settled.all()))
        await self._apply_plans()
        if self._seat is None:
            await self._apply_upstreams()
            await self._apply_ldm()
        self._say(NodeChanged(self._clock.now(), running=True, restarts=self.restarts))
        self._writer.look_for_batches()

    async def _start_node(self, job: Line) -> Line:
        """Has it listen where it listened before: a port that the system chose is the one that sites know."""
        if self.sites_address and split_address(self._settings.sites)[1] == 0:
            known, self.sites_address = self.sites_address, ()
            # A node that can't begins again, and has the system choose another one.
            answer = await self._node.request("start", **job, listen=list(known))
            self.sites_address = known
            return answer
        return await self._node.request("start", **job, listen=[self._settings.sites])

    async def _apply_feeds(self) -> None:
        async with self._applying:
            feeds, heads = await self._look_up("feeds", lambda tx: (tx.feeds.all(), tx.log_heads.all()))
            job = lines.feeds_job(self._neighbours.own_feeds(feeds), heads)
            self._accounts.name_unicast_legs(feeds)
            answer = await self._open_feeds(job)
            if self._seat is None:
                await self._writer.count(heads=lines.opened_heads(answer))

    async def _open_feeds(self, job: Line) -> Line:
        try:
            return await self._node.request("feeds", **job)
        except NodeAway:
            raise
        except DownburstError as error:
            if self._seat is None:
                raise
            # The hub may not have begun the feed yet, or the brokers are away: tried again each second.
            _LOG.warning("feeds can't all be opened yet: %s", error.sentence)
            self._missed = True
            return {}

    async def _apply_sites(self, stood: list[Settled] | None = None) -> None:
        """Sends the whole set; a node that starts is told where sites stood, too, and follows them from then on."""
        async with self._applying:
            job = await self._look_up(
                "sites",
                lambda tx: lines.sites_job(
                    tx.sites.all(), tx.credentials.usable(), tx.subscriptions.all(), tx.resends.waiting()
                ),
            )
            if stood is not None:
                job = backlog_lines.with_positions(job, stood)
            await self._node.request("sites", **self._neighbours.tell_sites(job))

    async def _apply_plans(self) -> None:
        plans, feeds = await self._look_up("plans", lambda tx: (tx.plans.all_current(), tx.feeds.all()))
        known = {feed.name for feed in feeds}
        for plan in plans:
            if plan.feed in known:
                await self._apply_plan(plan)

    async def _apply_plan(self, plan: Plan) -> None:
        self._accounts.adopt(plan)
        self._unmet.pop(plan.feed, None)
        own = self._neighbours.own_part(plan)
        if own is None:
            return
        try:
            await self._node.request("plan", **lines.plan_job(own, self._settings.multicast))
        except NodeAway:
            raise
        except DownburstError as error:
            if any(leg.transport is Transport.MULTICAST and leg.circuits for leg in plan.legs):
                self._unmet[plan.feed] = plan
            _LOG.warning("plan %d of %s was refused: %s", plan.version, plan.feed, error.sentence)
            await self._fault(f"plan {plan.version} of {plan.feed} was refused: {error.sentence}", feed=plan.feed)

    async def _apply_upstreams(self) -> None:
        if not await self._look_up("upstreams", lambda tx: tx.upstreams.all()):
            return
        try:
            await self.connect_upstreams()
        except NodeAway:
            raise
        except DownburstError as error:
            await self._fault(error.sentence, next_step="downburst upstreams list")

    async def _apply_ldm(self) -> None:
        wanted = await self._look_up("ldm", lambda tx: (tx.ldm_sources.all(), tx.ldm_accepts.all()))
        if not any(wanted) and not self._settings.ldm.listen and not self._settings.ldm.rtstats:
            return
        try:
            await self.connect_ldm()
        except NodeAway:
            raise
        except DownburstError as error:
            await self._fault(error.sentence, next_step="downburst ldm sources; downburst ldm peers")

    async def _look_up(self, question: str, work: Callable[[Transaction], T]) -> T:
        """What the ledger has; while it is away, what it had."""
        try:
            self._read_last[question] = found = await self._ledger.read(work)
        except LedgerAway:
            if question not in self._read_last:
                raise
            self._missed = True
            return cast("T", self._read_last[question])
        return found

    async def _catch_up(self) -> None:
        """Does every second what waited for the ledger, and at once what a batch tells, until the end."""
        while not self._ending.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._batch_waits.wait(), CATCH_UP_S)
            self._batch_waits.clear()
            try:
                await self._writer.catch_up()
                if self._missed and self._ledger.outage is None:
                    self._missed = False
                    await self._apply_all()
            except DownburstError as error:
                _LOG.warning("catching up with the ledger: %s", error.sentence)

    async def _look_around(self) -> None:
        """Twice a second: who serves what by now, and who waits for a certificate of this hub."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                if await self._neighbours.look():
                    self._live.only_senders(self._neighbours.placement.addresses or {}, self._clock.now())
                    await self._apply_all()
                await self._neighbours.certify_others(self._node.request)
                await self._reference.tend(self._node.ask)
            except NodeAway:
                pass
            except LedgerAway:
                self._missed = True
            except DownburstError as error:
                _LOG.warning("reading the nodes of this hub: %s", error.sentence)

    async def _apply_all(self) -> None:
        await self._apply_feeds()
        await self._apply_sites()
        await self._apply_plans()

    async def _follow(self) -> None:
        with self._bus.subscribe(FeedsChanged, SitesChanged, SubscriptionsChanged, PlanMade, limit=256) as changes:
            async for change in changes:
                work = partial(self._follow_one, change, lost=changes.take_dropped())
                try:
                    await attempt("agent.change", work, what=f"the change {type(change).__name__}")
                except NodeAway:
                    pass
                except LedgerAway:
                    self._missed = True
                except DownburstError as error:
                    await self._fault(f"the node refused a change of the settings: {error.sentence}")

    async def _follow_one(self, change: Event, *, lost: int) -> None:
        if lost:
            await self._apply_all()
        elif isinstance(change, PlanMade):
            await self._apply_plan(change.plan)
        elif isinstance(change, FeedsChanged):
            await self._apply_feeds()
        else:
            await self._apply_sites()

    async def _hear(self, line: Line) -> None:
        match line.get("event"):
            case "traffic" | "backlog" as name:
                await (self._count if name == "traffic" else self._backlog_told)(line)
            case "batch":
                await self._batch_told(line)
            case "enrol" | "credential-offered" | "credential-taken" | "violation" | "ldm-violation" as name:
                await (self._violations if name.endswith("violation") else self._enrolment).hear(line)
            case "leg":
                await self._leg_changed(line)
            case "resend":
                await self._finish_resend(line)
            case "session" | "upstream" | "ldm-source" | "ldm-peer":
                self._connection_changed(line)
            case "circuit":
                await self._circuit_changed(line)
            case "rtstats":
                self._live.reported(sentence(line["line"]))
            case "damaged" | "recovered" | "fault":
                await self._trouble_told(line)
            case other:
                _LOG.warning("the node reported %r, which is unknown here", other)

    def _connection_changed(self, line: Line) -> None:
        changed: UpstreamChanged | LdmSourceChanged | LdmPeerChanged
        match line["event"]:
            case "session":
                return self._say(replace(lines.session_changed(line), sender=self._seat.name if self._seat else ""))
            case "upstream":
                what, changed = f"upstream {line['upstream']}", lines.upstream_changed(line)
            case "ldm-source":
                what, changed = f"LDM {line['upstream']} of {line['source']}", lines.ldm_source_changed(line)
            case _:
                who = line.get("site") or "no site"
                what, changed = f"LDM {line['peer']} of {who}", lines.ldm_peer_changed(line)
        _LOG.info("%s is %s%s", what, changed.state, f": {changed.reason}" if changed.reason else "")
        return self._say(changed)

    async def _count(self, line: Line) -> None:
        aside: list[SetAside] = []
        traffic = lines.traffic_seen(line, self._accounts.transports, aside)
        await self._violations.set_aside(aside)
        counted, minutes = self._accounts.count(traffic)
        if self._seat is not None:
            # Arrivals are counted where they arrive, and numbers where they are given.
            self.egress_bps = traffic.egress_bps
            self._say(replace(traffic, feeds=(), sender=self._seat.name))
            await self._writer.count(counted)
            return
        self._say(traffic)
        heads = [LogHead(feed.feed, feed.epoch, feed.head) for feed in traffic.feeds if self._grew(feed)]
        if counted or minutes or heads:
            await self._writer.count(counted, minutes, heads)

    async def _batch_told(self, line: Line) -> None:
        self._say(batch := lines.batch_ready(line))
        if self._ending.is_set():
            await self._writer.take_batch(batch.path)
        else:
            # Loaded beside: where the database is slow, what the node tells of sites must not wait for receipts.
            self._writer.look_for_batches()
            self._batch_waits.set()

    async def _backlog_told(self, line: Line) -> None:
        aside: list[SetAside] = []
        self._say(backlog_lines.backlog_seen(line, aside, sender=self._seat.name if self._seat else ""))
        await self._violations.set_aside(aside)

    def _grew(self, feed: FeedTraffic) -> bool:
        """Heartbeats take numbers as products do, and are no products."""
        before = self._heads.get(feed.feed)
        self._heads[feed.feed] = (feed.epoch, feed.head)
        return bool(feed.epoch) and (bool(feed.products) or (before is not None and before[1] != feed.head))

    async def _finish_resend(self, line: Line) -> None:
        await self._writer.finish_resend(*lines.resend_ended(line))
        await self._apply_sites()
        self._bus.publish(ResendsChanged())

    async def _put_aside(self, path: Path) -> None:
        await self._fault(
            f"the batch of receipts {path.name} can't be understood and was set aside as .bad",
            next_step="after an upgrade that can read it, rename it back to .json and start the hub again",
        )

    async def _mourn(self, reason: str) -> None:
        at = self._clock.now()
        self._say(NodeChanged(at, running=False, restarts=self.restarts, reason=reason))
        await self._fault(
            f"{reason}; it is being restarted",
            at=at,
            next_step="no acknowledged product is lost; if this repeats, read the hub's log",
        )

    async def _trouble_told(self, line: Line) -> None:
        told, step = lines.told_fault(line), ""
        if line["event"] == "recovered" and line.get("whole"):
            _LOG.info("feed %s: %s", told["feed"], told["sentence"])
            return
        if line["event"] == "damaged":
            self._live.damages[line["feed"]] = Damage(self._clock.now(), told["sentence"])
            step = DISK_STEP
        await self._fault(**told, next_step=step)

    async def _circuit_changed(self, line: Line) -> None:
        self._say(circuit_lines.circuit_told(line))
        for plan in list(self._unmet.values()) if line["state"] == "up" else ():
            await self._apply_plan(plan)

    async def _leg_changed(self, line: Line) -> None:
        self._say(lines.leg_changed(line))
        if advice := (line.get("reception") or {}).get("advice"):
            await self._fault(f"site {line['site']}: {sentence(advice)}", feed=line["feed"], site=line["site"])

    async def _fault(
        self,
        sentence: str,
        *,
        feed: str | None = None,
        site: str | None = None,
        next_step: str = "",
        at: datetime | None = None,
    ) -> None:
        fault = Fault(at or self._clock.now(), sentence, feed=feed, site=site, next_step=next_step)
        _LOG.warning("%s%s", f"feed {feed}: " if feed is not None and feed not in sentence else "", sentence)
        with suppress(Failure):
            await self._ledger.write(lambda tx: tx.faults.add(fault), patience_s=0)
        self._say(FaultSeen(fault.at, sentence, feed=feed, site=site, next_step=next_step))

    def _say(self, event: Event) -> None:
        self._live.apply(event)
        # Whether a sender's node runs is told by its beats; by the bus it would be the hub's own.
        if self._seat is None or not isinstance(event, NodeChanged):
            self._bus.publish(event)


def _program(settings: Settings) -> Path:
    return (find_node if settings.kafka.products == "here" else find_node_for_kafka)(settings.node)


_LOG = logging.getLogger("downburst.agent")
DISK_STEP = "look for failures of the disk (dmesg, smartctl); downburst log verify lists all damage"
CATCHING_UP = "agent.catching-up"
CATCH_UP_S = 1.0
LOOK_S = 0.5
