"""Rows of predictions: the busiest ten minutes of the recorded NGRID hour by each transport, in namespaces."""

from collections.abc import Iterator

from bench.harness.recorded import recorded_hour
from bench.harness.report import Goal, Row
from bench.harness.scratch import scratch, tell
from bench.scheduler.predictions import COMPARED, Compared, compared, link_bps, stretch
from bench.scheduler.wishes import Wanted
from kit.capabilities import reasons


def prediction_rows(wanted: Wanted) -> Iterator[Row]:
    """Median and 99th percentile of each transport; once each, since a run takes ten minutes."""
    if missing := [f"{name}: {reasons()[name]}" for name in NEEDED if reasons()[name]]:
        wanted.notes.append(f"NOT MEASURED, predictions: {'; '.join(missing)}")
        return
    arrivals = stretch(recorded_hour(wanted.notes), wanted.stretch_s)
    for number, transport in enumerate(COMPARED, start=1):
        with scratch(NEEDED_BYTES) as directory:
            rate_bps = link_bps(transport, arrivals, sites=SITES)
            found = compared(transport, arrivals, directory, sites=SITES, rate_bps=rate_bps)
        tell(str(found))
        wanted.notes.append(f"{found}; link, circuit or pace of {rate_bps / 1e6:.1f} Mb/s, {SITES} sites")
        yield from _rows(number, found, wanted.stretch_s)


def _rows(number: int, found: Compared, seconds: float) -> Iterator[Row]:
    for name, letter, off in (("p50", "a", MEDIAN_OFF), ("p99", "b", TAIL_OFF)):
        case = f"busiest {seconds:g} s of NGRID by {found.transport}: {name} of the distribution latency"
        ours, theirs = found.predicted_ms[name], found.measured_ms[name]
        yield Row(f"q{number}{letter}", case, "ms", ours, "measured", theirs, 1, Goal("ratio", "1 +-", off))


NEEDED = ("root", "netns", "veth", "bridge", "htb", "vxlan")
NEEDED_BYTES = 8_000_000_000
SITES = 2
MEDIAN_OFF, TAIL_OFF = 0.2, 0.5
