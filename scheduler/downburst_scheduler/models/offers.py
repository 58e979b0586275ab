"""Offers of circuits to a feed's sites: the measured rate of each, or the reason not to use it."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from downburst.domain.circuits import Circuit, CircuitState, Direction, Measured, Replication
from downburst.domain.relays import Core, FanOut
from downburst_scheduler.models.wire import TUNNEL


@dataclass(frozen=True, slots=True)
class CircuitOffer:
    """A circuit that a feed may use to a site."""

    circuit: int
    rate_bps: int
    """Ethernet-frame bits per second to a site, as measured, without the use by other feeds."""
    sites: int = 1
    """The number of sites that it joins with the hub: a group can use one that joins several."""
    replicated: bool = False
    """True if the underlying network makes the copies, so that the hub's port carries the rate once for all."""
    group_bps: int = 0
    """The pace of a group: the lowest rate measured to any of its good ends."""

    @property
    def payload_bps(self) -> float:
        """The rate for products of a copy to each site, without the headers of Ethernet, the tunnel and TLS."""
        return self.copy_bps * PAYLOAD_SHARE

    @property
    def copy_bps(self) -> float:
        """The rate of a copy to each site: all of them share a circuit replicated by the underlying network."""
        return self.rate_bps / (self.sites if self.replicated else 1)

    @property
    def group_frames_bps(self) -> float:
        """The rate for the frames of a group, without the headers of the tunnel."""
        return min(self.group_bps, self.rate_bps) * TUNNEL_SHARE


@dataclass(frozen=True, slots=True)
class RelayOffer:
    """A relay with a session that may hand out one copy of a feed to the sites behind it."""

    relay: str
    fan_out: FanOut = FanOut.GROUP
    core_bps: float | None = None
    """The rate between hub and relay that its loss allows; None: no limit is known."""


@dataclass(frozen=True, slots=True)
class Rest:
    """The rest of a day's budget of an offer."""

    circuit_s: float
    """Seconds of circuits that may still be reserved, over all circuits."""
    day_s: float
    """Seconds to the end of the day."""


@dataclass(frozen=True, slots=True)
class DemandOffer:
    """A circuit to a site that can be ordered for a train of products and given back after it."""

    offer: str
    rates_bps: tuple[int, ...]
    """In frames, ascending."""
    price: float
    """The cost of a reserved bit per second while it is reserved, relative to one of egress."""
    setup_s: float
    """The p90 of the last orders, or the provider's statement before there are some."""
    least_hold_s: float = 0.0
    orders: int = 0
    """The number of measured set-ups; 0: the provider's statement counts."""
    spent: str | None = None
    """The reason why nothing can be ordered at this moment, such as a spent budget; None: orders are possible."""
    core: Core | None = None
    """The segment of the site's way that the circuit carries; None: the circuit goes to the site itself."""
    beside_bps: float = math.inf
    """The payload rate of the slowest other segment of that way."""
    rest: Rest | None = None
    """The rest of the day's budget of circuit-hours; None: no limit."""


class CircuitOffers:
    """The best circuit to each site at this moment."""

    def __init__(self, circuits: Iterable[Circuit] = (), measured: Iterable[Measured] = ()) -> None:
        found = {(row.circuit, row.site): row for row in measured if row.direction is Direction.OUT}
        self._offers: dict[str, CircuitOffer] = {}
        self._refusals: dict[str, str] = {}
        for circuit in circuits:
            rows = {site: found.get((circuit.number, site)) for site in circuit.served_sites}
            good_bps = [row.rate_bps for row in rows.values() if row is not None and row.enough]
            for site, row in rows.items():
                self._take(circuit, site, row, group_bps=min(good_bps, default=0))

    def to(self, site: str) -> CircuitOffer | None:
        """The circuit that may be used to a site."""
        return self._offers.get(site)

    def group_bps(self, circuit: int) -> int:
        """The pace of a group on a circuit; 0 if none can use it."""
        return next((offer.group_bps for offer in self._offers.values() if offer.circuit == circuit), 0)

    def why_not(self, site: str) -> str | None:
        """The reason not to use the circuit to a site, as `<site> ...`; None if there is none, or a good one."""
        return None if site in self._offers else self._refusals.get(site)

    def _take(self, circuit: Circuit, site: str, row: Measured | None, *, group_bps: int) -> None:
        """An end with enough measured capacity is good, irrespective of the circuit's other ends."""
        if circuit.usable_state not in _USABLE or row is None or not row.enough:
            self._refusals[site] = f"{site}: circuit {circuit.number} {_why_not(circuit, row)}"
            return
        known = self._offers.get(site)
        if known is None or known.rate_bps < row.rate_bps:
            sites, replicated = len(circuit.served_sites), circuit.carriage.replication is Replication.UNDERLAY
            joins = {"sites": sites, "group_bps": group_bps} if sites > 1 else {}
            self._offers[site] = CircuitOffer(circuit.number, row.rate_bps, replicated=replicated, **joins)


def _why_not(circuit: Circuit, row: Measured | None) -> str:
    state = circuit.usable_state
    reason = (row.sentence if row and state in _USABLE else "") or circuit.usable_reason
    # A measurement is known a moment before the state that follows from it.
    is_so = "carries too little" if reason and state is CircuitState.ACTIVE else f"is {state}"
    return f"{is_so}: {reason}" if reason else is_so


def without(offer: CircuitOffer, used_bps: float) -> CircuitOffer:
    """The rest of an offer beside other feeds; at least a tenth."""
    left_bps = max(offer.rate_bps - used_bps / PAYLOAD_SHARE, offer.rate_bps * LEAST_LEFT)
    return replace(offer, rate_bps=int(left_bps))


def rates_bps(offers: Mapping[str, CircuitOffer]) -> float:
    """The sum of their payload rates."""
    return sum(offer.payload_bps for offer in offers.values())


_USABLE = (CircuitState.ACTIVE, CircuitState.DEGRADED)
PAYLOAD_SHARE = 1 / (1 + TUNNEL.share)
"""The share of product bytes in the frames of a circuit's tunnel."""
TUNNEL_SHARE = 1_414 / 1_464
"""The share of the inner frame in a full frame of a tunnel."""
LEAST_LEFT = 0.1
