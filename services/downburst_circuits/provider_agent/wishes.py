"""Reservations in the hub's words: STPs to ports and tags, criteria to a circuit, and the granted tags back."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from downburst.domain.circuits import (
    Circuit,
    CircuitChange,
    CircuitCreation,
    CircuitEnd,
    CircuitRequest,
    Port,
)
from downburst.foundation.clock import from_us
from downburst_circuits.nsi.circuit import MBPS
from downburst_circuits.nsi.stp import Stp, stp
from downburst_circuits.nsi.words import Asked
from downburst_circuits.provider_agent.record import Connection, Service, Terms
from downburst_circuits.provider_agent.refusals import ErrorId, NsiRefusal, refused_as
from downburst_circuits.requests import check_rates, check_window


def service_of(asked: Asked) -> Service:
    """The unchangeable part of a first reservation; raises a refusal if a part of it is missing."""
    told = asked.criteria
    if told is None or told.source is None or told.dest is None or told.capacity_mbps is None:
        raise NsiRefusal(
            ErrorId.MISSING, "the criteria lack capacity, sourceSTP or destSTP; give all of them in one p2ps"
        )
    if not told.both_ways:
        raise NsiRefusal(ErrorId.DIRECTIONALITY, "circuits go both ways here; ask for Bidirectional")
    if told.source.urn == told.dest.urn:
        raise NsiRefusal(ErrorId.UNSUPPORTED, f"both ends are {told.source.urn}; name two STPs")
    return Service(
        told.source,
        told.dest,
        told.service_type or SERVICE_TYPE,
        next(iter(asked.global_ids), None),
        asked.description,
    )


def terms_of(asked: Asked, now_us: int) -> Terms:
    """The terms of a first reservation; one without a begin begins now."""
    told = asked.criteria
    if told is None or told.capacity_mbps is None:
        raise NsiRefusal(ErrorId.MISSING, "the criteria lack the capacity; give it in p2ps")
    begin_us = now_us if told.begin_us is None else told.begin_us
    return Terms(asked.version or 0, told.capacity_mbps, begin_us, told.end_us)


def circuit_of(one: Connection, terms: Terms, ports: Mapping[str, Port]) -> Circuit:
    """The circuit to ask the calendar for: created by hand, as a requester provisions it; the hub's end first."""
    ends = [_end(stp_of_end, ports) for stp_of_end in (one.service.source, one.service.dest)]
    if ends[1].site is None and ends[0].site is not None:
        ends.reverse()
    rate_bps = terms.capacity_mbps * MBPS
    description = one.service.description or f"NSI connection {one.connection_id}"
    request = CircuitRequest(
        request_id(one.connection_id),
        description[:DESCRIPTION_CHARS_MAX],
        requested_by=requested_by(one),
        creation=CircuitCreation.BY_HAND,
    )
    begin, end = from_us(terms.begin_us), _end_of(terms)
    return Circuit(0, request, tuple(ends), rate_bps, rate_bps, begin, end)


def check(circuit: Circuit, ports: Mapping[str, Port], now: datetime) -> None:
    """Refuses impossible windows and rates, each under its own error id."""
    with refused_as(ErrorId.UNSUPPORTED):
        check_window(circuit, now)
    with refused_as(ErrorId.CAPACITY):
        check_rates(circuit, ports)


def change_of(terms: Terms) -> CircuitChange:
    """The change of a circuit that gives it these terms."""
    rate_bps = terms.capacity_mbps * MBPS
    return CircuitChange(rate_bps, rate_bps, end=_end_of(terms), until_cancelled=terms.end_us is None)


def has_terms(circuit: Circuit, terms: Terms) -> bool:
    """True if the circuit has them already."""
    return circuit == with_terms(circuit, terms)


def with_terms(circuit: Circuit, terms: Terms) -> Circuit:
    """The circuit with other terms."""
    rate_bps = terms.capacity_mbps * MBPS
    return replace(circuit, rate_out_bps=rate_bps, rate_in_bps=rate_bps, end=_end_of(terms))


def both(circuit: Circuit, terms: Terms) -> Circuit:
    """The circuit with room for its present terms and these: an abort needs the former, a commit the latter."""
    other = with_terms(circuit, terms)
    return replace(
        circuit,
        rate_out_bps=max(circuit.rate_out_bps, other.rate_out_bps),
        rate_in_bps=max(circuit.rate_in_bps, other.rate_in_bps),
        end=None if circuit.end is None or other.end is None else max(circuit.end, other.end),
    )


def granted(service: Service, circuit: Circuit, ports: Mapping[str, Port]) -> Service:
    """The service with the tags that the calendar assigned, or the VLAN that an untagged port leads into."""
    ends = {stp(ports[end.port].stp).urn: end for end in circuit.ends}
    source, dest = (_granted(one, ends[one.urn], ports) for one in (service.source, service.dest))
    return replace(service, source=source, dest=dest)


def request_id(connection_id: str) -> str:
    """The name of the circuit's request, so that a repeated one finds the first one's circuit."""
    return f"nsi {connection_id}"


def requested_by(one: Connection) -> str:
    """The requester, as `downburst circuits list` shows it: its name for itself, and its certificate."""
    return f"{one.requester.nsa} ({one.requester.subject})"


def _end_of(terms: Terms) -> datetime | None:
    return None if terms.end_us is None else from_us(terms.end_us)


def _granted(asked: Stp, end: CircuitEnd, ports: Mapping[str, Port]) -> Stp:
    if end.vlan is not None:
        return asked.with_vlans(end.vlan, end.vlan)
    return asked if asked.first_vlan is None else stp(ports[end.port].stp)


def _end(asked: Stp, ports: Mapping[str, Port]) -> CircuitEnd:
    for port in ports.values():
        if port.stp and (own := stp(port.stp)).urn == asked.urn:
            return _end_at(asked, own, port)
    raise NsiRefusal(ErrorId.UNKNOWN_STP, f"there is no STP {asked.urn} here; check its name")


def _end_at(asked: Stp, own: Stp, port: Port) -> CircuitEnd:
    if port.first_vlan is None or port.last_vlan is None:
        if asked.first_vlan is not None and not own.grants(asked):
            raise NsiRefusal(ErrorId.STP_UNAVAILABLE, f"STP {own} has no other VLAN; ask for it as it is")
        return CircuitEnd(port.name, port.site)
    if asked.first_vlan is None or asked.last_vlan is None:
        raise NsiRefusal(
            ErrorId.LABEL_FORMAT,
            f"STP {asked.urn} has the VLANs {port.first_vlan}-{port.last_vlan} and none was named; add "
            f"?vlan={port.first_vlan}-{port.last_vlan}",
        )
    first, last = max(asked.first_vlan, port.first_vlan), min(asked.last_vlan, port.last_vlan)
    if first > last:
        raise NsiRefusal(
            ErrorId.STP_UNAVAILABLE,
            f"STP {asked.urn} has the VLANs {port.first_vlan}-{port.last_vlan} and {asked.first_vlan}-"
            f"{asked.last_vlan} were asked for; ask for some of these",
        )
    return CircuitEnd(port.name, port.site, first, last)


SERVICE_TYPE = "http://services.ogf.org/nsi/2013/12/descriptions/EVTS.A-GOLE"
DESCRIPTION_CHARS_MAX = 200
