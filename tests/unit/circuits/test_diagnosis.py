"""Causes from figures that are typical of the four kinds of path."""

from dataclasses import replace

import pytest

from downburst.domain.circuits import Direction, RateProbe
from downburst_circuits.diagnosis import Asked, Finding, judge

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
    found = judged(GOOD)
    assert (found.rate_bps, found.cause) == (450_000_000, "")


def test_a_policer_drops_at_once_and_steadily() -> None:
    found = judged(POLICED)
    assert found.cause == "policer"
    assert found.rate_bps == pytest.approx(251e6, rel=0.01)
    assert "251 Mb/s of 500 Mb/s" in found.sentence
    assert "modify" in found.remedy


def test_a_slow_segment_keeps_packets_waiting_before_it_drops() -> None:
    queued = replace(POLICED, delay_rise_median_us=18_000, delay_rise_max_us=20_000)
    found = judged(queued)
    assert found.cause == "slow-segment"
    assert "20 ms" in found.sentence
    assert "610 KiB" in found.sentence or "612 KiB" in found.sentence


def test_a_shared_segment_swings_with_what_others_send() -> None:
    shared = replace(POLICED, bins_bps=(400e6, 150e6, 380e6, 90e6, 300e6, 420e6, 120e6, 200e6))
    found = judged(shared)
    assert found.cause == "unprotected-segment"
    assert "between 90 Mb/s and 420 Mb/s" in found.sentence


def test_a_small_buffer_loses_of_a_burst_only() -> None:
    found = judged(replace(GOOD, burst_received=20))
    assert (found.cause, found.rate_bps) == ("small-buffer", 450_000_000)
    assert "20 of 64" in found.sentence


def test_nothing_that_arrives_is_a_cut() -> None:
    found = judged(replace(GOOD, received=0, received_bps=0.0, bins_bps=()))
    assert (found.cause, found.rate_bps) == ("cut", 0)


def test_a_train_that_nobody_sent_says_nothing_of_the_path() -> None:
    found = judged(replace(GOOD, sent=0, received=0, received_bps=0.0, direction=Direction.IN))
    assert (found.cause, found.rate_bps) == ("slow-sender", 0)
    assert "from unl.edu was sent" in found.sentence


def test_what_products_use_counts_as_carried() -> None:
    beside = replace(GOOD, offered_bps=150e6, received_bps=150e6)
    assert judged(beside, used_bps=300e6).rate_bps == 450_000_000


def test_products_that_come_while_a_train_goes_are_no_shortage() -> None:
    """Products and train share the circuit's shaper, so the train gets the remaining rate and has no shortage."""
    beside = replace(GOOD, received=11_200, received_bps=250e6, delay_rise_median_us=30_000)
    found = judged(beside, used_bps=200e6)
    assert (found.rate_bps, found.cause) == (450_000_000, "")
    assert judged(beside, used_bps=50e6).cause == "slow-segment"


def test_a_sender_that_is_too_slow_is_not_blamed_on_the_path() -> None:
    found = judged(replace(GOOD, offered_bps=200e6, received_bps=200e6))
    assert (found.cause, found.rate_bps) == ("slow-sender", 200_000_000)


def test_a_train_that_is_over_before_its_queue_is_does_not_show_more_than_came() -> None:
    """A receiver that reads a backlog in one go must not make the path look faster than it is."""
    found = judged(replace(POLICED, received_bps=440e6))
    assert found.rate_bps == pytest.approx(450e6 * 0.56, rel=0.01)


def test_too_few_bins_name_no_cause() -> None:
    found = judged(replace(POLICED, bins_bps=(251e6, 250e6)))
    assert found.cause == "unclear"


def test_a_sentence_says_which_way() -> None:
    found = judged(replace(POLICED, direction=Direction.IN))
    assert "from unl.edu" in found.sentence


def test_a_train_that_made_room_for_products_that_did_not_come_tells_nothing() -> None:
    slower = replace(GOOD, offered_bps=250e6, received_bps=250e6)
    assert judge(slower, Asked(RESERVED, 0.9 * RESERVED, 250e6)) is None


def judged(probe: RateProbe, *, used_bps: float = 0.0) -> Finding:
    found = judge(probe, Asked(RESERVED, 0.9 * RESERVED, 0.9 * RESERVED - used_bps), used_bps=used_bps)
    assert found is not None
    return found
