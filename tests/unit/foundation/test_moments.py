"""Moments as people write them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from downburst.foundation.errors import BadInput
from downburst.foundation.moments import coming_moment, duration_s, moment

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
    with pytest.raises(BadInput, match="is not a time; write RFC 3339"):
        moment(text, NOW)


def test_what_lies_ahead_is_written_with_a_plus() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert coming_moment("+90m", now) == now + timedelta(minutes=90)
    assert coming_moment("2026-02-01T00:00:00+01:00", now) == datetime(2026, 1, 31, 23, tzinfo=UTC)
    with pytest.raises(BadInput, match=r"write \+2h"):
        coming_moment("2h", now)


@pytest.mark.parametrize(("read", "text"), [(moment, "999999d"), (coming_moment, "+-1h"), (coming_moment, "+1y")])
def test_moments_outside_the_calendar_are_refused(read: Any, text: str) -> None:
    with pytest.raises(BadInput):
        read(text, NOW)


@pytest.mark.parametrize(
    ("text", "seconds"), [("250ms", 0.25), ("5s", 5.0), ("5 s", 5.0), ("1.5m", 90.0), ("2h", 7_200.0)]
)
def test_a_duration_has_a_unit(text: str, seconds: float) -> None:
    assert duration_s(text) == seconds


@pytest.mark.parametrize("text", ["5", "soon", "-5s", "5 S", "1d", "", "9" * 30 + "s"])
def test_other_text_is_no_duration(text: str) -> None:
    with pytest.raises(BadInput, match="is not a duration"):
        duration_s(text)
