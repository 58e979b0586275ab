"""The throughput rows: the product from a full log and from a burst."""

from pathlib import Path

from bench.delivery import HUB
from bench.fan_out import FanOut, Stream
from bench.fleet import FEED, Arrivals, Fleet
from bench.schedules import steady
from kit.namespaces import Lab


class CatchUp:
    """Sites that were away come back to a hub whose log is full.

    Time runs from the moment when the hub has admitted the first site to the last product in the last site's log.
    """

    name = "downburst"

    def fan_out(self, lab: Lab, directory: Path, stream: Stream) -> FanOut:
        """Fill the hub's log, then start hub and sites."""
        with Fleet(lab, directory, sites_of(lab)) as fleet:
            began_us, before = fleet.begin_with_full_log(products=stream.products, product_bytes=stream.product_bytes)
            fleet.drained()
            spent = fleet.cpu().since(before)
            took_s = (last_stored_us(fleet.finish()) - began_us) / 1e6
        return FanOut(stream.products, stream.product_bytes, len(lab.hosts) - 1, took_s, spent.all_s)


class LiveBurst:
    """Products go into the hub by its agent's lines as fast as it takes them, and at once on to connected sites.

    Time runs from the first line to the last product in the last site's log.
    """

    name = "downburst, live"

    def fan_out(self, lab: Lab, directory: Path, stream: Stream) -> FanOut:
        """Put everything, with 2,000 products at most on their way into the hub."""
        with Fleet(lab, directory, sites_of(lab)) as fleet:
            before = fleet.cpu()
            planned = steady(FEED, stream.product_bytes, per_s=1e9, seconds=stream.products / 1e9)
            account = fleet.play(planned, window=2_000)
            fleet.drained()
            spent = fleet.cpu().since(before)
            took_s = (last_stored_us(fleet.finish()) - account["began_us"]) / 1e6
        return FanOut(stream.products, stream.product_bytes, len(lab.hosts) - 1, took_s, spent.all_s)


def sites_of(lab: Lab) -> list[str]:
    """Every host but the hub."""
    return [host for host in lab.hosts if host != HUB]


def last_stored_us(arrivals: Arrivals) -> float:
    """When the last site had its last product."""
    return float(max(stamps.stored_us.max() for stamps in arrivals.at_sites.values()))
