"""The table of metrics in docs/metrics.md, from the catalogue that the code uses."""

from collections.abc import Iterator
from math import prod

from downburst.exposition import CATALOGUE, Metric
from downburst.exposition.catalogue import BOUNDS_S, Kind


def markdown() -> str:
    """All of the generated part."""
    return "\n".join(_lines()) + "\n"


def series_at(metric: Metric, sizes: dict[str, int]) -> int:
    """The series at a hub of such sizes; a histogram has its buckets, a sum and a count."""
    each = len(BOUNDS_S) + 3 if metric.kind is Kind.HISTOGRAM else 1
    return each * prod(sizes[name] for name in metric.per)


def _lines() -> Iterator[str]:
    for part, metrics in CATALOGUE.items():
        yield f"## {part}\n"
        yield "| metric | type | unit | labels | meaning | series per | at 500 sites, 30 feeds |"
        yield "|---|---|---|---|---|---|---:|"
        yield from map(_row, metrics)
        total = sum(series_at(metric, SIZES) for metric in metrics)
        yield f"\nTogether: {total:,} series.\n"
    yield f"Bucket bounds in seconds:\n{', '.join(f'{bound:g}' for bound in BOUNDS_S)}, +Inf."


def _row(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    factors = " by ".join(name.replace("_", " ").removesuffix("s") for name in metric.per) or "process"
    count = f"{series_at(metric, SIZES):,}"
    cells = (f"`{metric.name}`", metric.kind.value, metric.unit, labels, metric.help, factors, count)
    return f"| {' | '.join(cells)} |"


SIZES = {
    "feeds": 30,
    "sites": 500,
    "transports": 4,
    "transports_used": 1,
    "outcomes": 2,
    "probes": 5,
    "handlers": 100,
    "open_alarms": 100,
    "circuits": 100,
    "sites_of_circuit": 1,
    "directions": 2,
    "states": 10,
    "offers": 20,
    "centres": 100,
    "bridges": 5,
    "brokers": 2,
    "publishers": 20,
    "steps": 4,
}
"""A large hub. One transport at a time brings a feed to a site; after a change there are series of both."""
