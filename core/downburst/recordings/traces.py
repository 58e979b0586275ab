"""Arrival traces: one product a line, `size_bytes YYYYMMDDhhmmss.mmm` (UTC creation time), in time order.

Size and time are separated by blanks, empty lines are skipped, one to six decimals of a second are read.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from downburst.foundation.clock import to_us
from downburst.foundation.errors import BadInput


@dataclass(frozen=True, slots=True)
class Arrival:
    """A product with its size in bytes and its time of creation in microseconds since 1970."""

    size_bytes: int
    at_us: int


def parse(path: Path) -> Iterator[Arrival]:
    """Iterates over the arrivals of a trace file; `BadInput` names the file and the wrong line."""
    try:
        with path.open("rb") as file:
            yield from parse_lines(_bounded_lines(file.readline), name=path.name)
    except OSError as error:
        raise BadInput(f"the trace {path} can't be read ({error.strerror}); check the path and its rights") from error


def parse_lines(lines: Iterable[bytes], *, name: str, check_order: bool = True) -> Iterator[Arrival]:
    """The arrivals of lines; `name` is their source in messages."""
    latest = Arrival(0, -(2**63))
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text:
            continue
        arrival = _arrival(text, name=name, number=number)
        if check_order and arrival.at_us < latest.at_us:
            raise _bad("its time is before that of the product above it; sort the trace by time", name, number)
        latest = arrival
        yield arrival


def _bounded_lines(readline: Callable[[int], bytes]) -> Iterator[bytes]:
    while line := readline(LONGEST_LINE_BYTES):
        yield line


def _arrival(text: bytes, *, name: str, number: int) -> Arrival:
    match = _LINE.fullmatch(text)
    if match is None:
        shown = text[:40].decode("ascii", "backslashreplace")
        raise _bad(
            f"{shown!r} is not an arrival; write the size in bytes and the time, for example 90654 "
            "20150615000000.009",
            name,
            number,
        )
    size, second, fraction = match.groups()
    try:
        return Arrival(int(size), _second_us(second) + int(fraction.ljust(6, b"0")))
    except ValueError as error:
        shown = second.decode("ascii")
        raise _bad(f"the time {shown} does not exist ({error}); correct it", name, number) from None


@lru_cache(maxsize=64)
def _second_us(digits: bytes) -> int:
    """Cached, as neighbours in a trace mostly share their second."""
    text = digits.decode("ascii")
    parts = (text[:4], text[4:6], text[6:8], text[8:10], text[10:12], text[12:14])
    year, month, day, hour, minute, second = map(int, parts)
    return to_us(datetime(year, month, day, hour, minute, second, tzinfo=UTC))


def _bad(what: str, name: str, number: int) -> BadInput:
    return BadInput(f"{name}, line {number}: {what}", line=number)


LONGEST_LINE_BYTES = 4096
_LINE = re.compile(rb"(\d{1,15})[ \t]+(\d{14})\.(\d{1,6})")
