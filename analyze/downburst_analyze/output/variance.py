"""Factors of the throughput of transfers, as a readable table."""

from rich.console import Console
from rich.markup import escape

from downburst_analyze.output.wording import plain
from downburst_analyze.variance import VarianceFigures
from downburst_scheduler.figures.wording import megabits


def print_variance(console: Console, found: VarianceFigures) -> None:
    """The factors, the most explanatory first, and a sentence about circuits."""
    table = plain(*FACTORS)
    for row in factor_rows(found):
        table.add_row(*map(escape, row))
    console.print()
    console.print(table)
    console.print()
    low, middle, high = map(megabits, found.quartiles_bps)
    console.print(f"Of {found.transfers} transfers half got {low} to {high}, the median {middle}.", soft_wrap=True)
    console.print(f"{found.sentence[0].upper()}{found.sentence[1:]}.", soft_wrap=True, markup=False)


def factor_rows(found: VarianceFigures) -> list[tuple[str, ...]]:
    """A row for each factor."""
    return [
        (
            f"{one.name} (network)" if one.of_network else one.name,
            f"{one.explained:.1%}",
            _figure(one.pearson),
            _figure(one.spearman),
        )
        for one in found.factors
    ]


def _figure(correlation: float | None) -> str:
    return "-" if correlation is None else f"{correlation:.2f}"


FACTORS = ("throughput depends on", "explains", "Pearson", "Spearman")
