"""Requests of requesters: bytes to typed words, or one sentence."""

import re
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import urlsplit

from downburst_circuits.nsi.soap.hardened import Unreadable
from downburst_circuits.nsi.soap.names import PROVIDER_PROTOCOL, TYPES
from downburst_circuits.nsi.soap.parts import ID_CHARS, INT_MAX, connection_of, head_of, header_of, opened, told_of
from downburst_circuits.nsi.soap.values import Node
from downburst_circuits.nsi.soap.writing import NO_CALLBACKS
from downburst_circuits.nsi.words import Asked, Header, Operation, Question


def read_request(data: bytes) -> Asked:
    """A request to a provider; raises one sentence if it can't be used."""
    envelope, body = opened(data)
    reader = _READERS.get(body.name)
    if body.namespace != TYPES or reader is None:
        raise Unreadable(f"Envelope/Body has {body.name!r}, which is no request that this provider answers")
    operation, fill = reader
    header, reply_to = _head(envelope)
    return fill(Asked(operation, header, reply_to), body.at(body.name))


def _head(envelope: Node) -> tuple[Header, str | None]:
    head = head_of(envelope)
    if head is None:
        raise Unreadable("Envelope/Header lacks nsiHeader")
    protocol = head.child("protocolVersion").visible(most=ID_CHARS)
    if protocol != PROVIDER_PROTOCOL:
        raise Unreadable(f"the protocol version is {protocol[:80]!r}; this provider speaks {PROVIDER_PROTOCOL}")
    header, reply_to = header_of(head), head.filled("replyTo")
    if not _UUID.fullmatch(header.correlation_id):
        raise Unreadable(f"the correlation id is {header.correlation_id[:80]!r}, not a urn:uuid:")
    return header, _address(reply_to) if reply_to else None


def _address(node: Node) -> str | None:
    """The address for callbacks; None: our own requester has named none that listens."""
    text = node.visible(most=URL_CHARS_MAX)
    if text == NO_CALLBACKS:
        return None
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        raise Unreadable(f"{node.place} is {text[:80]!r}, not an address") from None
    if url.scheme != "https" or not url.hostname or url.username is not None or port == 0:
        raise Unreadable(f"{node.place} is {text[:80]!r}; callbacks go to https://HOST/PATH")
    return text


def _reserve(asked: Asked, node: Node) -> Asked:
    criteria = node.child("criteria")
    has_version = criteria.has_attribute("version")
    version = criteria.attribute("version", least=0, most=INT_MAX) if has_version else None
    connection, global_id, description = (
        node.filled("connectionId"),
        node.filled("globalReservationId"),
        node.maybe("description"),
    )
    return replace(
        asked,
        connection_ids=(connection.visible(most=ID_CHARS),) if connection else (),
        global_ids=(global_id.visible(most=ID_CHARS),) if global_id else (),
        description=description.words() if description else "",
        version=version,
        criteria=told_of(criteria, version or 0),
    )


def _of_connection(asked: Asked, node: Node) -> Asked:
    return replace(asked, connection_ids=(connection_of(node),))


def _query(asked: Asked, node: Node) -> Asked:
    connections, globals_ = (
        tuple(one.visible(most=ID_CHARS) for one in node.children(name))
        for name in ("connectionId", "globalReservationId")
    )
    if len(connections) + len(globals_) > NAMES_MAX:
        raise Unreadable(f"{node.place} names more than {NAMES_MAX} reservations; ask for all instead")
    return replace(asked, connection_ids=connections, global_ids=globals_)


def _numbered(first: str, last: str) -> Callable[[Asked, Node], Asked]:
    def fill(asked: Asked, node: Node) -> Asked:
        begin, end = (
            None if (one := node.filled(name)) is None else one.integer(least=0, most=2**63 - 1)
            for name in (first, last)
        )
        return replace(asked, connection_ids=(connection_of(node),), first_number=begin, last_number=end)

    return fill


URL_CHARS_MAX, NAMES_MAX = 500, 1_000
_UUID = re.compile(r"urn:uuid:[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_READERS: dict[str, tuple[Operation | Question, Callable[[Asked, Node], Asked]]] = {
    Operation.RESERVE: (Operation.RESERVE, _reserve),
    **{
        one: (one, _of_connection)
        for one in (
            Operation.COMMIT,
            Operation.ABORT,
            Operation.PROVISION,
            Operation.RELEASE,
            Operation.TERMINATE,
        )
    },
    **{one: (one, _query) for one in (Question.SUMMARY, Question.SUMMARY_SYNC, Question.RECURSIVE)},
    Question.NOTIFICATIONS_SYNC: (
        Question.NOTIFICATIONS_SYNC,
        _numbered("startNotificationId", "endNotificationId"),
    ),
    Question.RESULTS_SYNC: (Question.RESULTS_SYNC, _numbered("startResultId", "endResultId")),
}
