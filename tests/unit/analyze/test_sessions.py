"""Sessions: where they split, and which of them suit a dynamic circuit."""

import numpy as np
import pytest

from downburst.foundation.errors import BadInput
from downburst.recordings.recording import Transfer
from downburst_analyze.sessions import SessionStudy, Suitability, sessions, sessions_of_products, threshold_bytes


def transfer(start_s: float, duration_s: float, size_bytes: int = 1, peer: str = "a") -> Transfer:
    return Transfer(round(start_s * 1e6), duration_s, size_bytes, peer)


@pytest.mark.parametrize(("silence_s", "expected"), [(60.0, 1), (60.001, 2)])
def test_a_gap_of_exactly_a_minute_joins_and_a_longer_one_splits(silence_s: float, expected: int) -> None:
    log = [transfer(0, 10), transfer(10 + silence_s, 5)]
    assert len(list(sessions(log))) == expected


def test_a_long_transfer_keeps_its_session_open_though_later_ones_end_sooner() -> None:
    log = [transfer(0, 1000), transfer(10, 5), transfer(900, 1), transfer(1050, 1)]
    (only,) = sessions(log)
    assert (only.transfers, only.length_s) == (4, 1051)


def test_peers_have_sessions_of_their_own() -> None:
    log = [transfer(0, 1, peer="a"), transfer(1, 1, peer="b"), transfer(2, 1, peer="a")]
    assert sorted((one.peer, one.transfers) for one in sessions(log)) == [("a", 2), ("b", 1)]


def test_a_log_out_of_order_is_refused() -> None:
    with pytest.raises(BadInput, match="sort the log"):
        list(sessions([transfer(5, 1), transfer(4, 1)]))


def test_only_sessions_of_100_mb_are_judged_and_the_share_grows_as_circuits_come_faster() -> None:
    # One-transfer sessions of 0.05, 0.2, 2, 20, 200 GB at 800 Mb/s each: at 60 s the threshold is 60 GB.
    sizes = [50_000_000, 200_000_000, 2_000_000_000, 20_000_000_000, 200_000_000_000]
    log = [transfer(n * 10_000, size * 8 / 800e6, size) for n, size in enumerate(sizes)]
    study = SessionStudy()
    study.take(log)
    found = study.figures((60.0, 1.0, 0.05))
    assert (found.sessions, found.counted_sessions) == (5, 4)
    assert found.throughput_quantiles_bps["p75"] == pytest.approx(800e6, rel=0.001)
    assert found.throughput_quantiles_bps["min"] > 0, "the least of the transfers, not of all numbers"
    assert [one.sessions for one in found.suitability] == [1, 3, 4]
    slowest = found.suitability[0]
    assert isinstance(slowest, Suitability)
    assert slowest.threshold_bytes == pytest.approx(60e9, rel=0.001)
    assert slowest.share_of_sessions == 0.25
    assert slowest.share_of_bytes == pytest.approx(200 / 222.2, rel=1e-3)


def test_the_rule_asks_for_more_than_ten_times_the_setup() -> None:
    assert threshold_bytes(8e6, 3.0) == 30e6


def test_the_longest_and_the_largest_are_named() -> None:
    study = SessionStudy()
    study.take([transfer(0, 5000, 10), transfer(9000, 1, 10**9)])
    found = study.figures(())
    assert found.longest is not None
    assert found.largest is not None
    assert (found.longest.length_s, found.largest.size_bytes) == (5000, 10**9)


def test_products_are_sessions_by_the_time_they_take_to_send() -> None:
    at_s, sizes = np.array([0.0, 1.0, 3.0]), np.array([2e6, 1e6, 1e6])
    # At 8 Mb/s the first product is sent until 2 s, so the silence before the third is one second.
    assert [one.transfers for one in sessions_of_products(at_s, sizes, gap_s=1.0, rate_bps=8e6)] == [3]
    assert [one.transfers for one in sessions_of_products(at_s, sizes, gap_s=0.9, rate_bps=8e6)] == [2, 1]
    assert sessions_of_products(np.empty(0), np.empty(0), gap_s=1.0, rate_bps=8e6) == []
