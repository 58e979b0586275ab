"""The rate of one connection by Mathis and RFC 9438, and the number of connections that equal a rate."""

import math

import pytest

from downburst.domain.tcp.rates import ParallelConnections, cubic_bps, parallel_connections, reno_bps


def advised(congestion: str, loss: float, target_bps: float | None, **given: float) -> ParallelConnections:
    found = parallel_connections(congestion, round_trip_s=0.07, loss=loss, target_bps=target_bps, **given)
    assert found is not None
    return found


def test_mathis_by_hand() -> None:
    """1,448 bytes * 8 / 70 ms * 1.2247 / the root of 0.001 = 165,486 * 38.73."""
    assert reno_bps(0.07, 0.001) == pytest.approx(6.409e6, rel=1e-3)
    assert reno_bps(0.07, 0.001, segment_bytes=8_948) == pytest.approx(6.409e6 * 8_948 / 1_448, rel=1e-3)
    assert reno_bps(0.07, 0.004) == pytest.approx(reno_bps(0.07, 0.001) / 2), "four times the loss, half the rate"


def test_cubic_by_hand() -> None:
    """1.054 * (0.2 / 0.00001) ** 0.75 = 1,772.6 segments a round trip of 200 ms."""
    assert cubic_bps(0.2, 1e-5) == pytest.approx(1_772.6 * 1_448 * 8 / 0.2, rel=1e-3)
    assert cubic_bps(0.01, 0.01, segment_bytes=500) == reno_bps(0.01, 0.01, segment_bytes=500), "never less than Reno"
    assert reno_bps(0.07, 0) == cubic_bps(0.07, 0) == math.inf


def test_the_number_of_connections_for_a_rate() -> None:
    reno = advised("reno", 0.001, 50e6)
    assert (reno.connections, reno.target_bps) == (8, 50e6), "50 / 6.41 = 7.8"
    assert reno.one_bps == pytest.approx(6.409e6, rel=1e-3)
    assert reno.sentence == "8 connections equal 50 Mb/s: each reaches 6.41 Mb/s at 70 ms and 0.1 % loss"
    one = advised("reno", 0.001, 6e6)
    assert one.connections == 1
    assert one.sentence.startswith("1 connection equals 6 Mb/s")
    cubic = advised("cubic", 0.001, 50e6)
    assert cubic.one_bps == pytest.approx(cubic_bps(0.07, 0.001))
    assert cubic.connections == math.ceil(50e6 / cubic_bps(0.07, 0.001))
    assert advised("reno", 0.001, 50e6, segment_bytes=8_948).connections == 2


def test_more_connections_than_a_site_has_are_told() -> None:
    far = advised("reno", 0.001, 1e9)
    assert far.connections == 157
    assert far.sentence.endswith("; a site has at most 16: bbr needs fewer")
    assert "1 Gb/s" in far.sentence


def test_without_a_target_the_rate_of_one_is_told() -> None:
    for target_bps in (None, 0.0):
        found = advised("cubic", 0.001, target_bps)
        assert (found.connections, found.target_bps) == (None, None)
        assert "set the site's access rate to get a number" in found.sentence


def test_where_loss_is_no_limit_there_is_no_number() -> None:
    bbr = advised("bbr", 0.001, 50e6)
    assert (bbr.connections, bbr.one_bps) == (None, None)
    assert bbr.sentence.startswith("more connections would bring little: bbr")
    assert advised("bbr2", 0.001, 50e6).sentence == bbr.sentence
    clean = advised("cubic", 0.0, 50e6)
    assert clean.connections is None
    assert clean.sentence == "no segment was lost of late: loss limits no connection"


@pytest.mark.parametrize(
    ("congestion", "round_trip_s", "loss"),
    [(None, 0.07, 0.001), ("htcp", 0.07, 0.001), ("reno", None, 0.001), ("reno", 0.0, 0.001), ("reno", 0.07, None)],
)
def test_what_is_not_measured_gives_no_number(
    congestion: str | None, round_trip_s: float | None, loss: float | None
) -> None:
    assert parallel_connections(congestion, round_trip_s=round_trip_s, loss=loss, target_bps=1e6) is None
