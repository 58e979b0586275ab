"""The injected clock: wall time for stamps, monotonic time for durations; with a fake for tests."""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """The hub's source of time."""

    def now(self) -> datetime:
        """Wall clock, aware, in UTC."""

    def monotonic_s(self) -> float:
        """Seconds that never go backwards; only differences are meaningful."""


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """Wall clock, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic_s(self) -> float:
        """Seconds since an arbitrary moment before the start of this process."""
        return time.monotonic()


class FakeClock:
    """A clock that only moves when advanced."""

    def __init__(self, start: datetime | None = None) -> None:
        self._start = start or datetime(2026, 1, 1, tzinfo=UTC)
        self._elapsed = timedelta()

    def now(self) -> datetime:
        """The start plus everything advanced."""
        return self._start + self._elapsed

    def monotonic_s(self) -> float:
        """Seconds advanced since the start."""
        return self._elapsed.total_seconds()

    def advance(self, seconds: float) -> None:
        """Advances both times by `seconds`."""
        self._elapsed += timedelta(seconds=seconds)


def to_us(instant: datetime) -> int:
    """Microseconds since 1970 of an aware instant, exactly."""
    return (instant - _UNIX_ZERO) // timedelta(microseconds=1)


def from_us(microseconds: int) -> datetime:
    """The instant so many microseconds after 1970."""
    return _UNIX_ZERO + timedelta(microseconds=microseconds)


_UNIX_ZERO = datetime(1970, 1, 1, tzinfo=UTC)
