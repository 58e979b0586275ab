"""Circuits in NSI's words: the criteria to ask a provider for, and the ends as it granted them.

A port with tags of ours is a tagged end: the provider grants one of them. A port without tags is used as it is, with
the address of its interface; its STP names the VLANs in the other network, if there are any.
"""

from collections.abc import Mapping
from dataclasses import replace

from downburst.domain.circuits import Circuit, CircuitEnd, CircuitShape, Port
from downburst.foundation.clock import to_us
from downburst.foundation.errors import BadInput
from downburst_circuits.nsi.order import Change, check_criteria
from downburst_circuits.nsi.stp import Stp, stp
from downburst_circuits.nsi.words import Criteria


def check_ends(circuit: Circuit, ports: Mapping[str, Port]) -> None:
    """Raises one sentence if no provider can be asked for a circuit between these ports."""
    if circuit.shape is not CircuitShape.POINT_TO_POINT:
        raise BadInput(
            f"NSI joins two ports, and {len(circuit.far_sites)} sites were named; request a circuit for each"
        )
    tagged = [ports[end.port].first_vlan is not None for end in circuit.ends]
    for end in circuit.ends:
        _check_end(end, ports[end.port])
    if any(tagged) and not all(tagged):
        without = circuit.ends[tagged.index(False)].port
        raise BadInput(
            f"port {without} has no tags and the other one has some; give both ports tags with --vlan, or neither"
        )
    check_criteria(criteria_of(circuit, ports))


def criteria_of(circuit: Circuit, ports: Mapping[str, Port]) -> Criteria:
    """The criteria of a new reservation, whose window has begun."""
    source, dest = (_asked(end, ports[end.port]) for end in circuit.ends)
    return Criteria(capacity_mbps(circuit), source, dest, None, _end_us(circuit))


def change_of(circuit: Circuit) -> Change:
    """The terms of a circuit that a provider may change."""
    return Change(capacity_mbps(circuit), _end_us(circuit))


def capacity_mbps(circuit: Circuit) -> int:
    """NSI knows one figure for both directions, in whole megabits per second."""
    return -(-max(circuit.rate_out_bps, circuit.rate_in_bps) // MBPS)


def granted_ends(circuit: Circuit, granted: Criteria, addresses: tuple[str, ...]) -> tuple[CircuitEnd, ...]:
    """The ends with the granted tags and their addresses."""
    vlans = (granted.source.first_vlan, granted.dest.first_vlan)
    return tuple(
        replace(end, vlan=vlan, address=address)
        for end, vlan, address in zip(circuit.ends, vlans, addresses, strict=True)
    )


def own_address(end: CircuitEnd, port: Port) -> str:
    """The address of an end on a port without tags, which the node finds there."""
    width = 128 if ":" in port.underlay else 32
    return end.address or f"{port.underlay}/{width}"


def _check_end(end: CircuitEnd, port: Port) -> None:
    if not port.stp:
        raise BadInput(
            f"port {port.name} has no STP, so no provider can be asked for it; set one: downburst ports set "
            f"{port.name} --stp urn:ogf:network:DOMAIN:YEAR:TOPOLOGY:PORT"
        )
    label = stp(port.stp)
    if port.first_vlan is None:
        if not port.underlay and not end.address:
            raise BadInput(
                f"port {port.name} has neither tags nor an address, so its end can't be set up; give it tags with "
                "--vlan, or the address of its interface with --underlay"
            )
        return
    if end.address:
        raise BadInput(f"port {port.name} has tags, so the hub assigns the addresses inside; leave the address out")
    if label.first_vlan is not None and not _covers(label, _asked(end, port)):
        raise BadInput(
            f"port {port.name} has the tags {port.first_vlan}-{port.last_vlan}, and its STP allows "
            f"{label.first_vlan}-{label.last_vlan}; correct one of them"
        )


def _asked(end: CircuitEnd, port: Port) -> Stp:
    """The STP with every VLAN that would do."""
    label = stp(port.stp)
    if port.first_vlan is None:
        return label
    if end.first_vlan is not None:
        return label.with_vlans(end.first_vlan, end.last_vlan)
    return label.with_vlans(port.first_vlan, port.last_vlan)


def _covers(label: Stp, asked: Stp) -> bool:
    if None in (label.first_vlan, label.last_vlan, asked.first_vlan, asked.last_vlan):
        return False
    first, last = label.first_vlan or 0, label.last_vlan or 0
    return first <= (asked.first_vlan or 0) and (asked.last_vlan or 0) <= last


def _end_us(circuit: Circuit) -> int | None:
    return None if circuit.end is None else to_us(circuit.end)


MBPS = 1_000_000
