"""A disk that turns read-only under a hub or a site: stored products are served, faults reported, and it recovers.

A read-only mount of the directory itself covers it, for the one process only: files that it opens or creates from
then on fail as on a disk that the kernel no longer writes. A file that it holds open is not affected, so products
are put until the log needs another one.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.capabilities import needs
from kit.node import HubNode, NodeError, SiteNode
from kit.patience import wait_for
from kit.read_only import OWN_MOUNTS, read_only

pytestmark = [pytest.mark.system, pytest.mark.root]

PRODUCT = b"x" * 100_000
LIMITS = {"retention_bytes": 8_000_000}
"""An eighth of it is the size of a segment."""
MOST_PRODUCTS = 40


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubNode]:
    needs("root")
    hub = HubNode(tmp_path / "hub", prefix=OWN_MOUNTS).start()
    yield hub
    hub.stop()


@pytest.fixture
def site(hub: HubNode, tmp_path: Path) -> Iterator[SiteNode]:
    hub.feed("NGRID", **LIMITS)
    site = SiteNode(tmp_path / "site", hub.address, prefix=OWN_MOUNTS)
    hub.site("one", {"feed": "NGRID", "pattern": ".*", "not_pattern": None}, token_file=site.token_file)
    site.start()
    hub.wait_connected("one")
    site.wait_begun("NGRID")
    yield site
    site.stop()


def test_a_hub_whose_disk_is_read_only_refuses_products_and_serves_what_it_has(hub: HubNode, site: SiteNode) -> None:
    hub.put("NGRID", "before", b"before")
    assert site.stop() == 0
    with read_only(hub.process.pid, hub.directory / "data" / "log"):
        accepted, refusal = put_until_refused(hub)
        assert refusal.code == "not-writable"
        assert "is read-only" in refusal.sentence
        assert "mount it writable" in refusal.sentence
        site.start()
        site.wait_received(1 + accepted, seconds=60)
    assert "sequence" in hub.put("NGRID", "after", b"after")
    assert hub.drained()
    names = {product_id for product_id, _ in site.wait_received(2 + accepted).values()}
    assert {"before", "after"} <= names
    assert len(names) == 2 + accepted


def test_a_site_whose_disk_is_read_only_says_so_and_takes_up_where_it_was(hub: HubNode, site: SiteNode) -> None:
    hub.put("NGRID", "before", b"before")
    site.wait_received(1)
    with read_only(site.process.pid, site.directory):
        hub.put("NGRID", "large", b"x" * 3_000_000)
        trouble = wait_for("a word of the site's trouble", lambda: trouble_of(hub, "one"))
        assert "is read-only" in trouble
        assert hub.put("NGRID", "meanwhile", b"meanwhile"), "the hub goes on"
        assert site.process.poll() is None
    received = site.wait_received(3, seconds=60)
    assert {product_id for product_id, _ in received.values()} == {"before", "large", "meanwhile"}
    assert hub.drained()
    wait_for("the end of the trouble", lambda: trouble_of(hub, "one") is None)


def put_until_refused(hub: HubNode) -> tuple[int, NodeError]:
    for number in range(MOST_PRODUCTS):
        try:
            hub.put("NGRID", f"product {number}", PRODUCT + b"%d" % number)
        except NodeError as refusal:
            return number, refusal
    raise AssertionError("a log that can't be written takes products for ever")


def trouble_of(hub: HubNode, site: str) -> str | None:
    traffic = hub.events_named("traffic")
    sessions: list[dict[str, Any]] = [session for line in traffic for session in line["sessions"]]
    told = [session["feeds"] for session in sessions if session["site"] == site]
    feeds = told[-1] if told else []
    return next((str(feed["trouble"]) for feed in feeds if feed.get("trouble")), None)
