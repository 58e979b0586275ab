"""Latencies and silences as they are read from the logs."""

import json

import numpy as np
import pytest
from bench.harness.stamps import Stamps, longest_silence_us, parse, percentile


def stamps(*moments: tuple[int, int]) -> Stamps:
    """Products of (stored at the hub, stored at the site)."""
    rows = np.array([[0, number, 9, 0, hub, site] for number, (hub, site) in enumerate(moments)], dtype=np.int64)
    return Stamps(("F",), "print", 0, rows.reshape(-1, 6))


def test_what_the_tool_prints_is_read_back() -> None:
    rows = np.array([[0, 1, 10, 5, 100, 130], [1, 7, 20, 5, 200, 290]], dtype="<i8")
    summary = {"feeds": ["F", "G"], "rows": 2, "damaged": 0, "fingerprint": "ab"}
    read = parse(json.dumps(summary).encode() + b"\n" + rows.tobytes())
    assert (read.feeds, read.fingerprint, read.damaged) == (("F", "G"), "ab", 0)
    assert read.latency_us.tolist() == [30, 90]
    assert read.of("G").size_bytes.tolist() == [20]


def test_bytes_that_look_like_a_line_end_belong_to_the_rows() -> None:
    rows = np.full((1, 6), 0x0A0A0A0A, dtype="<i8")
    read = parse(b'{"feeds":["F"],"rows":1,"damaged":0,"fingerprint":""}\n' + rows.tobytes())
    assert read.rows.tolist() == [[0x0A0A0A0A] * 6]


def test_a_log_without_products_has_no_rows() -> None:
    assert parse(b'{"feeds":[],"rows":0,"damaged":0,"fingerprint":""}\n').rows.shape == (0, 6)


def test_a_window_is_chosen_by_the_hubs_stamp() -> None:
    chosen = stamps((10, 50), (20, 21), (30, 31)).between(20, 30)
    assert chosen.stored_us.tolist() == [21]


@pytest.mark.parametrize(("percent", "expected"), [(50, 50), (99, 99), (100, 100), (1, 1)])
def test_a_percentile_is_one_of_the_figures(percent: float, expected: float) -> None:
    assert percentile(np.arange(100, 0, -1), percent) == expected


def test_silence_without_anything_pending_is_no_silence() -> None:
    assert longest_silence_us(stamps((0, 5), (1_000_000, 1_000_007))) == 7


def test_silence_runs_from_the_last_arrival_while_something_waits() -> None:
    # The third waits from 2 to 100; the second arrives in between, at 30.
    assert longest_silence_us(stamps((0, 10), (1, 30), (2, 100))) == 70


def test_a_product_that_others_pass_is_pending_all_the_time() -> None:
    # A giant waits from 0 to 1,000. Small ones arrive in that time, so the site is never silent for long.
    small = [(at, at + 5) for at in range(100, 1_000, 100)]
    assert longest_silence_us(stamps((0, 1_000), *small)) == 105


def test_the_order_in_the_log_does_not_matter_and_nothing_is_silent_in_an_empty_one() -> None:
    assert longest_silence_us(stamps((2, 100), (0, 10), (1, 30))) == 70
    assert longest_silence_us(stamps()) == 0
