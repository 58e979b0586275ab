"""What Prometheus gets to know of circuits: reserved, measured, used, and in which state each is."""

from collections.abc import Iterable, Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from downburst.circuits import Circuit, CircuitState, Direction, Measured
from downburst.live import LiveState


def circuit_metrics(circuits: Sequence[Circuit], measured: Iterable[Measured], live: LiveState) -> Iterator[Metric]:
    """Families of all circuits that have begun; rates are Ethernet-frame bits per second."""
    yield _reserved(circuits)
    yield _measured({circuit.number for circuit in circuits}, measured)
    yield _bytes(circuits, live)
    yield _states(circuits)


def _reserved(circuits: Sequence[Circuit]) -> Metric:
    labels = ("circuit", "direction")
    what = "Reserved for each site, in Ethernet-frame bits"
    family = GaugeMetricFamily("downburst_circuit_reserved_bits_per_second", what, labels=labels)
    for circuit in circuits:
        for direction in Direction:
            family.add_metric([str(circuit.number), direction.value], circuit.rate_bps(direction))
    return family


def _measured(numbers: set[int], measured: Iterable[Measured]) -> Metric:
    labels = ("circuit", "site", "direction")
    what = "Found by the last probes, in Ethernet-frame bits"
    family = GaugeMetricFamily("downburst_circuit_measured_bits_per_second", what, labels=labels)
    for row in measured:
        if row.circuit in numbers:
            family.add_metric([str(row.circuit), row.site, row.direction.value], row.rate_bps)
    return family


def _bytes(circuits: Sequence[Circuit], live: LiveState) -> Metric:
    labels = ("circuit", "site", "direction")
    family = CounterMetricFamily("downburst_circuit_frame_bytes", "Bytes of frames at an end", labels=labels)
    for circuit in circuits:
        for site in (*circuit.sites, None):
            load = live.circuits.get((circuit.number, site))
            if load is not None:
                # All sites of several together have no name.
                family.add_metric([str(circuit.number), site or "", Direction.OUT.value], load.out_bytes)
                family.add_metric([str(circuit.number), site or "", Direction.IN.value], load.in_bytes)
    return family


def _states(circuits: Sequence[Circuit]) -> Metric:
    family = GaugeMetricFamily("downburst_circuit_state", "1 for the state it is in", labels=("circuit", "state"))
    for circuit in circuits:
        for state in CircuitState:
            if state is not CircuitState.REQUESTED:
                family.add_metric([str(circuit.number), state.value], float(circuit.state is state))
    return family
