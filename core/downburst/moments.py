"""Moments as people write them: RFC 3339 with an offset, `now`, or so long ago: `90s`, `30m`, `2h`, `1d`."""

import re
from datetime import UTC, datetime, timedelta

from downburst.errors import BadInput


def moment(text: str, now: datetime) -> datetime:
    """The instant that `text` names, seen from `now`; one sentence if it names none."""
    if text == "now":
        return now
    if ago := _AGO.fullmatch(text):
        return now - timedelta(**{_UNITS[ago["unit"]]: float(ago["count"])})
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        instant = None
    if instant is None or instant.tzinfo is None:
        raise BadInput(
            f"{text!r} is no moment; write RFC 3339 with an offset, such as 2026-01-31T06:00:00Z, or how long ago: "
            "90s, 30m, 2h, 1d"
        )
    return instant.astimezone(UTC)


_AGO = re.compile(r"(?P<count>\d{1,6}(\.\d{1,3})?) ?(?P<unit>[smhd])( ago)?")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
