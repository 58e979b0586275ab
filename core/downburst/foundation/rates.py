"""Rates in user input and output: Ethernet-frame bits per second, always with a unit."""

import re

from downburst.foundation.errors import BadInput


def parse_rate_bps(text: str) -> int:
    """Bits per second of `500M`, `7.8M`, `1G`, `100 kb/s`; refuses a bare number or a unit of bytes."""
    found = _RATE.fullmatch(text.strip())
    if found is None:
        raise BadInput(
            f"{text!r} is not a rate; write bits per second of Ethernet frames with k, M or G, such as 500M or 1G "
            "(`mbps` means megabytes to some tools, so it is refused)"
        )
    return round(float(found["count"]) * _FACTORS[found["unit"]])


def rate_text(rate_bps: float) -> str:
    """A rate in readable form, with at least three significant digits, all of a round one: 500 Mb/s, 1.001 Gb/s."""
    for factor, unit in ((1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s")):
        if rate_bps >= factor:
            return f"{_short(rate_bps / factor)} {unit}"
    return f"{_short(rate_bps)} b/s"


def _short(value: float) -> str:
    exact = f"{value:.3f}".rstrip("0").rstrip(".")
    if float(exact) == value:
        return exact
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


_FACTORS = {"k": 1e3, "M": 1e6, "G": 1e9}
_RATE = re.compile(r"(?P<count>\d{1,7}(\.\d{1,6})?) ?(?P<unit>[kMG])(b/s|bit/s|bit)?")
