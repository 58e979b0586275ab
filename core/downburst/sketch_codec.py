"""Sketches as few bytes: the minutes of an hour in one value, for a history of a year.

Stamps are whole microseconds, so sums and extremes are kept as whole microseconds and come back exactly. A sketch is

    count, negative, bound + 1 (0: nobody gave one), minimum (zigzag), maximum - minimum, sum (zigzag),
    number of buckets, and for each bucket, by rising code: code less the one before, count

and a value is the version, the number of minutes, and for each minute its distance from the one before and its
sketch. All numbers are of variable length (seven bits a byte, low ones first); all of it is compressed by zlib,
whose checksum also tells of damage. A bucket's code is 0 for `z`, else 1 + 2 * zigzag(index), one more for a
negative value.
"""

import zlib
from collections.abc import Iterator, Mapping

from downburst.sketch import NEGATIVE_PREFIX, ZERO_BUCKET, LatencySketch


def pack(sketches: Mapping[int, LatencySketch]) -> bytes:
    """The sketches by their minute, which is counted from wherever the caller likes."""
    out = bytearray([VERSION])
    _put(out, len(sketches))
    before = 0
    for minute, sketch in sorted(sketches.items()):
        _put(out, minute - before)
        before = minute
        _put_sketch(out, sketch)
    return zlib.compress(bytes(out), LEVEL)


def unpack(packed: bytes) -> dict[int, LatencySketch]:
    """What `pack` was given; ValueError if this is nothing of the kind."""
    try:
        data = zlib.decompress(packed)
    except zlib.error as error:
        raise ValueError(f"a packed sketch is damaged: {error}") from error
    if not data or data[0] != VERSION:
        raise ValueError(f"a packed sketch is of version {data[0] if data else 'none'}; this program reads {VERSION}")
    numbers = _numbers(data[1:])
    sketches = {}
    minute = 0
    try:
        for _ in range(next(numbers)):
            minute += next(numbers)
            sketches[minute] = _sketch(numbers)
    except StopIteration:
        raise ValueError("a packed sketch ends early") from None
    return sketches


def _put_sketch(out: bytearray, sketch: LatencySketch) -> None:
    lowest, highest, total = (round(value * 1000) for value in (sketch.min_ms, sketch.max_ms, sketch.sum_ms))
    _put(out, sketch.count)
    _put(out, sketch.negative)
    _put(out, 0 if sketch.bound_ms is None else round(sketch.bound_ms * 1000) + 1)
    _put(out, _zigzag(lowest))
    _put(out, highest - lowest)
    _put(out, _zigzag(total))
    coded = sorted((_code(bucket), count) for bucket, count in sketch.buckets.items())
    _put(out, len(coded))
    before = 0
    for code, count in coded:
        _put(out, code - before)
        _put(out, count)
        before = code


def _sketch(numbers: Iterator[int]) -> LatencySketch:
    count, negative, bound, lowest, width, total, kinds = [next(numbers) for _ in range(7)]
    buckets = {}
    code = 0
    for _ in range(kinds):
        code += next(numbers)
        buckets[_bucket(code)] = next(numbers)
    min_us = _unzigzag(lowest)
    return LatencySketch(
        count=count,
        sum_ms=_unzigzag(total) / 1000,
        min_ms=min_us / 1000,
        max_ms=(min_us + width) / 1000,
        negative=negative,
        bound_ms=None if bound == 0 else (bound - 1) / 1000,
        buckets=buckets,
    )


def _code(bucket: str) -> int:
    if bucket == ZERO_BUCKET:
        return 0
    negative = bucket.startswith(NEGATIVE_PREFIX)
    return 1 + 2 * _zigzag(int(bucket.removeprefix(NEGATIVE_PREFIX))) + negative


def _bucket(code: int) -> str:
    if code == 0:
        return ZERO_BUCKET
    index = _unzigzag((code - 1) // 2)
    return f"{NEGATIVE_PREFIX}{index}" if (code - 1) % 2 else str(index)


def _put(out: bytearray, number: int) -> None:
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def _numbers(data: bytes) -> Iterator[int]:
    number, shift = 0, 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            yield number
            number, shift = 0, 0


def _zigzag(number: int) -> int:
    return 2 * number if number >= 0 else -2 * number - 1


def _unzigzag(number: int) -> int:
    return number // 2 if number % 2 == 0 else -(number + 1) // 2


VERSION = 1
LEVEL = 6
"""Level 9 saves another 1 % for twice the time."""
