"""How far a latency can be trusted."""

import pytest

from downburst.domain.latency import Certainty, certainty_of


@pytest.mark.parametrize(
    ("value_ms", "bound_ms", "certainty"),
    [
        (42.1, 0.8, Certainty.KNOWN),
        (40.0, 20.0, Certainty.KNOWN),
        (40.0, 20.1, Certainty.NOT_KNOWN),
        (0.0, 0.1, Certainty.NOT_KNOWN),
        (0.0, None, Certainty.KNOWN),
        (12.0, None, Certainty.KNOWN),
        (-0.1, 5.0, Certainty.CLOCK),
        (-3.0, None, Certainty.CLOCK),
        (None, 5.0, None),
    ],
)
def test_a_value_is_known_if_its_bound_is_at_most_half_of_it(
    value_ms: float | None, bound_ms: float | None, certainty: Certainty | None
) -> None:
    assert certainty_of(value_ms, bound_ms) is certainty
