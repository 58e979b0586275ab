"""What circuits offer to a feed's sites: the rate that each was measured to carry, or why it may not be used."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from downburst.circuits import Circuit, CircuitState, Direction, Measured
from downburst_scheduler.models.wire import TUNNEL


@dataclass(frozen=True, slots=True)
class CircuitOffer:
    """A circuit that a feed may use to a site."""

    circuit: int
    rate_bps: int
    """Ethernet-frame bits per second, as measured."""

    @property
    def payload_bps(self) -> float:
        """What of it is left for products under the headers of Ethernet, the tunnel, IP, TCP and TLS."""
        return self.rate_bps * PAYLOAD_SHARE


class CircuitOffers:
    """The best circuit to each site at this moment."""

    def __init__(self, circuits: Iterable[Circuit] = (), measured: Iterable[Measured] = ()) -> None:
        found = {(row.circuit, row.site): row for row in measured if row.direction is Direction.OUT}
        self._offers: dict[str, CircuitOffer] = {}
        self._refusals: dict[str, str] = {}
        for circuit in circuits:
            for site in circuit.sites:
                self._take(circuit, site, found.get((circuit.number, site)))

    def to(self, site: str) -> CircuitOffer | None:
        """The circuit that may be used to a site."""
        return self._offers.get(site)

    def why_not(self, site: str) -> str | None:
        """Why the circuit to a site may not be used, as `<site> ...`; None where there is none, or a good one."""
        return None if site in self._offers else self._refusals.get(site)

    def _take(self, circuit: Circuit, site: str, row: Measured | None) -> None:
        """An end that was measured to carry enough is good whatever becomes of the circuit's other ends."""
        if circuit.state not in _USABLE or row is None or not row.enough:
            self._refusals[site] = f"{site}: circuit {circuit.number} {_why_not(circuit, row)}"
            return
        known = self._offers.get(site)
        if known is None or known.rate_bps < row.rate_bps:
            self._offers[site] = CircuitOffer(circuit.number, row.rate_bps)


def _why_not(circuit: Circuit, row: Measured | None) -> str:
    reason = (row.sentence if row and circuit.state in _USABLE else "") or circuit.reason
    # What was measured is known a moment before the state that follows from it.
    is_so = "carries too little" if reason and circuit.state is CircuitState.ACTIVE else f"is {circuit.state}"
    return f"{is_so}: {reason}" if reason else is_so


def without(offer: CircuitOffer, used_bps: float) -> CircuitOffer:
    """What other feeds leave of an offer; a tenth always is."""
    left_bps = max(offer.rate_bps - used_bps / PAYLOAD_SHARE, offer.rate_bps * LEAST_LEFT)
    return CircuitOffer(offer.circuit, int(left_bps))


def rates_bps(offers: Mapping[str, CircuitOffer]) -> float:
    """The payload that all of them carry together."""
    return sum(offer.payload_bps for offer in offers.values())


_USABLE = (CircuitState.ACTIVE, CircuitState.DEGRADED)
PAYLOAD_SHARE = 1 / (1 + TUNNEL.share)
"""Of the frames in a circuit's tunnel, the bytes of products."""
LEAST_LEFT = 0.1
