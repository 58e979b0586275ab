"""The agent: the desired state in the ledger reaches the node, and the node's reports reach the ledger."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from downburst.bus.local import BusSubscription, LocalBus
from downburst.domain.circuits.signs import CircuitTold
from downburst.domain.events import (
    Event,
    FaultSeen,
    FeedsChanged,
    LdmPeerChanged,
    LdmSourceChanged,
    NodeChanged,
    PlanMade,
    ResendsChanged,
    SessionChanged,
    SitesChanged,
    Streams,
    TrafficSeen,
    UpstreamChanged,
)
from downburst.domain.feeds import Feed
from downburst.domain.latency import SiteClock
from downburst.domain.products import Product
from downburst.domain.readings import HostReading, LineReading, PriorityStanding
from downburst.domain.resends import Resend, ResendState
from downburst.domain.sites import Site
from downburst.domain.subscriptions import Subscription
from downburst.domain.upstreams import LdmAccept, LdmSource, Upstream
from downburst.foundation.clock import FakeClock, to_us
from downburst.foundation.errors import NodeAway
from downburst.ledger import Ledger
from downburst.live.state import LiveState
from downburst_latency.service import LatencyService
from downburst_worker.agent import Agent
from downburst_worker.roles import HubRole, Role
from factories import EPOCH, multicast, plan, settings, unicast

READING = {
    "leg": 70,
    "dropped": 2**32,
    "asked_bytes": 65_536,
    "granted_bytes": 131_072,
    "needed_bytes": 350_000,
    "limit_bytes": None,
    "priority": 20,
    "standing": "lost",
    "demotions": 1,
    "line": {"arrived_bps": 4_000_000, "offered_bps": 40_000_000, "packets": 3_300, "lost": 2_970, "windows": 7},
}
FAKE = (sys.executable, str(Path(__file__).parents[2] / "kit" / "fake_node.py"))


class Stage:
    def __init__(
        self,
        directory: Path,
        ledger: Ledger,
        clock: FakeClock,
        *,
        argv: tuple[str, ...] = FAKE,
        role: Role | None = None,
        **given: object,
    ) -> None:
        self.ledger = ledger
        self.bus = LocalBus()
        self.live = LiveState()
        self.settings = settings(directory, **given)
        self.seen: BusSubscription = self.bus.subscribe()
        self.agent = Agent(
            settings=self.settings,
            ledger=ledger,
            bus=self.bus,
            live=self.live,
            clock=clock,
            load_batch=LatencyService(ledger, clock=clock).load,
            argv=argv,
            role=role or HubRole(ledger),
        )

    async def jobs(self, do: str) -> list[dict[str, Any]]:
        told = await self.agent._node.request("told")
        return [job for job in told["jobs"] if job["do"] == do]

    async def last_job(self, do: str, good: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The newest job of its kind, as soon as it is good."""
        async with asyncio.timeout(20):
            while True:
                found = await self.jobs(do)
                if found and good(found[-1]):
                    return found[-1]

    async def says(self, **line: Any) -> None:
        await self.agent._node.request("emit", line={"at_us": 1_000_000, **line})

    async def event(self, kind: type[Event]) -> Any:
        async with asyncio.timeout(20):
            while True:
                event = await self.seen.next()
                if isinstance(event, kind):
                    return event


@pytest.fixture
async def stage(tmp_path: Path, ledger: Ledger, clock: FakeClock) -> AsyncIterator[Stage]:
    with ledger.transaction() as tx:
        tx.feeds.add(Feed("NGRID"))
        tx.sites.add(Site("unl.edu", allow=("NGRID",), access_rate_bps=8e6, ceiling_mbps_by_hour=(1.5, 0)))
        tx.subscriptions.add(Subscription(0, "unl.edu", "NGRID", "^A"))
        tx.planning.plans.append(plan("NGRID", unicast(1, "unl.edu")))
        tx.planning.plans.append(plan("GONE", unicast(2, "unl.edu")))
    made = Stage(tmp_path / "hub", ledger, clock)
    await made.agent.start()
    yield made
    await made.agent.stop()


