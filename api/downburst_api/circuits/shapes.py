"""Circuits in answers: reserved, measured and used bandwidth."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from downburst.domain.circuits import Circuit, Measured
from downburst.live.state import LiveState
from downburst_contract.circuits import LAYER


def circuit_out(circuit: Circuit, measured: Sequence[Measured], live: LiveState) -> dict[str, Any]:
    """A circuit for clients: its reserved bandwidth, its measured capacity, its use."""
    values = circuit.flat()
    del values["asked_sha256"]
    rows = [row for row in measured if row.circuit == circuit.number]
    return {
        "circuit": values.pop("number"),
        **values,
        "state": circuit.shown_state,
        "reason": circuit.shown_reason,
        "probed_state": circuit.state,
        "shape": circuit.shape,
        "sites": list(circuit.sites),
        "layer": LAYER,
        "measured_out_bps": min((row.rate_bps for row in rows if row.direction == "out"), default=None),
        "measured_in_bps": min((row.rate_bps for row in rows if row.direction == "in"), default=None),
        "measured_at": max((row.at for row in rows), default=None),
        "used_out_bps": _used(circuit, live, "out_bps"),
        "used_in_bps": _used(circuit, live, "in_bps"),
        "measurements": [_measured_out(row) for row in rows],
    }


def _measured_out(row: Measured) -> dict[str, Any]:
    values = asdict(row)
    del values["circuit"]
    return {**values, "enough": row.enough}


def _used(circuit: Circuit, live: LiveState, name: str) -> float:
    """The use by the busiest site, as the reservation is per site. From a sum for all sites, the even share."""
    loads = (live.circuits.get((circuit.number, site)) for site in circuit.sites)
    all_of_it = live.circuits.get((circuit.number, None))
    share = float(getattr(all_of_it, name)) / len(circuit.sites) if all_of_it else 0.0
    return max((float(getattr(load, name)) for load in loads if load is not None), default=share)
