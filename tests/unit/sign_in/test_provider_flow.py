"""Signing in and out at a provider, from the redirect to the session."""

import base64
import hashlib
from urllib.parse import parse_qs, urlsplit

from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from unit.sign_in.conftest import SigningIn, refused
from unit.sign_in.provider_stand_in import CLIENT, ISSUER

FROM_HERE = {"Sec-Fetch-Site": "same-origin"}


async def test_a_browser_is_led_to_the_provider_with_a_challenge(signing_in: SigningIn) -> None:
    browser = signing_in.browser()
    answer = await browser.get("/v1/session/oidc")
    there = urlsplit(answer.headers["location"])
    asked = {name: values[0] for name, values in parse_qs(there.query).items()}
    assert f"{there.scheme}://{there.netloc}{there.path}" == f"{ISSUER}/auth"
    assert asked["response_type"] == "code"
    assert (asked["client_id"], asked["scope"]) == (CLIENT, "openid profile")
    assert asked["redirect_uri"] == "http://hub:7371/v1/session/oidc/callback"
    assert asked["code_challenge_method"] == "S256"
    assert len({asked["state"], asked["nonce"], asked["code_challenge"]}) == 3
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("downburst_7371_oidc=")
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Max-Age=600" in cookie
    assert "Secure" not in cookie
    assert "Secure" in (await browser.get("https://hub/v1/session/oidc")).headers["set-cookie"]


async def test_a_user_signs_in_and_out(signing_in: SigningIn, clock: FakeClock) -> None:
    browser = signing_in.browser(headers=FROM_HERE)
    asked = await signing_in.begun(browser, at="sites/unl.edu?days=3")
    assert await signing_in.ended(browser, asked) == "http://hub:7371/#sites/unl.edu?days=3"
    assert await signing_in.who(browser) == ("anna", "viewer", None)
    assert (await browser.get("/v1/overview")).status_code == 200
    ended = (await browser.delete("/v1/session")).json()["continue_at"]
    assert ended.startswith(f"{ISSUER}/logout?")
    assert parse_qs(urlsplit(ended).query) == {
        "client_id": [CLIENT],
        "post_logout_redirect_uri": ["http://hub:7371/"],
    }
    assert await signing_in.who(browser) == (None, None, None)


async def test_the_code_is_exchanged_with_secret_and_verifier(signing_in: SigningIn) -> None:
    browser = signing_in.browser()
    asked = await signing_in.begun(browser)
    await signing_in.ended(browser, asked)
    request = next(one for one in signing_in.provider.asked if one.url.path.endswith("/token"))
    form = {name: values[0] for name, values in parse_qs(request.content.decode()).items()}
    digest = hashlib.sha256(form["code_verifier"].encode()).digest()
    assert base64.urlsafe_b64encode(digest).decode().rstrip("=") == asked["code_challenge"]
    assert (form["grant_type"], form["redirect_uri"]) == ("authorization_code", asked["redirect_uri"])
    name, secret = base64.b64decode(request.headers["authorization"].removeprefix("Basic ")).decode().split(":")
    assert (name, secret) == (CLIENT, "s3cret%20of%2Fthe%20hub")
    assert "client_secret" not in form


