"""Predictions compared with measurements under the same plan, and the share of the machines' floor in them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from downburst.domain.latency import LatencyKind, SketchRow
from downburst.domain.plans import Candidate, Leg, Plan, Transport, leg_figure
from downburst.foundation.clock import to_us
from downburst.ledger import Transaction
from downburst.sketches.sketch import LatencySketch
from downburst_scheduler.calibration import Quantiles
from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.models.floors import MOST_LOSS, Expected, Floor, SiteFloors, expected
from downburst_scheduler.models.rates import whole
from downburst_scheduler.models.situation import SiteFacts
from downburst_scheduler.models.transports import fair_rates_bps


def with_measurement(tx: Transaction, plan: Plan, *, now: datetime) -> Plan | None:
    """The plan with the measurements under it, up to an hour back; None without new ones."""
    first_minute = max(to_us(plan.made_at), to_us(now - LOOKED_BACK)) // 60_000_000
    rows = tx.measured.latency.rows(since_minute=first_minute, feed=plan.feed, kind=LatencyKind.DISTRIBUTION)
    return compared(plan, rows)


def latencies_by_transport(
    tx: Transaction, plan: Plan, *, now: datetime, window_s: float
) -> dict[Transport, Quantiles]:
    """The latencies of the plan's legs in the window, only of the plan's own minutes, with enough measurements."""
    since = max(to_us(plan.made_at) // 60_000_000 + 1, to_us(now - timedelta(seconds=window_s)) // 60_000_000)
    found = {}
    for transport in {leg.transport for leg in plan.legs}:
        rows = tx.measured.latency.rows(
            since_minute=since, feed=plan.feed, transport=transport, kind=LatencyKind.DISTRIBUTION
        )
        measured = LatencySketch.of_rows(rows)
        p50_ms, p99_ms = measured.quantile_ms(0.5), measured.quantile_ms(0.99)
        if measured.count >= TELLING_PAIRS and p50_ms is not None and p99_ms is not None:
            found[transport] = Quantiles(p50_ms, p99_ms)
    return found


@dataclass(frozen=True, slots=True)
class Watched:
    """A feed, with the latencies that the models expect at these sites apart from the machines'."""

    feed: str
    transports: frozenset[Transport]
    expected: Mapping[str, Expected]


def watched(
    plan: Plan, arrivals: Arrivals, sites: Sequence[SiteFacts], *, egress_bps: float, repair_share: float
) -> Watched | None:
    """The models' expectations for the arrivals under a plan, at each site that they can judge."""
    fair = dict(zip((site.name for site in sites), fair_rates_bps(sites, egress_bps), strict=True))
    facts = {site.name: site for site in sites}
    # Circuits on demand come and go within these minutes, so their legs say little about the machines.
    standing = [leg for leg in plan.legs if leg.transport is not Transport.DYNAMIC_CIRCUIT]
    telling = [leg for leg in standing if leg.transport is not Transport.MULTICAST or repair_share <= MOST_LOSS]
    lines = {
        site: (whole(facts[site]), _rate_bps(leg, facts[site], fair[site]))
        for leg in telling
        for site in leg.sites
        if site in facts
    }
    found = expected(arrivals, lines)
    return Watched(plan.feed, frozenset(leg.transport for leg in telling), found) if found else None


def site_floors(
    tx: Transaction, feeds: Iterable[Watched], *, since_minute: int, was_behind: Callable[[str, int], bool]
) -> SiteFloors:
    """The floor of each site from its measurements since a minute (of 1970), without minutes of a backlog."""
    found = []
    for feed in feeds:
        distribution, queueing = (
            _by_site(
                row
                for row in tx.measured.latency.rows(since_minute=since_minute, feed=feed.feed, kind=kind)
                if row.transport in feed.transports and not was_behind(row.site, row.minute)
            )
            for kind in (LatencyKind.DISTRIBUTION, LatencyKind.QUEUEING)
        )
        found += [
            (site, known, distribution[site], queueing.get(site, LatencySketch()))
            for site, known in feed.expected.items()
            if site in distribution
        ]
    return SiteFloors.of(found)


