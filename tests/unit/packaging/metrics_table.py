"""The table of metrics in docs/metrics.md, from the catalogue that the code uses."""

from collections.abc import Iterator

from downburst.exposition import CATALOGUE, Metric
from downburst.exposition.catalogue import BOUNDS_S, SIZES


def markdown() -> str:
    """All of the generated part."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    for part, metrics in CATALOGUE.items():
        yield f"## {part}\n"
        yield "| metric | type | unit | labels | meaning | series per | at 500 sites, 30 feeds |"
        yield "|---|---|---|---|---|---|---:|"
        yield from map(_row, metrics)
        total = sum(metric.series_at(SIZES) for metric in metrics)
        yield f"\nTogether: {total:,} series.\n"
    yield f"Bucket bounds in seconds:\n{', '.join(f'{bound:g}' for bound in BOUNDS_S)}, +Inf."


def _row(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    factors = " by ".join(name.replace("_", " ").removesuffix("s") for name in metric.per) or "process"
    count = f"{metric.series_at(SIZES):,}"
    cells = (f"`{metric.name}`", metric.kind.value, metric.unit, labels, metric.help, factors, count)
    return f"| {' | '.join(cells)} |"
