"""Runs become rows with the right goals."""

from bench.harness.fan_out import FanOut
from bench.unicast import rows
from bench.unicast.far import Far
from bench.unicast.live import Latency, Scaling, Tail
from bench.unicast.many import Crowd, Idle
from bench.unicast.outage import Outage


def run(took_s: float, cpu_s: float = 1.0, product_bytes: int = 2_000) -> FanOut:
    return FanOut(products=10_000, product_bytes=product_bytes, sites=8, took_s=took_s, cpu_s=cpu_s)


def test_a_fan_out_counts_per_site_and_together() -> None:
    one = run(0.5, cpu_s=0.4)
    assert (one.products_per_s, one.together_mbps, one.cpu_us_per_delivery) == (20_000, 320, 5)


def test_small_products_stand_beside_every_peer_by_their_medians() -> None:
    runs = {
        rows.OURS: [run(0.4, 0.4), run(0.5, 0.4), run(4.0, 4.0)],
        rows.LIVE: [run(2.0)],
        rows.SENDFILE: [run(0.1, 0.08)],
        "NATS": [run(0.25, 0.8)],
    }
    found = rows.rows_of_small(runs)
    described = [(row.id, row.ours, row.against, row.theirs, row.met) for row in found]
    assert described == [
        ("1", 20_000, rows.SENDFILE, 100_000, True),
        ("1", 20_000, "NATS", 40_000, True),
        ("1", 5_000, "-", None, None),
        ("4", 5, rows.SENDFILE, 1, True),
        ("4", 5, "NATS", 10, True),
        ("4", 12.5, "-", None, None),
    ]


def test_large_products_are_judged_by_the_ratio_to_sendfile() -> None:
    rate, cpu = rows.rows_of_large("2", "100 kB", {rows.OURS: [run(2.0)], rows.SENDFILE: [run(1.0)]})
    assert (rate.ratio, rate.met, cpu.goal) == (0.5, False, None)


def test_scaling_leaves_out_what_the_intake_costs() -> None:
    per_delivery, intake = rows.rows_of_scaling(10_000, [Scaling(1_000, 8, none_s=1.0, one_s=1.010, many_s=1.088)])
    assert (round(per_delivery.ours, 6), round(per_delivery.theirs or 0, 6)) == (11, 10)
    assert per_delivery.met is True
    assert intake.ours == 1_000


def test_a_tail_is_the_worst_of_all_runs() -> None:
    [row] = rows.rows_of_tail(200, [Tail(20, 1), Tail(130, 2), Tail(10, 90)])
    assert (row.ours, row.theirs, row.met) == (130, 90, False)


def test_latencies_are_held_to_their_limits() -> None:
    median, p99, worst = rows.rows_of_low_rate([Latency(0.6, 6, 29, 3)])
    assert [row.met for row in (median, p99, worst)] == [True, False, True]
    assert (worst.against, worst.theirs) == ("source's worst delay", 3)
    assert [row.met for row in rows.rows_of_warnings(40, [Latency(10, 51, 60, 1)])] == [None, False]


def test_a_far_site_stands_beside_one_tcp_stream() -> None:
    _, p99 = rows.rows_of_far(60, [Far(Latency(50, 900, 1_000, 0), Latency(80, 3_000, 4_000, 0), 0.2)])
    assert (p99.ours, p99.theirs, p99.met) == (900, 3_000, True)


def test_an_outage_must_not_be_felt_by_the_others() -> None:
    live, caught_up, others = rows.rows_of_outage([Outage(5, 400, 3, others_before_ms=10, others_during_ms=12)])
    assert (live.met, caught_up.met, others.met) == (True, None, False)
    assert "5 missed products" in live.case


def test_every_row_has_a_title() -> None:
    from bench.unicast.__main__ import CASES  # noqa: PLC0415

    assert set(CASES) == set(rows.TITLES)


def test_many_sites_are_held_to_latency_cores_and_memory() -> None:
    assert [row.met for row in rows.rows_of_crowd([Crowd(570, 5_100, p99_ms=99, hub_cores=1.2)])] == [True, False]
    cpu, memory = rows.rows_of_idle([Idle(1_000, cpu_percent=0.9, bytes_per_site=51_000)])
    assert (cpu.met, memory.ours, memory.met) == (True, 51, False)
