"""Prometheus' text format, version 0.0.4.

The client library takes some ten microseconds for a sample, and a hub of many sites has some hundred thousand of
them at each scrape: the text common to all lines of a series is built once here.
"""

from collections.abc import Iterable, Sequence

from downburst.exposition.catalogue import BOUNDS_S, Metric

Sample = tuple[Sequence[str], float]
"""The label values in the order of the metric's labels, and the value."""
Counted = tuple[Sequence[str], Sequence[int], float]
"""Label values, the counts of the buckets (not cumulative, the last one without a bound), the sum of all values."""


def text_of(metric: Metric, samples: Iterable[Sample]) -> str:
    """A counter or gauge with its samples; one without samples still has its header."""
    name = metric.name
    lines = (f"{name}{_braced(_labels(metric, values))} {_number(value)}\n" for values, value in samples)
    return _head(metric) + "".join(lines)


def histograms_text(metric: Metric, samples: Iterable[Counted]) -> str:
    """A histogram with its series."""
    return _head(metric) + "".join(_histogram(metric, *sample) for sample in samples)


def _histogram(metric: Metric, values: Sequence[str], counts: Sequence[int], total: float) -> str:
    name, labels = metric.name, _labels(metric, values)
    begin = f"{name}_bucket{{{labels},le="
    lines, seen = [], 0
    for bound, count in zip(_BOUNDS, counts, strict=True):
        seen += count
        lines.append(f'{begin}"{bound}"}} {seen}\n')
    lines.append(f"{name}_sum{{{labels}}} {_number(total)}\n{name}_count{{{labels}}} {seen}\n")
    return "".join(lines)


def _head(metric: Metric) -> str:
    return f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} {metric.kind.value}\n"


def _labels(metric: Metric, values: Sequence[str]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in zip(metric.labels, values, strict=True))


def _braced(labels: str) -> str:
    return f"{{{labels}}}" if labels else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    # A bool is an int too, and Prometheus does not accept True.
    return str(int(value)) if isinstance(value, int) else repr(value)


_BOUNDS = (*(f"{bound:g}" for bound in BOUNDS_S), "+Inf")
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
