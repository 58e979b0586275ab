"""A provider's answers, replies and notifications as XML."""

from collections.abc import Callable, Iterable

from lxml import etree

from downburst_circuits.nsi.soap.envelopes import (
    bytes_of,
    envelope_of,
    moment,
    schedule_into,
    service_into,
    text_into,
)
from downburst_circuits.nsi.soap.names import (
    FRAMEWORK,
    PROVIDER_PROTOCOL,
    REQUESTER_PROTOCOL,
    SOAP,
    TYPES,
    qualified,
)
from downburst_circuits.nsi.words import (
    Confirmed,
    DataPlaneChanged,
    ErrorEvent,
    ErrorReply,
    Failed,
    Header,
    HoldExpired,
    Listed,
    Notice,
    ProvisionState,
    Reply,
    Reserved,
    Sent,
    ServiceException,
    States,
    Told,
)


def taken(header: Header, connection_id: str | None = None) -> bytes:
    """The immediate answer to a request: it is worked on. A reservation gets its connection here."""
    if connection_id is None:
        return _answer(header, "acknowledgment", lambda _: None)
    return _answer(header, "reserveResponse", lambda answer: text_into(answer, "connectionId", connection_id))


def fault(header: Header | None, exception: ServiceException) -> bytes:
    """A SOAP fault; None: the request's header could not be read."""
    root, body = envelope_of(protocol=PROVIDER_PROTOCOL, header=header)
    found = etree.SubElement(body, qualified(SOAP, "Fault"))
    text_into(found, "faultcode", "soap:Server")
    text_into(found, "faultstring", exception.text)
    detail = etree.SubElement(found, "detail")
    _exception_into(detail, qualified(FRAMEWORK, "serviceException"), exception)
    return bytes_of(root)


def summary(header: Header, reservations: Iterable[Listed], *, name: str, to_requester: bool = False) -> bytes:
    """The answer to a query of reservations, under the name of its operation; to_requester: as a callback."""

    def fill(answer: etree._Element) -> None:
        for one in reservations:
            _listed_into(etree.SubElement(answer, "reservation"), one)

    return _answer(header, name, fill, REQUESTER_PROTOCOL if to_requester else PROVIDER_PROTOCOL)


def results(header: Header, found: Iterable[Sent]) -> bytes:
    """The stored replies of a connection."""

    def fill(answer: etree._Element) -> None:
        for one in found:
            result = etree.SubElement(answer, "result")
            text_into(result, "resultId", str(one.number))
            text_into(result, "correlationId", one.correlation_id)
            text_into(result, "timeStamp", moment(one.at_us))
            _sent_into(result, one, header.provider_nsa)

    return _answer(header, "queryResultSyncConfirmed", fill)


def notifications(header: Header, found: Iterable[Sent]) -> bytes:
    """The stored notifications of a connection."""

    def fill(answer: etree._Element) -> None:
        for one in found:
            _sent_into(answer, one, header.provider_nsa)

    return _answer(header, "queryNotificationSyncConfirmed", fill)


def callback(one: Sent, requester_nsa: str, provider_nsa: str) -> tuple[str, bytes]:
    """The name and the message of a reply or notification to a requester."""
    header = Header(one.correlation_id, requester_nsa, provider_nsa)
    root, body = envelope_of(protocol=REQUESTER_PROTOCOL, header=header)
    _sent_into(body, one, provider_nsa)
    return _name(one.body), bytes_of(root)


def _answer(
    header: Header, name: str, fill: Callable[[etree._Element], None], protocol: str = PROVIDER_PROTOCOL
) -> bytes:
    root, body = envelope_of(protocol=protocol, header=header)
    fill(etree.SubElement(body, qualified(TYPES, name)))
    return bytes_of(root)


