"""Verification of ID tokens: signature, issuer, audience, times and nonce (OpenID Connect Core 1.0, 3.1.3.7)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hmac import compare_digest
from typing import Any

from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey

from downburst_api.oidc.refusals import Refusal, SignInRefused


@dataclass(frozen=True, slots=True)
class Expected:
    """The values that an ID token must have."""

    issuer: str
    client_id: str
    nonce: str
    leeway_s: int


def verified(token: str, keys: Sequence[Key], expected: Expected, now: datetime) -> dict[str, Any]:
    """The claims of a valid ID token; raises `SignInRefused` with the first fault otherwise."""
    try:
        key = _key(keys, key_id(token))
        found = jwt.decode(token, key, algorithms=ALGORITHMS, registry=_registry())
        _claims_registry(expected, now).validate(found.claims)
    except (JoseError, ValueError) as error:
        raise _unverified(f"the ID token is not valid: {error}") from error
    _check_nonce(found.claims, expected.nonce)
    _check_party(found.claims, expected.client_id)
    return found.claims


def key_id(token: str) -> str | None:
    """The id of the key that signed a token, as its header says; nothing is verified yet."""
    try:
        header = jws.extract_compact(token.encode(), registry=_registry()).headers()
    except (JoseError, ValueError) as error:
        raise _unverified(f"the ID token can't be read: {error}") from error
    found = header.get("kid")
    return found if isinstance(found, str) else None


def signing_keys(document: dict[str, Any]) -> list[Key]:
    """The keys of a JWKS document that may sign ID tokens; keys of other kinds and uses are skipped."""
    entries = document.get("keys")
    if not isinstance(entries, list):
        raise SignInRefused(Refusal.UNREACHABLE, "the provider's JWKS document has no list of keys")
    found = (_imported(entry) for entry in entries[:MOST_KEYS] if isinstance(entry, dict))
    return [key for key in found if key is not None]


def _imported(entry: dict[str, Any]) -> Key | None:
    """A public key. Symmetric ones are skipped: whoever reads the document could sign with them."""
    kind = _KINDS.get(str(entry.get("kty")))
    if kind is None or entry.get("use", "sig") != "sig":
        return None
    try:
        return kind.import_key(entry)
    except (JoseError, ValueError, TypeError, KeyError):
        return None


def _key(keys: Sequence[Key], wanted: str | None) -> Key:
    """The key of this id; a token may lack an id only if there is one key."""
    found = [key for key in keys if wanted is None or key.kid == wanted]
    if len(found) != 1:
        raise _unverified(f"{len(found)} of the provider's keys have the id {str(wanted)[:100]!r} of the ID token")
    return found[0]


def _claims_registry(expected: Expected, now: datetime) -> jwt.JWTClaimsRegistry:
    return jwt.JWTClaimsRegistry(
        now=int(now.timestamp()),
        leeway=expected.leeway_s,
        iss={"essential": True, "value": expected.issuer},
        aud={"essential": True, "value": expected.client_id},
        sub={"essential": True},
        exp={"essential": True},
        iat={"essential": True},
    )


def _check_nonce(claims: dict[str, Any], nonce: str) -> None:
    found = claims.get("nonce")
    if not isinstance(found, str) or not compare_digest(found.encode(), nonce.encode()):
        raise _unverified("the ID token has another nonce: it belongs to another sign-in")


def _check_party(claims: dict[str, Any], client_id: str) -> None:
    """A token for several audiences names the one that asked for it."""
    party, audience = claims.get("azp"), claims.get("aud")
    if party is None and not (isinstance(audience, list) and len(audience) > 1):
        return
    if party != client_id:
        raise _unverified("the ID token was issued to another client (azp)")


def _registry() -> jws.JWSRegistry:
    """Bounds of a token's parts; headers may have members of the provider's own."""
    registry = jws.JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
    registry.max_header_length = LONGEST_HEADER
    return registry


def _unverified(reason: str) -> SignInRefused:
    return SignInRefused(Refusal.UNVERIFIED, reason)


ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA")
"""Signatures by a private key. `none` and HMAC are left out."""
LONGEST_HEADER = 8_192
MOST_KEYS = 100
_KINDS: dict[str, type[RSAKey | ECKey | OKPKey]] = {"RSA": RSAKey, "EC": ECKey, "OKP": OKPKey}
