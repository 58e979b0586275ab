"""Rows of a measurement, the table for people and the JSON for programs."""

import json
import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True)
class Goal:
    """The target of a row: a bound of the ratio to the peer, or of the product's own figure.

    `1 +-` bounds how far the figure is from one.
    """

    of: Literal["ratio", "ours"]
    sense: Literal[">=", "<=", "1 +-"]
    limit: float

    def __str__(self) -> str:
        return f"{self.of} {self.sense} {self.limit:.3g}"

    def met(self, *, ours: float, ratio: float | None) -> bool | None:
        """Return True if the goal is reached; None if there is no peer to compare with."""
        figure = ours if self.of == "ours" else ratio
        if figure is None:
            return None
        if self.sense == "1 +-":
            return abs(figure - 1) <= self.limit
        return figure >= self.limit if self.sense == ">=" else figure <= self.limit


@dataclass(frozen=True)
class Row:
    """One line: the product's figure, the peer's, and the goal."""

    id: str
    case: str
    unit: str
    ours: float
    against: str
    theirs: float | None
    runs: int
    goal: Goal | None = None

    @property
    def ratio(self) -> float | None:
        """Ours over theirs."""
        return self.ours / self.theirs if self.theirs else None

    @property
    def met(self) -> bool | None:
        """True if the goal is reached; None without a goal or without the peer that it names."""
        return self.goal.met(ours=self.ours, ratio=self.ratio) if self.goal else None

    def as_json(self) -> dict[str, Any]:
        """Give the row with the keys that all measurements share."""
        return {
            "id": self.id,
            "case": self.case,
            "unit": self.unit,
            "ours": _rounded(self.ours),
            "against": self.against,
            "theirs": _rounded(self.theirs),
            "ratio": _rounded(self.ratio),
            "goal": str(self.goal) if self.goal else "",
            "met": self.met,
            "runs": self.runs,
        }


def median(values: Iterable[float]) -> float:
    """Return the middle value."""
    return statistics.median(values)


def machine() -> dict[str, Any]:
    """Describe the machine of the measurement, and its load."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "cpu": _cpu_model(Path("/proc/cpuinfo").read_text()),
        "kernel": platform.release(),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "load_1min": os.getloadavg()[0],
    }


def document(bench: str, described: dict[str, Any], rows: Sequence[Row], notes: Sequence[str] = ()) -> dict[str, Any]:
    """Give the whole result as it is written to a file."""
    return {"bench": bench, "machine": described, "rows": [row.as_json() for row in rows], "notes": list(notes)}


def write(path: Path, result: dict[str, Any]) -> None:
    """Write the result; other programs read it."""
    path.write_text(json.dumps(result, indent=1) + "\n")


def table(rows: Sequence[Row]) -> str:
    """Give the rows as aligned text."""
    cells = [_HEAD, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_HEAD))]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in cells)


def markdown(rows: Sequence[Row]) -> str:
    """Give the rows as a Markdown table."""
    lines = [_HEAD, tuple("---" for _ in _HEAD), *(_cells(row) for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def figure(value: float | None) -> str:
    """Write a figure with three digits that matter, and a dash where there is none."""
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _cells(row: Row) -> tuple[str, ...]:
    met = {True: "yes", False: "no", None: "-"}[row.met]
    goal = str(row.goal) if row.goal else "-"
    figures = (figure(row.ours), row.against, figure(row.theirs), figure(row.ratio))
    return (row.id, row.case, row.unit, *figures, goal, met, str(row.runs))


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.5g}")


def _cpu_model(cpuinfo: str) -> str:
    models = (line.partition(":")[2].strip() for line in cpuinfo.splitlines() if line.startswith("model name"))
    return next(models, platform.machine())


_HEAD = ("row", "case", "unit", "ours", "against", "theirs", "ratio", "goal", "met", "runs")
