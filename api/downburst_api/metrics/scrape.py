"""The route of Prometheus: one scrape at a time, read and written outside the event loop."""

import asyncio
import gzip
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from fastapi import APIRouter, Request
from fastapi.responses import Response

from downburst.domain.alarms import Alarm
from downburst.domain.backlog import Backlog
from downburst.domain.circuits import Circuit, Measured
from downburst.domain.feeds import FeedLog
from downburst.domain.plans import LegCounters, Plan
from downburst.domain.probes import Probe
from downburst.domain.receipts import Settled
from downburst.domain.relays.siblings import Saved
from downburst.exposition import CONTENT_TYPE, process_text
from downburst.foundation.errors import DownburstError
from downburst.ledger import Transaction
from downburst.ledger.repositories.latency.selection import Selection
from downburst.ledger.repositories.receipts import LossKey
from downburst.live.state import LiveState, SiteSession
from downburst.sketches.sheet import Sheet
from downburst_api.http.parameters import Hub
from downburst_api.latency.service import minute_of
from downburst_api.metrics.bridges import BridgeFacts, bridges_of, bridges_text
from downburst_api.metrics.circuits import circuits_text, offers_text
from downburst_api.metrics.hub import (
    Standing,
    alarms_text,
    catch_ups_text,
    deadlines_text,
    host_clock_text,
    hub_text,
    traffic_text,
)
from downburst_api.metrics.latency import latency_text
from downburst_api.metrics.probes import probes_of, probes_text
from downburst_api.metrics.sites import backlogs_text, saved_text, sites_text
from downburst_api.ordering import service as ordering
from downburst_api.runtime import Runtime
from downburst_contract.ordering import CircuitOffer

router = APIRouter(tags=["health"])


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(hub: Hub, request: Request) -> Response:
    """Metrics for Prometheus; docs/metrics.md lists them. Compressed for clients that accept gzip."""
    compress = "gzip" in request.headers.get("accept-encoding", "")
    async with hub.counted.one_scrape:
        facts = await hub.ledger.read(
            partial(_facts, since_minute=hub.counted.histograms.first_open_minute, now=hub.clock.now())
        )
        present = _Present.of(hub, await _logs(hub))
        body = await asyncio.to_thread(_written, hub, facts, present, compress=compress)
    headers = {"vary": "accept-encoding"} | ({"content-encoding": "gzip"} if compress else {})
    return Response(body, headers=headers, media_type=CONTENT_TYPE)


@dataclass(frozen=True, slots=True)
class _Facts:
    """The ledger's facts."""

    latencies: Sheet
    counters: list[LegCounters]
    plans: list[Plan]
    losses: Mapping[LossKey, int]
    feeds: list[str]
    sites: list[str]
    circuits: list[Circuit]
    measured: list[Measured]
    alarms: list[Alarm]
    offers: list[CircuitOffer]
    probes: list[Probe]
    bridges: BridgeFacts
    saved: list[Saved]
    outcomes: list[Settled]
    """Of feeds with a deadline."""


def _facts(tx: Transaction, *, since_minute: int, now: datetime) -> _Facts:
    relays = {relay.name for relay in tx.fleet.relays.all()}
    return _Facts(
        latencies=tx.measured.latency.sheet(Selection(since_minute=since_minute), step_minutes=1),
        counters=tx.planning.legs.counters(),
        plans=tx.planning.plans.all_current(),
        losses=tx.measured.settled.losses(),
        feeds=[feed.name for feed in tx.feeds.all()],
        sites=[site.name for site in tx.sites.all() if site.name not in relays],
        circuits=tx.circuits.begun(),
        measured=tx.circuits.measurements(),
        alarms=tx.alerting.alarms.open(),
        offers=ordering.shown(tx, tx.planning.offers.all(), now),
        probes=probes_of(tx, now),
        bridges=bridges_of(tx),
        saved=tx.fleet.siblings.savings(),
        outcomes=_outcomes(tx),
    )


def _outcomes(tx: Transaction) -> list[Settled]:
    bound = [feed.name for feed in tx.feeds.all() if feed.deadline_ms is not None]
    return [row for feed in bound for row in tx.measured.settled.of_feed(feed)]


@dataclass(frozen=True, slots=True)
class _Present:
    """A copy of the state that the event loop changes, for the thread that writes the text."""

    standing: Standing
    sessions: dict[str, SiteSession]
    ldm_sites: frozenset[str]
    """Feeds with a connected LDM."""
    arrivals: dict[str, tuple[int, int]]
    """By feed, products and bytes since the start."""
    backlogs: dict[str, Backlog]
    loads: dict[tuple[int, str | None], tuple[int, int]]
    catch_ups: tuple[dict[str, int], dict[str, int]]
    """By feed, streams and saved bytes."""

    @classmethod
    def of(cls, hub: Runtime, logs: list[FeedLog]) -> "_Present":
        live: LiveState = hub.live
        probes = {one.name: one.fault is None for one in hub.probes.all()}
        return cls(
            standing=Standing(hub.node.running, hub.node.restarts, live.connected, probes, logs),
            sessions=dict(live.sessions),
            ldm_sites=frozenset(site for site, link in live.ldm.sites.items() if link.connections),
            arrivals={feed: (one.products_here, one.bytes_here) for feed, one in live.arrivals.items()},
            backlogs=live.backlogs(),
            catch_ups=(dict(live.catch_ups.streams), dict(live.catch_ups.saved_bytes)),
            loads={key: (load.out_bytes, load.in_bytes) for key, load in live.circuits.items()},
        )


async def _logs(hub: Runtime) -> list[FeedLog]:
    """The logs' contents; nothing while the node is away, which has a metric of its own."""
    try:
        return await hub.node.logs()
    except DownburstError:
        return []


def _written(hub: Runtime, facts: _Facts, present: _Present, *, compress: bool) -> bytes:
    body = "".join(_texts(hub, facts, present)).encode()
    return gzip.compress(body, GZIP_LEVEL) if compress else body


def _texts(hub: Runtime, facts: _Facts, present: _Present) -> Iterator[str]:
    now = hub.clock.now()
    yield process_text("hub")
    yield from hub_text(present.standing, shutil.disk_usage(hub.settings.data_dir))
    yield from host_clock_text(hub.counted.host_clock.now())
    losses = hub.counted.losses.follow(facts.losses)
    yield from traffic_text(facts.feeds, present.arrivals, facts.counters, facts.plans, losses)
    yield from catch_ups_text(facts.feeds, *present.catch_ups)
    yield deadlines_text(facts.outcomes)
    yield saved_text(facts.saved)
    yield from sites_text(facts.sites, present.sessions, present.ldm_sites)
    yield from backlogs_text(facts.sites, present.backlogs, now)
    yield from latency_text(hub.counted.histograms.follow(facts.latencies, now_minute=minute_of(now)))
    yield alarms_text(facts.alarms)
    yield from circuits_text(facts.circuits, facts.measured, present.loads)
    yield from offers_text(facts.offers)
    yield from probes_text(facts.probes)
    yield from bridges_text(facts.bridges, hub.live.bridges, hub.settings.name)


GZIP_LEVEL = 1
"""Compresses to a thirtieth of the bytes; higher levels take several times as long for little gain."""
