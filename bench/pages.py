"""How fluid the page is with many sites and feeds: first paint, long tasks, and what a second of news costs.

The page and the api are the real ones, over a ledger with every site subscribed to every feed. The node is in memory:
each second it says that all feeds brought something and that some sites are behind, as a busy hub's does. Chromium
looks, moves through the pages and scrolls; the browser itself tells how long it was deaf (tasks over 50 ms).
"""

import argparse
import asyncio
import random
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import uvicorn
from playwright.sync_api import Page, sync_playwright

from bench.harness.report import Goal, Row, document, machine, median, table, write
from downburst.domain.events import FeedTraffic, SessionChanged, SessionTraffic, SiteProgress, TrafficSeen
from downburst.domain.feeds import Feed
from downburst.domain.plans import Transport
from downburst.domain.receipts import Batch
from downburst.domain.sites import Site
from downburst.domain.subscriptions import Subscription
from downburst.foundation.clock import SystemClock, to_us
from downburst.ledger import Ledger
from downburst.settings.access import AccessSettings
from downburst_api.app import create_app
from downburst_api.overview.shared import SharedOverview
from downburst_api.runtime import Runtime
from factories import runtime, settled, sketch_row
from kit.capabilities import reasons

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "services" / "dashboard" / "dist"


@dataclass(frozen=True)
class Seen:
    """The measurements of one visit, in milliseconds."""

    first_paint: float
    """Until the first page shows its feeds."""
    longest_task: float
    """Of all tasks over 50 ms since then, the longest; 0 for none."""
    news: float
    """Processor time of the page for one second of news, at rest on the page of sites."""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print the table, write the JSON."""
    wanted = _parser().parse_args(argv)
    if why := reasons()["chromium"]:
        print(f"the pages are not measured: {why}")
        return 0
    rows, notes = measured(sites=wanted.sites, feeds=wanted.feeds, runs=wanted.runs)
    print(table(rows))
    print("\n".join(notes))
    if wanted.out is not None:
        write(wanted.out, document("pages", machine(), rows, notes))
    return 0


def measured(*, sites: int, feeds: int, runs: int) -> tuple[list[Row], list[str]]:
    """Give the rows of a hub of that size."""
    with _hub(sites, feeds) as (url, made_ms), sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        seen = []
        for _ in range(runs):
            context = chromium.new_context(viewport={"width": 1280, "height": 900})
            seen.append(_visit(context.new_page(), url, sites))
            context.close()
        chromium.close()
        overview_ms = median(made_ms)
    of = f"{sites} sites x {feeds} feeds"
    rows = [
        Row("P1", f"first paint, {of}", "ms", median(one.first_paint for one in seen), "-", None, runs, _below(1500)),
        Row("P2", f"longest task, {of}", "ms", max(one.longest_task for one in seen), "-", None, runs, _below(200)),
        Row("P3", f"page's processor time a second, {of}", "ms", median(one.news for one in seen), "-", None, runs),
        Row("P4", f"hub's time for one overview, {of}", "ms", overview_ms, "-", None, len(made_ms)),
    ]
    walk = "Now, Sites (scrolled to its end), Feeds, both drawers, a feed, a site, Latency, the tree and a site of it"
    return rows, [f"P2 covers a walk through {walk}."]


def _visit(page: Page, url: str, sites: int) -> Seen:
    page.set_default_timeout(PATIENCE_MS)
    page.add_init_script(_WATCH)
    page.goto(url)
    page.get_by_test_id("status").wait_for()
    first_paint = page.evaluate("window.shownAt(\"[data-testid='status']\")")
    for address, shown in _WALK:
        page.evaluate(f"location.hash = '{address}'")
        page.get_by_test_id(shown).wait_for()
        page.wait_for_function("seen => window.overviews > seen", arg=page.evaluate("window.overviews"))
    page.evaluate("location.hash = '#/sites'")
    last = page.get_by_test_id(f"site site{sites - 1:03}.example")
    while not last.is_visible():
        page.mouse.wheel(0, 4_000)
        page.evaluate("new Promise(shown => requestAnimationFrame(() => requestAnimationFrame(shown)))")
    return Seen(first_paint, page.evaluate("Math.max(0, ...window.longTasks)"), _news(page))


def _news(page: Page) -> float:
    """Processor time of scripts and rendering for each overview, over some of them."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def busy_s() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return sum(float(one["value"]) for one in metrics if one["name"] == "TaskDuration")

    began, before = page.evaluate("window.overviews"), busy_s()
    page.wait_for_function("seen => window.overviews >= seen + 8", arg=began)
    return 1000 * (busy_s() - before) / float(page.evaluate("window.overviews") - began)


@contextmanager
def _hub(sites: int, feeds: int) -> Iterator[tuple[str, list[float]]]:
    """Serve the page; the list fills with the time to make each overview, in milliseconds."""
    made_ms: list[float] = []
    with tempfile.TemporaryDirectory(prefix="downburst-pages-") as scratch, socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        ledger = Ledger.open(f"sqlite:///{Path(scratch) / 'ledger.sqlite'}")
        hub = _filled(Path(scratch), ledger, sites, feeds)
        server = uvicorn.Server(uvicorn.Config(create_app(hub, page=DIST), log_level="error"))
        stop = threading.Event()
        serving = threading.Thread(target=lambda: asyncio.run(_serve(server, listening, hub, stop, made_ms)))
        serving.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/", made_ms
        finally:
            stop.set()
            server.should_exit = True
            hub.bus.close()
            serving.join()
            ledger.close()


