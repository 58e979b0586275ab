"""The table of docs/access.md with the bounds on the ledger's rows, made from the bounds that the code uses."""

from downburst.ledger.storage.growth import GROWTH, Bound, Kept, Unique
from downburst.ledger.storage.limits import Newest, RowLimit


def in_words(bound: Bound) -> str:
    """A bound in the form used by the documentation."""
    match bound:
        case RowLimit():
            return f"{bound.most:,} {bound.rows} per {bound.per} (`{bound.name}`)"
        case Newest():
            return f"the newest {bound.most:,} {bound.rows} per {bound.per}"
        case Unique():
            return f"one for each {bound.each}"
        case Kept():
            return bound.words if bound.setting is None else f"{bound.words} `{bound.setting}`"


def markdown() -> str:
    """The table in Markdown."""
    rows = [
        f"| `{table}` | {growth.by} | {'; '.join(map(in_words, growth.bounds))} |"
        for table, growth in sorted(GROWTH.items())
    ]
    return "\n".join(["| table | rows are added by | bounds |", "|---|---|---|", *rows, ""])
