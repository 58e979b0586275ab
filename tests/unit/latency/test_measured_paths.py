"""The latencies of a batch by path: live, compared, the slowest first; published before the ledger is written."""

import json
from contextlib import suppress
from dataclasses import replace

from downburst.bus.local import LocalBus
from downburst.domain.latency import LatencyKind
from downburst.domain.probes.signs import PathMeasured, PathsMeasured
from downburst.foundation.clock import FakeClock, to_us
from downburst.foundation.errors import LedgerAway
from downburst_latency.paths import MOST_PATHS, measured_paths
from downburst_latency.service import LatencyService
from factories import sketch_row
from unit.latency.batches import document

ROW = replace(sketch_row([40.0]), kind=LatencyKind.DISTRIBUTION, minute=100, count=4, max_ms=40.0, bound_ms=0.5)


def test_a_path_has_the_latency_of_its_slowest_product_or_its_p99() -> None:
    (few,) = measured_paths([ROW], 100)
    assert few == PathMeasured(ROW.site, ROW.feed, 40.0, 0.5)


def test_what_tells_nothing_of_now_is_left_out() -> None:
    rows = [
        replace(ROW, minute=98),
        replace(ROW, bound_ms=None),
        replace(ROW, kind=next(kind for kind in LatencyKind if kind is not LatencyKind.DISTRIBUTION)),
    ]
    assert measured_paths(rows, 100) == ()
    assert len(measured_paths([replace(ROW, minute=99)], 100)) == 1


def test_the_slowest_of_many_paths_are_kept() -> None:
    rows = [replace(ROW, site=f"s{number}", max_ms=float(number)) for number in range(MOST_PATHS + 9)]
    found = measured_paths(rows, 100)
    assert len(found) == MOST_PATHS
    assert (found[0].p99_ms, found[-1].p99_ms) == (MOST_PATHS + 8.0, 9.0)


class AwayLedger:
    """A ledger that takes nothing."""

    async def write(self, _: object) -> bool:
        raise LedgerAway("the ledger is away")


async def test_a_ledger_that_is_away_delays_no_news_of_late_products(clock: FakeClock) -> None:
    bus = LocalBus()
    heard = bus.subscribe(PathsMeasured)
    service = LatencyService(AwayLedger(), bus=bus, clock=clock)  # type: ignore[arg-type]
    with suppress(LedgerAway):
        await service.load_text(json.dumps(document("b1", to_us(clock.now()) // 60_000_000)))
    heard.close()
    found = [event async for event in heard if isinstance(event, PathsMeasured)]
    assert [event.paths[0].site for event in found] == ["unl.edu"]
