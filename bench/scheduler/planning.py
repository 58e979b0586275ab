"""The cost of a planning round: the loop with its ledger on simulated traffic, over feeds, sites and products.

Each case runs in a process of its own, whose processor time and memory are its own. A round looks at every feed once;
the first rounds, which make plans for all feeds, count as much as the quiet ones, and the longest is reported.
"""

import asyncio
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.harness.report import Goal, Row, median
from bench.harness.scratch import tell
from bench.scheduler.wishes import Wanted
from downburst.bus.local import LocalBus
from downburst.domain.events import FeedTraffic, SessionTraffic, TrafficSeen
from downburst.domain.feeds import Feed
from downburst.domain.sites import Site
from downburst.domain.subscriptions import Subscription
from downburst.foundation.clock import FakeClock, to_us
from downburst.ledger import Ledger
from downburst.settings.hub import Settings
from downburst_scheduler.loop import SchedulerLoop


@dataclass(frozen=True, slots=True)
class Case:
    """A hub to plan for."""

    feeds: int = 30
    sites: int = 570
    products_per_s: int = 5
    """Of each feed."""


@dataclass(frozen=True, slots=True)
class Round:
    """The cost of the rounds of a case."""

    longest_s: float
    median_s: float
    peak_bytes: int


def planning_rows(wanted: Wanted) -> Iterator[Row]:
    """The goal's case, and the growth of the cost with each of its sizes."""
    whole, feeds = _measured(Case(), wanted), _measured(Case(feeds=10), wanted)
    sites, products = _measured(Case(sites=190), wanted), _measured(Case(products_per_s=50), wanted)
    yield _bound("p1", "the longest planning round", "s of a core", whole.longest_s, 2.0, wanted)
    yield _bound("p2", "a quiet planning round", "s of a core", whole.median_s, 2.0, wanted)
    yield _bound("p3", "peak memory of the process", "MB", whole.peak_bytes / 1e6, 200.0, wanted)
    yield _growth("p4", "per feed, of 30", whole.median_s / 30, "of 10", feeds.median_s / 10, wanted)
    yield _growth("p5", "per site, of 570", whole.median_s / 570, "of 190", sites.median_s / 190, wanted)
    many, few = products.median_s / 450, whole.median_s / 45
    yield _growth("p6", "per thousand products, of 450,000", many, "of 45,000", few, wanted)


def _bound(name: str, what: str, unit: str, ours: float, limit: float, wanted: Wanted) -> Row:
    case = f"30 feeds to 570 sites: {what}"
    return Row(name, case, unit, ours, "", None, wanted.runs, Goal("ours", "<=", limit))


def _growth(name: str, case: str, ours_s: float, against: str, theirs_s: float, wanted: Wanted) -> Row:
    case, goal = f"quiet planning round {case}", Goal("ratio", "<=", 1.5)
    return Row(name, case, "ms of a core", ours_s * 1e3, against, theirs_s * 1e3, wanted.runs, goal)


def _measured(case: Case, wanted: Wanted) -> Round:
    """The medians over runs, each in a fresh process."""
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=fresh, max_tasks_per_child=1) as processes:
        rounds = list(processes.map(rounds_of, [case] * wanted.runs, range(wanted.seed, wanted.seed + wanted.runs)))
    tell(f"{case}: {rounds}")
    return Round(
        longest_s=median(one.longest_s for one in rounds),
        median_s=median(one.median_s for one in rounds),
        peak_bytes=round(median(one.peak_bytes for one in rounds)),
    )


def rounds_of(case: Case, seed: int) -> Round:
    """Six minutes of a hub, in virtual time."""
    with tempfile.TemporaryDirectory(prefix="downburst-bench-") as directory:
        took = asyncio.run(_rounds(case, np.random.default_rng(seed), Path(directory)))
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Round(max(took), median(took[-ROUNDS // 2 :]), peak_bytes)


async def _rounds(case: Case, random: np.random.Generator, directory: Path) -> list[float]:
    clock, settings = FakeClock(), Settings(data_dir=directory, egress_capacity_bps=40e9)
    ledger = Ledger.open(f"sqlite:///{directory}/ledger.sqlite", clock)
    _populate(ledger, case)
    loop = SchedulerLoop(LocalBus(), ledger, settings, clock)
    started = time.process_time()
    await loop.start()
    took = [time.process_time() - started]
    await loop.handle(_second(case, random, clock, _sessions(case)))
    for _ in range(ROUNDS):
        started = time.process_time()
        for _ in range(round(settings.scheduler.step_s)):
            clock.advance(1)
            await loop.handle(_second(case, random, clock, ()))
        took.append(time.process_time() - started)
    ledger.close()
    return took


def _populate(ledger: Ledger, case: Case) -> None:
    with ledger.transaction() as tx:
        for number in range(case.sites):
            tx.sites.add(Site(f"site-{number}", access_rate_bps=1e8 * (1 + number % 10)))
        for number in range(case.feeds):
            tx.feeds.add(Feed(f"FEED{number}"))
            for site in range(case.sites):
                tx.subscriptions.add(Subscription(0, f"site-{site}", f"FEED{number}"))


def _sessions(case: Case) -> tuple[SessionTraffic, ...]:
    """Places every site at a different distance."""
    return tuple(SessionTraffic(f"site-{number}", 0, 500, 1_000 + 371 * number, ()) for number in range(case.sites))


def _second(
    case: Case, random: np.random.Generator, clock: FakeClock, sessions: tuple[SessionTraffic, ...]
) -> TrafficSeen:
    now_us = to_us(clock.now())
    feeds = []
    for number in range(case.feeds):
        sizes = tuple(int(size) for size in random.lognormal(np.log(35e3), 1.4, random.poisson(case.products_per_s)))
        feeds.append(FeedTraffic(f"FEED{number}", len(sizes), sum(sizes), sizes[:64], 1))
    return TrafficSeen(now_us - 1_000_000, now_us, tuple(feeds), (), sessions, 0)


ROUNDS = 36
"""Six minutes of looks every ten seconds, which fill the window of five."""
