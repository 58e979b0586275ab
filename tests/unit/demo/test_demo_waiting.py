"""Waiting by progress: the conditions for its end, and the message when nothing moves."""

import hashlib
from pathlib import Path
from typing import Any

import httpx
import pytest

from downburst.domain.feeds import FeedClass
from downburst.foundation.errors import Failure
from downburst.foundation.file_names import ReceivedName, encode
from downburst_app.demo import waiting
from downburst_app.demo.hub import HubApi, until_true
from downburst_app.demo.scene import FeedSpec, SiteSpec, Wish
from downburst_app.demo.waiting import Patience, last_figures, last_receipts
from downburst_app.play.player import Sent

SITES = (SiteSpec("site-1", (Wish("TEXT"),)), SiteSpec("site-2", (Wish("TEXT", "^a"),)))
SENT = [Sent("TEXT", name, 1, hashlib.sha256(b"x").hexdigest()) for name in ("a1", "a2", "b1")]


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(waiting, "COUNT_EVERY_S", 0.01)


class Script:
    """A hub that answers each overview with the next settled position, and then always with the last one."""

    def __init__(self, *settled: int, head: int = 3, counts: tuple[int, ...] = (0,)) -> None:
        self.settled = list(settled)
        self.counts = list(counts)
        self.head = head
        self.asked: list[tuple[str, str, Any]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append((request.method, request.url.raw_path.decode(), request.content))
        if request.url.path == "/v1/status":
            return httpx.Response(200, json={"feeds": [{"feed": "TEXT", "head": self.head}]})
        if request.url.path == "/v1/overview":
            return httpx.Response(200, json=self._overview())
        if request.url.path.endswith("/tokens"):
            return httpx.Response(201, json={"token": "dbt1.x.y"})
        if request.url.path.endswith("/plans"):
            return httpx.Response(200, json=[{"version": 2}, {"version": 1}])
        if request.url.path == "/healthz":
            return httpx.Response(503, json={"detail": "the node restarts"})
        return httpx.Response(201, json={})

    def _overview(self) -> dict[str, Any]:
        settled = self.settled.pop(0) if len(self.settled) > 1 else self.settled[0]
        count = self.counts.pop(0) if len(self.counts) > 1 else self.counts[0]
        latency = {"distribution_ms": {"count": count, "p50": 1.0}, "end_to_end_ms": {"count": count}}
        sites = [
            {"site": site.name, "stored": settled, "feeds": [{"feed": "TEXT", "settled_to": settled}]}
            for site in SITES
        ]
        return {"sites": sites, "feeds": [{"feed": "TEXT", "plan": None, "latency": latency}]}

    def api(self) -> HubApi:
        return HubApi("http://hub", transport=httpx.MockTransport(self))


def deliver(tmp_path: Path, site: str, *names: str) -> None:
    for sequence, name in enumerate(names, start=1):
        path = tmp_path / site / encode(ReceivedName("TEXT", 1, sequence, name))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")


def received(tmp_path: Path) -> dict[str, Path]:
    return {site.name: tmp_path / site.name for site in SITES}


async def test_it_ends_when_all_is_settled_and_all_files_are_there(tmp_path: Path) -> None:
    deliver(tmp_path, "site-1", "a1", "a2", "b1")
    deliver(tmp_path, "site-2", "a1", "a2")
    script = Script(1, 2, 3)
    await last_receipts(script.api(), SITES, received(tmp_path), SENT, patience_s=5)
    assert len([path for _, path, _ in script.asked if path == "/v1/overview"]) == 3


async def test_a_site_that_stays_behind_is_named_with_its_position(tmp_path: Path) -> None:
    with pytest.raises(Failure, match=r"no progress for 0\.01 s: site-1 has settled TEXT up to 2 of 3; site-2"):
        await last_receipts(Script(2).api(), SITES, received(tmp_path), SENT, patience_s=0.01)


async def test_missing_files_are_named_even_when_all_is_settled(tmp_path: Path) -> None:
    deliver(tmp_path, "site-1", "a1", "a2", "b1")
    deliver(tmp_path, "site-2", "a1")
    with pytest.raises(Failure, match="site-2 holds 1 of 2 files"):
        await last_receipts(Script(3).api(), SITES, received(tmp_path), SENT, patience_s=0.01)


async def test_figures_are_read_once_receipts_stop_coming() -> None:
    script = Script(3, counts=(1, 2, 3, 9))
    latency = await last_figures(script.api(), quiet_s=0.1)
    assert latency["TEXT"]["distribution_ms"]["count"] == 9


def test_patience_lasts_while_something_moves() -> None:
    patience = Patience(1000)
    assert patience.lasts(1)
    assert patience.lasts(1)
    patience.limit_s = -1
    assert not patience.lasts(1)


async def test_until_true_gives_up_with_a_sentence() -> None:
    api = Script(0).api()
    with pytest.raises(Failure, match="the hub did not come up within 0 s"):
        await until_true(api.up, limit_s=0, what="the hub did not come up", every_s=0)


async def test_a_site_is_made_with_its_subscriptions_and_a_token() -> None:
    script = Script(0)
    api = script.api()
    await api.add_feed(FeedSpec("IDS|DDPLUS", FeedClass.OBSERVATION))
    token = await api.add_site(SiteSpec("site-1", (Wish("A"), Wish("B", "^x", "y"))))
    assert token == "dbt1.x.y"
    assert [(method, path) for method, path, _ in script.asked] == [
        ("POST", "/v1/feeds"),
        ("POST", "/v1/sites"),
        ("POST", "/v1/sites/site-1/subscriptions"),
        ("POST", "/v1/sites/site-1/subscriptions"),
        ("POST", "/v1/sites/site-1/tokens"),
    ]
    assert b'"not_pattern"' not in script.asked[2][2]
    assert b'"not_pattern":"y"' in script.asked[3][2]


async def test_plans_come_oldest_first_for_feeds_with_awkward_names() -> None:
    script = Script(0)
    assert [plan["version"] for plan in await script.api().plans("IDS|DDPLUS")] == [1, 2]
    assert script.asked[0][1].startswith("/v1/feeds/IDS%7CDDPLUS/plans")


async def test_a_refusal_is_passed_on() -> None:
    api = HubApi("http://hub", transport=httpx.MockTransport(lambda _: httpx.Response(409, text="the name is taken")))
    with pytest.raises(Failure, match="the name is taken"):
        await api.add_feed(FeedSpec("A", FeedClass.GRID))
