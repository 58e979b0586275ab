"""Processor time of a site that writes products of 1 MB to files, as fast as it goes, by its threads."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.harness.counters import cpu_s, cpu_s_by_thread
from bench.harness.delivery import HUB
from bench.product.multicast_leg import Downburst
from kit.namespaces import Lab


@dataclass(frozen=True)
class SiteCpu:
    """One run; the site had every file with the right bytes."""

    product_bytes: int
    cpu_s: float
    """User and system, of the site's process."""
    by_thread_s: Mapping[str, float]
    """The same by the names of its threads; those that ended in between are missing."""
    goodput_bps: float

    @property
    def per_gb_s(self) -> float:
        """For 10^9 bytes of products."""
        return self.cpu_s / (self.product_bytes / 1e9)

    def threads_per_gb_s(self) -> dict[str, float]:
        """By thread, the most expensive first."""
        shares = {name: spent_s / (self.product_bytes / 1e9) for name, spent_s in self.by_thread_s.items()}
        return dict(sorted(shares.items(), key=lambda share: -share[1]))


def delivered(directory: Path, *, product_bytes: int, rate_bps: int | None) -> SiteCpu:
    """Bring products to one site, on a multicast leg of this rate or by unicast."""
    with Lab((HUB, SITE), segments=False) as lab:
        contender = Downburst(lab, directory, rate_bps)
        try:
            pid = contender.site_pids[SITE]
            before_s, threads_before_s = cpu_s([pid]), cpu_s_by_thread(pid)
            delivery = contender.deliver(product_bytes)
            spent_s, threads_s = cpu_s([pid]) - before_s, cpu_s_by_thread(pid)
        finally:
            contender.stop()
    if SITE not in delivery.took_s:
        raise RuntimeError("the site lacks files, or has other bytes in them")
    by_thread_s = {name: now_s - threads_before_s.get(name, 0.0) for name, now_s in threads_s.items()}
    return SiteCpu(product_bytes, spent_s, by_thread_s, delivery.goodput_bps())


SITE = "site0"