async def test_a_start_tells_everything_in_order(stage: Stage) -> None:
    jobs = (await stage.agent._node.request("told"))["jobs"]
    assert [job["do"] for job in jobs] == ["start", "feeds", "sites", "plan"]
    assert jobs[0]["listen"] == [stage.settings.sites]
    assert jobs[0]["data_connections"] == 16
    assert jobs[1]["feeds"][0] == {
        "feed": "NGRID",
        "class": "grid",
        "retention_hours": 2.0,
        "retention_bytes": 10_000_000_000,
        "durability": "process",
        "duplicate_rule": "id-and-content",
        "max_product_bytes": 4_294_967_296,
        "unicast_leg": 1,
        "at_least": [],
        "ldm_feed_type": None,
        "ldm_pattern": None,
        "deadline_ms": None,
    }
    assert jobs[2]["sites"][0]["subscriptions"] == [{"feed": "NGRID", "pattern": "^A", "not_pattern": None}]
    assert jobs[2]["sites"][0]["access_rate_bps"] == 8_000_000
    assert jobs[2]["sites"][0]["ceiling_bps_by_hour"] == [1_500_000, 0]
    assert jobs[3]["legs"] == [{"leg": 1, "transport": "unicast", "sites": ["unl.edu"]}]
    assert stage.agent.running
    assert stage.agent.ca_sha256 == sha256(b"fake").hexdigest()


async def test_a_finished_resend_is_noted_and_asked_no_more(stage: Stage) -> None:
    now = stage.agent._clock.now()
    wanted = Resend(0, "unl.edu", "NGRID", now - timedelta(hours=1), now)
    kept = await stage.ledger.write(lambda tx: tx.resends.add(wanted))
    await stage.agent.refresh()
    job = (await stage.jobs("sites"))[-1]
    assert [line["resend"] for line in job["sites"][0]["resends"]] == [kept.id]
    await stage.says(event="resend", site="unl.edu", resend=kept.id, products=3, bytes=99, expired=1)
    await stage.event(ResendsChanged)
    ended = await stage.ledger.read(lambda tx: tx.resends.one(kept.id))
    assert (ended.state, ended.products, ended.bytes, ended.expired) == (ResendState.DONE, 3, 99, 1)
    assert (await stage.jobs("sites"))[-1]["sites"][0]["resends"] == []


async def test_ldms_are_told_when_they_change_and_at_each_start(stage: Stage) -> None:
    source = LdmSource("idd", "NGRID", ("idd.example.edu", "[2001:db8::7]:3880"))
    await stage.ledger.write(lambda tx: tx.ldm.sources.add(source))
    await stage.ledger.write(lambda tx: tx.ldm.accepts.add(LdmAccept(0, "EXP", "^r", "h")))
    await stage.agent.connect_ldm()
    job = (await stage.jobs("ldm"))[-1]
    assert job["sources"] == [
        {
            "source": "idd",
            "feeds": "NGRID",
            "pattern": ".*",
            "upstreams": ["idd.example.edu", "[2001:db8::7]:3880"],
            "max_age_seconds": 3600,
        }
    ]
    assert (job["listen"], job["accept"]) == ([], [{"feeds": "EXP", "pattern": "^r", "host": "h"}])
    seen: dict[str, Any] = {"source": "idd", "upstream": "idd.example.edu", "mode": "primary", "reason": None}
    await stage.says(event="ldm-source", state="connected", **seen)
    assert (await stage.event(LdmSourceChanged)).mode == "primary"
    assert stage.live.ldm.sources["idd", "idd.example.edu"].connections == 1
    peer: dict[str, Any] = {"peer": "ldm.a.edu", "site": "a.edu", "what": "feedme", "reason": None}
    for connections, state in ((1, "connected"), (2, "connected"), (1, "closed")):
        await stage.says(event="ldm-peer", state=state, **peer)
        await stage.event(LdmPeerChanged)
        assert stage.live.ldm.sites["a.edu"].connections == connections


