"""The rate of one connection on a path, by its congestion control, direct or over relays.

Closed forms from the literature, used as caps and cross-checks: a measured rate is always better. Loss is a share of
packets; rates are bits of payload per second.
"""

import math
from dataclasses import dataclass, replace

from downburst.domain.tcp.rates import CongestionControl, cubic_bps, reno_bps


@dataclass(frozen=True, slots=True)
class PathFacts:
    """The known facts about the path to one site; None means not measured."""

    round_trip_s: float = 0.0
    loss: float = 0.0
    access_bps: float | None = None
    window_bytes: float | None = None
    """The maximum in flight that the receiver's kernel allows."""
    congestion: CongestionControl = CongestionControl.CUBIC
    connections: int = 1
    share: float = 1.0
    """The share of the feed's bytes that the site's patterns match."""
    count: float = 1
    """The number of sites that it represents, all alike."""
    forecast_bps: float | None = None
    """The rate that the connections together hardly exceed, by the path's measured rates."""
    edge: "PathFacts | None" = None
    """The way after a relay, if the session goes over one; the other facts are of the segment before it."""


def connection_bps(path: PathFacts) -> float:
    """The maximum rate of the site's connections together: access, measurements, window and loss each set a limit.

    Over a relay it is that of the slowest segment, less 15 %; a measured rate is of the whole way.
    """
    if path.edge is not None:
        bound_bps = min(connection_bps(segment) for segment in segments_of(path))
        return min(bound_bps * RELAYED_SHARE, path.forecast_bps or math.inf)
    limits = [path.access_bps or math.inf, path.forecast_bps or math.inf]
    if path.round_trip_s > 0:
        if path.window_bytes:
            limits.append(path.connections * path.window_bytes * 8 / path.round_trip_s)
        limits.append(path.connections * _by_loss(path))
    elif path.congestion is CongestionControl.BBR and path.access_bps:
        limits.append(bbr_bps(path.access_bps, path.loss))
    return float(min(limits))


def segments_of(path: PathFacts) -> tuple[PathFacts, ...]:
    """The segments of the way, from the hub to the site."""
    if path.edge is None:
        return (path,)
    core = PathFacts(
        path.round_trip_s, path.loss, path.access_bps, path.window_bytes, path.congestion, path.connections,
        path.share, path.count,
    )  # fmt: skip
    edge = replace(path.edge, connections=path.connections, access_bps=path.access_bps)
    return (core, *segments_of(edge))


def whole(path: PathFacts) -> PathFacts:
    """The way as one path, for packets that no relay repairs: round trips add, shares of passed packets multiply."""
    if path.edge is None:
        return path
    edge = whole(path.edge)
    loss = 1 - (1 - path.loss) * (1 - edge.loss)
    return replace(path, round_trip_s=path.round_trip_s + edge.round_trip_s, loss=loss, edge=None)


def bbr_bps(capacity_bps: float, loss: float) -> float:
    """The capacity less the loss, until loss is so high that BBR takes it for congestion."""
    return capacity_bps * (1 - loss) if loss < BBR_GIVES_WAY else capacity_bps * (1 - BBR_GIVES_WAY) * BBR_AFTER


def _by_loss(path: PathFacts) -> float:
    if path.congestion is CongestionControl.RENO:
        return reno_bps(path.round_trip_s, path.loss)
    if path.congestion is CongestionControl.CUBIC:
        return cubic_bps(path.round_trip_s, path.loss)
    return bbr_bps(path.access_bps, path.loss) if path.access_bps else math.inf


BBR_GIVES_WAY = 0.15
BBR_AFTER = 0.1
"""Beyond 15 % of loss BBR collapses; a tenth represents that."""
RELAYED_SHARE = 0.85
"""Measured on a three-segment path: 762 of 900 Mb/s."""
