"""A confirmation beside its request, field by field. One that differs is never committed."""

from collections.abc import Iterator

from downburst.foundation.clock import from_us
from downburst_circuits.nsi.words import Criteria, Told


def differences(asked: Criteria, told: Told, *, service_type: str, asked_at_us: int) -> tuple[str, ...]:
    """A phrase for each field in which the confirmation differs from the request."""
    return tuple(_differences(asked, told, service_type, asked_at_us))


def _differences(asked: Criteria, told: Told, service_type: str, asked_at_us: int) -> Iterator[str]:
    if told.capacity_mbps != asked.capacity_mbps:
        yield f"capacity {_or_none(told.capacity_mbps)} Mb/s instead of {asked.capacity_mbps}"
    if told.source is None or not told.source.grants(asked.source):
        yield f"source {_or_none(told.source)} instead of {asked.source}"
    if told.dest is None or not told.dest.grants(asked.dest):
        yield f"destination {_or_none(told.dest)} instead of {asked.dest}"
    if not told.both_ways:
        yield "one direction instead of both"
    if told.service_type not in (None, service_type):
        yield f"service type {told.service_type} instead of {service_type}"
    if not _begins(asked.begin_us, told.begin_us, asked_at_us):
        yield f"begin {_moment(told.begin_us)} instead of {_moment(asked.begin_us or asked_at_us)}"
    if not _ends(asked.end_us, told.end_us):
        yield f"end {_moment(told.end_us)} instead of {_moment(asked.end_us)}"


def _begins(asked_us: int | None, told_us: int | None, asked_at_us: int) -> bool:
    """A provider fills in its own clock for a begin that was left out; it tells whole seconds at the least."""
    if asked_us is not None:
        return told_us is not None and abs(told_us - asked_us) < _SECOND_US
    return told_us is None or told_us <= asked_at_us + BEGIN_TOLERANCE_US


def _ends(asked_us: int | None, told_us: int | None) -> bool:
    """No end may be told as one that is far away, or as 1970, which PolyNSI makes of SuPA's empty field."""
    if asked_us is not None:
        return told_us is not None and abs(told_us - asked_us) < _SECOND_US
    return told_us in (None, 0) or told_us >= FOREVER_FROM_US


def granted(asked: Criteria, told: Told) -> Criteria:
    """The granted properties of an accepted confirmation."""
    return Criteria(
        capacity_mbps=asked.capacity_mbps,
        source=told.source or asked.source,
        dest=told.dest or asked.dest,
        begin_us=told.begin_us if asked.begin_us is None else asked.begin_us,
        end_us=asked.end_us,
    )


def _or_none(value: object) -> object:
    return "none" if value is None else value


def _moment(at_us: int | None) -> str:
    return "none" if at_us is None else f"{from_us(at_us):%Y-%m-%d %H:%M:%S} UTC"


_SECOND_US = 1_000_000
BEGIN_TOLERANCE_US = 300 * _SECOND_US
"""The clocks of two organisations, and the way there."""
FOREVER_FROM_US = 4_102_444_800 * _SECOND_US
"""The year 2100."""
