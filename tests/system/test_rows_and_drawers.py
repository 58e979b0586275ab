"""The pages Feeds and Sites: order, filters, views and drawers, by mouse and by keyboard."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from kit.axe import no_serious_finding
from kit.capabilities import needs
from kit.page_hub import PATIENCE_MS, Hub, figure, go, open_row

pytestmark = [pytest.mark.system, pytest.mark.browser]

PRODUCTS = 5
OTHERS = 120
"""Sites that never connect: more than fit on a screen."""


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    needs("chromium")
    with Hub(tmp_path / "hub") as started:
        yield started


@pytest.fixture
def signed_in(hub: Hub, page: Page, tmp_path: Path) -> Page:
    """An administrator's page of a hub with three feeds, and a site that receives one of them."""
    for feed, feed_class in (("NGRID", "grid"), ("WARNINGS", "warning"), ("HDS", "grid")):
        hub.post("feeds", feed=feed, **{"class": feed_class})
    hub.post("sites", site="unl.edu", organisation="University of Nebraska")
    hub.post("sites/unl.edu/subscriptions", feed="NGRID")
    hub.receive("unl.edu", tmp_path / "near")
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(hub.command("login", "--link").stdout.strip())
    page.get_by_role("button", name="Sign in").click()
    go(page, "Sites")
    drawer = open_row(page, "Sites", "unl.edu")
    # Latencies are counted once the site's clock has been compared.
    expect(figure(drawer, "Clock offset ± bound")).to_contain_text("±", timeout=PATIENCE_MS)
    for number in range(PRODUCTS):
        hub.put("NGRID", f"nam/{number}.grib2", bytes(5_000))
    expect(figure(drawer, "Stored")).to_have_text(f"{PRODUCTS} products", timeout=PATIENCE_MS)
    return page


def test_feeds_are_ordered_filtered_and_kept_as_views(hub: Hub, signed_in: Page) -> None:
    go(signed_in, "Feeds")
    rows = signed_in.get_by_role("table").locator("[data-testid^='feed ']")
    _order(signed_in, rows)
    _filter(hub, signed_in, rows)
    _views(signed_in, rows)


def _order(page: Page, rows: Locator) -> None:
    names = rows.locator("a")
    expect(names).to_have_text(["WARNINGS", "HDS", "NGRID"])
    page.get_by_role("columnheader", name="Feed").get_by_role("button").click()
    expect(names).to_have_text(["HDS", "NGRID", "WARNINGS"])
    page.get_by_role("button", name="Feed", exact=True).press("Enter")
    expect(names).to_have_text(["WARNINGS", "NGRID", "HDS"])
    expect(page.get_by_role("columnheader", name="Feed")).to_have_attribute("aria-sort", "descending")
    expect(page).to_have_url(re.compile("sort=-feed"))
    assert rows.first.evaluate("row => row.offsetHeight") == 44
    assert page.get_by_role("columnheader").count() <= 8


def _filter(hub: Hub, page: Page, rows: Locator) -> None:
    page.get_by_role("searchbox", name="Filter feeds").fill("grid ng")
    expect(rows.locator("a")).to_have_text(["NGRID"])
    expect(page.get_by_role("status").filter(has_text="1 of 3")).to_be_visible()
    # The address reproduces it.
    page.goto(f"{hub.url}?again{page.evaluate('location.hash')}")
    expect(rows.locator("a")).to_have_text(["NGRID"])
    expect(page.get_by_role("searchbox", name="Filter feeds")).to_have_value("grid ng")
    page.get_by_role("searchbox", name="Filter feeds").fill("no feed is called so")
    expect(page.get_by_text("None of 3 feeds matches the filters.")).to_be_visible()
    page.get_by_role("button", name="Remove the filters").click()
    expect(rows).to_have_count(3)
    # Nothing was received of the others: no data is not shown as good.
    page.get_by_role("group", name="States").get_by_role("button", name=re.compile("^not measured")).click()
    expect(rows.locator("a")).to_have_text(["WARNINGS", "HDS"])
    expect(rows.first).to_contain_text("not measured")
    expect(page).to_have_url(re.compile("state=unmeasured"))
    no_serious_finding(page)


def _views(page: Page, rows: Locator) -> None:
    page.get_by_role("button", name="View: not saved").click()
    page.get_by_role("menuitem", name="Save this view").click()
    dialog = page.get_by_role("dialog", name="Save this view")
    dialog.get_by_role("button", name="Save view").click()
    expect(dialog.get_by_role("alert")).to_have_text("The view needs a name.")
    dialog.get_by_role("textbox", name="Name").fill("silent ones")
    no_serious_finding(page)
    dialog.get_by_role("textbox", name="Name").press("Enter")
    expect(dialog).to_have_count(0)
    page.get_by_role("button", name="View: silent ones").click()
    page.get_by_role("menuitemcheckbox", name="by class").click()
    expect(rows).to_have_count(3)
    page.reload()
    page.get_by_role("button", name="View: by class").click()
    page.get_by_role("menuitemcheckbox", name="silent ones").click()
    expect(rows).to_have_count(2)
    page.get_by_role("button", name="View: silent ones").click()
    page.get_by_role("menuitem", name="Remove silent ones").click()
    expect(page.get_by_role("button", name="View: not saved")).to_be_visible()


