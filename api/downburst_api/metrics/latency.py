"""Latencies as Prometheus' histograms."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from downburst.domain.latency import LatencyKind
from downburst.exposition.catalogue import ACTION, DELIVERY_LATENCY, END_TO_END_LATENCY, QUEUEING
from downburst.exposition.text import Counted, histograms_text
from downburst_api.metrics.histograms import Series


def latency_text(series: Iterable[Series]) -> Iterator[str]:
    """A histogram for each kind: sums over different kinds would have no meaning."""
    by_kind: defaultdict[LatencyKind, list[Counted]] = defaultdict(list)
    for one in series:
        by_kind[one.kind].append((one.labels, one.counts, one.sum_s))
    for kind, metric in _METRICS.items():
        yield histograms_text(metric, by_kind[kind])


_METRICS = {
    LatencyKind.DISTRIBUTION: DELIVERY_LATENCY,
    LatencyKind.END_TO_END: END_TO_END_LATENCY,
    LatencyKind.QUEUEING: QUEUEING,
    LatencyKind.ACTION: ACTION,
}
