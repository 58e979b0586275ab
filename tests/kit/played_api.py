"""A hub with something of everything, and a request to each of its routes: the answers are golden."""

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from downburst.domain.access import LinkKind, hashed
from downburst.domain.alarms import AlarmKind, Condition
from downburst.domain.backlog import CatchUpChanged, FeedBacklog
from downburst.domain.circuits import CircuitState, CircuitUse, Direction, Measured
from downburst.domain.events import (
    ActionFailed,
    BacklogSeen,
    FeedTraffic,
    LdmSourceChanged,
    LegChanged,
    LegTraffic,
    RelaySeen,
    SessionChanged,
    SessionTraffic,
    SiteBacklog,
    SiteProgress,
    Streams,
    TrafficSeen,
    UpstreamChanged,
)
from downburst.domain.faults import Fault
from downburst.domain.feeds import TrafficMinute
from downburst.domain.latency import LatencyKind, SiteClock
from downburst.domain.ordering import DemandOrder, OrderStep, OrderTimes, OrderUse
from downburst.domain.plans import Candidate, LegCounters, Transport
from downburst.domain.probes import ProbeState
from downburst.domain.probes.results import DelaySpread, ProbeResult, ProbeSecond
from downburst.domain.readings import HostReading, LineReading, PriorityStanding
from downburst.domain.receipts import ProductException
from downburst.domain.relays import RelayedLeg, RelayReport, Segment, SiteWay, Tunnel
from downburst.domain.subscriptions import Subscription
from downburst.domain.tcp.path import TcpPath
from downburst.domain.tcp.profiles import AppliedProfile, ProfileState, TcpKnobs, TcpTrial, TrialStep
from downburst.domain.upstreams import Upstream
from downburst.foundation.clock import FakeClock, to_us
from downburst.ledger import Ledger, Transaction
from downburst_api.app import create_app
from downburst_api.runtime import Runtime
from downburst_circuits.service import CircuitService
from factories import (
    AUTHORIZATION,
    EPOCH,
    multicast,
    plan,
    runtime,
    settled,
    sketch_row,
    unicast,
)
from kit.probes import step
from kit.wis2.played import play_bridges, play_publishers

PRODUCT_STORED_US = 1_767_225_600_000_000


@dataclass
class Played:
    """The requests and answers, in order."""

    client: httpx.AsyncClient
    directory: Path
    answers: list[dict[str, Any]] = field(default_factory=list)

    async def ask(self, method: str, route: str, *, query: str = "", body: Any = None, **path: Any) -> Any:
        """Requests a route; `path` fills in its parts. Raw bodies are uploads."""
        url = route
        for name, value in path.items():
            url = url.replace(f"{{{name}:anytext}}", str(value)).replace(f"{{{name}}}", str(value))
        request = {"content": body} if isinstance(body, bytes) else {} if body is None else {"json": body}
        answer = await self.client.request(method, url + query, **request)
        assert answer.status_code < 300, f"{method} {url}: {answer.text}"
        text = answer.text.replace(str(self.directory), "/var/lib/downburst")
        headers = {name: answer.headers[name] for name in ("etag", "link") if name in answer.headers}
        self.answers.append(
            {"route": f"{method} {route}", "query": query, "status": answer.status_code, "text": text, **headers}
        )
        return answer.json() if text and "json" in answer.headers["content-type"] else None


async def played(
    directory: Path, ledger: Ledger, clock: FakeClock, patch: pytest.MonkeyPatch
) -> list[dict[str, Any]]:
    """Every answer of the hub, the same in every run."""
    numbers = iter(range(1, 1000))
    patch.setattr(secrets, "token_urlsafe", lambda _size: f"secret-{next(numbers)}")
    patch.setattr("uuid.uuid4", lambda: UUID(int=next(numbers), version=4))
    patch.setattr("kit.fake_node.time_ns", lambda: to_us(clock.now()) * 1000)
    made, node = runtime(directory, ledger, clock)
    await made.probes.look()
    transport = httpx.ASGITransport(create_app(made))
    async with httpx.AsyncClient(transport=transport, base_url="http://hub", headers=AUTHORIZATION) as client:
        play = Played(client, directory)
        await _configure(play)
        with ledger.transaction() as tx:
            _fill(tx, clock)
        _happen(made.live, clock)
        node.fake.ways["unl.edu"] = {"receipts": [_receipt()]}
        clock.advance(90)
        await _circuits(play, made, ledger, clock)
        await _ordering(play, ledger, clock)
        await _access(play, ledger)
        await play_bridges(play.ask, ledger, made.live, clock)
        await play_publishers(play.ask, made, node)
        await _look(play)
        await _measurements(play, clock)
        await _end(play)
    return play.answers


