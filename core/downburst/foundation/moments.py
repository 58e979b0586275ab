"""Moments in user input: RFC 3339 with an offset, `now`, or a time ago: `90s`, `30m`, `2h`, `1d`; and durations."""

import re
from datetime import UTC, datetime, timedelta

from downburst.foundation.errors import BadInput


def moment(text: str, now: datetime) -> datetime:
    """The instant that `text` names, relative to `now`; raises `BadInput` if it names none."""
    if text == "now":
        return now
    if ago := _AGO.fullmatch(text):
        return _moved(now, ago, -1)
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        instant = None
    if instant is None or instant.tzinfo is None:
        raise BadInput(
            f"{text!r} is not a time; write RFC 3339 with an offset, such as 2026-01-31T06:00:00Z, or how long ago: "
            "90s, 30m, 2h, 1d"
        )
    return instant.astimezone(UTC)


def coming_moment(text: str, now: datetime) -> datetime:
    """Like `moment`, for times that may be in the future: `+90s`, `+2h` is that long after `now`."""
    if later := _LATER.fullmatch(text):
        return _moved(now, later, 1)
    if _AGO.fullmatch(text):
        raise BadInput(
            f"{text!r} is a time in the past; write +{text} for a time from now, or RFC 3339 with an offset"
        )
    try:
        return moment(text, now)
    except BadInput:
        raise BadInput(
            f"{text!r} is not a time; write RFC 3339 with an offset, such as 2026-01-31T06:00:00Z, or how far "
            "ahead: +90s, +30m, +2h, +1d"
        ) from None


def duration_s(text: str) -> float:
    """Seconds of `250ms`, `5s`, `1.5 m`, `2h`; refuses a bare number."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise BadInput(f"{text!r} is not a duration; write a number with ms, s, m or h, such as 250ms or 5s")
    return float(found["count"]) * _SECONDS[found["unit"]]


def _moved(now: datetime, found: re.Match[str], sign: int) -> datetime:
    try:
        return now + sign * timedelta(**{_UNITS[found["unit"]]: float(found["count"])})
    except OverflowError:
        raise BadInput(f"{found[0]!r} is outside the calendar; give fewer days") from None


_AGO = re.compile(r"(?P<count>\d{1,6}(\.\d{1,3})?) ?(?P<unit>[smhd])( ago)?")
_LATER = re.compile(r"\+(?P<count>\d{1,6}(\.\d{1,3})?) ?(?P<unit>[smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_DURATION = re.compile(r"(?P<count>\d{1,6}(\.\d{1,3})?) ?(?P<unit>ms|[smh])")
_SECONDS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3_600.0}
