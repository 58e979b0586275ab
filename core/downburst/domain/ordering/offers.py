"""Offers of circuits on demand: ends, rate steps, price, set-up time, smallest hold, and the budget of a day.

An offer is a record of the operator. The scheduler orders point-to-point circuits under it, one for each site.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from downburst.foundation.errors import BadInput
from downburst.foundation.rates import rate_text

LINUX = "linux"
"""The provider of circuits that the hub's own nodes make; any other name is that of a provider's record."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that a day may use, from midnight UTC; None: no limit."""

    circuit_hours: float | None = None
    """Hours that circuits are reserved, summed over circuits."""
    orders: int | None = None


@dataclass(frozen=True, slots=True)
class Offer:
    """Circuits that can be ordered between one port of the hub and ports of sites, or between ports of relays."""

    name: str
    hub_port: str
    """The port towards the hub: its own, or that of a relay. Then the circuits carry the cores of ways."""
    ports: tuple[str, ...]
    """Ports of sites, or of relays if the first one is a relay's; an order joins that one with one of them."""
    rates_bps: tuple[int, ...]
    """The rates that can be ordered, in Ethernet-frame bits per second, ascending."""
    provider: str = LINUX
    price: float | None = None
    """The cost of a reserved bit per second relative to one of egress; None: the setting scheduler.circuit_cost."""
    setup_s: float = 60.0
    """The provider's statement; measured times of the last orders count instead as soon as there are some."""
    least_hold_s: float = 0.0
    """The shortest time for which a circuit is ordered."""
    budget: Budget = Budget()
    created_at: datetime | None = None

    def expected_setup_s(self, measured: "Setups | None") -> float:
        """The set-up time that counts: the measured p90, or the provider's statement before there is one."""
        return self.setup_s if measured is None else measured.p90_s


@dataclass(frozen=True, slots=True)
class Setups:
    """Measured set-up times of an offer: from the order to the end of the probes."""

    count: int
    median_s: float
    p90_s: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Setups | None":
        """Median and p90; None without a measurement."""
        if not seconds:
            return None
        return cls(len(seconds), _quantile(sorted(seconds), 0.5), _quantile(sorted(seconds), 0.9))


def at_sender(port: str, sender: str) -> str:
    """The refusal of orders that would begin at a sender."""
    return (
        f"port {port} is at the sender {sender}, and circuits on demand begin at the hub's own node; reserve the "
        "circuits there"
    )


def checked_offer(offer: Offer) -> Offer:
    """The offer with its rates in order; raises one sentence if a value is impossible."""
    for wrong in (_ends(offer), _rates(offer), _times(offer), _budget(offer)):
        if wrong is not None:
            raise BadInput(f"offer {offer.name}: {wrong}")
    return offer


def _quantile(ascending: Sequence[float], share: float) -> float:
    """Linear between the two values around it."""
    place = share * (len(ascending) - 1)
    below = int(place)
    above = min(below + 1, len(ascending) - 1)
    return ascending[below] + (ascending[above] - ascending[below]) * (place - below)


def _ends(offer: Offer) -> str | None:
    if not 1 <= len(offer.ports) <= PORTS_MOST:
        return f"it names {len(offer.ports)} ports of sites; name 1 to {PORTS_MOST}"
    if len(set(offer.ports)) < len(offer.ports):
        return "a port is named twice; name each once"
    return (
        f"port {offer.hub_port} is named for both ends; name another one" if offer.hub_port in offer.ports else None
    )


def _rates(offer: Offer) -> str | None:
    if not 1 <= len(offer.rates_bps) <= RATES_MOST:
        return f"it has {len(offer.rates_bps)} rates; give 1 to {RATES_MOST}"
    if list(offer.rates_bps) != sorted(set(offer.rates_bps)):
        return "its rates are not in ascending order, each once"
    wrong = [rate for rate in offer.rates_bps if not RATE_LEAST_BPS <= rate <= RATE_MOST_BPS]
    limits = f"{rate_text(RATE_LEAST_BPS)} to {rate_text(RATE_MOST_BPS)}"
    return f"the rate {rate_text(wrong[0])} is not within {limits}" if wrong else None


def _times(offer: Offer) -> str | None:
    if not 0 <= offer.setup_s <= SETUP_MOST_S:
        return f"a set-up of {offer.setup_s:g} s is not within 0 to {SETUP_MOST_S} s"
    if not 0 <= offer.least_hold_s <= HOLD_MOST_S:
        return f"a smallest hold of {offer.least_hold_s:g} s is not within 0 to {HOLD_MOST_S} s"
    if offer.price is not None and not 0 <= offer.price <= PRICE_MOST:
        return f"a price of {offer.price:g} is not within 0 to {PRICE_MOST}"
    return None


def _budget(offer: Offer) -> str | None:
    hours, orders = offer.budget.circuit_hours, offer.budget.orders
    if hours is not None and not 0 <= hours <= HOURS_MOST:
        return f"a budget of {hours:g} circuit-hours a day is not within 0 to {HOURS_MOST}"
    if orders is not None and not 0 <= orders <= ORDERS_MOST:
        return f"a budget of {orders} orders a day is not within 0 to {ORDERS_MOST}"
    return None


PORTS_MOST, RATES_MOST = 1_000, 32
RATE_LEAST_BPS, RATE_MOST_BPS = 1_000_000, 1_000_000_000_000
SETUP_MOST_S, HOLD_MOST_S = 86_400, 86_400
PRICE_MOST = 1_000
HOURS_MOST, ORDERS_MOST = 24_000, 100_000
