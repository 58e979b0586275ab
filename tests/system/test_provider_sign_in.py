"""Users sign in on the page at dex, a real provider of OpenID Connect, in a real browser."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from kit.axe import no_serious_finding
from kit.dex import CLIENT, PASSWORD, SECRET, Dex
from kit.page_hub import Hub
from kit.ports import free_port

pytestmark = [pytest.mark.system, pytest.mark.browser]
ROLES = {"operators": "operator", "forecasters": "viewer"}
PEOPLE = {"anna": ["operators", "forecasters"], "bo": ["strangers"], "root": ["operators"]}


@dataclass
class SigningIn:
    hub: Hub
    dex: Dex

    def at_dex(self, page: Page, name: str) -> None:
        """Follows the page's link to dex, and signs in there."""
        page.get_by_role("link", name="Sign in with Dex").click()
        page.locator("input[name=login]").fill(f"{name}@example.org")
        page.locator("input[name=password]").fill(PASSWORD)
        page.locator("button[type=submit]").click()


@pytest.fixture
def signing_in(tmp_path: Path) -> Iterator[SigningIn]:
    secret = tmp_path / "client-secret"
    secret.write_text(f"{SECRET}\n")
    address = f"127.0.0.1:{free_port()}"
    with Dex(tmp_path / "dex", f"http://{address}", dict(PEOPLE)) as dex:
        environment = {
            "ISSUER": dex.issuer,
            "CLIENT_ID": CLIENT,
            "CLIENT_SECRET_FILE": str(secret),
            "DISPLAY_NAME": "Dex",
            "SCOPES": json.dumps(["openid", "profile", "groups"]),
            "ROLES": json.dumps(ROLES),
        }
        named = {f"DOWNBURST_ACCESS__OIDC__{name}": value for name, value in environment.items()}
        with Hub(tmp_path / "hub", http=address, environment=named) as hub:
            yield SigningIn(hub, dex)


def test_a_user_signs_in_at_dex_with_the_role_of_a_group_and_out_again(
    signing_in: SigningIn, page: Page, browser: Browser
) -> None:
    page.goto(f"{signing_in.hub.url}#feeds")
    expect(page.get_by_role("link", name="Sign in with Dex")).to_be_visible()
    no_serious_finding(page)
    signing_in.at_dex(page, "anna")
    expect(page.get_by_role("button", name="Account of anna operator")).to_be_visible()
    expect(page).to_have_url(f"{signing_in.hub.url}#feeds")
    page.reload()
    expect(page.get_by_role("button", name="Account of anna operator")).to_be_visible()

    signing_in.dex.stop()
    signing_in.dex.people["anna"] = ["forecasters"]
    signing_in.dex.start()
    other = browser.new_context().new_page()
    other.goto(signing_in.hub.url)
    signing_in.at_dex(other, "anna")
    expect(other.get_by_role("button", name="Account of anna viewer")).to_be_visible()
    expect(page.get_by_role("heading", name="Sign in to Downburst")).to_be_visible()

    other.get_by_role("button", name="Account of anna viewer").click()
    other.get_by_role("menuitem", name="Sign out").click()
    expect(other.get_by_role("heading", name="Sign in to Downburst")).to_be_visible()
    other.reload()
    expect(other.get_by_role("heading", name="Sign in to Downburst")).to_be_visible()


def test_a_user_without_a_group_or_of_a_local_name_is_refused_with_a_sentence(
    signing_in: SigningIn, page: Page, browser: Browser
) -> None:
    signing_in.hub.post("users", user="root", role="admin")
    page.goto(signing_in.hub.url)
    signing_in.at_dex(page, "bo")
    expect(page.get_by_role("alert")).to_contain_text("None of your groups at Dex has access to this hub")
    no_serious_finding(page)
    other = browser.new_context().new_page()
    other.goto(signing_in.hub.url)
    signing_in.at_dex(other, "root")
    expect(other.get_by_role("alert")).to_contain_text("already has a user of your name")
    assert {one["user"] for one in signing_in.hub.client.get("/v1/users").json()} == {"root"}


def test_local_users_sign_in_while_dex_is_away_and_the_page_and_doctor_say_so(
    signing_in: SigningIn, page: Page
) -> None:
    page.goto(signing_in.hub.first_link)
    page.get_by_role("textbox", name="Name").fill("local-admin")
    page.get_by_role("textbox", name="Password").fill("four words are long")
    page.get_by_role("button", name="Create administrator").click()
    expect(page.get_by_role("button", name="Account of local-admin admin")).to_be_visible()
    signing_in.dex.stop()
    signing_in.hub.stop()
    signing_in.hub.start()
    page.get_by_role("button", name="Account of local-admin admin").click()
    page.get_by_role("menuitem", name="Sign out").click()
    expect(page.get_by_test_id("provider-problem")).to_contain_text("Dex is not available")
    page.get_by_role("textbox", name="Name").fill("local-admin")
    page.get_by_role("textbox", name="Password").fill("four words are long")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("button", name="Account of local-admin admin")).to_be_visible()
    doctor = signing_in.hub.command(
        "doctor", "--data-dir", str(signing_in.hub.data_dir), DOWNBURST_HTTP=signing_in.hub.http
    )
    assert "Dex is not available" in doctor.stdout
    signing_in.dex.start()
