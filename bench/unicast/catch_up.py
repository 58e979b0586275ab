"""The throughput rows: the product from a full log and from a burst."""

from pathlib import Path

from bench.harness.delivery import sites_of
from bench.harness.fan_out import FanOut, Stream
from bench.harness.schedules import steady
from bench.product.fleet import FEED, Arrivals, Fleet
from kit.namespaces import Lab


class CatchUp:
    """Absent sites return to a hub with a full log.

    Time runs from the hub's admission of the first site to the last product in the last site's log.
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
    """Products enter the hub by its agent's lines as fast as it takes them, and go on directly to connected sites.

    Time runs from the first line to the last product in the last site's log.
    """

    name = "downburst, live"

    def fan_out(self, lab: Lab, directory: Path, stream: Stream) -> FanOut:
        """Put everything, with at most 2,000 products unacknowledged by the hub."""
        with Fleet(lab, directory, sites_of(lab)) as fleet:
            before = fleet.cpu()
            planned = steady(FEED, stream.product_bytes, per_s=1e9, seconds=stream.products / 1e9)
            account = fleet.play(planned, window=2_000)
            fleet.drained()
            spent = fleet.cpu().since(before)
            took_s = (last_stored_us(fleet.finish()) - account["began_us"]) / 1e6
        return FanOut(stream.products, stream.product_bytes, len(lab.hosts) - 1, took_s, spent.all_s)


def last_stored_us(arrivals: Arrivals) -> float:
    """The time of the last product at the last site."""
    return float(max(stamps.stored_us.max() for stamps in arrivals.at_sites.values()))
