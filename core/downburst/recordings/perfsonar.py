"""Results of perfSONAR's pScheduler, as its HTTP archiver posts them; pure.

The shapes are those of the validators in pScheduler 5.2 (`pscheduler-test-*/validate.py`, `RESPONSE_SCHEMA`). All
numbers come from other hosts: each is bounded before arithmetic.
"""

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from downburst.domain.measurements import Figure, MeasuredKind, Measurement, Unit, plain_host
from downburst.foundation.errors import BadInput


def read_result(point: str, body: object, now: datetime) -> Measurement:
    """A measurement from the body of the archiver's request.

    A result without a figure becomes one that names the reason; a body that is no result of pScheduler is refused.
    """
    if not isinstance(body, Mapping):
        raise BadInput("the body is no result of pScheduler: it is not a JSON object")
    test, run = body.get("test"), body.get("id")
    if not isinstance(test, Mapping) or not isinstance(test.get("type"), str) or not isinstance(run, str):
        raise BadInput("the body is no result of pScheduler: it has no `test` with a `type`, or no `id`")
    kind, spec = _plain(test["type"], 64), _mapping(test.get("spec"))
    source, destination = _ends(spec, body.get("participants"))
    try:
        at, figure, refused = _started(body, now), _figure(kind, spec, _mapping(body.get("result"))), ""
    except _NoFigureError as error:
        at, figure, refused = now, None, str(error)
    return Measurement(point, at, kind, source, destination, _plain(run, 64), figure, _plain(refused, 500))


class _NoFigureError(Exception):
    """The reason, as a sentence."""


def _figure(kind: str, spec: Mapping[str, Any], result: Mapping[str, Any]) -> Figure:
    if kind not in _READERS:
        raise _NoFigureError(f"results of {kind} are not read here; {', '.join(MeasuredKind)} are")
    if result.get("succeeded") is not True:
        said = result.get("error")
        said = f": {_plain(' '.join(said.split()), 300)}" if isinstance(said, str) and said.strip() else ""
        raise _NoFigureError(f"the test failed{said}")
    return _READERS[MeasuredKind(kind)](spec, result)


def _latency(spec: Mapping[str, Any], result: Mapping[str, Any]) -> Figure:
    """The keys of the histogram are delays in units of the bucket's width, in seconds; by default 1 ms."""
    width_us = _number(spec.get("bucket-width", 0.001), "bucket-width", least=1e-9, most=1.0) * 1e6
    counts = sorted(_counts(result.get("histogram-latency")))
    if not counts:
        raise _NoFigureError("no packet arrived, so there is no delay")
    median, largest = (_quantile(counts, share) * width_us for share in (0.5, 1.0))
    clock_ms = result.get("max-clock-error")
    error = None if clock_ms is None else _number(clock_ms, "max-clock-error", least=0, most=1e9) * 1e3
    more = {"min_us": counts[0][0] * width_us, "p95_us": _quantile(counts, 0.95) * width_us, "max_us": largest}
    lost = _lost_share(result, "packets-lost", "packets-sent")
    return Figure(median, Unit.MICROSECONDS, error, lost, more, _clock_note(median, error))


def _clock_note(value: float, error: float | None) -> str:
    if error is None:
        return "The test does not name the error of its clocks."
    if value + error < 0:
        return "Negative: a clock is further from the other than the test claims."
    if error > abs(value) / 2:
        return "One-way delay not known: the clocks' error is more than half of it."
    return ""


def _round_trip(spec: Mapping[str, Any], result: Mapping[str, Any]) -> Figure:
    del spec
    mean, least, most = (_duration_us(result.get(name), name) for name in ("mean", "min", "max"))
    lost = result.get("loss")
    lost_share = None if lost is None else _number(lost, "loss", least=0, most=1)
    return Figure(mean, Unit.MICROSECONDS, 0.0, lost_share, {"min_us": least, "max_us": most})


