"""Who is let in by a provider, as whom, and with which role."""

from typing import Any

import pytest

from downburst.domain.access import Grant, Role, SeveralSites, User, grant_of
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import BadInput
from downburst.ledger import Ledger
from unit.sign_in.conftest import SigningIn, refused
from unit.sign_in.provider_stand_in import ANNA, ISSUER, ROLES

IN = "http://hub:7371/"


async def test_the_widest_role_of_the_groups_is_taken(signing_in: SigningIn) -> None:
    wanted: list[tuple[object, str, str | None]] = [
        (["forecasters"], "viewer", None),
        (["strangers", "operators", "forecasters"], "operator", None),
        (["admins", "unl", "other"], "admin", None),
        (["unl"], "site", "unl.edu"),
        ("operators", "operator", None),
    ]
    for groups, role, site in wanted:
        browser = signing_in.browser()
        assert await signing_in.signed_in(browser, groups=groups) == IN
        assert await signing_in.who(browser) == ("anna", role, site)


async def test_a_person_who_fits_no_user_is_refused(signing_in: SigningIn, ledger: Ledger) -> None:
    for claims, code in UNFIT:
        signing_in.provider.claims = dict(ANNA)
        assert await signing_in.signed_in(signing_in.browser(), **claims) == refused(code), claims
    with ledger.transaction() as tx:
        assert tx.access.users.all() == []


UNFIT: list[tuple[dict[str, Any], str]] = [
    ({"groups": []}, "no-group"),
    ({"groups": None}, "no-group"),
    ({"groups": {"operators": True}}, "no-group"),
    ({"groups": [["operators"], 7]}, "no-group"),
    ({"groups": ["OPERATORS"]}, "no-group"),
    ({"groups": ["unl", "other"]}, "several-sites"),
    ({"groups": ["gone"]}, "no-site"),
    ({"preferred_username": None}, "bad-name"),
    ({"preferred_username": "local"}, "bad-name"),
    ({"preferred_username": "two words"}, "bad-name"),
    ({"preferred_username": ["anna"]}, "bad-name"),
]


async def test_the_role_is_taken_anew_at_each_sign_in(signing_in: SigningIn) -> None:
    before, after = signing_in.browser(), signing_in.browser()
    await signing_in.signed_in(before, groups=["admins"])
    await signing_in.signed_in(after, groups=["forecasters"])
    assert await signing_in.who(after) == ("anna", "viewer", None)
    assert await signing_in.who(before) == (None, None, None)


async def test_a_local_user_is_never_taken_over(signing_in: SigningIn, ledger: Ledger) -> None:
    with ledger.transaction() as tx:
        tx.access.users.add(User("anna", Role.ADMIN, password_hash="hash"))
    browser = signing_in.browser()
    assert await signing_in.signed_in(browser, groups=["admins"]) == refused("name-taken")
    with ledger.transaction() as tx:
        assert tx.access.users.one("anna").is_local


async def test_a_user_is_a_subject_and_not_a_name(signing_in: SigningIn) -> None:
    await signing_in.signed_in(signing_in.browser())
    assert await signing_in.signed_in(signing_in.browser(), sub="f:2:anna") == refused("name-taken")
    renamed = signing_in.browser()
    assert await signing_in.signed_in(renamed, sub="f:1:anna", preferred_username="anna-maria") == IN
    assert (await signing_in.who(renamed))[0] == "anna"


async def test_a_disabled_user_stays_out(signing_in: SigningIn) -> None:
    browser, local = signing_in.browser(), signing_in.local()
    await signing_in.signed_in(browser)
    assert (await local.patch("/v1/users/anna", json={"active": False})).json()["active"] is False
    assert (await signing_in.who(browser))[0] is None
    assert await signing_in.signed_in(browser) == refused("disabled")


async def test_a_users_password_and_role_stay_with_the_provider(signing_in: SigningIn) -> None:
    browser, local = signing_in.browser(headers={"Sec-Fetch-Site": "same-origin"}), signing_in.local()
    await signing_in.signed_in(browser)
    shown = (await local.get("/v1/users/anna")).json()
    assert (shown["issuer"], shown["has_password"]) == (ISSUER, False)
    assert "subject" not in shown
    for method, path, body in (
        ("PATCH", "/v1/users/anna", {"role": "admin"}),
        ("POST", "/v1/users/anna/invitations", None),
    ):
        answer = await local.request(method, path, json=body)
        assert (answer.status_code, ISSUER in answer.json()["detail"]) == (403, True)
    own = await browser.put("/v1/session/password", json={"old": "a", "new": "four words are long"})
    assert own.status_code == 403
    wrong = {"user": "anna", "password": "four words are long"}
    assert (await signing_in.browser().post("/v1/session", json=wrong)).status_code == 401


async def test_a_demoted_administrator_needs_no_successor(signing_in: SigningIn, clock: FakeClock) -> None:
    """The provider decides: a local administrator is what the hub insists on, where there was one."""
    browser = signing_in.browser()
    await signing_in.signed_in(browser, groups=["admins"])
    assert await signing_in.signed_in(browser, groups=["forecasters"]) == IN


def test_grants_are_read_from_their_texts() -> None:
    assert Grant.parsed("site:unl.edu") == Grant(Role.SITE, "unl.edu")
    assert Grant.parsed("operator") == Grant(Role.OPERATOR)
    for text in ("", "root", "site", "site:", "site:..", "Admin"):
        with pytest.raises(BadInput):
            Grant.parsed(text)


def test_groups_without_a_grant_give_none() -> None:
    grants = {group: Grant.parsed(text) for group, text in ROLES.items()}
    assert grant_of([], grants) is None
    assert grant_of(["unl", "unl"], grants) == Grant(Role.SITE, "unl.edu")
    with pytest.raises(SeveralSites):
        grant_of(["unl", "other"], grants)
