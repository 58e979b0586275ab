"""The pages by keyboard alone: the order of stops, the place of the focus, and dialogs that keep and return it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from kit.axe import no_serious_finding
from kit.page_hub import Hub, go

pytestmark = [pytest.mark.system, pytest.mark.browser]


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with Hub(tmp_path / "hub") as started:
        yield started


@pytest.fixture
def signed_in(hub: Hub, page: Page, tmp_path: Path) -> Page:
    """An administrator's page of a hub with a site that receives."""
    hub.post("feeds", feed="NGRID")
    hub.post("sites", site="unl.edu", organisation="University")
    hub.post("sites/unl.edu/subscriptions", feed="NGRID")
    hub.receive("unl.edu", tmp_path / "near")
    page.goto(hub.command("login", "--link").stdout.strip())
    page.get_by_role("button", name="Sign in").click()
    go(page, "Sites")
    expect(page.get_by_test_id("site unl.edu")).to_contain_text("up to date")
    go(page, "Now")
    expect(page.get_by_test_id("status")).to_be_visible()
    return page


def test_the_first_stop_leads_past_the_pages_to_the_content(hub: Hub, signed_in: Page) -> None:
    signed_in.goto(f"{hub.url}?fresh#/sites")
    expect(signed_in.get_by_test_id("site unl.edu")).to_be_visible()
    signed_in.keyboard.press("Tab")
    skip = signed_in.get_by_role("link", name="Skip to content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    signed_in.keyboard.press("Enter")
    expect(signed_in.get_by_role("main")).to_be_focused()
    expect(signed_in).to_have_url(f"{hub.url}?fresh#/sites")
    signed_in.keyboard.press("Tab")
    expect(signed_in.get_by_role("button", name="Add site")).to_be_focused()
    signed_in.keyboard.press("Tab")
    expect(signed_in.get_by_role("searchbox", name="Filter sites")).to_be_focused()


def test_the_focus_moves_as_the_eye_does_and_is_seen(hub: Hub, signed_in: Page) -> None:
    addresses = ("#/", "#/alarms", "#/feeds", "#/sites", "#/feeds/NGRID", "#/sites/unl.edu", "#/latency", "#/users")
    for number, address in enumerate(addresses):
        # A different address before the `#` makes the browser reload the page.
        signed_in.goto(f"{hub.url}?{number}{address}")
        signed_in.locator("main section").first.wait_for()
        _walk(signed_in, address)


def _walk(page: Page, address: str) -> None:
    page.evaluate(WATCH)
    for _ in range(40):
        page.keyboard.press("Tab")
        where = page.evaluate("step()")
        if where["over"]:
            break
        assert where["seen"], f"{address}: nobody sees that {where['what']} has the focus"
        assert where["onward"], f"{address}: the focus went back to {where['what']}"
    assert page.locator("[tabindex]:not([tabindex='0']):not([tabindex='-1'])").count() == 0


def test_another_page_is_announced_and_the_title_has_the_focus(signed_in: Page) -> None:
    signed_in.get_by_role("link", name="All alarms").press("Enter")
    expect(signed_in.get_by_role("heading", name="Alarms", exact=True)).to_be_focused()
    expect(signed_in).to_have_title(re.compile("^(\\(\\d+\\) )?Alarms . hub$"))
    pages = (("Feeds", "^Feeds$"), ("Sites", "^Sites$"), ("Latency", "^Latency.* at all sites$"))
    for title, heading in pages:
        signed_in.get_by_role("navigation", name="Pages").get_by_role("link", name=title, exact=True).press("Enter")
        expect(signed_in.get_by_role("heading", name=re.compile(heading))).to_be_focused()
        expect(signed_in).to_have_title(re.compile(f"^{title} . hub$"))


def test_keys_search_open_sections_and_are_listed(hub: Hub, signed_in: Page) -> None:
    keys = signed_in.keyboard
    search = signed_in.get_by_role("combobox", name="Search")
    keys.press("/")
    expect(search).to_be_focused()
    keys.type("unl")
    expect(signed_in.get_by_role("option", name="unl.edu University")).to_be_visible()
    no_serious_finding(signed_in)
    keys.press("Enter")
    expect(signed_in.get_by_role("heading", name="unl.edu", exact=True)).to_be_focused()
    expect(search).to_have_value("")
    keys.type("gf")
    expect(signed_in.get_by_role("heading", name="Feeds", exact=True)).to_be_focused()
    keys.press("?")
    listed = signed_in.get_by_role("dialog", name="Keys")
    expect(listed.get_by_role("row", name="g s")).to_contain_text("Open Sites")
    no_serious_finding(signed_in)
    keys.press("Escape")
    expect(listed).to_have_count(0)
    # In a field they are letters.
    keys.press("/")
    keys.type("gs?")
    expect(search).to_have_value("gs?")
    expect(listed).to_have_count(0)
    keys.press("Escape")
    expect(search).to_have_value("")
    expect(signed_in).to_have_url(f"{hub.url}#/feeds")


def test_a_chosen_scheme_stays_and_a_narrow_screen_has_the_pages_in_a_drawer(hub: Hub, signed_in: Page) -> None:
    signed_in.get_by_role("button", name="Account of").click()
    signed_in.get_by_role("menuitemcheckbox", name="Dark").click()
    signed_in.set_viewport_size({"width": 390, "height": 844})
    signed_in.goto(f"{hub.url}?narrow")
    assert signed_in.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(13, 17, 22)"
    opener = signed_in.get_by_role("button", name="Open the list of pages")
    opener.press("Enter")
    drawer = signed_in.get_by_role("dialog", name="Pages")
    expect(drawer).to_be_visible()
    no_serious_finding(signed_in)
    signed_in.keyboard.press("Escape")
    expect(opener).to_be_focused()
    opener.press("Enter")
    drawer.get_by_role("link", name="Sites").click()
    expect(drawer).to_have_count(0)
    expect(signed_in.get_by_role("heading", name="Sites", exact=True)).to_be_visible()


def test_a_dialog_keeps_the_focus_until_it_is_answered(hub: Hub, signed_in: Page) -> None:
    signed_in.goto(f"{hub.url}#/sites/unl.edu")
    receivers = signed_in.get_by_test_id("receivers")
    opener = receivers.get_by_role("button", name="Revoke all credentials of unl.edu")
    opener.press("Enter")
    cancel = receivers.get_by_role("button", name="Cancel")
    expect(cancel).to_be_focused()
    signed_in.keyboard.press("Tab")
    expect(receivers.get_by_role("button", name="Revoke all credentials", exact=True)).to_be_focused()
    # Elements behind the dialog are out of reach.
    for _ in range(4):
        signed_in.keyboard.press("Tab")
        assert signed_in.evaluate(
            "document.activeElement === document.body || !!document.activeElement.closest('dialog')"
        )
    signed_in.keyboard.press("Escape")
    expect(opener).to_be_focused()
    opener.press("Enter")
    signed_in.keyboard.press("Enter")
    expect(opener).to_be_focused()
    assert hub.client.get("/v1/sites/unl.edu").json()["credentials"][0]["revoked_at"] is None
    opener.press("Enter")
    signed_in.keyboard.press("Tab")
    signed_in.keyboard.press("Enter")
    expect(receivers).to_contain_text("revoked")


# The effect of one press of Tab. Parts of a date field are stops within it; behind the last stop comes the browser,
# or the first stop again.
WATCH = """
() => {
  let [first, last] = [null, null]
  window.step = () => {
    const now = document.activeElement
    const seen = getComputedStyle(now).outlineStyle !== 'none'
    const behind = last === null || last.compareDocumentPosition(now) & Node.DOCUMENT_POSITION_FOLLOWING
    const onward = last === now || !!behind
    const over = now === document.body || (now === first && last !== first)
    first ??= now
    last = now
    return { over, seen, onward, what: now.outerHTML.slice(0, 200) }
  }
}
"""
