"""Closed forms that the rows need beside the scheduler's models, each with its source."""

import math


def servers_to_match(unicast_s: float, multicast_s: float) -> int:
    """The number of servers, each with a part of the receivers, that make unicast as fast as a group."""
    return math.ceil(unicast_s / multicast_s - 1e-9)


def bandwidth_delay_bytes(rate_bps: float, round_trip_s: float) -> float:
    """The bytes in flight on a full path."""
    return rate_bps * round_trip_s / 8


def paced_bps(packet_bytes: float, spacing_s: float) -> float:
    """The rate of packets at even distances."""
    return packet_bytes * 8 / spacing_s


def catch_up_s(backlog_bytes: float, fast_bps: float, paced: float) -> float:
    """The duration of a burst at `fast_bps`, above the pace, until a backlog is gone."""
    return backlog_bytes * 8 / (fast_bps - paced) if fast_bps > paced else math.inf


def aimd_rate(increase: float, decrease: float) -> float:
    """The rate of additive increase, multiplicative decrease, in segments a round trip at a loss of 1.

    Floyd, Handley, Padhye: A comparison of equation-based and AIMD congestion control, 2000.
    """
    return math.sqrt(increase * (2 - decrease) / (2 * decrease))


def transfers_of_peers(receivers: int) -> float:
    """Bytes that cross the links of all hosts over those of the product, where each receiver takes each byte once.

    A fresh product leaves its origin once, in parts; the receivers give each part to all others. One transfer by
    multicast is one copy.
    """
    return float(receivers)
