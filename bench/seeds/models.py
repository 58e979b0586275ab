"""The product's own models, asked for the published figures: functions of the live code, by the number of the row."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bench.seeds import feeds
from bench.seeds.figures import Published, Value
from bench.seeds.formulas import (
    aimd_rate,
    bandwidth_delay_bytes,
    catch_up_s,
    paced_bps,
    servers_to_match,
    transfers_of_peers,
)
from downburst.domain.circuits import CircuitCarriage
from downburst.domain.tcp.rates import CongestionControl, reno_bps
from downburst_analyze.pairs.learning import LearningRules
from downburst_analyze.sessions import Session, threshold_bytes
from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.models import ways
from downburst_scheduler.models.candidates import CircuitOffers, Situation, compare
from downburst_scheduler.models.rates import PathFacts, connection_bps
from downburst_scheduler.models.repair import Repair
from downburst_scheduler.models.sweeps import LossCurve, best_rate_bps
from downburst_scheduler.models.transports import multicast, peak_minute_bps, unicast

M = 1e6


@dataclass(frozen=True)
class Model:
    """A model's figure for a row, and the accepted relative difference from the published one."""

    of: Callable[[], Value]
    within: float | None = 0.01
    """None: the figure stands beside the published one, of other conditions, and is not compared with it."""


def agrees(published: Published, figure: Value, within: float | None) -> bool | None:
    """True if the model gives the published figure within the tolerance; decisions must be equal."""
    if within is None:
        return None
    if isinstance(figure, str) or isinstance(published.value, str) or published.value is None:
        return figure == published.value
    return math.isclose(figure, published.value, rel_tol=within)


def peak_over_mean(feed: Arrivals) -> float:
    """The busiest minute over the mean."""
    return peak_minute_bps(feed) / feed.mean_bps


def copies(feed: Arrivals, receivers: int, *, peak: bool) -> float:
    """The egress for a copy to each receiver, in Mb/s."""
    outcome = unicast(feed, [PathFacts()] * receivers, egress_bps=10e9)
    return (outcome.peak_egress_bps if peak else outcome.egress_bps) / M


def unicast_s(
    receivers: int, *, size_bytes: float = 125 * M, egress_bps: float = 1e9, access_bps: float = 1e8
) -> float:
    """The time of the last receiver by unicast."""
    sites = [PathFacts(access_bps=access_bps)] * receivers
    return unicast(feeds.one(size_bytes), sites, egress_bps=egress_bps).latencies.quantile_s(0.99)


def multicast_s(
    receivers: int, *, size_bytes: float = 125 * M, rate_bps: float = 1e9, access_bps: float = 1e8
) -> float:
    """The time of the last receiver by multicast."""
    sites = [PathFacts(access_bps=access_bps)] * receivers
    return multicast(feeds.one(size_bytes), sites, rate_bps=rate_bps).latencies.quantile_s(0.99)


def egress_ratio(receivers: int, *, loss: float = 0.0) -> float:
    """Bytes by unicast over those by multicast, with the repair of this loss at each receiver."""
    sites = [PathFacts(loss=loss)] * receivers
    product = feeds.one(125 * M)
    apart = unicast(product, sites, egress_bps=10e9).egress_bps
    return apart / multicast(product, sites, rate_bps=1e9).egress_bps


def egress_ratio_of_ucar() -> float:
    """The copies of each byte that leave UCAR, 2.34 TB of 50 GB in an hour, over one copy by multicast."""
    sites, product = [PathFacts(count=2.34e12 / 50e9)], feeds.one(125 * M)
    return unicast(product, sites, egress_bps=10e9).egress_bps / multicast(product, sites, rate_bps=1e9).egress_bps


def chosen(feed: Arrivals, sites: Sequence[PathFacts], circuits: CircuitOffers, egress_bps: float = 1e9) -> str:
    """The transport that the scheduler chooses, in a network without groups of its own."""
    situation = Situation(sites, egress_bps=egress_bps, multicast=False, circuits=circuits)
    return str(compare(feed, situation).best.transport.value)


def near_sites() -> str:
    """The choice for one near receiver, if it is that for two as well."""
    found = {chosen(feeds.steady(), [PathFacts(0.005, access_bps=1e9)] * count, BOTH) for count in (1, 2)}
    return " or ".join(sorted(found))


def over_depots() -> float:
    """The rate of a session over segments of 900, 5,100 and 900 Mb/s, in Mb/s; windows limit them."""
    return connection_bps(_chain((900 * M, 5_100 * M, 900 * M))) / M


def split_gain() -> float:
    """Reno over two halves, each with half of the round trip and half of the loss, beside the whole path."""
    whole = PathFacts(0.07, 0.001, congestion=CongestionControl.RENO)
    half = PathFacts(0.035, 0.0005, congestion=CongestionControl.RENO)
    return connection_bps(half) / connection_bps(whole)


def edge_gain(congestion: CongestionControl) -> float:
    """A relay before a lossy edge, as measured: 68 ms clean and 2 ms with 0.1 % loss on a line of 100 Mb/s."""
    edge = PathFacts(0.002, 0.001, congestion=congestion)
    relayed = PathFacts(0.068, 0.0, 100 * M, congestion=congestion, edge=edge)
    return connection_bps(relayed) / connection_bps(PathFacts(0.07, 0.001, 100 * M, congestion=congestion))


def parallel_gain(connections: int) -> float:
    """Reno connections at 70 ms and 0.1 % loss on a line of 100 Mb/s, beside one of them."""
    one_bps = reno_bps(0.07, 0.001)
    return ways.shared_line_bps(connections * one_bps, 100 * M) / ways.shared_line_bps(one_bps, 100 * M)


