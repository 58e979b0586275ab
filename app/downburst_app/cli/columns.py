"""Columns of tables: which are shown, and how narrow each may become."""

from collections.abc import Sequence
from typing import Annotated

import typer

Wide = Annotated[
    bool,
    typer.Option("--wide", help="Show all columns, in lines of any length; a wide terminal shows them by itself."),
]


class Further(str):
    """The head of a column that `--wide` or a wide terminal adds: without it the table answers its question at 80
    columns.
    """

    __slots__ = ()


def chosen(columns: Sequence[str], *, wide: bool) -> list[int]:
    """The indices of the columns to show."""
    return [index for index, name in enumerate(columns) if wide or not isinstance(name, Further)]


def least_widths(columns: Sequence[str], rows: Sequence[Sequence[str]], *, within: int) -> list[int]:
    """The least width of each column, in characters; `within` is that of the whole table with its lines.

    Names stay whole, those of the first column and of `NAMES`: a name in two lines can't be copied. Words of other
    columns stay whole if there is room, and those of heads always.
    """
    heads = [_longest(name) for name in columns]
    words = [max((_longest(row[index]) for row in rows), default=0) for index in range(len(columns))]
    of_names = [index == 0 or name in NAMES for index, name in enumerate(columns)]
    least = heads
    for most in range(LONGEST_WORD, 0, -1):
        kept = [word if names else min(word, most) for word, names in zip(words, of_names, strict=True)]
        least = [max(head, word) for head, word in zip(heads, kept, strict=True)]
        if table_width(least) <= within:
            break
    return least


def table_width(widths: Sequence[int]) -> int:
    """The width of a table whose columns have these, with the lines between them and the space beside."""
    return sum(widths) + 3 * len(widths) + 1


def natural_width(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """The width at which no cell has two lines."""
    return table_width([max(map(len, (name, *(row[i] for row in rows)))) for i, name in enumerate(columns)])


def _longest(text: str) -> int:
    return max(map(len, text.split()), default=0)


LONGEST_WORD = 60
NAMES = frozenset({"site", "feed", "offer", "port", "bridge", "publisher", "user", "upstream", "broker", "transport"})
"""Heads of columns with names."""
