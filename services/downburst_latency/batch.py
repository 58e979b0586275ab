"""Batch files as the node writes them, read into the shared words.

A file that can't be trusted is refused whole; a kind of latency that is not known here is passed over.
"""

import json
import math
from typing import Any

from downburst.clock import from_us
from downburst.model import Batch, LatencyKind, ProductException, Settled, SketchRow, Transport
from downburst.sketch import check_buckets


def parse_batch(text: str) -> Batch:
    """The contents of a batch file; ValueError says what is wrong with it."""
    try:
        line = json.loads(text)
        return Batch(
            id=_name(line["batch"]),
            # A node of a later release may measure more; what has no word here is no reason to lose the rest.
            sketches=tuple(_sketch(sketch) for sketch in line["sketches"] if _name(sketch["kind"]) in _KINDS),
            exceptions=tuple(_exception(exception) for exception in line["exceptions"]),
            settled=tuple(_settled(report) for report in line["settled"]),
        )
    except KeyError as error:
        raise ValueError(f"the field {error} is missing") from error
    except (TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"a field has the wrong shape: {error}") from error


def _sketch(line: dict[str, Any]) -> SketchRow:
    count = _count(line["count"])
    buckets = {str(bucket): _count(held) for bucket, held in line["buckets"].items()}
    check_buckets(buckets, count=count)
    bound = line["bound_ms"]
    return SketchRow(
        feed=_name(line["feed"]),
        site=_name(line["site"]),
        transport=Transport(line["transport"]),
        kind=LatencyKind(line["kind"]),
        minute=_count(line["minute"]),
        count=count,
        sum_ms=_number(line["sum_ms"]),
        min_ms=_number(line["min_ms"]),
        max_ms=_number(line["max_ms"]),
        negative=_count(line["negative"]),
        bound_ms=None if bound is None else _number(bound),
        buckets=buckets,
    )


def _exception(line: dict[str, Any]) -> ProductException:
    return ProductException(
        feed=_name(line["feed"]),
        epoch=_name(line["epoch"]),
        sequence=_count(line["sequence"]),
        site=_name(line["site"]),
        outcome=_name(line["outcome"]),
        at=from_us(_count(line["at_us"])),
    )


def _settled(line: dict[str, Any]) -> Settled:
    return Settled(
        feed=_name(line["feed"]),
        epoch=_name(line["epoch"]),
        site=_name(line["site"]),
        settled_to=_count(line["settled_to"]),
        stored=_count(line["stored"]),
        stored_bytes=_count(line["stored_bytes"]),
        duplicates=_count(line["duplicates"]),
        rejected=_count(line["rejected"]),
        expired=_count(line["expired"]),
    )


def _name(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{value!r} is no name")
    return value


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{value!r} is no count")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{value!r} is no number")
    return float(value)


_KINDS = frozenset(LatencyKind)
