"""Parses the node's batch files into the shared types.

A batch holds all sites' reports of a second, so an impossible entry is set aside with the reason, and the others
count. A file that is no batch is refused whole; an unknown kind of latency is skipped.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from downburst.domain.latency import LatencyKind, SketchRow
from downburst.domain.plans import Transport
from downburst.domain.receipts import Batch, Delays, FeedSecond, ProductException, Settled
from downburst.foundation import bounds
from downburst.foundation.bounds import (
    BATCH_BYTES_MAX,
    BATCH_ENTRIES_MAX,
    LATENCY_MS_MAX,
    LATENCY_SUM_MS_MAX,
    PRODUCTS_MAX,
    OutOfBounds,
    SetAside,
)
from downburst.foundation.clock import from_us
from downburst.sketches.sketch import NEGATIVE_PREFIX, ZERO_BUCKET, check_buckets

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReadBatch:
    """A batch, and the entries of its file that were left out."""

    batch: Batch
    set_aside: tuple[SetAside, ...] = ()


def text_of(path: Path) -> str:
    """The text of a batch file; ValueError: it is longer than any batch."""
    if (size := path.stat().st_size) > BATCH_BYTES_MAX:
        raise ValueError(f"the batch has {size} bytes; at most {BATCH_BYTES_MAX} are read")
    return path.read_text(encoding="utf-8")


def read_batch(text: str) -> ReadBatch:
    """Parses a batch file; ValueError has the reason for a refusal."""
    if len(text) > BATCH_BYTES_MAX:
        raise ValueError(f"the batch has {len(text)} characters; at most {BATCH_BYTES_MAX} are read")
    try:
        line = json.loads(text)
        identity = bounds.word(line["batch"])
        lists = [bounds.entries(line[name], most=BATCH_ENTRIES_MAX) for name in ("sketches", "exceptions", "settled")]
        # A node of an earlier release counts no seconds.
        seconds = bounds.entries(line.get("seconds", []), most=BATCH_ENTRIES_MAX)
    except KeyError as error:
        raise ValueError(f"the field {error} is missing") from error
    except (TypeError, RecursionError) as error:
        raise ValueError(f"a field has the wrong shape: {error}") from error
    aside: list[SetAside] = []
    # A node of a later release may measure more; an unknown kind is no reason to lose the rest.
    sketches = [entry for entry in lists[0] if not _is_of_a_later_release(entry)]
    batch = Batch(
        id=identity,
        sketches=bounds.each(sketches, _entry(_sketch), "a sketch", aside),
        exceptions=bounds.each(lists[1], _entry(_exception), "an exception", aside),
        settled=bounds.each(lists[2], _entry(_settled), "a frontier", aside),
        seconds=bounds.each(seconds, _entry(_second), "a second", aside),
    )
    return ReadBatch(batch, tuple(aside))


def parse_batch(text: str) -> Batch:
    """The valid entries of a batch file; ValueError has the reason for a refusal."""
    return read_batch(text).batch


def _is_of_a_later_release(entry: object) -> bool:
    kind = entry.get("kind") if isinstance(entry, dict) else None
    return isinstance(kind, str) and bool(kind) and kind not in _KINDS


def _entry(parse: Callable[[dict[str, Any]], T]) -> Callable[[object], T]:
    def read(entry: object) -> T:
        if not isinstance(entry, dict):
            raise OutOfBounds(f"{bounds.shown(entry)} is not an object")
        return parse(entry)

    return read


def _sketch(line: dict[str, Any]) -> SketchRow:
    delays = _delays(line)
    return SketchRow(
        feed=bounds.feed_name(line["feed"]),
        site=bounds.site_name(line["site"]),
        transport=Transport(line["transport"]),
        kind=LatencyKind(line["kind"]),
        minute=bounds.integer(line["minute"], least=0, most=bounds.CLOCK_MAX_US // 60_000_000),
        **{name: getattr(delays, name) for name in Delays.__dataclass_fields__},
    )


def _second(line: dict[str, Any]) -> FeedSecond:
    jitter, delay = line["jitter_us"], line["delay"]
    names = ("stored", "late_at_hub", "late_at_site", "lost", "reordered")
    return FeedSecond(
        feed=bounds.feed_name(line["feed"]),
        site=bounds.site_name(line["site"]),
        second=bounds.integer(line["second"], least=0, most=bounds.CLOCK_MAX_US // 1_000_000),
        **{name: bounds.count(line[name], most=PRODUCTS_MAX) for name in names},
        jitter_us=None if jitter is None else bounds.count(jitter),
        delays=None if delay is None else _delays(delay),
    )


def _delays(line: dict[str, Any]) -> Delays:
    """A sketch."""
    count = bounds.count(line["count"], most=bounds.SKETCH_COUNT_MAX)
    buckets = {_bucket(bucket): bounds.count(held) for bucket, held in line["buckets"].items()}
    check_buckets(buckets, count=count)
    bound = line["bound_ms"]
    lowest, highest = (bounds.number(line[name], most=LATENCY_MS_MAX) for name in ("min_ms", "max_ms"))
    if lowest > highest:
        raise OutOfBounds(f"its least value {lowest} is above its largest {highest}")
    return Delays(
        count=count,
        sum_ms=bounds.number(line["sum_ms"], most=LATENCY_SUM_MS_MAX),
        min_ms=lowest,
        max_ms=highest,
        negative=bounds.count(line["negative"], most=count),
        bound_ms=None if bound is None else bounds.number(bound, most=2 * bounds.OFFSET_MAX_US / 1000),
        buckets=buckets,
    )


def _exception(line: dict[str, Any]) -> ProductException:
    return ProductException(
        feed=bounds.feed_name(line["feed"]),
        epoch=bounds.epoch(line["epoch"]),
        sequence=bounds.count(line["sequence"]),
        site=bounds.site_name(line["site"]),
        outcome=bounds.word(line["outcome"]),
        at=from_us(bounds.clock_us(line["at_us"])),
    )


def _settled(line: dict[str, Any]) -> Settled:
    return Settled(
        feed=bounds.feed_name(line["feed"]),
        epoch=bounds.epoch(line["epoch"]),
        site=bounds.site_name(line["site"]),
        settled_to=bounds.count(line["settled_to"]),
        stored=bounds.count(line["stored"], most=PRODUCTS_MAX),
        stored_bytes=bounds.count(line["stored_bytes"]),
        duplicates=bounds.count(line["duplicates"], most=PRODUCTS_MAX),
        rejected=bounds.count(line["rejected"], most=PRODUCTS_MAX),
        expired=bounds.count(line["expired"], most=PRODUCTS_MAX),
        # A node of an earlier release counts none.
        late_at_hub=bounds.count(line.get("late_at_hub", 0), most=PRODUCTS_MAX),
        late_at_site=bounds.count(line.get("late_at_site", 0), most=PRODUCTS_MAX),
    )


def _bucket(name: str) -> str:
    if name == ZERO_BUCKET:
        return name
    index = int(name.removeprefix(NEGATIVE_PREFIX))
    bounds.integer(index, least=-bounds.BUCKET_MAX, most=bounds.BUCKET_MAX)
    # Each bucket must occur once: duplicates would hide that they hold more than the sketch counts.
    return f"{NEGATIVE_PREFIX if name.startswith(NEGATIVE_PREFIX) else ''}{index}"


_KINDS = frozenset(LatencyKind)
