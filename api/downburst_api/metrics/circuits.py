"""Metrics of circuits: reserved, measured and used bandwidth, states; and the use of offers."""

from collections.abc import Iterator, Mapping, Sequence

from downburst.domain.circuits import Circuit, CircuitState, Direction, Measured
from downburst.exposition import Sample, text_of
from downburst.exposition.catalogue import (
    CIRCUIT_BYTES,
    CIRCUIT_MEASURED,
    CIRCUIT_RESERVED,
    CIRCUIT_STATE,
    OFFER_ORDERS,
    OFFER_RESERVED,
    OFFER_SETUP,
)
from downburst_contract.ordering import CircuitOffer

Loads = Mapping[tuple[int, str | None], tuple[int, int]]
"""By circuit and site, None for all sites together: bytes out and in."""


def circuits_text(circuits: Sequence[Circuit], measured: Sequence[Measured], loads: Loads) -> Iterator[str]:
    """The metrics of all circuits that have begun and have not ended."""
    numbers = {circuit.number for circuit in circuits}
    yield text_of(CIRCUIT_RESERVED, _reserved(circuits))
    found = ((str(row.circuit), row.site, row.direction.value) for row in measured if row.circuit in numbers)
    rates = (row.rate_bps / 8 for row in measured if row.circuit in numbers)
    yield text_of(CIRCUIT_MEASURED, zip(found, rates, strict=True))
    yield text_of(CIRCUIT_BYTES, _bytes(circuits, loads))
    yield text_of(CIRCUIT_STATE, _states(circuits))


def offers_text(offers: Sequence[CircuitOffer]) -> Iterator[str]:
    """The metrics of all offers; one without a measured set-up has no time of it."""
    yield text_of(OFFER_ORDERS, (((one.offer,), one.used_today.orders) for one in offers))
    yield text_of(OFFER_RESERVED, (((one.offer,), one.used_today.circuit_hours * 3_600) for one in offers))
    yield text_of(OFFER_SETUP, (((one.offer,), one.measured.median_s) for one in offers if one.measured is not None))


def _reserved(circuits: Sequence[Circuit]) -> Iterator[Sample]:
    for circuit in circuits:
        for direction in Direction:
            yield (str(circuit.number), direction.value), circuit.rate_bps(direction) / 8


def _bytes(circuits: Sequence[Circuit], loads: Loads) -> Iterator[Sample]:
    for circuit in circuits:
        for site in (*circuit.sites, None):
            load = loads.get((circuit.number, site))
            if load is not None:
                # The sum for several sites has no site name.
                yield (str(circuit.number), site or "", Direction.OUT.value), load[0]
                yield (str(circuit.number), site or "", Direction.IN.value), load[1]


def _states(circuits: Sequence[Circuit]) -> Iterator[Sample]:
    for circuit in circuits:
        for state in CircuitState:
            if state is not CircuitState.REQUESTED:
                yield (str(circuit.number), state.value), circuit.shown_state is state