async def _configure(play: Played) -> None:
    ask = play.ask
    await ask(
        "POST", "/v1/feeds", body={"feed": "NGRID", "class": "grid", "retention_hours": 6, "objective_ms": 2_000}
    )
    await ask("PUT", "/v1/feeds/{feed}", feed="WARN", body={"class": "warning", "durability": "power"})
    await ask("PATCH", "/v1/feeds/{feed}", feed="WARN", body={"ldm_feed_type": "IDS|DDPLUS", "ldm_pattern": "^W"})
    await ask("POST", "/v1/sites", body=SITE)
    await ask("POST", "/v1/sites", body={"site": "cma.example", "multicast": False, "allow": ["WARN", "NGRID"]})
    await ask("POST", "/v1/sites", body={"site": "ldm.example", "ldm_host": r"^ldm\.example$"})
    await ask("PATCH", "/v1/sites/{site}", site="unl.edu", body={"data_connections": 4})
    await ask("PUT", "/v1/sites/{site}/endpoint", site="unl.edu", body={"contact": "night@unl.example"})
    subscription = {"feed": "NGRID", "pattern": "nam", "not_pattern": "test", "start": "2h", "max_age_s": 3600}
    await ask("POST", "/v1/sites/{site}/subscriptions", site="unl.edu", body=subscription)
    await ask("POST", "/v1/sites/{site}/subscriptions", site="unl.edu", body={"feed": "WARN", "in_order": True})
    await ask("POST", "/v1/sites/{site}/subscriptions", site="cma.example", body={"feed": "NGRID"})
    await ask("POST", "/v1/sites/{site}/subscriptions", site="ldm.example", body={"feed": "WARN"})
    await ask("POST", "/v1/sites/{site}/tokens", site="unl.edu", body={"hours": 24})
    resend = {"site": "unl.edu", "feed": "NGRID", "from": "3h", "to": "1h", "pattern": "nam"}
    await ask("POST", "/v1/resends", body=resend)
    for kind, given in (("knee", {}), ("cbr", {"rate_bps": 50_000_000, "direction": "in"})):
        await ask("POST", "/v1/probes", body={"site": "unl.edu", "kind": kind, **given})
    nightly = {"site": "unl.edu", "kind": "knee", "every_h": 24, "first_hour": 2, "end_hour": 5}
    await ask("POST", "/v1/probe-schedules", body=nightly)
    ceiling = {"rate_bps": 500_000_000, "bytes_per_day": 5_000_000_000}
    await ask("PUT", "/v1/sites/{site}/probe-ceiling", site="unl.edu", body=ceiling)
    siblings = {"address": "ldm.unl.edu:7380", "upload_bytes_per_second": 5_000_000}
    await ask("PUT", "/v1/sites/{site}/siblings", site="unl.edu", body=siblings)
    await ask("PUT", "/v1/sites/{site}/siblings", site="cma.example", body={})
    upload = "/v1/feeds/{feed}/products/{product_id:anytext}"
    for name in ("nam.t00z.grib2", "nam.t00z.grib2", "gfs.t00z.grib2"):
        await ask("PUT", upload, feed="NGRID", product_id=name, body=b"GRIB" * 500)
    source = {
        "source": "conduit",
        "feeds": "CONDUIT",
        "pattern": "[05]$",
        "upstreams": ["idd-a.example", "idd-b.example"],
    }
    await ask("POST", "/v1/ldm/sources", body=source)
    await ask("PUT", "/v1/ldm/sources/{source}", source="conduit", body=source | {"max_age_s": 600})
    await ask("POST", "/v1/ldm/accepts", body={"feeds": "EXP", "pattern": "^model", "host": r"^ldm\.example$"})
    upstream = {"upstream": "national", "address": "hub.example:7370", "token": f"dbt1.{'0a' * 32}.given"}
    await ask("POST", "/v1/upstreams", body=upstream | {"feeds": ["NGRID"]})
    knobs = {"congestion": "bbr", "send_buffer_bytes": 8_388_608, "pacing_bps": 50_000_000, "connections": 4}
    overseas = {"prefix": "192.0.2.0/24", "mode": "trial", "knobs": knobs}
    await ask("PUT", "/v1/tcp-profiles/{profile}", profile="overseas", body=overseas)
    await ask(
        "PUT", "/v1/tcp-profiles/{profile}", profile="campus", body={"prefix": "2001:db8::/32", "mode": "learn"}
    )
    behind = {"sites": ["unl.edu", "cma.example"], "feeds": ["NGRID"]}
    spliced = {"address": "relay.example:7379", "fan_out": "group"}
    await ask("PUT", "/v1/relays/{relay}", relay="lincoln", body=behind | spliced)
    await ask("PUT", "/v1/relays/{relay}", relay="spare", body={"address": "[2001:db8::9]:7379"})
    await ask("PUT", "/v1/feeds/{feed}/objectives/{site}", feed="NGRID", site="unl.edu", body={"objective_ms": 1500})
    await ask(
        "POST", "/v1/sites/{site}/silences", site="cma.example", body={"minutes": 120, "reason": "power is off"}
    )
    await ask("POST", "/v1/silences", body={"minutes": 60, "reason": "known", "kind": "silence", "feed": "NGRID"})
    receiver = {"receiver": "duty", "kind": "mail", "address": "duty@hub.example", "feeds": ["NGRID"]}
    await ask("POST", "/v1/alarm-receivers", body=receiver)
    await ask("POST", "/v1/alarm-receivers/{receiver}/test", receiver="duty")
    own = {"receiver": "us", "kind": "webhook", "address": "https://93.184.216.34/hook", "kinds": ["site-down"]}
    await ask("POST", "/v1/sites/{site}/alarm-receivers", site="unl.edu", body=own)
    await ask("POST", "/v1/sites/{site}/alarm-receivers/{receiver}/test", site="unl.edu", receiver="us")


