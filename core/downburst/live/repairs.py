"""The share of repair in the bytes of multicast legs at present."""

from collections.abc import Iterable
from dataclasses import dataclass

from downburst.domain.events import LegTraffic
from downburst.domain.plans import Transport


@dataclass(slots=True)
class Repairs:
    """Repair of one multicast leg, or of several; old counts fade."""

    telling_bytes: float
    """Below these no share is known."""
    sent_bytes: float = 0.0
    product_bytes: float = 0.0
    repair_bytes: float = 0.0
    settles_s: int = 0
    """Seconds with traffic that do not count yet: they repair the losses of before."""

    def add(self, *traffic: LegTraffic) -> None:
        """Counts the traffic of its legs in a second; one without products and repair changes nothing."""
        legs = [leg for leg in traffic if leg.transport is Transport.MULTICAST]
        if not any(leg.product_bytes or leg.repair_bytes for leg in legs):
            return
        if self.settles_s > 0:
            self.settles_s -= 1
            return
        self.sent_bytes = self.sent_bytes * FADING + sum(leg.egress_bytes for leg in legs)
        self.product_bytes = self.product_bytes * FADING + sum(leg.product_bytes for leg in legs)
        self.repair_bytes = self.repair_bytes * FADING + sum(leg.repair_bytes for leg in legs)

    def forget(self) -> None:
        """Begins again: what is repaired for other sites, or at another rate, is no guide."""
        self.sent_bytes = self.product_bytes = self.repair_bytes = 0.0
        self.settles_s = SETTLES_S

    @property
    def of_sent(self) -> float | None:
        """Repair over all bytes sent; None before there were enough to tell."""
        return self._over(self.sent_bytes)

    @property
    def of_products(self) -> float | None:
        """Repair over the bytes of products; None before there were enough to tell."""
        return self._over(self.product_bytes)

    def _over(self, whole_bytes: float) -> float | None:
        return min(self.repair_bytes / whole_bytes, 1.0) if whole_bytes >= self.telling_bytes else None


class LegRepairs:
    """Follows the reports of traffic; holds only the legs of the last one."""

    def __init__(self) -> None:
        self._of: dict[int, Repairs] = {}

    def seen(self, legs: Iterable[LegTraffic]) -> None:
        """Counts the traffic of the legs in a second."""
        counted = {}
        for leg in legs:
            counted[leg.leg] = self._of.get(leg.leg) or Repairs(TELLING_BYTES)
            counted[leg.leg].add(leg)
        self._of = counted

    def share(self, leg: int) -> float | None:
        """Repair over all bytes of a leg; None before it sent enough to tell."""
        return self._of[leg].of_sent if leg in self._of else None


FADING = 0.99
"""Per second with traffic: 110 s ago weighs a third."""
SETTLES_S = 10
"""Of a group at ten times the rate of a line, nine tenths are repaired: that takes the line nine times as long."""
TELLING_BYTES = 100_000
"""Some seventy packets."""
