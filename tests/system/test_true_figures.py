"""Every figure that the page and the api show is compared with the sites' own logs.

The truth is read from the product logs of the sites, with the stamps in them, and from that of the hub, which drops
old bytes. The figures are read where people read them: from the api, the metrics, the command line and the page.
"""

import json
import math
import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from downburst.sketches.sketch import GAMMA, rank_of
from kit.capabilities import needs
from kit.node import SiteNode, node_binary
from kit.page_hub import Hub, figure, go, open_row
from kit.patience import wait_for

pytestmark = [pytest.mark.system, pytest.mark.browser]

FEED, SHORT = "NGRID", "WARN"
PRODUCTS = 19
"""So few that the p99 is the worst."""
MISSED = 43
KEPT_BYTES = 2_000_000
RESOLUTION = GAMMA - 1
"""Of a quantile, relative: a bucket of the sketch."""


@dataclass(frozen=True)
class _Stored:
    """A product as a log has it."""

    size: int
    at_us: int


@dataclass
class Place:
    """A hub with three sites: one has everything, one takes a part and was away, one was away for too long."""

    hub: Hub
    sites: dict[str, SiteNode]
    sizes: dict[str, dict[str, int]] = field(default_factory=dict)
    """By feed and product its bytes."""

    def put(self, feed: str, product_id: str, size: int) -> None:
        self.hub.put(feed, product_id, _content(product_id, size))
        self.sizes.setdefault(feed, {})[product_id] = size

    def site(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.hub.client.get(f"/v1/sites/{name}").json()
        return found

    def wait_state(self, name: str, state: str) -> None:
        wait_for(f"{name} to be {state}", lambda: self.site(name)["state"] == state, 60)

    def wait_backlog(self, name: str, products: int, lost: int = 0) -> dict[str, Any]:
        """Waits until the hub reports it; fails with the current value of a figure that does not reach it."""

        def shown() -> bool:
            found = self.site(name)
            return (found["behind_products"], found["lost_products"]) == (products, lost)

        try:
            wait_for(f"a backlog of {products} and a loss of {lost} at {name}", shown, 45)
        except AssertionError as error:
            raise AssertionError(f"{error}; it is {self.site(name)['backlog']}") from None
        return self.site(name)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    needs("chromium")
    with Hub(tmp_path / "hub") as hub:
        hub.post("feeds", feed=FEED, **{"class": "grid"})
        hub.post("feeds", feed=SHORT, retention_bytes=KEPT_BYTES, **{"class": "warning"})
        sites = {}
        for name, feeds in (("whole", [(FEED, ".*")]), ("part", [(FEED, "^a/")]), ("late", [(SHORT, ".*")])):
            hub.post("sites", site=name)
            for feed, pattern in feeds:
                hub.post(f"sites/{name}/subscriptions", feed=feed, pattern=pattern)
            sites[name] = SiteNode(tmp_path / name, hub.sites)
        hub.post("sites", site="absent")
        hub.post("sites/absent/subscriptions", feed=FEED)
        try:
            yield Place(hub, sites)
        finally:
            for site in sites.values():
                if hasattr(site, "process"):
                    site.stop()


def enrol(place: Place, name: str) -> None:
    site = place.sites[name]
    site.directory.mkdir(parents=True, exist_ok=True)
    site.token_file.write_text(place.hub.post(f"sites/{name}/tokens")["token"])
    site.start()
    place.wait_state(name, "connected")
    wait_for(f"the clock of {name}", lambda: _overview_of(place, name)["clock_bound_ms"] is not None, 60)


def test_every_figure_is_what_the_sites_logs_say(place: Place, page: Page) -> None:
    hub = place.hub
    assert (place.site("absent")["state"], place.site("absent")["state_words"]) == (
        "never-enrolled",
        "never enrolled",
    )
    for name in place.sites:
        enrol(place, name)
    for number in range(PRODUCTS):
        place.put(FEED, f"{'ab'[number % 2]}/{number}", 1_000 + 977 * number)
    place.put(SHORT, "first", 500)
    place.sites["late"].wait_received(1)
    place.sites["whole"].wait_received(PRODUCTS)
    place.sites["part"].wait_received(10)
    wait_for("the first receipts", lambda: _row(place, "whole")["count"] == PRODUCTS, 60)
    page.goto(hub.command("login", "--link").stdout.strip())
    page.get_by_role("button", name="Sign in").click()
    go(page, "Sites")

    _a_clean_end_is_one(place, page)
    _backlogs(place, page)
    _losses(place, page)
    _latencies(place, page)
    _volumes(place, page)


def _a_clean_end_is_one(place: Place, page: Page) -> None:
    for name in ("part", "late"):
        place.sites[name].stop()
        place.wait_state(name, "away")
        seen = place.site(name)
        assert seen["reason"] == "ended by the site"
        assert seen["state_words"].startswith("away since 2")
        assert seen["behind_products"] == 0
    place.sites["whole"].kill()
    place.wait_state("whole", "away")
    assert "was cut" in place.site("whole")["reason"]
    assert "://" not in place.site("whole")["reason"]
    place.sites["whole"].start()
    place.wait_state("whole", "connected")
    wait_for("the clock of whole", lambda: _overview_of(place, "whole")["clock_bound_ms"] is not None, 60)
    for shown in (place.hub.command("status").stdout, place.hub.command("sites", "list").stdout):
        assert "never enrolled" in shown
        assert "ended by the" in shown
    expect(page.get_by_test_id("site absent")).to_contain_text("never enrolled")


def _backlogs(place: Place, page: Page) -> None:
    """A site's backlog during its absence equals what it receives after its return, in products and bytes."""
    hub, before = place.hub, _stored(place.sites["part"].directory, FEED)
    for number in range(MISSED):
        place.put(FEED, f"{'ab'[number % 2]}/missed {number}", 2_000 + 31 * number)
    wanted = {name: size for name, size in place.sizes[FEED].items() if name.startswith("a/missed")}
    seen = place.wait_backlog("part", len(wanted))
    assert seen["behind_bytes"] == sum(wanted.values())
    place.wait_backlog("whole", 0)
    # A site that never connected begins at the log's end.
    assert place.site("absent")["behind_products"] == 0
    overview = _overview_of(place, "part")
    assert {name: overview[name] for name in ("behind_products", "behind_bytes")} == {
        "behind_products": len(wanted),
        "behind_bytes": sum(wanted.values()),
    }
    assert f'downburst_pending_products{{site="part"}} {len(wanted)}\n' in hub.client.get("/metrics").text
    size = f"{sum(wanted.values()) / 1000:.1f} kB"
    expect(page.get_by_test_id("site part").locator("[data-label='Behind by']")).to_have_text(
        f"{len(wanted)}, {size}"
    )
    expect(figure(open_row(page, "Sites", "part"), "Behind by")).to_contain_text(
        re.compile(rf"{len(wanted)} products, {re.escape(size)}, the oldest \d+ s old")
    )
    # The backlog survives a restart of the hub's node.
    hub.stop()
    hub.start()
    place.wait_backlog("part", len(wanted))
    place.sites["part"].start()
    place.wait_backlog("part", 0)
    received = {name: one for name, one in _stored(place.sites["part"].directory, FEED).items() if name not in before}
    assert {name: one.size for name, one in received.items()} == wanted


def _losses(place: Place, page: Page) -> None:
    """Products that left the hub's log before a site had them are losses, and no backlog."""
    for number in range(60):
        place.put(SHORT, f"lost {number}", 100_000)

    def settled() -> bool:
        found = place.site("late")
        return bool(found["lost_products"]) and found["behind_products"] + found["lost_products"] == 60

    wait_for("a part of the feed to leave the log", settled, 60)
    wait_for(
        "the log to keep what it keeps", lambda: _kept(place, SHORT) == place.site("late")["behind_products"], 60
    )
    seen = place.site("late")
    assert seen["behind_bytes"] == 100_000 * seen["behind_products"]
    assert seen["lost_bytes"] == 100_000 * seen["lost_products"]
    page.reload()
    expect(figure(open_row(page, "Sites", "late"), "Behind by")).to_contain_text(
        f"lost {seen['lost_products']} products"
    )
    before = _stored(place.sites["late"].directory, SHORT)
    place.sites["late"].start()
    place.wait_backlog("late", 0)
    received = [name for name in _stored(place.sites["late"].directory, SHORT) if name not in before]
    assert len(received) == seen["behind_products"]


def _latencies(place: Place, page: Page) -> None:
    """Count and quantiles are those of the receipts, whose stamps agree with both logs."""
    at_hub, at_site = _stored(place.hub.data_dir, FEED), _stored(place.sites["whole"].directory, FEED)
    assert at_site.keys() == place.sizes[FEED].keys()
    exact_ms = sorted(_took_ms(_receipt(place, name), at_hub[name], at_site[name]) for name in at_site)
    wait_for("all receipts", lambda: _row(place, "whole")["count"] >= len(exact_ms), 60)
    row = _row(place, "whole")
    assert row["count"] == len(exact_ms)
    for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("max", 1.0)):
        wanted_ms = exact_ms[rank_of(share, len(exact_ms)) - 1]
        assert row[name] == pytest.approx(wanted_ms, rel=RESOLUTION, abs=0.002), name
    said = place.hub.command("latency", "--feed", FEED, "--site", "whole", "--json")
    by_command = [one for one in json.loads(said.stdout) if one["kind"] == "distribution"]
    # A row for each transport; the worst of all rows is the worst of one.
    assert sum(one["count"] for one in by_command) == row["count"]
    assert max(one["p99"] for one in by_command) == row["p99"]
    page.goto(f"{place.hub.url}#/latency?site=whole&feed={FEED}")
    figures = page.get_by_test_id(f"line {FEED}@whole")
    expect(figures.locator("[data-label=products]")).to_have_text(str(row["count"]))
    for name in ("p50", "p95", "p99", "max"):
        expect(figures.locator(f"[data-label={name}]")).to_contain_text(_latency_text(row[name]))
    delivered = len(at_site)
    wait_for("the receipts of all", lambda: _overview_of(place, "whole")["stored"] >= delivered, 60)
    assert _overview_of(place, "whole")["stored"] == delivered
    page.goto(f"{place.hub.url}#/sites/whole")
    expect(page.get_by_test_id("one site")).to_contain_text(re.compile(rf"{delivered} products"))


