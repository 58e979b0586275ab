"""Products that survive a power cut: the rate of the hub's node beside that of the disk alone."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.harness.schedules import Planned, write
from bench.product.fleet import FEED, RETAINED_BYTES, stamps_in
from kit.node import HubNode
from kit.programs import built


@dataclass(frozen=True)
class Durable:
    """One run: the node, then the disk alone, with the same bytes in groups."""

    products: int
    acknowledged_per_s: float
    raw_per_s: float


def acknowledged(directory: Path, *, products: int, window: int) -> Durable:
    """Measure both; `window` products are unanswered at most, and as many are a group of the disk alone."""
    hub = HubNode(directory / "hub", prefix=[str(built("downburst-load")), "agent", "--"]).start()
    try:
        hub.feed(FEED, durability="power", retention_bytes=RETAINED_BYTES)
        schedule = write(directory / "schedule", planned(products))
        hub.do("load-prepare", schedule=str(schedule), spool=str(directory / "spool"))
        # The node's calls would wait for the spool files too.
        os.sync()
        hub.do("load-play", window=window)
        account = hub.wait_event(PATIENCE_S, event="load-done")
    finally:
        hub.stop()
    if "error" in account or account["refused"]:
        raise RuntimeError(f"the hub did not take every product: {account}")
    stored = stamps_in(directory / "hub" / "data" / "log")
    if len(stored.rows) != products or stored.damaged:
        raise RuntimeError(f"the log has {len(stored.rows)} of {products} products, {stored.damaged} damaged")
    took_s = (account["ended_us"] - account["began_us"]) / 1e6
    return Durable(products, products / took_s, products / raw_s(directory / "raw", products, window))


def raw_s(path: Path, products: int, group: int) -> float:
    """Write the same bytes into one file whose room is reserved, as a log's is, and synchronise after each group."""
    content = [os.urandom(PRODUCT_BYTES) for _ in range(group)]
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        os.posix_fallocate(descriptor, 0, products * PRODUCT_BYTES)
        os.fsync(descriptor)
        began_s = time.monotonic()
        for start in range(0, products, group):
            os.writev(descriptor, content[: products - start])
            os.fdatasync(descriptor)
        return time.monotonic() - began_s
    finally:
        os.close(descriptor)


def planned(products: int) -> Iterator[Planned]:
    """All due immediately."""
    return (Planned(0, FEED, PRODUCT_BYTES, f"product {number:08d}") for number in range(products))


PRODUCT_BYTES = 100_000
PATIENCE_S = 300.0
