"""Bytes that reach the disk for each byte of the products, at the hub and at a site."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.harness.delivery import HUB
from bench.harness.disk import Written, device_written_bytes, together, written
from bench.peers.uftp import Uftp
from bench.product.fleet import FEED
from bench.product.http_hub import HttpHub, noise
from kit.namespaces import Lab


@dataclass(frozen=True)
class Writing:
    """One run: every product was uploaded, and stands at the site as a file and in its log."""

    product_bytes: int
    by_part: Mapping[str, Written]
    """The hub's `api` and `node`, and the `site`; a peer has only that."""
    device_bytes: int | None
    """Of the block device, with all of its users; None where the directory has none."""
    took_s: float

    @property
    def at_site(self) -> float:
        """Bytes to disk at the site, for each byte of the products."""
        return self.by_part["site"].to_disk / self.product_bytes

    @property
    def at_hub(self) -> float:
        """The same of the hub's processes together: the node removes the spool files that the api has written."""
        parts = (count for part, count in self.by_part.items() if part != "site")
        return together(parts).to_disk / self.product_bytes

    @property
    def by_device(self) -> float | None:
        """Bytes that the block device wrote, for each byte of the products."""
        return None if self.device_bytes is None else self.device_bytes / self.product_bytes

    def by_calls(self, part: str) -> float:
        """Bytes in write calls of a process, for each byte of the products."""
        return self.by_part[part].by_calls / self.product_bytes


def uploads(directory: Path, *, products: int, size_bytes: int) -> Writing:
    """Upload products one after the other, and count until the last receipt of the site is in the ledger."""
    with HttpHub(directory, {FEED: "grid"}) as both:
        device = device_written_bytes(directory)
        before, began_s = by_part(both), time.monotonic()
        with both.client() as client:
            for number in range(products):
                both.put(client, FEED, f"product {number:06d}", noise(number, size_bytes), size_bytes)
        both.wait_files(FEED, products + 1)
        took_s = time.monotonic() - began_s
        both.wait_accounted(products + 1)
        counts = {part: count.since(before[part]) for part, count in by_part(both).items()}
        moved = _device_since(directory, device)
        both.finish()
    return Writing(products * size_bytes, counts, moved, took_s)


def uftp(directory: Path, *, product_bytes: int) -> Writing:
    """Send one file to one site, in a lab of two hosts."""
    with Lab((HUB, SITE), segments=False) as lab:
        peer = Uftp(lab, directory, None)
        try:
            [pid] = peer.pids()
            before = written(pid)
            delivery = peer.deliver(product_bytes)
            counts = written(pid).since(before)
        finally:
            peer.stop()
    if SITE not in delivery.took_s:
        raise RuntimeError("uftp did not bring the file to the site")
    return Writing(product_bytes, {"site": counts}, None, delivery.took_s[SITE])


def by_part(both: HttpHub) -> dict[str, Written]:
    """Read the counters of the hub's and the site's processes."""
    return {part: written(pid) for part, pid in both.pids().items()}


def _device_since(directory: Path, before: int | None) -> int | None:
    after = device_written_bytes(directory)
    return None if before is None or after is None else after - before


SITE = "site0"
