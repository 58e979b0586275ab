"""Rates, durations, shares and objectives in command-line notation."""

import math
import re
from collections.abc import Sequence

from downburst.foundation.errors import BadInput
from downburst_scheduler.models.sizing import Objective


def rate_bps(text: str) -> float:
    """A rate in bits per second: 1G, 100M, 64k, or a number."""
    return _quantity(text, RATES, "a rate", "1G, 100M, 64k or bits per second")


def size_bytes(text: str) -> int:
    """A size in bytes: 1G, 100M, or a number."""
    return round(_quantity(text, SIZES, "a size", "1G, 100M, 64k or bytes"))


def duration_s(text: str) -> float:
    """A duration in seconds: 30s, 500ms, 2m, 1h, or a number of seconds."""
    return _quantity(text, DURATIONS, "a duration", "30s, 500ms, 2m, 1h or a number of seconds", zero=True)


def share(text: str) -> float:
    """A share: 0.5%, or a number below one."""
    number = text.removesuffix("%")
    value = _number(number) / (100 if number != text else 1)
    if not 0 <= value < 1:
        raise BadInput(f"{text!r} is not a share; write 0.5% or 0.005")
    return value


def objective(text: str) -> Objective:
    """An objective for latencies: p99=30s."""
    match = re.fullmatch(r"p(\d{1,2}(?:\.\d{1,3})?)=(.+)", text.strip())
    if match is None:
        raise BadInput(f"{text!r} is not an objective; write a percentile and its maximum duration, such as p99=30s")
    latency_s = duration_s(match[2])
    if latency_s == 0 or float(match[1]) == 0:
        raise BadInput(f"{text!r} is not an objective; percentile and duration must be above zero")
    return Objective(float(match[1]) / 100, latency_s)


def rates_of_sites(text: str, sites: int) -> list[float | None]:
    """Access rates of sites: one for all, or `10M*3,100M*20` for that many each; the rest have no limit."""
    if "*" not in text and "," not in text:
        return [rate_bps(text)] * sites
    rates: list[float | None] = []
    for part in text.split(","):
        rate, star, count = part.partition("*")
        if star and not (count.strip().isdecimal() and int(count)):
            raise BadInput(f"{part!r} has no number of sites; write 10M*3 for three sites of 10 Mb/s")
        rates += [rate_bps(rate)] * (int(count) if star else 1)
    if len(rates) > sites:
        raise BadInput(f"{text!r} names {len(rates)} sites and there are {sites}; correct it, or --sites")
    return rates + [None] * (sites - len(rates))


def _quantity(text: str, units: dict[str, float], what: str, examples: str, *, zero: bool = False) -> float:
    match = re.fullmatch(r"\s*([0-9.]+(?:e[+-]?\d+)?)\s*([A-Za-z/]*)\s*", text)
    unit = match[2] if match else ""
    value = _number(match[1]) * units[unit] if match and unit in units else math.nan
    if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise BadInput(f"{text!r} is not {what}; write {examples}")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _with_suffixes(units: Sequence[tuple[str, float]], suffixes: Sequence[str]) -> dict[str, float]:
    return {f"{unit}{suffix}": factor for unit, factor in units for suffix in suffixes}


RATES = {"": 1.0} | _with_suffixes(
    [("k", 1e3), ("K", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)], ["", "b/s", "bit/s", "bps"]
)
SIZES = {"": 1.0} | _with_suffixes([("k", 1e3), ("K", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)], ["", "B"])
DURATIONS = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
