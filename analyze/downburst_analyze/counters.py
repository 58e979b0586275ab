"""Counters of a host beside transfers: CSV with a time and any other numeric columns, each value valid from then on.

Interfaces count up without end: a column with a name in `_total` is converted into its growth per second.
"""

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from downburst.foundation.errors import BadInput
from downburst.recordings.tables import Columns, Row


@dataclass(frozen=True, slots=True)
class Counters:
    """Values by column, in order of time."""

    at_us: npt.NDArray[np.int64]
    columns: dict[str, npt.NDArray[np.float64]]


def counters(path: Path) -> Counters:
    """Reads a file; an unreadable line is refused in one sentence with its number."""
    try:
        with path.open(encoding="utf-8", errors="backslashreplace", newline="") as file:
            return _read(csv.reader(file), path.name)
    except OSError as error:
        raise BadInput(f"{path} can't be read ({error.strerror}); check the file and its rights") from error


def _read(lines: Iterator[list[str]], name: str) -> Counters:
    header = [cell.strip().lower() for cell in next(lines, [])]
    columns = Columns.of(",".join(["size", *header]), name=name)
    if not columns.has("time"):
        raise BadInput(f"{name}, line 1: no column is called time; name the columns in the first line", line=1)
    time_at = columns.places["time"] - 1
    names = [cell for place, cell in enumerate(header) if place != time_at]
    times: list[int] = []
    rows: list[list[float]] = []
    for number, cells in enumerate(lines, start=2):
        if not cells:
            continue
        row = Row(["0", *cells], columns, name=name, number=number)
        times.append(row.time_us("time"))
        if len(cells) != len(header):
            raise row.bad(f"the row has {len(cells)} columns and the first line {len(header)}")
        if len(times) > 1 and times[-1] <= times[-2]:
            raise row.bad("its time is not after that of the row above it; sort the file")
        rows.append([_number(row, cell) for place, cell in enumerate(cells) if place != time_at])
    if len(times) < FEWEST_ROWS:
        raise BadInput(f"{name}: counters need at least {FEWEST_ROWS} rows; there are {len(times)}")
    return _turned(np.array(times, dtype=np.int64), np.array(rows, dtype=np.float64), names)


def _number(row: Row, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise row.bad(f"{text[:40]!r} is not a number")
    return value


def _turned(at_us: npt.NDArray[np.int64], values: npt.NDArray[np.float64], names: list[str]) -> Counters:
    found = {}
    for place, name in enumerate(names):
        column = values[:, place]
        if name.endswith(TOTAL):
            growth = np.maximum(np.diff(column), 0) / (np.diff(at_us) / 1e6)
            column = np.append(growth, growth[-1])
        found[name.removesuffix(TOTAL)] = column
    return Counters(at_us, found)


TOTAL = "_total"
FEWEST_ROWS = 2
