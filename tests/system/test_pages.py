"""Every page, walked in a real browser on a hub with real traffic; dark and light, on a desktop and on a phone."""

import csv
import io
import json
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from kit.axe import every_page_fits, no_serious_finding
from kit.capabilities import needs
from kit.page_hub import PATIENCE_MS, Hub, figure, go, open_row, open_whole
from kit.patience import wait_for

pytestmark = [pytest.mark.system, pytest.mark.browser]
PRODUCTS = 12
GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "pscheduler"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    needs("chromium")
    with Hub(tmp_path / "hub", without_login="latency") as started:
        yield started


def traffic(hub: Hub, page: Page, directory: Path) -> None:
    """A feed, a site that receives it, and products at that site."""
    hub.post("feeds", feed="NGRID", **{"class": "grid"})
    hub.post("sites", site="unl.edu", organisation="University", contact="ops@unl.edu")
    hub.post("sites/unl.edu/subscriptions", feed="NGRID")
    hub.receive("unl.edu", directory)
    page.goto(hub.command("login", "--link").stdout.strip())
    page.get_by_role("button", name="Sign in").click()
    drawer = open_row(page, "Sites", "unl.edu")
    expect(page.get_by_test_id("site unl.edu")).to_contain_text("up to date")
    # Latencies are counted once the site's clock has been compared.
    expect(figure(drawer, "Clock offset ± bound")).to_contain_text("±")
    for number in range(PRODUCTS):
        hub.put("NGRID", f"nam/{number}.grib2", os.urandom(5_000 + 1_000 * number))
    expect(figure(drawer, "Stored")).to_have_text(f"{PRODUCTS} products")
    go(page, "Feeds")
    expect(page.get_by_test_id("feed NGRID").locator("[data-label^=p99]")).to_contain_text(re.compile(r"\d m?s"))


def test_every_page_shows_what_it_is_for(hub: Hub, page: Page, browser: Browser, tmp_path: Path) -> None:
    traffic(hub, page, tmp_path / "near")
    _latency(hub, page)
    _feed_and_pin(hub, page)
    _site(page)
    _products(page)
    _published(page)
    _users(page, browser)
    for title in ("Alarms", "Requests", "Audit", "Now"):
        go(page, title)
        no_serious_finding(page)
    expect(page).to_have_title(re.compile("^(\\(\\d+\\) )?hub$"))
    addresses = [
        *(
            "#/",
            "#/alarms",
            "#/requests",
            "#/feeds",
            "#/feeds/NGRID",
            "#/sites",
            "#/sites/unl.edu",
            "#/latency?site=unl.edu&feed=NGRID",
        ),
        *("#/products?feed=NGRID&since=24h", "#/trace/nam%2F3.grib2", "#/map", "#/tree", "#/relays", "#/volume"),
        *("#/users", "#/audit"),
    ]
    every_page_fits(page, browser, hub.url, addresses)


def _latency(hub: Hub, page: Page) -> None:
    go(page, "Latency")
    latency = page.get_by_test_id("latency")
    latency.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("dialog", name="Lines of the chart").get_by_label("unl.edu").click()
    expect(page.get_by_role("heading", name="Latency of NGRID at unl.edu")).to_be_visible()
    page.keyboard.press("Escape")
    products = page.get_by_test_id("line NGRID@unl.edu").locator("[data-label=products]")
    expect(products).to_have_text(str(PRODUCTS))
    latency.get_by_role("group", name="Range").get_by_role("link", name="1 h").click()
    expect(page).to_have_url(re.compile(r"#/latency\?site=unl.edu&feed=NGRID&minutes=60$"))
    chart = page.get_by_role(
        "img", name=re.compile("^Latency of NGRID at unl.edu per minute, p99, .* unl.edu: worst")
    )
    expect(chart).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save CSV").click()
    rows = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text())))
    assert sum(int(row["products"]) for row in rows) == PRODUCTS
    page.reload()
    expect(page.get_by_role("heading", name="Latency of NGRID at unl.edu")).to_be_visible()
    table = latency.locator("details", has_text="Show as table")
    table.locator("summary").click()
    expect(table.get_by_role("row").nth(1)).to_contain_text("s")
    no_serious_finding(page)


