"""Times of each product at each node, read from the logs: every product counts, and none is estimated."""

import json
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

Micros = NDArray[np.int64]


@dataclass(frozen=True)
class Stamps:
    """The products of one node's logs; hub and sites share a machine and so a clock."""

    feeds: tuple[str, ...]
    fingerprint: str
    """Equal for nodes that hold the same products."""
    damaged: int
    rows: NDArray[np.int64]
    """Feed, the hub's sequence, bytes, created, stored at the hub, stored here; one line per product."""

    @property
    def sequences(self) -> Micros:
        """The hub's numbers."""
        return self.rows[:, 1]

    @property
    def size_bytes(self) -> Micros:
        """Sizes of the products."""
        return self.rows[:, 2]

    @property
    def created_us(self) -> Micros:
        """Times of their creation; for products of a source of load, times at which the hub turned to them."""
        return self.rows[:, 3]

    @property
    def hub_stored_us(self) -> Micros:
        """Times at which the hub had acknowledged them."""
        return self.rows[:, 4]

    @property
    def stored_us(self) -> Micros:
        """Times at which they stood in this node's log."""
        return self.rows[:, 5]

    @property
    def latency_us(self) -> Micros:
        """Distribution latency: from the hub's log to this one."""
        return self.stored_us - self.hub_stored_us

    def between(self, from_us: float, to_us: float = float("inf")) -> Self:
        """Keep the products that the hub stored within these moments."""
        inside = (self.hub_stored_us >= from_us) & (self.hub_stored_us < to_us)
        return replace(self, rows=self.rows[inside])

    def of(self, feed: str) -> Self:
        """Keep the products of a feed."""
        return replace(self, rows=self.rows[self.rows[:, 0] == self.feeds.index(feed)])


def parse(printed: bytes) -> Stamps:
    """Read the output of `downburst-load stamps`."""
    head, _, body = printed.partition(b"\n")
    summary = json.loads(head)
    rows = np.frombuffer(body, dtype="<i8").reshape(summary["rows"], 6)
    return Stamps(tuple(summary["feeds"]), summary["fingerprint"], summary["damaged"], rows.astype(np.int64))


def percentile(figures: NDArray[np.int64] | NDArray[np.float64], percent: float) -> float:
    """The smallest figure that `percent` of all do not exceed."""
    return float(np.percentile(figures, percent, method="inverted_cdf"))


def longest_silence_us(stamps: Stamps) -> float:
    """The longest time in which this node had a product pending and stored none.

    A product is pending from the moment the hub has it until it is stored here. The silence before an arrival begins
    with the arrival before it, or with the oldest product that is pending, whichever is later.
    """
    order = np.argsort(stamps.stored_us, kind="stable")
    stored, hub_stored = stamps.stored_us[order], stamps.hub_stored_us[order]
    oldest_pending = np.minimum.accumulate(hub_stored[::-1])[::-1]
    before = np.concatenate((np.full(1, np.iinfo(np.int64).min), stored[:-1]))
    return float(np.max(stored - np.maximum(before, oldest_pending), initial=0))
