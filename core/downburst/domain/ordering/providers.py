"""Records of other networks' providers of circuits, which are asked by NSI."""

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

from downburst.foundation.errors import BadInput


class Dialect(StrEnum):
    """The form in which a provider takes a change of a reservation."""

    CAPACITY = "capacity"
    """The standard's: the capacity alone."""
    P2PS = "p2ps"
    """A service element with the capacity, and always both times: SuPA behind PolyNSI, OSCARS."""
    NONE = "none"
    """It takes none: a second reservation is made before the first is removed (OpenNSA)."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """Files in PEM for TLS."""

    certificate: Path
    """The client's."""
    key: Path
    authorities: Path
    """The authorities that the provider's certificate is verified with."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider agent of the Connection Service."""

    name: str
    url: str
    """Of the service, such as https://nsi.example.net/soap/connection/provider."""
    provider_nsa: str
    requester_nsa: str
    dialect: Dialect = Dialect.CAPACITY
    certificate: Certificate | None = None
    """None: an address of this machine without TLS, for a proxy that adds it."""
    reply_to: str | None = None
    """The address named for callbacks. OpenNSA wants one, even if nothing listens there."""
    service_type: str = "http://services.ogf.org/nsi/2013/12/descriptions/EVTS.A-GOLE"


def checked_provider(provider: Provider) -> Provider:
    """The record; raises one sentence if an address or a name in it is impossible. Files are read when it is used."""
    _check_url(provider)
    for whose, nsa in (("provider", provider.provider_nsa), ("requester", provider.requester_nsa)):
        if len(nsa) > NSA_CHARS_MAX or not _NSA.fullmatch(nsa):
            raise BadInput(f"provider {provider.name}: the {whose}'s NSA {nsa[:80]!r} is not urn:ogf:network:...")
    for what, text in (("replyTo", provider.reply_to), ("service type", provider.service_type)):
        if text is not None and (len(text) > URL_CHARS_MAX or not _VISIBLE.fullmatch(text)):
            raise BadInput(f"provider {provider.name}: the {what} {text[:80]!r} is not an address")
    return provider


def _check_url(provider: Provider) -> None:
    try:
        url = urlsplit(
            provider.url if len(provider.url) <= URL_CHARS_MAX and _VISIBLE.fullmatch(provider.url) else ""
        )
        port = url.port
    except ValueError as error:
        raise BadInput(f"provider {provider.name}: the URL {provider.url[:80]!r} can't be read: {error}") from None
    if url.scheme not in ("http", "https") or not url.hostname or url.username is not None or port == 0:
        raise BadInput(f"provider {provider.name}: the URL {provider.url[:80]!r} is not https://HOST/PATH")
    if url.scheme == "https" and provider.certificate is None:
        raise BadInput(f"provider {provider.name} has an https URL and no certificate of ours; name its three files")
    if url.scheme == "http" and url.hostname not in _THIS_MACHINE:
        raise BadInput(
            f"provider {provider.name} would be reached without TLS; only the certificate protects circuits, so "
            "give an https URL, or http://127.0.0.1 of a proxy on this machine"
        )


URL_CHARS_MAX, NSA_CHARS_MAX = 500, 255
_NSA = re.compile(r"urn:ogf:network:[!-~]+")
_VISIBLE = re.compile(r"[!-~]+")
_THIS_MACHINE = ("127.0.0.1", "::1", "localhost")
