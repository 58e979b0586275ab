"""The catalogue of handlers, `tests/golden/handlers.json`: the outcome of an unknown error in each, by process.

A new handler gets an entry there, and a test has to throw into it. `docs/reliability.md` has its table
(`cd tests && ../.venv/bin/python -m unit.reliability.write_table`).
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Outcomes:
    """The processes in which handlers run, the tests that throw into them, and the outcomes."""

    by_handler: dict[str, dict[str, str]]
    """By handler and process: `goes on` or `ends`."""
    tests: dict[str, list[str]]
    """By process FILE::NAME of the tests that throw."""
    alone: dict[str, str]
    """By handler FILE::NAME of the test that throws into it alone."""
    not_entered: dict[str, str]
    """By handler why no test throws into it."""

    def of(self, process: str, outcome: str) -> frozenset[str]:
        """The handlers with that outcome in that process."""
        return frozenset(name for name, found in self.by_handler.items() if found.get(process) == outcome)


@cache
def outcomes() -> Outcomes:
    """The catalogue."""
    read = json.loads(CATALOGUE.read_text(encoding="utf-8"))
    return Outcomes(read["handlers"], read["tests"], read["thrown into alone"], read["not entered"])


def markdown() -> str:
    """The table of `docs/reliability.md`."""
    known = outcomes()
    rows = ["handler | goes on in | ends, and is restarted |", "--- | --- | --- |"]
    for name, found in sorted(known.by_handler.items()):
        columns = (", ".join(where for where in found if found[where] == word) or "-" for word in ("goes on", "ends"))
        rows.append(f"`{name}` | {' | '.join(columns)} |")
    return "".join(f"| {row}\n" for row in rows)


CATALOGUE = Path(__file__).resolve().parents[1] / "golden" / "handlers.json"
