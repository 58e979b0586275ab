"""Sheets of one feed and kind as bytes: columns of the narrowest integers that hold them, compressed by zlib.

    version, then compressed: rows, buckets, bytes of the names (u4 each), each column's width (a byte each),
    the names ([[site, transport], ...] as JSON), the columns

Minutes count from the sheet's beginning, a maximum from its minimum, a bucket's code from the previous one. zlib's
checksum detects damage.
"""

import json
import struct
import zlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from downburst.sketches.sheet import COLUMNS, Ints, Path, Sheet


def pack_sheet(sheet: Sheet, *, begin: int, level: int = 6) -> bytes:
    """A sheet of one feed and kind that begins at minute `begin`."""
    used, path = np.unique(sheet.path, return_inverse=True)
    names = json.dumps([[sheet.paths[at].site, sheet.paths[at].transport] for at in used.tolist()]).encode()
    whole = replace(
        sheet,
        path=path,
        minute=sheet.minute - begin,
        max_us=sheet.max_us - sheet.min_us,
        codes=np.diff(sheet.codes, prepend=0),
    )
    columns = [_narrow(getattr(whole, name)) for name in COLUMNS]
    widths = bytes(WIDTHS.index(column.dtype.str) for column in columns)
    head = _HEAD.pack(len(sheet), len(sheet.codes), len(names)) + widths + names
    return bytes([VERSION]) + zlib.compress(head + b"".join(column.tobytes() for column in columns), level)


class Unpacking:
    """Reads sheets; those of the same feed, kind and names share their paths."""

    def __init__(self) -> None:
        self._paths: dict[tuple[str, str, bytes], tuple[Path, ...]] = {}

    def sheet(self, packed: bytes, *, feed: str, kind: str, begin: int) -> Sheet:
        """Restores the input of `pack_sheet`; raises ValueError if the bytes are not a sheet."""
        if not packed or packed[0] != VERSION:
            found = packed[0] if packed else "none"
            raise ValueError(f"a sheet of latencies is of version {found}; this program reads {VERSION}")
        try:
            data = zlib.decompress(memoryview(packed)[1:])
            rows, buckets, named = _HEAD.unpack_from(data)
            widths = data[_HEAD.size : _HEAD.size + len(COLUMNS)]
            at = _HEAD.size + len(COLUMNS)
            names = data[at : at + named]
            columns = _read(data, at + named, widths, (rows,) * _OF_ROWS + (buckets,) * _OF_BUCKETS)
        except (zlib.error, struct.error, ValueError, IndexError) as error:
            raise ValueError(f"a sheet of latencies is damaged: {error}") from error
        path, minute, count, negative, sum_us, min_us, max_us, bound_us, sizes, codes, held = columns
        return Sheet(
            self._named(feed, kind, names),
            path,
            minute + begin,
            count,
            negative,
            sum_us,
            min_us,
            max_us + min_us,
            bound_us,
            sizes,
            np.cumsum(codes),
            held,
        )

    def _named(self, feed: str, kind: str, names: bytes) -> tuple[Path, ...]:
        key = (feed, kind, names)
        if key not in self._paths:
            self._paths[key] = tuple(Path(feed, site, transport, kind) for site, transport in json.loads(names))
        return self._paths[key]


def _narrow(column: Ints) -> NDArray[Any]:
    low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
    for width in WIDTHS:
        room = np.iinfo(width)
        if room.min <= low and high <= room.max:
            return column.astype(width)
    raise ValueError(f"a column holds {low} to {high}, which is more than eight bytes take")


def _read(data: bytes, at: int, widths: Iterable[int], lengths: Iterable[int]) -> list[Ints]:
    columns = []
    for width, length in zip(widths, lengths, strict=True):
        kind = np.dtype(WIDTHS[width])
        columns.append(np.frombuffer(data, kind, length, at).astype(np.int64))
        at += length * kind.itemsize
    if at != len(data):
        raise ValueError(f"{len(data)} bytes where {at} belong")
    return columns


VERSION = 1
WIDTHS = ("|u1", "|i1", "<u2", "<i2", "<u4", "<i4", "<i8")
_HEAD = struct.Struct("<III")
_OF_BUCKETS = 2
_OF_ROWS = len(COLUMNS) - _OF_BUCKETS
