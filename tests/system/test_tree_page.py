"""The distribution tree as a graph: sources, hub, relays and sites from left to right, by mouse, keys and list."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from kit.axe import no_serious_finding
from kit.capabilities import needs
from kit.page_hub import Hub, go
from kit.patience import wait_for

pytestmark = [pytest.mark.system, pytest.mark.browser]


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    needs("chromium")
    with Hub(tmp_path / "hub") as started:
        yield started


def test_the_tree_leads_from_the_hub_to_its_relays_and_sites(hub: Hub, page: Page, tmp_path: Path) -> None:
    _fill(hub, tmp_path / "unl.edu")
    _open(hub, page)
    _facts(page)
    _keys(page)
    _card(page)
    _one_feed(page)
    _list(page)


def _fill(hub: Hub, directory: Path) -> None:
    """A site that receives, one that never connected and takes another feed, and a relay without sites."""
    for feed in ("NGRID", "WARN"):
        hub.post("feeds", feed=feed)
    for site, feed in (("unl.edu", "NGRID"), ("away.edu", "WARN")):
        hub.post("sites", site=site, organisation="University")
        hub.post(f"sites/{site}/subscriptions", feed=feed)
    hub.command("relays", "add", "campus", "--address", "127.0.0.1:7379", "--fan-out", "group", "--feeds", "NGRID")
    hub.receive("unl.edu", directory)

    def is_sent() -> bool:
        sites = hub.client.get("/v1/tree").json()["sites"]
        return any(feed["transport"] is not None for site in sites for feed in site["feeds"])

    wait_for("the site's first leg", is_sent)


def _open(hub: Hub, page: Page) -> None:
    page.goto(hub.command("login", "--link").stdout.strip())
    page.get_by_role("button", name="Sign in").click()
    go(page, "Distribution tree")


def _item(page: Page, name: str) -> Locator:
    tree = page.get_by_role("tree", name="Network from left to right")
    return tree.get_by_role("treeitem", name=re.compile(rf"^{re.escape(name)}\b"))


def _facts(page: Page) -> None:
    """Each node says its state, and from where it gets its feeds by which transport; columns go to the right."""
    expect(_item(page, "unl.edu")).to_have_accessible_name(re.compile("NGRID by unicast from hub"))
    expect(_item(page, "away.edu")).to_have_accessible_name(re.compile("never connected, University"))
    expect(_item(page, "campus")).to_have_accessible_name(re.compile("never connected, relay; no site now"))
    boxes = [_item(page, name).bounding_box() for name in ("hub", "campus", "unl.edu")]
    lefts = [box["x"] for box in boxes if box is not None]
    assert lefts == sorted(set(lefts))
    assert len(lefts) == 3
    no_serious_finding(page)


def _keys(page: Page) -> None:
    _item(page, "hub").focus()
    page.keyboard.press("ArrowRight")
    expect(_item(page, "hub")).not_to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(_item(page, "hub")).to_be_focused()
    _item(page, "unl.edu").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("End")
    focused = page.locator("[role=treeitem]:focus")
    expect(focused).to_have_accessible_name(re.compile(r"^(unl|away)\.edu"))
    expect(focused).to_have_attribute("tabindex", "0")
    assert page.locator("[role=treeitem][tabindex='0']").count() == 1


def _card(page: Page) -> None:
    """Enter selects, and the address has the selection; Escape closes the card."""
    _item(page, "unl.edu").press("Enter")
    expect(page).to_have_url(re.compile("#/tree/site~unl.edu$"))
    card = page.get_by_test_id("tree node")
    expect(card).to_contain_text("NGRID by unicast from hub")
    expect(card).to_contain_text("Round trip")
    expect(_item(page, "unl.edu")).to_have_attribute("aria-selected", "true")
    no_serious_finding(page)
    _item(page, "unl.edu").press("Escape")
    expect(card).to_have_count(0)
    _item(page, "unl.edu").click()
    card.get_by_role("link", name="Open the site").click()
    expect(page.get_by_role("heading", name="unl.edu", exact=True)).to_be_visible()
    page.go_back()
    expect(card).to_be_visible()


def _one_feed(page: Page) -> None:
    page.get_by_label("Feeds: All feeds").click()
    page.get_by_role("option", name="NGRID").click()
    expect(page).to_have_url(re.compile(r"#/tree/site~unl.edu\?feed=NGRID$"))
    expect(_item(page, "away.edu")).to_have_count(0)
    expect(_item(page, "campus")).to_have_count(0)
    expect(_item(page, "unl.edu")).to_be_visible()


def _list(page: Page) -> None:
    """The list has the same facts, and is all that a narrow window shows."""
    page.get_by_role("navigation", name="View of the tree").get_by_role("link", name="List").click()
    expect(page).to_have_url(re.compile(r"feed=NGRID&view=list$"))
    tree = page.get_by_test_id("tree")
    expect(tree.get_by_role("listitem").filter(has_text="unl.edu").last).to_contain_text("NGRID by unicast from hub")
    expect(page.get_by_role("tree")).to_have_count(0)
    no_serious_finding(page)
    page.get_by_role("navigation", name="View of the tree").get_by_role("link", name="Graph").click()
    expect(page.get_by_role("tree")).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.get_by_role("tree")).to_have_count(0)
    expect(tree.get_by_role("link", name="unl.edu")).to_be_visible()
    page.wait_for_function("document.documentElement.scrollWidth <= 390")
    no_serious_finding(page)


def test_many_sites_of_one_parent_are_one_node_until_it_is_opened(hub: Hub, page: Page) -> None:
    for number in range(40):
        hub.post("sites", site=f"s{number:02}.edu")
    _open(hub, page)
    direct = _item(page, "Direct sites")
    expect(direct).to_have_attribute("aria-expanded", "false")
    expect(direct).to_have_accessible_name(re.compile("40 sites: 40 never connected"))
    assert page.get_by_role("treeitem").count() == 2
    direct.press("ArrowRight")
    expect(direct).to_have_attribute("aria-expanded", "true")
    expect(page.get_by_role("treeitem")).to_have_count(33)
    no_serious_finding(page)
    page.get_by_role("treeitem", name="Show more of 10 sites").press("Enter")
    expect(page.get_by_role("treeitem")).to_have_count(42)
    expect(direct).to_be_focused()
    direct.press("ArrowLeft")
    expect(page.get_by_role("treeitem")).to_have_count(2)
    page.goto(f"{hub.url}#/tree/site~s39.edu")
    expect(_item(page, "s39.edu")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("treeitem")).to_have_count(3)
