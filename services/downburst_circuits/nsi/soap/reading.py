"""Messages of providers: bytes to typed words, or one sentence."""

from collections.abc import Callable

from downburst_circuits.nsi.soap.hardened import Unreadable, parsed
from downburst_circuits.nsi.soap.names import HEADERS, POINT_TO_POINT, SOAP, TYPES
from downburst_circuits.nsi.soap.values import Node
from downburst_circuits.nsi.words import (
    Acknowledged,
    Body,
    Confirmed,
    DataPlaneChanged,
    DeliveryTimedOut,
    ErrorEvent,
    ErrorReply,
    Failed,
    Fault,
    Header,
    HoldExpired,
    LifecycleState,
    Listed,
    Listing,
    Message,
    Operation,
    ProvisionState,
    ReservationState,
    Reserved,
    Result,
    Results,
    ServiceException,
    States,
    Told,
    Unread,
)


def read(data: bytes) -> Message:
    """A message of a provider; raises one sentence if it can't be used."""
    element = parsed(data)
    envelope = Node(element, "Envelope")
    if (envelope.namespace, envelope.name) != (SOAP, "Envelope"):
        raise Unreadable(f"the message is {envelope.name!r}, not an envelope of SOAP 1.1")
    bodies = list(envelope.child("Body").children())
    if len(bodies) != 1:
        raise Unreadable(f"Envelope/Body has {len(bodies)} elements; one is read")
    body = bodies[0]
    if (body.namespace, body.name) == (SOAP, "Fault"):
        return Message(_header(envelope, required=False), _fault(body))
    reader = _READERS.get(body.name)
    if body.namespace != TYPES or reader is None:
        raise Unreadable(f"Envelope/Body has {body.name!r}, which no provider sends to a requester")
    return Message(_header(envelope, required=True), reader(body.at(body.name)))


def _header(envelope: Node, *, required: bool) -> Header | None:
    outer = envelope.maybe("Header")
    head = outer.maybe("nsiHeader") if outer else None
    if head is None or head.namespace != HEADERS:
        if required:
            raise Unreadable("Envelope/Header lacks nsiHeader")
        return None
    return Header(
        head.child("correlationId").visible(most=_ID_CHARS),
        head.child("requesterNSA").visible(most=_ID_CHARS),
        head.child("providerNSA").visible(most=_ID_CHARS),
    )


def _fault(body: Node) -> Fault:
    text = body.maybe("faultstring")
    detail = body.maybe("detail")
    exception = detail.maybe("serviceException") if detail else None
    return Fault(text.words() if text else "", _exception(exception) if exception else None)


def _exception(node: Node) -> ServiceException:
    nsa, text, connection = node.maybe("nsaId"), node.maybe("text"), node.filled("connectionId")
    return ServiceException(
        error_id=node.child("errorId").visible(most=20),
        text=text.words() if text else "",
        nsa=nsa.words() if nsa else "",
        connection_id=connection.visible(most=_ID_CHARS) if connection else None,
    )


def _reserve_response(node: Node) -> Acknowledged:
    return Acknowledged(_connection(node))


def _acknowledged(_node: Node) -> Acknowledged:
    return Acknowledged()


def _reserved(node: Node) -> Reserved:
    return Reserved(_connection(node), _told(node.child("criteria")))


def _confirmed(operation: Operation) -> Callable[[Node], Confirmed]:
    return lambda node: Confirmed(operation, _connection(node))


def _failed(operation: Operation) -> Callable[[Node], Failed]:
    return lambda node: Failed(operation, _connection(node), _exception(node.child("serviceException")))


def _error(node: Node) -> ErrorReply:
    return ErrorReply(_exception(node.child("serviceException")))


def _hold_expired(node: Node) -> HoldExpired:
    return HoldExpired(_connection(node), node.child("timeoutValue").integer(least=0, most=_SECONDS_MAX))


def _data_plane(node: Node) -> DataPlaneChanged:
    active, version = _plane(node.child("dataPlaneStatus"))
    return DataPlaneChanged(_connection(node), active, version)


def _error_event(node: Node) -> ErrorEvent:
    exception = node.maybe("serviceException")
    event = node.child("event").visible(most=40)
    return ErrorEvent(_connection(node), event, _exception(exception) if exception else None)


def _delivery(node: Node) -> DeliveryTimedOut:
    return DeliveryTimedOut(_connection(node), node.child("correlationId").visible(most=_ID_CHARS))


