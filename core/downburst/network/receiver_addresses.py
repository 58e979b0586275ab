"""Syntax of a receiver's address: checked on input, and again before use."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from downburst.domain.alarms import ReceiverKind
from downburst.foundation.errors import BadInput


@dataclass(frozen=True, slots=True)
class WebAddress:
    """The destination of an address with http:// or https://."""

    host: str
    """A name in ASCII, or an IP address without brackets."""
    port: int


def web_address(text: str, *, what: str = "`address`") -> WebAddress:
    """The destination of a URL; raises `BadInput` with a one-sentence reason if it is unusable."""
    if _UNPRINTABLE.search(text):
        raise BadInput(f"{what} holds a space, a line break or a control character; write the URL without it")
    try:
        parts, known = urlsplit(text), httpx.URL(text)
        port, host = parts.port, known.raw_host.decode("ascii")
    except (ValueError, httpx.InvalidURL) as error:
        raise BadInput(f"{what} is not a URL ({error}); {_EXAMPLE}") from None
    if parts.scheme not in _PORTS:
        raise BadInput(f"{what} needs http:// or https:// in front; {_EXAMPLE}")
    # If two parsers disagree on the host, one host is checked and another one is connected to.
    same = not (parts.hostname or "").isascii() or parts.hostname == host
    if port == 0 or not same or not _HOST.fullmatch(host) or len(host) > LONGEST_HOST:
        raise BadInput(f"{what} names no host and port that can be connected to; {_EXAMPLE}")
    return WebAddress(host, port or _PORTS[parts.scheme])


def check_address(kind: ReceiverKind, address: str) -> None:
    """Refuses an address that can't be used for receivers of the kind."""
    if kind is ReceiverKind.MAIL:
        check_mail_address(address)
    else:
        web_address(address)


def check_mail_address(text: str) -> None:
    """Refuses anything but a single address such as ops@example.edu."""
    if _MAIL.fullmatch(text) is None or len(text) > LONGEST_MAIL:
        raise BadInput(
            "`address` is not a single mail address such as ops@example.edu in plain characters; correct it"
        )


_EXAMPLE = "write it as https://host.example.edu/path"
_PORTS = {"http": 80, "https": 443}
_UNPRINTABLE = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029\ufeff\\]")
_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_.])?|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*")
_MAIL = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")
LONGEST_HOST = 253
LONGEST_MAIL = 254