def _fill(tx: Transaction, clock: FakeClock) -> None:
    now = clock.now()
    minute = to_us(now) // 60_000_000
    secret = hashed("a receiver's token")
    tx.enrolment.tokens.add("unl.edu", secret, lifetime=LIFETIME, credential_lifetime=LIFETIME)
    tx.enrolment.tokens.consume(secret, hashed("a receiver's credential"), peer="192.0.2.1")
    tx.planning.plans.append(plan("NGRID", unicast(1, "unl.edu", "cma.example"), reason="at first"))
    multi = plan("NGRID", multicast(2, "unl.edu"), replace(unicast(3, "cma.example"), circuits=(("cma.example", 1),)))
    figures: dict[str, Any] = {"predicted_over_measured": 0.9, "sites": 2, "flip": "at 3 sites", "would_be": None}
    figures |= {f"floor_{name}": 1.5 for name in ("p50_ms", "p95_ms", "p99_ms")}
    figures |= {"floor_slowest_site": "unl.edu", "floor_slowest_site_p50_ms": 2.5, "floor_deliveries": 12}
    judged = (
        Candidate(Transport.STATIC_CIRCUIT, feasible=False, reason="none is offered"),
        Candidate(Transport.MULTICAST, feasible=True, reason="cheapest", egress_bps=1e6, predicted_p99_ms=80.5),
    )
    tx.planning.plans.append(replace(multi, candidates=judged, figures=figures))
    tx.planning.plans.append(plan("WARN", unicast(4, "unl.edu"), reason="one site"))
    tx.planning.legs.count(
        [
            LegCounters("NGRID", 1, 1, Transport.UNICAST, 2, 20, 2000, 2100, 0, 50, 2000),
            LegCounters("NGRID", 2, 2, Transport.MULTICAST, 2, 10, 1000, 1100, 30, 50, 2000),
            LegCounters("NGRID", 2, 1, Transport.UNICAST, 2, 1, 100, 105, 0, 0, 100),
        ]
    )
    tx.measured.latency.add(
        sketch_row([10, 20, 30, 4000], minute=minute, site="unl.edu"),
        sketch_row([-5], minute=minute - 1, site="cma.example", transport=Transport.MULTICAST),
        sketch_row([99], minute=minute, site="unl.edu", kind=LatencyKind.END_TO_END),
    )
    tx.measured.traffic.add([TrafficMinute("NGRID", minute - at, 10, 3_000, 100) for at in (0, 1, 59, 60)])
    tx.measured.settled.advance(settled(7, stored=6, site="unl.edu"), at=now)
    tx.measured.exceptions.add(
        ProductException("NGRID", EPOCH, 2, "unl.edu", "expired", now),
        ProductException("NGRID", EPOCH, 9, "cma.example", "rejected", now),
    )
    tx.measured.faults.add(Fault(now, "the log of NGRID was cut short", "NGRID", None, "look"))
    tx.alerting.alarms.raise_(Condition(AlarmKind.OBJECTIVE, "late", "look", "NGRID", "unl.edu"))
    tx.alerting.alarms.raise_(Condition(AlarmKind.SILENCE, "silent", "ask", "NGRID"))
    ended = tx.alerting.alarms.raise_(Condition(AlarmKind.CLOCK, "its clock is wrong", "set it", site="cma.example"))
    tx.alerting.alarms.end([ended], now)
    bbr, cubic = TcpKnobs("bbr", 8_388_608, None, 50_000_000, 4), TcpKnobs("cubic", receive_buffer_bytes=4_194_304)
    reason = "the canaries carried 1.6 times the rate of the others in two windows"
    sent = TcpTrial("overseas", TrialStep.KEPT, bbr, TcpKnobs(), 1, 3, 24_000_000, 15_000_000, 2, reason, now)
    tx.fleet.tcp_profiles.tried(sent)
    tx.fleet.tcp_profiles.tried(replace(sent, profile="campus", knobs=cubic, sender="east"))
    tx.fleet.ways.put(SiteWay("unl.edu", ("lincoln",), "13 times the direct rate", 10**9, 75_000_000, 950_000_000))
    tx.fleet.relay_log.add("lincoln", [replace(TUNNEL, seconds=3_600.0), replace(TUNNEL, ended=True)])
    probes = tx.measured.probing.probes
    rates = (step(400_000_000), step(600_000_000), step(800_000_000, lost=110))
    swept = replace(probes.one(1), state=ProbeState.DONE, started_at=now, ended_at=now, attempts=1)
    known = {"hub_software": "1.0", "feeds_bps": 2_000_000.0, "plans": [], "chain": ["lincoln"]}
    result = ProbeResult(rates, 120, 600_000_000.0, None, 3)
    probes.save(replace(swept, circumstances=known, result=result), sent_bytes=225_000_000)
    probes.add_seconds(2, [ProbeSecond(0, 10, 9, 1, 0, 0, 12_000, DelaySpread(10, 20, 30, 40), 1.5, 900)])
    tx.fleet.upstreams.add(Upstream("spare", "spare.example:7370", f"dbt1.{'0b' * 32}.given"))
    tx.subscriptions.add(Subscription(0, "cma.example", "WARN"))


