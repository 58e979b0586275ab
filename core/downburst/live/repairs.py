"""The share of repair in the bytes of each leg at present."""

from collections.abc import Iterable

from downburst.domain.events import LegTraffic


class LegRepairs:
    """Follows the reports of traffic; holds only the legs of the last one."""

    def __init__(self) -> None:
        self._bytes: dict[int, tuple[float, float]] = {}
        """By leg, bytes sent and those of them that repaired; old ones weigh less."""

    def seen(self, legs: Iterable[LegTraffic]) -> None:
        """Counts the traffic of the legs in a second."""
        counted = {}
        for leg in legs:
            sent, repaired = self._bytes.get(leg.leg, (0.0, 0.0))
            fading = FADING if leg.egress_bytes else 1.0
            counted[leg.leg] = (sent * fading + leg.egress_bytes, repaired * fading + leg.repair_bytes)
        self._bytes = counted

    def share(self, leg: int) -> float | None:
        """Repair over all bytes of a leg; None before it sent enough to tell."""
        sent, repaired = self._bytes.get(leg, (0.0, 0.0))
        return min(repaired / sent, 1.0) if sent >= TELLING_BYTES else None


FADING = 0.98
"""Per second with traffic: a minute ago weighs a third."""
TELLING_BYTES = 100_000
"""Some seventy packets."""
