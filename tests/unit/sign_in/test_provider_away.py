"""A provider that is away, slow or absurd: local users and the hub go on, and the sign-in page has the reason."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest

from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst_api.app import create_app
from downburst_api.oidc import web
from factories import runtime
from unit.sign_in.conftest import SigningIn, refused
from unit.sign_in.provider_stand_in import ISSUER


def _raises(error: Exception) -> Callable[[], httpx.Response]:
    def answer() -> httpx.Response:
        raise error

    return answer


class Endless(httpx.AsyncByteStream):
    """A body without an end; counts the bytes that were read."""

    def __init__(self) -> None:
        self.read = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            self.read += 65_536
            yield b" " * 65_536


REFUSED = _raises(httpx.ConnectError("connection refused"))


FAULTS: list[tuple[Callable[[], httpx.Response], str]] = [
    (REFUSED, "can't be reached: connection refused"),
    (lambda: httpx.Response(503, json={}), "answers with status 503"),
    (lambda: httpx.Response(302, headers={"location": "https://evil.example"}, json={}), "status 302"),
    (lambda: httpx.Response(200, text="<html>"), "something other than a JSON object"),
    (lambda: httpx.Response(200, text="[" * 100_000), "something other than a JSON object"),
    (lambda: httpx.Response(200, json={"issuer": "https://evil.example"}), "calls itself 'https://evil.example'"),
    (lambda: httpx.Response(200, json={"issuer": ISSUER}), "no address authorization_endpoint"),
    (lambda: httpx.Response(200, stream=Endless()), "more than 524288 bytes"),
]


async def test_the_sign_in_page_has_the_reason(signing_in: SigningIn, clock: FakeClock) -> None:
    browser = signing_in.browser()
    for answer, reason in FAULTS:
        signing_in.provider.answers["openid-configuration"] = answer
        problem = (await browser.get("/v1/session/ways")).json()["provider"]["problem"]
        assert problem.startswith("Weather Login is not available: "), reason
        assert reason in problem
        answered = await browser.get("/v1/session/oidc")
        assert answered.headers["location"] == "../../../#sign-in-refused=unreachable"
        clock.advance(11)


async def test_endpoints_are_https(signing_in: SigningIn, clock: FakeClock) -> None:
    for url in ("http://login.example/auth", "javascript:alert(1)", "https://a@b.example", 7):
        signing_in.provider.description["token_endpoint"] = url
        problem = (await signing_in.browser().get("/v1/session/ways")).json()["provider"]["problem"]
        assert "token_endpoint" in problem, url
        clock.advance(11)


async def test_a_provider_that_never_answers_is_given_up(
    signing_in: SigningIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: object, **__: object) -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(web, "ANSWER_S", 0.01)
    monkeypatch.setattr(httpx.AsyncClient, "send", never)
    provider = signing_in.app.state.provider
    assert "did not answer within" in await provider.problem()


async def test_many_requests_ask_an_absent_provider_once(signing_in: SigningIn, clock: FakeClock) -> None:
    signing_in.provider.answers["openid-configuration"] = REFUSED
    browser = signing_in.browser()
    await asyncio.gather(*(browser.get("/v1/session/ways") for _ in range(20)))
    assert len(signing_in.provider.asked) == 1
    clock.advance(11)
    del signing_in.provider.answers["openid-configuration"]
    assert (await browser.get("/v1/session/ways")).json()["provider"]["problem"] is None
    clock.advance(59)
    await browser.get("/v1/session/ways")
    assert len(signing_in.provider.asked) == 2
    clock.advance(2)
    signing_in.provider.answers["openid-configuration"] = REFUSED
    assert (await browser.get("/v1/session/ways")).json()["provider"]["problem"] is not None


async def test_a_user_signs_out_here_while_the_provider_is_away(signing_in: SigningIn, clock: FakeClock) -> None:
    browser = signing_in.browser(headers={"Sec-Fetch-Site": "same-origin"})
    await signing_in.signed_in(browser)
    signing_in.provider.answers["openid-configuration"] = REFUSED
    clock.advance(61)
    assert (await browser.delete("/v1/session")).json() == {"continue_at": None}
    assert (await signing_in.who(browser))[0] is None


async def test_a_provider_without_a_page_to_sign_out_is_left_alone(signing_in: SigningIn) -> None:
    signing_in.provider.description["end_session_endpoint"] = None
    browser = signing_in.browser(headers={"Sec-Fetch-Site": "same-origin"})
    await signing_in.signed_in(browser)
    assert (await browser.delete("/v1/session")).json() == {"continue_at": None}


async def test_token_and_keys_are_bounded_too(signing_in: SigningIn, clock: FakeClock) -> None:
    for name in ("token", "certs"):
        signing_in.provider.answers = {name: lambda: httpx.Response(200, stream=Endless())}
        assert await signing_in.signed_in(signing_in.browser()) == refused("unreachable")
        clock.advance(11)


async def test_a_hub_without_a_provider_has_passwords_alone(tmp_path: Path, ledger: Ledger, clock: FakeClock) -> None:
    made, _ = runtime(tmp_path / "plain", ledger, clock)
    transport = httpx.ASGITransport(create_app(made), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://hub") as client:
        assert (await client.get("/v1/session/ways")).json() == {"provider": None, "refusals": {}}
        for path in ("/v1/session/oidc", "/v1/session/oidc/callback"):
            answer = await client.get(path)
            assert (answer.status_code, answer.json()["code"]) == (404, "not-found")