async def test_upstreams_are_told_when_they_change_and_at_each_start(stage: Stage) -> None:
    upstream = Upstream("unidata", "idd.example.edu:7370", f"dbt1.{'ab' * 32}.secret")
    await stage.ledger.write(lambda tx: tx.fleet.upstreams.add(upstream))
    await stage.agent.connect_upstreams()
    told = {"upstream": "unidata", "address": upstream.address, "token": upstream.token, "feeds": []}
    assert [job["upstreams"] for job in await stage.jobs("upstreams")] == [[told]]
    await stage.says(event="upstream", upstream="unidata", state="connected", hub="idd", reason=None)
    assert (await stage.event(UpstreamChanged)).hub == "idd"
    assert stage.live.upstreams["unidata"].connected
    await stage.agent._make_ready()
    assert (await stage.jobs("upstreams"))[-1]["upstreams"] == [told]


async def test_changes_are_sent_when_they_are_said(stage: Stage) -> None:
    await stage.ledger.write(lambda tx: tx.feeds.add(Feed("OTHER")))
    stage.bus.publish(FeedsChanged())
    await stage.last_job("feeds", lambda job: len(job["feeds"]) == 2)
    await stage.ledger.write(lambda tx: tx.sites.remove("unl.edu"))
    stage.bus.publish(SitesChanged())
    await stage.last_job("sites", lambda job: job["sites"] == [])
    made = await stage.ledger.write(lambda tx: tx.planning.plans.append(plan("NGRID", multicast(9, "a", "b"))))
    stage.bus.publish(PlanMade(made))
    job = await stage.last_job("plan", lambda job: job["version"] == made.version)
    assert job["legs"][0]["group"] == "239.77.0.1"
    assert (job["legs"][0]["hops"], job["legs"][0]["burst_bytes"]) == (32, None)
    repair = ("parity_percent", "loss_quantile", "repair_seconds")
    assert [job["legs"][0][name] for name in repair] == [0, 0.5, 60]


async def test_a_plan_that_waits_for_its_circuit_is_told_again_once_that_is_up(stage: Stage) -> None:
    group = replace(multicast(9, "a", "b"), circuits=(("a", 17), ("b", 17)))
    made = await stage.ledger.write(lambda tx: tx.planning.plans.append(plan("NGRID", group)))
    stage.bus.publish(PlanMade(made))
    assert "circuit 17 is not up" in (await stage.event(FaultSeen)).sentence
    told = await stage.jobs("plan")
    assert (told[-1]["legs"][0]["circuit"], "circuits" in told[-1]["legs"][0]) == (17, False)
    for site in ("a", "b"):
        await stage.says(event="circuit", lease=17, site=site, state="up")
        await stage.event(CircuitTold)
    async with asyncio.timeout(20):
        while (again := await stage.jobs("plan")) == told:
            pass
    assert again == [*told, again[-1]]
    assert again[-1]["version"] == made.version


async def test_what_a_sites_host_should_change_is_a_fault(stage: Stage) -> None:
    joined = {"event": "leg", "feed": "NGRID", "leg": 9, "site": "unl.edu", "state": "joined", "after": 4}
    said = {"buffer_bytes": 425_984, "path": "batches (recvmmsg)"}
    await stage.says(**joined, reception={**said, "advice": None})
    await stage.says(**joined, reception={**said, "advice": "set net.core.rmem_max=5000000 there"})
    fault = await stage.event(FaultSeen)
    assert (fault.sentence, fault.site) == ("site unl.edu: set net.core.rmem_max=5000000 there", "unl.edu")


async def test_a_subscription_outside_the_allow_list_is_not_served(stage: Stage) -> None:
    await stage.ledger.write(lambda tx: tx.feeds.add(Feed("SECRET")))
    await stage.ledger.write(lambda tx: tx.subscriptions.add(Subscription(0, "unl.edu", "SECRET")))
    await stage.agent.refresh()
    wishes = (await stage.jobs("sites"))[-1]["sites"][0]["subscriptions"]
    assert [wish["feed"] for wish in wishes] == ["NGRID"]


