"""Requests and acknowledgments as XML."""

from collections.abc import Callable
from datetime import UTC

from lxml import etree

from downburst.domain.ordering.providers import Dialect, Provider
from downburst.foundation.clock import from_us
from downburst_circuits.nsi.soap.names import (
    ACTION,
    HEADERS,
    POINT_TO_POINT,
    PROVIDER_PROTOCOL,
    REQUESTER_PROTOCOL,
    SOAP,
    TYPES,
    qualified,
)
from downburst_circuits.nsi.words import Criteria, Header, Operation, Request


def envelope(request: Request, provider: Provider) -> bytes:
    """The SOAP envelope of a request."""
    root, body = _envelope(
        protocol=PROVIDER_PROTOCOL,
        header=Header(request.correlation_id, provider.requester_nsa, provider.provider_nsa),
        reply_to=provider.reply_to or NO_CALLBACKS,
    )
    _WRITERS[request.operation](etree.SubElement(body, qualified(TYPES, request.operation)), request, provider)
    return _bytes(root)


def acknowledgment(header: Header) -> bytes:
    """The answer to a callback."""
    root, body = _envelope(protocol=REQUESTER_PROTOCOL, header=header, reply_to=None)
    etree.SubElement(body, qualified(TYPES, "acknowledgment"))
    return _bytes(root)


def soap_action(operation: Operation) -> str:
    """The value of the HTTP header SOAPAction; OpenNSA finds the operation by it."""
    return f'"{ACTION}{operation}"'


def moment(at_us: int) -> str:
    """An instant as xsd:dateTime in UTC, in microseconds if it has any."""
    return from_us(at_us).astimezone(UTC).isoformat().replace("+00:00", "Z")


def _envelope(*, protocol: str, header: Header, reply_to: str | None) -> tuple[etree._Element, etree._Element]:
    root = etree.Element(qualified(SOAP, "Envelope"), nsmap={"soap": SOAP, "head": HEADERS, "type": TYPES})
    head = etree.SubElement(etree.SubElement(root, qualified(SOAP, "Header")), qualified(HEADERS, "nsiHeader"))
    _text(head, "protocolVersion", protocol)
    _text(head, "correlationId", header.correlation_id)
    _text(head, "requesterNSA", header.requester_nsa)
    _text(head, "providerNSA", header.provider_nsa)
    if reply_to is not None:
        _text(head, "replyTo", reply_to)
    return root, etree.SubElement(root, qualified(SOAP, "Body"))


def _reserve(element: etree._Element, request: Request, provider: Provider) -> None:
    if request.criteria is None or request.version is None:
        raise ValueError("a reservation needs criteria and a version")
    if request.connection_id is not None:
        _text(element, "connectionId", request.connection_id)
        _change(_criteria(element, request.version), request.criteria, provider.dialect)
        return
    if request.global_id is not None:
        _text(element, "globalReservationId", request.global_id)
    if request.description is not None:
        _text(element, "description", request.description)
    criteria = _criteria(element, request.version)
    _schedule(criteria, request.criteria)
    _text(criteria, "serviceType", provider.service_type)
    _service(criteria, request.criteria)


def _change(criteria: etree._Element, wanted: Criteria, dialect: Dialect) -> None:
    """The changed values alone; the dialect p2ps takes a missing time for now or for never."""
    _schedule(criteria, wanted)
    if dialect is Dialect.CAPACITY:
        bare = etree.SubElement(criteria, qualified(POINT_TO_POINT, "capacity"), nsmap={"p2p": POINT_TO_POINT})
        bare.text = str(wanted.capacity_mbps)
    elif dialect is Dialect.P2PS:
        service = etree.SubElement(criteria, qualified(POINT_TO_POINT, "p2ps"), nsmap={"p2p": POINT_TO_POINT})
        _text(service, "capacity", str(wanted.capacity_mbps))
    else:
        raise ValueError("this provider takes no change of a reservation")


def _criteria(element: etree._Element, version: int) -> etree._Element:
    criteria = etree.SubElement(element, "criteria")
    criteria.set("version", str(version))
    return criteria


def _schedule(criteria: etree._Element, wanted: Criteria) -> None:
    schedule = etree.SubElement(criteria, "schedule")
    if wanted.begin_us is not None:
        _text(schedule, "startTime", moment(wanted.begin_us))
    if wanted.end_us is not None:
        _text(schedule, "endTime", moment(wanted.end_us))


def _service(criteria: etree._Element, wanted: Criteria) -> None:
    service = etree.SubElement(criteria, qualified(POINT_TO_POINT, "p2ps"), nsmap={"p2p": POINT_TO_POINT})
    _text(service, "capacity", str(wanted.capacity_mbps))
    _text(service, "directionality", "Bidirectional")
    _text(service, "symmetricPath", "true")
    _text(service, "sourceSTP", str(wanted.source))
    _text(service, "destSTP", str(wanted.dest))


def _of_connection(element: etree._Element, request: Request, _provider: Provider) -> None:
    if request.connection_id is None:
        raise ValueError(f"{request.operation} needs a connection")
    _text(element, "connectionId", request.connection_id)


def _summary(element: etree._Element, request: Request, _provider: Provider) -> None:
    if request.connection_id is not None:
        _text(element, "connectionId", request.connection_id)


def _text(parent: etree._Element, name: str, text: str) -> None:
    etree.SubElement(parent, name).text = text


def _bytes(root: etree._Element) -> bytes:
    return etree.tostring(root, xml_declaration=True, encoding="UTF-8")


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
