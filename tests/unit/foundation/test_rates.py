"""Rates as people write them."""

import pytest

from downburst.foundation.errors import BadInput
from downburst.foundation.rates import parse_rate_bps, rate_text


@pytest.mark.parametrize(
    ("text", "rate_bps"),
    [
        ("500M", 500_000_000),
        ("1G", 1_000_000_000),
        ("7.8M", 7_800_000),
        ("100 kb/s", 100_000),
        ("2.5Gbit", 2_500_000_000),
    ],
)
def test_a_rate_with_its_unit_is_taken(text: str, rate_bps: int) -> None:
    assert parse_rate_bps(text) == rate_bps


@pytest.mark.parametrize("text", ["500", "112.5mbps", "10MB/s", "1g", "-5M", "", "M", "1e3M"])
def test_a_rate_without_a_clear_unit_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="Ethernet frames"):
        parse_rate_bps(text)


@pytest.mark.parametrize(
    ("rate_bps", "text"),
    [
        (500e6, "500 Mb/s"),
        (1e9, "1 Gb/s"),
        (7.8e6, "7.8 Mb/s"),
        (1_536, "1.536 kb/s"),
        (1_536_700, "1.54 Mb/s"),
        (1_001e6, "1.001 Gb/s"),
        (0, "0 b/s"),
        (12e9, "12 Gb/s"),
    ],
)
def test_rates_are_shown_with_their_unit(rate_bps: float, text: str) -> None:
    assert rate_text(rate_bps) == text
