"""Settings of sign-in by a provider of OpenID Connect."""

import ssl
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from downburst.domain.access import Grant
from downburst.foundation.errors import BadInput
from downburst.settings.section import Section

_Claim = Annotated[str, Field(min_length=1, max_length=100)]
_Group = Annotated[str, Field(min_length=1, max_length=256)]


class OidcSettings(Section):
    """A provider of OpenID Connect at which users may sign in; without an issuer there is none."""

    issuer: str = Field(
        default="",
        max_length=500,
        description="Address of the provider, as it names itself: https://login.example/realms/weather. Plain HTTP "
        "is accepted for loopback addresses alone. Empty: users sign in with passwords only.",
    )
    client_id: str = Field(default="", max_length=200, description="Name under which the provider knows this hub.")
    client_secret_file: Path | None = Field(
        default=None,
        description="File with the client's secret. None: a public client, protected by PKCE alone.",
    )
    display_name: str = Field(
        default="single sign-on",
        min_length=1,
        max_length=60,
        description="Name of the provider on the sign-in page: Sign in with NAME.",
    )
    scopes: tuple[Annotated[str, Field(pattern=r"^[!#-\[\]-~]{1,100}$")], ...] = Field(
        default=("openid", "profile"),
        max_length=20,
        description="Scopes to request, with `openid`. Some providers send groups only for a scope `groups`.",
    )
    name_claim: _Claim = Field(
        default="preferred_username", description="Claim of the ID token that becomes the name of a new user."
    )
    groups_claim: _Claim = Field(default="groups", description="Claim of the ID token that lists the user's groups.")
    roles: dict[_Group, str] = Field(
        default_factory=dict,
        max_length=1_000,
        description="Role by group: viewer, operator, admin, or site:NAME for the administrator of a site. A user "
        "without such a group is refused.",
    )
    session_hours: float = Field(
        default=12.0,
        gt=0,
        le=8_784,
        description="Hours until such a user has to sign in again. Groups are read at sign-in only, so this is the "
        "time in which a change of groups takes effect.",
    )
    leeway_s: int = Field(
        default=30,
        ge=0,
        le=300,
        description="Seconds by which the provider's clock may differ from the hub's. A longer leeway would accept "
        "ID tokens long after their expiry.",
    )
    ca_file: Path | None = Field(
        default=None,
        description="PEM file of a private authority of the provider's certificate, beside the system's authorities.",
    )
    public_url: str = Field(
        default="",
        max_length=300,
        description="Address of this hub in browsers, such as https://hub.example/weather, where a proxy changes "
        "host or path. Empty: the address of the request.",
    )

    @field_validator("issuer", "public_url")
    @classmethod
    def _is_address(cls, url: str) -> str:
        if url:
            check_endpoint(url)
        return url

    @field_validator("roles")
    @classmethod
    def _are_grants(cls, roles: dict[str, str]) -> dict[str, str]:
        for group, text in roles.items():
            try:
                Grant.parsed(text)
            except BadInput as error:
                raise ValueError(f"group {group!r}: {error.sentence}") from error
        return roles

    @field_validator("client_secret_file")
    @classmethod
    def _has_secret(cls, file: Path | None) -> Path | None:
        if file is not None:
            read_secret(file)
        return file

    @field_validator("ca_file")
    @classmethod
    def _has_certificates(cls, file: Path | None) -> Path | None:
        if file is not None:
            try:
                ssl.create_default_context().load_verify_locations(file)
            except OSError as error:
                raise ValueError(f"{file} has no certificates in PEM that can be read ({error.strerror})") from error
        return file

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if self.issuer and not self.client_id:
            raise ValueError("a provider needs client_id, the name under which it knows this hub")
        if self.issuer and not self.roles:
            raise ValueError("a provider needs roles by group, because a user without a mapped group is refused")
        if "openid" not in self.scopes:
            raise ValueError("scopes need openid, without which a provider sends no ID token")
        return self

    @property
    def grants(self) -> Mapping[str, Grant]:
        """Grants by group."""
        return {group: Grant.parsed(text) for group, text in self.roles.items()}


def check_endpoint(url: str) -> str:
    """Refuses an address with `ValueError` unless it is HTTPS, or HTTP at a loopback address."""
    parts = urlsplit(url)
    is_plain = parts.scheme == "http" and is_loopback(parts.hostname or "")
    if not parts.hostname or not (parts.scheme == "https" or is_plain):
        raise ValueError(f"{url[:100]!r} is no address by HTTPS; write one as https://login.example")
    if parts.username or parts.fragment or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError(f"{url[:100]!r} has a user, a fragment or characters that addresses can't have")
    return url


def is_loopback(host: str) -> bool:
    """True for this machine's own addresses, where plain HTTP leaves no machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_secret(file: Path) -> str:
    """The secret in a file, without the end of its line; raises `ValueError` if there is none."""
    try:
        secret = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} has no secret that can be read ({error})") from error
    if not secret or len(secret) > LONGEST_SECRET:
        raise ValueError(f"{file} has no secret of 1 to {LONGEST_SECRET} characters")
    return secret


LONGEST_SECRET = 4_096
