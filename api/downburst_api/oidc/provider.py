"""The provider of OpenID Connect at which users of this hub sign in."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import httpx
from joserfc.jwk import Key

from downburst.foundation.clock import Clock
from downburst.settings.oidc import OidcSettings, read_secret
from downburst_api.oidc.attempts import Attempt
from downburst_api.oidc.id_tokens import Expected, key_id, signing_keys, verified
from downburst_api.oidc.metadata import Metadata, discovery_url
from downburst_api.oidc.refusals import Refusal, SignInRefused
from downburst_api.oidc.web import Web


class Provider:
    """Reads the provider's description and keys when a user signs in; the hub starts and works without them."""

    def __init__(
        self, settings: OidcSettings, clock: Clock, *, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self.settings = settings
        self._clock = clock
        self._web = Web(ca_file=settings.ca_file, transport=transport)
        self._reading = asyncio.Lock()
        self._metadata: Metadata | None = None
        self._failure: str | None = None
        self._read_at_s = -FRESH_S
        self._keys: Sequence[Key] = ()
        self._keys_at_s = -KEYS_FRESH_S

    async def metadata(self) -> Metadata:
        """The provider's description, at most `FRESH_S` old; raises `SignInRefused` while there is none.

        A failure is remembered for `AGAIN_S`, so that requests without a login cause few connections.
        """
        async with self._reading:
            age_s = self._clock.monotonic_s() - self._read_at_s
            if age_s >= (FRESH_S if self._failure is None else AGAIN_S):
                await self._read()
            if self._failure is not None or self._metadata is None:
                raise SignInRefused(Refusal.UNREACHABLE, self._failure or "the provider was not asked yet")
            return self._metadata

    async def problem(self) -> str | None:
        """Why a sign-in at the provider would fail now, in one sentence; None: it would not."""
        try:
            await self.metadata()
        except SignInRefused as error:
            return f"{self.settings.display_name} is not available: {error.reason}"
        return None

    async def sign_in_url(self, attempt: Attempt, callback: str) -> str:
        """The provider's page for one attempt to sign in."""
        metadata = await self.metadata()
        asked = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": callback,
            "scope": " ".join(self.settings.scopes),
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": attempt.challenge,
            "code_challenge_method": "S256",
        }
        return _with_query(metadata.authorization_endpoint, asked)

    async def sign_out_url(self, hub: str) -> str | None:
        """The provider's page that ends its own session and leads back to the hub; None if it has none.

        No ID token is kept as a hint, so the provider may ask the user for confirmation.
        """
        try:
            endpoint = (await self.metadata()).end_session_endpoint
        except SignInRefused:
            return None
        if endpoint is None:
            return None
        return _with_query(endpoint, {"client_id": self.settings.client_id, "post_logout_redirect_uri": hub})

    async def claims(self, code: str, attempt: Attempt, callback: str) -> dict[str, Any]:
        """The verified claims of the person for whom the provider issued a code."""
        token = await self._id_token(code, attempt, callback)
        metadata = await self.metadata()
        keys = await self._keys_with(key_id(token), metadata)
        expected = Expected(metadata.issuer, self.settings.client_id, attempt.nonce, self.settings.leeway_s)
        return verified(token, keys, expected, self._clock.now())

    async def _read(self) -> None:
        issuer = self.settings.issuer
        try:
            self._metadata = Metadata.parsed(await self._web.get(discovery_url(issuer)), issuer)
            self._failure = None
        except SignInRefused as error:
            self._failure = error.reason
        self._read_at_s = self._clock.monotonic_s()

    async def _id_token(self, code: str, attempt: Attempt, callback: str) -> str:
        metadata = await self.metadata()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": callback,
            "code_verifier": attempt.verifier,
        }
        auth, identity = self._client_authentication(metadata)
        status, answer = await self._web.post(metadata.token_endpoint, form | identity, auth)
        if status != httpx.codes.OK:
            fault = str(answer.get("error", f"status {status}"))[:200]
            raise SignInRefused(Refusal.UNVERIFIED, f"the provider does not exchange the code: {fault}")
        token = answer.get("id_token")
        if not isinstance(token, str) or not token.isascii():
            raise SignInRefused(Refusal.UNVERIFIED, "the provider's answer has no ID token; check access.oidc.scopes")
        return token

    def _client_authentication(self, metadata: Metadata) -> tuple[httpx.Auth | None, dict[str, str]]:
        """The proof that this hub is the client (RFC 6749, 2.3.1): a header, or further members of the form."""
        client_id, file = self.settings.client_id, self.settings.client_secret_file
        if file is None:
            return None, {"client_id": client_id}
        try:
            secret = read_secret(file)
        except ValueError as error:
            raise SignInRefused(Refusal.FAILED, str(error)) from error
        if metadata.takes_basic:
            return httpx.BasicAuth(quote(client_id, safe=""), quote(secret, safe="")), {}
        return None, {"client_id": client_id, "client_secret": secret}

    async def _keys_with(self, wanted: str | None, metadata: Metadata) -> Sequence[Key]:
        """The provider's keys. An unknown id has them read again, because providers rotate their keys."""
        async with self._reading:
            age_s = self._clock.monotonic_s() - self._keys_at_s
            is_known = wanted is None or any(key.kid == wanted for key in self._keys)
            if age_s >= KEYS_FRESH_S or (not is_known and age_s >= KEYS_AGAIN_S):
                self._keys = signing_keys(await self._web.get(metadata.jwks_uri))
                self._keys_at_s = self._clock.monotonic_s()
            return self._keys


def _with_query(url: str, asked: Mapping[str, str]) -> str:
    """An address with further parameters; it may have some already."""
    mark = "&" if urlsplit(url).query else "?"
    return f"{url}{mark}{urlencode(asked)}"


FRESH_S = 60.0
"""The sign-in page learns within a minute that the provider is away."""
AGAIN_S = 10.0
KEYS_AGAIN_S = 1.0
"""Only tokens that came from the provider itself lead to a further request, so a short pause is enough."""
KEYS_FRESH_S = 600.0
"""A key that the provider withdraws is accepted no longer than this."""