def test_a_feed_opens_by_keyboard_with_its_candidates(hub: Hub, signed_in: Page) -> None:
    keys = signed_in.keyboard
    go(signed_in, "Feeds")
    row = signed_in.get_by_test_id("feed NGRID")
    seen = hub.client.get("/v1/overview").json()["feeds"]
    plan = next(one["plan"] for one in seen if one["feed"] == "NGRID")
    assert len(plan["clause"]) <= 60
    expect(row).to_contain_text(plan["transport"])
    moves = {"j": "WARNINGS", "ArrowDown": "HDS", "End": "NGRID", "k": "HDS", "Home": "WARNINGS", "PageDown": "NGRID"}
    for key, name in moves.items():
        keys.press(key)
        expect(signed_in.get_by_test_id(f"feed {name}").get_by_role("link")).to_be_focused()
    keys.press("Enter")
    drawer = signed_in.get_by_role("dialog", name="NGRID")
    expect(drawer).to_contain_text("No latency was measured" if _is_silent(hub) else "p99 of the last hour is")
    expect(signed_in).to_have_url(re.compile("row=NGRID"))
    expect(row).to_have_attribute("aria-selected", "true")
    candidates = drawer.get_by_role("table", name="Transports compared for NGRID")
    for transport in ("unicast", "multicast", "static-circuit", "dynamic-circuit"):
        compared = candidates.get_by_role("row", name=re.compile(f"^{transport}"))
        expect(compared).to_be_visible(timeout=PATIENCE_MS)
    expect(candidates.get_by_role("row", name=re.compile("^unicast, chosen"))).to_be_visible()
    no_serious_finding(signed_in)
    drawer.get_by_role("tab", name=re.compile("Sites")).click()
    listed = drawer.get_by_role("row", name="unl.edu")
    expect(listed).to_contain_text("up to date")
    expect(listed.get_by_role("cell").last).to_have_text(re.compile(r"\d m?s"), timeout=PATIENCE_MS)
    expect(listed.get_by_role("link")).to_have_attribute("href", "#/latency?site=unl.edu&feed=NGRID")
    keys.press("k")
    expect(signed_in.get_by_role("dialog", name="HDS")).to_contain_text("No latency was measured in the last hour")
    keys.press("Escape")
    expect(signed_in.get_by_role("dialog")).to_have_count(0)
    expect(signed_in.get_by_test_id("feed HDS").get_by_role("link")).to_be_focused()


def _is_silent(hub: Hub) -> bool:
    (found,) = (one for one in hub.client.get("/v1/overview").json()["feeds"] if one["feed"] == "NGRID")
    return bool(found["latency"]["distribution_ms"]["count"] == 0)


def test_a_site_opens_beside_the_rows_and_on_a_phone_over_them(hub: Hub, signed_in: Page) -> None:
    drawer = open_row(signed_in, "Sites", "unl.edu")
    feed = drawer.get_by_role("row", name="NGRID")
    expect(feed).to_contain_text("unicast")
    expect(feed.get_by_role("link")).to_have_attribute("href", "#/latency?site=unl.edu&feed=NGRID")
    expect(drawer.get_by_role("img", name=re.compile("quarter hours"))).to_be_visible(timeout=PATIENCE_MS)
    expect(drawer.get_by_role("link", name="Show latency")).to_have_attribute("href", "#/latency?site=unl.edu")
    # The rows stay in use beside it.
    signed_in.get_by_role("searchbox", name="Filter sites").fill("nebraska")
    expect(drawer).to_be_visible()
    expect(signed_in.get_by_test_id("site unl.edu")).to_be_visible()
    no_serious_finding(signed_in)
    signed_in.set_viewport_size({"width": 390, "height": 844})
    expect(signed_in.get_by_role("dialog", name="unl.edu")).to_be_visible()
    no_serious_finding(signed_in)
    signed_in.get_by_role("button", name="Close").click()
    expect(signed_in.get_by_role("dialog")).to_have_count(0)
    signed_in.wait_for_function("document.documentElement.scrollWidth <= 390")
    assert signed_in.get_by_test_id("site unl.edu").evaluate("row => row.offsetHeight") == 64
    expect(signed_in.get_by_role("row", name="unl.edu")).to_contain_text("up to date")
    no_serious_finding(signed_in)
    signed_in.goto(f"{hub.url}?phone#/sites?row=nobody.edu")
    expect(signed_in.get_by_role("dialog")).to_contain_text("This hub has no site nobody.edu")


def test_of_many_sites_those_in_view_have_rows(hub: Hub, signed_in: Page) -> None:
    for number in range(OTHERS):
        hub.post("sites", site=f"site{number}.edu")
    go(signed_in, "Now")
    go(signed_in, "Sites")
    expect(signed_in.get_by_test_id("site site0.edu")).to_be_visible()
    expect(signed_in.get_by_role("table")).to_have_attribute("aria-rowcount", str(OTHERS + 2))
    rows = signed_in.get_by_role("table").locator("[data-testid^='site ']")
    assert rows.count() < OTHERS
    signed_in.keyboard.press("j")
    signed_in.keyboard.press("End")
    expect(signed_in.get_by_test_id("site unl.edu").get_by_role("link")).to_be_focused()
    expect(signed_in.get_by_test_id("site unl.edu")).to_be_in_viewport()
    expect(signed_in.get_by_test_id("site site0.edu")).to_have_count(0)
    signed_in.keyboard.press("Home")
    expect(signed_in.get_by_test_id("site site0.edu").get_by_role("link")).to_be_focused()
    never = signed_in.get_by_role("group", name="States").get_by_role("button", name=f"never connected {OTHERS}")
    never.click()
    expect(never).to_have_attribute("aria-pressed", "true")
    expect(signed_in.get_by_role("table")).to_have_attribute("aria-rowcount", str(OTHERS + 1))
