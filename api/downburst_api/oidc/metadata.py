"""The provider's own description: OpenID Connect Discovery 1.0."""

from dataclasses import dataclass
from typing import Any, Self

from downburst.settings.oidc import check_endpoint
from downburst_api.oidc.refusals import Refusal, SignInRefused


@dataclass(frozen=True, slots=True)
class Metadata:
    """The parts of a provider's description that a sign-in uses; each address is by HTTPS, or of this machine."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    end_session_endpoint: str | None
    """Signs a user out at the provider; None: it can't."""
    takes_basic: bool
    """True if the client's secret goes into the header Authorization, false if into the form."""
    names_itself: bool
    """True if its answers carry the parameter `iss` (RFC 9207)."""

    @classmethod
    def parsed(cls, document: dict[str, Any], issuer: str) -> Self:
        """Checks a description; raises `SignInRefused` if it is another issuer's, or lacks an address."""
        if document.get("issuer") != issuer:
            named = str(document.get("issuer"))[:200]
            raise _unusable(f"the provider calls itself {named!r}, and access.oidc.issuer is {issuer!r}")
        methods = document.get("token_endpoint_auth_methods_supported")
        return cls(
            issuer,
            _endpoint(document, "authorization_endpoint"),
            _endpoint(document, "token_endpoint"),
            _endpoint(document, "jwks_uri"),
            None if document.get("end_session_endpoint") is None else _endpoint(document, "end_session_endpoint"),
            not isinstance(methods, list) or "client_secret_basic" in methods,
            document.get("authorization_response_iss_parameter_supported") is True,
        )


def discovery_url(issuer: str) -> str:
    """The address of an issuer's description."""
    return issuer.rstrip("/") + "/.well-known/openid-configuration"


def _endpoint(document: dict[str, Any], name: str) -> str:
    url = document.get(name)
    if not isinstance(url, str) or len(url) > LONGEST_URL:
        raise _unusable(f"the provider's description has no address {name}")
    try:
        return check_endpoint(url)
    except ValueError as error:
        raise _unusable(f"the provider's {name}: {error}") from error


def _unusable(reason: str) -> SignInRefused:
    return SignInRefused(Refusal.UNREACHABLE, reason)


LONGEST_URL = 1_000
