"""PostgreSQL killed and restarted under a hub: products continue, and every receipt is counted once."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.node import SiteNode
from kit.patience import wait_for
from kit.postgres import Postgres, postgres
from kit.steady_source import Source, counted_once, enrolled
from kit.whole_hub import WholeHub

pytestmark = [pytest.mark.system]


@pytest.fixture
def server() -> Iterator[Postgres]:
    with postgres() as started:
        yield started


def test_nothing_is_lost_or_counted_twice_while_postgresql_is_killed(tmp_path: Path, server: Postgres) -> None:
    name = server.database()
    hub = WholeHub(tmp_path / "hub", ledger_url=server.url(name)).start()
    assert not (hub.directory / "data" / "ledger.sqlite").exists()
    site = enrolled(hub, tmp_path)
    source = Source(hub)
    source.start()
    for pause_s in (0.0, 4.0, 14.0):
        source.more(30)
        _without_a_server(hub, server, source, site, pause_s=pause_s)
    source.more(30)
    source.finish()
    wait_for("all products at the site", lambda: source.lacking_at(site) == set())
    assert {key[1]: digest for key, (_, digest) in site.received().items()} == source.acknowledged
    counted_once(server.url(name), len(source.acknowledged))
    assert "the ledger is back after" in hub.log()
    site.stop()
    assert hub.stop() == 0
    counted_once(server.url(name), len(source.acknowledged))


def test_a_second_hub_on_the_same_ledger_ends_with_one_sentence(tmp_path: Path, server: Postgres) -> None:
    url = server.url(server.database())
    first = WholeHub(tmp_path / "first", ledger_url=url).start()
    second = WholeHub(tmp_path / "second", ledger_url=url)
    with pytest.raises(AssertionError, match=r"another hub .* holds the ledger"):
        second.start(seconds=0)
    assert first.is_well()
    assert first.stop() == 0
    assert second.start().stop() == 0


def _without_a_server(hub: WholeHub, server: Postgres, source: Source, site: SiteNode, *, pause_s: float) -> None:
    server.kill()
    killed = time.monotonic()
    source.more(30)
    wait_for("products to reach the site without a ledger", lambda: source.lacking_at(site) == set())
    if pause_s:
        _is_said(hub)
    wait_for("the end of the pause", lambda: time.monotonic() - killed >= pause_s, 60)
    server.start()
    up = time.monotonic()
    wait_for("all batches to be loaded", lambda: _waiting(hub) <= 1, 60)
    print(f"away for {up - killed:.1f} s; all receipts in the ledger {time.monotonic() - up:.1f} s after its start")


def _waiting(hub: WholeHub) -> int:
    return len(list((hub.directory / "data" / "batches").glob("*.json")))


def _is_said(hub: WholeHub) -> None:
    """The hub works without its ledger, names it as the fault, and refuses requests that would need it."""
    wait_for("a word about it", lambda: "products are still received and sent" in hub.log())
    assert hub.answer("GET", "/readyz").is_success
    wait_for("health to name the ledger", lambda: "ledger" in hub.answer("GET", "/healthz").json().get("detail", ""))
    refused = hub.answer("POST", "/v1/feeds", json={"feed": "OTHER", "class": "grid"})
    assert (refused.status_code, refused.json()["code"]) == (503, "ledger-away"), refused.text
    assert "start the server" in refused.json()["detail"]
