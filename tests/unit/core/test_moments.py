"""Moments as people write them."""

from datetime import UTC, datetime, timedelta

import pytest

from downburst.errors import BadInput
from downburst.moments import moment

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "ago"),
    [
        ("now", timedelta()),
        ("90s", timedelta(seconds=90)),
        ("1.5h", timedelta(minutes=90)),
        ("2d ago", timedelta(days=2)),
        ("2026-01-31T11:30:00Z", timedelta(minutes=30)),
        ("2026-01-31T12:30:00+01:00", timedelta(minutes=30)),
    ],
)
def test_a_moment_is_read(text: str, ago: timedelta) -> None:
    assert moment(text, NOW) == NOW - ago


@pytest.mark.parametrize("text", ["", "2", "2w", "-2h", "2026-01-31T11:30:00", "noon", "1" * 7 + "h"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="is no moment; write RFC 3339"):
        moment(text, NOW)
