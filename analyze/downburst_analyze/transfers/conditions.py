"""Conditions of transfers beside start, duration, size and peer: connections, senders and round trip.

In a CSV log they are columns `connections`, `senders` and `round_trip_ms`; an empty cell is not known.
"""

import csv
import gzip
import math
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from downburst.foundation.errors import BadInput
from downburst_scheduler.figures.histograms import Floats

Conditions = Mapping[str, Floats]
"""A value for each transfer of a log, by condition; NaN where it is not known."""


def conditions_of(path: Path) -> Conditions:
    """The conditions that a log's first line names, for its transfers in their order; empty without any."""
    try:
        with _opened(path) as file:
            return _read(csv.reader(file), path.name)
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        raise BadInput(f"{path} can't be read ({error}); check the file and its rights") from error


def _read(lines: Iterator[list[str]], name: str) -> Conditions:
    header = [cell.strip().lower() for cell in next(lines, [])]
    places = {column: header.index(column) for column in COLUMNS if column in header}
    values = {column: array("d") for column in places}
    # A log of millions of transfers without conditions is not read a second time.
    for number, cells in enumerate(lines if places else (), start=2):
        if any(cell.strip() for cell in cells):
            for column, place in places.items():
                values[column].append(_number(cells, place, f"{name}, line {number}", column))
    return {COLUMNS[column]: np.array(seen, dtype=np.float64) for column, seen in values.items()}


def _number(cells: list[str], place: int, where: str, column: str) -> float:
    text = cells[place].strip() if place < len(cells) else ""
    try:
        value = float(text) if text else math.nan
    except ValueError:
        value = math.inf
    if value < 0 or value > MOST:
        raise BadInput(f"{where}: {text[:40]!r} is not a number for the column {column}; leave it empty if unknown")
    return value


@contextmanager
def _opened(path: Path) -> Iterator[Iterable[str]]:
    with path.open("rb") as raw:
        packed = raw.read(2) == GZIP
        raw.seek(0)
        file: IO[bytes] = gzip.GzipFile(fileobj=raw) if packed else raw  # type: ignore[assignment]
        yield (line.decode("utf-8", "backslashreplace") for line in file)


COLUMNS = {"connections": "connections", "senders": "senders", "round_trip_ms": "round trip"}
"""The factor that each column is."""
MOST = 1e9
GZIP = b"\x1f\x8b"
