"""Servers of the web that a source asks: logins for recommended data, and addresses of services."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from downburst.foundation.errors import BadInput


@dataclass(frozen=True, slots=True)
class OriginLogin:
    """A login at one server: a user with a password (RFC 7617), or a bearer token (RFC 6750)."""

    host: str
    """Its name, and its port where it is not the usual one of the address: `data.example` or `data.example:8443`."""
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if len(self.host) > LONGEST_HOST or not _HOST.fullmatch(self.host):
            raise BadInput(f"{self.host[:80]!r} is no host of a login; write one such as data.example:8443")
        given = self.user is not None, self.password is not None, self.token is not None
        if given not in {(True, True, False), (False, False, True)}:
            raise BadInput(f"the login at {self.host} needs a user with a password, or a token alone")
        secrets = self.user or "", self.password or "", self.token or ""
        if any(len(one) > LONGEST_SECRET or not one.isprintable() for one in secrets):
            raise BadInput(f"a part of the login at {self.host} is too long, or has control characters")
        if ":" in secrets[0] or not _TOKEN.fullmatch(secrets[2]):
            raise BadInput(f"the login at {self.host} has a colon in its user, or a token with other than ASCII")


def login_for(url: str, logins: Iterable[OriginLogin]) -> OriginLogin | None:
    """The login at the server of an address; None: it needs none here, or the address can't be read."""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        return None
    usual = port is None or port == PORTS.get(parts.scheme.lower())
    host = f"[{host}]" if ":" in host else host
    wanted = host if usual else f"{host}:{port}"
    return next((one for one in logins if one.host == wanted), None)


def check_web_address(url: str, named: str) -> str:
    """An address of HTTP or HTTPS without user, query and fragment; refuses others."""
    try:
        parts = urlsplit(url)
        fits = parts.scheme in PORTS and parts.hostname is not None and parts.port != 0
    except ValueError:
        fits = False
    if not fits or "@" in parts.netloc or parts.query or parts.fragment or not _PLAIN.fullmatch(url):
        raise BadInput(f"{url[:200]!r} is no address of {named}; write one such as https://service.example")
    return url


PORTS = {"http": 80, "https": 443}
MOST_LOGINS = 50
LONGEST_HOST = 260
LONGEST_SECRET = 2_000
LONGEST_WEB_ADDRESS = 500
_HOST = re.compile(r"([a-z0-9]([a-z0-9._-]*[a-z0-9])?|\[[0-9a-f:.]+\])(:[1-9][0-9]{0,4})?")
_TOKEN = re.compile(r"[!-~]*")
_PLAIN = re.compile(r"[!-~]{1,500}")
