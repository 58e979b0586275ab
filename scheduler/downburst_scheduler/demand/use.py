"""The use of ordered circuits, from the node's counters, and the outcome of orders in words."""

from dataclasses import dataclass, field
from datetime import datetime

from downburst.domain.events import TrafficSeen
from downburst.domain.ordering import DemandOrder, OrderUse
from downburst.domain.plans import Transport
from downburst.foundation.rates import rate_text


@dataclass(slots=True)
class Carried:
    """Bytes and products of one circuit since it was ordered."""

    out_bytes: int = 0
    products: float = 0.0


@dataclass(slots=True)
class Uses:
    """Circuits that were watched from their order on, by number; an adopted one is not measured."""

    _carried: dict[int, Carried] = field(default_factory=dict)

    def watch(self, circuit: int) -> None:
        """Begins to count."""
        self._carried.setdefault(circuit, Carried())

    def seen(self, event: TrafficSeen, riders: dict[tuple[str, str], int]) -> None:
        """Adds a second of counters; `riders` has the circuit of each feed and site."""
        for use in event.circuits:
            if use.circuit in self._carried:
                self._carried[use.circuit].out_bytes += use.out_bytes
        for leg in event.legs:
            if leg.transport is not Transport.DYNAMIC_CIRCUIT or not leg.products:
                continue
            circuits = [circuit for (feed, _), circuit in riders.items() if feed == leg.feed]
            for circuit in circuits:
                if circuit in self._carried:
                    # A leg counts a copy for each site.
                    self._carried[circuit].products += leg.products / max(leg.sites, 1)

    def ended(self, order: DemandOrder, now: datetime) -> OrderUse | None:
        """The use of an order's circuit; None if it was not watched from its order on."""
        carried = self._carried.get(order.circuit) if order.circuit is not None else None
        if carried is None or order.times.up_at is None:
            return None
        allowed_bytes = order.rate_bps * order.reserved_s(now) / 8
        share = min(carried.out_bytes / allowed_bytes, 1.0) if allowed_bytes else 0.0
        return OrderUse(share, round(carried.products))

    def forget(self, circuit: int | None) -> None:
        """Ends the count."""
        if circuit is not None:
            self._carried.pop(circuit, None)


def outcome(order: DemandOrder, use: OrderUse | None, now: datetime) -> str:
    """The sentence of an order that ended as it should."""
    times, reserved_s = order.times, order.reserved_s(now)
    if times.up_at is None:
        return f"the train was over before the circuit was up; it was reserved for {reserved_s:.3g} s"
    used = (
        f"carried {use.products} products and used {use.used_share:.1%} of {rate_text(order.rate_bps)}"
        if use is not None
        else "its use was not measured, because the scheduler was started again"
    )
    return f"up after {order.setup_s or 0:.3g} s and reserved for {reserved_s:.3g} s; {used}"