def _happen(live: Any, clock: FakeClock) -> None:
    now, at_us = clock.now(), to_us(clock.now())
    live.apply(
        SessionChanged("unl.edu", "connected", now, "192.0.2.1:5", software="downburst-node 0.1.0", renews=True)
    )
    live.apply(SessionChanged("lincoln", "connected", now, "192.0.2.3:5", software="downburst-node 0.1.0"))
    legs = (RelayedLeg(2, 1_200, 1_500_000, 3),)
    live.apply(RelaySeen(now, RelayReport("lincoln", (TUNNEL, replace(TUNNEL, site=None)), legs, 1)))
    live.apply(SessionChanged("cma.example", "closed", now, "192.0.2.2:5", reason="the site ended"))
    failed = ActionFailed("pqact.conf:3", 1, "no such file", "nam.grib2", 7)
    progress = (
        SiteProgress(
            *("NGRID", 7, 2, Transport.MULTICAST, 2, "no space left", 3, failed, at_us, at_us - 9_000_000, 5),
            reading=HostReading(
                2, 17, 16_777_216, 425_984, 5_000_000, 212_992, 20, PriorityStanding.REAL_TIME, line=LINE
            ),
        ),
        SiteProgress("WARN", 0, 0, Transport.UNICAST, 4),
    )
    path = TcpPath(70_000, 10_000, 50, 24_000_000, is_lower_bound=True, congestion="cubic", path_mtu_bytes=1_400)
    applied = AppliedProfile("overseas", ProfileState.CANARY, TcpKnobs("bbr", connections=4))
    streams = Streams(open=3, planned=4, reason="it helps")
    own_clock = SiteClock(synchronised=True, error_us=1_250, estimated_error_us=90, daemon="chrony")
    for second, size in enumerate((1000, 0, 0, 3000)):
        begin = at_us + second * 1_000_000
        feed, leg = FeedTraffic("NGRID", 1, size, (size,), 9), LegTraffic(2, "NGRID", 2000, 0, 1, size, 2, 0)
        session = SessionTraffic("unl.edu", 1500, 250, 500, progress, streams, path, applied, own_clock)
        live.apply(TrafficSeen(begin, begin + 1_000_000, (feed,), (leg,), (session,), 0))
    lacking = (
        FeedBacklog("NGRID", True, 4_000, 1_000_000, at_us - 720_000_000, 17, 5_000),
        FeedBacklog("OTHER", False),
    )
    live.apply(BacklogSeen((SiteBacklog("cma.example", lacking),)))
    live.apply(LegChanged("NGRID", 2, "unl.edu", "joined", now))
    live.apply(LegChanged("NGRID", 2, "cma.example", "never-heard", now, reason="no querier"))
    live.apply(_catch_up(now))
    live.apply(UpstreamChanged("national", "connected", now, hub="National Hub"))
    live.apply(LdmSourceChanged("conduit", "idd-a.example", "connected", now, mode="primary"))
    live.reported(
        "20160929125247 20160929125248              ingest1.local.irads NEXRAD2 rpga1_v_140.172.24.16          187"
        "     22151151 0.596241       1.16   11@0022                6.8.1\n"
    )


def _catch_up(now: datetime) -> CatchUpChanged:
    sites, sentence = ("cma.example", "unl.edu"), "2 sites caught up on feed NGRID by one stream of 31.0 MB"
    return CatchUpChanged(
        "NGRID", 2**30 + 2, 2, "ended", now, sites, 3, 9, 60_000_000, 31_000_000, 29_000_000, sentence
    )


async def _life(play: Played, active: int) -> None:
    """A hold and its commit, a path by hand, and an override."""
    wanted = {"sites": [{"site": "unl.edu"}], "rate_out_bps": 10_000_000, "begin": "+3h", "end": "+1h"}
    held = await play.ask("POST", "/v1/circuits", body=wanted | {"hold_s": 120, "request_id": "held"})
    await play.ask("POST", "/v1/circuits/{circuit}/commit", circuit=held["circuit"])
    await play.ask("DELETE", "/v1/circuits/{circuit}", circuit=held["circuit"])
    reason = {"state": "active", "reason": "its probe is known to be wrong"}
    await play.ask("POST", "/v1/circuits/{circuit}/override", circuit=active, body=reason)
    await play.ask("POST", "/v1/circuits/{circuit}/override", circuit=active, body={"state": None})
    await play.ask("POST", "/v1/circuits/{circuit}/tear-down-path", query="?dry_run=true", circuit=active)
    await play.ask("POST", "/v1/circuits/{circuit}/create-path", query="?dry_run=true", circuit=active)


