"""A hub that feeds a hub by LDM-6 over IPv6, through restarts of either: every product once and unchanged."""

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest

from downburst.foundation.file_names import decode
from downburst.recordings.traces import Arrival, parse
from kit.node import HubNode, Line, SiteNode
from kit.patience import wait_for

pytestmark = pytest.mark.system

FEED = "NGRID"
DATA = Path(os.environ.get("DOWNBURST_DATA", Path(__file__).parents[3] / "shared" / "data"))


class Chain:
    """Two hubs with LDM between them, and a site of the lower one whose files are examined."""

    def __init__(self, directory: Path) -> None:
        self.top = HubNode(directory / "top", name="top").start()
        self.top.feed(FEED, duplicate_rule="signature", ldm_feed_type="NGRID")
        self.top.ldm_hosts["lower"] = r"^(::1|localhost)$"
        self.top.sites["lower"] = [{"feed": FEED, "pattern": ".*", "not_pattern": None}]
        self.top.tell_sites()
        self.address = str(self.top.do("ldm", listen=["[::1]:0"])["addresses"][0])
        self.lower = HubNode(directory / "lower", name="lower").start()
        self.lower.feed(FEED, duplicate_rule="signature", ldm_feed_type="NGRID")
        self.ask()
        self.site = SiteNode(directory / "site", self.lower.address)
        self.lower.site("end", {"feed": FEED, "pattern": ".*", "not_pattern": None}, token_file=self.site.token_file)
        self.site.start()
        self.due: Counter[tuple[str, str]] = Counter()

    def ask(self) -> None:
        """Makes the lower hub request products from the upper one."""
        source = {"source": "top", "feeds": "NGRID", "pattern": ".*", "upstreams": [self.address]}
        self.lower.do("ldm", sources=[source])

    def put(self, name: str, content: bytes) -> None:
        """Puts a product into the upper hub, with retries while the hub is away."""
        while True:
            with suppress(Exception):
                self.top.put(FEED, name, content, created_us=time.time_ns() // 1000)
                break
            time.sleep(0.05)
        self.due[name, sha256(content).hexdigest()] += 1

    def restart_top(self, *, kill: bool) -> None:
        """Restarts the upper hub with the same port."""
        self.top.kill() if kill else self.top.stop()
        self.top.start()
        self.top.do("ldm", listen=[self.address])

    def restart_lower(self, *, kill: bool) -> None:
        """Restarts the lower hub."""
        self.lower.kill() if kill else self.lower.stop()
        self.lower.start()
        self.ask()

    def held(self) -> Counter[tuple[str, str]]:
        """Identifier and digest of every file of the site."""
        root = self.site.directory / "received"
        found = (path for path in list(root.rglob("*")) if path.is_file())
        return Counter(
            (decode(str(path.relative_to(root))).product_id, sha256(path.read_bytes()).hexdigest()) for path in found
        )

    def count(self) -> int:
        """The number of files at the site."""
        return sum(1 for path in (self.site.directory / "received").rglob("*") if path.is_file())

    def has_all(self) -> bool:
        """True if the site has as many files as are due."""
        return self.count() >= len(self.due)

    def check(self, patience_s: float = 120) -> None:
        """Waits for everything and compares."""
        with suppress(AssertionError):
            wait_for("all products", self.has_all, patience_s)
        found = self.held()
        assert found == self.due, (
            f"lost {list(self.due - found)[:5]}, doubled or foreign {list(found - self.due)[:5]}"
        )
        assert all(line["origin"] == "hub.test_v_::1" for line in self.products())

    def products(self) -> list[Line]:
        """The newest products of the lower hub."""
        name = next(iter(self.due))[0]
        found: list[Line] = self.lower.do("deliveries", feed=FEED, product_id=name)["products"]
        return found

    def end(self) -> None:
        """Ends everything."""
        self.site.stop()
        for hub in (self.lower, self.top):
            if hub.process.poll() is None:
                hub.stop()


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[Chain]:
    """No products yet."""
    made = Chain(tmp_path)
    yield made
    made.end()


def played(chain: Chain, play: Callable[[], None], *disturbances: Callable[[], None], each: int) -> None:
    """Plays, with a disturbance after each given number of products."""
    player = threading.Thread(target=play, daemon=True)
    player.start()

    def grown(goal: int) -> bool:
        return len(chain.due) >= goal or not player.is_alive()

    for disturb in disturbances:
        wait_for("more products", partial(grown, len(chain.due) + each), 120)
        disturb()
    player.join(timeout=900)
    assert not player.is_alive()


def test_restarts_of_either_hub_lose_and_double_nothing(chain: Chain) -> None:
    source = random.Random(11)

    def play() -> None:
        for number in range(500):
            # Equal bytes have equal signatures, which are one product to an LDM.
            content = f"{number} ".encode() + source.randbytes(int(400_000 * source.random() ** 6))
            chain.put(f"product {number}", content)
            time.sleep(0.002)

    played(
        chain,
        play,
        partial(chain.restart_lower, kill=True),
        partial(chain.restart_top, kill=False),
        partial(chain.restart_lower, kill=False),
        partial(chain.restart_top, kill=True),
        each=80,
    )
    chain.check()


@pytest.mark.nightly
@pytest.mark.skipif(not DATA.is_dir(), reason="the collection of real products is not here")
def test_every_real_file_passes_as_it_is(chain: Chain) -> None:
    contents = {path.read_bytes(): path for path in sorted(DATA.rglob("*")) if path.is_file()}
    for content, path in contents.items():
        chain.put(str(path.relative_to(DATA)), content)
    chain.check()


@pytest.mark.nightly
@pytest.mark.skipif(not DATA.is_dir(), reason="the recorded traces are not here")
def test_the_busiest_minutes_of_ngrid_at_ten_times_their_speed(chain: Chain) -> None:
    """DOWNBURST_TRACE_SECONDS=3600 plays the whole hour, in six minutes and 23 GB."""
    seconds = int(os.environ.get("DOWNBURST_TRACE_SECONDS", "300"))
    arrivals = busiest(list(parse(DATA / "traces" / "ngrid-20150615T00-1h.txt")), seconds=seconds)
    source, began = random.Random(3), time.monotonic()

    def play() -> None:
        for number, arrival in enumerate(arrivals):
            due_s = (arrival.at_us - arrivals[0].at_us) / 1e7
            time.sleep(max(0.0, due_s - (time.monotonic() - began)))
            chain.put(f"NGRID {number:06}", source.randbytes(arrival.size_bytes))

    played(
        chain,
        play,
        partial(chain.restart_lower, kill=True),
        partial(chain.restart_top, kill=True),
        each=len(arrivals) // 4,
    )
    chain.check(300)


def busiest(arrivals: list[Arrival], *, seconds: float) -> list[Arrival]:
    """The stretch of a trace with the most bytes."""
    best, start, total, most = (0, 0), 0, 0, 0
    for end, arrival in enumerate(arrivals):
        total += arrival.size_bytes
        while arrival.at_us - arrivals[start].at_us > seconds * 1e6:
            total -= arrivals[start].size_bytes
            start += 1
        if total > most:
            best, most = (start, end + 1), total
    return arrivals[best[0] : best[1]]
