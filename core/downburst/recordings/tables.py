"""Rows of CSV files by the meaning of their columns: time, size, duration, peer."""

import csv
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from downburst.foundation.clock import to_us
from downburst.foundation.errors import BadInput


@dataclass(frozen=True, slots=True)
class Columns:
    """The position and unit of each meaning in a row."""

    places: dict[str, int]
    units: dict[str, str]
    count: int
    named: bool
    """True if the text was a header; otherwise it is the first row, and the columns are the default ones."""

    @classmethod
    def of(cls, header: str, *, name: str) -> "Columns":
        """The columns that a header line names; a first line of numbers is a file without a header."""
        cells = [cell.strip().lower() for cell in next(csv.reader([header]))]
        named = not all(_is_number(cell) for cell in cells)
        if not named:
            cells = [*UNNAMED, *[""] * len(cells)][: len(cells)]
        places: dict[str, int] = {}
        units: dict[str, str] = {}
        for place, cell in enumerate(cells):
            word, unit = _word_and_unit(cell)
            meaning = next((meaning for meaning, words in MEANINGS.items() if word in words), word)
            if meaning not in places:
                places[meaning], units[meaning] = place, unit
        found = cls(places, units, len(cells), named)
        found.check(name)
        return found

    def has(self, meaning: str) -> bool:
        """True if there is such a column."""
        return meaning in self.places

    def check(self, name: str) -> None:
        """Refuses columns without the required meanings."""
        if not self.has("size") or not (self.has("time") or self.has("start")):
            raise BadInput(
                f"{name}, line 1: no column for the size and the time is known by its name; call them size_bytes and "
                "time (for transfers start, duration_s, size_bytes, peer), or name the columns with --columns",
                line=1,
            )


class Row:
    """One row; an invalid cell is refused with the number of the line."""

    def __init__(self, cells: Sequence[str], columns: Columns, *, name: str, number: int) -> None:
        self._cells = cells
        self._columns = columns
        self._name = name
        self._line = number

    def time_us(self, meaning: str) -> int:
        """A moment in microseconds since 1970, or since the file's own start if its times are small numbers."""
        meaning = meaning if self._columns.has(meaning) else "start"
        text, unit = self._cell(meaning), self._columns.units[meaning]
        if not unit and (compact := _COMPACT.fullmatch(text)):
            second, fraction = compact.groups()
            return self._instant_us(second, _compact) + int((fraction or "").ljust(6, "0")[:6])
        if _is_number(text):
            value = self.number(meaning, signed=True)
            at_us = value * TO_US[unit or _unit_by_size(value)]
            if abs(at_us) > LATEST_US:
                raise self.bad(f"{text[:40]} is not a time; it lies beyond the year 9999")
            return round(at_us)
        return self._instant_us(text, _rfc_3339)

    def size_bytes(self) -> int:
        """The size; a whole number of bytes."""
        size = self.number("size")
        if size > LARGEST_BYTES or size != int(size):
            raise self.bad(f"{self._cell('size')!r} is not a size; write a whole number of bytes")
        return int(size)

    def duration_s(self) -> float:
        """The duration in seconds."""
        duration_s = self.number("duration") * TO_US[self._columns.units["duration"] or "s"] / 1e6
        if duration_s > LATEST_US / 1e6:
            raise self.bad(f"{self._cell('duration')[:40]} is not a duration; it is longer than history")
        return duration_s

    def peer(self) -> str:
        """The peer; empty if the file does not name it."""
        return self._cell("peer") if self._columns.has("peer") else ""

    def number(self, meaning: str, *, signed: bool = False) -> float:
        """A number of a column."""
        text = self._cell(meaning)
        try:
            value = float(text)
        except ValueError:
            raise self.bad(f"{text[:40]!r} is not a number for the column {meaning}") from None
        if not math.isfinite(value) or (value < 0 and not signed):
            raise self.bad(f"{text} can't be a {meaning}; it must be finite and not below zero")
        return value

    def bad(self, what: str) -> BadInput:
        """An error about this row."""
        return BadInput(f"{self._name}, line {self._line}: {what}", line=self._line)

    def _cell(self, meaning: str) -> str:
        place = self._columns.places[meaning]
        if place >= len(self._cells):
            raise self.bad(f"the row has {len(self._cells)} columns and should have {self._columns.count}")
        return self._cells[place].strip()

    def _instant_us(self, text: str, read: Callable[[str], datetime]) -> int:
        try:
            return to_us(read(text))
        except ValueError:
            raise self.bad(
                f"{text[:40]!r} is not a time; write 2015-06-15T00:00:00.009Z, 20150615000000.009 or a number "
                "of seconds"
            ) from None


def rows_of(lines: Iterator[tuple[int, bytes]], columns: Columns, *, name: str) -> Iterator[Row]:
    """The rows of numbered lines."""
    for number, line in lines:
        try:
            cells = next(csv.reader([line.decode("utf-8", "backslashreplace")]))
        except csv.Error as error:
            raise BadInput(f"{name}, line {number}: the row can't be read ({error})", line=number) from None
        yield Row(cells, columns, name=name, number=number)


def _compact(text: str) -> datetime:
    return datetime.strptime(f"{text}+0000", "%Y%m%d%H%M%S%z")


def _rfc_3339(text: str) -> datetime:
    instant = datetime.fromisoformat(text)
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _unit_by_size(value: float) -> str:
    """Seconds, milliseconds or microseconds since 1970 can't be mistaken for each other in this century."""
    return "s" if abs(value) < 1e11 else "ms" if abs(value) < 1e14 else "us"


def _word_and_unit(cell: str) -> tuple[str, str]:
    word = re.sub(r"[^a-z0-9]+", "_", cell).strip("_")
    stem, _, last = word.rpartition("_")
    if stem and last in TO_US:
        return stem, last
    return (stem, "") if stem and last in ("bytes", "byte", "seconds", "utc") else (word, "")


TO_US = {"s": 1e6, "ms": 1e3, "us": 1.0}
LARGEST_BYTES = 10**15
LATEST_US = 253_402_300_800_000_000
UNNAMED = ("size", "arrival_ms")
MEANINGS = {
    "size": {"size", "bytes", "length", "nbytes", "filesize"},
    "time": {"time", "at", "timestamp", "arrival", "arrived_at", "created", "created_at", "last_modified", "date"},
    "start": {"start", "start_time", "started", "started_at", "begin"},
    "duration": {"duration", "elapsed", "seconds"},
    "peer": {"peer", "dest", "destination", "remote", "host", "site", "dst"},
}
_COMPACT = re.compile(r"(\d{14})(?:\.(\d{1,9}))?")
