"""A story of crashes: sources that repeat unacknowledged products, sites that come back, and `kill -9` in between.

Two sources feed every feed concurrently with the same products. A source repeats a product until it is acknowledged,
and notes each acknowledgement. In the end every named sequence must be, at every site that subscribes to it, the
product that it was named for, once; no number may name two products, and no product of a feed that drops duplicates
may have two numbers.
"""

import hashlib
import random
import re
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import httpx

from downburst.foundation.file_names import ReceivedName, decode
from kit.node import SiteNode, node_binary
from kit.patience import wait_for
from kit.postgres import Postgres
from kit.whole_hub import WholeHub


@dataclass(frozen=True)
class FeedOfStory:
    """A feed and the difference between its sources: some rules take products with different bytes for duplicates."""

    name: str
    feed_class: str
    duplicate_rule: str

    def variants(self, seed: int, number: int) -> tuple[bytes, bytes]:
        """The bytes of product `number` from the first and from the second source."""
        chance = random.Random(f"{seed} {self.name} {number}")
        # No two products have the same bytes; only the feed without a rule has empty ones, never duplicates.
        content = b"%d " % number + chance.randbytes(int(200_000 * chance.random() ** 5))
        if self.duplicate_rule == "none" and number % 7 == 0:
            content = b""
        match self.duplicate_rule:
            case "content-without-wmo-start":
                text = b"SAUS70 KWBC 211200\r\r\n" + content
                first, second = (b"\x01\r\r\n%03d \r\r\n" % line + text for line in (number % 900, 999))
                return first, second
            case "id":
                return content, content + b" as the other source has it"
            case _:
                return content, content


@dataclass(frozen=True)
class Acknowledged:
    """The hub's answer to one product."""

    feed: str
    number: int
    """The number of the product at its sources."""
    epoch: str
    sequence: int
    is_duplicate: bool


FEEDS = (
    FeedOfStory("NGRID", "grid", "id-and-content"),
    FeedOfStory("IDS|DDPLUS", "observation", "content-without-wmo-start"),
    FeedOfStory("WARN", "warning", "id"),
    FeedOfStory("RAW", "bulk", "none"),
)
SITES = {
    "all.example": {feed.name: ".*" for feed in FEEDS},
    "some.example": {"NGRID": "[13579]$", "WARN": ".*"},
    "text.example": {"IDS|DDPLUS": ".*", "RAW": "[0-4]$"},
}


class Source(threading.Thread):
    """Puts product after product into one feed, each until it is acknowledged."""

    def __init__(self, story: "CrashStory", feed: FeedOfStory, side: int) -> None:
        super().__init__(name=f"{feed.name} {side}", daemon=True)
        self.story, self.feed, self.side = story, feed, side
        self.acknowledged: list[Acknowledged] = []
        self.over = threading.Event()

    def run(self) -> None:
        """Runs until the end is signalled; completes the current product first."""
        number = 0
        url, authorization = f"http://{self.story.hub.http}", self.story.hub.authorization
        with httpx.Client(base_url=url, timeout=30, headers=authorization) as client:
            while not self.over.is_set():
                number += 1
                self.acknowledged.append(self._put(client, number))
                # Two sources of a feed run side by side, so that they meet in the hub.
                self.over.wait(0.01)

    def _put(self, client: httpx.Client, number: int) -> Acknowledged:
        content = self.feed.variants(self.story.seed, number)[self.side]
        path = f"/v1/feeds/{quote(self.feed.name, safe='')}/products/{quote(product_id(number), safe='')}"
        while True:
            with suppress(httpx.TransportError):
                answer = client.put(path, content=content)
                if answer.is_success:
                    said = answer.json()
                    sequence = said["sequence"] if said["stored"] else said["duplicate_of"]
                    epoch = str(said.get("epoch", ""))
                    return Acknowledged(self.feed.name, number, epoch, int(sequence), not said["stored"])
            time.sleep(0.05)


