"""PostgreSQL killed and started again under a hub: products flow on, and every receipt is counted once."""

import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from downburst.ledger import Ledger
from downburst.model import LatencyKind
from kit.node import SiteNode
from kit.patience import wait_for
from kit.postgres import Postgres, postgres
from kit.whole_hub import WholeHub

pytestmark = pytest.mark.system


@pytest.fixture
def server() -> Iterator[Postgres]:
    with postgres() as started:
        yield started


class Source(threading.Thread):
    """Puts product after product, each until it is acknowledged."""

    def __init__(self, hub: WholeHub) -> None:
        super().__init__(daemon=True)
        self.hub = hub
        self.acknowledged: dict[int, str] = {}
        self.over = threading.Event()

    def run(self) -> None:
        url, authorization = f"http://{self.hub.http}", self.hub.authorization
        with httpx.Client(base_url=url, timeout=60, headers=authorization) as client:
            number = 0
            while not self.over.wait(0.02):
                number += 1
                content = b"%d " % number * 300
                sequence = self._put(client, number, content)
                assert sequence not in self.acknowledged, f"sequence {sequence} was given twice"
                self.acknowledged[sequence] = hashlib.sha256(content).hexdigest()

    def _put(self, client: httpx.Client, number: int, content: bytes) -> int:
        while True:
            with suppress(httpx.TransportError):
                answer = client.put(f"/v1/feeds/NGRID/products/p{number}", content=content)
                if answer.is_success:
                    return int(answer.json()["sequence"])
            self.over.wait(0.05)


def test_nothing_is_lost_or_counted_twice_while_postgresql_is_killed(tmp_path: Path, server: Postgres) -> None:
    name = server.database()
    hub = WholeHub(tmp_path / "hub", ledger_url=server.url(name)).start()
    assert not (hub.directory / "data" / "ledger.sqlite").exists()
    site = _enrolled(hub, tmp_path)
    source = Source(hub)
    source.start()
    for pause_s in (0.0, 4.0, 14.0):
        _more(source, 30)
        _without_a_server(hub, server, source, site, pause_s=pause_s)
    _more(source, 30)
    source.over.set()
    source.join(timeout=60)
    wait_for("all products at the site", lambda: _lacks(site, source) == set())
    assert {key[1]: digest for key, (_, digest) in site.received().items()} == source.acknowledged
    _counted_once(server.url(name), len(source.acknowledged))
    assert "the ledger is back after" in hub.log()
    site.stop()
    assert hub.stop() == 0
    _counted_once(server.url(name), len(source.acknowledged))


def test_a_second_hub_on_the_same_ledger_ends_with_one_sentence(tmp_path: Path, server: Postgres) -> None:
    url = server.url(server.database())
    first = WholeHub(tmp_path / "first", ledger_url=url).start()
    second = WholeHub(tmp_path / "second", ledger_url=url)
    with pytest.raises(AssertionError, match=r"another hub .* holds the ledger"):
        second.start(seconds=0)
    assert first.is_well()
    assert first.stop() == 0
    assert second.start().stop() == 0


def _enrolled(hub: WholeHub, home: Path) -> SiteNode:
    hub.ask("POST", "/v1/feeds", json={"feed": "NGRID", "class": "grid"})
    hub.ask("POST", "/v1/sites", json={"site": "unl.edu", "multicast_interface": "127.0.0.1"})
    hub.ask("POST", "/v1/sites/unl.edu/subscriptions", json={"feed": "NGRID", "pattern": ".*"})
    site = SiteNode(home / "site", hub.sites)
    site.directory.mkdir()
    site.token_file.write_text(hub.ask("POST", "/v1/sites/unl.edu/tokens", json={})["token"])
    site.start()
    wait_for("the site's first checkpoint", lambda: list((site.directory / "state").rglob("*.cbor")), 60)
    return site


def _without_a_server(hub: WholeHub, server: Postgres, source: Source, site: SiteNode, *, pause_s: float) -> None:
    server.kill()
    killed = time.monotonic()
    _more(source, 30)
    wait_for("products to reach the site without a ledger", lambda: _lacks(site, source) == set())
    if pause_s:
        _is_said(hub)
    wait_for("the end of the pause", lambda: time.monotonic() - killed >= pause_s, 60)
    server.start()
    up = time.monotonic()
    wait_for("all batches to be loaded", lambda: _waiting(hub) <= 1, 60)
    print(f"away for {up - killed:.1f} s; all receipts in the ledger {time.monotonic() - up:.1f} s after its start")


def _more(source: Source, products: int) -> None:
    goal = len(source.acknowledged) + products
    wait_for(f"{products} more products", lambda: len(source.acknowledged) >= goal, 60)


def _lacks(site: SiteNode, source: Source) -> set[int]:
    wanted = set(source.acknowledged)
    return wanted - {sequence for _, sequence in site.received()}


def _waiting(hub: WholeHub) -> int:
    return len(list((hub.directory / "data" / "batches").glob("*.json")))


def _is_said(hub: WholeHub) -> None:
    """The hub is well without its ledger, says what is wrong, and refuses what would need it."""
    wait_for("a word about it", lambda: "products are taken in and sent meanwhile" in hub.log())
    assert hub.is_well()
    refused = hub.answer("POST", "/v1/feeds", json={"feed": "OTHER", "class": "grid"})
    assert (refused.status_code, refused.json()["code"]) in ((503, "ledger-away"), (201, None)), refused.text
    assert "start the server" in refused.json()["detail"]


def _counted_once(url: str, products: int) -> None:
    def counted() -> tuple[int, int, int]:
        ledger = Ledger.look_into(url)
        with ledger.transaction(writes=False) as book:
            stored = sum(report.stored for report in book.settled.all())
            timed = sum(row.count for row in book.latency.rows(kind=LatencyKind.DISTRIBUTION))
            arrived = sum(minute.products for minute in book.traffic.minutes())
        ledger.close()
        return stored, timed, arrived

    wait_for("all receipts to be counted", lambda: counted()[0] >= products)
    wait_for("all arrivals to be counted", lambda: counted()[2] >= products)
    assert counted() == (products, products, products)
