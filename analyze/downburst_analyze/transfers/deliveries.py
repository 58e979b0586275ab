"""Deliveries of a hub as transfers, like the records of GridFTP: start, duration, bytes, connections, senders."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from downburst.recordings.recording import Transfer
from downburst_analyze.pairs.learning import PairMinute
from downburst_analyze.transfers.conditions import Conditions


@dataclass(frozen=True, slots=True)
class Delivery:
    """One product on its way to one site, from its first byte at the hub to its last byte at the site."""

    feed: str
    site: str
    start_us: int
    duration_s: float
    size_bytes: int
    connections: int | None = None
    """Connections of the site's session."""
    senders: int | None = None
    """Senders that shared the transfer: the stripes of GridFTP."""
    round_trip_ms: float | None = None

    @property
    def transfer(self) -> Transfer:
        """The delivery as a line of a log of transfers; its peer is the site."""
        return Transfer(self.start_us, self.duration_s, self.size_bytes, self.site)


def conditions(deliveries: Sequence[Delivery]) -> Conditions:
    """The conditions of deliveries in their order, without those that are not on record."""
    found: dict[str, list[float | None]] = {
        "connections": [one.connections for one in deliveries],
        "senders": [one.senders for one in deliveries],
        "round trip": [one.round_trip_ms for one in deliveries],
    }
    return {
        name: np.array(values, dtype=np.float64)
        for name, values in found.items()
        if any(value is not None for value in values)
    }


def minutes_of(deliveries: Iterable[Delivery]) -> list[PairMinute]:
    """The bytes of each delivery in the minute of its end, in order of time."""
    found = (
        PairMinute(one.feed, one.site, int(one.start_us / 1e6 + one.duration_s) // 60, one.size_bytes)
        for one in deliveries
    )
    return sorted(found, key=lambda one: one.minute)
