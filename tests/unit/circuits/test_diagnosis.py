"""Causes from figures such as the four kinds of path give."""

from dataclasses import replace

import pytest

from downburst.circuits import Direction, RateProbe
from downburst_circuits.diagnosis import judge

RESERVED = 500_000_000
GOOD = RateProbe(
    site="unl.edu",
    direction=Direction.OUT,
    sent=20_000,
    received=20_000,
    offered_bps=450e6,
    received_bps=450e6,
    bins_bps=(449e6, 450e6, 451e6, 450e6, 450e6, 449e6, 450e6, 450e6),
    loss_by_bin=(0.0,) * 8,
    delay_rise_median_us=80,
    delay_rise_max_us=400,
    burst_sent=64,
    burst_received=64,
)
POLICED = replace(
    GOOD,
    received=11_200,
    received_bps=251e6,
    bins_bps=(310e6, 250e6, 251e6, 250e6, 249e6, 250e6, 250e6, 251e6),
    loss_by_bin=(0.3, *(0.44,) * 7),
)


def test_a_train_that_comes_whole_shows_its_rate() -> None:
    found = judge(GOOD, reserved_bps=RESERVED)
    assert (found.rate_bps, found.cause) == (450_000_000, "")


def test_a_policer_drops_at_once_and_steadily() -> None:
    found = judge(POLICED, reserved_bps=RESERVED)
    assert found.cause == "policer"
    assert found.rate_bps == pytest.approx(251e6, rel=0.01)
    assert "251 Mb/s of 500 Mb/s" in found.sentence
    assert "modify" in found.remedy


def test_a_slow_segment_keeps_packets_waiting_before_it_drops() -> None:
    queued = replace(POLICED, delay_rise_median_us=18_000, delay_rise_max_us=20_000)
    found = judge(queued, reserved_bps=RESERVED)
    assert found.cause == "slow-segment"
    assert "20 ms" in found.sentence
    assert "610 KiB" in found.sentence or "612 KiB" in found.sentence


def test_a_shared_segment_swings_with_what_others_send() -> None:
    shared = replace(POLICED, bins_bps=(400e6, 150e6, 380e6, 90e6, 300e6, 420e6, 120e6, 200e6))
    found = judge(shared, reserved_bps=RESERVED)
    assert found.cause == "unprotected-segment"
    assert "between 90 Mb/s and 420 Mb/s" in found.sentence


def test_a_small_buffer_loses_of_a_burst_only() -> None:
    found = judge(replace(GOOD, burst_received=20), reserved_bps=RESERVED)
    assert (found.cause, found.rate_bps) == ("small-buffer", 450_000_000)
    assert "20 of 64" in found.sentence


def test_nothing_that_arrives_is_a_cut() -> None:
    found = judge(replace(GOOD, received=0, received_bps=0.0, bins_bps=()), reserved_bps=RESERVED)
    assert (found.cause, found.rate_bps) == ("cut", 0)


def test_what_products_use_counts_as_carried() -> None:
    beside = replace(GOOD, offered_bps=150e6, received_bps=150e6)
    assert judge(beside, reserved_bps=RESERVED, used_bps=300e6).rate_bps == 450_000_000


def test_a_sender_that_is_too_slow_is_not_blamed_on_the_path() -> None:
    found = judge(replace(GOOD, offered_bps=200e6, received_bps=200e6), reserved_bps=RESERVED)
    assert (found.cause, found.rate_bps) == ("slow-sender", 200_000_000)


def test_a_train_that_is_over_before_its_queue_is_does_not_show_more_than_came() -> None:
    """A receiver that reads a backlog at once must not make the path look faster than it is."""
    found = judge(replace(POLICED, received_bps=440e6), reserved_bps=RESERVED)
    assert found.rate_bps == pytest.approx(450e6 * 0.56, rel=0.01)


def test_too_few_bins_name_no_cause() -> None:
    found = judge(replace(POLICED, bins_bps=(251e6, 250e6)), reserved_bps=RESERVED)
    assert found.cause == "unclear"


def test_a_sentence_says_which_way() -> None:
    found = judge(replace(POLICED, direction=Direction.IN), reserved_bps=RESERVED)
    assert "from unl.edu" in found.sentence