async def _circuits(play: Played, made: Runtime, ledger: Ledger, clock: FakeClock) -> None:
    port = {"port": "hub-eth0", "rate_bps": 1_000_000_000, "interface": "eth0", "underlay": "192.0.2.1"}
    tags = {"first_vlan": 100, "last_vlan": 199}
    far = {
        "port": "unl-eth1",
        "rate_bps": 1_000_000_000,
        "interface": "eth1",
        "underlay": "192.0.2.9",
        "site": "unl.edu",
    }
    await play.ask("POST", "/v1/ports", body=port | tags)
    await play.ask("POST", "/v1/ports", body=far | tags)
    await play.ask("PATCH", "/v1/ports/{port}", port="hub-eth0", body={"port_rate_bps": 10_000_000_000})
    await play.ask("PUT", "/v1/topology", body=TOPOLOGY)
    wanted = {
        "sites": [{"site": "unl.edu"}],
        "rate_out_bps": 300_000_000,
        "begin": "now",
        "end": "+2h",
        "request_id": "a",
    }
    first = await play.ask("POST", "/v1/circuits", body=wanted)
    number = first["circuit"]
    await play.ask("PATCH", "/v1/circuits/{circuit}", circuit=number, body={"rate_out_bps": 200_000_000})
    clone = {"begin": "+3h", "request_id": "b"}
    again = await play.ask("POST", "/v1/circuits/{circuit}/clone", circuit=number, body=clone)
    await play.ask("DELETE", "/v1/circuits/{circuit}", circuit=again["circuit"])
    await _leaves(play, far | tags)
    row = Measured(
        number, "unl.edu", Direction.OUT, clock.now(), 150_000_000, 200_000_000, 0.25, 900, "policer", "why"
    )
    with ledger.transaction() as tx:
        slow = replace(tx.circuits.one(number), state=CircuitState.DEGRADED, reason="it is slow")
        tx.circuits.save(slow)
        tx.circuits.measured([row])
    assert isinstance(made.circuits, CircuitService)
    made.circuits._register.open[number] = slow
    made.live.apply(TrafficSeen(0, 1_000_000, (), (), (), 0, (CircuitUse(number, "unl.edu", 12_500_000, 1_000),)))
    await play.ask("POST", "/v1/circuits/{circuit}/measure", circuit=number)
    await _life(play, number)
    await play.ask("GET", "/v1/topology")
    await play.ask("GET", "/v1/calendar", query="?end=%2B1d")
    await play.ask("GET", "/v1/calendar/circuits/{circuit}", circuit=number)
    window = {"to": "unl.edu", "rate_out_bps": 900_000_000, "minutes": 45}
    await play.ask("POST", "/v1/topology/window", body=window)
    await play.ask("POST", "/v1/topology/window", body=window | {"last": "+1m"})
    await play.ask("POST", "/v1/topology/rate", body={"to": "unl-eth1", "end": "+1h"})


async def _leaves(play: Played, port: dict[str, Any]) -> None:
    for site in ("cma.example", "lincoln"):
        await play.ask("POST", "/v1/ports", body=port | {"port": f"{site}-eth1", "site": site})
    sites = [{"site": "unl.edu"}, {"site": "cma.example"}]
    wanted = {"sites": sites, "rate_out_bps": 50_000_000, "begin": "+8h", "end": "+1h", "request_id": "c"}
    number = (await play.ask("POST", "/v1/circuits", body=wanted))["circuit"]
    leaf = {"site": "lincoln", "first_vlan": 100, "last_vlan": 149}
    await play.ask("POST", "/v1/circuits/{circuit}/leaves", circuit=number, body=leaf)
    await play.ask("DELETE", "/v1/circuits/{circuit}/leaves/{site}", circuit=number, site="cma.example")
    await play.ask("DELETE", "/v1/circuits/{circuit}", circuit=number)
    test = {"far": {"site": "lincoln"}, "rate_out_bps": 500_000_000, "seconds": 30}
    booked = await play.ask("POST", "/v1/test-bookings", body=test)
    await play.ask("POST", "/v1/test-bookings", body=test | {"rate_out_bps": 600_000_000})
    await play.ask("DELETE", "/v1/test-bookings/{number}", number=booked["booking"]["number"])
    await play.ask("GET", "/v1/test-bookings")
    for site in ("cma.example", "lincoln"):
        await play.ask("DELETE", "/v1/ports/{port}", port=f"{site}-eth1")


async def _ordering(play: Played, ledger: Ledger, clock: FakeClock) -> None:
    for provider in ("surf", "spare"):
        await play.ask("PUT", "/v1/circuit-providers/{provider}", provider=provider, body=NSI_PROVIDER)
    for offer, provider in (("campus", "linux"), ("overseas", "surf"), ("spare", "linux")):
        body = OFFER | {"provider": provider}
        await play.ask("PUT", "/v1/circuit-offers/{offer}", offer=offer, body=body)
    now = clock.now()
    times = OrderTimes(now - timedelta(seconds=40), now, now - timedelta(seconds=38), now, now)
    first = DemandOrder(0, "campus", "NGRID", "unl.edu", 100_000_000, "a burst is due", times)
    with ledger.transaction() as tx:
        use = OrderUse(0.25, 120, 350.5)
        tx.planning.orders.add(replace(first, step=OrderStep.ENDED, circuit=1, outcome="120 products", use=use))
        fresh = replace(first, times=OrderTimes(now, now + timedelta(minutes=5)), feed="WARN")
        tx.planning.orders.add(fresh)
        tx.planning.orders.add(replace(fresh, step=OrderStep.REFUSED, outcome="the port has no rate left"))


