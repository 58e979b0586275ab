"""Recordings of a feed, read from files of any common kind in pieces of bounded size.

* products: the trace format (`size_bytes YYYYMMDDhhmmss.mmm`), or CSV with columns for the size and the time;
* transfers: CSV with start, duration, size and, where it is known, the peer;
* reports: lines of rtstats, eleven fields separated by blanks.

A file may be compressed by gzip. CSV without a header is read as size in bytes, arrival in milliseconds. Times are
RFC 3339, YYYYMMDDhhmmss with or without a fraction, or numbers with the unit at the end of the column's name (`_s`,
`_ms`, `_us`). An unreadable line is refused in one sentence with its number.
"""

import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from downburst.foundation.bounds import LATENCY_MS_MAX, OutOfBounds, count, origin_us, shown
from downburst.foundation.bounds import number as bounded
from downburst.foundation.errors import BadInput
from downburst.recordings.tables import Columns, Row, rows_of
from downburst.recordings.traces import LONGEST_LINE_BYTES, parse_lines


class Kind(StrEnum):
    """The kind of a recording's lines."""

    PRODUCTS = "products"
    TRANSFERS = "transfers"
    REPORTS = "reports"


@dataclass(frozen=True, slots=True)
class ProductPiece:
    """Products in order of time: microseconds since 1970 (or since any start), and bytes."""

    at_us: npt.NDArray[np.int64]
    size_bytes: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Transfer:
    """One transfer of a log."""

    start_us: int
    duration_s: float
    size_bytes: int
    peer: str


@dataclass(frozen=True, slots=True)
class Report:
    """One rtstats line: how late the products of one feed were at one host in one hour."""

    at_us: int
    host: str
    feed: str
    path: str
    products: int
    bytes: int
    mean_latency_s: float


def report_of(line: str) -> Report:
    """Parses one rtstats line from an untrusted sender; raises `BadInput` with the reason if it is invalid."""
    report = _report(line.encode(errors="replace"), name="rtstats", number=1)
    try:
        _check(report)
    except OutOfBounds as error:
        raise BadInput(f"rtstats: {error}") from None
    return report


def _check(report: Report) -> None:
    count(report.products)
    count(report.bytes)
    origin_us(report.at_us)
    bounded(report.mean_latency_s * 1_000, most=LATENCY_MS_MAX)
    for name in (report.host, report.feed, report.path):
        if len(name) > REPORT_NAME_CHARS or not name.isprintable():
            raise OutOfBounds(f"{shown(name)} is not a name")


Progress = Callable[[float], None]
"""Called with the share of the file that was read."""


class Recording:
    """A file of a kind that its first line determines; open it by `recording`."""

    def __init__(self, file: "_Lines", kind: Kind, columns: Columns | None) -> None:
        self.kind = kind
        self._file = file
        self._columns = columns

    def products(self, *, sort: bool = False) -> Iterator[ProductPiece]:
        """The products of a recording of products; `sort` first sorts a whole file by time."""
        read = self._products if self._columns is None else self._product_rows
        rows = read(check_order=not sort)
        if sort:
            rows = iter(sorted(rows))
        yield from _pieces(rows)

    def transfers(self) -> Iterator[Transfer]:
        """The transfers of a log of transfers, in the order of the file."""
        for row in self._rows():
            yield Transfer(row.time_us("start"), row.duration_s(), row.size_bytes(), row.peer())

    def reports(self) -> Iterator[Report]:
        """The reports of an rtstats file; a report broken into several lines in transit is joined."""
        begun, first = b"", 0
        for number, line in self._file.numbered():
            first = first if begun else number
            begun += line.rstrip(b"\r\n")
            if len(begun.split()) < REPORT_FIELDS and number - first < BROKEN_INTO:
                continue
            yield _report(begun, name=self._file.name, number=first)
            begun = b""
        if begun:
            yield _report(begun, name=self._file.name, number=first)

    def _products(self, *, check_order: bool) -> Iterator[tuple[int, int]]:
        lines = (line for _, line in self._file.numbered(blank=True))
        for arrival in parse_lines(lines, name=self._file.name, check_order=check_order):
            yield arrival.at_us, arrival.size_bytes

    def _product_rows(self, *, check_order: bool) -> Iterator[tuple[int, int]]:
        latest_us = -(2**63)
        for row in self._rows():
            at_us = row.time_us("time")
            if check_order and at_us < latest_us:
                raise row.bad("its time is before that of the product above it; sort the file, or use --sort")
            latest_us = at_us
            yield at_us, row.size_bytes()

    def _rows(self) -> Iterator[Row]:
        if self._columns is None:
            raise BadInput(f"{self._file.name} has no columns; give a CSV file")
        return rows_of(self._file.numbered(), self._columns, name=self._file.name)


