"""Requests and acknowledgments as XML."""

from collections.abc import Callable

from lxml import etree

from downburst.domain.ordering.providers import Dialect, Provider
from downburst_circuits.nsi.soap.envelopes import bytes_of, envelope_of, schedule_into, service_into, text_into
from downburst_circuits.nsi.soap.names import (
    ACTION,
    POINT_TO_POINT,
    PROVIDER_PROTOCOL,
    REQUESTER_PROTOCOL,
    TYPES,
    qualified,
)
from downburst_circuits.nsi.words import Criteria, Header, Operation, Request


def envelope(request: Request, provider: Provider) -> bytes:
    """The SOAP envelope of a request."""
    root, body = envelope_of(
        protocol=PROVIDER_PROTOCOL,
        header=Header(request.correlation_id, provider.requester_nsa, provider.provider_nsa),
        reply_to=provider.reply_to or NO_CALLBACKS,
    )
    _WRITERS[request.operation](etree.SubElement(body, qualified(TYPES, request.operation)), request, provider)
    return bytes_of(root)


def acknowledgment(header: Header) -> bytes:
    """The answer to a callback."""
    root, body = envelope_of(protocol=REQUESTER_PROTOCOL, header=header, reply_to=None)
    etree.SubElement(body, qualified(TYPES, "acknowledgment"))
    return bytes_of(root)


def soap_action(operation: Operation) -> str:
    """The value of the HTTP header SOAPAction; OpenNSA finds the operation by it."""
    return f'"{ACTION}{operation}"'


def _reserve(element: etree._Element, request: Request, provider: Provider) -> None:
    if request.criteria is None or request.version is None:
        raise ValueError("a reservation needs criteria and a version")
    asked = request.criteria
    if request.connection_id is not None:
        text_into(element, "connectionId", request.connection_id)
        _change(_criteria(element, request.version), asked, provider.dialect)
        return
    if request.global_id is not None:
        text_into(element, "globalReservationId", request.global_id)
    if request.description is not None:
        text_into(element, "description", request.description)
    criteria = _criteria(element, request.version)
    schedule_into(criteria, asked.begin_us, asked.end_us)
    text_into(criteria, "serviceType", provider.service_type)
    service_into(criteria, asked.capacity_mbps, asked.source, asked.dest)


def _change(criteria: etree._Element, wanted: Criteria, dialect: Dialect) -> None:
    """The changed values alone; the dialect p2ps takes a missing time for now or for never."""
    schedule_into(criteria, wanted.begin_us, wanted.end_us)
    if dialect is Dialect.CAPACITY:
        bare = etree.SubElement(criteria, qualified(POINT_TO_POINT, "capacity"), nsmap={"p2p": POINT_TO_POINT})
        bare.text = str(wanted.capacity_mbps)
    elif dialect is Dialect.P2PS:
        service = etree.SubElement(criteria, qualified(POINT_TO_POINT, "p2ps"), nsmap={"p2p": POINT_TO_POINT})
        text_into(service, "capacity", str(wanted.capacity_mbps))
    else:
        raise ValueError("this provider takes no change of a reservation")


def _criteria(element: etree._Element, version: int) -> etree._Element:
    criteria = etree.SubElement(element, "criteria")
    criteria.set("version", str(version))
    return criteria


def _of_connection(element: etree._Element, request: Request, _provider: Provider) -> None:
    if request.connection_id is None:
        raise ValueError(f"{request.operation} needs a connection")
    text_into(element, "connectionId", request.connection_id)


def _summary(element: etree._Element, request: Request, _provider: Provider) -> None:
    if request.connection_id is not None:
        text_into(element, "connectionId", request.connection_id)


NO_CALLBACKS = "https://127.0.0.1:9/nsi"
"""Of a record without an address for callbacks: OpenNSA refuses even its list without one. Nothing listens there."""
_WRITERS: dict[Operation, Callable[[etree._Element, Request, Provider], None]] = {
    Operation.RESERVE: _reserve,
    Operation.COMMIT: _of_connection,
    Operation.ABORT: _of_connection,
    Operation.PROVISION: _of_connection,
    Operation.RELEASE: _of_connection,
    Operation.TERMINATE: _of_connection,
    Operation.SUMMARY: _summary,
    Operation.RESULTS: _of_connection,
}
