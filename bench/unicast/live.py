"""Rows of a live hub: processor time per delivery, latency at a low rate, tails of bursts."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.harness.delivery import sites_of
from bench.harness.schedules import bursts, steady
from bench.harness.stamps import longest_silence_us, percentile
from bench.product.fleet import FEED
from bench.product.play import Live, play_live
from kit.namespaces import Lab
from kit.programs import built


@dataclass(frozen=True)
class Latency:
    """Distribution latency in milliseconds, and the worst lateness of the source of load."""

    median_ms: float
    p99_ms: float
    worst_ms: float
    source_late_worst_ms: float


@dataclass(frozen=True)
class Scaling:
    """Processor time at one fixed rate, with no site, one site and many."""

    products: int
    sites: int
    none_s: float
    one_s: float
    many_s: float

    def per_delivery_us(self, *, many: bool) -> float:
        """The time per delivery that sites add to a hub that only takes products in."""
        spent_s, sites = (self.many_s, self.sites) if many else (self.one_s, 1)
        return (spent_s - self.none_s) * 1e6 / (self.products * sites)


@dataclass(frozen=True)
class Tail:
    """The longest time a site with pending products got nothing, and the worst oversleep of an idle thread."""

    silence_ms: float
    probe_ms: float


class Probe:
    """A thread that only sleeps, beside a measurement: the machine alone causes its oversleep."""

    def __enter__(self) -> Self:
        argv = [str(built("downburst-load")), "probe"]
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()

    def worst_ms(self) -> float:
        """End it and give the worst oversleep."""
        printed, _ = self._process.communicate("", timeout=10)
        return float(json.loads(printed)["worst_us"]) / 1000


def scaling(lab: Lab, directory: Path, *, per_s: float, seconds: float) -> Scaling:
    """2 kB at a fixed rate to no site, to one and to all."""
    sites, spent_s = sites_of(lab), []
    for count in (0, 1, len(sites)):
        planned = list(steady(FEED, SMALL_BYTES, per_s=per_s, seconds=seconds))
        spent_s.append(play_live(lab, directory / str(count), sites[:count], planned).cpu.all_s)
    none_s, one_s, many_s = spent_s
    return Scaling(round(per_s * seconds), len(sites), none_s, one_s, many_s)


def low_rate(lab: Lab, directory: Path, *, seconds: float) -> Latency:
    """2 kB at 100/s to all sites."""
    planned = list(steady(FEED, SMALL_BYTES, per_s=100, seconds=seconds))
    return latency(play_live(lab, directory, sites_of(lab), planned))


def tail_of_bursts(lab: Lab, directory: Path, *, count: int) -> Tail:
    """Bursts of small and of middling products in turn, and the longest silence of any site."""
    planned = list(bursts(FEED, BURSTS, count=count, every_s=BURST_EVERY_S))
    with Probe() as probe:
        live = play_live(lab, directory, sites_of(lab), planned)
        probe_ms = probe.worst_ms()
    began_us = live.account["began_us"]
    silences = [longest_silence_us(stamps.between(began_us)) for stamps in live.arrivals.at_sites.values()]
    return Tail(max(silences) / 1000, probe_ms)


def latency(live: Live) -> Latency:
    """Sum up the latencies of a run."""
    of_all = live.latency_us / 1000
    return Latency(
        median_ms=percentile(of_all, 50),
        p99_ms=percentile(of_all, 99),
        worst_ms=float(of_all.max()),
        source_late_worst_ms=live.account["late_worst_us"] / 1000,
    )


SMALL_BYTES = 2_000
BURSTS = ((300, 2_000), (30, 100_000))
BURST_EVERY_S = 0.3
