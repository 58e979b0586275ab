"""Circuits at the desk: the claims of one, and the path that it asks for."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from downburst.domain.circuits import Circuit, CircuitDriver, CircuitHop, CircuitShape, PathOrder, Port
from downburst.foundation.errors import BadInput
from downburst_circuits.calendar import Reservation
from downburst_circuits.desk.booking import Booked, Wanted, with_hosts
from downburst_circuits.desk.network import Network
from downburst_circuits.desk.paths import Path, Wish
from downburst_circuits.desk.trees import link_claims
from downburst_circuits.requests import claims_of, reservation_of, with_tags


def placed(circuit: Circuit, ports: Mapping[str, Port], network: Network) -> Reservation:
    """The whole reservation of a circuit that has its path: ports, hosts and links."""
    bare = reservation_of(circuit, ports)
    return replace(bare, claims=(*with_hosts(bare.claims, network), *link_claims(circuit)))


def covering(one: Reservation, other: Reservation) -> Reservation:
    """The least reservation that has room for either of two of the same circuit, on the same path."""
    claims = (
        replace(first, out_bps=max(first.out_bps, second.out_bps), in_bps=max(first.in_bps, second.in_bps))
        for first, second in zip(one.claims, other.claims, strict=True)
    )
    begin_us, end_us = min(one.begin_us, other.begin_us), max(one.end_us, other.end_us)
    return Reservation(one.number, begin_us, end_us, tuple(claims))


def wanted_of(circuit: Circuit, ports: Mapping[str, Port], network: Network) -> Wanted:
    """The request of a circuit that has no path yet."""
    claims = claims_of(circuit, ports)
    return Wanted(circuit.number, claims, circuit.rate_out_bps, circuit.rate_in_bps, wish_of(circuit, network))


def wish_of(circuit: Circuit, network: Network) -> Wish | None:
    """The path to look for; None if the topology doesn't reach the ports, or somebody else chooses the path.

    A multipoint circuit has several; `trees` looks for them.
    """
    hub, *others = (end.port for end in circuit.ends)
    chosen_elsewhere = circuit.carriage.driver is CircuitDriver.NSI or circuit.shape is CircuitShape.MULTIPOINT
    if chosen_elsewhere or not (network.has(hub) and network.has(others[0])):
        return None
    asked = circuit.request
    return Wish(hub, others[0], asked.path_order, frozenset(asked.include), frozenset(asked.exclude))


def check_wish(circuit: Circuit, network: Network) -> None:
    """Refuses elements that the topology does not have, and a choice of a path where none is looked for."""
    asked = circuit.request
    check_elements({*asked.include, *asked.exclude}, network)
    both = sorted({*asked.include} & {*asked.exclude})
    if both:
        raise BadInput(f"{both[0]} is both included and excluded; name it once")
    is_choosy = asked.include or asked.exclude or asked.path_order is not PathOrder.SHORTEST
    if is_choosy and wish_of(circuit, network) is None:
        raise BadInput(
            "the hub chooses no path for this circuit: it has several sites, a provider's path, or ports without "
            "links in the topology; leave include, exclude and the path order out"
        )


def check_elements(names: Collection[str], network: Network) -> None:
    """Refuses names that are neither of a link nor of a switch."""
    if not names:
        return
    topology = network.topology
    known = {one.name for one in topology.links} | {one.name for one in topology.switches}
    unknown = sorted(set(names) - known)
    if unknown:
        raise BadInput(f"there is no link or switch {unknown[0]!r}; `downburst topology show` lists all")


def with_place(circuit: Circuit, booked: Booked) -> Circuit:
    """The circuit with the path and the tags of a booking."""
    return replace(with_tags(circuit, booked.reservation), path=hops_of(booked.path, booked))


def hops_of(path: Path, booked: Booked | None = None) -> tuple[CircuitHop, ...]:
    """The hops of a path as a circuit keeps them, with their tags if it is booked."""
    return tuple(CircuitHop(hop.link.name, hop.forward, booked.tag(hop) if booked else None) for hop in path)
