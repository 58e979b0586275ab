"""Prometheus metrics, collected from the ledger and the present when they are asked for."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from downburst.alarms import Alarm
from downburst.circuits import Circuit, Measured
from downburst.ledger import Book
from downburst.model import LatencyKind, LegCounters, Plan, SketchRow, TrafficMinute
from downburst.supervision import FAULTS
from downburst_api.circuit_metrics import circuit_metrics
from downburst_api.histograms import Histogram, Labels
from downburst_api.latency import minute_of
from downburst_api.runtime import Runtime, runtime_of

router = APIRouter(tags=["health"])
Hub = Annotated[Runtime, Depends(runtime_of)]


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(hub: Hub) -> Response:
    """Everything an alarm may rest on; rates are counters, in bytes."""
    # A hub that has just started begins its histograms with the last minutes, not with all of its history.
    since = max(hub.histograms.first_open_minute, minute_of(hub.clock.now()) - FIRST_MINUTES)
    facts = await hub.ledger.read(lambda book: _facts(book, since))
    latencies = list(hub.histograms.with_rows(facts.sketches, now_minute=minute_of(hub.clock.now())))
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Hub(hub, facts, latencies))
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


@dataclass(frozen=True, slots=True)
class _Facts:
    sketches: list[SketchRow]
    counters: list[LegCounters]
    plans: list[Plan]
    traffic: dict[str, TrafficMinute]
    exceptions: int
    circuits: list[Circuit]
    measured: list[Measured]
    alarms: list[Alarm]


def _facts(book: Book, since_minute: int) -> _Facts:
    return _Facts(
        sketches=book.latency.rows(since_minute=since_minute),
        counters=book.legs.counters(),
        plans=book.plans.all_current(),
        traffic=book.traffic.totals(),
        exceptions=book.exceptions.count(),
        circuits=book.circuits.begun(),
        measured=book.circuits.measurements(),
        alarms=book.alarms.open(),
    )


def _internal_faults() -> Metric:
    family = CounterMetricFamily(
        "downburst_internal_fault", "Errors that a handler did not know; it set something aside", labels=("handler",)
    )
    for fault in FAULTS.all():
        family.add_metric([fault.handler], fault.count)
    return family


class _Hub(Collector):
    def __init__(self, hub: Runtime, facts: _Facts, latencies: list[tuple[Labels, Histogram]]) -> None:
        self._node = hub.node
        self._live = hub.live
        self._facts = facts
        self._latencies = latencies

    def collect(self) -> Iterator[Metric]:
        yield from self._latency()
        yield from self._legs()
        yield from self._ingest()
        yield from self._sessions()
        yield from self._plans()
        yield self._alarms()
        yield from circuit_metrics(self._facts.circuits, self._facts.measured, self._live)
        yield _gauge("downburst_node_up", "1 while the node runs", float(self._node.running))
        yield _counter("downburst_node_restarts", "Restarts of the node since the hub started", self._node.restarts)
        yield _internal_faults()
        yield _counter("downburst_exceptions", "Products rejected or expired at a site", self._facts.exceptions)

    def _latency(self) -> Iterator[Metric]:
        labels = ("feed", "transport", "site", "kind")
        families = {
            kind: HistogramMetricFamily(name, what, labels=labels) for kind, (name, what) in _LATENCIES.items()
        }
        for values, histogram in self._latencies:
            family = families.get(LatencyKind(values[3]), families[LatencyKind.DISTRIBUTION])
            family.add_metric([*values], buckets=histogram.cumulative(), sum_value=histogram.sum_s)
        yield from families.values()

    def _legs(self) -> Iterator[Metric]:
        labels = ("feed", "leg", "transport")
        egress = CounterMetricFamily(
            "downburst_egress_bytes", "Payload sent with TLS, repair and control", labels=labels
        )
        repair = CounterMetricFamily("downburst_repair_bytes", "Payload sent again as repair", labels=labels)
        sums: defaultdict[tuple[str, str, str], list[int]] = defaultdict(lambda: [0, 0])
        for row in self._facts.counters:
            kept = sums[row.feed, str(row.leg), row.transport.value]
            kept[0] += row.egress_bytes
            kept[1] += row.repair_bytes
        for values, (sent, repaired) in sorted(sums.items()):
            egress.add_metric(values, sent)
            repair.add_metric(values, repaired)
        yield egress
        yield repair

    def _ingest(self) -> Iterator[Metric]:
        products = CounterMetricFamily("downburst_ingest_products", "Products taken in", labels=("feed",))
        size = CounterMetricFamily("downburst_ingest_bytes", "Bytes of products taken in", labels=("feed",))
        for feed, total in sorted(self._facts.traffic.items()):
            products.add_metric([feed], total.products)
            size.add_metric([feed], total.bytes)
        yield products
        yield size

    def _sessions(self) -> Iterator[Metric]:
        yield _gauge("downburst_sessions", "Connected sites", self._live.connected)
        offset = GaugeMetricFamily("downburst_clock_offset_seconds", "Site's clock less the hub's", labels=("site",))
        bound = GaugeMetricFamily("downburst_clock_error_bound_seconds", "Bound of the offset", labels=("site",))
        pending = GaugeMetricFamily("downburst_pending_products", "Products due at a site", labels=("site",))
        for name, session in sorted(self._live.sessions.items()):
            if session.clock_offset_us is not None:
                offset.add_metric([name], session.clock_offset_us / 1e6)
            if session.clock_bound_us is not None:
                bound.add_metric([name], session.clock_bound_us / 1e6)
            pending.add_metric([name], sum(progress.pending for progress in session.progress.values()))
        yield from (offset, bound, pending)

    def _alarms(self) -> Metric:
        family = GaugeMetricFamily(
            "downburst_alarm", "1 while it goes on", labels=("kind", "feed", "site", "subject")
        )
        for alarm in self._facts.alarms:
            family.add_metric([alarm.kind.value, alarm.feed or "", alarm.site or "", alarm.subject], 1.0)
        return family

    def _plans(self) -> Iterator[Metric]:
        switches = CounterMetricFamily("downburst_plan_switch", "Plans made after the first", labels=("feed",))
        ratio = GaugeMetricFamily(
            "downburst_predicted_over_measured", "Predicted p99 over measured p99", labels=("feed",)
        )
        for plan in self._facts.plans:
            switches.add_metric([plan.feed], plan.version - 1)
            measured = plan.figures.get("predicted_over_measured")
            if isinstance(measured, int | float):
                ratio.add_metric([plan.feed], measured)
        yield switches
        yield ratio


def _gauge(name: str, help_text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, help_text, value=value)


def _counter(name: str, help_text: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(name, help_text, value=value)


_DELIVERY = "Latency of products at sites; kind says from where it counts. Negative values are in the first bucket."
_LATENCIES = {
    LatencyKind.DISTRIBUTION: ("downburst_delivery_latency_seconds", _DELIVERY),
    LatencyKind.QUEUEING: ("downburst_queueing_seconds", "Time from storage at the hub to the first byte sent"),
    LatencyKind.ACTION: ("downburst_action_seconds", "Time from storage at the site to the file that software sees"),
}
FIRST_MINUTES = 180
