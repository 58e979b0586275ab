"""Checks that a run must pass before it counts."""

import json
from pathlib import Path

import numpy as np
import pytest
from bench.harness.stamps import Stamps
from bench.peers.consumers import Consumed
from bench.product.fleet import Arrivals, Cpu, check, receipts, resident_bytes
from bench.unicast.many import spread
from bench.unicast.outage import judge, mixed


def stamps(fingerprint: str = "same", damaged: int = 0, rows: list[list[int]] | None = None) -> Stamps:
    return Stamps(("F",), fingerprint, damaged, np.array(rows or [], dtype=np.int64).reshape(-1, 6))


def test_receipts_are_summed_over_batches(tmp_path: Path) -> None:
    for number, stored in enumerate((3, 4)):
        settled = [{"site": "a", "stored": stored}, {"site": "b", "stored": 1}]
        (tmp_path / f"{number}.json").write_text(json.dumps({"settled": settled}))
    assert receipts(tmp_path) == {"a": 7, "b": 2}


def test_a_site_must_hold_exactly_the_hubs_products() -> None:
    check(Arrivals(stamps(), {"a": stamps()}))
    for wrong in (stamps("other"), stamps(damaged=1)):
        with pytest.raises(RuntimeError, match="a does not hold what the hub holds"):
            check(Arrivals(stamps(), {"a": wrong}))


def test_processor_time_is_that_of_hub_and_sites() -> None:
    assert Cpu(3.0, 5.0).since(Cpu(1.0, 0.0)) == Cpu(2.0, 5.0)
    assert Cpu(2.0, 5.0).all_s == 7.0


def test_peers_are_held_to_completeness_too() -> None:
    consumed = Consumed(
        [{"began_us": 5, "ended_us": 9, "messages": 3}, {"began_us": 4, "ended_us": 8, "messages": 2}], 0
    )
    assert (consumed.began_us, consumed.ended_us) == (4, 9)
    with pytest.raises(RuntimeError, match="1 consumers did not get 3"):
        consumed.needs(3)


def product(hub_ms: int, site_ms: int) -> list[int]:
    return [0, hub_ms, 9, 0, hub_ms * 1000, site_ms * 1000]


def test_an_outage_is_judged_from_the_logs() -> None:
    # Away from 100 to 200 ms: two missed products arrive at 230 and 260 ms, a live one of 210 ms at 215 ms.
    away = stamps(rows=[product(50, 51), product(120, 230), product(150, 260), product(210, 215)])
    other = stamps(rows=[product(50, 52), product(120, 121), product(150, 151), product(210, 214)])
    found = judge(Arrivals(other, {"away": away, "other": other}), "away", gone_us=100_000, back_us=200_000)
    assert (found.missed, found.live_after_ms, found.caught_up_s) == (2, 15.0, 0.06)
    assert (found.others_before_ms, found.others_during_ms) == (2.0, 4.0)


def test_an_outage_in_which_nothing_happened_is_no_result() -> None:
    quiet = stamps(rows=[product(50, 51), product(210, 215)])
    with pytest.raises(RuntimeError, match="too thin"):
        judge(Arrivals(quiet, {"away": quiet}), "away", gone_us=100_000, back_us=200_000)


def test_the_mix_is_played_in_order_of_time() -> None:
    planned = mixed(20, rate=2, size=0.05)
    moments = [product.at_us for product in planned]
    assert moments == sorted(moments)
    assert moments[-1] < 20_000_000
    assert len({product.feed for product in planned}) == 10


def test_a_site_of_a_crowd_is_held_to_its_own_feeds() -> None:
    hub = Stamps(("F", "G"), "both", 0, np.array([[0, 1, 9, 0, 5, 5], [0, 2, 9, 0, 6, 6], [1, 1, 9, 0, 7, 7]]))
    swapped = Stamps(("F",), "part", 0, np.array([[0, 2, 9, 0, 6, 8], [0, 1, 9, 0, 5, 9]]))
    check(Arrivals(hub, {"a": swapped}), {"a": ["F"]})
    twice = Stamps(("F",), "part", 0, np.concatenate((swapped.rows, swapped.rows[:1])))
    for wrong, feeds in ((twice, ["F"]), (swapped, ["F", "G"]), (swapped, ["G"])):
        with pytest.raises(RuntimeError, match="does not hold"):
            check(Arrivals(hub, {"a": wrong}), {"a": feeds})


def test_feeds_are_spread_so_that_each_has_its_number_of_sites() -> None:
    interests = spread(6, ["A", "B", "C", "D"], to_each=2)
    assert list(interests) == [f"site{number}" for number in range(6)]
    assert sorted(feed for feeds in interests.values() for feed in feeds) == ["A", "A", "B", "B", "C", "C", "D", "D"]
    assert all(interests.values())
    assert spread(2, ["A"], to_each=9) == {"site0": ["A"], "site1": ["A"]}


def test_memory_in_use_is_read_in_bytes() -> None:
    assert resident_bytes("Name:\tnode\nVmPeak:\t  90 kB\nVmRSS:\t    2048 kB\nThreads:\t4\n") == 2_097_152
