"""The task of every contender: bring the same bytes from the lab's hub to all of its sites, as files."""

import os
import statistics
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Protocol

from bench.harness.counters import LinkBytes
from kit.namespaces import Lab

HUB = "hub"


@dataclass(frozen=True)
class Delivery:
    """One run of one contender."""

    product_bytes: int
    took_s: dict[str, float]
    """Per site with the right bytes: from the beginning to its last file."""
    cpu_s: float
    """Of all the contender's processes."""
    links: dict[str, LinkBytes]
    """Per host."""
    accounted_repair_bytes: int | None = None
    """By the contender's own account."""
    overruns: int = 0
    """Datagrams that the kernel dropped at the sites because a socket's buffer was full."""

    def goodput_bps(self, *, leaving_out: str = "") -> float:
        """Median over the sites; 0 if no site got everything."""
        rates = [self.product_bytes * 8 / took for site, took in self.took_s.items() if site != leaving_out]
        return statistics.median(rates) if rates else 0.0

    def goodput_of_bps(self, site: str) -> float:
        """Goodput of one site; 0 if it lacks bytes."""
        return self.product_bytes * 8 / self.took_s[site] if site in self.took_s else 0.0

    @property
    def cpu_s_per_delivered_gb(self) -> float:
        """Seconds of processor time per 10^9 bytes stored as files."""
        return self.cpu_s / (self.product_bytes * max(len(self.took_s), 1) / 1e9)

    @property
    def sent_share(self) -> float:
        """Bytes on the sender's link over the bytes of the products."""
        return self.links[HUB].sent / self.product_bytes

    def received_share(self, *, leaving_out: str) -> float:
        """Bytes on a site's link over the bytes of the products, median over the sites except one."""
        counts = [count.received for host, count in self.links.items() if host not in {HUB, leaving_out}]
        return statistics.median(counts) / self.product_bytes


class Contender(Protocol):
    """A method to bring bytes to all sites; started in a lab, stopped at the end."""

    def deliver(self, product_bytes: int) -> Delivery:
        """Deliver this many bytes, without repeated parts, to every site and measure it; once for each start."""

    def stop(self) -> None:
        """End its processes."""


def sites_of(lab: Lab) -> list[str]:
    """All hosts except the hub."""
    return [host for host in lab.hosts if host != HUB]


def source_file(path: Path, size_bytes: int) -> Path:
    """Write a file of noise, in pieces."""
    with path.open("wb") as file:
        for start in range(0, size_bytes, PIECE_BYTES):
            file.write(os.urandom(min(PIECE_BYTES, size_bytes - start)))
    return path


def file_stands_s(path: Path) -> float:
    """Time at which the file got its name, content and times: its change time, wall clock."""
    return path.stat().st_ctime


def digest(path: Path) -> bytes:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").digest()


PIECE_BYTES = 16 << 20
