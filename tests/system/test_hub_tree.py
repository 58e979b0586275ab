"""A hub that is a site of another hub: products keep their identity, pass once, and never in a circle."""

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest

from downburst.foundation.file_names import decode
from kit.node import HubNode, Line, SiteNode
from kit.patience import wait_for

pytestmark = pytest.mark.system

FEED = "NGRID"
ALL: Line = {"feed": FEED, "pattern": ".*", "not_pattern": None}


class Tree:
    """Hubs and sites by name, ended after the test."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.hubs: dict[str, HubNode] = {}
        self.sites: dict[str, SiteNode] = {}
        self.upstreams: dict[str, list[Line]] = {}

    def hub(self, name: str, *, feed: bool = True) -> HubNode:
        """Starts a hub."""
        hub = HubNode(self.directory / name, name=name).start()
        if feed:
            hub.feed(FEED)
        self.hubs[name] = hub
        return hub

    def site(self, name: str, hub: HubNode) -> SiteNode:
        """Starts a site of a hub."""
        site = SiteNode(self.directory / name, hub.address)
        hub.site(name, ALL, token_file=site.token_file)
        self.sites[name] = site.start()
        return site

    def feed_from(self, lower: HubNode, upper: HubNode) -> None:
        """Makes one hub a site of another."""
        token = upper.site(f"hub-{lower.name}", ALL)
        lines = self.upstreams.setdefault(lower.name, [])
        lines.append({"upstream": upper.name, "address": upper.address, "token": token, "feeds": []})
        self.tell(lower)

    def tell(self, hub: HubNode) -> None:
        """Sends a hub its upstreams, as its agent does after each start."""
        hub.do("upstreams", upstreams=self.upstreams[hub.name])

    def end(self) -> None:
        """Ends everything."""
        for site in self.sites.values():
            site.stop()
        for hub in self.hubs.values():
            if hub.process.poll() is None:
                hub.stop()


def held(site: SiteNode) -> Counter[tuple[str, str]]:
    """Identifier and digest of every file of a site."""
    root = site.directory / "received"
    found = (path for path in list(root.rglob("*")) if path.is_file())
    return Counter(
        (decode(str(path.relative_to(root))).product_id, sha256(path.read_bytes()).hexdigest()) for path in found
    )


def upstream(hub: HubNode) -> Line:
    """A hub's status of its only upstream."""
    found: Line = hub.do("status")["upstreams"][0]
    return found


def has_refused(hub: HubNode) -> bool:
    """True if the hub refused a product that had passed it before."""
    return bool(upstream(hub)["looped"] >= 1)


def has_products(hub: HubNode, count: int) -> bool:
    """True if the hub's feed holds this number of products."""
    return bool(hub.do("status")["feeds"][0]["products"] == count)


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Tree]:
    """No hubs yet."""
    made = Tree(tmp_path)
    yield made
    made.end()


def test_products_reach_the_sites_of_a_lower_hub_once_though_it_is_killed(tree: Tree) -> None:
    top, middle = tree.hub("top"), tree.hub("middle")
    tree.feed_from(middle, top)
    sites = [tree.site(name, middle) for name in ("one", "two", "three")]
    middle.wait_connected("one", "two", "three")
    top.wait_connected("hub-middle")
    due: Counter[tuple[str, str]] = Counter()
    source, stopped = random.Random(5), threading.Event()

    def grown(goal: int) -> bool:
        return len(due) >= goal

    def has_all(site: SiteNode) -> bool:
        return len(held(site)) >= len(due)

    def play() -> None:
        while not stopped.is_set():
            content = source.randbytes(1 + int(100_000 * source.random() ** 4))
            name = f"product {len(due)}"
            top.put(FEED, name, content, created_us=1_000_000 + len(due))
            due[name, sha256(content).hexdigest()] += 1
            time.sleep(0.005)

    player = threading.Thread(target=play, daemon=True)
    player.start()
    for _ in range(2):
        goal = len(due) + 60
        wait_for("more products", partial(grown, goal))
        middle.kill()
        time.sleep(0.5)
        middle.start()
        tree.tell(middle)
    goal = len(due) + 60
    wait_for("more products", lambda: len(due) >= goal)
    stopped.set()
    player.join(timeout=30)
    for site in sites:
        with suppress(AssertionError):
            wait_for("all products", partial(has_all, site), 60)
        found = held(site)
        assert found == due, f"lost {list(due - found)[:5]}, doubled or foreign {list(found - due)[:5]}"
    assert upstream(middle)["connected"]


def test_a_circle_of_hubs_is_said_and_nothing_goes_round(tree: Tree) -> None:
    left, right = tree.hub("left"), tree.hub("right")
    tree.feed_from(right, left)
    tree.feed_from(left, right)
    left.wait_connected("hub-right")
    right.wait_connected("hub-left")
    left.put(FEED, "from the left", b"one")
    right.put(FEED, "from the right", b"two")
    # An empty product has no duplicate key: only its path prevents an endless loop.
    left.put(FEED, "nothing", b"")
    for hub in (left, right):
        wait_for("a refused product", partial(has_refused, hub))
        wait_for("all products", partial(has_products, hub, 3))
        hub.wait_told("circle")
    time.sleep(1)
    assert [hub.do("status")["feeds"][0]["products"] for hub in (left, right)] == [3, 3]


def test_what_a_hub_does_not_carry_is_passed_over_and_said(tree: Tree) -> None:
    top, bottom = tree.hub("top"), tree.hub("bottom", feed=False)
    tree.feed_from(bottom, top)
    top.wait_connected("hub-bottom")
    top.put(FEED, "x", b"x")
    wait_for("a product passed over", lambda: upstream(bottom)["passed_over"] == 1)
    bottom.wait_told("downburst feeds add NGRID")
    bottom.feed(FEED)
    top.put(FEED, "y", b"y")
    wait_for("a product stored", lambda: upstream(bottom)["stored"] == 1)


def test_a_hub_can_not_be_its_own_upstream(tree: Tree) -> None:
    alone = tree.hub("alone")
    with pytest.raises(AssertionError, match="this hub itself"):
        tree.feed_from(alone, alone)


def test_two_upstreams_bring_the_same_product_once(tree: Tree) -> None:
    uppers = [tree.hub(name) for name in ("east", "west")]
    bottom = tree.hub("bottom")
    for upper in uppers:
        tree.feed_from(bottom, upper)
        upper.wait_connected("hub-bottom")
    for count in range(20):
        for upper in uppers:
            upper.put(FEED, f"product {count}", f"content {count}".encode())
    bottom.put(FEED, "product 0", b"content 0")
    for upper in uppers:
        assert upper.drained()
    assert bottom.do("status")["feeds"][0]["products"] == 20
