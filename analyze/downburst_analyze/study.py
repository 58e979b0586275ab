"""The complete study of a recording: its burstiness, and predictions for each transport."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from downburst.foundation.errors import BadInput
from downburst.recordings.recording import ProductPiece, Report
from downburst_analyze.advice import Advice, advise
from downburst_analyze.burstiness import Burstiness, FeedFigures
from downburst_analyze.sessions import Session, Suitability, sessions_of_products, suitability
from downburst_scheduler.figures.histograms import Floats, LogHistogram
from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.models.candidates import Comparison, Situation, compare
from downburst_scheduler.models.grouping import GroupingRules, Partition, Receiver, partition
from downburst_scheduler.models.sizing import SizingStudy, study
from downburst_scheduler.models.transports import Releases, peak_minute_bps, releases

Step = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class FanOut:
    """The demand of a number of sites on the hub's egress."""

    sites: int
    unicast_bps: float
    unicast_peak_bps: float
    multicast_bps: float


@dataclass(frozen=True, slots=True)
class ProductStudy:
    """A recording of products, studied under a situation."""

    arrivals: Arrivals
    modelled_products: int
    """The models play at most this number of products, the first ones; the figures are of all."""
    traffic: FeedFigures
    releases: tuple[Releases, ...]
    sessions: int
    suitability: tuple[Suitability, ...]
    comparison: Comparison
    sizing: SizingStudy | None
    advice: Advice | None
    groups: Partition | None
    fan_out: tuple[FanOut, ...]


@dataclass(frozen=True, slots=True)
class ReportedFeed:
    """Contents of rtstats lines about one feed: hourly mean latencies per host and path, and volumes."""

    feed: str
    lines: int
    hosts: int
    latency_quantiles_s: dict[str, float]
    negative: int
    """Lines with a latency below zero, a sign of a wrong clock; they count as zero."""
    products: int
    bytes: int
    """Bytes of the host that reported most."""


def study_products(
    pieces: Iterable[ProductPiece], situation: Situation, *, name: str, gap_s: float = 60.0, step: Step
) -> ProductStudy:
    """Reads all pieces, then plays them; `step` is called with the name of each step."""
    step("reading")
    traffic, arrivals = read(pieces, name=name)
    step("comparing transports")
    comparison = compare(arrivals, situation)
    step("sizing a circuit")
    away_s = max((site.round_trip_s for site in situation.sites), default=0.0) / 2
    sizing = study(arrivals, situation.objective, away_s=away_s)
    step("comparing set-up and hold times")
    advice = advise(arrivals, sizing, situation)
    step("grouping sites")
    return ProductStudy(
        arrivals=arrivals,
        modelled_products=len(arrivals.at_s),
        traffic=traffic,
        releases=tuple(
            releases(arrivals, setup_s=setup_s, hold_s=hold_s)
            for setup_s, hold_s in dict.fromkeys([*RELEASES, (situation.circuits.setup_s, situation.circuits.hold_s)])
        ),
        sessions=len(_sessions(arrivals, situation, gap_s)),
        suitability=_suitability(_sessions(arrivals, situation, gap_s), arrivals, situation),
        comparison=comparison,
        sizing=sizing,
        advice=advice,
        groups=_groups(arrivals, situation),
        fan_out=_fan_out(arrivals, situation, comparison),
    )


def read(pieces: Iterable[ProductPiece], *, name: str) -> tuple[FeedFigures, Arrivals]:
    """Figures of everything and arrivals for the models; a rate requires at least two products."""
    seen = Burstiness()
    times: list[Floats] = []
    sizes: list[Floats] = []
    kept, first_us = 0, None
    for piece in pieces:
        seen.add(piece.at_us, piece.size_bytes)
        first_us = int(piece.at_us[0]) if first_us is None else first_us
        if kept < MODELLED_PRODUCTS:
            times.append((piece.at_us - first_us) / 1e6)
            sizes.append(piece.size_bytes)
            kept += len(piece.at_us)
    figures = seen.figures()
    if figures.products < FEWEST_PRODUCTS:
        raise BadInput(
            f"{name}, line {figures.products}: the file ends after {figures.products} product, which has no rate; "
            "give one with at least two",
            line=figures.products,
        )
    if figures.bytes == 0:
        raise BadInput(f"{name}: all products are empty, so there is nothing to send; give a file with sizes")
    at_s = np.concatenate(times)
    return figures, Arrivals(at_s, np.concatenate(sizes), max(float(at_s[-1]), 1.0))