async def _access(play: Played, ledger: Ledger) -> None:
    ask = play.ask
    await ask("POST", "/v1/users", body={"user": "ben", "role": "site", "site": "unl.edu"})
    await ask("POST", "/v1/users/{user}/invitations", user="ben")
    await ask("PATCH", "/v1/users/{user}", user="ben", body={"role": "operator", "site": None})
    token = {"name": "prometheus", "role": "viewer", "scopes": ["metrics"], "days": 365}
    await ask("POST", "/v1/access-tokens", body=token)
    wanted = {"site": "new.example", "organisation": "New", "contact": "new@new.example", "feeds": ["NGRID"]}
    first = await ask("POST", "/v1/access-requests", body=wanted)
    second = await ask("POST", "/v1/access-requests", body=wanted | {"site": "other.example"})
    await ask("POST", "/v1/access-requests/{number}/approval", number=first["number"], body={"answer": "welcome"})
    await ask("POST", "/v1/access-requests/{number}/refusal", number=second["number"], body={"answer": "no"})
    await ask("POST", "/v1/access-requests", body=wanted | {"site": "third.example"})
    await ask("POST", "/v1/access-requests/state", body={"secret": first["secret"]})
    await ask("POST", "/v1/session/links")
    with ledger.transaction() as tx:
        tx.access.links.add(hashed("the-link"), LinkKind.FIRST, lifetime=LIFETIME, user=None)
    long = "a long sentence is easy to keep"
    await ask("POST", "/v1/session/link", body={"link": "the-link", "user": "anna", "password": long})
    play.client.cookies.clear()
    begun = await ask("POST", "/v1/session", body={"user": "anna", "password": long, "bearer": True})
    play.client.headers["authorization"] = f"Bearer {begun['session']}"
    await ask("PUT", "/v1/session/password", body={"old": long, "new": "another long sentence of mine"})
    play.client.headers["authorization"] = AUTHORIZATION["Authorization"]
    await ask("GET", "/v1/session")
    await ask("GET", "/v1/session/ways")
    await ask("DELETE", "/v1/session")


async def _look(play: Played) -> None:
    ask = play.ask
    for route in LISTS:
        await ask("GET", route)
        if route in PAGED:
            await ask("GET", route, query="?limit=1")
    for query in ("?ended=true", "?site=unl.edu"):
        await ask("GET", "/v1/alarms", query=query)
    for site in ("unl.edu", "cma.example", "ldm.example"):
        for route in ("", "/path", "/tracer", "/silences", "/alarm-receivers", "/subscriptions"):
            await ask("GET", "/v1/sites/{site}" + route, site=site)
    await ask("GET", "/v1/now/strip", query="?hours=1&limit=1")
    await ask("GET", "/v1/now/history", query="?hours=1")
    await ask("GET", "/v1/now/incidents", query="?site=unl.edu")
    for route in ("/v1/latency/history", "/v1/latency/histogram", "/v1/volume/history"):
        await ask("GET", route, query="?feed=NGRID")
    await ask("GET", "/v1/latency/histogram", query="?feed=WARN")
    await ask("GET", "/v1/latency/heat", query="?feed=NGRID&minutes=60")
    await ask("GET", "/v1/latency/history", query="?feed=NGRID&format=csv")
    await ask("GET", "/v1/volume", query="?format=csv")
    await ask("GET", "/v1/feeds/{feed}", feed="NGRID")
    await ask("GET", "/v1/feeds/{feed}/plans", feed="NGRID")
    await ask("GET", "/v1/feeds/{feed}/outcomes", feed="NGRID")
    await ask("GET", "/v1/feeds/{feed}/catch-ups", feed="NGRID")
    for query in ("", "?site=unl.edu&limit=1", "?format=csv"):
        await ask("GET", "/v1/feeds/{feed}/seconds", feed="NGRID", query=query)
    await ask("GET", "/v1/feeds/{feed}/distribution", feed="NGRID")
    await ask("POST", "/v1/feeds/{feed}/pattern-test", feed="NGRID", body={"pattern": "nam"})
    await ask("POST", "/v1/feeds/{feed}/what-if", feed="NGRID", body={"sites": 104})
    await ask("PUT", "/v1/feeds/{feed}/pin", feed="NGRID", body={"transport": "unicast"})
    await ask("GET", "/v1/plans")
    await ask("GET", "/v1/products", query="?feed=NGRID&limit=1")
    await ask("GET", "/v1/products/trace", query="?product=nam.t00z.grib2")
    await ask("GET", "/v1/products/trace", query="?product=gfs.t00z.grib2")
    await ask("GET", "/v1/resends/{resend}", resend=1)
    await ask("GET", "/v1/probes", query="?site=unl.edu&kind=knee&since=1d")
    await ask("GET", "/v1/probes", query="?format=csv")
    await ask("GET", "/v1/probes/{probe}", probe=1)
    await ask("GET", "/v1/probes/{probe}/seconds", probe=2)
    await ask("GET", "/v1/probes/{probe}/seconds", probe=2, query="?format=csv")
    await ask("GET", "/v1/probe-schedules", query="?site=unl.edu")
    await ask("GET", "/v1/sites/{site}/probe-ceiling", site="unl.edu")
    await ask("GET", "/v1/siblings")
    await ask("GET", "/v1/sites/{site}/siblings", site="unl.edu")
    await ask("GET", "/v1/tcp-profiles/{profile}", profile="campus")
    await ask("GET", "/v1/relays/{relay}", relay="lincoln")
    await ask("GET", "/v1/relays/{relay}/log", relay="lincoln", query="?limit=1")
    await ask("GET", "/v1/relays/{relay}/log", relay="lincoln")
    await ask("GET", "/v1/sites/{site}", site="lincoln")
    await ask("GET", "/v1/ports/{port}", port="hub-eth0")
    await ask("GET", "/v1/circuits", query="?finished=true")
    await ask("GET", "/v1/circuits/{circuit}", circuit=1)
    await ask("GET", "/v1/circuit-offers/{offer}", offer="campus")
    await ask("GET", "/v1/circuit-providers/{provider}", provider="surf")
    await ask("GET", "/v1/circuit-orders", query="?offer=campus&site=unl.edu&limit=1")
    await ask("GET", "/v1/circuit-orders/{number}", number=1)
    await ask("GET", "/v1/users/{user}", user="anna")


