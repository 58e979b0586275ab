"""What the models predict is what the product does: a recorded feed's busiest half minute, in two thirds of it."""

import pytest
from bench.busiest_minute import recorded_hour
from bench.prediction_rows import MEDIAN_OFF, TAIL_OFF
from bench.predictions import COMPARED, Compared, compared, link_bps, stretch
from bench.scratch import scratch

from downburst.model import Transport
from kit.capabilities import needs

pytestmark = [pytest.mark.system, pytest.mark.root]


@pytest.mark.parametrize("transport", COMPARED)
def test_latency_is_as_predicted(transport: Transport) -> None:
    """A machine that does something else makes products late now and then, a wrong model each time.

    Copies share the hub's link fairly here, as the model says: what two connections make of one queue is chance, and
    the more so the busier the processors are.
    """
    needs("root", "netns", "veth", "bridge", "htb", "vxlan")
    tried: list[Compared] = []
    while not tried or (not _close(tried[-1]) and len(tried) < TRIES):
        tried.append(_played(transport))
        print(tried[-1])
    assert _close(tried[-1]), "; ".join(map(str, tried))


def _close(found: Compared) -> bool:
    return abs(found.ratio("p50") - 1) <= MEDIAN_OFF and abs(found.ratio("p99") - 1) <= TAIL_OFF


def _played(transport: Transport) -> Compared:
    arrivals = stretch(recorded_hour([]), 30, speed=1.5)
    rate_bps = link_bps(transport, arrivals, sites=SITES)
    with scratch(NEEDED_BYTES) as directory:
        return compared(transport, arrivals, directory, sites=SITES, rate_bps=rate_bps)


SITES, TRIES = 2, 3
NEEDED_BYTES = 1_500_000_000
