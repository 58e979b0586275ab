"""The map of the sites: places that are set on the page, states, the selection in the address."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from kit.axe import no_serious_finding
from kit.capabilities import needs
from kit.page_hub import Hub, go

pytestmark = [pytest.mark.system, pytest.mark.browser]


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    needs("chromium")
    with Hub(tmp_path / "hub") as started:
        yield started


@pytest.fixture
def signed_in(hub: Hub, page: Page) -> Page:
    """An administrator's page of a hub with two sites that have no place."""
    hub.post("feeds", feed="NGRID")
    for site in ("unl.edu", "otago.ac.nz"):
        hub.post("sites", site=site, organisation="University")
    page.goto(hub.command("login", "--link").stdout.strip())
    page.get_by_role("button", name="Sign in").click()
    go(page, "Map")
    return page


def test_places_set_on_the_page_put_sites_on_the_map(hub: Hub, signed_in: Page) -> None:
    _set_a_place(hub, signed_in)
    _select_a_site(signed_in)
    _move_the_map(hub, signed_in)


def _set_a_place(hub: Hub, signed_in: Page) -> None:
    without = signed_in.get_by_test_id("without a place")
    expect(without).to_contain_text("2 of 2")
    expect(signed_in.get_by_role("main")).to_contain_text("No site has a place yet")
    without.get_by_role("button", name="Set place of unl.edu").click()
    dialog = signed_in.get_by_role("dialog", name="Place of unl.edu")
    dialog.get_by_label("Latitude").fill("140.8")
    dialog.get_by_label("Longitude").fill("-96.7")
    dialog.get_by_role("button", name="Save place").click()
    expect(dialog.get_by_role("alert")).to_contain_text(re.compile("The latitude is a number from .90 to 90"))
    dialog.get_by_label("Latitude").fill("40.8")
    dialog.get_by_label("Name of the place").fill("Lincoln")
    expect(dialog).to_contain_text("downburst sites set unl.edu --latitude 40.8 --longitude -96.7 --place Lincoln")
    no_serious_finding(signed_in)
    dialog.get_by_role("button", name="Save place").click()
    expect(dialog).to_have_count(0)
    expect(without).to_contain_text("1 of 2")
    assert hub.client.get("/v1/sites/unl.edu").json()["place"] == {
        "text": "Lincoln",
        "latitude": 40.8,
        "longitude": -96.7,
    }


def _select_a_site(signed_in: Page) -> None:
    expect(signed_in.get_by_test_id("in view unl.edu")).to_contain_text("never connected")
    world = signed_in.get_by_role("group", name="World map")
    world.get_by_role("link", name="unl.edu, never connected").press("Enter")
    expect(signed_in).to_have_url(re.compile("#/map/unl.edu$"))
    card = signed_in.get_by_test_id("map site")
    expect(card).to_contain_text("University, Lincoln, 40.80 N 96.70 W")
    no_serious_finding(signed_in)
    card.get_by_role("link", name="Open the site").click()
    # The card of the map has a heading of this name too.
    expect(signed_in.get_by_test_id("one site")).to_be_visible()
    signed_in.keyboard.type("gm")
    expect(signed_in.get_by_role("heading", name="Map", exact=True)).to_be_focused()


def _move_the_map(hub: Hub, signed_in: Page) -> None:
    """Keys move it; two sites at one place share a mark."""
    for site in ("unl.edu", "otago.ac.nz"):
        answer = hub.client.patch(f"/v1/sites/{site}", json={"place": {"latitude": -45.9, "longitude": 170.5}})
        assert answer.is_success, answer.text
    signed_in.reload()
    world = signed_in.get_by_role("group", name="World map")
    shared = world.get_by_role("button", name="2 sites. Zoom in")
    expect(shared).to_be_visible()
    # The other end of the world has no site.
    closer = world.get_by_role("button", name="Zoom in", exact=True)
    closer.press("+")
    closer.press("+")
    expect(shared).to_have_count(0)
    expect(signed_in.get_by_test_id("in view")).to_contain_text("No site here matches the filters")
    closer.press("-")
    closer.press("-")
    shared.press("Enter")
    expect(signed_in.get_by_test_id("in view otago.ac.nz")).to_be_visible()
    signed_in.set_viewport_size({"width": 390, "height": 844})
    # The drawing follows the window with the next frame.
    signed_in.wait_for_function("document.documentElement.scrollWidth <= 390")
    no_serious_finding(signed_in)
