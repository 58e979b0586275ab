"""Envelopes, and the elements that requests and answers share."""

from datetime import UTC

from lxml import etree

from downburst.foundation.clock import from_us
from downburst_circuits.nsi.soap.names import HEADERS, POINT_TO_POINT, SOAP, TYPES, qualified
from downburst_circuits.nsi.stp import Stp
from downburst_circuits.nsi.words import Header


def envelope_of(
    *, protocol: str, header: Header | None, reply_to: str | None = None
) -> tuple[etree._Element, etree._Element]:
    """An envelope and its body; None: without a header, as for the answer to an unreadable message."""
    root = etree.Element(qualified(SOAP, "Envelope"), nsmap={"soap": SOAP, "head": HEADERS, "type": TYPES})
    if header is not None:
        head = etree.SubElement(etree.SubElement(root, qualified(SOAP, "Header")), qualified(HEADERS, "nsiHeader"))
        text_into(head, "protocolVersion", protocol)
        text_into(head, "correlationId", header.correlation_id)
        text_into(head, "requesterNSA", header.requester_nsa)
        text_into(head, "providerNSA", header.provider_nsa)
        if reply_to is not None:
            text_into(head, "replyTo", reply_to)
    return root, etree.SubElement(root, qualified(SOAP, "Body"))


def schedule_into(criteria: etree._Element, begin_us: int | None, end_us: int | None) -> None:
    """The window; a time that is None is left out."""
    schedule = etree.SubElement(criteria, "schedule")
    if begin_us is not None:
        text_into(schedule, "startTime", moment(begin_us))
    if end_us is not None:
        text_into(schedule, "endTime", moment(end_us))


def service_into(criteria: etree._Element, capacity_mbps: int, source: Stp, dest: Stp) -> None:
    """The service element of a circuit in both directions."""
    service = etree.SubElement(criteria, qualified(POINT_TO_POINT, "p2ps"), nsmap={"p2p": POINT_TO_POINT})
    text_into(service, "capacity", str(capacity_mbps))
    text_into(service, "directionality", "Bidirectional")
    text_into(service, "symmetricPath", "true")
    text_into(service, "sourceSTP", str(source))
    text_into(service, "destSTP", str(dest))


def text_into(parent: etree._Element, name: str, text: str) -> None:
    """An element with a text."""
    etree.SubElement(parent, name).text = text


def bytes_of(root: etree._Element) -> bytes:
    """The document in UTF-8."""
    return etree.tostring(root, xml_declaration=True, encoding="UTF-8")


def moment(at_us: int) -> str:
    """An instant as xsd:dateTime in UTC, in microseconds if it has any."""
    return from_us(at_us).astimezone(UTC).isoformat().replace("+00:00", "Z")