def _throughput(spec: Mapping[str, Any], result: Mapping[str, Any]) -> Figure:
    del spec
    summary = _mapping(_mapping(result.get("summary")).get("summary"))
    received = summary.get("receiver-throughput-bits")
    rate = summary.get("throughput-bits") if received is None else received
    more = {
        name.replace("-", "_"): _number(summary[name], name, least=0, most=1e15)
        for name in ("retransmits", "jitter")
        if summary.get(name) is not None
    }
    lost = _lost_share(summary, "lost", "sent")
    value = _number(rate, "throughput-bits", least=0, most=1e15)
    return Figure(value, Unit.BITS_PER_SECOND, lost_share=lost, more=more)


def _ends(spec: Mapping[str, Any], participants: object) -> tuple[str, str]:
    """Source and destination of the packets; without a source in the specification, it is the first participant."""
    first = participants[0] if isinstance(participants, list) and participants else None
    lead = first.get("host") or first.get("participant") if isinstance(first, Mapping) else first
    source, destination = (_host(value) for value in (spec.get("source") or lead, spec.get("dest")))
    return (destination, source) if spec.get("reverse") is True else (source, destination)


def _host(value: object) -> str:
    try:
        return plain_host(value) if isinstance(value, str) else ""
    except BadInput:
        return ""


def _started(body: Mapping[str, Any], now: datetime) -> datetime:
    text = _mapping(body.get("schedule")).get("start")
    if not isinstance(text, str):
        raise _NoFigureError("the result has no start in its schedule")
    try:
        at = datetime.fromisoformat(text[:40])
    except ValueError:
        raise _NoFigureError(f"its start {text[:40]!r} is no time of ISO 8601") from None
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
    try:
        is_near = now - OLDEST <= at <= now + MOST_AHEAD
    except OverflowError:
        is_near = False
    if not is_near:
        raise _NoFigureError(f"its start {text[:40]} is more than a year ago, or ahead: check the test point's clock")
    return at.astimezone(UTC)


def _counts(histogram: object) -> Iterator[tuple[float, int]]:
    buckets = _mapping(histogram)
    if len(buckets) > MOST_BUCKETS:
        raise _NoFigureError(f"histogram-latency has {len(buckets)} buckets; at most {MOST_BUCKETS} are read")
    for key, count in buckets.items():
        try:
            delay = float(key)
        except (TypeError, ValueError):
            raise _NoFigureError(f"histogram-latency has the bucket {str(key)[:20]!r}, which is no number") from None
        yield _number(delay, "a bucket", least=-1e9, most=1e9), int(_number(count, "a count", least=0, most=1e9))


def _quantile(counts: list[tuple[float, int]], share: float) -> float:
    left = max(math.ceil(sum(count for _, count in counts) * share), 1)
    for value, count in counts:
        left -= count
        if left <= 0:
            return value
    return counts[-1][0]


def _lost_share(result: Mapping[str, Any], lost: str, sent: str) -> float | None:
    if result.get(lost) is None or not result.get(sent):
        return None
    return _number(result[lost], lost, least=0, most=1e12) / _number(result[sent], sent, least=1, most=1e12)


def _duration_us(value: object, name: str) -> float:
    """Seconds, minutes and hours of an ISO 8601 duration, such as PT0.0123S."""
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise _NoFigureError(f"{name} is {str(value)[:40]!r}, and should be a duration such as PT0.0123S")
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return (hours * 3600 + minutes * 60 + seconds) * 1e6


def _number(value: object, name: str, *, least: float, most: float) -> float:
    if isinstance(value, str) and len(value) <= 20:
        try:
            value = float(value)
        except ValueError:
            value = None
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise _NoFigureError(f"{name} is {str(value)[:40]}, and should be a number from {least:g} to {most:g}")
    return float(value)


def _plain(text: str, most: int) -> str:
    """Printable characters only: databases and terminals take no others."""
    return "".join(one for one in text[:most] if one.isprintable())


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


OLDEST = timedelta(days=366)
MOST_AHEAD = timedelta(hours=1)
MOST_BUCKETS = 20_000
_DURATION = re.compile(r"PT(?:(\d{1,4})H)?(?:(\d{1,4})M)?(?:(\d{1,6}(?:\.\d{1,12})?)S)?")
_READERS = {
    MeasuredKind.LATENCY: _latency,
    MeasuredKind.LATENCYBG: _latency,
    MeasuredKind.RTT: _round_trip,
    MeasuredKind.THROUGHPUT: _throughput,
}