def _feed_and_pin(hub: Hub, page: Page) -> None:
    open_whole(page, "Feeds", "NGRID")
    expect(page.get_by_role("heading", name="NGRID", exact=True)).to_be_focused()
    expect(page).to_have_title(re.compile("NGRID . Feeds . hub"))
    expect(page.get_by_test_id("legs")).to_contain_text("unicast (chosen)")
    expect(page.get_by_test_id("plans").get_by_role("row").nth(1)).to_contain_text("unicast")
    expect(page.get_by_test_id("lateness").get_by_role("row", name="unl.edu")).to_contain_text(str(PRODUCTS))
    expect(page.get_by_test_id("distribution")).to_contain_text(f"{PRODUCTS} products with")
    pin = page.get_by_role("button", name="Pin transport", exact=True)
    pin.click()
    form = page.get_by_role("dialog", name="Transport of NGRID")
    form.get_by_role("radio", name="unicast").check()
    form.get_by_role("button", name="Pin transport", exact=True).click()
    expect(page.get_by_test_id("form notice")).to_contain_text("NGRID is pinned to unicast.")
    expect(page.get_by_test_id("legs")).to_contain_text("pinned")
    assert hub.client.get("/v1/audit", params={"kind": "pin"}).json()["items"][0]["subject"] == "NGRID"
    no_serious_finding(page)
    pin.click()
    form.get_by_role("radio", name="chosen by the hub").check()
    form.get_by_role("button", name="Pin transport", exact=True).click()
    expect(page.get_by_test_id("legs")).not_to_contain_text("pinned")
    _deadline(page)


def _deadline(page: Page) -> None:
    deadline = page.get_by_test_id("deadline")
    expect(deadline).to_contain_text("None: each product is delivered, however late.")
    for text, answer in (("500", "has a deadline of 500"), ("", "NGRID has no deadline.")):
        deadline.get_by_role("textbox", name="Deadline, ms").fill(text)
        deadline.get_by_role("button", name="Change deadline").click()
        expect(deadline.get_by_role("status")).to_contain_text(answer)
        no_serious_finding(page)
    deadline.get_by_role("textbox", name="Deadline, ms").fill("soon")
    deadline.get_by_role("button", name="Change deadline").click()
    expect(deadline.get_by_role("alert")).to_contain_text("1 to 86,400,000")


def _site(page: Page) -> None:
    go(page, "Sites")
    page.get_by_role("searchbox", name="Filter sites").fill("nobody")
    expect(page.get_by_test_id("site unl.edu")).to_have_count(0)
    page.get_by_role("searchbox", name="Filter sites").fill("univers")
    expect(page.get_by_test_id("site unl.edu")).to_be_visible()
    open_whole(page, "Sites", "unl.edu")
    expect(page.get_by_test_id("one site")).to_contain_text("up to date")
    expect(page.get_by_test_id("endpoint")).to_contain_text("ops@unl.edu")
    expect(page.get_by_test_id("receivers")).to_contain_text("replaced automatically from")
    wishes = page.get_by_test_id("subscriptions")
    wishes.get_by_role("textbox", name="Pattern").fill("^nam/1")
    wishes.get_by_role("button", name="Test pattern").click()
    expect(wishes.get_by_test_id("pattern-test")).to_contain_text(f"3 of {PRODUCTS} products of NGRID match")
    connections = page.get_by_test_id("connections")
    # The products may have come more than a minute ago.
    connections.get_by_role("combobox", name="Period").select_option("last 10 minutes")
    connections.get_by_role("button", name="Plot connections").click()
    expect(connections).to_contain_text("Bytes acknowledged since")
    clock = page.locator(".clock strong")
    for _ in range(2):
        expect(clock).not_to_have_text(clock.inner_text())
    # It stands when the hub's next answers have come.
    expect(connections.get_by_role("img", name="Acknowledged bytes of 127.0.0.1").first).to_be_visible()
    expect(connections.get_by_role("figure").first).to_contain_text(re.compile(r"Of [\d.]+ s: application [<>]?\d+"))
    no_serious_finding(page)


def _products(page: Page) -> None:
    go(page, "Products")
    products = page.get_by_test_id("products")
    products.get_by_role("searchbox", name="ID contains").fill("/1")
    products.get_by_role("button", name="Search products").click()
    expect(products.get_by_role("rowheader")).to_have_text(["nam/11.grib2", "nam/10.grib2", "nam/1.grib2"])
    no_serious_finding(page)
    products.get_by_role("link", name="nam/10.grib2").click()
    expect(page.get_by_test_id("trace").get_by_role("row", name="unl.edu")).to_contain_text("stored")
    page.go_back()
    products.get_by_role("row", name="nam/1.grib2").get_by_role("cell").last.get_by_role("link").click()
    expect(page.get_by_test_id("trace").get_by_role("heading", name="nam/1.grib2")).to_be_visible()