def _sent_into(parent: etree._Element, one: Sent, nsa: str) -> None:
    element = etree.SubElement(parent, qualified(TYPES, _name(one.body)))
    if isinstance(one.body, ErrorReply):
        _exception_into(element, "serviceException", one.body.exception)
        return
    text_into(element, "connectionId", one.body.connection_id)
    match one.body:
        case Reserved(_, told):
            _told_into(element, told)
        case Failed(_, _, exception):
            if one.states is not None:
                _states_into(element, one.states)
            _exception_into(element, "serviceException", exception)
        case HoldExpired() | DataPlaneChanged() | ErrorEvent():
            text_into(element, "notificationId", str(one.number))
            text_into(element, "timeStamp", moment(one.at_us))
            _notice_into(element, one.body, nsa)
        case _:
            pass


def _notice_into(element: etree._Element, notice: HoldExpired | DataPlaneChanged | ErrorEvent, nsa: str) -> None:
    if isinstance(notice, DataPlaneChanged):
        _plane_into(element, active=notice.active, version=notice.version or 0)
        return
    first = ("event", notice.event) if isinstance(notice, ErrorEvent) else ("timeoutValue", str(notice.timeout_s))
    text_into(element, *first)
    text_into(element, "originatingConnectionId", notice.connection_id)
    text_into(element, "originatingNSA", nsa)
    if isinstance(notice, ErrorEvent) and notice.exception is not None:
        _exception_into(element, "serviceException", notice.exception)


def _listed_into(element: etree._Element, one: Listed) -> None:
    text_into(element, "connectionId", one.connection_id)
    if one.global_id is not None:
        text_into(element, "globalReservationId", one.global_id)
    if one.description:
        text_into(element, "description", one.description)
    for told in one.told:
        _told_into(element, told, is_listed=True)
    text_into(element, "requesterNSA", one.requester_nsa)
    _states_into(element, one.states)


def _told_into(element: etree._Element, told: Told, *, is_listed: bool = False) -> None:
    criteria = etree.SubElement(element, "criteria")
    criteria.set("version", str(told.version))
    schedule_into(criteria, told.begin_us, told.end_us)
    if told.service_type is not None:
        text_into(criteria, "serviceType", told.service_type)
    if is_listed:
        # OpenNSA wants it even without connections of further networks.
        etree.SubElement(criteria, "children")
    if told.capacity_mbps is not None and told.source is not None and told.dest is not None:
        service_into(criteria, told.capacity_mbps, told.source, told.dest)


def _states_into(element: etree._Element, states: States) -> None:
    found = etree.SubElement(element, "connectionStates")
    text_into(found, "reservationState", states.reservation)
    text_into(found, "provisionState", states.provision or ProvisionState.RELEASED)
    text_into(found, "lifecycleState", states.lifecycle)
    _plane_into(found, active=states.active, version=states.active_version or 0)


def _plane_into(element: etree._Element, *, active: bool, version: int) -> None:
    plane = etree.SubElement(element, "dataPlaneStatus")
    text_into(plane, "active", "true" if active else "false")
    text_into(plane, "version", str(version))
    text_into(plane, "versionConsistent", "true")


def _exception_into(parent: etree._Element, name: str, exception: ServiceException) -> None:
    found = etree.SubElement(parent, name)
    text_into(found, "nsaId", exception.nsa)
    if exception.connection_id is not None:
        text_into(found, "connectionId", exception.connection_id)
    text_into(found, "errorId", exception.error_id)
    text_into(found, "text", exception.text)
    etree.SubElement(found, "variables")


def _name(body: Reply | Notice) -> str:
    match body:
        case Reserved():
            return "reserveConfirmed"
        case Confirmed(operation, _):
            return f"{operation}Confirmed"
        case Failed(operation, _, _):
            return f"{operation}Failed"
        case _:
            return _NAMES[type(body)]


_NAMES: dict[type, str] = {
    ErrorReply: "error",
    HoldExpired: "reserveTimeout",
    DataPlaneChanged: "dataPlaneStateChange",
    ErrorEvent: "errorEvent",
}
