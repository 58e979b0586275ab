"""Incoming callbacks: SOAP to a typed message and its acknowledgment.

They are optional: the provider's list alone carries every order. The endpoint of HTTP has to admit only clients with
a certificate of the provider.
"""

from downburst.domain.ordering.providers import Provider
from downburst.foundation.errors import Refused
from downburst_circuits.nsi.soap.hardened import Unreadable
from downburst_circuits.nsi.soap.reading import read
from downburst_circuits.nsi.soap.writing import acknowledgment
from downburst_circuits.nsi.words import Acknowledged, Fault, Header, Listing, Message, Results


def incoming(data: bytes, provider: Provider) -> tuple[Message, bytes]:
    """The message and the body of its answer; raises one sentence if it can't be used or names other NSAs."""
    message = read(data)
    if isinstance(message.body, Acknowledged | Fault | Listing | Results) or message.header is None:
        raise Unreadable("the message is the answer to a request, not a callback")
    _check_names(message.header, provider)
    return message, acknowledgment(message.header)


def _check_names(header: Header, provider: Provider) -> None:
    if header.provider_nsa != provider.provider_nsa:
        raise Refused(f"the callback names the provider {header.provider_nsa[:80]}, not {provider.provider_nsa}")
    if header.requester_nsa != provider.requester_nsa:
        raise Refused(f"the callback is for {header.requester_nsa[:80]}, not for {provider.requester_nsa}")