async def test_the_secret_goes_into_the_form_where_the_provider_wants_it(signing_in: SigningIn) -> None:
    signing_in.provider.description["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
    await signing_in.signed_in(signing_in.browser())
    request = next(one for one in signing_in.provider.asked if one.url.path.endswith("/token"))
    assert parse_qs(request.content.decode())["client_secret"] == ["s3cret of/the hub"]


async def test_a_session_of_the_provider_is_shorter(signing_in: SigningIn, clock: FakeClock) -> None:
    browser = signing_in.browser()
    await signing_in.signed_in(browser)
    clock.advance(11.9 * 3600)
    assert (await signing_in.who(browser))[0] == "anna"
    clock.advance(0.2 * 3600)
    assert (await signing_in.who(browser))[0] is None


async def test_an_answer_for_another_browser_begins_no_session(signing_in: SigningIn) -> None:
    attacker, victim = signing_in.browser(), signing_in.browser()
    asked = await signing_in.begun(attacker)
    assert await signing_in.ended(victim, asked) == refused("expired")
    await signing_in.begun(victim)
    assert await signing_in.ended(victim, asked) == refused("expired")
    assert await signing_in.who(victim) == (None, None, None)
    assert "token" not in signing_in.provider.paths()


async def test_an_answer_is_taken_once(signing_in: SigningIn) -> None:
    browser = signing_in.browser()
    asked = await signing_in.begun(browser)
    await signing_in.ended(browser, asked)
    assert await signing_in.ended(browser, asked) == refused("expired")


async def test_answers_without_a_good_code_are_refused(signing_in: SigningIn) -> None:
    wanted: list[tuple[dict[str, str], str]] = [
        ({"error": "access_denied"}, "denied"),
        ({"code": ""}, "unverified"),
        ({"code": "guessed"}, "unverified"),
        ({"iss": "https://evil.example"}, "unverified"),
    ]
    for other, code in wanted:
        browser = signing_in.browser()
        assert await signing_in.ended(browser, await signing_in.begun(browser), **other) == refused(code)
    browser = signing_in.browser()
    assert await signing_in.ended(browser, await signing_in.begun(browser), iss=ISSUER) == "http://hub:7371/"


async def test_a_provider_that_names_itself_always_does(signing_in: SigningIn) -> None:
    signing_in.provider.description["authorization_response_iss_parameter_supported"] = True
    assert await signing_in.signed_in(signing_in.browser()) == refused("unverified")


async def test_only_places_on_the_page_are_returned_to(signing_in: SigningIn) -> None:
    """A place is what follows `#` in the page's own address, so it leads nowhere else, whatever it says."""
    browser = signing_in.browser()
    for at in ("//evil.example", "https://evil.example", "sites/unl.edu"):
        place = await signing_in.ended(browser, await signing_in.begun(browser, at))
        assert place == f"http://hub:7371/#{at}"
    for at in ("/\\evil", "a b", "x;y", "a\r\nSet-Cookie:a=b", '"quoted"'):
        answer = await browser.get("/v1/session/oidc", params={"at": at})
        assert (answer.status_code, answer.json()["code"]) == (400, "bad-request"), at


async def test_failed_answers_from_an_address_become_slow(signing_in: SigningIn, clock: FakeClock) -> None:
    browser = signing_in.browser()
    asked = await signing_in.begun(browser)
    for _ in range(30):
        await signing_in.ended(signing_in.browser(), asked)
    assert await signing_in.ended(browser, asked) == refused("too-many")
    clock.advance(61)
    browser = signing_in.browser()
    assert await signing_in.ended(browser, await signing_in.begun(browser)) == "http://hub:7371/"


async def test_sign_ins_and_refusals_are_in_the_audit(signing_in: SigningIn, ledger: Ledger) -> None:
    await signing_in.signed_in(signing_in.browser())
    await signing_in.signed_in(signing_in.browser(), sub="f:2:bo", preferred_username="bo", groups=["strangers"])
    changes = (await signing_in.local().get("/v1/audit")).json()["items"]
    refusal, begun, added = changes[:3]
    assert (refusal["who"], refusal["action"], refusal["after"]["refusal"]) == ("bo", "refused", "no-group")
    assert (refusal["peer"], refusal["role"]) == ("192.0.2.1", None)
    assert (begun["who"], begun["action"], begun["after"]["issuer"]) == ("anna", "signed in", ISSUER)
    assert (added["kind"], added["subject"], added["action"]) == ("user", "anna", "added")


async def test_the_ways_to_sign_in_are_open_to_all(signing_in: SigningIn) -> None:
    ways = (await signing_in.browser().get("/v1/session/ways")).json()
    assert ways["provider"] == {"name": "Weather Login", "problem": None}
    assert "Weather Login" in ways["refusals"]["no-group"]
    assert all(sentence.endswith(".") for sentence in ways["refusals"].values())
