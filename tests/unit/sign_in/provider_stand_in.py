"""A provider of OpenID Connect in memory, behind an HTTP transport; it signs with keys of its own."""

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import httpx
from joserfc import jwt
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey

from downburst.foundation.clock import FakeClock
from downburst.settings.oidc import OidcSettings

if TYPE_CHECKING:
    from collections.abc import Callable

ISSUER = "https://login.example/realms/weather"
CLIENT = "downburst"
ROLES = {
    "forecasters": "viewer",
    "operators": "operator",
    "admins": "admin",
    "unl": "site:unl.edu",
    "other": "site:other.edu",
    "gone": "site:gone.edu",
}
# Made once: a key takes a quarter of a second.
RSA, EC, ED = RSAKey.generate_key(2048), ECKey.generate_key("P-256"), OKPKey.generate_key("Ed25519")
ANNA = {"sub": "f:1:anna", "preferred_username": "anna", "groups": ["forecasters"]}


def oidc_settings(**given: Any) -> OidcSettings:
    chosen = {"issuer": ISSUER, "client_id": CLIENT, "display_name": "Weather Login", "roles": ROLES}
    return OidcSettings(**chosen | given)


class ProviderStandIn:
    """Issues a code for each redirect, and an ID token for each code; tests set the differences from a good one."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.keys: dict[str, Key] = {"first": RSA}
        self.signs_with = "first"
        self.algorithm = "RS256"
        self.claims: dict[str, Any] = dict(ANNA)
        self.description: dict[str, Any] = {}
        self.answers: dict[str, Callable[[], httpx.Response]] = {}
        self.asked: list[httpx.Request] = []
        self.nonces: dict[str, str] = {}

    def transport(self) -> httpx.AsyncBaseTransport:
        return httpx.MockTransport(self._answer)

    def paths(self) -> list[str]:
        """The last parts of the paths asked, in order."""
        return [request.url.path.rsplit("/", 1)[1] for request in self.asked]

    def redirected(self, url: str) -> dict[str, str]:
        """A browser comes with these parameters; the code follows from its challenge."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        self.nonces[asked["code_challenge"]] = asked["nonce"]
        return asked

    def token(self, nonce: str) -> str:
        now = int(self.clock.now().timestamp())
        claims = {"iss": ISSUER, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": nonce} | self.claims
        kept = {name: value for name, value in claims.items() if value is not None}
        header = {"alg": self.algorithm, "kid": self.signs_with}
        key = self.keys.get(self.signs_with, RSA)
        return jwt.encode(header, kept, key, algorithms=[self.algorithm])

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        name = request.url.path.rsplit("/", 1)[1]
        own = self.answers.get(name)
        return _streamed(own() if own else getattr(self, f"_{name.replace('-', '_')}")(request))

    def _openid_configuration(self, _: httpx.Request) -> httpx.Response:
        endpoints = {
            "authorization_endpoint": f"{ISSUER}/auth",
            "token_endpoint": f"{ISSUER}/token",
            "jwks_uri": f"{ISSUER}/certs",
            "end_session_endpoint": f"{ISSUER}/logout",
        }
        return httpx.Response(200, json={"issuer": ISSUER, **endpoints} | self.description)

    def _certs(self, _: httpx.Request) -> httpx.Response:
        keys = [key.as_dict(private=False) | {"kid": name, "use": "sig"} for name, key in self.keys.items()]
        return httpx.Response(200, json={"keys": keys})

    def _token(self, request: httpx.Request) -> httpx.Response:
        form = {name: values[0] for name, values in parse_qs(request.content.decode()).items()}
        nonce = self.nonces.get(form["code"].removeprefix("code of "))
        if nonce is None:
            return httpx.Response(400, json={"error": "invalid_grant"})
        return httpx.Response(
            200, json={"access_token": "unused", "token_type": "Bearer", "id_token": self.token(nonce)}
        )


def _streamed(answer: httpx.Response) -> httpx.Response:
    """The answer as it comes from a network, in pieces that are not read yet."""
    if not answer.is_stream_consumed:
        return answer
    return httpx.Response(answer.status_code, headers=answer.headers, stream=httpx.ByteStream(answer.content))