async def _measurements(play: Played, clock: FakeClock) -> None:
    ask = play.ask
    point = {"point": "unl", "addresses": ["ps.unl.edu", "192.0.2.7"], "site": "unl.edu"}
    token = (await ask("POST", "/v1/test-points", body=point))["token"]
    body = json.loads((GOLDEN / "pscheduler" / "latency.json").read_text())
    body["schedule"]["start"] = clock.now().isoformat()
    await ask("POST", "/v1/measurements/archive/{token}", token=token, body=body)
    failed = body | {"id": "2", "result": {"succeeded": False, "error": "no route"}}
    await ask("PUT", "/v1/measurements/archive/{token}", token=token, body=failed)
    await ask("GET", "/v1/test-points")
    await ask("GET", "/v1/measurements")
    await ask("GET", "/v1/sites/{site}/measurements", site="unl.edu")
    await ask("DELETE", "/v1/test-points/{point}", point="unl")


async def _end(play: Played) -> None:
    ask = play.ask
    await ask("DELETE", "/v1/sites/{site}/siblings", site="cma.example")
    await ask("DELETE", "/v1/resends/{resend}", resend=1)
    await ask("DELETE", "/v1/probes/{probe}", probe=2)
    await ask("DELETE", "/v1/probe-schedules/{number}", number=1)
    await ask("DELETE", "/v1/feeds/{feed}/pin", feed="NGRID")
    await ask("DELETE", "/v1/feeds/{feed}/objectives/{site}", feed="NGRID", site="unl.edu")
    await ask("DELETE", "/v1/sites/{site}/alarm-receivers/{receiver}", site="unl.edu", receiver="us")
    await ask("DELETE", "/v1/alarm-receivers/{receiver}", receiver="duty")
    await ask("DELETE", "/v1/sites/{site}/silences/{number}", site="cma.example", number=1)
    await ask("DELETE", "/v1/silences/{number}", number=2)
    await ask("POST", "/v1/sites/{site}/credentials/replacement", site="unl.edu")
    await ask("DELETE", "/v1/sites/{site}/credentials", site="unl.edu")
    await ask("DELETE", "/v1/sites/{site}/tokens", site="unl.edu")
    await ask("DELETE", "/v1/sites/{site}/subscriptions/{subscription}", site="unl.edu", subscription=1)
    await ask("DELETE", "/v1/subscriptions/{subscription}", subscription=2)
    await ask("DELETE", "/v1/upstreams/{upstream}", upstream="national")
    await ask("DELETE", "/v1/tcp-profiles/{profile}", profile="campus")
    await ask("DELETE", "/v1/relays/{relay}", relay="spare")
    await ask("DELETE", "/v1/ldm/sources/{source}", source="conduit")
    await ask("DELETE", "/v1/ldm/accepts/{number}", number=1)
    await ask("DELETE", "/v1/access-tokens/{number}", number=1)
    await ask("DELETE", "/v1/users/{user}", user="ben")
    await ask("DELETE", "/v1/circuits/{circuit}", circuit=1)
    await ask("POST", "/v1/ports", body={"port": "spare", "rate_bps": 1_000_000})
    await ask("DELETE", "/v1/ports/{port}", port="spare")
    await ask("DELETE", "/v1/circuit-offers/{offer}", offer="spare")
    await ask("DELETE", "/v1/circuit-providers/{provider}", provider="spare")
    await ask("DELETE", "/v1/sites/{site}", site="ldm.example")
    await ask("DELETE", "/v1/feeds/{feed}", feed="WARN")
    await ask("GET", "/v1/audit", query="?limit=30")


