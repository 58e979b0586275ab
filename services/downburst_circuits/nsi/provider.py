"""Checks of a provider's record."""

import re

import httpx

from downburst.domain.ordering.providers import Certificate, Provider
from downburst.foundation.errors import BadInput


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
