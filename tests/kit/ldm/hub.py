"""A hub among LDMs."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kit.ldm.wire import Product
from kit.node import HubNode, Line
from kit.patience import wait_for


@contextmanager
def hub_at(directory: Path, name: str = "hub") -> Iterator[HubNode]:
    """A hub among LDMs, with two feeds."""
    made = HubNode(directory, name=name).start()
    made.feed("NGRID", duplicate_rule="signature", ldm_feed_type="NGRID")
    made.feed("TEXT", duplicate_rule="signature", ldm_feed_type="IDS|DDPLUS", **{"class": "warning"})
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.stop()


def ask(hub: HubNode, *upstreams: str, feeds: str = "NGRID", **fields: object) -> None:
    """Makes the hub request products from LDMs."""
    source = {"source": "above", "feeds": feeds, "pattern": ".*", "upstreams": list(upstreams), **fields}
    hub.do("ldm", sources=[source])


def serve(hub: HubNode, host: str = "127.0.0.1", **fields: object) -> str:
    """Opens the hub's port for LDMs, with one site for everything; returns the address."""
    hub.ldm_hosts["near"] = r"^(127\.0\.0\.1|::1|localhost)$"
    hub.sites["near"] = [{"feed": name, "pattern": ".*", "not_pattern": None} for name in ("NGRID", "TEXT")]
    hub.tell_sites()
    listen = f"[{host}]:0" if ":" in host else f"{host}:0"
    return str(hub.do("ldm", listen=[listen], **fields)["addresses"][0])


def sources(hub: HubNode) -> list[Line]:
    """The state of the upstreams of the only source."""
    found: list[Line] = hub.do("status")["ldm"]["sources"][0]["upstreams"]
    return found


def stored(hub: HubNode, feed: str = "NGRID") -> int:
    """The number of products that a feed holds."""
    return int(next(one["products"] for one in hub.do("status")["feeds"] if one["feed"] == feed))


def holds(hub: HubNode, count: int, feed: str = "NGRID") -> None:
    """Waits until a feed holds this number of products."""
    wait_for(f"{count} products", lambda: stored(hub, feed) == count, 60)


def described(hub: HubNode, ident: str, feed: str = "NGRID") -> Line:
    """The hub's record of a product."""
    found: Line = hub.do("deliveries", feed=feed, product_id=ident)["products"][0]
    return found


def products(prefix: str, count: int, size: int = 2_000) -> list[Product]:
    """Products that are all different."""
    return [Product.of(f"{prefix} {number:05}", os.urandom(size)) for number in range(count)]
