"""Counters of hosts beside transfers: CSV with a time and any other numeric columns, each value valid from then on.

A column `host` says whose the row is: `hub`, or the site's name as transfers name their peer. Interfaces count up
without end: a column with a name in `_total` is converted into its growth per second. A node records its own host's
counters in a directory of two files, the newest rows and the former ones.
"""

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
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


def counters(path: Path) -> dict[str, Counters]:
    """Reads a file or a node's directory, by host; all rows are of host "" without a column `host`.

    An unreadable line is refused in one sentence with its number.
    """
    try:
        if path.is_dir():
            return _of_node(path)
        with path.open(encoding="utf-8", errors="backslashreplace", newline="") as file:
            return _read(csv.reader(file), path.name)
    except OSError as error:
        raise BadInput(f"{path} can't be read ({error.strerror}); check the file and its rights") from error


def _of_node(directory: Path) -> dict[str, Counters]:
    newest = _whole_rows(directory / NEWEST)
    former = _whole_rows(directory / FORMER) if (directory / FORMER).exists() else []
    before = former[1:] if former[:1] == newest[:1] else []
    if len(newest) > 1:
        # The clock may have been set back between the files.
        before = [row for row in before if row and _is_earlier(row[0], newest[1][0])]
    return _read(iter([*newest[:1], *before, *newest[1:]]), f"{directory.name}/{NEWEST}")


def _whole_rows(path: Path) -> list[list[str]]:
    """The rows of a file, without one that is being written."""
    text = path.read_text(encoding="utf-8", errors="backslashreplace")
    return list(csv.reader(text[: text.rfind("\n") + 1].splitlines()))


def _is_earlier(one: str, other: str) -> bool:
    """True if a count of microseconds is less than another; text that is no count is refused later."""
    counts = (text.isdecimal() and len(text) <= MOST_DIGITS for text in (one, other))
    return not all(counts) or int(one) < int(other)


@dataclass(slots=True)
class _Samples:
    """The rows of one host."""

    times: list[int] = field(default_factory=list)
    rows: list[list[float]] = field(default_factory=list)


def _read(lines: Iterator[list[str]], name: str) -> dict[str, Counters]:
    header = [cell.strip().lower() for cell in next(lines, [])]
    columns = Columns.of(",".join(["size", *header]), name=name)
    if not columns.has("time"):
        raise BadInput(f"{name}, line 1: no column is called time; name the columns in the first line", line=1)
    labels = {columns.places["time"] - 1, *(place for place, cell in enumerate(header) if cell == HOST)}
    places = [place for place in range(len(header)) if place not in labels]
    if len(places) > MOST_COLUMNS:
        raise BadInput(f"{name}, line 1: there are {len(places)} columns; leave at most {MOST_COLUMNS}", line=1)
    hosts: dict[str, _Samples] = {}
    for number, cells in enumerate(lines, start=2):
        if not cells:
            continue
        row = Row(["0", *cells], columns, name=name, number=number)
        if len(cells) != len(header):
            raise row.bad(f"the row has {len(cells)} columns and the first line {len(header)}")
        if number > MOST_ROWS:
            raise row.bad(f"there are over {MOST_ROWS} rows; give the time of the transfers only, or fewer samples")
        seen = hosts.setdefault(cells[header.index(HOST)].strip() if HOST in header else "", _Samples())
        at_us = row.time_us("time")
        if seen.times and at_us <= seen.times[-1]:
            raise row.bad("its time is not after that of the row above it; sort the file")
        seen.times.append(at_us)
        seen.rows.append([_number(row, cells[place]) for place in places])
    names = [header[place] for place in places]
    return {host: _counters(seen, names, name, host) for host, seen in (hosts or {"": _Samples()}).items()}


def _counters(seen: _Samples, names: list[str], name: str, host: str) -> Counters:
    if len(seen.times) < FEWEST_ROWS:
        of = f" of {host}" if host else ""
        raise BadInput(f"{name}: counters{of} need at least {FEWEST_ROWS} rows; there are {len(seen.times)}")
    return _turned(np.array(seen.times, dtype=np.int64), np.array(seen.rows, dtype=np.float64), names)


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


NEWEST, FORMER = "newest.csv", "former.csv"
MOST_DIGITS = 20
TOTAL = "_total"
HOST = "host"
FEWEST_ROWS = 2
MOST_ROWS = 2_000_000
MOST_COLUMNS = 64
