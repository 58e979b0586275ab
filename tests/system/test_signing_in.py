"""Users sign in on the page: the first administrator, an invited user, a link from the shell; no others can."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from kit.axe import no_serious_finding
from kit.page_hub import Hub, go

pytestmark = [pytest.mark.system, pytest.mark.browser]
PASSWORD = "four words are long"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with Hub(tmp_path / "hub") as started:
        yield started


def fill(page: Page, **fields: str) -> None:
    for label, value in fields.items():
        page.get_by_role("textbox", name=label).fill(value)


def test_the_first_administrator_comes_in_invites_an_operator_and_sees_what_was_changed(
    hub: Hub, page: Page, browser: Browser
) -> None:
    page.goto(hub.url)
    expect(page.get_by_role("heading", name="Sign in to Downburst")).to_be_visible()
    no_serious_finding(page)
    page.goto(hub.first_link)
    expect(page.get_by_role("heading", name="Create the first administrator")).to_be_visible()
    fill(page, Name="root", Password=PASSWORD)
    page.get_by_role("button", name="Create administrator").click()
    expect(page.get_by_role("button", name="Account of root admin")).to_be_visible()
    expect(page).to_have_url(hub.url)
    no_serious_finding(page)

    invitation = hub.post("users", user="anna", role="operator")["fragment"]
    annas = browser.new_context().new_page()
    annas.goto(hub.url + invitation)
    fill(annas, Password=PASSWORD)
    annas.get_by_role("button", name="Save password").click()
    expect(annas.get_by_role("button", name="Account of anna operator")).to_be_visible()
    go(annas, "Admin")
    expect(annas.get_by_role("heading", name="Access requests")).to_be_visible()
    expect(annas.get_by_role("link", name="Audit")).to_have_count(0)
    made = annas.evaluate(
        "fetch('./v1/feeds', {method: 'POST', headers: {'content-type': 'application/json'},"
        " body: JSON.stringify({feed: 'ANNAS'})}).then(answer => answer.status)"
    )
    assert made == 201

    go(page, "Audit")
    row = page.get_by_test_id("audit").get_by_role("row", name="feed ANNAS added")
    expect(row).to_contain_text("anna (operator)")
    expect(row).to_contain_text("127.0.0.1")
    no_serious_finding(page)

    hub.client.delete("/v1/users/anna")
    expect(annas.get_by_role("heading", name="Sign in to Downburst")).to_be_visible()


def test_a_wrong_password_is_said_and_a_right_one_stays_until_signing_out(hub: Hub, page: Page) -> None:
    page.goto(hub.first_link)
    fill(page, Name="root", Password=PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Account of root admin")).to_be_visible()
    page.get_by_role("button", name="Account of root admin").click()
    page.get_by_role("menuitem", name="Sign out").click()
    fill(page, Name="root", Password="not the password")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("name or password is wrong")
    fill(page, Password=PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("status")).to_be_visible()
    page.reload()
    expect(page.get_by_role("button", name="Account of root admin")).to_be_visible()


def test_commands_of_the_hubs_user_need_no_login_and_sign_a_browser_in(hub: Hub, page: Page) -> None:
    assert hub.command("feeds", "add", "NGRID").returncode == 0
    link = hub.command("login", "--link").stdout.strip()
    page.goto(link)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("button", name="Account of local admin")).to_be_visible()
    stranger = hub.command("feeds", "list", XDG_RUNTIME_DIR="/nowhere")
    assert stranger.returncode == 2
    assert "sign in first" in stranger.stderr
    assert httpx.get(f"{hub.url}v1/overview").status_code == 401
