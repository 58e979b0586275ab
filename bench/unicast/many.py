"""Rows of many sites: hundreds of live sessions, a thousand idle ones.

The sites are those of a swarm unless real ones are asked for: TLS, sessions, clocks, digests and receipts as of a
node, all in one process and without logs. They save work of their own; the hub's work is the same.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

from bench.harness.delivery import sites_of
from bench.harness.stamps import percentile
from bench.product import fleet
from bench.product.fleet import FEED, Fleet
from bench.product.play import Live
from bench.product.swarm_fleet import SwarmFleet, connect
from bench.unicast.outage import mixed
from downburst_app.play.idd_mix import IDD_2024
from kit.namespaces import Lab


@dataclass(frozen=True)
class Crowd:
    """Live sessions at the true product rate."""

    sites: int
    deliveries_per_s: float
    p99_ms: float
    hub_cores: float


@dataclass(frozen=True)
class Idle:
    """Sessions without traffic."""

    sites: int
    cpu_percent: float
    bytes_per_site: float
    """The memory that each adds to the hub's process, without the socket buffers of the kernel."""


def crowd(lab: Lab, directory: Path, *, sites: int, seconds: float, real: bool = False) -> Crowd:
    """The mix of 2024 at its true rate with sizes / 20; each feed goes to one site in twelve, as in the IDD."""
    [host] = sites_of(lab)
    interests = spread(sites, [feed.name for feed in IDD_2024], to_each=max(1, round(sites * FAN_OUT)))
    feeds = {feed.name: str(feed.feed_class) for feed in IDD_2024}
    many = fleet.Crowd(host, interests, RETAINED_BYTES)
    kind = Fleet if real else SwarmFleet
    with kind(lab, directory, list(interests), feeds=feeds, crowd=many) as all_sites:
        before, began_s = all_sites.cpu(), time.monotonic()
        account = all_sites.play(mixed(seconds, rate=1, size=0.05))
        all_sites.drained()
        spent, took_s = all_sites.cpu().since(before), time.monotonic() - began_s
        live = Live(account, spent, all_sites.finish())
    latency_us = live.latency_us
    return Crowd(sites, len(latency_us) / seconds, percentile(latency_us, 99) / 1000, spent.hub_s / took_s)


def idle(lab: Lab, directory: Path, *, sites: int, seconds: float, real: bool = False) -> Idle:
    """Connected sites that subscribe to a feed without products."""
    [host] = sites_of(lab)
    many = fleet.Crowd(host, spread(sites, [FEED], to_each=sites), RETAINED_BYTES)
    with ExitStack() as stack:
        hub = stack.enter_context(Fleet(lab, directory, list(many.interests) if real else [], crowd=many))
        if not real:
            subscription = {"feed": FEED, "pattern": ".*", "not_pattern": None}
            wanted = {name: [subscription] for name in many.interests}
            stack.callback(connect(hub.hub, wanted, prefix=lab.command(host, [])).stop)
        time.sleep(SETTLE_S)
        before, began_s = hub.cpu(), time.monotonic()
        time.sleep(seconds)
        spent, took_s = hub.cpu().since(before), time.monotonic() - began_s
        grown_bytes = hub.hub_bytes() - hub.empty_hub_bytes
    return Idle(sites, 100 * spent.hub_s / took_s, grown_bytes / sites)


def spread(sites: int, feeds: Sequence[str], *, to_each: int) -> Mapping[str, Sequence[str]]:
    """Give each feed to this number of sites, in turn, so that all sites have about equally many."""
    interests: dict[str, list[str]] = {f"site{number}": [] for number in range(sites)}
    turns = cycle(interests)
    for feed in feeds:
        for name in islice(turns, min(to_each, sites)):
            interests[name].append(feed)
    return interests


FAN_OUT = 47 / 570
"""A product of the IDD goes to 47 of 570 sites."""
RETAINED_BYTES = 400_000_000
SETTLE_S = 5.0
"""Handshakes and the first clock exchanges are over."""
