"""Pauses between orders of one feed and site: after a refusal or a failure the next order waits, longer each time.

The stored orders are the memory of refusals and failures, so a scheduler that starts again waits as well. The rest is
about steps of the open order; a restart loses it, which costs one repeated step.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from downburst.domain.ordering import OPEN, DemandOrder, OrderStep


@dataclass(slots=True)
class Pause:
    """The memory of one pair between steps."""

    failures: int = 0
    order_after: datetime | None = None
    send_after: datetime | None = None
    extend_after: datetime | None = None
    left_at: datetime | None = None
    """The plan that took the feed off its circuit, until the node works by it."""
    would_for_s: float | None = None
    """The train of the last order of a dry run."""

    def failed(self, at: datetime, drawn: random.Random) -> None:
        """The next order waits, twice as long after each failure, and not at the same moment as others."""
        wait_s = min(BACK_OFF_S * 2**self.failures, BACK_OFF_MOST_S) * drawn.uniform(0.5, 1.0)
        self.failures = min(self.failures + 1, FAILURES_COUNTED)
        self.order_after = at + timedelta(seconds=wait_s)

    def ended(self) -> None:
        """An order ended as it should."""
        self.failures, self.order_after = 0, None


def resumed(orders: Iterable[DemandOrder], drawn: random.Random) -> dict[tuple[str, str], Pause]:
    """The pauses that follow from stored orders, by feed and site; those of pairs without a failure are left out."""
    pauses: dict[tuple[str, str], Pause] = {}
    for order in sorted(orders, key=lambda one: one.number):
        pause = pauses.setdefault((order.feed, order.site), Pause())
        if order.step in (OrderStep.REFUSED, OrderStep.FAILED):
            pause.failed(order.times.ended_at or order.times.ordered_at, drawn)
        elif order.step not in OPEN and order.step is not OrderStep.WOULD:
            pause.ended()
    return {pair: pause for pair, pause in pauses.items() if pause.failures}


BACK_OFF_S, BACK_OFF_MOST_S, FAILURES_COUNTED = 5.0, 600.0, 16
