"""Advice about circuits as rows: set-up times with hold times, and the value of a faster set-up."""

from rich.table import Table

from downburst_analyze.advice import Advice, Terms
from downburst_analyze.output.wording import plain
from downburst_scheduler.figures.wording import duration, megabits


def advice_tables(advice: Advice) -> list[Table]:
    """Both tables for a terminal."""
    return [_filled(TERMS, terms_rows(advice)), _filled(WORTH, worth_rows(advice))]


def terms_rows(advice: Advice) -> list[tuple[str, ...]]:
    """A row for each pair of set-up and hold."""
    return [_terms(one) for one in advice.terms]


def worth_rows(advice: Advice) -> list[tuple[str, ...]]:
    """A row for each set-up time."""
    return [
        (
            f"{one.setup_s:g} s",
            "keep it up" if one.hold_s is None else f"{one.hold_s:g} s",
            megabits(one.freed_bps),
            megabits(one.gained_bps),
        )
        for one in advice.worth
    ]


def _terms(one: Terms) -> tuple[str, ...]:
    return (
        f"{one.setup_s:g} s",
        f"{one.hold_s:g} s",
        f"{one.released_share:.1%}",
        f"{one.releases_a_day:.0f}",
        duration(one.added_mean_s * 1e3),
        duration(one.added_at_objective_s * 1e3),
        "yes" if one.keeps_objective else "no",
    )


def _filled(names: tuple[str, ...], rows: list[tuple[str, ...]]) -> Table:
    table = plain(*names)
    for row in rows:
        table.add_row(*row)
    return table


TERMS = (
    "set-up",
    "hold",
    "time released",
    "releases a day",
    "added to the mean",
    "added at the objective",
    "within the objective",
)
WORTH = ("set-up", "best hold", "freed on average", "more than the row above")
