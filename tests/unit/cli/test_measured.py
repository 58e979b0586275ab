"""Latencies in tables, with the bound of the clocks."""

import pytest

from downburst_app.cli.client import measured


@pytest.mark.parametrize(
    ("value_ms", "bound_ms", "shown"),
    [
        (42.1, 0.8, "42.1 ms ± 0.8"),
        (42.1, 12.34, "42.1 ms ± 12.3"),
        (42.1, 0.02, "42.1 ms ± 0.02"),
        (1_240.0, 310.0, "1.24 s ± 0.3"),
        (12.0, None, "12.0 ms"),
        (1.2, 35.0, "not known (1.2 ms ± 35.0)"),
        (-25.0, 35.0, "-25.0 ms ± 35.0 (clock)"),
        (-25.0, None, "-25.0 ms (clock)"),
        (None, 0.8, "not known"),
    ],
)
def test_a_latency_carries_its_bound_and_its_doubt(
    value_ms: float | None, bound_ms: float | None, shown: str
) -> None:
    assert measured(value_ms, bound_ms) == shown
