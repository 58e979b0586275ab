"""Many latency sketches in columns, so that thousands are merged and queried for quantiles in one step.

A sheet has the contents of `LatencySketch` for many paths and minutes: whole microseconds, as stamps are, and
buckets by a code that rises with their value. Figures from a sheet equal those of sketches merged one by one.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from downburst.domain.latency import LatencyKind, SketchRow
from downburst.domain.plans import Transport
from downburst.sketches.sketch import NEGATIVE_PREFIX, RANK_SLACK, ZERO_BUCKET, value_of

Ints = NDArray[np.int64]


class Path(NamedTuple):
    """The subject of a measurement: a feed at a site, by a transport, between two kinds of stamps."""

    feed: str
    site: str
    transport: str
    kind: str


@dataclass(frozen=True, slots=True)
class Sheet:
    """A sketch in each row; its buckets follow those of the row before in `codes` and `held`."""

    paths: tuple[Path, ...]
    path: Ints
    """Index into `paths`."""
    minute: Ints
    """The minute since 1970 at which the sketch begins."""
    count: Ints
    negative: Ints
    sum_us: Ints
    min_us: Ints
    max_us: Ints
    bound_us: Ints
    """-1: no bound was given."""
    sizes: Ints
    """The number of buckets."""
    codes: Ints
    held: Ints

    def __len__(self) -> int:
        return len(self.path)

    @classmethod
    def empty(cls) -> Self:
        """A sheet without sketches."""
        return cls((), *(np.zeros(0, np.int64) for _ in COLUMNS))

    @classmethod
    def of_rows(cls, rows: Iterable[SketchRow]) -> Self:
        """The rows with a count; several rows of one path and minute stay separate."""
        kept = [row for row in rows if row.count]
        known: dict[Path, int] = {}
        path = [known.setdefault(path_of(row), len(known)) for row in kept]
        buckets = [sorted((code_of(name), held) for name, held in row.buckets.items()) for row in kept]
        columns = (
            path,
            [row.minute for row in kept],
            [row.count for row in kept],
            [row.negative for row in kept],
            *([round(value * 1000) for value in values] for values in _values(kept)),
            [-1 if row.bound_ms is None else round(row.bound_ms * 1000) for row in kept],
            [len(some) for some in buckets],
            [code for some in buckets for code, _ in some],
            [held for some in buckets for _, held in some],
        )
        return cls(
            tuple(known),
            *(np.array(column, np.int64) for column in columns),
        )

    @classmethod
    def joined(cls, sheets: Iterable[Self]) -> Self:
        """All rows of all sheets, one sheet after the other."""
        some = [sheet for sheet in sheets if len(sheet)]
        if len(some) <= 1:
            return some[0] if some else cls.empty()
        known: dict[Path, int] = {}
        places: dict[int, Ints] = {}
        path = []
        for sheet in some:
            # Sheets that were read together share their paths, so each set of paths is processed once.
            if id(sheet.paths) not in places:
                at = [known.setdefault(one, len(known)) for one in sheet.paths]
                places[id(sheet.paths)] = np.array(at, np.int64)
            path.append(places[id(sheet.paths)][sheet.path])
        others = (np.concatenate([getattr(sheet, name) for sheet in some]) for name in COLUMNS[1:])
        return cls(tuple(known), np.concatenate(path), *others)

    def only(self, rows: NDArray[np.bool_]) -> Self:
        """The rows for which `rows` is true."""
        if rows.all():
            return self
        pairs = np.repeat(rows, self.sizes)
        changed = {name: getattr(self, name)[rows] for name in COLUMNS[:-2]}
        return replace(self, **changed, codes=self.codes[pairs], held=self.held[pairs])

    def narrowed(self, site: str | None, transport: str | None) -> Self:
        """The rows of a site, of a transport, or of both."""
        if site is None and transport is None:
            return self
        return self.only(_wanted(self.paths, site, transport)[self.path])

    def between(self, begin: int, end: int) -> Self:
        """The rows that begin in a range of minutes, excluding its end."""
        return self.only((self.minute >= begin) & (self.minute < end))

    def merged(self, step_minutes: int) -> Self:
        """One row for each path and step of time, by step and path."""
        merged = self.by_path_and_step(step_minutes)
        return self._with(merged)

    def by_feed(self) -> Self:
        """The same rows with paths without site and transport, so that those of a feed are merged."""
        return self._with_paths([path._replace(site="", transport="") for path in self.paths])

    def by_site(self) -> Self:
        """The same rows with paths without transport, so that those of a feed at a site are merged."""
        return self._with_paths([path._replace(transport="") for path in self.paths])

    def by_path(self) -> "Merged":
        """Each path's values over all minutes, in the order of `paths`; a path without a row counts nothing."""
        return Merged.of(self, self.path, len(self.paths))

    def by_step(self, step_minutes: int) -> "tuple[Ints, Merged]":
        """The time steps with a count, and the values of all paths in each."""
        steps, group = np.unique(self.minute // step_minutes, return_inverse=True)
        return steps, Merged.of(self, group.astype(np.int64), len(steps))

    def by_path_and_step(self, step_minutes: int) -> "tuple[Ints, Ints, Merged]":
        """Paths, beginnings of steps, and the values of each pair that occurs."""
        paths = max(len(self.paths), 1)
        keys, group = np.unique(self.minute // step_minutes * paths + self.path, return_inverse=True)
        merged = Merged.of(self, group.astype(np.int64), len(keys))
        return keys % paths, keys // paths * step_minutes, merged

    def rows(self) -> Iterator[SketchRow]:
        """Each sketch in the form used by the rest of the program."""
        ends = np.cumsum(self.sizes)
        columns = (getattr(self, name).tolist() for name in COLUMNS[:-3])
        names, held = [bucket_of_code(code) for code in self.codes.tolist()], self.held.tolist()
        for end, size, values in zip(ends.tolist(), self.sizes.tolist(), zip(*columns, strict=True), strict=True):
            path, minute, count, negative, sum_us, min_us, max_us, bound_us = values
            feed, site, transport, kind = self.paths[path]
            yield SketchRow(
                feed=feed,
                site=site,
                transport=Transport(transport),
                kind=LatencyKind(kind),
                minute=minute,
                count=count,
                sum_ms=sum_us / 1000,
                min_ms=min_us / 1000,
                max_ms=max_us / 1000,
                negative=negative,
                bound_ms=None if bound_us < 0 else bound_us / 1000,
                buckets=dict(zip(names[end - size : end], held[end - size : end], strict=True)),
            )

    def _with_paths(self, paths: Sequence[Path]) -> Self:
        """The same rows with their paths replaced; equal paths become one."""
        known: dict[Path, int] = {}
        at = [known.setdefault(path, len(known)) for path in paths]
        return replace(self, paths=tuple(known), path=np.array(at, np.int64)[self.path])

    def _with(self, merged: "tuple[Ints, Ints, Merged]") -> Self:
        path, minute, values = merged
        return type(self)(
            self.paths,
            path,
            minute,
            values.count,
            values.negative,
            values.sum_us,
            values.min_us,
            values.max_us,
            values.bound_us,
            *values.buckets(),
        )


@dataclass(frozen=True, slots=True)
class Merged:
    """The values of groups of sketches; a group without a value counts 0, and its other figures mean nothing."""

    count: Ints
    negative: Ints
    sum_us: Ints
    min_us: Ints
    max_us: Ints
    bound_us: Ints
    codes: Ints
    """Of all groups, rising."""
    blocks: tuple[NDArray[np.float64], ...]
    """A line for each group, block after block, with the count of each bucket; exact up to 2^53."""

    @classmethod
    def of(cls, sheet: Sheet, group: Ints, groups: int) -> Self:
        """Merges the sketches of the same group."""
        low, high = np.full(groups, _FAR), np.full(groups, -_FAR)
        bound = np.full(groups, -1)
        np.minimum.at(low, group, sheet.min_us)
        np.maximum.at(high, group, sheet.max_us)
        np.maximum.at(bound, group, sheet.bound_us)
        codes, column = _columns(sheet.codes)
        line = np.repeat(group, sheet.sizes)
        return cls(
            _summed(group, sheet.count, groups),
            _summed(group, sheet.negative, groups),
            _summed(group, sheet.sum_us, groups),
            low,
            high,
            bound,
            codes,
            tuple(_blocks(line, column, sheet.held, lines=groups, columns=max(len(codes), 1))),
        )

    def quantiles_ms(self, *shares: float) -> list[NDArray[np.float64]]:
        """For each share, the value of nearest rank of each group (`sketch.rank_of`), to within 2 %."""
        worth = np.array([value_of_code(code) for code in self.codes.tolist()] or [0.0])
        begins = np.cumsum([0, *map(len, self.blocks)]).tolist()
        found = [self._values(block, worth, shares, at) for block, at in zip(self.blocks, begins, strict=False)]
        return [np.concatenate([np.zeros(0), *(part[at] for part in found)]) for at in range(len(shares))]

    def buckets(self) -> tuple[Ints, Ints, Ints]:
        """The number of buckets of each group, then their codes, then their counts."""
        sizes, codes, held = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for block in self.blocks:
            lines, columns = np.nonzero(block)
            sizes.append(np.bincount(lines, minlength=len(block)).astype(np.int64))
            codes.append(self.codes[columns])
            held.append(block[lines, columns].astype(np.int64))
        return np.concatenate(sizes), np.concatenate(codes), np.concatenate(held)

    def _values(
        self, block: NDArray[np.float64], worth: NDArray[np.float64], shares: Sequence[float], at: int
    ) -> list[NDArray[np.float64]]:
        seen = np.cumsum(block, axis=1)
        rows = slice(at, at + len(block))
        low, high = self.min_us[rows] / 1000, self.max_us[rows] / 1000
        values = []
        for share in shares:
            rank = np.maximum(np.ceil(share * self.count[rows] - RANK_SLACK), 1)
            place = np.minimum((seen < rank[:, None]).sum(axis=1), len(worth) - 1)
            values.append(np.minimum(np.maximum(worth[place], low), high))
        return values


def path_of(row: SketchRow) -> Path:
    """The path of a row."""
    return Path(row.feed, row.site, row.transport.value, row.kind.value)


def code_of(bucket: str) -> int:
    """A number for a bucket that rises with its value."""
    if bucket == ZERO_BUCKET:
        return 0
    size = max(int(bucket.removeprefix(NEGATIVE_PREFIX)) + BESIDE_ZERO, 1)
    return -size if bucket.startswith(NEGATIVE_PREFIX) else size


def bucket_of_code(code: int) -> str:
    """The bucket of a number."""
    if code == 0:
        return ZERO_BUCKET
    return f"{NEGATIVE_PREFIX}{-code - BESIDE_ZERO}" if code < 0 else str(code - BESIDE_ZERO)


def value_of_code(code: int) -> float:
    """The representative value of a bucket in milliseconds."""
    return value_of(bucket_of_code(code))


@lru_cache(maxsize=256)
def _wanted(paths: tuple[Path, ...], site: str | None, transport: str | None) -> NDArray[np.bool_]:
    wanted = [site in (None, path.site) and transport in (None, path.transport) for path in paths]
    return np.array(wanted, np.bool_)


def _values(rows: Sequence[SketchRow]) -> Iterator[list[float]]:
    yield [row.sum_ms for row in rows]
    yield [row.min_ms for row in rows]
    yield [row.max_ms for row in rows]


def _summed(group: Ints, values: Ints, groups: int) -> Ints:
    return np.bincount(group, weights=values, minlength=groups).astype(np.int64)


def _columns(codes: Ints) -> tuple[Ints, Ints]:
    """The codes that occur, and the place of each among them; faster than sorting millions of few values."""
    if len(codes) == 0:
        return codes, codes
    low = int(codes.min())
    occurs = np.bincount(codes - low) > 0
    return np.flatnonzero(occurs) + low, (np.cumsum(occurs) - 1)[codes - low]


def _blocks(line: Ints, column: Ints, held: Ints, *, lines: int, columns: int) -> Iterator[NDArray[np.float64]]:
    """The counts of the buckets as a table, in blocks of lines that bound the memory."""
    height = max(MOST_CELLS // columns, 1)
    for begin in range(0, lines, height):
        end = min(begin + height, lines)
        cells: Any = line * columns + column
        weights = held
        if end - begin < lines:
            here = (line >= begin) & (line < end)
            cells, weights = cells[here] - begin * columns, held[here]
        counted: NDArray[Any] = np.bincount(cells, weights, (end - begin) * columns)
        yield counted.reshape(-1, columns)


COLUMNS = ("path", "minute", "count", "negative", "sum_us", "min_us", "max_us", "bound_us", "sizes", "codes", "held")
BESIDE_ZERO = 1_000
"""Bucket indices are above -173 (a microsecond); this keeps the codes of all positive values above 0."""
MOST_CELLS = 16_000_000
"""128 MB; an hour of a hundred sites by the minute takes three million."""
_FAR = np.iinfo(np.int64).max