def _published(page: Page) -> None:
    go(page, "Distribution tree")
    expect(page.get_by_test_id("tree")).to_contain_text("unl.edu")
    no_serious_finding(page)
    go(page, "Volume")
    expect(page.get_by_test_id("volume").get_by_role("row", name="NGRID")).to_contain_text("100 %")
    no_serious_finding(page)


def _users(page: Page, browser: Browser) -> None:
    go(page, "Users")
    page.get_by_role("button", name="Invite user").click()
    invite = page.get_by_role("dialog", name="Invite user")
    invite.get_by_role("textbox", name="Name").fill("anna")
    invite.get_by_role("radio", name="operator").check()
    invite.get_by_role("button", name="Invite user").click()
    link = invite.get_by_role("region", name="Invitation link").inner_text()
    invite.get_by_role("button", name="Done").click()
    expect(page.get_by_test_id("users").get_by_role("row", name="anna")).to_contain_text("invited")
    annas = browser.new_context().new_page()
    annas.goto(link)
    expect(annas.get_by_role("heading", name="Choose your password")).to_be_visible(timeout=PATIENCE_MS)
    annas.context.close()
    page.get_by_role("textbox", name="Token name").fill("mapper")
    page.get_by_role("button", name="Create token").click()
    expect(page.get_by_test_id("told")).to_contain_text("dba_")
    page.get_by_role("button", name="Revoke mapper").click()
    expect(page.get_by_test_id("tokens").get_by_role("row", name="mapper")).to_contain_text("revoked")
    no_serious_finding(page)


def test_what_is_published_needs_no_login_and_the_rest_does(hub: Hub, page: Page, browser: Browser) -> None:
    hub.post("feeds", feed="NGRID")
    hub.post("sites", site="unl.edu", contact="secret@unl.edu")
    hub.post("sites/unl.edu/subscriptions", feed="NGRID")
    page.goto(hub.url)
    pages = page.get_by_role("navigation", name="Pages")
    expect(pages.get_by_role("link")).to_have_text(["Latency", "Network"])
    section = page.get_by_role("navigation", name="In this section")
    expect(section.get_by_role("link")).to_have_text(["Latency", "Volume"])
    every_page_fits(page, browser, hub.url, ["#/latency", "#/tree", "#/volume", "#request"])
    go(page, "Network")
    expect(page.get_by_test_id("tree")).to_contain_text("unl.edu")
    assert "secret@" not in page.content()
    page.goto(f"{hub.url}#/users")
    expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Sign in to Downburst")).to_be_visible()


def test_a_result_of_a_perfsonar_host_stands_on_its_sites_page(hub: Hub, page: Page) -> None:
    hub.post("sites", site="unl.edu")
    made = hub.post("test-points", point="unl", addresses=["ps.unl.edu"], site="unl.edu")
    result = json.loads((GOLDEN / "latency.json").read_text())
    result["schedule"]["start"] = datetime.now(UTC).isoformat()
    answer = httpx.post(f"http://{hub.http}{made['archive_path']}", json=result)
    assert answer.json() == {"taken": True, "reason": ""}
    page.goto(hub.command("login", "--link").stdout.strip())
    page.get_by_role("button", name="Sign in").click()
    open_whole(page, "Sites", "unl.edu")
    shown = page.get_by_test_id("measurements").get_by_role("row", name="latency")
    expect(shown.locator("[data-label=Figure]")).to_contain_text("42.1", timeout=PATIENCE_MS)
    expect(shown.locator("[data-label='Test point']")).to_have_text("unl")
    no_serious_finding(page)


def test_the_apis_own_page_is_served_from_here_alone(hub: Hub, page: Page) -> None:
    asked, refused = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda said: refused.append(said.text) if "Content Security Policy" in said.text else None)
    answer = page.goto(f"{hub.url}docs")
    assert answer is not None
    assert "script-src" not in answer.headers["content-security-policy"]
    assert "unsafe-eval" not in answer.headers["content-security-policy"]
    operation = page.get_by_text("/v1/feeds/{feed}/pattern-test")
    expect(page.get_by_text("/v1/session", exact=True).first).to_be_visible()
    wait_for("the operation in view", lambda: scrolled_to(page, operation))
    expect(operation).to_be_visible()
    assert [url for url in asked if not url.startswith((hub.url, "data:"))] == []
    assert refused == []


def scrolled_to(page: Page, wanted: Locator) -> bool:
    """True if it is in the document; of a long list only the part in view is, so the page is scrolled otherwise."""
    if wanted.count():
        return True
    page.mouse.wheel(0, 400)
    return False
