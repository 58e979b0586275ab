"""The lines between agent and node: `tests/golden/node-lines.json` has one of each kind, with every field.

The agent's builders make exactly its jobs, and its parsers read every field of its events. The crate `node` holds
the other half (lines/golden.rs): it reads every field of the jobs, and its events are exactly these. A field that one
side renames, adds or reads as another type fails on that side.

    cd tests && ../.venv/bin/python -m unit.worker.test_lines_of_both_sides     # writes the jobs after a change
"""

import copy
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from downburst.deliveries import ProductName
from downburst.deliveries.browsing import Browse
from downburst.deliveries.naming import Meaning
from downburst.domain.bridges import OriginLogin, WantedProduct
from downburst.domain.circuits import (
    Circuit,
    CircuitCarriage,
    CircuitEnd,
    CircuitRequest,
    Lease,
    Port,
    Replication,
    Transit,
    WireTag,
)
from downburst.domain.credentials import Credential
from downburst.domain.feeds import Feed
from downburst.domain.ordering.signs import SilencesWatched
from downburst.domain.products import Product
from downburst.domain.receipts import LogHead, Settled
from downburst.domain.relays import FanOut, Relay, SiteWay
from downburst.domain.relays.siblings import SiblingExchange
from downburst.domain.resends import Resend
from downburst.domain.sites import Site
from downburst.domain.subscriptions import IdFilter, Limit, Subscription
from downburst.domain.tcp.profiles import ProfileMode, TcpKnobs, TcpProfile
from downburst.domain.upstreams import LdmAccept, LdmSource, Upstream
from downburst.foundation.bounds import SetAside
from downburst.live.traced import COUNTERS, TracerQuestion
from downburst.settings.ldm import LdmSettings
from downburst.settings.multicast import CatchUpSettings, MulticastSettings
from downburst_worker.messages import lines
from downburst_worker.messages.backlog_lines import backlog_seen, with_positions
from downburst_worker.messages.catch_up_lines import catch_up_changed
from downburst_worker.messages.circuit_lines import circuit_told, lease_line
from downburst_worker.messages.delivery_lines import browse_job, deliveries_job
from downburst_worker.messages.fetch_lines import fetch_job
from downburst_worker.messages.relay_lines import relay_seen, with_ways
from downburst_worker.messages.sibling_lines import saved, with_siblings
from downburst_worker.messages.silence_lines import feed_silent, feed_stirred, silences_job
from downburst_worker.messages.tcp_lines import tcp_profiles_job, tcp_trial
from downburst_worker.messages.tracer_lines import tracer_job
from factories import EPOCH, FAR, SOME_TIME, multicast, plan, unicast

FILE = Path(__file__).parents[2] / "golden/node-lines.json"
GOLDEN: dict[str, Any] = json.loads(FILE.read_text())
Line = dict[str, Any]


def jobs() -> dict[str, Line]:
    """A job of each kind, with everything that it may hold."""
    feed = Feed("NGRID", unicast_leg=1, ldm_feed_type="NGRID", ldm_pattern="^Y", deadline_ms=500)
    site = Site(
        "unl.edu",
        multicast_interface="eth1",
        access_rate_bps=1e9,
        ceiling_mbps_by_hour=(100.0,) * 24,
        allow=("NGRID",),
        limits=(Limit("NGRID", "nam", "test"),),
        data_connections=4,
        created_at=SOME_TIME,
        ldm_host="^ldm",
    )
    credential = Credential("c" * 64, "unl.edu", SOME_TIME, "192.0.2.1", FAR, replaces="b" * 64)
    wish = Subscription(1, "unl.edu", "NGRID", "nam", "test", in_order=True, max_age_s=60.0)
    resend = Resend(3, "unl.edu", "NGRID", SOME_TIME, FAR, had=(IdFilter("gfs", "test"),))
    relays = [Relay("campus", "relay.campus.edu:7379")]
    sites = with_ways(
        lines.sites_job([site], [credential], [wish], [resend]), [SiteWay("unl.edu", ("campus",), "faster")], relays
    )
    exchange = SiblingExchange("unl.edu", "ldm.unl.edu:7380", 10_000_000, 50_000_000_000)
    sites = with_siblings(sites, [exchange])
    legs = (
        unicast(1, "unl.edu"),
        replace(unicast(3, "isu.edu"), circuits=(("isu.edu", 2),)),
        replace(multicast(2, "iem.edu"), relay="campus", fan_out=FanOut.UNICAST),
    )
    hears = replace(multicast(4, "iem.edu"), circuits=(("iem.edu", 1),))
    settings = MulticastSettings(burst_bytes=60_000, repair_s=30, catch_up=CatchUpSettings(streams=2))
    name = ProductName(Meaning.SEQUENCE, feed="NGRID", epoch=EPOCH, sequence=7, product_id=None, digest=None)
    ends = (
        CircuitEnd("eth0", None, vlan=100, address="10.0.0.1/30"),
        CircuitEnd("eth1", "unl.edu", vlan=100, address="10.0.0.2/30"),
    )
    circuit = Circuit(
        *(1, CircuitRequest("request"), ends, 300_000_000, 1_000_000, SOME_TIME, FAR),
        carriage=CircuitCarriage(replication=Replication.UNDERLAY, group="239.77.0.9", burst_bytes=60_000),
    )
    ports = (
        Port("eth0", 10**9, interface="eth0", underlay="192.0.2.1", port_rate_bps=10**9),
        Port("eth1", 10**9, interface="eth1", underlay="192.0.2.9"),
    )
    between = Port("eth2", 10**9, "relay.edu", "eth2", "192.0.2.5", port_rate_bps=10**9)
    hops = WireTag(vni=3021, via="192.0.2.5"), WireTag(vlan=3123)
    transits = (Transit(between, WireTag(vni=3021, via="192.0.2.1"), hops[1]),)
    browse = Browse(
        "NGRID",
        SOME_TIME,
        FAR,
        pattern="nam",
        not_pattern="test",
        contains="t00z",
        before=9,
        limits=(Limit("NGRID", "nam", "x"),),
    )
    bbr = TcpKnobs("bbr", 4_096, 2**30, 8_000, 4)
    return {
        "feeds": lines.feeds_job([feed], [LogHead("NGRID", EPOCH, 9)]),
        "sites": with_positions(sites, [Settled("NGRID", EPOCH, "unl.edu", 7)]),
        "upstreams": lines.upstreams_job([Upstream("national", "hub.example:7370", "dbt1.token", ("NGRID",))]),
        "ldm": lines.ldm_job(
            [LdmSource("idd", "CONDUIT", ("idd.example",), "[05]$", 600)],
            [LdmAccept(1, "EXP", "^x", "^ldm")],
            LdmSettings(listen=("127.0.0.1:388",), rtstats="collector.example:388"),
        ),
        "plan": lines.plan_job(plan("NGRID", *legs, hears), settings),
        "ingest": lines.ingest_job(
            "/spool/1", Product("NGRID", "nam", SOME_TIME, "origin"), digest="d" * 64, remove=True
        ),
        "fetch": fetch_job(
            [
                WantedProduct(
                    "https://cache.example/1",
                    Product("NGRID", "nam", SOME_TIME, "de-dwd", b'{"source":"wis2"}'),
                    size_bytes=3,
                    digest=("sha3-256", "e" * 64),
                    may_ask_private=True,
                    login=OriginLogin("cache.example", "unl", "sesame"),
                )
            ]
        ),
        "deliveries": deliveries_job(name, feed="NGRID", before=9, limit=5, site="unl.edu"),
        "browse": browse_job(browse),
        "tracer": tracer_job(TracerQuestion("unl.edu", SOME_TIME, FAR, 100, ("rtt",))),
        "tcp-profiles": tcp_profiles_job([TcpProfile("overseas", "192.0.2.0/24", ProfileMode.TRIAL, bbr, bbr)]),
        "silences": silences_job(SilencesWatched((("NGRID", 60_000_000),))),
        "circuit-up": {"circuit": lease_line(Lease(circuit, ports, hops, transits))},
    }


