"""The study as one JSON document: names carry their units, and no value is text to be parsed."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from downburst_analyze.sessions import SessionFigures
from downburst_analyze.study import ProductStudy, ReportedFeed
from downburst_analyze.variance import VarianceFigures
from downburst_scheduler.models.candidates import Evaluated, Situation
from downburst_scheduler.models.transports import Outcome

Source = Mapping[str, Any]
"""The origin of the data: `file`, or `hub`, `feed` and `days`."""


def product_document(source: Source, study: ProductStudy, situation: Situation) -> dict[str, Any]:
    """The document of a recording of products."""
    return {
        **source,
        "kind": "products",
        "assumed": _assumed(situation),
        "traffic": asdict(study.traffic) | {"began": _moment(study.traffic.first_us)},
        "dynamic_circuit_releases": [asdict(one) for one in study.releases],
        "sessions": {"count": study.sessions, "suitability": [asdict(one) for one in study.suitability]},
        "candidates": [_candidate(one, situation) for one in study.comparison.candidates],
        "transport": study.comparison.best.transport,
        "reason": study.comparison.sentence,
        "static_circuit_sizing": asdict(study.sizing) if study.sizing else None,
        "circuit_advice": asdict(study.advice) if study.advice else None,
        "groups": asdict(study.groups) if study.groups else None,
        "egress_by_sites": [asdict(one) for one in study.fan_out],
        "modelled_products": study.modelled_products,
    }


def transfer_document(source: Source, figures: SessionFigures, variance: VarianceFigures | None) -> dict[str, Any]:
    """The document of a log of transfers; without `variance` if there are too few."""
    throughput = asdict(variance) if variance else None
    return {**source, "kind": "transfers", "sessions": asdict(figures), "throughput": throughput}


def report_document(source: Source, feeds: tuple[ReportedFeed, ...]) -> dict[str, Any]:
    """The document of rtstats lines."""
    return {**source, "kind": "reports", "feeds": [asdict(one) for one in feeds]}


def _assumed(situation: Situation) -> dict[str, Any]:
    return {
        "sites": len(situation.sites),
        "egress_bps": situation.egress_bps,
        "objective": asdict(situation.objective),
        "floor_ms": situation.floor.p50_ms,
        "multicast": situation.multicast,
        "multicast_rate_bps": situation.multicast_rate_bps,
        "repair": situation.repair,
        "order": situation.order,
        "circuits": asdict(situation.circuits),
        "path": asdict(situation.sites[0]) if situation.sites else None,
    }


def _candidate(one: Evaluated, situation: Situation) -> dict[str, Any]:
    return {
        "transport": one.transport,
        "feasible": one.feasible,
        "reason": one.reason,
        "rate_bps": one.rate_bps,
        "price_bps": one.price_bps if one.outcome else None,
        "predicted": _predicted(one, one.outcome, situation) if one.outcome else None,
    }


def _predicted(one: Evaluated, outcome: Outcome, situation: Situation) -> dict[str, Any]:
    worst = situation.objective.share
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {
        "latency_s": {name: one.quantile_ms(at) / 1e3 for name, at in shares.items()},
        "worst_site_s": outcome.latencies.worst_site_s(worst) + situation.floor.at_ms(worst) / 1e3,
        "egress_bps": outcome.egress_bps,
        "peak_egress_bps": outcome.peak_egress_bps,
        "repair_share": outcome.repair_share,
        "reserved_bps": outcome.reserved_bps,
        "utilisation": outcome.utilisation,
        "buffer_bytes": outcome.buffer_bytes,
        "setups": outcome.setups,
    }


def _moment(at_us: int) -> str:
    return datetime.fromtimestamp(at_us / 1e6, tz=UTC).isoformat()