async def _serve(
    server: uvicorn.Server, listening: socket.socket, hub: Runtime, stop: threading.Event, made_ms: list[float]
) -> None:
    hub.overview.document = _Timed(hub.clock, made_ms)
    speaking = asyncio.create_task(_speak(hub, stop))
    await server.serve(sockets=[listening])
    speaking.cancel()


@dataclass(slots=True)
class _Timed(SharedOverview):
    """Records the time to make or await each text, in milliseconds."""

    made_ms: list[float] = field(default_factory=list)

    async def text(self, make: Callable[[], Awaitable[dict[str, Any]]]) -> str:
        begun = time.perf_counter()
        made = await SharedOverview.text(self, make)
        self.made_ms.append(1000 * (time.perf_counter() - begun))
        return made


async def _speak(hub: Runtime, stop: threading.Event) -> None:
    """Reports each second the state of all feeds and of a tenth of the sites, as a node does."""
    pick = random.Random(7)
    feeds = [feed.name for feed in await hub.ledger.read(lambda tx: tx.feeds.all())]
    sites = sorted(hub.live.sessions)
    number = 0
    while not stop.is_set():
        number += 1
        now_us = to_us(datetime.now(UTC))
        some = pick.sample(sites, max(len(sites) // 10, 1))
        event = _traffic(feeds, some, number, now_us, pick)
        hub.live.apply(event)
        hub.bus.publish(event)
        await asyncio.sleep(1)


def _filled(scratch: Path, ledger: Ledger, sites: int, feeds: int) -> Runtime:
    """Holds every site with every feed, their products, and the latencies of the last two minutes."""
    hub, _ = runtime(scratch / "hub", ledger, SystemClock(), access=AccessSettings(without_login="page"))
    names = [f"FEED{number:02}" for number in range(feeds)]
    hosts = [f"site{number:03}.example" for number in range(sites)]
    pairs = list(product(hosts, names))
    minute = int(datetime.now(UTC).timestamp() // 60)
    with ledger.transaction() as tx:
        for name in names:
            tx.feeds.add(Feed(name))
        for host in hosts:
            tx.sites.add(Site(host, organisation=f"Organisation of {host}"))
        for host, name in pairs:
            tx.subscriptions.add(Subscription(0, host, name))
        frontiers = tuple(settled(1_000, stored=1_000, feed=name, site=host) for host, name in pairs)
        sketches = tuple(
            sketch_row([8.0, 11.0, 240.0], feed=name, site=host, minute=minute - back)
            for host, name in pairs
            for back in (0, 1)
        )
        tx.measured.batches.load(Batch("filled", sketches, (), frontiers))
    for host in hosts:
        hub.live.apply(SessionChanged(host, "connected", datetime.now(UTC), "127.0.0.1:1"))
    hub.live.apply(_traffic(names, hosts, 0, to_us(datetime.now(UTC)), random.Random(7)))
    return hub


def _traffic(
    feeds: Sequence[str], sites: Sequence[str], number: int, now_us: int, pick: random.Random
) -> TrafficSeen:
    """A second in which every feed brought a product, and these sites report their progress."""
    head = 1_000 + 10 * number
    return TrafficSeen(
        now_us - 1_000_000,
        now_us,
        tuple(FeedTraffic(feed, 10, pick.randrange(10**5, 10**7), (), head) for feed in feeds),
        (),
        tuple(
            SessionTraffic(
                site,
                pick.randrange(-900, 900),
                200,
                pick.randrange(9_000, 90_000),
                tuple(SiteProgress(feed, head, pick.randrange(3), Transport.UNICAST, 1) for feed in feeds),
            )
            for site in sites
        ),
        0,
    )


def _below(limit_ms: float) -> Goal:
    return Goal("ours", "<=", limit_ms)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.pages", description=__doc__)
    parser.add_argument("--sites", type=int, default=500)
    parser.add_argument("--feeds", type=int, default=30)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--out", type=Path)
    return parser


PATIENCE_MS = 120_000
_WALK = (
    ("#/sites", "site site000.example"),
    ("#/feeds", "feed FEED00"),
    ("#/feeds/FEED00", "lateness"),
    ("#/sites/site000.example", "one site"),
    ("#/latency?feed=FEED00&site=site000.example", "latency"),
    ("#/feeds?row=FEED00", "transport of FEED00"),
    ("#/sites?row=site000.example", "feeds of site000.example"),
    ("#/tree", "tree"),
    ("#/tree/site~site000.example", "tree node"),
    ("#/", "status"),
)
# Measurements by the browser itself: tasks that blocked it, the time of the first paint, and each overview.
_WATCH = """
window.longTasks = []
window.overviews = 0
new PerformanceObserver(list => window.longTasks.push(...list.getEntries().map(one => one.duration)))
  .observe({ type: 'longtask', buffered: true })
const shown = {}
const look = () => {
  const part = "[data-testid='status']"
  if (document.querySelector(part)) requestAnimationFrame(() => setTimeout(() => (shown[part] = performance.now())))
  else requestAnimationFrame(look)
}
look()
window.shownAt = what => new Promise(told => {
  const wait = () => (shown[what] ? told(shown[what]) : setTimeout(wait, 10))
  wait()
})
const Listened = window.EventSource
window.EventSource = class extends Listened {
  constructor(...given) {
    super(...given)
    this.addEventListener('overview', () => (window.overviews += 1))
  }
}
"""

if __name__ == "__main__":
    sys.exit(main())
