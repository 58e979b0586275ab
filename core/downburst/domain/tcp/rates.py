"""The rate of one connection on a path by its round trip and loss, and the number of connections for a rate.

Closed forms from the literature; a measured rate is always better. Loss is a share of packets; rates are bits of
payload per second.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class CongestionControl(StrEnum):
    """The reaction of the sender's kernel to loss."""

    RENO = "reno"
    CUBIC = "cubic"
    BBR = "bbr"


def reno_bps(round_trip_s: float, loss: float, *, segment_bytes: float = 1448.0) -> float:
    """Mathis: the root of 3/2 segments per round trip over the root of the loss; measured Linux was 1.3 times faster.

    Mathis, Semke, Mahdavi, Ott: The macroscopic behavior of the TCP congestion avoidance algorithm, 1997, equation 3.
    """
    if loss <= 0 or round_trip_s <= 0:
        return math.inf
    return math.sqrt(3 / 2) * segment_bytes * 8 / (round_trip_s * math.sqrt(loss))


def cubic_bps(round_trip_s: float, loss: float, *, segment_bytes: float = 1448.0) -> float:
    """RFC 9438: a mean window of 1.054 (RTT / loss) to the power 3/4 segments, and never less than Reno."""
    if loss <= 0 or round_trip_s <= 0:
        return math.inf
    window_segments = 1.054 * math.pow(round_trip_s / loss, 0.75)
    reno = reno_bps(round_trip_s, loss, segment_bytes=segment_bytes)
    return max(window_segments * segment_bytes * 8 / round_trip_s, reno)


@dataclass(frozen=True, slots=True)
class ParallelConnections:
    """The connections that loss leaves room for on a path; None: not known, or of no use."""

    sentence: str
    connections: int | None = None
    """The number that together reaches the target."""
    one_bps: float | None = None
    """The rate of one connection."""
    target_bps: float | None = None


def parallel_connections(
    congestion: str | None,
    *,
    round_trip_s: float | None,
    loss: float | None,
    target_bps: float | None,
    segment_bytes: float = 1448.0,
) -> ParallelConnections | None:
    """The number of connections that equal a rate on this path; None while round trip or loss are unknown.

    None as well for a congestion control without a formula here.

    The rate of one is that of Mathis, for cubic the larger of Mathis and RFC 9438; loss of one path is not
    changed by the number of connections, so their rates add up.
    """
    if congestion is None or round_trip_s is None or loss is None or round_trip_s <= 0:
        return None
    if congestion.startswith(CongestionControl.BBR):
        text = "more connections would bring little: bbr does not slow down at every loss"
        return ParallelConnections(text, target_bps=target_bps)
    if congestion not in _BY_LOSS:
        return None
    if loss <= 0:
        return ParallelConnections("no segment was lost of late: loss limits no connection", target_bps=target_bps)
    one_bps = _BY_LOSS[congestion](round_trip_s, loss, segment_bytes=segment_bytes)
    at = f"at {round_trip_s * 1e3:.3g} ms and {loss * 100:.2g} % loss"
    if target_bps is None or target_bps <= 0:
        text = f"1 connection reaches {_megabits(one_bps)} {at}; set the site's access rate to get a number"
        return ParallelConnections(text, one_bps=one_bps)
    number = max(math.ceil(target_bps / one_bps), 1)
    noun = "1 connection equals" if number == 1 else f"{number:,} connections equal"
    beyond = "" if number <= MOST_CONNECTIONS else f"; a site has at most {MOST_CONNECTIONS}: bbr needs fewer"
    text = f"{noun} {_megabits(target_bps)}: each reaches {_megabits(one_bps)} {at}{beyond}"
    return ParallelConnections(text, number, one_bps, target_bps)


def _megabits(rate_bps: float) -> str:
    return f"{rate_bps / 1e6:,.3g} Mb/s" if rate_bps < 1e9 else f"{rate_bps / 1e9:,.3g} Gb/s"


_BY_LOSS: Mapping[str, Callable[..., float]] = {CongestionControl.RENO: reno_bps, CongestionControl.CUBIC: cubic_bps}
MOST_CONNECTIONS = 16
"""The most data connections of a site."""
