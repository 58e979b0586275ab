"""Ceilings of probes: a rate, and bytes per site and day, by the site's administrator and by the operator."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from downburst.domain.probes import ProbeRequest
from downburst.foundation.rates import rate_text


class CeilingSide(StrEnum):
    """Who sets a ceiling: both hold."""

    SITE = "site"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class ProbeCeiling:
    """One side's ceiling of a site's probes."""

    site: str
    side: CeilingSide
    rate_bps: int | None = None
    """0 forbids probes; None sets no ceiling."""
    bytes_per_day: int | None = None
    """Of frames, from midnight to midnight UTC."""
    set_by: str = ""
    set_at: datetime | None = None


def over_ceiling(request: ProbeRequest, ceilings: Iterable[ProbeCeiling], used_bytes: int) -> str | None:
    """The reason why a probe is above a ceiling; None if it is not. `used_bytes`: of the site's probes today."""
    set_ones = list(ceilings)
    for one in set_ones:
        if one.rate_bps is not None and request.highest_bps > one.rate_bps:
            return (
                f"the probe would send {rate_text(request.highest_bps)}, and the {one.side}'s ceiling for probes of "
                f"{request.site} is {rate_text(one.rate_bps)} (set by {one.set_by or 'unknown'}); ask for less"
            )
    given = [(one.bytes_per_day, f"the {one.side}'s ceiling") for one in set_ones if one.bytes_per_day is not None]
    most_bytes, whose = min(given, default=(BYTES_PER_DAY, "the ceiling of hubs without another"))
    if used_bytes + request.frame_bytes > most_bytes:
        return (
            f"the probe would send up to {request.frame_bytes:,} bytes, and of {whose} for probes of {request.site}, "
            f"{most_bytes:,} bytes a day, {used_bytes:,} are used today; ask for less, or wait until midnight UTC"
        )
    return None


def day_of(now: datetime) -> datetime:
    """The last midnight in UTC."""
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


BYTES_PER_DAY = 20_000_000_000
"""A knee of ten steps at 1 Gb/s takes 0.4 GB; a soak of 24 hours at 1.8 Mb/s takes this."""