async def test_after_a_death_everything_is_told_again_and_said(stage: Stage) -> None:
    await stage.event(NodeChanged)
    with pytest.raises(NodeAway):
        await stage.agent._node.request("die")
    assert (await stage.event(NodeChanged)).running is False
    assert "it is being restarted" in (await stage.event(FaultSeen)).sentence
    again = await stage.event(NodeChanged)
    assert (again.running, again.restarts) == (True, 1)
    assert [job["do"] for job in (await stage.agent._node.request("told"))["jobs"]][:4] == [
        "start",
        "feeds",
        "sites",
        "plan",
    ]
    assert "exit code 3" in (await stage.ledger.read(lambda tx: tx.measured.faults.recent()))[0].sentence


async def test_what_is_told_of_sites_does_not_wait_for_receipts_that_are_being_loaded(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loading, goes_on = asyncio.Event(), asyncio.Event()

    async def slowly(_path: Path) -> None:
        loading.set()
        await goes_on.wait()

    monkeypatch.setattr(stage.agent._writer, "_load_batch", slowly)
    batch = stage.settings.batch_dir / "b1.json"
    batch.write_text("{}")
    await stage.says(event="batch", batch="b1", path=str(batch))
    async with asyncio.timeout(20):
        await loading.wait()
    await stage.says(event="session", site="unl.edu", state="closed", peer="192.0.2.1:5", reason="cut")
    assert (await stage.event(SessionChanged)).reason == "cut"
    goes_on.set()


async def test_a_whole_log_that_was_not_closed_is_no_fault(stage: Stage) -> None:
    for whole in (True, False):
        await stage.says(event="recovered", feed="NGRID", sentence=f"whole: {whole}", whole=whole)
    assert (await stage.event(FaultSeen)).sentence == "whole: False"


async def test_a_node_that_begins_again_listens_where_sites_know_it(stage: Stage) -> None:
    stage.agent._settings = stage.settings.model_copy(update={"sites": "127.0.0.1:0"})
    stage.agent.sites_address = ("127.0.0.1:7499",)
    await stage.event(NodeChanged)
    with pytest.raises(NodeAway):
        await stage.agent._node.request("die")
    await stage.event(NodeChanged)
    await stage.event(NodeChanged)
    assert (await stage.jobs("start"))[0]["listen"] == ["127.0.0.1:7499"]


async def test_a_product_is_acknowledged_then_known_as_a_duplicate(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "product"
    path.write_bytes(b"grid")
    first = await stage.agent.ingest(path, Product("NGRID", "a/%/b"))
    assert (first.sequence, first.size_bytes, first.duplicate_of) == (1, 4, None)
    assert not path.exists()
    path.write_bytes(b"grid")
    assert (await stage.agent.ingest(path, Product("NGRID", "a/%/b"), remove=False)).duplicate_of == 1
    assert path.exists()


async def test_a_receiver_with_a_good_token_is_let_in_once_the_node_knows_it(stage: Stage) -> None:
    text, _ = await stage.agent.new_token("unl.edu", lifetime=timedelta(hours=1))
    scheme, ca, secret = text.split(".")
    assert (scheme, ca) == ("dbt1", stage.agent.ca_sha256)
    hashed = _token_hash(secret)
    credential = "c" * 64
    await stage.says(event="enrol", ask=7, secret_sha256=hashed, credential_sha256=credential, peer="192.0.2.1:9")
    answer = await stage.last_job("enrol-answer", lambda job: job["ask"] == 7)
    assert answer["ok"], answer
    assert answer["site"] == "unl.edu"
    jobs = (await stage.agent._node.request("told"))["jobs"]
    told = [job["do"] for job in jobs]
    known = next(at for at, job in enumerate(jobs) if job["do"] == "sites" and job["sites"][0]["credentials"])
    assert known < told.index("enrol-answer")

    await stage.says(event="enrol", ask=8, secret_sha256=hashed, credential_sha256="d" * 64, peer="192.0.2.2:9")
    refusal = await stage.last_job("enrol-answer", lambda job: job["ask"] == 8)
    assert (refusal["ok"], refusal["code"]) == (False, "token")
    assert "another receiver at 192.0.2.1:9" in refusal["sentence"]


async def test_a_receiver_has_its_credential_replaced_once_the_node_knows_the_new_one(stage: Stage) -> None:
    text, token = await stage.agent.new_token("unl.edu", lifetime=timedelta(hours=1))
    assert token.credential_seconds == 90 * 86_400
    hashed, old, new = _token_hash(text.split(".")[2]), "c" * 64, "d" * 64
    await stage.says(event="enrol", ask=7, secret_sha256=hashed, credential_sha256=old, peer="192.0.2.1:9")
    await stage.last_job("enrol-answer", lambda job: job["ask"] == 7)
    offer = {"event": "credential-offered", "site": "unl.edu", "peer": "192.0.2.1:9"}
    await stage.says(**offer, ask=8, credential_sha256=old, offered_sha256=new)
    answer = await stage.last_job("enrol-answer", lambda job: job["ask"] == 8)
    (_, made) = sorted(
        await stage.ledger.read(lambda tx: tx.enrolment.credentials.usable()), key=lambda one: one.sha256
    )
    assert made.expires_at is not None
    assert (answer["ok"], answer["ends_us"]) == (True, to_us(made.expires_at))
    jobs = (await stage.agent._node.request("told"))["jobs"]
    known = next(at for at, job in enumerate(jobs) if job["do"] == "sites" and new in _told_credentials(job))
    assert known < max(at for at, job in enumerate(jobs) if job["do"] == "enrol-answer")
    assert _told_credentials(jobs[known])[new] == old

    await stage.says(event="credential-taken", site="unl.edu", credential_sha256=new)
    await stage.last_job("sites", lambda job: list(_told_credentials(job)) == [new])
    await stage.says(**offer, ask=9, credential_sha256=old, offered_sha256="e" * 64)
    refusal = await stage.last_job("enrol-answer", lambda job: job["ask"] == 9)
    assert (refusal["ok"], "no longer valid" in refusal["sentence"]) == (False, True)


def _told_credentials(job: dict[str, Any]) -> dict[str, str | None]:
    return {one["sha256"]: one["replaces"] for one in job["sites"][0]["credentials"]}


async def test_traffic_is_booked_under_the_plan_that_caused_it(stage: Stage) -> None:
    leg = {"feed": "NGRID", "repair_bytes": 1, "backlog_bytes": 0}
    await stage.says(
        event="traffic",
        from_us=60_000_000,
        to_us=61_000_000,
        feeds=[{"feed": "NGRID", "products": 2, "bytes": 100, "sizes": [50, 50], "head": 2, "epoch": EPOCH}],
        legs=[{"leg": 1, "egress_bytes": 210, "products": 4, "product_bytes": 200, "sites": 2, **leg}],
        control_bytes=30,
        gone=["dmz.edu"],
        sessions=[
            {
                "site": "unl.edu",
                "clock_offset_us": 5,
                "clock_bound_us": 2,
                "round_trip_us": 4,
                "site_clock": {"synchronised": False, "error_us": 9, "estimated_error_us": 1, "daemon": None},
                "path": {
                    "least_round_trip_us": 3,
                    "sent_segments": 2_000,
                    "resent_segments": 20,
                    "rate_bps": 8_000_000,
                    "is_lower_bound": True,
                    "congestion": "cubic",
                },
                "data_connections": 2,
                "data_connections_planned": 4,
                "data_connections_reason": "they help",
                "feeds": [
                    {
                        "feed": "NGRID",
                        "settled_to": 1,
                        "pending": 1,
                        "transport": "unicast",
                        "leg": 1,
                        "reading": READING,
                    }
                ],
            }
        ],
    )
    seen = await stage.event(TrafficSeen)
    assert seen.sessions[0].feeds[0].reading == HostReading(
        70,
        2**32,
        65_536,
        131_072,
        350_000,
        None,
        20,
        PriorityStanding.LOST,
        1,
        LineReading(4_000_000, 40_000_000, 3_300, 2_970, 7),
    )
    assert (seen.feeds[0].bytes, seen.gone) == (100, {"dmz.edu"})
    assert seen.sessions[0].clock == SiteClock(synchronised=False, error_us=9, estimated_error_us=1)
    await stage.jobs("start")
    async with asyncio.timeout(20):
        while not (counted := await stage.ledger.read(lambda tx: tx.planning.legs.counters("NGRID"))):
            await stage.jobs("start")
    assert (counted[0].version, counted[0].egress_bytes, counted[0].control_bytes) == (1, 240, 30)
    assert (await stage.ledger.read(lambda tx: tx.measured.traffic.totals()))["NGRID"].bytes == 100
    await stage.agent.refresh()
    told = (await stage.jobs("feeds"))[-1]["feeds"][0]
    assert told["at_least"] == [{"epoch": EPOCH, "sequence": 2}], "so an older log is known when it is opened"
    session = stage.live.session("unl.edu")
    assert session is not None
    assert session.progress["NGRID"].pending == 1
    known = stage.live.paths.of("unl.edu")
    assert (known.least_round_trip_us, known.loss) == (3, 0.01)
    assert session.behind_since is not None
    assert session.streams == Streams(open=2, planned=4, reason="they help")


async def test_sessions_come_and_go(stage: Stage) -> None:
    for state, connected in (("connected", True), ("refused", True), ("closed", False)):
        await stage.says(event="session", site="unl.edu", state=state, peer="192.0.2.1:9", reason=None, software=None)
        assert (await stage.event(SessionChanged)).state == state
        session = stage.live.session("unl.edu")
        assert session is not None
        assert session.connected is connected
    said = {"event": "session", "site": "unl.edu", "state": "connected", "peer": "192.0.2.1:9", "stand_by": True}
    await stage.says(**said)
    assert (await stage.event(SessionChanged)).stand_by


async def test_a_batch_is_loaded_once_and_given_back(stage: Stage) -> None:
    report = {"feed": "NGRID", "epoch": EPOCH, "site": "unl.edu", "settled_to": 4, "stored": 4, "stored_bytes": 40}
    report |= {"duplicates": 0, "rejected": 0, "expired": 0}
    path = stage.settings.batch_dir / "b1.json"
    path.write_text(json.dumps({"batch": "b1", "sketches": [], "exceptions": [], "settled": [report]}))
    for _ in range(2):
        await stage.says(event="batch", batch="b1", path=str(path))
    await stage.last_job("batch-loaded", lambda job: job["batch"] == "b1")
    async with asyncio.timeout(20):
        while len(await stage.jobs("batch-loaded")) < 2:
            pass
    assert [row.stored for row in await stage.ledger.read(lambda tx: tx.measured.settled.all())] == [4]


async def test_a_batch_that_can_not_be_read_is_put_aside_and_said(stage: Stage) -> None:
    path = stage.settings.batch_dir / "b2.json"
    path.write_text('{"batch": "b2", "sket')
    await stage.says(event="batch", batch="b2", path=str(path))
    assert "b2.json can't be understood" in (await stage.event(FaultSeen)).sentence
    assert path.with_suffix(".bad").exists()


async def test_what_lay_there_at_the_start_is_loaded(tmp_path: Path, ledger: Ledger, clock: FakeClock) -> None:
    made = Stage(tmp_path / "hub", ledger, clock)
    path = made.settings.batch_dir / "old.json"
    path.write_text(json.dumps({"batch": "old", "sketches": [], "exceptions": [], "settled": []}))
    await made.agent.start()
    await made.last_job("batch-loaded", lambda job: job["batch"] == "old")
    await made.agent.stop()


def _token_hash(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()
