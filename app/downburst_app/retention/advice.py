"""The time that a feed's product log covers, and the size that it needs: figures from measured arrivals."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from downburst.domain.feeds import TrafficMinute


@dataclass(frozen=True, slots=True)
class Volume:
    """The measured arrivals of a feed."""

    measured_hours: float
    mean_bytes_per_hour: float
    mean_products_per_hour: float
    worst_hour_bytes: float | None = None
    """The 60 consecutive minutes with most bytes; None until an hour has been measured."""
    worst_hour_products: float = 0.0


@dataclass(frozen=True, slots=True)
class Retention:
    """A feed's configured retention."""

    feed: str
    hours: float
    bytes: int


@dataclass(frozen=True, slots=True)
class Advice:
    """The judgement of a feed's retention; None for figures not measured or not requested."""

    feed: str
    retention_hours: float
    retention_bytes: int
    measured_hours: float
    mean_bytes_per_hour: float
    worst_hour_bytes: float | None
    hours_that_fit: float | None
    """Hours of arrivals that fit into ``retention_bytes`` at the mean rate."""
    hours_that_fit_worst: float | None
    """The same if every hour were like the worst."""
    outage_hours: float | None
    bytes_needed: int | None
    """The ``retention_bytes`` that hold ``outage_hours`` at the mean rate."""
    bytes_needed_worst: int | None
    problem: str | None
    """The reason why an outage of ``outage_hours`` would cost a site products."""
    step: str | None
    """The command that corrects it."""
    warning: str | None
    """Both in one sentence."""


def volume(minutes: Iterable[TrafficMinute], *, feed: str, until_minute: int) -> Volume:
    """The volume of a feed from its first measured minute to ``until_minute``, both included; silence counts."""
    own = sorted((it for it in minutes if it.feed == feed), key=lambda it: it.minute)
    if not own:
        return Volume(0.0, 0.0, 0.0)
    span_minutes = max(until_minute, own[-1].minute) - own[0].minute + 1
    hours = span_minutes / MINUTES
    known = span_minutes >= MINUTES
    worst = _worst_hour(own) if known else None
    return Volume(
        measured_hours=hours,
        mean_bytes_per_hour=sum(it.bytes for it in own) / hours,
        mean_products_per_hour=sum(it.products for it in own) / hours,
        worst_hour_bytes=None if worst is None else float(worst[0]),
        worst_hour_products=0.0 if worst is None else float(worst[1]),
    )


def advise(retention: Retention, measured: Volume, *, outage_hours: float | None = None) -> Advice:
    """Judges a retention against a measured volume, and finds the needs of an outage of so many hours."""
    mean = _disk(measured.mean_bytes_per_hour, measured.mean_products_per_hour)
    worst = None
    if measured.worst_hour_bytes is not None:
        worst = _disk(measured.worst_hour_bytes, measured.worst_hour_products)
    memory = measured.mean_products_per_hour * MEMORY_HOURS * MEMORY_BYTES
    fit, fit_worst = (_hours_that_fit(retention.bytes, rate, memory) for rate in (mean, worst))
    asked = outage_hours if mean > 0 else None
    needed, needed_worst = (_bytes_needed(asked, rate, memory) for rate in (mean, worst))
    problem = _problem(retention, (fit, fit_worst), outage_hours)
    step = _step(retention, outage_hours, needed_worst or needed) if problem and outage_hours else None
    return Advice(
        feed=retention.feed,
        retention_hours=retention.hours,
        retention_bytes=retention.bytes,
        measured_hours=measured.measured_hours,
        mean_bytes_per_hour=measured.mean_bytes_per_hour,
        worst_hour_bytes=measured.worst_hour_bytes,
        hours_that_fit=fit,
        hours_that_fit_worst=fit_worst,
        outage_hours=outage_hours,
        bytes_needed=needed,
        bytes_needed_worst=needed_worst,
        problem=problem,
        step=step,
        warning=f"{problem}; {step}" if problem else None,
    )


def size(count: float) -> str:
    """Formats bytes for people."""
    for limit, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= limit:
            return f"{count / limit:.1f} {unit}"
    return f"{count:.0f} B"


def _worst_hour(own: Sequence[TrafficMinute]) -> tuple[int, int]:
    """Bytes and products of the 60 consecutive minutes with most bytes; ``own`` is in order."""
    worst, start, total_bytes, total_products = (0, 0), 0, 0, 0
    for minute in own:
        total_bytes += minute.bytes
        total_products += minute.products
        while own[start].minute <= minute.minute - MINUTES:
            total_bytes -= own[start].bytes
            total_products -= own[start].products
            start += 1
        worst = max(worst, (total_bytes, total_products))
    return worst


def _disk(bytes_per_hour: float, products_per_hour: float) -> float:
    return bytes_per_hour + products_per_hour * RECORD_BYTES


def _hours_that_fit(ceiling: float, rate: float | None, memory: float) -> float | None:
    if not rate:
        return None
    # Whole segments are removed: at the ceiling, the oldest is the next to go.
    room = ceiling - min(ceiling / SEGMENTS, SEGMENT_BYTES) - memory
    return max(room, 0.0) / rate


def _bytes_needed(hours: float | None, rate: float | None, memory: float) -> int | None:
    if hours is None or not rate:
        return None
    room = hours * rate + memory
    return round(min(room * SEGMENTS / (SEGMENTS - 1), room + SEGMENT_BYTES))


def _problem(retention: Retention, fit: tuple[float | None, float | None], outage_hours: float | None) -> str | None:
    """Half a sentence if an outage of the requested length would cost a site products."""
    if outage_hours is None:
        return None
    hours, hours_worst = fit
    outage = f"an outage of {outage_hours:g} h"
    if retention.hours < outage_hours and (hours is None or retention.hours <= hours):
        return f"{retention.feed} is kept for {retention.hours:g} h, shorter than {outage}"
    if hours is not None and hours < outage_hours:
        room = f"{size(retention.bytes)} hold {hours:.1f} h at the mean rate"
        return f"{retention.feed} is kept too short for {outage}: {room}"
    if hours_worst is not None and hours_worst < outage_hours:
        room = f"{size(retention.bytes)} hold {hours_worst:.1f} h at the worst hour's rate"
        return f"{retention.feed} may be kept too short for {outage}: {room}"
    return None


def _step(retention: Retention, outage_hours: float, needed: int | None) -> str:
    step = f"raise it: downburst feeds set '{retention.feed}'"
    if retention.hours < outage_hours:
        step += f" --retention-hours {outage_hours:g}"
    if needed is not None and needed > retention.bytes:
        step += f" --retention-bytes {needed}"
    return step


MINUTES = 60
"""Of an hour."""
RECORD_BYTES = 256
"""A record's size beyond the product's bytes: its header with id, origin and stamps."""
MEMORY_BYTES = 344
"""The index's size per product, with its bytes or after them; it counts towards the ceiling."""
MEMORY_HOURS = 168
"""Time for which it is kept."""
SEGMENTS = 8
"""The least number of segments that share the ceiling."""
SEGMENT_BYTES = 256 * 1024 * 1024
"""No segment is larger, except for a single larger product."""
