"""Sums of the ledger as counters of this process: from 0 at its start, and never backwards."""

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class SinceStart(Generic[K]):
    """Corrects for sums that began before this process and for removed rows: a counter must show neither."""

    def __init__(self) -> None:
        self._last: Mapping[K, int] = {}
        self._counted: Counter[K] = Counter()

    def begin(self, sums: Mapping[K, int]) -> None:
        """Takes these values as the past."""
        self._last = dict(sums)

    def follow(self, sums: Mapping[K, int]) -> Mapping[K, int]:
        """The increase since the start, by key; removed keys keep their last value."""
        for key, total in sums.items():
            self._counted[key] += max(total - self._last.get(key, 0), 0)
        self._last = dict(sums)
        return self._counted