@contextmanager
def recording(path: Path, *, columns: str | None = None, progress: Progress | None = None) -> Iterator[Recording]:
    """Opens a recording; `columns` names those of a CSV file that has no header, separated by commas."""
    try:
        with path.open("rb") as raw:
            lines = _Lines(path, raw, progress)
            yield _recognised(lines, columns)
    except (OSError, EOFError, zlib.error) as error:
        what = getattr(error, "strerror", None) or str(error)
        raise BadInput(f"{path} can't be read ({what}); check the file and its rights") from error


def _recognised(lines: "_Lines", columns: str | None) -> Recording:
    first = lines.first()
    if first is None:
        raise BadInput(f"{lines.name}, line 1: the file holds no product; give one with at least two", line=1)
    text = first.decode("utf-8", "backslashreplace")
    if columns is not None or "," in text:
        found = Columns.of(columns or text, name=lines.name)
        if columns is None and found.named:
            lines.skip_first()
        kind = Kind.TRANSFERS if found.has("start") and found.has("duration") else Kind.PRODUCTS
        return Recording(lines, kind, found)
    if len(text.split()) == REPORT_FIELDS:
        return Recording(lines, Kind.REPORTS, None)
    return Recording(lines, Kind.PRODUCTS, None)


class _Lines:
    """Numbered lines of a file that may be compressed; no line is read beyond a bounded length."""

    def __init__(self, path: Path, raw: IO[bytes], progress: Progress | None) -> None:
        self.name = path.name
        self._raw = raw
        self._size = max(path.stat().st_size, 1)
        self._progress = progress
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        self._file: IO[bytes] = io.BufferedReader(gzip.GzipFile(fileobj=raw)) if packed else raw
        self._number = 0
        self._pushed: bytes | None = None

    def first(self) -> bytes | None:
        """The first line that is not empty; it is read again afterwards."""
        while line := self._next():
            if line.strip():
                self._pushed = line
                self._number -= 1
                return line.strip()
        return None

    def skip_first(self) -> None:
        self._next()

    def numbered(self, *, blank: bool = False) -> Iterator[tuple[int, bytes]]:
        """Numbered lines, without empty ones unless `blank` is set."""
        if blank:
            yield from ((number, b"") for number in range(1, self._number + 1))
        while line := self._next():
            if self._progress and self._number % PROGRESS_LINES == 0:
                self._progress(min(self._raw.tell() / self._size, 1.0))
            if blank or line.strip():
                yield self._number, line

    def _next(self) -> bytes:
        line, self._pushed = self._pushed or self._file.readline(LONGEST_LINE_BYTES), None
        self._number += 1
        return line


def _pieces(rows: Iterator[tuple[int, int]]) -> Iterator[ProductPiece]:
    times: list[int] = []
    sizes: list[int] = []
    for at_us, size_bytes in rows:
        times.append(at_us)
        sizes.append(size_bytes)
        if len(times) == PIECE_PRODUCTS:
            yield ProductPiece(np.array(times, dtype=np.int64), np.array(sizes, dtype=np.float64))
            times, sizes = [], []
    if times:
        yield ProductPiece(np.array(times, dtype=np.int64), np.array(sizes, dtype=np.float64))


def _report(line: bytes, *, name: str, number: int) -> Report:
    fields = line.decode("utf-8", "backslashreplace").split()
    if len(fields) != REPORT_FIELDS:
        raise BadInput(f"{name}, line {number}: rtstats has 11 fields and this line {len(fields)}", line=number)
    row = Row(fields, Columns.of(REPORT_COLUMNS, name=name), name=name, number=number)
    # Unused fields are still checked: without numbers there it is not a line of rtstats.
    row.number("newest", signed=True)
    if not WORST.fullmatch(fields[9]):
        raise row.bad(f"{fields[9][:40]!r} is not a worst latency; rtstats writes seconds@MMSS, for example 11@0022")
    return Report(
        at_us=row.time_us("time"),
        host=fields[2],
        feed=fields[3],
        path=fields[4],
        products=int(row.number("products")),
        bytes=int(row.number("size")),
        mean_latency_s=row.number("latency", signed=True),
    )


REPORT_FIELDS = 11
REPORT_NAME_CHARS = 256
"""Hosts have at most 253, feed types and paths fewer."""
WORST = re.compile(r"-?\d+(\.\d+)?@\d{4}")
BROKEN_INTO = 4
REPORT_COLUMNS = "time,arrived,host,feed,path,products,size,newest,latency,worst,version"
PIECE_PRODUCTS = 65_536
PROGRESS_LINES = 4_096