def study_reports(reports: Iterable[Report]) -> tuple[ReportedFeed, ...]:
    """Latency by feed, the busiest first."""
    feeds: dict[str, _Reports] = {}
    for report in reports:
        feeds.setdefault(report.feed, _Reports()).add(report)
    found = [seen.figures(feed) for feed, seen in feeds.items()]
    return tuple(sorted(found, key=lambda one: -one.lines))


class _Reports:
    def __init__(self) -> None:
        self._latencies = LogHistogram()
        self._lines = self._negative = 0
        self._hosts: dict[str, list[int]] = {}

    def add(self, report: Report) -> None:
        self._lines += 1
        self._negative += report.mean_latency_s < 0
        self._latencies.add(np.array([max(report.mean_latency_s, 0.0)]))
        volume = self._hosts.setdefault(report.host, [0, 0])
        volume[0] += report.products
        volume[1] += report.bytes

    def figures(self, feed: str) -> ReportedFeed:
        products, size_bytes = max(self._hosts.values(), key=lambda volume: volume[1])
        quantiles = {name: self._latencies.quantile(at) for name, at in LATENCIES.items()}
        return ReportedFeed(feed, self._lines, len(self._hosts), quantiles, self._negative, products, size_bytes)


def _sessions(arrivals: Arrivals, situation: Situation, gap_s: float) -> list[Session]:
    rate_bps = min(situation.egress_bps / max(len(situation.sites), 1), situation.egress_bps)
    return sessions_of_products(arrivals.at_s, arrivals.size_bytes, gap_s=gap_s, rate_bps=rate_bps)


def _suitability(found: list[Session], arrivals: Arrivals, situation: Situation) -> tuple[Suitability, ...]:
    """Set-up delays of the offers and of faster ones, at the rate that a circuit would have."""
    delays = sorted({situation.circuits.setup_s, 60.0, 1.0, 0.05}, reverse=True)
    return tuple(suitability(found, peak_minute_bps(arrivals), delay_s) for delay_s in delays)


def _groups(arrivals: Arrivals, situation: Situation) -> Partition | None:
    """Groups by the sites' line rates beside repair: no congestion control slows a group for one member's loss."""
    if not situation.sites:
        return None
    most_bps = situation.multicast_rate_bps
    receivers = [
        Receiver(f"site-{number}", min(site.access_bps or most_bps, most_bps) * (1 - site.loss), site.share)
        for number, site in enumerate(situation.sites, start=1)
    ]
    rules = GroupingRules(egress_bps=situation.egress_bps, mean_bps=arrivals.mean_bps)
    return partition(receivers, float(arrivals.size_bytes.mean()), rules)


def _fan_out(arrivals: Arrivals, situation: Situation, comparison: Comparison) -> tuple[FanOut, ...]:
    most = max(len(situation.sites), 2)
    counts = np.unique(np.geomspace(1, most, 24).round().astype(int))
    peak_bps = peak_minute_bps(arrivals)
    group = next((one.outcome for one in comparison.candidates if one.transport == "multicast"), None)
    one_copy_bps = arrivals.mean_bps * (1 + (group.repair_share if group else 0.0))
    return tuple(
        FanOut(int(sites), arrivals.mean_bps * int(sites), peak_bps * int(sites), one_copy_bps) for sites in counts
    )


MODELLED_PRODUCTS = 5_000_000
FEWEST_PRODUCTS = 2
RELEASES = ((1.0, 1.0), (1.0, 10.0), (1.0, 30.0), (60.0, 60.0))
LATENCIES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
