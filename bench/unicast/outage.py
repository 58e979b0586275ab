"""The row of an outage: one site away while the mix of 2024 continues, then back."""

import time
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import numpy as np

from bench.harness.delivery import sites_of
from bench.harness.schedules import Planned
from bench.harness.stamps import Stamps, percentile
from bench.product.fleet import Arrivals, Fleet
from downburst_app.play.idd_mix import IDD_2024, idd_mix
from kit.namespaces import Lab


@dataclass(frozen=True)
class Phases:
    """Lengths in seconds."""

    before_s: float
    away_s: float
    after_s: float

    @property
    def all_s(self) -> float:
        """The length of the whole mix."""
        return self.before_s + self.away_s + self.after_s


@dataclass(frozen=True)
class Outage:
    """Figures of the absent site, and of the others during its absence. Incomplete sites fail the run instead."""

    missed: int
    """Products that the hub stored while the site was away."""
    live_after_ms: float
    """From the start of the site's process until a product stands there that the hub stored after this start."""
    caught_up_s: float
    """From the start of the site's process to the last product that it had missed."""
    others_before_ms: float
    """95th percentile of the others' live latency, all sites connected."""
    others_during_ms: float
    """The same while the site catches up."""


def outage(lab: Lab, directory: Path, phases: Phases, *, rate: float, size: float, seed: int = 1) -> Outage:
    """Play the mix; stop the first site after `before_s`, start it again after `away_s`."""
    sites = sites_of(lab)
    feeds = {feed.name: str(feed.feed_class) for feed in IDD_2024}
    with Fleet(lab, directory, sites, feeds=feeds) as fleet:
        fleet.begin_play(mixed(phases.all_s, rate=rate, size=size, seed=seed))
        began_us = time.time() * 1e6
        away = fleet.sites[sites[0]]
        _sleep_until(began_us, phases.before_s)
        gone_us = time.time() * 1e6
        away.stop()
        _sleep_until(began_us, phases.before_s + phases.away_s)
        back_us = time.time() * 1e6
        away.start()
        fleet.end_play()
        return judge(fleet.finish(restarted=sites[:1]), sites[0], gone_us=gone_us, back_us=back_us)


def mixed(seconds: float, *, rate: float, size: float, seed: int = 1) -> list[Planned]:
    """The mix of 2024 for so long."""
    products = takewhile(lambda pair: pair[1].at_s < seconds, idd_mix(seed=seed, rate=rate, size=size))
    return [
        Planned(round(product.at_s * 1e6), feed.name, product.size_bytes, product.product_id)
        for feed, product in products
    ]


def judge(arrivals: Arrivals, away: str, *, gone_us: float, back_us: float) -> Outage:
    """Read the figures of the outage from the logs."""
    returned = arrivals.at_sites[away]
    others = [stamps for name, stamps in arrivals.at_sites.items() if name != away]
    missed = returned.between(gone_us, back_us)
    live = returned.between(back_us)
    if not len(missed.rows) or not len(live.rows):
        raise RuntimeError("the mix was too thin: nothing came while the site was away, or nothing after")
    caught_up_us = float(missed.stored_us.max())
    return Outage(
        missed=len(missed.rows),
        live_after_ms=(float(live.stored_us.min()) - back_us) / 1000,
        caught_up_s=(caught_up_us - back_us) / 1e6,
        others_before_ms=_p95_ms(others, 0, gone_us),
        others_during_ms=_p95_ms(others, back_us, caught_up_us),
    )


def _p95_ms(sites: list[Stamps], from_us: float, to_us: float) -> float:
    latencies = np.concatenate([stamps.between(from_us, to_us).latency_us for stamps in sites])
    if not len(latencies):
        raise RuntimeError("the site caught up before the others got a single product: play longer")
    return percentile(latencies, 95) / 1000


def _sleep_until(began_us: float, seconds: float) -> None:
    time.sleep(max(0.0, began_us / 1e6 + seconds - time.time()))