def window_gain(window_bytes: float, *, line_bps: float = 100 * M) -> float:
    """A full line of 80 ms beside a connection with this window."""
    limited = PathFacts(0.08, 0.0, line_bps, window_bytes=window_bytes)
    return connection_bps(PathFacts(0.08, 0.0, line_bps)) / connection_bps(limited)


def vcmtp_rate(receivers: int) -> float:
    """The rate at which a group finishes first, with VCMTP's loss and unicast repair at 900 Mb/s, in Mb/s."""
    curve = LossCurve((600 * M, 800 * M), (0.0026, 0.1104))
    return best_rate_bps(1e9, receivers, curve, repair_bps=900 * M, repair=Repair.UNICAST) / M


def packets_per_loss() -> float:
    """The packets for each lost one at which Reno just keeps 525 Mb/s over 27 ms."""
    return (525 * M / reno_bps(0.027, 1.0)) ** 2


def largest_session() -> float:
    """The rate of the largest session, in Mb/s."""
    session = Session("", 0, round(7.5 * 3_600 * 1e6), 1, 2_700_000_000_000)
    return session.size_bytes * 8 / session.length_s / M


def first_connections() -> float:
    """The number of connections that a hub tries first for a far site with a backlog."""
    return float(ways.automatic_connections(0.07, reno_bps(0.07, 0.001), line_bps=100 * M, most=4))


def peers_or_multicast() -> str:
    """The way that crosses the links less often for a fresh product and seven receivers."""
    return "peers" if transfers_of_peers(7) < 7 / egress_ratio(7) else "multicast"


def _chain(rates_bps: Sequence[float]) -> PathFacts:
    """Segments of these rates."""
    first, *rest = rates_bps
    edge = _chain(rest) if rest else None
    return PathFacts(0.04, window_bytes=bandwidth_delay_bytes(first, 0.04), edge=edge)


BOTH = CircuitOffers(point_to_point=True, multipoint=True)
POINT_TO_POINT = CircuitOffers(point_to_point=True)
FAR = PathFacts(0.04, access_bps=1e9)
MODELS: Mapping[str, Model] = {
    "D1": Model(lambda: peak_over_mean(feeds.conduit())),
    "D2": Model(lambda: peak_over_mean(feeds.nexrad2())),
    "D3": Model(lambda: copies(feeds.conduit(), 104, peak=True)),
    "D4": Model(lambda: copies(feeds.nexrad2(), 55, peak=True), 0.02),
    "D7": Model(egress_ratio_of_ucar),
    "D17": Model(lambda: egress_ratio(24), None),
    "D22": Model(lambda: transfers_of_peers(7), None),
    "C15": Model(lambda: CircuitCarriage().shaped_share),
    "C16": Model(lambda: LearningRules().heavy_bytes / 1e9),
    "B1": Model(first_connections),
    "B10": Model(largest_session, 0.02),
    "T1": Model(lambda: window_gain(100_000, line_bps=143 * M)),
    "T3": Model(lambda: parallel_gain(4), None),
    "T4": Model(lambda: reno_bps(0.08, 1e-4, segment_bytes=6 * 1_448) / reno_bps(0.08, 1e-4)),
    "T5": Model(lambda: aimd_rate(4, 1 / 8) / aimd_rate(1, 1 / 2), 0.15),
    "R1": Model(over_depots),
    "R2": Model(lambda: over_depots() / 380, 0.02),
    "R3": Model(lambda: edge_gain(CongestionControl.RENO), None),
    "R4": Model(lambda: edge_gain(CongestionControl.CUBIC), None),
    "R5": Model(lambda: edge_gain(CongestionControl.BBR), None),
    "U4": Model(lambda: paced_bps(1_448, 22e-6) / M),
    "U5": Model(lambda: 1e3 * catch_up_s(1.2e6, 620 * M, 525 * M)),
    "U7": Model(lambda: bandwidth_delay_bytes(525 * M, 0.027) / M, 0.02),
    "U8": Model(packets_per_loss, 0.25),
    "W1": Model(lambda: unicast_s(50)),
    "W2": Model(lambda: multicast_s(50)),
    "W3": Model(lambda: float(servers_to_match(unicast_s(50), multicast_s(50)))),
    "W4": Model(lambda: copies(feeds.conduit(), 104, peak=False)),
    "W5": Model(lambda: copies(feeds.nexrad2(), 55, peak=False)),
    "W6": Model(lambda: 100 / peak_over_mean(feeds.conduit())),
    "W7": Model(lambda: chosen(feeds.conduit(), [FAR] * 104, BOTH)),
    "W8": Model(lambda: chosen(feeds.nexrad2(), [FAR] * 55, POINT_TO_POINT, 200 * M)),
    "W9": Model(near_sites),
    "W10": Model(lambda: threshold_bytes(681.7 * M, 60) / 1e9),
    "W11": Model(lambda: threshold_bytes(191 * M, 60) / 1e9),
    "W13": Model(lambda: vcmtp_rate(4)),
    "W14": Model(lambda: bandwidth_delay_bytes(1e9, 0.0367) / M),
    "W15": Model(lambda: paced_bps(1_448, 22e-6) / M),
    "W16": Model(over_depots),
    "W17": Model(split_gain),
    "W18": Model(peers_or_multicast),
    "W19": Model(lambda: egress_ratio(24), None),
    "W20": Model(lambda: 100 * (1 - 1 / egress_ratio_of_ucar()), 0.001),
}
"""The models of published figures; those of measured rows are in `measures`, at the scale of the measurement."""
