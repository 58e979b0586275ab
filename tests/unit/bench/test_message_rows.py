"""Messages, the recorded minute and the queue that judges it, and simulated crowds."""

from pathlib import Path

import numpy as np
import pytest
from bench.harness.recorded import busiest
from bench.harness.schedules import Planned
from bench.harness.stamps import Stamps
from bench.multicast import busiest_minute
from bench.multicast.busiest_minute import Tenfold, Waits, first_come_first_served
from bench.multicast.crowd import parse
from bench.multicast.message_rows import (
    rows_of_crowd,
    rows_of_lossy_messages,
    rows_of_messages,
    rows_of_minute,
    rows_of_tenfold,
)
from bench.multicast.messages import Messages, summed_up
from bench.product.fleet import Arrivals, Cpu
from bench.product.play import Live

from downburst.recordings.traces import Arrival


def stamps(*rows: tuple[int, int, int, int]) -> Stamps:
    """Products as (sequence, bytes, stored at the hub, stored here)."""
    whole = [(0, sequence, size, hub, hub, here) for sequence, size, hub, here in rows]
    return Stamps(("F",), "", 0, np.array(whole, dtype=np.int64))


def test_messages_are_judged_beside_nats() -> None:
    ours, nats = [Messages(0.4, 5, 30, 1.2, 10, 0.3)], [Messages(0.3, 5.1, 400, 7.3, 30)]
    of = {row.case.partition(": ")[2]: row for row in rows_of_messages(ours, nats)}
    assert (of["p50"].met, of["p99"].met, of["wire bytes per message byte"].met) == (False, True, True)
    assert (of["p50 of the intake before it"].ours, of["p50 of the intake before it"].against) == (0.3, "-")
    of = {row.case.partition("loss, ")[2]: row for row in rows_of_lossy_messages(ours, nats)}
    assert (of["p99"].met, of["worst"].met) == (True, True)
    assert {row.met for row in rows_of_messages(ours, [])} == {None}


def test_ten_times_the_rate_is_judged_by_its_bytes_and_its_tail() -> None:
    sent, p99 = rows_of_tenfold(30, [Tenfold(1.1, 900), Tenfold(1.3, 2_000), Tenfold(1.14, 1_000)])
    assert (sent.met, sent.ours, p99.met) == (True, 1.14, True)
    assert "300 s at 10 times the rate to 8" in sent.case
    assert [row.met for row in rows_of_tenfold(30, [Tenfold(1.16, 1_001)])] == [False, False]


def test_a_run_of_messages_is_summed_up() -> None:
    latency_us = np.array([1_000] * 98 + [2_000, 9_000])
    median_ms, p99_ms, worst_ms, wire_share, cpu_us = summed_up(latency_us, 50, 120_000, 0.001)
    assert (median_ms, p99_ms, worst_ms) == (1.0, 2.0, 9.0)
    assert (wire_share, cpu_us) == pytest.approx((1.2, 10))


def test_the_busiest_stretch_may_begin_with_any_product() -> None:
    arrivals = [Arrival(size, at_s * 1_000_000) for size, at_s in ((5, 0), (1, 50), (9, 70), (9, 109), (1, 111))]
    assert [arrival.size_bytes for arrival in busiest(arrivals, 60)] == [1, 9, 9]
    assert [arrival.size_bytes for arrival in busiest(arrivals, 1)] == [9]


def test_a_product_waits_for_those_before_it() -> None:
    arrivals = [Arrival(1_000_000, 0), Arrival(1_000_000, 20_000), Arrival(500_000, 900_000)]
    waits = first_come_first_served(arrivals, 80_000_000)
    assert waits.mean_ms == pytest.approx((100 + 180 + 50) / 3)
    assert waits.p99_ms == pytest.approx(180)


def test_waits_run_from_the_schedule_to_each_sites_log() -> None:
    planned = [Planned(0, "F", 10, "a"), Planned(5_000, "F", 20, "b")]
    account = {"began_us": 1_000_000}
    site = stamps((1, 5, 999_000, 999_500), (2, 20, 1_006_000, 1_008_000), (3, 10, 1_000_500, 1_001_000))
    live = Live(account, Cpu(0, 0), Arrivals(site, {"one": site}))
    assert busiest_minute.waits(live, planned) == Waits(2.0, 3.0)
    with pytest.raises(RuntimeError, match="2 products, which are not the 1 of the schedule"):
        busiest_minute.waits(live, planned[:1])


def test_without_the_record_a_generated_hour_stands_in_and_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOWNBURST_DATA", str(tmp_path))
    notes: list[str] = []
    arrivals = busiest_minute.minute(10, notes)
    assert arrivals[-1].at_us - arrivals[0].at_us < 10_000_000
    assert "generated" in notes[0]


def test_the_minute_is_judged_by_its_queue_and_shown_beside_unicast() -> None:
    of = rows_of_minute(60, Waits(100, 400), Waits(120, 600), Waits(2_000, 9_000))
    assert [(row.against.startswith("the queue"), row.met) for row in of] == [
        (True, True),
        (True, False),
        (False, None),
        (False, None),
    ]


def test_the_minute_may_be_played_without_the_unicast_run() -> None:
    assert len(rows_of_minute(60, Waits(100, 400), Waits(120, 600), None)) == 2


def test_a_simulated_crowd_has_its_goal() -> None:
    printed = (
        "500 receivers, 1 % loss: repairs 2.41 % of the product bytes\n."
        "500 receivers, a loss that all share: 5.57 requests, 1.02 repairs of each packet\n"
    )
    rows = rows_of_crowd(parse(f"\nrunning 2 tests\n{printed}"))
    assert [(row.id, row.ours, row.met) for row in rows] == [
        ("12", 2.41, True),
        ("12", 5.57, True),
        ("12", 1.02, False),
    ]
    with pytest.raises(RuntimeError, match="did not print"):
        parse("running 0 tests")