@dataclass
class CrashStory:
    """A hub, sites and sources in `home`, and their crashes; the seed determines the whole schedule."""

    home: Path
    seed: int
    server: Postgres | None = None
    """Holds the ledger in the place of a file, and is killed as well."""
    killed: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        network = f"239.78.{self.random.randrange(256)}.0/24"
        ledger_url = self.server.url(self.server.database()) if self.server else ""
        self.hub = WholeHub(self.home / "hub", multicast_network=network, ledger_url=ledger_url)
        self.sites = {name: SiteNode(self.home / name, self.hub.sites) for name in SITES}
        self.sources = [Source(self, feed, side) for feed in FEEDS for side in (0, 1)]

    def tell(self, kills: int) -> list[str]:
        """Runs the whole story; returns the faults at its end, one sentence each."""
        self._begin()
        try:
            for _ in range(kills):
                self._calm()
                self._change_a_plan()
                self._kill_something()
            for source in self.sources:
                source.over.set()
            for source in self.sources:
                source.join(timeout=120)
                assert not source.is_alive(), (
                    f"{source.name} waits for an acknowledgement for ever\n{self.hub.log()[-3000:]}"
                )
            wrong = self._wait_until_all_is_there()
        finally:
            self._end()
        return [*wrong, *self._verdict()]

    def acknowledged(self) -> list[Acknowledged]:
        """All acknowledged products."""
        return [item for source in self.sources for item in list(source.acknowledged)]

    def _begin(self) -> None:
        self.hub.start()
        for feed in FEEDS:
            shape = {"feed": feed.name, "class": feed.feed_class, "duplicate_rule": feed.duplicate_rule}
            self.hub.ask("POST", "/v1/feeds", json=shape)
        for name, wishes in SITES.items():
            self.hub.ask("POST", "/v1/sites", json={"site": name, "multicast_interface": "127.0.0.1"})
            for feed_name, pattern in wishes.items():
                wish = {"feed": feed_name, "pattern": pattern}
                self.hub.ask("POST", f"/v1/sites/{name}/subscriptions", json=wish)
            site = self.sites[name]
            site.directory.mkdir(parents=True)
            site.token_file.write_text(self.hub.ask("POST", f"/v1/sites/{name}/tokens", json={})["token"])
            site.start()
        wait_for("all sites", self._all_have_begun, 60)
        for source in self.sources:
            source.start()

    def _all_have_begun(self) -> bool:
        """A fresh subscription begins at the head, so products wait until each site has a checkpoint of each feed."""
        checkpoints = {name: list((site.directory / "state").rglob("*.cbor")) for name, site in self.sites.items()}
        return all(len(checkpoints[name]) >= len(wishes) for name, wishes in SITES.items())

    def _calm(self) -> None:
        """Waits for some products more, so that a crash meets work in flight."""
        goal = len(self.acknowledged()) + self.random.randrange(4, 60)
        wait_for("products", lambda: len(self.acknowledged()) >= goal, 120)
        time.sleep(self.random.random() * 0.2)

    def _change_a_plan(self) -> None:
        feed = self.random.choice(FEEDS).name
        transport = self.random.choice(["multicast", "unicast"])
        if self.random.random() < 0.5:
            # A restarting hub accepts no requests.
            with suppress(AssertionError, httpx.TransportError):
                self.hub.ask("PUT", f"/v1/feeds/{quote(feed, safe='')}/pin", json={"transport": transport})

    def _kill_something(self) -> None:
        what = self.random.choices(["node", "api", "api and node", *SITES], [6, 2, 1, 3, 2, 2])[0]
        pause = self.random.random() * 0.5
        if self.server is not None and self.random.random() < SHARE_OF_SERVER:
            self._kill_server(self.server, pause)
            what = "server"
        elif what == "node":
            wait_for("a node to kill", self.hub.kill_node, 60)
        elif what in SITES:
            self.sites[what].kill()
            time.sleep(pause)
            self.sites[what].start()
        else:
            if "node" in what:
                self.hub.kill_node()
            self.hub.kill_api()
            self.hub.start()
        self.killed[what if what not in SITES else "site"] += 1

    def _kill_server(self, server: Postgres, pause: float) -> None:
        """Sometimes the node dies while its ledger is away."""
        server.kill()
        time.sleep(pause * 4)
        if self.random.random() < 0.5:
            self.hub.kill_node()
            time.sleep(pause * 2)
        server.start()

    def _wait_until_all_is_there(self) -> list[str]:
        """Waits as long as there is progress: products that a site lacks after a minute without any are missing."""
        wanted = {name: self._wanted(name) for name in SITES}
        lacking = {name: set(keys) for name, keys in wanted.items()}
        progress = time.monotonic()
        while any(lacking.values()) and time.monotonic() < progress + PATIENCE_S:
            now_lacking = {name: wanted[name] - set(self._files(name)) for name in SITES}
            if now_lacking != lacking:
                lacking, progress = now_lacking, time.monotonic()
            time.sleep(0.2)
        return [
            f"{name} lacks {len(keys)} acknowledged products, such as {sorted(keys)[:5]}"
            for name, keys in lacking.items()
            if keys
        ]

    def _end(self) -> None:
        for site in self.sites.values():
            with suppress(AttributeError):
                site.stop()
        if self.hub.process.poll() is None:
            self.hub.stop()

    def _verdict(self) -> list[str]:
        """Permanent faults: numbers given twice, duplicated products, wrong bytes, damaged logs."""
        return [
            *self._numbers_given_twice(),
            *(wrong for name in SITES for wrong in self._wrong_at(name)),
            *(wrong for name in SITES for wrong in self._wrong_in_log_of(name)),
            *self._damage(),
        ]

    def _numbers_given_twice(self) -> Iterator[str]:
        epochs = {(item.feed, item.epoch) for item in self.acknowledged() if item.epoch}
        if len(epochs) > len(FEEDS):
            yield f"a log began anew without need: {sorted(epochs)}"
        given = Counter((item.feed, item.sequence) for item in self.acknowledged() if not item.is_duplicate)
        yield from (f"sequence {key} was given {times} times" for key, times in given.items() if times > 1)
        rules = {feed.name: feed.duplicate_rule for feed in FEEDS}
        numbers: dict[tuple[str, int], set[int]] = {}
        products: dict[tuple[str, int], set[int]] = {}
        for item in self.acknowledged():
            numbers.setdefault((item.feed, item.number), set()).add(item.sequence)
            products.setdefault((item.feed, item.sequence), set()).add(item.number)
        for key, sequences in numbers.items():
            if rules[key[0]] != "none" and len(sequences) > 1:
                yield f"product {key} was stored {len(sequences)} times: {sequences}"
        yield from (f"sequence {key} names products {them}" for key, them in products.items() if len(them) > 1)

    def _wanted(self, site: str) -> set[tuple[str, int]]:
        """Feed and sequence of every acknowledged product that the site subscribes to."""
        wishes = SITES[site]
        return {
            (item.feed, item.sequence)
            for item in self.acknowledged()
            if item.feed in wishes and re.search(wishes[item.feed], product_id(item.number))
        }

    def _wrong_at(self, site: str) -> Iterator[str]:
        """Every file is a product of the sources under the number it was acknowledged with; none is there twice."""
        named = {(item.feed, item.sequence): item.number for item in self.acknowledged()}
        feeds = {feed.name: feed for feed in FEEDS}
        seen: Counter[tuple[str, str]] = Counter()
        for key, (name, path) in self._files(site).items():
            number = int(name.product_id.split()[1])
            digest = hashlib.sha256(path.read_bytes()).digest()
            expected = {hashlib.sha256(content).digest() for content in feeds[key[0]].variants(self.seed, number)}
            if digest not in expected:
                yield f"{site} has other bytes in {path.name}"
            if named.get(key, number) != number:
                yield f"{site} has product {number} as {key}, which was acknowledged as product {named[key]}"
            seen[key[0], name.product_id] += 1
        for (feed, text), times in seen.items():
            if times > 1 and feeds[feed].duplicate_rule != "none":
                yield f"{site} has {text} of {feed} {times} times"

    def _files(self, site: str) -> dict[tuple[str, int], tuple[ReceivedName, Path]]:
        return _products_below(self.sites[site].directory / "received")

    def _wrong_in_log_of(self, site: str) -> Iterator[str]:
        """The site's log holds what its files show: neither more nor less."""
        exported = self.home / f"{site} exported"
        argv = [node_binary(), "log", "export", str(self.sites[site].directory), "--to", str(exported)]
        run = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
        if run.returncode != 0:
            yield f"the log of {site} can't be exported: {run.stderr[-500:]}"
            return
        in_log, in_files = set(_products_below(exported)), set(self._files(site))
        if in_log != in_files:
            yield f"{site} has in its log alone {sorted(in_log - in_files)[:5]}"
            yield f"{site} has as files alone {sorted(in_files - in_log)[:5]}"

    def _damage(self) -> Iterator[str]:
        for directory in (self.hub.directory / "data", *(site.directory for site in self.sites.values())):
            argv = [node_binary(), "log", "verify", str(directory)]
            run = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
            if run.returncode != 0:
                yield f"{directory.name} is damaged: {run.stdout[-1000:]} {run.stderr[-500:]}"


def product_id(number: int) -> str:
    """The id of the sources' product; patterns select by its last digit."""
    return f"product {number} {number % 10}"


def _products_below(directory: Path) -> dict[tuple[str, int], tuple[ReceivedName, Path]]:
    found: dict[tuple[str, int], tuple[ReceivedName, Path]] = {}
    for path in directory.rglob("*"):
        if path.is_file():
            name = decode(path.relative_to(directory).as_posix())
            assert (name.feed, name.sequence) not in found, f"{path} is there under two epochs"
            found[name.feed, name.sequence] = name, path
    return found


SHARE_OF_SERVER = 0.4
PATIENCE_S = 60.0
