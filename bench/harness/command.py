"""Parts of the command of a measurement by rows: their choice, and cases that fail."""

import argparse
from collections.abc import Callable, Collection
from typing import Protocol, TypeVar

from bench.harness import report
from bench.harness.scratch import tell
from bench.harness.turns import FAILURES


class Noting(Protocol):
    """The cases of a measurement."""

    notes: list[str]


B = TypeVar("B", bound=Noting)


def kept(bench: B, case: Callable[[B], list[report.Row]]) -> list[report.Row]:
    """Rows of a case; one that fails is noted, since the others are worth having."""
    try:
        return case(bench)
    except FAILURES as failure:
        bench.notes.append(f"NOT MEASURED, {case.__doc__} {failure}")
        tell(bench.notes[-1])
        return []


def chosen(text: str, known: Collection[str]) -> list[str]:
    """Read the rows that the caller wants, as in 1,4,11."""
    wanted = [row.strip() for row in text.split(",")]
    if unknown := [row for row in wanted if row not in known]:
        raise argparse.ArgumentTypeError(f"there is no row {', '.join(unknown)}; there are {', '.join(known)}")
    return wanted