def _took_ms(receipt: dict[str, Any], at_hub: _Stored, at_site: _Stored) -> float:
    """The latency of a product by its receipt, whose stamps are checked against those of both logs.

    A log stamps a product before it writes it; the site reports it once it is written. Both have the same clock here.
    """
    last_byte_us, stored_us = (_us_of(receipt[name]) for name in ("last_byte_at", "site_stored_at"))
    assert last_byte_us <= at_site.at_us <= stored_us
    offset_us, bound_us = receipt["clock_offset_us"], receipt["clock_bound_us"]
    assert abs(offset_us) <= bound_us + 1
    return float(stored_us - offset_us - at_hub.at_us) / 1000


def _volumes(place: Place, page: Page) -> None:
    """The incoming volume equals the volume put; no average lies above its maximum, on a hub that is minutes old."""
    found = place.hub.client.get("/v1/volume").json()
    assert found["hours_seen"] < 1
    assert {row["feed"]: (row["products"], row["bytes"]) for row in found["feeds"]} == {
        feed: (len(sizes), sum(sizes.values())) for feed, sizes in place.sizes.items()
    }
    for row in found["feeds"]:
        assert row["mean_bytes_per_hour"] <= row["max_bytes_per_hour"] * (1 + 1e-9)
    page.goto(f"{place.hub.url}#/volume")
    volume = page.get_by_test_id("volume")
    since = datetime.fromisoformat(found["since"])
    expect(volume).to_contain_text(f"Since {since:%Y-%m-%d %H:%M} UTC")
    history = place.hub.client.get("/v1/volume/history", params={"feed": FEED, "minutes": 60}).json()
    begin, end = (datetime.fromisoformat(history[name]) for name in ("from", "to"))
    assert (end - begin).total_seconds() == 3_600


