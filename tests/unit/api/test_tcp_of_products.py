"""The limits of TCP while a product was on its way: of all connections, without the time with nothing to send."""

from datetime import UTC, datetime

import pytest

from downburst.live.traced import LimitShare, TracedConnection, TracedSite, Verdict
from downburst_api.deliveries.tcp import limits_of


def connection(seconds: float, **shares: float) -> TracedConnection:
    """A connection with these shares of the time."""
    listed = tuple(LimitShare(name.replace("_", "-"), share) for name, share in shares.items())
    return TracedConnection("a", "b", "data", (), Verdict(listed[0].limit, "", seconds, listed), ())


def test_connections_count_by_their_time_and_silence_does_not() -> None:
    one = connection(10.0, application=0.9, network_loss=0.1)
    other = connection(4.0, congestion_window=0.5, application=0.25, network_loss=0.25)
    limits = limits_of(TracedSite((), (one, other))).limits
    assert [name for name, _ in limits] == ["network-loss", "congestion-window"]
    assert [share for _, share in limits] == pytest.approx([0.5, 0.5])


def test_what_was_not_recorded_is_no_limit_and_a_node_that_can_not_says_why() -> None:
    idle = TracedConnection("a", "b", "session", ((0, 1),), None, ())
    recorded = (datetime(2026, 1, 31, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC))
    assert limits_of(TracedSite((), (), recorded=recorded)).limits == ()
    assert limits_of(TracedSite((), (idle, connection(5.0, application=1.0)))).limits == ()
    assert limits_of(TracedSite((), (), unable="no sock_diag")).unable == "no sock_diag"