def _listing(node: Node) -> Listing:
    """A malformed entry, perhaps of another requester, hides no other one."""
    read, unread = [], []
    for one in node.children("reservation"):
        try:
            read.append(_listed(one))
        except Unreadable as error:
            unread.append(Unread(error.sentence, _requester(one)))
    return Listing(tuple(read), tuple(unread))


def _requester(node: Node) -> str | None:
    try:
        return node.child("requesterNSA").visible(most=_ID_CHARS)
    except Unreadable:
        return None


def _listed(node: Node) -> Listed:
    global_id = node.filled("globalReservationId")
    return Listed(
        connection_id=_connection(node),
        global_id=global_id.visible(most=_ID_CHARS) if global_id else None,
        requester_nsa=node.child("requesterNSA").visible(most=_ID_CHARS),
        states=_states(node.child("connectionStates")),
        told=tuple(_told(one) for one in node.children("criteria")),
    )


def _states(node: Node) -> States:
    provision = node.maybe("provisionState")
    active, version = _plane(node.child("dataPlaneStatus"))
    return States(
        reservation=node.child("reservationState").one_of(ReservationState),
        provision=provision.one_of(ProvisionState) if provision else None,
        lifecycle=node.child("lifecycleState").one_of(LifecycleState),
        active=active,
        active_version=version,
    )


def _plane(node: Node) -> tuple[bool, int | None]:
    version = node.maybe("version")
    return node.child("active").flag(), version.integer(least=0, most=_INT_MAX) if version else None


def _told(node: Node) -> Told:
    schedule, service_type, service = node.maybe("schedule"), node.filled("serviceType"), node.maybe("p2ps")
    if service is not None and service.namespace != POINT_TO_POINT:
        raise Unreadable(f"{service.place} is of another service than point to point")
    begin, end = (schedule.maybe(name) if schedule else None for name in ("startTime", "endTime"))
    capacity, source, dest, directions = (
        service.maybe(name) if service else None for name in ("capacity", "sourceSTP", "destSTP", "directionality")
    )
    return Told(
        version=node.attribute("version", least=0, most=_INT_MAX),
        capacity_mbps=capacity.integer(least=0, most=CAPACITY_MBPS_MAX) if capacity else None,
        source=source.stp() if source else None,
        dest=dest.stp() if dest else None,
        begin_us=begin.moment_us() if begin else None,
        end_us=end.moment_us() if end else None,
        service_type=service_type.visible(most=500) if service_type else None,
        both_ways=directions is None or directions.text(most=40) == "Bidirectional",
    )


def _results(node: Node) -> Results:
    return Results(tuple(found for one in node.children("result") if (found := _result(one)) is not None))


def _result(node: Node) -> Result | None:
    """A stored reply; None: one of a later version of the protocol."""
    for child in node.children():
        reader = _REPLIES.get(child.name)
        if reader is not None:
            reply = reader(child)
            return Result(node.child("correlationId").visible(most=_ID_CHARS), reply)
    return None


def _connection(node: Node) -> str:
    return node.child("connectionId").visible(most=_ID_CHARS)


CAPACITY_MBPS_MAX = 100_000_000
_ID_CHARS = 255
_INT_MAX = 2**31 - 1
_SECONDS_MAX = 31 * 86_400
_NAMED = (
    Operation.COMMIT,
    Operation.ABORT,
    Operation.PROVISION,
    Operation.RELEASE,
    Operation.TERMINATE,
)
_REPLIES: dict[str, Callable[[Node], Reserved | Confirmed | Failed | ErrorReply]] = {
    "reserveConfirmed": _reserved,
    "reserveFailed": _failed(Operation.RESERVE),
    "reserveCommitFailed": _failed(Operation.COMMIT),
    "error": _error,
    **{f"{operation}Confirmed": _confirmed(operation) for operation in _NAMED},
}
_READERS: dict[str, Callable[[Node], Body]] = {
    **_REPLIES,
    "reserveResponse": _reserve_response,
    "acknowledgment": _acknowledged,
    "reserveTimeout": _hold_expired,
    "dataPlaneStateChange": _data_plane,
    "errorEvent": _error_event,
    "messageDeliveryTimeout": _delivery,
    "querySummarySyncConfirmed": _listing,
    "queryResultSyncConfirmed": _results,
}
