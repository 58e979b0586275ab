"""Sums of the ledger as counters of this process: from 0 at its start, and never backwards."""

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class SinceStart(Generic[K]):
    """Sums of the ledger begin before this process, and what is removed leaves them: a counter must show neither."""

    def __init__(self) -> None:
        self._last: Mapping[K, int] = {}
        self._counted: Counter[K] = Counter()

    def begin(self, sums: Mapping[K, int]) -> None:
        """Takes these for what was there before."""
        self._last = dict(sums)

    def follow(self, sums: Mapping[K, int]) -> Mapping[K, int]:
        """What was added since the start, by key; keys that are gone keep what they had."""
        for key, total in sums.items():
            self._counted[key] += max(total - self._last.get(key, 0), 0)
        self._last = dict(sums)
        return self._counted
