"""Bounds of values from outside: from the node and through it from sites, from a file, to the node.

The node has the same bounds (crate model, bounds.rs); `tests/golden/bounds.json` keeps the two in step, and
`docs/node-lines.md` documents them. Each function returns the value as its type or raises `OutOfBounds`.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from downburst.foundation.errors import BadName
from downburst.foundation.names import check_feed_name, check_site_name

T = TypeVar("T")
NAMES_REMEMBERED = 4_096
"""The same names arrive each second, a thousand times."""


class OutOfBounds(ValueError):
    """An impossible value; the text names it and its bounds."""


@dataclass(frozen=True, slots=True)
class SetAside:
    """A list entry that was rejected."""

    site: str | None
    """The site concerned; None: the entry names no site."""
    sentence: str


def each(entries: Iterable[object], parse: Callable[[Any], T], what: str, aside: list[SetAside]) -> tuple[T, ...]:
    """Every valid entry; the others go to `aside`, each with its own reason."""
    read = []
    for entry in entries:
        try:
            read.append(parse(entry))
        except KeyError as error:
            aside.append(SetAside(site_of(entry), f"{what} lacks the field {error}"))
        except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            aside.append(SetAside(site_of(entry), f"{what} is impossible: {error}"))
    return tuple(read)


def site_of(entry: object) -> str | None:
    """The site that an entry names, if it names one."""
    try:
        return site_name(entry.get("site")) if isinstance(entry, dict) else None
    except OutOfBounds:
        return None


def integer(value: object, *, least: int, most: int) -> int:
    """A whole number between two others, both allowed."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise OutOfBounds(f"{shown(value)} is not a whole number")
    if not least <= value <= most:
        raise OutOfBounds(f"{shown(value)} is not between {least} and {most}")
    return value


def count(value: object, *, most: int | None = None) -> int:
    """A count, size or number: from 0 to the maximum of the ledger's databases."""
    if most is None and type(value) is int and 0 <= value <= INTEGER_MAX:
        return value
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise OutOfBounds(f"{shown(value)} is not a count")
    return integer(value, least=0, most=INTEGER_MAX if most is None else most)


def number(value: object, *, most: float) -> float:
    """A finite number of either sign, no larger than `most`."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or (isinstance(value, float) and not math.isfinite(value))
    ):
        raise OutOfBounds(f"{shown(value)} is not a number")
    if abs(value) > most:
        raise OutOfBounds(f"{shown(value)} is beyond {most:.0f}")
    return float(value)


def clock_us(value: object) -> int:
    """A stamp of a host's clock, in microseconds since 1970."""
    return integer(value, least=CLOCK_MIN_US, most=CLOCK_MAX_US)


def origin_us(value: object) -> int:
    """A stamp of a product's origin, in microseconds since 1970: any time that a date can express."""
    return integer(value, least=ORIGIN_MIN_US, most=ORIGIN_MAX_US)


def feed_name(value: object) -> str:
    """The name of a feed."""
    if not isinstance(value, str):
        raise OutOfBounds(f"{shown(value)} is not a name")
    return _feed(value)


def site_name(value: object) -> str:
    """The name of a site."""
    if not isinstance(value, str):
        raise OutOfBounds(f"{shown(value)} is not a name")
    return _site(value)


def flag(value: object) -> bool:
    """Yes or no."""
    if not isinstance(value, bool):
        raise OutOfBounds(f"{shown(value)} is neither true nor false")
    return value


def maybe(value: object, check: Callable[[object], T]) -> T | None:
    """An optional value."""
    return None if value is None else check(value)


def added(*counts: int) -> int:
    """A sum, capped at the ledger's maximum."""
    return min(sum(counts), INTEGER_MAX)


def epoch(value: object) -> str:
    """The life of a log: the decimal text of an unsigned integer of 64 bits."""
    if isinstance(value, str) and 1 <= len(value) <= 20 and value.isascii() and value.isdigit():
        return value
    raise OutOfBounds(f"{shown(value)} is not the epoch of a log")


def word(value: object) -> str:
    """A short text without blanks: an id, a kind, a state."""
    if isinstance(value, str) and 1 <= len(value) <= WORD_CHARS and all("!" <= char <= "~" for char in value):
        return value
    raise OutOfBounds(f"{shown(value)} is not a name")


def sentence(value: object) -> str:
    """A text for users, cut to the maximum length, without control characters."""
    if not isinstance(value, str):
        raise OutOfBounds(f"{shown(value)} is not a text")
    return "".join(char if char.isprintable() else " " for char in value[:SENTENCE_CHARS_MAX])


def entries(value: object, *, most: int) -> list[object]:
    """A list that is not too long."""
    if not isinstance(value, list):
        raise OutOfBounds(f"{shown(value)} is not a list")
    if len(value) > most:
        raise OutOfBounds(f"a list has {len(value)} entries; at most {most} are read")
    return value


def shown(value: object) -> str:
    """A value for a message, shortened: it may be anything."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 256:
        return f"a number of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}..."


@lru_cache(maxsize=NAMES_REMEMBERED)
def _feed(name: str) -> str:
    return _named(name, check_feed_name)


@lru_cache(maxsize=NAMES_REMEMBERED)
def _site(name: str) -> str:
    return _named(name, check_site_name)


def _named(value: str, check: Callable[[str], str]) -> str:
    try:
        return check(value)
    except BadName as error:
        raise OutOfBounds(error.sentence[: 2 * SHOWN_CHARS]) from None


INTEGER_MAX = 2**63 - 1
"""The highest count, size or number: the ledger's databases keep signed integers of 64 bits."""
CLOCK_MIN_US = 0
"""The earliest stamp of a host's clock: 1970. A host without a clock of its own begins there."""
CLOCK_MAX_US = 7_258_118_399_999_999
"""The last stamp of a host's clock: the end of the year 2199."""
ORIGIN_MIN_US = -62_135_596_800_000_000
"""The earliest stamp of a product's origin: the first moment that a date can express, in the year 1."""
ORIGIN_MAX_US = 253_402_300_799_999_999
"""The last stamp of a product's origin: the last moment that a date can express, in the year 9999."""
OFFSET_MAX_US = 7_258_118_400_000_000
"""The greatest difference of two clocks: the span between the first and the last stamp."""
BUCKET_MAX = 1_000
"""The highest index of a sketch's bucket, of either sign; that of the longest time between two stamps is 919."""
SKETCH_COUNT_MAX = 2**40
"""The maximum number of values in one sketch."""
LATENCY_MS_MAX = 1_000_000_000_000_000
"""The longest latency, of either sign: longer than the time between any two stamps."""
LATENCY_SUM_MS_MAX = 9_000_000_000_000_000
"""The largest sum of a sketch's latencies, of either sign: in microseconds it is an integer of 64 bits."""
SENTENCE_CHARS_MAX = 4_000
"""The longest sentence on a line between node and agent."""
LINE_BYTES_MAX = 16 * 2**20
"""The longest line between node and agent."""
BATCH_BYTES_MAX = 256 * 2**20
"""The longest batch file."""
PRODUCTS_MAX = 2**53
"""The maximum of a sum of products: databases can still add up a thousand such sums."""
BATCH_ENTRIES_MAX = 1_000_000
"""The maximum number of entries in one list of a batch file."""
WORD_CHARS = 100
SHOWN_CHARS = 100