def _stored(directory: Path, feed: str) -> dict[str, _Stored]:
    """The products of a feed's log by their ids: `20260131T120000.250000Z 1234 ... NGRID 001  a/1`."""
    lines = _log_tool("tail", directory, "-n", "1000").splitlines()
    split = (line.split(maxsplit=5) for line in lines)
    found = ((one[5], one[3], _Stored(int(one[1]), _us(one[0]))) for one in split)
    return {product_id: stored for product_id, of, stored in found if of == feed}


def _us(text: str) -> int:
    return _us_of(datetime.strptime(text, "%Y%m%dT%H%M%S.%fZ").replace(tzinfo=UTC).isoformat())


def _us_of(text: str) -> int:
    return (datetime.fromisoformat(text) - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)


def _receipt(place: Place, product: str) -> dict[str, Any]:
    """The raw receipt of a product from the site that has everything."""

    def found() -> dict[str, Any] | None:
        asked = {"product": product, "feed": FEED, "site": "whole"}
        (traced,) = place.hub.client.get("/v1/products/trace", params=asked).json()["products"]
        return next((one["receipt"] for one in traced["deliveries"]), None)

    return wait_for(f"the receipt of {product}", found)


def _kept(place: Place, feed: str) -> int:
    """The number of products of the feed whose bytes the hub's log still has."""
    stats = json.loads(_log_tool("stat", place.hub.data_dir, "--json"))
    return int(next(one["products"] for one in stats if one["feed"] == feed))


def _log_tool(*arguments: object) -> str:
    argv = [node_binary(), "log", *map(str, arguments)]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _overview_of(place: Place, name: str) -> dict[str, Any]:
    sites: Iterable[dict[str, Any]] = place.hub.client.get("/v1/overview").json()["sites"]
    return next(one for one in sites if one["site"] == name)


def _row(place: Place, name: str) -> dict[str, Any]:
    """The figures of all transports together, as the page requests them."""
    asked = {"feed": FEED, "site": name, "kind": "distribution", "minutes": "60"}
    found: dict[str, Any] = place.hub.client.get("/v1/latency/histogram", params=asked).json()["figures"]
    return found


def _latency_text(ms: float) -> str:
    size = abs(ms)
    if size >= 1_000:
        return f"{ms / 1000:.{1 if size >= 10_000 else 2}f} s"
    return f"{ms:.{0 if size >= 100 else 1 if size >= 1 else 2}f} ms"


def _content(product_id: str, size: int) -> bytes:
    return (product_id.encode() * math.ceil(size / len(product_id)))[:size]
