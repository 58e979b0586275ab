"""Things that tests need, with everything that does not matter filled in."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

from downburst.bus.local import LocalBus
from downburst.deliveries import FoundDeliveries, ProductFacts, ProductName
from downburst.deliveries.browsing import Browse, Browsed
from downburst.domain.alarms import Receiver
from downburst.domain.bridges.exporting import ExportedFile
from downburst.domain.circuits import Direction
from downburst.domain.credentials import EnrolmentToken
from downburst.domain.feeds import FeedLog
from downburst.domain.latency import LatencyKind, SketchRow
from downburst.domain.plans import Leg, Plan, Transport
from downburst.domain.probes import ProbeKind, ProbeRequest, ProbeStep, ProbeTransport
from downburst.domain.probes.checks import sweep
from downburst.domain.probes.trials import trials_of
from downburst.domain.products import Acknowledgement, Product
from downburst.domain.receipts import Settled
from downburst.domain.sites import Site
from downburst.foundation.clock import Clock
from downburst.foundation.errors import NotKept, from_node
from downburst.ledger import Ledger, Transaction
from downburst.live.state import LiveState
from downburst.live.traced import TracedSite, TracerQuestion
from downburst.settings.hub import Settings, load_settings
from downburst.settings.ldm import LdmSettings
from downburst.sketches.sketch import LatencySketch
from downburst_api.runtime import Runtime
from downburst_circuits.controller import CircuitController
from downburst_circuits.near_nodes import NearNodes
from downburst_circuits.providers.agents import Agents
from downburst_circuits.providers.makers import makers
from downburst_circuits.register import Register
from downburst_circuits.service import CircuitService
from downburst_worker.messages import lines
from downburst_worker.messages.delivery_lines import (
    browse_job,
    browsed,
    deliveries_job,
    found_deliveries,
    product_facts,
)
from downburst_worker.messages.log_lines import feed_logs
from downburst_worker.messages.tcp_lines import tcp_profiles_job
from downburst_worker.messages.tracer_lines import traced_site, tracer_job
from kit.asked_planner import AskedPlanner
from kit.circuits import NodeInMemory
from kit.fake_node import FakeNode

SOME_TIME = datetime(2026, 1, 1, tzinfo=UTC)
FAR = datetime(2100, 1, 1, tzinfo=UTC)
LOCAL_TOKEN = "dbo_of-the-hubs-own-user"
AUTHORIZATION = {"Authorization": f"Bearer {LOCAL_TOKEN}"}
EPOCH = "12345678901234567890"


def site_with_token(tx: Transaction, secret: str) -> None:
    """Makes the site unl.edu, and a token of an hour for it."""
    tx.sites.add(Site("unl.edu"))
    tx.enrolment.tokens.add("unl.edu", secret, lifetime=timedelta(hours=1))


def plan(feed: str = "NGRID", *legs: Leg, reason: str = "because", made_at: datetime = SOME_TIME) -> Plan:
    return Plan(feed=feed, version=0, legs=legs, reason=reason, made_at=made_at)


def probe_request(site: str = "unl.edu", kind: ProbeKind = ProbeKind.CBR, rate_bps: int = 10_000_000) -> ProbeRequest:
    steps = sweep(rate_bps) if kind is ProbeKind.KNEE else (ProbeStep(rate_bps, 10_000),)
    return ProbeRequest(site, kind, Direction.OUT, steps, by="eve")


def stacks_request(*controls: str, rate_bps: int = 10_000_000, reverse_traffic: bool = True) -> ProbeRequest:
    trials = trials_of(controls or ("cubic", "bbr"), duration_ms=2_000, reverse_traffic=reverse_traffic)
    steps = (ProbeStep(rate_bps, sum(trial.duration_ms for trial in trials)),)
    made = ProbeRequest("unl.edu", ProbeKind.STACKS, Direction.OUT, steps, by="eve")
    return replace(made, transport=ProbeTransport.TCP, trials=trials)


def multicast(leg: int, *sites: str) -> Leg:
    return Leg(leg, Transport.MULTICAST, sites, group="239.77.0.1", port=17_001, rate_bps=400_000_000)


def unicast(leg: int, *sites: str) -> Leg:
    return Leg(leg, Transport.UNICAST, sites)


def sketch_row(
    values_ms: Sequence[float],
    *,
    feed: str = "NGRID",
    site: str = "unl.edu",
    minute: int = 0,
    transport: Transport = Transport.UNICAST,
    kind: LatencyKind = LatencyKind.DISTRIBUTION,
) -> SketchRow:
    sketch = LatencySketch()
    for value in values_ms:
        sketch.add(value, bound_ms=0.5)
    return SketchRow(
        feed=feed,
        site=site,
        transport=transport,
        kind=kind,
        minute=minute,
        count=sketch.count,
        sum_ms=sketch.sum_ms,
        min_ms=sketch.min_ms,
        max_ms=sketch.max_ms,
        negative=sketch.negative,
        bound_ms=sketch.bound_ms,
        buckets=sketch.buckets,
    )


def settled(settled_to: int, *, stored: int = 0, feed: str = "NGRID", site: str = "unl.edu") -> Settled:
    return Settled(feed, EPOCH, site, settled_to, stored=stored, stored_bytes=stored * 1000)


def settings(directory: Path, **given: object) -> Settings:
    chosen = load_settings(None, data_dir=directory, **given)
    for made in (chosen.spool_dir, chosen.batch_dir, chosen.node_dir):
        made.mkdir(parents=True, exist_ok=True)
    return chosen


class NodeStandIn:
    """The fake node without a process, as the api sees an agent."""

    def __init__(self, ledger: Ledger) -> None:
        self.fake = FakeNode()
        self.running = True
        self.restarts = 0
        self.sites_address: tuple[str, ...] = ("127.0.0.1:7370",)
        self.ca_sha256 = sha256(b"fake").hexdigest()
        self.exports: dict[tuple[str, str, int], ExportedFile] = {}
        self._ledger = ledger
        self._tokens = 0

    async def ingest(
        self, path: Path, product: Product, *, remove: bool = True, digest: object = None
    ) -> Acknowledgement:
        return lines.acknowledgement(
            self._ask("ingest", lines.ingest_job(str(path), product, digest=digest, remove=remove))
        )

    async def check_pattern(self, pattern: str) -> None:
        self._ask("check-pattern", {"pattern": pattern})

    async def status(self) -> dict[str, Any]:
        return self._ask("status", {})

    async def logs(self) -> list[FeedLog]:
        return feed_logs(self._ask("logs", {}))

    async def exported(self, feed: str, epoch: str, sequence: int) -> ExportedFile:
        found = self.exports.get((feed, epoch, sequence))
        if found is None:
            raise NotKept(f"the log of {feed} no longer has the bytes of product {sequence}")
        return found

    async def found_deliveries(
        self, name: ProductName, *, feed: str, before: int | None = None, limit: int = 5, site: str | None = None
    ) -> FoundDeliveries:
        job = deliveries_job(name, feed=feed, before=before, limit=limit, site=site)
        return found_deliveries(self._ask("deliveries", job))

    async def products(self, feed: str, epoch: str, sequences: Sequence[int]) -> list[ProductFacts]:
        answer = self._ask("products", {"feed": feed, "epoch": epoch, "sequences": list(sequences)})
        return [product_facts(line) for line in answer["products"]]

    async def browse(self, wanted: Browse) -> Browsed:
        return browsed(self._ask("browse", browse_job(wanted)))

    async def tracer(self, wanted: TracerQuestion) -> TracedSite:
        return traced_site(self._ask("tracer", tracer_job(wanted)))

    async def new_token(
        self, site: str, *, lifetime: timedelta, credential_lifetime: timedelta | None = None
    ) -> tuple[str, EnrolmentToken]:
        self._tokens += 1
        hashed = sha256(f"{site} {self._tokens}".encode()).hexdigest()
        kept = await self._ledger.write(
            lambda tx: tx.enrolment.tokens.add(
                site, hashed, lifetime=lifetime, credential_lifetime=credential_lifetime
            )
        )
        return f"dbt1.{self.ca_sha256}.secret", kept

    async def refresh(self) -> None:
        feeds, sites = await self._ledger.read(
            lambda tx: (
                lines.feeds_job(tx.feeds.all(), tx.measured.log_heads.all()),
                lines.sites_job(
                    tx.sites.all(), tx.enrolment.credentials.usable(), tx.subscriptions.all(), tx.resends.waiting()
                ),
            )
        )
        self._ask("feeds", feeds)
        self._ask("sites", sites)

    async def connect_upstreams(self) -> None:
        wanted = await self._ledger.read(lambda tx: lines.upstreams_job(tx.fleet.upstreams.all()))
        self._ask("upstreams", wanted)

    async def apply_tcp_profiles(self) -> None:
        self._ask("tcp-profiles", await self._ledger.read(lambda tx: tcp_profiles_job(tx.fleet.tcp_profiles.all())))

    async def connect_ldm(self) -> tuple[str, ...]:
        job = await self._ledger.read(
            lambda tx: lines.ldm_job(tx.ldm.sources.all(), tx.ldm.accepts.all(), LdmSettings())
        )
        return tuple(self._ask("ldm", job)["addresses"])

    def _ask(self, do: str, job: dict[str, Any]) -> dict[str, Any]:
        answer = self.fake.answer({"do": do, **job})
        if not answer["ok"]:
            raise from_node(answer["code"], answer["error"], answer.get("position"))
        return answer


class Told:
    """Receivers that were told of an alarm or a test."""

    def __init__(self) -> None:
        self.tests: list[str] = []

    async def tell_as_a_test(self, receiver: Receiver) -> None:
        self.tests.append(receiver.name)


def runtime(directory: Path, ledger: Ledger, clock: Clock, **given: object) -> tuple[Runtime, NodeStandIn]:
    node = NodeStandIn(ledger)
    bus, wanted = LocalBus(), settings(directory, **given)
    register = Register(ledger, bus, clock)
    circuits = NodeInMemory()
    nodes = NearNodes(register, circuits, bus, clock)
    made_by = makers(register, nodes, Agents(register, ledger=ledger, bus=bus, clock=clock), wanted.circuits)
    controller = CircuitController(register, nodes, made_by, bus=bus, clock=clock, settings=wanted.circuits)
    made = Runtime(
        settings=wanted,
        ledger=ledger,
        bus=bus,
        live=LiveState(),
        clock=clock,
        node=node,
        circuits=CircuitService(register, controller, made_by, ledger=ledger, bus=bus, clock=clock),
        alarms=Told(),
        planner=AskedPlanner(),
        local_token=LOCAL_TOKEN,
    )
    return made, node
