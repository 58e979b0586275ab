"""What circuits offer to a feed's sites: the rate that each was measured to carry, or why it may not be used."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from downburst.domain.circuits import Circuit, CircuitState, Direction, Measured, Replication
from downburst_scheduler.models.wire import TUNNEL


@dataclass(frozen=True, slots=True)
class CircuitOffer:
    """A circuit that a feed may use to a site."""

    circuit: int
    rate_bps: int
    """Ethernet-frame bits per second to a site, as measured, without what other feeds take."""
    sites: int = 1
    """How many it joins with the hub: a group can ride on one that joins several."""
    replicated: bool = False
    """Whether the network below makes the copies, so that the hub's port carries the rate once for all."""
    group_bps: int = 0
    """What a group is paced at: the least that was measured to any of its good ends."""

    @property
    def payload_bps(self) -> float:
        """What is left for products of a copy to each site under the headers of Ethernet, the tunnel and TLS."""
        return self.copy_bps * PAYLOAD_SHARE

    @property
    def copy_bps(self) -> float:
        """What a copy to each site has of it: all of them share what the network below replicates."""
        return self.rate_bps / (self.sites if self.replicated else 1)

    @property
    def group_frames_bps(self) -> float:
        """What of it is left for the frames of a group, under the headers of the tunnel."""
        return min(self.group_bps, self.rate_bps) * TUNNEL_SHARE


class CircuitOffers:
    """The best circuit to each site at this moment."""

    def __init__(self, circuits: Iterable[Circuit] = (), measured: Iterable[Measured] = ()) -> None:
        found = {(row.circuit, row.site): row for row in measured if row.direction is Direction.OUT}
        self._offers: dict[str, CircuitOffer] = {}
        self._refusals: dict[str, str] = {}
        for circuit in circuits:
            rows = {site: found.get((circuit.number, site)) for site in circuit.sites}
            good_bps = [row.rate_bps for row in rows.values() if row is not None and row.enough]
            for site, row in rows.items():
                self._take(circuit, site, row, group_bps=min(good_bps, default=0))

    def to(self, site: str) -> CircuitOffer | None:
        """The circuit that may be used to a site."""
        return self._offers.get(site)

    def group_bps(self, circuit: int) -> int:
        """What a group on a circuit is paced at; 0 where none can ride on it."""
        return next((offer.group_bps for offer in self._offers.values() if offer.circuit == circuit), 0)

    def why_not(self, site: str) -> str | None:
        """Why the circuit to a site may not be used, as `<site> ...`; None where there is none, or a good one."""
        return None if site in self._offers else self._refusals.get(site)

    def _take(self, circuit: Circuit, site: str, row: Measured | None, *, group_bps: int) -> None:
        """An end that was measured to carry enough is good whatever becomes of the circuit's other ends."""
        if circuit.state not in _USABLE or row is None or not row.enough:
            self._refusals[site] = f"{site}: circuit {circuit.number} {_why_not(circuit, row)}"
            return
        known = self._offers.get(site)
        if known is None or known.rate_bps < row.rate_bps:
            sites, replicated = len(circuit.sites), circuit.replication is Replication.UNDERLAY
            joins = {"sites": sites, "group_bps": group_bps} if sites > 1 else {}
            self._offers[site] = CircuitOffer(circuit.number, row.rate_bps, replicated=replicated, **joins)


def _why_not(circuit: Circuit, row: Measured | None) -> str:
    reason = (row.sentence if row and circuit.state in _USABLE else "") or circuit.reason
    # What was measured is known a moment before the state that follows from it.
    is_so = "carries too little" if reason and circuit.state is CircuitState.ACTIVE else f"is {circuit.state}"
    return f"{is_so}: {reason}" if reason else is_so


def without(offer: CircuitOffer, used_bps: float) -> CircuitOffer:
    """What other feeds leave of an offer; a tenth always is."""
    left_bps = max(offer.rate_bps - used_bps / PAYLOAD_SHARE, offer.rate_bps * LEAST_LEFT)
    return replace(offer, rate_bps=int(left_bps))


def rates_bps(offers: Mapping[str, CircuitOffer]) -> float:
    """The payload that all of them carry together."""
    return sum(offer.payload_bps for offer in offers.values())


_USABLE = (CircuitState.ACTIVE, CircuitState.DEGRADED)
PAYLOAD_SHARE = 1 / (1 + TUNNEL.share)
"""Of the frames in a circuit's tunnel, the bytes of products."""
TUNNEL_SHARE = 1_414 / 1_464
"""Of a full frame of a tunnel, the frame inside."""
LEAST_LEFT = 0.1
