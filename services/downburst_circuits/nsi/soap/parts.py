"""Parts of messages in both directions: the header, the criteria, names and numbers."""

from downburst_circuits.nsi.soap.hardened import Unreadable, parsed
from downburst_circuits.nsi.soap.names import HEADERS, POINT_TO_POINT, SOAP
from downburst_circuits.nsi.soap.values import Node
from downburst_circuits.nsi.words import Header, Told


def opened(data: bytes) -> tuple[Node, Node]:
    """The envelope and the one element of its body; raises one sentence if it is no envelope of SOAP 1.1."""
    envelope = Node(parsed(data), "Envelope")
    if (envelope.namespace, envelope.name) != (SOAP, "Envelope"):
        raise Unreadable(f"the message is {envelope.name!r}, not an envelope of SOAP 1.1")
    bodies = list(envelope.child("Body").children())
    if len(bodies) != 1:
        raise Unreadable(f"Envelope/Body has {len(bodies)} elements; one is read")
    return envelope, bodies[0]


def head_of(envelope: Node) -> Node | None:
    """NSI's header; None: there is none."""
    outer = envelope.maybe("Header")
    head = outer.maybe("nsiHeader") if outer else None
    return head if head is not None and head.namespace == HEADERS else None


def header_of(head: Node) -> Header:
    """The names in a header."""
    return Header(
        head.child("correlationId").visible(most=ID_CHARS),
        head.child("requesterNSA").visible(most=ID_CHARS),
        head.child("providerNSA").visible(most=ID_CHARS),
    )


def told_of(node: Node, version: int) -> Told:
    """Criteria, with a service element or the bare capacity; None for each value that is left out."""
    schedule, service_type, service = node.maybe("schedule"), node.filled("serviceType"), node.maybe("p2ps")
    if service is not None and service.namespace != POINT_TO_POINT:
        raise Unreadable(f"{service.place} is of another service than point to point")
    begin, end = (schedule.filled(name) if schedule else None for name in ("startTime", "endTime"))
    capacity, source, dest, directions = (
        service.maybe(name) if service else None for name in ("capacity", "sourceSTP", "destSTP", "directionality")
    )
    capacity = capacity if service else node.maybe("capacity")
    return Told(
        version=version,
        capacity_mbps=capacity.integer(least=0, most=CAPACITY_MBPS_MAX) if capacity else None,
        source=source.stp() if source else None,
        dest=dest.stp() if dest else None,
        begin_us=begin.moment_us() if begin else None,
        end_us=end.moment_us() if end else None,
        service_type=service_type.visible(most=500) if service_type else None,
        both_ways=directions is None or directions.text(most=40) == "Bidirectional",
    )


def connection_of(node: Node) -> str:
    """The connection that a message is about."""
    return node.child("connectionId").visible(most=ID_CHARS)


CAPACITY_MBPS_MAX = 100_000_000
ID_CHARS = 255
INT_MAX = 2**31 - 1
