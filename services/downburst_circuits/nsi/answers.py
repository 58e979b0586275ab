"""Answers of HTTP to requests: typed words, or the reason why the outcome is unknown."""

from downburst_circuits.nsi.refusals import Kind, Problem
from downburst_circuits.nsi.soap.hardened import Unreadable
from downburst_circuits.nsi.soap.reading import read
from downburst_circuits.nsi.transport import Posted
from downburst_circuits.nsi.words import Acknowledged, Fault, Listing, Operation, Results

Answer = Acknowledged | Fault | Listing | Results


def answer(posted: Posted, operation: Operation, provider: str) -> Answer | Problem:
    """The answer to an operation. A page of HTML, or a body that can't be read, leaves the outcome unknown."""
    if posted.status in (401, 403):
        return Problem(
            Kind.CERTIFICATE,
            f"provider {provider} does not accept the hub (HTTP {posted.status}); ask its operator to allow "
            "the hub's certificate",
        )
    try:
        body = read(posted.body).body
    except Unreadable as error:
        return Problem(Kind.UNKNOWN, f"provider {provider} answered with HTTP {posted.status}: {error.sentence}")
    if isinstance(body, Fault):
        return body
    if isinstance(body, Listing | Results | Acknowledged) and isinstance(
        body, _EXPECTED.get(operation, Acknowledged)
    ):
        return body
    return Problem(Kind.UNKNOWN, f"provider {provider} answered {operation} with another operation's answer")


_EXPECTED = {Operation.SUMMARY: Listing, Operation.RESULTS: Results}
