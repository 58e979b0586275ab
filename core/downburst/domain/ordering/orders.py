"""Orders of circuits on demand, from the decision to the outcome."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class OrderStep(StrEnum):
    """The progress of an order."""

    WOULD = "would-order"
    """A dry run: the order is only stored."""
    ORDERED = "ordered"
    """Stored, then requested; whether a circuit exists is found by its request id."""
    UP = "up"
    """The circuit is active: probes have passed."""
    RELEASING = "releasing"
    """The feed is back on its routed path, and the circuit is to be cancelled."""
    ENDED = "ended"
    REFUSED = "refused"
    """No circuit was made."""
    FAILED = "failed"
    """The circuit came late, short or not at all, or died."""


OPEN = frozenset({OrderStep.ORDERED, OrderStep.UP, OrderStep.RELEASING})


@dataclass(frozen=True, slots=True)
class OrderUse:
    """The benefit of a circuit."""

    used_share: float
    """Bytes carried over the bytes that its rate allows in the reserved time."""
    products: int
    gained_ms: float | None = None
    """Median latency on the routed path less that on the circuit; the outcome says which medians. None: not known."""


@dataclass(frozen=True, slots=True)
class OrderTimes:
    """The moments of an order, and the window of its circuit."""

    ordered_at: datetime
    until: datetime
    """The end of the window; extended while the feed needs the circuit."""
    up_at: datetime | None = None
    released_at: datetime | None = None
    ended_at: datetime | None = None
    train_at: datetime | None = None
    """The first product of its train, or of the last one of several; None: it was not seen."""


@dataclass(frozen=True, slots=True)
class DemandOrder:
    """One order of the scheduler."""

    number: int
    offer: str
    feed: str
    site: str
    rate_bps: int
    reason: str
    """The reason for the order, in a sentence."""
    times: OrderTimes
    step: OrderStep = OrderStep.ORDERED
    circuit: int | None = None
    outcome: str = ""
    """The result, or the reason for a refusal, in a sentence."""
    use: OrderUse | None = None

    @property
    def request_id(self) -> str:
        """The circuit's request id: the key to it when the answer to the request was lost."""
        return f"on-demand-{self.number}"

    @property
    def setup_s(self) -> float | None:
        """The measured set-up time, in seconds; None if it never was up."""
        up_at = self.times.up_at
        return None if up_at is None else (up_at - self.times.ordered_at).total_seconds()

    def reserved_s(self, now: datetime) -> float:
        """The seconds that its circuit is reserved, up to now."""
        if self.step in (OrderStep.WOULD, OrderStep.REFUSED):
            return 0.0
        return max(((self.times.ended_at or now) - self.times.ordered_at).total_seconds(), 0.0)
