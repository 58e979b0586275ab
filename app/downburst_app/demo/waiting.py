"""Waits for the end of a demonstration by its progress, never by a fixed time."""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from downburst.foundation.errors import Failure
from downburst_app.demo.checker import expected_at, received_files
from downburst_app.demo.hub import Document, HubApi
from downburst_app.demo.scene import SiteSpec
from downburst_app.play.player import Sent


@dataclass(slots=True)
class Patience:
    """Runs out after this many seconds without progress."""

    limit_s: float
    _seen: object = None
    _moved_s: float = field(default_factory=time.monotonic)

    def lasts(self, progress: object) -> bool:
        """True if `progress` differs from the last call, or did so recently."""
        if progress != self._seen:
            self._seen, self._moved_s = progress, time.monotonic()
        return time.monotonic() - self._moved_s <= self.limit_s


async def last_receipts(
    api: HubApi,
    sites: Sequence[SiteSpec],
    received: Mapping[str, Path],
    sent: Sequence[Sent],
    *,
    patience_s: float = 60.0,
) -> None:
    """Waits until every site has settled all its products and their files are there."""
    expected = {site.name: Counter(feed for feed, _ in expected_at(site, sent)) for site in sites}
    patience = Patience(patience_s)
    while True:
        settled = _settled(await api.overview())
        heads = await api.heads()
        behind = _behind(expected, settled, heads)
        files = {} if behind else await asyncio.to_thread(_count_files, received)
        short = [name for name in files if files[name] < expected[name].total()]
        if not behind and not short:
            return
        if not patience.lasts((settled, files)):
            raise Failure(f"no progress for {patience_s:g} s: {_lacking(behind, short, files, expected)}")
        await asyncio.sleep(LOOK_EVERY_S if behind else COUNT_EVERY_S)


async def last_figures(api: HubApi, *, quiet_s: float = 3.0, limit_s: float = 30.0) -> dict[str, Document]:
    """Waits until no receipt has entered the latencies for some seconds; returns each feed's latencies."""
    patience, give_up_s = Patience(quiet_s), time.monotonic() + limit_s
    while True:
        overview = await api.overview()
        latency = {feed["feed"]: feed["latency"] for feed in overview["feeds"]}
        counts = [feed["latency"][kind]["count"] for feed in overview["feeds"] for kind in _KINDS]
        stored = [site["stored"] for site in overview["sites"]]
        sent = [leg["products"] for feed in overview["feeds"] if feed["plan"] for leg in feed["plan"]["legs"]]
        if not patience.lasts((counts, stored, sent)) or time.monotonic() > give_up_s:
            return latency
        await asyncio.sleep(LOOK_EVERY_S)


Place = tuple[str, str]
"""A site and a feed."""


def _settled(overview: Document) -> dict[Place, int]:
    return {
        (site["site"], feed["feed"]): int(feed["settled_to"]) for site in overview["sites"] for feed in site["feeds"]
    }


def _behind(
    expected: Mapping[str, Counter[str]], settled: Mapping[Place, int], heads: Mapping[str, int]
) -> dict[Place, str]:
    lacking = {}
    for site, feeds in expected.items():
        for feed in feeds:
            at, head = settled.get((site, feed), 0), heads.get(feed, 0)
            if at < head:
                lacking[site, feed] = f"{site} has settled {feed} up to {at} of {head}"
    return lacking


def _count_files(received: Mapping[str, Path]) -> dict[str, int]:
    return {site: sum(1 for _ in received_files(directory)) for site, directory in received.items()}


def _lacking(
    behind: Mapping[Place, str], short: Sequence[str], files: Mapping[str, int], expected: Mapping[str, Counter[str]]
) -> str:
    sentences = list(behind.values()) or [
        f"{site} holds {files[site]} of {expected[site].total()} files" for site in short
    ]
    more = f" and {len(sentences) - 5} more" if len(sentences) > 5 else ""
    return "; ".join(sentences[:5]) + more


LOOK_EVERY_S = 0.5
COUNT_EVERY_S = 1.0
_KINDS = ("distribution_ms", "end_to_end_ms")
