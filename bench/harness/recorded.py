"""Recorded traffic: an hour of NGRID, and the busiest stretch of it."""

import os
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

import numpy as np

from downburst.recordings.traces import Arrival, parse
from downburst_app.play.generator import ngrid


def recorded_hour(notes: list[str]) -> list[Arrival]:
    """The recorded NGRID hour, or a generated one, with a note, if the record is not available."""
    recorded = Path(os.environ.get("DOWNBURST_DATA", _BESIDE)) / "traces" / "ngrid-20150615T00-1h.txt"
    if recorded.is_file():
        return list(parse(recorded))
    notes.append("The recorded NGRID hour is not at hand (DOWNBURST_DATA): a generated hour stands in for it.")
    products = takewhile(lambda product: product.at_s < HOUR_S, ngrid(np.random.default_rng(1)))
    return [Arrival(product.size_bytes, round(product.at_s * 1e6)) for product in products]


def busiest(arrivals: Sequence[Arrival], seconds: float) -> list[Arrival]:
    """The stretch of this length in which most bytes arrive; it can begin with any product."""
    best_bytes, best, inside_bytes, start = 0, (0, 0), 0, 0
    for end, arrival in enumerate(arrivals):
        inside_bytes += arrival.size_bytes
        while arrival.at_us - arrivals[start].at_us >= seconds * 1e6:
            inside_bytes -= arrivals[start].size_bytes
            start += 1
        if inside_bytes > best_bytes:
            best_bytes, best = inside_bytes, (start, end + 1)
    return list(arrivals[slice(*best)])


HOUR_S = 3_600
_BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"
