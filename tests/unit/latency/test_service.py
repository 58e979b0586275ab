"""Loading batches once, and latencies of any selection, on a real ledger."""

import json
from pathlib import Path

import pytest

from downburst.bus.local import LocalBus
from downburst.domain.events import BatchLoaded, FaultSeen, SiteViolated
from downburst.domain.latency import LatencyKind, SketchRow
from downburst.domain.plans import Transport
from downburst.domain.receipts import Batch
from downburst.foundation.clock import FakeClock, to_us
from downburst.ledger import Ledger
from downburst_latency.service import LatencySelection, LatencyService, figures_of
from factories import sketch_row
from unit.latency.batches import document


@pytest.fixture
def service(ledger: Ledger, clock: FakeClock) -> LatencyService:
    return LatencyService(ledger, clock=clock)


def minute(clock: FakeClock) -> int:
    return to_us(clock.now()) // 60_000_000


def keep(ledger: Ledger, *rows: SketchRow, batch: str = "kept") -> None:
    with ledger.transaction() as tx:
        tx.measured.batches.load(Batch(batch, sketches=rows))


def written(directory: Path, clock: FakeClock, batch: str = "b1") -> Path:
    path = directory / f"{batch}.json"
    path.write_text(json.dumps(document(batch, minute(clock))))
    return path


async def test_a_batch_that_comes_again_changes_nothing(ledger: Ledger, clock: FakeClock, tmp_path: Path) -> None:
    bus = LocalBus()
    loaded = bus.subscribe(BatchLoaded)
    service = LatencyService(ledger, bus=bus, clock=clock)
    path = written(tmp_path, clock)
    assert await service.load(path) is True
    assert await service.load(path) is False
    figures = await service.latency()
    assert figures is not None
    assert figures.count == 4
    with ledger.transaction(writes=False) as tx:
        (settled,) = tx.measured.settled.all()
        assert (settled.stored, settled.expired, tx.measured.exceptions.count()) == (4, 1, 1)
    loaded.close()
    assert [event async for event in loaded] == [BatchLoaded("b1")]


async def test_finding_01_a_claim_that_no_database_keeps_costs_no_other_site_its_figures(
    ledger: Ledger, clock: FakeClock, tmp_path: Path
) -> None:
    bus = LocalBus()
    told = bus.subscribe(BatchLoaded, FaultSeen, SiteViolated)
    service = LatencyService(ledger, bus=bus, clock=clock)
    for batch, claim in (("b1", 2**64 - 1), ("b2", 2**63), ("b3", 2**63 - 1)):
        poisoned = document(batch, minute(clock))
        poisoned["settled"].append({**poisoned["settled"][0], "site": "liar", "settled_to": claim})
        path = tmp_path / f"{batch}.json"
        path.write_text(json.dumps(poisoned))
        assert await service.load(path) is True
        assert await service.load(path) is False
    with ledger.transaction(writes=False) as tx:
        liar, honest = tx.measured.settled.all()
        assert (honest.site, honest.settled_to, honest.stored) == ("unl.edu", 9, 12)
        assert (liar.site, liar.settled_to) == ("liar", 2**63 - 1), "the highest number that there can be"
        faults = tx.measured.faults.recent()
    assert {fault.site for fault in faults} == {"liar"}
    assert all("is not between 0 and 9223372036854775807" in fault.sentence for fault in faults)
    told.close()
    events = [event async for event in told]
    assert [event.site for event in events if isinstance(event, SiteViolated)] == ["liar"] * 2
    assert sum(isinstance(event, BatchLoaded) for event in events) == 3
    assert sum(isinstance(event, FaultSeen) for event in events) == 2


async def test_finding_02_a_stamp_of_no_clock_costs_no_other_site_its_figures(
    service: LatencyService, ledger: Ledger, clock: FakeClock, tmp_path: Path
) -> None:
    path = tmp_path / "b1.json"
    poisoned = document("b1", minute(clock))
    for at_us in (-1, 2**62, 10**30):
        poisoned["exceptions"].append({**poisoned["exceptions"][0], "site": "liar", "at_us": at_us})
    path.write_text(json.dumps(poisoned))
    assert await service.load(path) is True
    figures = await service.latency()
    assert figures is not None
    assert figures.count == 4
    with ledger.transaction(writes=False) as tx:
        assert [row.site for row in tx.measured.exceptions.recent()] == ["unl.edu"]
        (fault,) = tx.measured.faults.recent()
    assert (
        "3 entries of the batch of receipts b1 are impossible and were set aside; the first of site liar"
        in fault.sentence
    )


async def test_sums_of_claims_end_where_the_ledger_ends(
    service: LatencyService, ledger: Ledger, clock: FakeClock, tmp_path: Path
) -> None:
    for batch in ("b1", "b2", "b3"):
        large = document(batch, minute(clock))
        large["settled"][0] |= {"stored_bytes": 2**62, "stored": 2**52}
        path = tmp_path / f"{batch}.json"
        path.write_text(json.dumps(large))
        assert await service.load(path) is True
    with ledger.transaction(writes=False) as tx:
        (settled,) = tx.measured.settled.all()
        assert (settled.stored, settled.stored_bytes) == (2**53, 2**63 - 1)


