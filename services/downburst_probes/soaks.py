"""Soaks: the variation of their rate, over days of seconds."""

from typing import Protocol

from downburst.domain.probes.results import ProbeSecond, variation


class StoredSeconds(Protocol):
    """The ledger's seconds of probes."""

    def seconds(self, number: int, *, first: int = 0, limit: int = 3_600) -> list[ProbeSecond]:
        """The stored seconds of a probe from one on."""


def whole_variation(stored: StoredSeconds, number: int) -> float | None:
    """The coefficient of variation over all seconds of a probe but the first and the last one, which are parts."""
    found: list[ProbeSecond] = []
    first = 0
    while page := stored.seconds(number, first=first):
        found += page
        first = page[-1].second + 1
    return variation(found[1:-1])
