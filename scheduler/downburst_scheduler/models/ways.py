"""The rates of a site's ways: the direct one with its data connections, and those over relays in segments.

Rates are bits of payload per second; loss is a share of segments, and times are seconds. A rate without limit is
infinite: it is no gain to replace one infinite rate by another. A rate that can't be told is None.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from downburst.domain.tcp.rates import CongestionControl, cubic_bps, reno_bps
from downburst_scheduler.models.rates import RELAYED_SHARE


@dataclass(frozen=True, slots=True)
class Segment:
    """The part of a way that one TCP connection covers; None means not measured."""

    congestion: CongestionControl = CongestionControl.CUBIC
    """Of the side that sends to the site."""
    round_trip_s: float | None = None
    loss: float | None = None
    assumed_clean: bool = False
    """True if too few segments were sent to tell the loss, and it counts as none."""


@dataclass(frozen=True, slots=True)
class Connections:
    """The data connections of a site."""

    fixed: int | None = None
    """The number that an operator or a TCP profile sets; None: as many as help."""
    most: int = 16


@dataclass(frozen=True, slots=True)
class DirectWay:
    """The way without a relay, as it is or was last measured."""

    segment: Segment
    connections: Connections = Connections()
    line_bps: float | None = None
    """The site's known access rate."""
    measured_bps: float | None = None
    """The rate of the whole session while products waited, by forecasts of measured rates."""
    age_s: float = 0.0
    """The age of these facts: they are not renewed while the site is on a relay."""


@dataclass(frozen=True, slots=True)
class RelayWay:
    """A way over a relay, or over a chain of them."""

    chain: tuple[str, ...]
    """Names of relays, the nearest to the site first."""
    segments: tuple[Segment, ...]
    """From the hub to the site: one more than relays."""
    estimated: bool = False
    """True if the last segment was never used, and is the direct way less the rest."""


@dataclass(frozen=True, slots=True)
class Priced:
    """The predicted rate of a way."""

    rate_bps: float | None
    connections: int = 1


def segment_bps(segment: Segment) -> float | None:
    """The rate of one connection: Mathis for Reno, RFC 9438 for CUBIC; no loss term for BBR."""
    if segment.congestion is CongestionControl.BBR:
        return math.inf
    if segment.round_trip_s is None or segment.loss is None:
        return None
    by_loss = reno_bps if segment.congestion is CongestionControl.RENO else cubic_bps
    return by_loss(segment.round_trip_s, segment.loss)


def way_bps(segments: Sequence[Segment], *, line_bps: float | None = None, connections: int = 1) -> float | None:
    """The slowest segment, within the line, less 15 % (Phoebus: 762 of 900 Mb/s over three segments)."""
    rates = [segment_bps(one) for one in segments]
    told = [rate for rate in rates if rate is not None]
    if not told or len(told) < len(rates):
        return None
    return min(min(told) * connections, line_bps or math.inf) * RELAYED_SHARE


def direct_price(way: DirectWay) -> Priced:
    """The measured rate, or that of the connections that the hub would open by itself."""
    one_bps = segment_bps(way.segment)
    if one_bps is None:
        return Priced(way.measured_bps, 1)
    count = _connections(way, one_bps)
    return Priced(way.measured_bps or shared_line_bps(count * one_bps, way.line_bps), count)


def relay_price(way: RelayWay, direct: DirectWay) -> Priced:
    """The rate over a relay; no more than a limit of the direct way that a relay does not change.

    The connections that the hub would open by itself over a relay are not counted, which keeps the estimate low.
    """
    count = direct.connections.fixed or 1
    limits = [limit for limit in (direct.line_bps, _line_by_rates(direct)) if limit is not None]
    rate_bps = way_bps(way.segments, line_bps=min(limits, default=None), connections=count)
    return Priced(rate_bps, count)


def shared_line_bps(by_loss_bps: float, line_bps: float | None) -> float:
    """The rate of several connections together: their sum by loss, and near the rate of the line less than either.

    Connections that lose by chance while others fill the line leave a part of it free. The smooth minimum of second
    order fits the wire of `make bench-paths`: 47 Mb/s of eight Reno connections with 7 each on a line of 100.
    """
    if line_bps is None or math.isinf(by_loss_bps):
        return min(by_loss_bps, line_bps or math.inf)
    return by_loss_bps * line_bps / math.hypot(by_loss_bps, line_bps)


def beyond(whole: Segment, core: Segment, congestion: CongestionControl) -> Segment:
    """The estimate of a segment that was never used: the whole way less the part before it.

    Round trips subtract, and shares of passed segments divide. A relay off the way has a longer round trip than the
    way; by the triangle inequality the rest is then no shorter than the difference. A core of unmeasured loss counts
    as clean: a trial shows the truth.
    """
    if whole.round_trip_s is None or core.round_trip_s is None or whole.loss is None:
        return Segment(congestion)
    round_trip_s = max(abs(whole.round_trip_s - core.round_trip_s), SHORTEST_S)
    passed = (1 - whole.loss) / max(1 - (core.loss or 0.0), LEAST_PASSED)
    return Segment(congestion, round_trip_s, min(max(1 - passed, 0.0), 1.0))


def automatic_connections(round_trip_s: float, one_bps: float, *, line_bps: float | None, most: int) -> int:
    """The connections that a hub opens by itself for waiting products, as `stream_policy.rs` of the node decides it.

    It opens none on a near path, then 2 to 4, and doubles the number while that raises the rate by an eighth.
    """
    if round_trip_s < FAR_S or math.isinf(one_bps):
        return 1
    limit_bps, count = line_bps or math.inf, 1
    tried = min(max(int(round_trip_s / FAR_S), 2), 4, most)
    while tried > count and min(tried * one_bps, limit_bps) >= min(count * one_bps, limit_bps) * GAIN:
        count, tried = tried, min(tried * 2, most)
    return count


def _connections(way: DirectWay, one_bps: float) -> int:
    if way.connections.fixed is not None:
        return max(way.connections.fixed, 1)
    round_trip_s = way.segment.round_trip_s or 0.0
    return automatic_connections(round_trip_s, one_bps, line_bps=way.line_bps, most=way.connections.most)


def _line_by_rates(way: DirectWay) -> float | None:
    """The measured rate if loss does not explain it: a line or the site is the limit, with a relay as well."""
    one_bps = segment_bps(way.segment)
    if way.measured_bps is None or one_bps is None:
        return None
    explained_bps = shared_line_bps(_connections(way, one_bps) * one_bps, way.line_bps)
    return way.measured_bps if way.measured_bps < explained_bps * EXPLAINED_SHARE else None


FAR_S = 0.01
"""The round trip below which a hub opens no further connection."""
GAIN = 9 / 8
SHORTEST_S = 0.0005
"""A local network."""
LEAST_PASSED = 1e-3
EXPLAINED_SHARE = 0.7
"""Formulas are that accurate: Linux was measured at 1.3 times Mathis."""
