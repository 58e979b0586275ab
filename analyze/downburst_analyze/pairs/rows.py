"""CSV of the bytes of each feed to each site by the minute: columns feed, site, minute, bytes, in any order."""

import csv
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from downburst.foundation.errors import BadInput
from downburst_analyze.pairs.learning import PairMinute


def pair_minutes(path: Path) -> Iterator[PairMinute]:
    """The rows of a file; an unreadable line is refused in one sentence with its number."""
    try:
        with path.open(encoding="utf-8", errors="backslashreplace", newline="") as file:
            yield from _rows(csv.reader(file), path.name)
    except OSError as error:
        raise BadInput(f"{path} can't be read ({error.strerror}); check the file and its rights") from error
    except csv.Error as error:
        raise BadInput(f"{path.name} can't be read as CSV ({error}); give a file with one row per line") from error


def _rows(lines: Iterator[list[str]], name: str) -> Iterator[PairMinute]:
    header = [cell.strip().lower() for cell in next(lines, [])]
    missing = [column for column in COLUMNS if column not in header]
    if missing:
        raise BadInput(f"{name}, line 1: no column is called {missing[0]}; name them {', '.join(COLUMNS)}", line=1)
    places = [header.index(column) for column in COLUMNS]
    for number, cells in enumerate(lines, start=2):
        if not cells:
            continue
        if len(cells) != len(header):
            raise _bad(name, number, f"the row has {len(cells)} columns and the first line {len(header)}")
        feed, site, minute, size = (cells[place].strip() for place in places)
        try:
            yield PairMinute(_name(feed), _name(site), _minute(minute), _whole(size, MOST_BYTES))
        except ValueError as error:
            raise _bad(name, number, str(error)) from None


def _bad(name: str, number: int, says: str) -> BadInput:
    return BadInput(f"{name}, line {number}: {says}", line=number)


def _name(text: str) -> str:
    if not text or len(text) > NAME_CHARS or not text.isprintable():
        raise ValueError(f"{text[:40]!r} is not a name; write 1 to {NAME_CHARS} printable characters")
    return text


def _minute(text: str) -> int:
    """A whole number of minutes since 1970, or a time of RFC 3339."""
    if text.isdecimal():
        return _whole(text, LATEST_MINUTE)
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text[:40]!r} is not a minute; write 2026-01-31T06:00Z or the minutes since 1970"
        ) from None
    seconds = (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp()
    if seconds < 0:
        raise ValueError(f"{text[:40]!r} is before 1970; write a later time")
    return int(seconds // 60)


def _whole(text: str, most: int) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= DIGITS and int(text) <= most):
        raise ValueError(f"{text[:40]!r} is not a whole number up to {most}")
    return int(text)


COLUMNS = ("feed", "site", "minute", "bytes")
NAME_CHARS = 256
MOST_BYTES = 10**15
LATEST_MINUTE = 4_223_371_680
"""The year 9999."""
DIGITS = 16
