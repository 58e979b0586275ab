"""The record of a provider: its address and names, our certificate, and the deviations of its software."""

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import httpx

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


def check_provider(provider: Provider) -> None:
    """Raises one sentence if the record can't be used."""
    _check_url(provider)
    for whose, nsa in (("provider", provider.provider_nsa), ("requester", provider.requester_nsa)):
        if len(nsa) > NSA_CHARS_MAX or not _NSA.fullmatch(nsa):
            raise BadInput(f"provider {provider.name}: the {whose}'s NSA {nsa[:80]!r} is not urn:ogf:network:...")
    if provider.certificate is not None:
        _check_files(provider.name, provider.certificate)
    for what, text in (("replyTo", provider.reply_to), ("service type", provider.service_type)):
        if text is not None and (len(text) > URL_CHARS_MAX or not _VISIBLE.fullmatch(text)):
            raise BadInput(f"provider {provider.name}: the {what} {text[:80]!r} is not an address")


def _check_url(provider: Provider) -> None:
    try:
        url = httpx.URL(provider.url if len(provider.url) <= URL_CHARS_MAX else "")
    except httpx.InvalidURL as error:
        raise BadInput(f"provider {provider.name}: the URL {provider.url[:80]!r} can't be read: {error}") from None
    if url.scheme not in ("http", "https") or not url.host or url.userinfo:
        raise BadInput(f"provider {provider.name}: the URL {provider.url[:80]!r} is not https://HOST/PATH")
    if url.scheme == "https" and provider.certificate is None:
        raise BadInput(f"provider {provider.name} has an https URL and no certificate of ours; name its three files")
    if url.scheme == "http" and url.host not in _THIS_MACHINE:
        raise BadInput(
            f"provider {provider.name} would be reached without TLS; only the certificate protects circuits, so "
            "give an https URL, or http://127.0.0.1 of a proxy on this machine"
        )


def _check_files(name: str, files: Certificate) -> None:
    for what, path in (
        ("certificate", files.certificate),
        ("certificate's key", files.key),
        ("authorities' file", files.authorities),
    ):
        if not path.is_file():
            raise BadInput(f"provider {name}: the {what} {path} is not a file; correct the path")


URL_CHARS_MAX, NSA_CHARS_MAX = 500, 255
_NSA = re.compile(r"urn:ogf:network:[!-~]+")
_VISIBLE = re.compile(r"[!-~]+")
_THIS_MACHINE = ("127.0.0.1", "::1", "localhost")
