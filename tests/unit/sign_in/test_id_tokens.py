"""ID tokens: only the provider's signature, for this hub and this attempt, within its time."""

from typing import Any

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, RSAKey

from downburst.foundation.clock import FakeClock
from unit.sign_in.conftest import SigningIn, refused
from unit.sign_in.provider_stand_in import ANNA, CLIENT, EC, ED, RSA, ProviderStandIn

FOR_ANOTHER_PURPOSE: list[dict[str, Any]] = [
    {"iss": "https://evil.example"},
    {"aud": "another client"},
    {"aud": None},
    {"aud": ["another client"]},
    {"aud": [CLIENT, "another client"]},
    {"aud": [CLIENT, "another client"], "azp": "another client"},
    {"azp": "another client"},
    {"nonce": "of another attempt"},
    {"nonce": None},
    {"nonce": ["a", "list"]},
    {"exp": None},
    {"exp": 0},
    {"exp": "tomorrow"},
    {"iat": 4_000_000_000},
    {"iat": None},
    {"nbf": 4_000_000_000},
    {"sub": None},
    {"sub": ""},
    {"sub": "x" * 256},
    {"sub": 7},
]


async def test_a_token_for_another_purpose_is_refused(signing_in: SigningIn) -> None:
    for claims in FOR_ANOTHER_PURPOSE:
        browser = signing_in.browser()
        signing_in.provider.claims = dict(ANNA)
        assert await signing_in.signed_in(browser, **claims) == refused("unverified"), claims
        assert await signing_in.who(browser) == (None, None, None), claims


async def test_a_token_for_several_audiences_names_the_one_that_asked(signing_in: SigningIn) -> None:
    claims = {"aud": [CLIENT, "another client"], "azp": CLIENT}
    assert await signing_in.signed_in(signing_in.browser(), **claims) == "http://hub:7371/"


async def test_clocks_may_differ_by_the_leeway(signing_in: SigningIn, clock: FakeClock) -> None:
    now_s = int(clock.now().timestamp())
    assert await signing_in.signed_in(signing_in.browser(), exp=now_s - 29) == "http://hub:7371/"
    assert await signing_in.signed_in(signing_in.browser(), exp=now_s - 31) == refused("unverified")


async def test_signatures_by_private_keys_are_taken(signing_in: SigningIn, clock: FakeClock) -> None:
    for key, algorithm in ((RSA, "RS256"), (RSA, "PS256"), (EC, "ES256"), (ED, "Ed25519")):
        signing_in.provider.keys, signing_in.provider.algorithm = {"first": key}, algorithm
        assert await signing_in.signed_in(signing_in.browser()) == "http://hub:7371/", algorithm
        clock.advance(601)


async def test_a_signature_by_another_key_is_refused(signing_in: SigningIn, monkeypatch: pytest.MonkeyPatch) -> None:
    other = RSAKey.generate_key(2048)
    monkeypatch.setattr(signing_in.provider, "token", lambda nonce: _signed(signing_in, nonce, other, "RS256"))
    assert await signing_in.signed_in(signing_in.browser()) == refused("unverified")


async def test_a_public_key_is_no_secret_of_an_hmac(signing_in: SigningIn, monkeypatch: pytest.MonkeyPatch) -> None:
    forged = OctKey.import_key(bytes(RSA.as_pem(private=False)).replace(b"-----", b"=====") * 2)
    monkeypatch.setattr(signing_in.provider, "token", lambda nonce: _signed(signing_in, nonce, forged, "HS256"))
    assert await signing_in.signed_in(signing_in.browser()) == refused("unverified")


async def test_tokens_that_are_none_are_refused(signing_in: SigningIn, monkeypatch: pytest.MonkeyPatch) -> None:
    for token in ("", "a.b", "a.b.c", "eyJhbGciOiJub25lIn0.e30.", "x" * 200_000, "é.é.é"):
        monkeypatch.setattr(signing_in.provider, "token", lambda _, token=token: token)
        assert await signing_in.signed_in(signing_in.browser()) == refused("unverified"), token[:30]


async def test_rotated_keys_are_read_again(signing_in: SigningIn, clock: FakeClock) -> None:
    await signing_in.signed_in(signing_in.browser())
    await signing_in.signed_in(signing_in.browser())
    assert signing_in.provider.paths().count("certs") == 1
    signing_in.provider.keys = {"first": RSA, "second": EC}
    signing_in.provider.signs_with, signing_in.provider.algorithm = "second", "ES256"
    clock.advance(1)
    assert await signing_in.signed_in(signing_in.browser()) == "http://hub:7371/"
    assert signing_in.provider.paths().count("certs") == 2


async def test_unknown_key_ids_cause_one_request_a_second(signing_in: SigningIn, clock: FakeClock) -> None:
    await signing_in.signed_in(signing_in.browser())
    signing_in.provider.signs_with = "unknown"
    for _ in range(5):
        assert await signing_in.signed_in(signing_in.browser()) == refused("unverified")
    assert signing_in.provider.paths().count("certs") == 1
    clock.advance(1)
    await signing_in.signed_in(signing_in.browser())
    assert signing_in.provider.paths().count("certs") == 2


async def test_a_withdrawn_key_is_forgotten_within_ten_minutes(signing_in: SigningIn, clock: FakeClock) -> None:
    await signing_in.signed_in(signing_in.browser())
    signing_in.provider.keys = {"second": EC}
    clock.advance(601)
    assert await signing_in.signed_in(signing_in.browser()) == refused("unverified")


async def test_keys_of_other_kinds_are_skipped(signing_in: SigningIn) -> None:
    entries = [
        {"kty": "oct", "k": "c2VjcmV0", "kid": "first"},
        {"kty": "RSA", "kid": "first", "n": "not base64!", "e": "AQAB"},
        {"kty": "EC", "crv": "P-0", "x": "AA", "y": "AA", "kid": "first"},
        {"kty": "new", "kid": "first"},
        {**ECKey.generate_key("P-256").as_dict(private=False), "kid": "first", "use": "enc"},
        "no object",
        {**RSA.as_dict(private=False), "kid": "first", "alg": "RS256", "x5c": ["AA"]},
    ]
    signing_in.provider.answers["certs"] = lambda: httpx.Response(200, json={"keys": entries})
    assert await signing_in.signed_in(signing_in.browser()) == "http://hub:7371/"


def _signed(scene: SigningIn, nonce: str, key: Any, algorithm: str) -> str:
    good = jwt.decode(ProviderStandIn.token(scene.provider, nonce), RSA).claims
    return jwt.encode({"alg": algorithm, "kid": "first"}, good, key, algorithms=[algorithm])