def routes_of(answers: list[dict[str, Any]]) -> Iterator[str]:
    """The requested routes."""
    return (answer["route"] for answer in answers)


def shown(answer: dict[str, Any]) -> Any:
    """The body as JSON, or its text."""
    try:
        return json.loads(answer["text"])
    except ValueError:
        return answer["text"]


SITE = {
    "site": "unl.edu",
    "organisation": "University of Nebraska",
    "contact": "weather@unl.example",
    "place": {"text": "Lincoln", "latitude": 40.8, "longitude": -96.7},
    "circuit_attachment": {"port": "urn:ogf:unl", "first_vlan": 100, "last_vlan": 110},
    "access_rate_bps": 1e9,
    "ceiling_mbps_by_hour": [100.0] * 24,
    "limits": [{"feed": "NGRID", "pattern": "nam|gfs", "not_pattern": None}],
}
OFFER = {
    "hub_port": "hub-eth0",
    "ports": ["unl-eth1"],
    "rates_bps": [100_000_000, 500_000_000],
    "setup_s": 1,
    "circuit_hours_a_day": 8,
    "orders_a_day": 200,
}
NSI_PROVIDER = {
    "url": "https://nsi.example/soap/connection/provider",
    "provider_nsa": "urn:ogf:network:nsi.example:2026:nsa:supa",
    "requester_nsa": "urn:ogf:network:hub.example:2026:nsa:downburst",
    "dialect": "p2ps",
    "certificate": "/etc/downburst/nsi/hub.pem",
    "key": "/etc/downburst/nsi/hub.key",
    "authorities": "/etc/downburst/nsi/authorities.pem",
}
TUNNEL = Tunnel(
    "unl.edu",
    "192.0.2.1:5",
    "192.0.2.3:9",
    "hub.example:7370",
    62.5,
    7_500_000_000,
    40_000,
    960_000_000,
    Segment(2_000, 1_000, "cubic", 980_000_000),
    Segment(70_000, None, "bbr", 960_000_000),
)
LISTS = (
    *("/livez", "/readyz", "/healthz", "/v1/status", "/v1/overview", "/v1/now/incidents"),
    *("/v1/totals", "/v1/tree", "/v1/volume"),
    *("/v1/feeds", "/v1/plans", "/v1/sites", "/v1/subscriptions", "/v1/resends", "/v1/upstreams", "/v1/latency"),
    *("/v1/ldm/sources", "/v1/ldm/accepts", "/v1/ldm/peers", "/v1/ldm/reports", "/v1/objectives", "/v1/alarms"),
    *("/v1/silences", "/v1/alarm-receivers", "/v1/site-alarm-receivers", "/v1/ports", "/v1/circuits"),
    *("/v1/circuit-offers", "/v1/circuit-providers", "/v1/circuit-orders"),
    *("/v1/tcp-profiles", "/v1/relays"),
    *("/v1/users", "/v1/access-tokens", "/v1/access-requests", "/v1/audit", "/v1/deliveries"),
)
GOLDEN = Path(__file__).parents[1] / "golden"
PAGED = ("/v1/feeds", "/v1/sites", "/v1/subscriptions", "/v1/latency", "/v1/deliveries", "/v1/audit")
LIFETIME = timedelta(days=30)


def _receipt() -> dict[str, Any]:
    stored_us = PRODUCT_STORED_US + 9_000_000
    return {
        "outcome": "stored",
        "lane": "live",
        "transport": "unicast",
        "leg": 1,
        "repaired": False,
        "first_byte_us": stored_us - 4000,
        "last_byte_us": stored_us - 1000,
        "site_stored_us": stored_us,
        "action_done_us": None,
        "clock_offset_us": 0,
        "clock_bound_us": 200,
        "sent_before": [{"feed": "HDS", "products": 2, "bytes": 48_000_000}],
    }


LINE = LineReading(4_000_000, 40_000_000, 3_300, 2_970, 7)

TOPOLOGY: dict[str, Any] = {
    "domains": [{"name": "campus", "description": "our own"}],
    "switches": [{"name": "chic", "domain": "campus", "ports": ["chic-1", "chic-2"], "translates": True}],
    "links": [
        {
            "name": "up",
            "a": "hub-eth0",
            "z": "chic-1",
            "az_bps": 1_000_000_000,
            "za_bps": 1_000_000_000,
            "tags": {"kind": "vlan", "first": 100, "last": 149},
        },
        {"name": "unl", "a": "chic-2", "z": "unl-eth1", "az_bps": 1_000_000_000, "za_bps": 500_000_000, "cost": 3},
    ],
    "hosts": [{"name": "hub-1", "ports": ["hub-eth0"], "nic_bps": 10_000_000_000}],
    "maintenance": [
        {
            "name": "fibre-work",
            "of": ["unl"],
            "begin": "2027-03-01T06:00:00+00:00",
            "end": "2027-03-01T08:00:00+00:00",
            "reason": "a new amplifier",
        }
    ],
}