def with_floor(plan: Plan, floor: Floor) -> Plan:
    """The plan with this floor in its predictions, replacing the present one."""
    before = Floor.of_figures(plan.figures)
    more_ms = {name: floor.at_ms(share) - before.at_ms(share) for name, share in PREDICTED.items()}
    shown = dict(plan.figures) | floor.figures()
    shown |= {name: value + more_ms[name] for name in PREDICTED if (value := _number(shown.get(name))) is not None}
    candidates = tuple(_with_more(candidate, more_ms) for candidate in plan.candidates)
    return replace(plan, figures=shown, candidates=candidates)


def compared(plan: Plan, rows: Iterable[SketchRow]) -> Plan | None:
    """The plan with measured figures from the rows of its own legs."""
    transports, kept = {leg.transport for leg in plan.legs}, list(rows)
    measured = LatencySketch.of_rows(row for row in kept if row.transport in transports)
    if measured.count == 0 or measured.count == plan.figures.get("measured_count"):
        return None
    figures = dict(plan.figures) | {
        "measured_count": measured.count,
        "measured_negative": measured.negative,
        "measured_bound_ms": measured.bound_ms,
    }
    for share, name in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"), (1.0, "max")):
        value_ms = measured.quantile_ms(share)
        figures[f"measured_{name}_ms"] = value_ms
        figures[f"measured_over_predicted_{name}"] = _ratio(value_ms, plan.figures.get(f"predicted_{name}_ms"))
    figures["predicted_over_measured"] = _inverse(figures["measured_over_predicted_p99"])
    return replace(plan, figures=figures | _of_groups(plan, kept))


def _of_groups(plan: Plan, rows: Sequence[SketchRow]) -> dict[str, float | None]:
    """The measured latencies of each group."""
    found = {}
    for leg in plan.legs:
        if leg.transport is Transport.MULTICAST:
            sites = set(leg.sites)
            own = LatencySketch.of_rows(row for row in rows if row.transport is leg.transport and row.site in sites)
            for share, name in ((0.5, "p50"), (0.99, "p99")):
                found[leg_figure(leg.leg, f"measured_{name}_ms")] = own.quantile_ms(share)
    return found


def _rate_bps(leg: Leg, site: SiteFacts, fair_bps: float) -> float:
    """The rate at which a leg brings products to a site."""
    if leg.transport is Transport.MULTICAST and leg.rate_bps:
        return float(leg.rate_bps)
    rides = leg.transport is Transport.STATIC_CIRCUIT and site.circuit is not None
    return min(fair_bps, site.circuit.payload_bps) if rides and site.circuit else fair_bps


def _by_site(rows: Iterable[SketchRow]) -> dict[str, LatencySketch]:
    found: dict[str, LatencySketch] = {}
    for row in rows:
        found.setdefault(row.site, LatencySketch()).merge(row)
    return found


def _with_more(candidate: Candidate, more_ms: Mapping[str, float]) -> Candidate:
    def more(name: str, before_ms: float | None) -> float | None:
        return None if before_ms is None else before_ms + more_ms[name]

    return replace(
        candidate,
        predicted_p50_ms=more("predicted_p50_ms", candidate.predicted_p50_ms),
        predicted_p95_ms=more("predicted_p95_ms", candidate.predicted_p95_ms),
        predicted_p99_ms=more("predicted_p99_ms", candidate.predicted_p99_ms),
        predicted_max_ms=more("predicted_max_ms", candidate.predicted_max_ms),
    )


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _ratio(measured_ms: float | None, predicted_ms: object) -> float | None:
    """The ratio of two positive latencies; others have none."""
    if measured_ms is None or not isinstance(predicted_ms, (int, float)):
        return None
    return measured_ms / predicted_ms if measured_ms > 0 and predicted_ms > 0 else None


def _inverse(ratio: object) -> float | None:
    return 1 / ratio if isinstance(ratio, float) and ratio else None


LOOKED_BACK = timedelta(hours=1)
PREDICTED = {"predicted_p50_ms": 0.5, "predicted_p95_ms": 0.95, "predicted_p99_ms": 0.99, "predicted_max_ms": 1.0}
"""Names of predictions in figures and candidates, and their quantiles."""
TELLING_PAIRS = 100
"""Products times sites: fewer have no 99th percentile."""
