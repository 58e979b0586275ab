"""A multipoint circuit over a wire, which carries a feed to several sites: a steady load, and each site's pauses."""

import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Self

import httpx

from downburst.foundation.file_names import decode
from kit.circuit_hub import SITE, CircuitHub
from kit.namespaces import Lab
from kit.node import SiteNode
from kit.patience import wait_for
from kit.wire import Lane, Wire

M = 1_000_000
RATE_BPS = 20 * M
NEAR, NEW = "near.example", "new.example"
DELAY_MS = 10.0
MOST_LAG_US = 5_000


class LeafHub(CircuitHub):
    """A hub whose port for circuits is a wire to a router; the sites are behind that."""

    def __init__(self, lab: Lab, directory: Path, stack: ExitStack, wire: Wire) -> None:
        self.wire = wire
        super().__init__(lab, directory, stack, port_bps=100 * M)
        self.sites = {SITE: self.site, NEAR: self.add_site("near", NEAR), NEW: self.add_site("new", NEW)}

    def interface(self, host: str) -> str:
        return self.wire.device if host == "hub" else "eth0"

    def underlay(self, host: str) -> str:
        return self.wire.left_address if host == "hub" else self.lab.address(host)

    def riding(self, site: str, number: int) -> list[str]:
        """The data connections to a site over the circuit, by their addresses and ports."""
        ends = self.shown(number)["ends"]
        inner = next((end["address"].partition("/")[0] for end in ends if end["site"] == site), "none")
        return [line for line in self.connections() if f"{inner}:" in line]

    def wait_riding(self, site: str, number: int) -> list[str]:
        """Waits until a site's products take the circuit."""
        return wait_for(f"{site} on the circuit", lambda: self.riding(site, number), 90)


@contextmanager
def leaf_hub(directory: Path) -> Iterator[LeafHub]:
    """The scene; ends with a loud skip if the wire was late."""
    with ExitStack() as stack:
        lab = stack.enter_context(Lab(["hub", "router", "far", "near", "new"]))
        lane = Lane(rate_bps=200 * M, delay_ms=DELAY_MS, buffer_bytes=4 * M)
        wire = stack.enter_context(Wire(lab, "hub", "router", to_right=lane, to_left=lane))
        lab.output("router", ["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"])
        for site in ("far", "near", "new"):
            lab.output(site, ["ip", "route", "add", f"{wire.left_address}/32", "via", lab.address("router")])
            lab.output("hub", ["ip", "route", "add", f"{lab.address(site)}/32", "via", wire.right_address])
        yield LeafHub(lab, directory, stack, wire)
        wire.stop().needs_small_lag(max_lag_us=MOST_LAG_US)


@dataclass(frozen=True)
class Put:
    """A product that the hub has acknowledged; times in seconds since 1970."""

    sequence: int
    sha256: str
    asked_s: float
    acknowledged_s: float


class Load(threading.Thread):
    """Puts a small product of CONDUIT every 20 ms."""

    def __init__(self, hub: CircuitHub) -> None:
        super().__init__(daemon=True)
        self.hub = hub
        self.put: list[Put] = []
        self._over = threading.Event()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join(timeout=60)

    def run(self) -> None:
        """Runs until the end of the block."""
        hub = self.hub.hub
        with self.hub.lab.inside("hub"), httpx.Client(base_url=f"http://{hub.http}", timeout=60) as client:
            client.headers.update(hub.authorization)
            while not self._over.wait(EVERY_S):
                number = len(self.put)
                content = b"%d " % number * 500
                asked_s = time.time()
                answer = client.put(f"/v1/feeds/CONDUIT/products/p{number}", content=content)
                answer.raise_for_status()
                digest = hashlib.sha256(content).hexdigest()
                self.put.append(Put(answer.json()["sequence"], digest, asked_s, time.time()))

    def more(self, products: int) -> None:
        """Waits until so many further products are in the hub."""
        wanted = len(self.put) + products
        wait_for(f"{products} further products", lambda: len(self.put) >= wanted, 60)

    def wait_complete(self, site: SiteNode) -> None:
        """Waits until a site has every product, unchanged."""
        wanted = {("CONDUIT", put.sequence): put.sha256 for put in self.put}
        site.wait_received(len(wanted), 60)
        assert {name: digest for name, (_, digest) in site.received().items()} == wanted

    def longest_pause_s(self, site: SiteNode, since_s: float, until_s: float) -> float:
        """The longest time in which nothing arrived, beyond the pause of the load itself at that place."""
        span = [put for put in self.put if since_s <= put.asked_s <= until_s]
        assert len(span) > LEAST_PRODUCTS
        wanted = {put.sequence for put in span}
        wait_for("all products of the span", lambda: wanted <= _arrivals(site).keys(), 60)
        arrived_s = _arrivals(site)
        return max(_pause_s(before, after, arrived_s) for before, after in pairwise(span))


def _pause_s(before: Put, after: Put, arrived_s: dict[int, float]) -> float:
    # The hub takes a product between the request and the answer to it.
    load_s = max(after.asked_s - before.asked_s, after.acknowledged_s - before.acknowledged_s)
    return arrived_s[after.sequence] - arrived_s[before.sequence] - load_s


def _arrivals(site: SiteNode) -> dict[int, float]:
    root = site.directory / "received"
    files = [path for path in root.rglob("*") if path.is_file()]
    return {decode(str(path.relative_to(root))).sequence: path.stat().st_mtime for path in files}


EVERY_S = 0.02
LEAST_PRODUCTS = 50
