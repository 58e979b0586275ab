"""A site with two hubs takes each product once, from whichever hub, and changes hubs within ten seconds."""

import json
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import pytest

from downburst.foundation.file_names import decode
from kit import running
from kit.node import HubNode, Line, NodeError, SiteNode, node_binary
from kit.patience import wait_for

pytestmark = pytest.mark.system


class Pair:
    """Two hubs that ingest the same products, the second one later or earlier, and a site on both."""

    def __init__(self, directory: Path) -> None:
        self.hubs = [HubNode(directory / name, name=name).start() for name in ("north", "south")]
        for hub in self.hubs:
            hub.feed("NGRID")
        self.site = SiteNode(directory / "site", "")
        self.products: list[tuple[str, bytes]] = []

    def join(self, *arguments: str) -> None:
        """Starts the site, the northern hub preferred."""
        given: list[str] = []
        for hub in self.hubs:
            token = self.site.directory / f"token-{hub.name}"
            hub.site("one", {"feed": "NGRID", "pattern": ".*", "not_pattern": None}, token_file=token)
            given += ["--hub", hub.address, "--token-file", str(token)]
        (self.site.directory / "state" / "control.sock").unlink(missing_ok=True)
        with (self.site.directory / "site.log").open("ab") as log:
            argv = [node_binary(), "--log-format", "plain", "receive", "--dir", str(self.site.directory)]
            self.site.process = subprocess.Popen([*argv, *given, *arguments], stderr=log)
        running.note(self.site.process)
        wait_for("control socket", (self.site.directory / "state" / "control.sock").exists)
        self.wait_state("north", "serves")
        self.wait_state("south", "stands by")
        self.site.wait_begun("NGRID")

    def control(self, *request: str) -> list[Line]:
        """Queries the running site; returns its hubs."""
        argv = [node_binary(), "site-control", "--dir", str(self.site.directory), "--json", *request]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode == 0, done.stderr
        hubs: list[Line] = json.loads(done.stdout)["hubs"]
        return hubs

    def wait_state(self, name: str, state: str, seconds: float = 30.0) -> None:
        """Waits until the site reports this state of a hub."""

        def says() -> bool:
            return any(hub["name"] == name and hub["state"] == state for hub in self.control("status"))

        wait_for(f"{name} that {state}", says, seconds)

    def held(self) -> Counter[tuple[str, str]]:
        """Identifier and digest of every file at the site, with the number of copies."""
        return Counter((name, digest) for name, digest in files(self.site))

    def due(self) -> Counter[tuple[str, str]]:
        """The files that should be there."""
        return Counter((name, sha256(content).hexdigest()) for name, content in self.products)

    def wait_complete(self, seconds: float = 60.0) -> None:
        """Waits until nothing is missing; fails on duplicates."""
        with suppress(AssertionError):
            wait_for("all products", lambda: len(self.held()) >= len(self.products), seconds)
        held, due = self.held(), self.due()
        assert held == due, f"lost {list(due - held)[:5]}, doubled or foreign {list(held - due)[:5]}"

    def end(self) -> None:
        """Ends everything."""
        if hasattr(self.site, "process"):
            self.site.stop()
        for hub in self.hubs:
            with suppress(ProcessLookupError):
                hub.process.send_signal(signal.SIGCONT)
            if hub.process.poll() is None:
                hub.stop()


