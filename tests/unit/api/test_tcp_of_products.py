"""The limits of TCP while a product was on its way: of all connections, without the time with nothing to send."""

from datetime import UTC, datetime

import pytest

from downburst.deliveries import TcpThen
from downburst.live.traced import LimitShare, TracedConnection, TracedSite, Verdict
from downburst_api.deliveries.tcp import leading


def connection(seconds: float, **shares: float) -> TracedConnection:
    """A connection with these shares of the time."""
    listed = tuple(LimitShare(name.replace("_", "-"), share) for name, share in shares.items())
    return TracedConnection("a", "b", "data", (), Verdict(listed[0].limit, "", seconds, listed), ())


def test_connections_count_by_their_time_and_silence_does_not() -> None:
    one = connection(10.0, application=0.9, network_loss=0.1)
    other = connection(4.0, congestion_window=0.5, application=0.375, network_loss=0.125)
    then = leading(TracedSite((), (one, other)))
    assert then.limit == "congestion-window"
    assert then.share == pytest.approx(2 / 3.5)


def test_what_was_not_recorded_is_no_limit_and_a_node_that_can_not_says_why() -> None:
    idle = TracedConnection("a", "b", "session", ((0, 1),), None, ())
    recorded = (datetime(2026, 1, 31, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC))
    assert leading(TracedSite((), (), recorded=recorded)) == TcpThen()
    assert leading(TracedSite((), (idle, connection(5.0, application=1.0)))) == TcpThen()
    assert leading(TracedSite((), (), unable="no sock_diag")) == TcpThen(unable="no sock_diag")
