"""Users sign in on the page at Keycloak, with the role of a group, and sign out at both."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from kit.capabilities import needs
from kit.page_hub import PATIENCE_MS, Hub
from kit.peers.keycloak import CLIENT, PASSWORD, SECRET, Keycloak
from kit.ports import free_port

pytestmark = [pytest.mark.peers, pytest.mark.system, pytest.mark.browser]
PEOPLE = {"anna": ["/downburst/operators"], "bo": []}


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    secret = tmp_path / "client-secret"
    secret.write_text(f"{SECRET}\n")
    address = f"127.0.0.1:{free_port()}"
    with Keycloak(tmp_path / "keycloak", f"http://{address}", PEOPLE) as keycloak:
        environment = {
            "ISSUER": keycloak.issuer,
            "CLIENT_ID": CLIENT,
            "CLIENT_SECRET_FILE": str(secret),
            "DISPLAY_NAME": "Keycloak",
            "ROLES": json.dumps({"/downburst/operators": "operator"}),
        }
        named = {f"DOWNBURST_ACCESS__OIDC__{name}": value for name, value in environment.items()}
        with Hub(tmp_path / "hub", http=address, environment=named) as started:
            yield started


@pytest.fixture
def page() -> Iterator[Page]:
    needs("chromium")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        opened = launched.new_page(viewport={"width": 1280, "height": 900})
        opened.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        yield opened
        launched.close()


def at_keycloak(page: Page, name: str) -> None:
    page.get_by_role("link", name="Sign in with Keycloak").click()
    page.locator("#username").fill(name)
    page.locator("#password").fill(PASSWORD)
    page.locator("#kc-login").click()


def test_a_user_signs_in_at_keycloak_and_out_at_both(hub: Hub, page: Page) -> None:
    page.goto(f"{hub.url}#feeds")
    at_keycloak(page, "anna")
    expect(page.get_by_role("button", name="Account of anna operator")).to_be_visible()
    expect(page).to_have_url(f"{hub.url}#feeds")
    page.get_by_role("button", name="Account of anna operator").click()
    page.get_by_role("menuitem", name="Sign out").click()
    page.locator("#kc-logout").click()
    expect(page.get_by_role("heading", name="Sign in to Downburst")).to_be_visible()
    expect(page).to_have_url(hub.url)
    # Keycloak asks for a name again, so its own session is over; a person without a group is refused.
    at_keycloak(page, "bo")
    expect(page.get_by_role("alert")).to_contain_text("None of your groups at Keycloak has access to this hub")
