"""The rows of a recorded feed: its busiest minute over 100 Mb/s beside the minimum queueing; ten times its rate."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.harness.busy_loops import loops_in_all
from bench.harness.counters import link_bytes, moved
from bench.harness.delivery import HUB, sites_of
from bench.harness.recorded import busiest, recorded_hour
from bench.harness.schedules import Planned
from bench.harness.stamps import percentile
from bench.product.fleet import FEED, Fleet
from bench.product.multicast_leg import on_leg
from bench.product.play import Live
from downburst.recordings.traces import Arrival
from kit.namespaces import Lab


@dataclass(frozen=True)
class Waits:
    """Mean and 99th percentile of products' waiting and travel time, queueing included, in milliseconds."""

    mean_ms: float
    p99_ms: float


@dataclass(frozen=True)
class Tenfold:
    """A recorded feed at ten times its rate: bytes sent beside those that came in, and the tail of the latency."""

    sent_share: float
    """Bytes on the sender's link over the bytes of the products."""
    p99_ms: float


def minute(seconds: float, notes: list[str]) -> list[Arrival]:
    """The busiest minute by bytes of the recorded hour."""
    return busiest(recorded_hour(notes), seconds)


def first_come_first_served(arrivals: Sequence[Arrival], rate_bps: float) -> Waits:
    """Each product begins after its arrival and the end of its predecessor; only its own bytes are sent."""
    free_us, waited_ms = 0.0, []
    for arrival in arrivals:
        free_us = max(free_us, arrival.at_us) + arrival.size_bytes * 8e6 / rate_bps
        waited_ms.append((free_us - arrival.at_us) / 1000)
    return Waits(float(np.mean(waited_ms)), percentile(np.array(waited_ms), 99))


def played(lab: Lab, directory: Path, arrivals: Sequence[Arrival], *, multicast: bool) -> Waits:
    """Play it to all sites; measured from a product's due time to its storage in a site's log."""
    sites, began_us = sites_of(lab), arrivals[0].at_us
    lab.rate(HUB, up_bps=LINK_BPS)
    planned = [
        Planned(arrival.at_us - began_us, FEED, arrival.size_bytes, f"recorded {number}")
        for number, arrival in enumerate(arrivals)
    ]
    with Fleet(lab, directory, sites, feeds={FEED: "grid"}) as fleet:
        if multicast:
            on_leg(fleet, sites, LEG_BPS)
        before = fleet.cpu()
        account = fleet.play(planned)
        fleet.drained()
        live = Live(account, fleet.cpu().since(before), fleet.finish())
    return waits(live, planned)


def tenfold(lab: Lab, directory: Path, arrivals: Sequence[Arrival]) -> Tenfold:
    """Play it to all sites ten times as fast, beside one busy loop; latency from the hub's log to a site's."""
    sites, began_us = sites_of(lab), arrivals[0].at_us
    planned = [
        Planned(round((arrival.at_us - began_us) / FASTER), FEED, arrival.size_bytes, f"recorded {number}")
        for number, arrival in enumerate(arrivals)
    ]
    with Fleet(lab, directory, sites, feeds={FEED: "grid"}) as fleet:
        on_leg(fleet, sites, TENFOLD_LEG_BPS)
        links = link_bytes(lab)
        with loops_in_all(1):
            account = fleet.play(planned)
            fleet.drained()
        links, arrived = moved(link_bytes(lab), links), fleet.finish()
    of_sites = [stamps.between(account["began_us"]).latency_us for stamps in arrived.at_sites.values()]
    came_bytes = sum(product.size_bytes for product in planned)
    return Tenfold(links[HUB].sent / came_bytes, percentile(np.concatenate(of_sites) / 1000, 99))


def waits(live: Live, planned: Sequence[Planned]) -> Waits:
    """Match products by size; the hub takes those of equal size in the order of the schedule."""
    began_us, waited_ms = live.account["began_us"], []
    sizes = np.array([product.size_bytes for product in planned])
    by_size = np.argsort(sizes, kind="stable")
    due_us = began_us + np.array([product.at_us for product in planned])[by_size]
    for stamps in live.arrivals.at_sites.values():
        of_site = stamps.between(began_us)
        in_order = np.lexsort((of_site.sequences, of_site.size_bytes))
        if not np.array_equal(of_site.size_bytes[in_order], sizes[by_size]):
            raise RuntimeError(f"a site has {len(in_order)} products, which are not the {len(sizes)} of the schedule")
        waited_ms.append((of_site.stored_us[in_order] - due_us) / 1000)
    of_all = np.concatenate(waited_ms)
    return Waits(float(of_all.mean()), percentile(of_all, 99))


LINK_BPS = 100_000_000
LEG_BPS = 99_000_000
"""A hundredth below the link, so that no queue builds up before it."""
USABLE_BPS = 95_000_000
FASTER = 10
TENFOLD_LEG_BPS = 1_000_000_000
