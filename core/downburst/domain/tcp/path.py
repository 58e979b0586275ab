"""The kernel's facts about the connections to a site."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TcpPath:
    """Facts of the hub's kernel about all connections of a session."""

    least_round_trip_us: int | None
    """The minimum of the last minutes, without time in buffers."""
    sent_segments: int
    """Segments with data, since the connections began; each transmission counts."""
    resent_segments: int
    rate_bps: int
    """The recent rate at which the site took bytes."""
    is_lower_bound: bool
    """There was nothing more to send, so the path may carry more."""
    congestion: str
    """The name of the congestion control."""
    path_mtu_bytes: int | None = None
    """The longest IP packet that passes unfragmented."""
