"""Messages of providers: bytes to typed words, or one sentence."""

from collections.abc import Callable

from downburst_circuits.nsi.soap.hardened import Unreadable
from downburst_circuits.nsi.soap.names import SOAP, TYPES
from downburst_circuits.nsi.soap.parts import ID_CHARS, INT_MAX, connection_of, head_of, header_of, opened, told_of
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
    envelope, body = opened(data)
    if (body.namespace, body.name) == (SOAP, "Fault"):
        return Message(_header(envelope, required=False), _fault(body))
    reader = _READERS.get(body.name)
    if body.namespace != TYPES or reader is None:
        raise Unreadable(f"Envelope/Body has {body.name!r}, which no provider sends to a requester")
    return Message(_header(envelope, required=True), reader(body.at(body.name)))


def _header(envelope: Node, *, required: bool) -> Header | None:
    head = head_of(envelope)
    if head is None and required:
        raise Unreadable("Envelope/Header lacks nsiHeader")
    return None if head is None else header_of(head)


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
        connection_id=connection.visible(most=ID_CHARS) if connection else None,
    )


def _reserve_response(node: Node) -> Acknowledged:
    return Acknowledged(connection_of(node))


def _acknowledged(_node: Node) -> Acknowledged:
    return Acknowledged()


def _reserved(node: Node) -> Reserved:
    return Reserved(connection_of(node), _told(node.child("criteria")))


def _confirmed(operation: Operation) -> Callable[[Node], Confirmed]:
    return lambda node: Confirmed(operation, connection_of(node))


def _failed(operation: Operation) -> Callable[[Node], Failed]:
    return lambda node: Failed(operation, connection_of(node), _exception(node.child("serviceException")))


def _error(node: Node) -> ErrorReply:
    return ErrorReply(_exception(node.child("serviceException")))


def _hold_expired(node: Node) -> HoldExpired:
    return HoldExpired(connection_of(node), node.child("timeoutValue").integer(least=0, most=_SECONDS_MAX))


def _data_plane(node: Node) -> DataPlaneChanged:
    active, version = _plane(node.child("dataPlaneStatus"))
    return DataPlaneChanged(connection_of(node), active, version)


def _error_event(node: Node) -> ErrorEvent:
    exception = node.maybe("serviceException")
    event = node.child("event").visible(most=40)
    return ErrorEvent(connection_of(node), event, _exception(exception) if exception else None)


def _delivery(node: Node) -> DeliveryTimedOut:
    return DeliveryTimedOut(connection_of(node), node.child("correlationId").visible(most=ID_CHARS))


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
        return node.child("requesterNSA").visible(most=ID_CHARS)
    except Unreadable:
        return None


def _listed(node: Node) -> Listed:
    global_id = node.filled("globalReservationId")
    return Listed(
        connection_id=connection_of(node),
        global_id=global_id.visible(most=ID_CHARS) if global_id else None,
        requester_nsa=node.child("requesterNSA").visible(most=ID_CHARS),
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
    return node.child("active").flag(), version.integer(least=0, most=INT_MAX) if version else None


def _told(node: Node) -> Told:
    return told_of(node, node.attribute("version", least=0, most=INT_MAX))


def _results(node: Node) -> Results:
    return Results(tuple(found for one in node.children("result") if (found := _result(one)) is not None))


def _result(node: Node) -> Result | None:
    """A stored reply; None: one of a later version of the protocol."""
    for child in node.children():
        reader = _REPLIES.get(child.name)
        if reader is not None:
            reply = reader(child)
            return Result(node.child("correlationId").visible(most=ID_CHARS), reply)
    return None


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