def read(kind: str, line: Line) -> None:
    """Passes an event to the agent's parser; raises if the parser cannot read it."""
    aside: list[SetAside] = []
    PARSERS[kind](line, aside)
    if aside:
        raise ValueError(aside[0].sentence)


PARSERS: dict[str, Callable[[Line, list[SetAside]], object]] = {
    "session": lambda line, _: lines.session_changed(line),
    "leg": lambda line, _: lines.leg_changed(line),
    "catch-up": lambda line, _: catch_up_changed(line),
    "upstream": lambda line, _: lines.upstream_changed(line),
    "ldm-source": lambda line, _: lines.ldm_source_changed(line),
    "ldm-peer": lambda line, _: lines.ldm_peer_changed(line),
    "resend": lambda line, _: lines.resend_ended(line),
    "fault": lambda line, _: lines.told_fault(line),
    "stirred": lambda line, _: feed_stirred(line),
    "silent": lambda line, _: feed_silent(line),
    "circuit": lambda line, _: circuit_told(line),
    "traffic": lambda line, aside: lines.traffic_seen(line, {}, aside),
    "backlog": backlog_seen,
    "batch": lambda line, _: lines.batch_ready(line),
    "tcp-trial": lambda line, _: tcp_trial(line, at=SOME_TIME),
    "relay": lambda line, aside: relay_seen(line, aside, at=SOME_TIME),
    "siblings": saved,
}


def test_the_agent_makes_these_jobs() -> None:
    assert json.loads(json.dumps(jobs())) == GOLDEN["jobs"]


@pytest.mark.parametrize("kind", PARSERS)
def test_the_agent_reads_every_field_of_an_event(kind: str) -> None:
    line = GOLDEN["events"][kind]
    read(kind, line)
    passed_over = []
    for place in places(line):
        try:
            read(kind, wrong_at(line, place))
        except (ValueError, TypeError, AttributeError, KeyError):
            continue
        passed_over.append(".".join(map(str, place)))
    assert passed_over == GOLDEN["passed_over_by_the_agent"].get(kind, [])


def test_counters_are_those_of_the_nodes_table() -> None:
    table = (Path(__file__).parents[3] / "workers/crates/tracer/src/variable.rs").read_text()
    fields = re.findall(r'^    field\(Variable::\w+, "(\w+)", \d+, \w+, (true|false)\),$', table, re.MULTILINE)
    assert len(fields) == int(re.findall(r"VARIABLES: usize = (\d+)", table)[0])
    assert {name for name, counts in fields if counts == "true"} == COUNTERS


def places(value: Any, above: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path to every member that holds no others, except the event's name."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield from places(one, (*above, name)) if name != "event" else ()
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from places(one, (*above, number))
    else:
        yield above


def wrong_at(line: Line, place: tuple[str | int, ...]) -> Line:
    """The line with a value at this place that no field accepts."""
    changed: Any = copy.deepcopy(line)
    inner = changed
    for part in place[:-1]:
        inner = inner[part]
    inner[place[-1]] = {"no": ["field", 1.5]}
    return changed  # type: ignore[no-any-return]


if __name__ == "__main__":
    FILE.write_text(json.dumps(GOLDEN | {"jobs": jobs()}, indent=1) + "\n")