class Source:
    """Plays one stream of products into both hubs; the southern one is fed `lag` seconds later."""

    def __init__(self, pair: Pair, seed: int, lag: float) -> None:
        self.pair, self.lag = pair, lag
        self.random = random.Random(seed)
        self.stopped = threading.Event()
        self.count = 0
        self.acknowledged = [0, 0]
        self.stream: list[tuple[float, str, bytes]] = []
        self.threads = [threading.Thread(target=self._feed, args=(at,), daemon=True) for at in range(2)]
        self.maker = threading.Thread(target=self._make, daemon=True)

    def start(self) -> "Source":
        for thread in [self.maker, *self.threads]:
            thread.start()
        return self

    def wait_for_more(self, products: int) -> None:
        goal = self.count + products
        wait_for(f"{products} more products", lambda: self.count >= goal, 60)

    def finish(self) -> None:
        """Ends the stream; both hubs get all of it."""
        self.stopped.set()
        self.maker.join(timeout=30)
        for thread in self.threads:
            thread.join(timeout=60)
        assert self.acknowledged == [self.count, self.count]

    def _make(self) -> None:
        while not self.stopped.is_set():
            content = self.random.randbytes(1 + int(200_000 * self.random.random() ** 4))
            product = (f"product {self.count}", content)
            self.pair.products.append(product)
            self.stream.append((time.monotonic(), *product))
            self.count += 1
            time.sleep(0.005)

    def _feed(self, at: int) -> None:
        hub, lag = self.pair.hubs[at], self.lag if at else 0.0
        while self.acknowledged[at] < self.count or not self.stopped.is_set():
            if self.acknowledged[at] >= len(self.stream):
                time.sleep(0.002)
                continue
            made, name, content = self.stream[self.acknowledged[at]]
            time.sleep(max(0.0, made + lag - time.monotonic()))
            try:
                hub.put("NGRID", name, content)
            except (NodeError, OSError, ValueError, KeyError):
                # A source retries until the hub has taken the product; a repeat is a duplicate there.
                time.sleep(0.05)
                continue
            self.acknowledged[at] += 1


def files(site: SiteNode) -> Iterator[tuple[str, str]]:
    """Identifier and digest of every file of a site, from its names and bytes."""
    root = site.directory / "received"
    for path in list(root.rglob("*")):
        if path.is_file():
            yield decode(str(path.relative_to(root))).product_id, sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """Two hubs without agents."""
    hubs = Pair(tmp_path)
    yield hubs
    hubs.end()


@pytest.mark.parametrize("lag", [0.0, 2.0])
def test_killing_the_preferred_hub_under_load_loses_and_doubles_nothing(pair: Pair, lag: float) -> None:
    pair.join("--return-after", "2")
    source = Source(pair, seed=11, lag=lag).start()
    north = pair.hubs[0]
    longest = 0.0
    for _ in range(2):
        source.wait_for_more(100)
        killed = time.monotonic()
        north.kill()
        pair.wait_state("south", "serves", 10)
        longest = max(longest, time.monotonic() - killed)
        source.wait_for_more(100)
        north.start()
        north.feed("NGRID")
        pair.wait_state("north", "serves", 30)
        source.wait_for_more(50)
    source.finish()
    print(f"the other hub served {longest:.1f} s after the kill, at most")
    assert longest <= 10
    pair.wait_complete()
    assert pair.site.stop() == 0


def test_a_person_chooses_the_hub(pair: Pair) -> None:
    pair.join("--return-after", "3600")
    source = Source(pair, seed=12, lag=0.5).start()
    source.wait_for_more(50)
    chosen = time.monotonic()
    pair.control("prefer", "south")
    pair.wait_state("south", "serves", 10)
    pair.wait_state("north", "stands by", 10)
    print(f"by hand the other hub served after {time.monotonic() - chosen:.1f} s")
    source.wait_for_more(50)
    pair.control("prefer", "north")
    pair.wait_state("north", "serves", 10)
    source.wait_for_more(50)
    source.finish()
    pair.wait_complete()
    assert pair.site.stop() == 0


def test_a_site_that_is_killed_while_it_changes_hubs_loses_and_doubles_nothing(pair: Pair) -> None:
    pair.join("--return-after", "1")
    source = Source(pair, seed=13, lag=1.0).start()
    source.wait_for_more(50)
    pair.control("prefer", "south")
    pair.site.kill()
    source.wait_for_more(50)
    pair.join("--return-after", "1")
    source.wait_for_more(50)
    source.finish()
    pair.wait_complete()
    assert pair.site.stop() == 0


def test_a_hub_that_stands_still_is_left(pair: Pair) -> None:
    pair.join("--return-after", "3600")
    source = Source(pair, seed=14, lag=0.5).start()
    source.wait_for_more(50)
    # The northern source waits with its hub; the southern one continues.
    stopped = time.monotonic()
    pair.hubs[0].process.send_signal(signal.SIGSTOP)
    pair.wait_state("south", "serves", 30)
    left_after = time.monotonic() - stopped
    print(f"a silent hub was left after {left_after:.1f} s")
    assert left_after <= 10
    source.wait_for_more(50)
    pair.hubs[0].process.send_signal(signal.SIGCONT)
    pair.wait_state("north", "stands by", 30)
    source.finish()
    pair.wait_complete()
    assert pair.site.stop() == 0
