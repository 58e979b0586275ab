"""The lines about circuits (docs/node-lines.md), from and to the types of circuits."""

from typing import Any

from downburst.domain.circuits import (
    Circuit,
    CircuitDriver,
    CircuitEnd,
    CircuitProblem,
    CircuitUse,
    Direction,
    Lease,
    Port,
    RateProbe,
    ReachProbe,
    Standing,
    Transit,
    WireTag,
)
from downburst.domain.circuits.signs import CircuitTold
from downburst.foundation.bounds import OutOfBounds, clock_us, count, maybe, sentence, site_name
from downburst.foundation.clock import from_us, to_us

Line = dict[str, Any]


def lease_line(lease: Lease) -> Line:
    """One lease as a line for the node."""
    circuit = lease.circuit
    return {
        "lease": circuit.number,
        "driver": lease.driver.value,
        "shape": circuit.shape.value,
        "replication": circuit.carriage.replication.value,
        "group": circuit.carriage.group,
        "vni": None if lease.tags or circuit.carriage.driver is CircuitDriver.NSI else own_vni(circuit.number),
        "cap": circuit.carriage.cap.value,
        "rate_out_bps": circuit.rate_out_bps,
        "rate_in_bps": circuit.rate_in_bps,
        "shaped_share": circuit.carriage.shaped_share,
        "burst_bytes": circuit.carriage.burst_bytes,
        "until_us": None if circuit.end is None else to_us(circuit.end),
        "ends": [] if circuit.passes else _ends(lease),
        "transits": [_transit(transit) for transit in lease.transits],
    }


def own_vni(number: int) -> int:
    """The identifier of a circuit's tunnel where its path has no tags."""
    return FIRST_VNI + number % VNIS


def standing(line: Line) -> Standing:
    """The node's report on a lease."""
    bad = [end for end in line.get("ends", []) if end["state"] != "up"]
    return Standing(
        circuit=line["lease"],
        state=line["state"],
        took_ms=float(line.get("took_ms") or 0.0),
        problems=tuple(problem(end) for end in bad),
    )


def problem(line: Line) -> CircuitProblem:
    """The reason why an end failed, or was left behind."""
    where = sentence(line.get("hop") or line.get("end") or "")
    if line.get("state") == "away" and line.get("site"):
        return CircuitProblem(
            f"{line['site']} is not connected",
            step="site",
            hop=where,
            remedy="start its receiver or relay, or find out why it can't reach the hub; its end is set up when it "
            "reconnects",
            site=line["site"],
        )
    return CircuitProblem(
        sentence=maybe(line.get("sentence"), sentence)
        or f"{line.get('site') or where or 'an end'} is {line.get('state', 'not there')}",
        step=sentence(line.get("step") or ""),
        hop=where,
        remedy=sentence(line.get("remedy") or ""),
        site=line.get("site"),
    )


def reach_probe(line: Line) -> ReachProbe:
    """The result of a reachability probe."""
    probe = line["probe"]
    return ReachProbe(probe["site"], probe["sent"], probe["received"], _median_us(probe))


def rate_probe(line: Line) -> RateProbe:
    """The result of a train."""
    probe = line["probe"]
    rise, burst = probe.get("delay_rise_us") or {}, probe.get("burst") or {}
    return RateProbe(
        site=probe["site"],
        direction=Direction(probe["direction"]),
        sent=probe["sent"],
        received=probe["received"],
        offered_bps=probe["offered_bps"],
        received_bps=probe["received_bps"] or 0.0,
        bins_bps=tuple(probe.get("bins_bps", ())),
        loss_by_bin=tuple(probe.get("lost_share_by_bin", ())),
        delay_rise_median_us=rise.get("median", 0),
        delay_rise_max_us=rise.get("max", 0),
        burst_sent=burst.get("packets", 0),
        burst_received=burst.get("received", 0),
        round_trip_us=_median_us(probe),
        others_bps=probe.get("others_bps", 0.0),
    )


def circuit_told(line: Line) -> CircuitTold:
    """The report that an end came up, failed or was removed."""
    told = problem(line) if line.get("sentence") else None
    if line["state"] not in ("up", "down", "removed"):
        raise OutOfBounds(f"{line['state']!r:.100} is not a state of a circuit")
    at = from_us(clock_us(line["at_us"]))
    return CircuitTold(count(line["lease"]), maybe(line.get("site"), site_name), line["state"], at, told)


def circuit_use(use: Line) -> CircuitUse:
    """Bytes through an end of a circuit since the last traffic event."""
    return CircuitUse(
        count(use["lease"]), maybe(use.get("site"), site_name), count(use["out_bytes"]), count(use["in_bytes"])
    )


def _as_ordered(circuit: Circuit) -> list[WireTag]:
    """The tags of the ports themselves."""
    return [WireTag(vlan=end.vlan) for end in circuit.ends]


def _ends(lease: Lease) -> list[Line]:
    circuit, tags = lease.circuit, lease.tags or _as_ordered(lease.circuit)
    return [_end(circuit, *each) for each in zip(circuit.ends, lease.ports, tags, strict=True)]


def _end(circuit: Circuit, end: CircuitEnd, port: Port, tag: WireTag) -> Line:
    has_tunnel = circuit.carriage.driver is CircuitDriver.LINUX or tag.vni is not None
    return {
        "end": end.port,
        "site": end.site,
        "interface": port.interface,
        "underlay": port.underlay if has_tunnel else None,
        "port_rate_bps": port.port_rate_bps,
        "address": end.address,
    } | _hop(tag)


def _transit(transit: Transit) -> Line:
    port = transit.port
    return {
        "end": port.name,
        "site": port.site,
        "interface": port.interface,
        "underlay": port.underlay,
        "port_rate_bps": port.port_rate_bps,
        "near": _hop(transit.near),
        "far": _hop(transit.far),
    }


def _hop(tag: WireTag) -> Line:
    return {"vlan": tag.vlan, "vni": tag.vni, "via": tag.via}


def _median_us(probe: Line) -> int | None:
    trip = probe.get("round_trip_us")
    return None if trip is None else trip["median"]


FIRST_VNI = 4_096
"""Above every VLAN tag, so that no VNI is taken for one."""
VNIS = 2**24 - FIRST_VNI
