"""Questions about latency and volume, asked through the whole application, and the times of their answers."""

import asyncio
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx

from bench.harness.report import Goal, Row, median
from bench.harness.scratch import tell
from bench.people.history import NOW, Case, fill
from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst_api.app import create_app
from factories import AUTHORIZATION, runtime
from kit.postgres import postgres

QUESTIONS = {
    "latency of all sites and feeds, 30 days": "/v1/latency?kind=distribution&minutes=43200&limit=2000",
    "latency of all, every kind, a page of 30 days": "/v1/latency?minutes=43200",
    "latency of all sites and feeds, a day": "/v1/latency?kind=distribution&minutes=1440&limit=2000",
    "latency of all sites and feeds, an hour": "/v1/latency?kind=distribution&minutes=60&limit=2000",
    "latency of a feed, 30 days": "/v1/latency?feed={feed}&minutes=43200",
    "latency of a site, 30 days": "/v1/latency?site={site}&minutes=43200",
    "latency of a feed at a site, 30 days": "/v1/latency?feed={feed}&site={site}&minutes=43200",
    "history of a feed by the day, 30 days": "/v1/latency/history?feed={feed}&minutes=43200",
    "history of a feed by the hour, 30 days": "/v1/latency/history?feed={feed}&minutes=43200&step=hour",
    "history of a feed by the minute, a day": "/v1/latency/history?feed={feed}&minutes=1440",
    "history by the minute, a day three weeks ago": "/v1/latency/history?feed={feed}&minutes=1440&until=21d",
    "history of a feed at a site by the hour, 30 days": (
        "/v1/latency/history?feed={feed}&site={site}&minutes=43200&step=hour"
    ),
    "history of a feed at a site by the minute, a day": ("/v1/latency/history?feed={feed}&site={site}&minutes=1440"),
    "volume of 30 days": "/v1/volume?minutes=43200",
    "who feeds whom": "/v1/tree",
    "totals": "/v1/totals",
    "the overview of the page": "/v1/overview",
}
LIMIT_MS = 300.0


@dataclass(frozen=True, slots=True)
class Times:
    """The time that a question took."""

    p95_ms: float
    core_ms: float
    """Of processor time in this process, the median; the rest is the database's and other programs'."""


def measured(database: str, case: Case, seed: int, runs: int, notes: list[str]) -> list[Row]:
    """The rows of one database."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="downburst-bench-")))
        if database == "PostgreSQL":
            server = stack.enter_context(postgres())
            url = server.url(server.database())
        else:
            url = f"sqlite:///{directory / 'ledger.sqlite'}"
        ledger = Ledger.open(url, FakeClock(NOW))
        stack.callback(ledger.close)
        began = time.monotonic()
        size = fill(ledger, case, seed)
        if database == "PostgreSQL":
            server.execute("VACUUM ANALYZE", url.rpartition("/")[2])
        notes.append(
            f"{database}: {case.days} days of {case.sites} sites and {case.feeds} feeds take {size / 1e6:.0f} MB; "
            f"filled in {time.monotonic() - began:.0f} s"
        )
        tell(notes[-1])
        return asyncio.run(_asked(database, case, ledger, directory, runs))


async def _asked(database: str, case: Case, ledger: Ledger, directory: Path, runs: int) -> list[Row]:
    made, _ = runtime(directory / "hub", ledger, FakeClock(NOW))
    transport = httpx.ASGITransport(create_app(made))
    async with httpx.AsyncClient(transport=transport, base_url="http://hub", headers=AUTHORIZATION) as client:
        rows = []
        for number, (what, path) in enumerate(QUESTIONS.items(), 1):
            asked = path.format(feed=case.feed(case.feeds // 2), site=case.site(case.sites // 2))
            times = await _times(client, asked, runs)
            name, of, goal = f"{database[0]}{number}", f"{database}: {what}, p95", Goal("ours", "<=", LIMIT_MS)
            rows.append(Row(name, of, "ms", times.p95_ms, "of a core", times.core_ms, runs, goal))
            tell(f"{of}: {times.p95_ms:.0f} ms, {times.core_ms:.0f} ms of a core")
        return rows


async def _times(client: httpx.AsyncClient, path: str, runs: int) -> Times:
    took, worked = [], []
    for _ in range(runs + 1):
        began, at_work = time.perf_counter(), time.process_time()
        answer = await client.get(path)
        took.append((time.perf_counter() - began) * 1e3)
        worked.append((time.process_time() - at_work) * 1e3)
        if answer.status_code != httpx.codes.OK or not answer.json():
            raise SystemExit(f"{path} answered {answer.status_code}: {answer.text[:300]}")
    # The first one compiles statements, which a hub does once.
    took = sorted(took[1:])
    return Times(took[round(0.95 * (runs - 1))], median(worked[1:]))