async def test_a_batch_under_another_id_adds_up(service: LatencyService, clock: FakeClock, tmp_path: Path) -> None:
    for batch in ("b1", "b2"):
        assert await service.load(written(tmp_path, clock, batch))
    figures = await service.latency()
    assert figures is not None
    assert (figures.count, figures.negative, figures.min_ms, figures.max_ms) == (8, 2, -1.4, 2.0)


async def test_a_file_that_can_not_be_understood_changes_nothing(
    service: LatencyService, ledger: Ledger, clock: FakeClock, tmp_path: Path
) -> None:
    path = written(tmp_path, clock)
    path.write_text(path.read_text()[:-20])
    with pytest.raises(ValueError, match=r".+"):
        await service.load(path)
    assert await service.latency() is None


async def test_a_failure_in_the_transaction_leaves_the_batch_to_be_loaded_again(
    service: LatencyService, ledger: Ledger, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("cut off")

    path = written(tmp_path, clock)
    with monkeypatch.context() as broken:
        broken.setattr("downburst.ledger.repositories.receipts.Exceptions.add", fail)
        with pytest.raises(RuntimeError):
            await service.load(path)
    assert await service.latency() is None
    assert await service.load(path) is True
    figures = await service.latency()
    assert figures is not None
    assert figures.count == 4


async def test_quantiles_come_from_all_values_together(
    service: LatencyService, ledger: Ledger, clock: FakeClock
) -> None:
    """Ninety fast products at one site and ten slow ones at another: no average of quantiles gives this."""
    keep(
        ledger,
        sketch_row([10.0] * 90, site="a", minute=minute(clock)),
        sketch_row([1000.0] * 10, site="b", minute=minute(clock)),
    )
    figures = await service.latency()
    assert figures is not None
    assert figures.p50_ms == pytest.approx(10, rel=0.02)
    assert figures.p95_ms == pytest.approx(1000, rel=0.02)
    assert figures.mean_ms == pytest.approx(109)
    assert (figures.count, figures.bound_ms, figures.flag) == (100, 0.5, None)


@pytest.mark.parametrize(
    ("selection", "count"),
    [
        (LatencySelection(), 15),
        (LatencySelection(feed="NGRID"), 7),
        (LatencySelection(site="b"), 4),
        (LatencySelection(transport=Transport.MULTICAST), 8),
        (LatencySelection(kind=LatencyKind.END_TO_END), 16),
        (LatencySelection(minutes=1), 7),
        (LatencySelection(minutes=120), 47),
        (LatencySelection(feed="NONE"), 0),
    ],
)
async def test_selections(
    service: LatencyService, ledger: Ledger, clock: FakeClock, selection: LatencySelection, count: int
) -> None:
    clock.advance(7_200)
    now = minute(clock)
    keep(
        ledger,
        sketch_row([1.0] * 3, site="a", minute=now),
        sketch_row([1.0] * 4, site="b", minute=now),
        sketch_row([1.0] * 8, feed="TEXT", site="a", minute=now - 59, transport=Transport.MULTICAST),
        sketch_row([1.0] * 16, site="a", minute=now, kind=LatencyKind.END_TO_END),
        sketch_row([1.0] * 32, site="a", minute=now - 60),
    )
    figures = await service.latency(selection)
    assert (figures.count if figures else 0) == count


async def test_figures_by_site_and_by_minute(service: LatencyService, ledger: Ledger, clock: FakeClock) -> None:
    now = minute(clock)
    keep(
        ledger,
        sketch_row([1.0], site="a", minute=now - 1),
        sketch_row([4.0], site="a", minute=now),
        sketch_row([9.0], site="b", minute=now, transport=Transport.MULTICAST),
    )
    by_site = await service.by_site()
    assert {key: figures.max_ms for key, figures in by_site.items()} == {
        ("NGRID", "a", Transport.UNICAST): 4.0,
        ("NGRID", "b", Transport.MULTICAST): 9.0,
    }
    by_minute = await service.by_minute()
    assert {key: figures.max_ms for key, figures in by_minute.items()} == {now - 1: 1.0, now: 9.0}
    assert list(by_minute) == [now - 1, now]


def test_negative_values_are_shown_and_flagged() -> None:
    figures = figures_of([sketch_row([-250.0, 3.0, 4.0])])
    assert figures is not None
    assert (figures.min_ms, figures.negative) == (-250.0, 1)
    assert figures.flag == "1 value is negative: a clock is off by at least 250 ms"


def test_a_bound_that_hides_the_median_is_flagged() -> None:
    figures = figures_of([sketch_row([0.6, 0.7, 0.8])])
    assert figures is not None
    assert figures.flag == "the clocks are known to within 0.5 ms only, which is over half of the median"


def test_no_rows_have_no_figures() -> None:
    assert figures_of([]) is None
