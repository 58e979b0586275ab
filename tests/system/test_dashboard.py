"""The page in a real browser, served by a real hub with a real site."""

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from kit.axe import no_serious_finding
from kit.capabilities import needs
from kit.page_hub import PATIENCE_MS, Hub, figure, go, open_row

pytestmark = [pytest.mark.system, pytest.mark.browser]

A_LATENCY = re.compile(r"^\s*(\u2212?[\d.]+ (ms|s)( \(clock\))?|not known \([\d.]+ (ms|s)\))\s*$")
"""A figure. On a busy machine the bound of the clocks may exceed half of a latency of loopback."""


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    needs("chromium")
    with Hub(tmp_path / "hub", without_login="page") as started:
        yield started


@pytest.fixture
def other(hub: Hub, tmp_path: Path) -> Iterator[Hub]:
    """A second hub, of another name."""
    with Hub(tmp_path / "other", "other", without_login="page") as started:
        yield started


def a_site_that_receives(hub: Hub, directory: Path) -> None:
    hub.post("feeds", feed="TEST", **{"class": "observation"})
    hub.post("sites", site="near.example", organisation="<b onmouseover=alert(1)>Near</b>")
    hub.post("sites/near.example/subscriptions", feed="TEST")
    hub.receive("near.example", directory)


def test_an_empty_hub_says_what_to_do_next(hub: Hub, page: Page) -> None:
    page.goto(f"http://{hub.http}/")
    expect(page.get_by_role("heading", name="Next steps")).to_be_visible()
    expect(page.get_by_text("downburst feeds add NGRID --class grid")).to_be_visible()
    expect(page.get_by_test_id("status")).to_contain_text("No site has received a feed yet")
    hub.post("feeds", feed="TEST")
    expect(page.get_by_text("downburst put TEST my/first/product ./file")).to_be_visible()
    go(page, "Feeds")
    expect(page.get_by_test_id("feed TEST")).to_contain_text("not measured")
    go(page, "Sites")
    expect(page.get_by_role("main")).to_contain_text("This hub has no sites yet")


@pytest.mark.smoke
def test_what_flows_is_on_the_page_without_a_reload(hub: Hub, page: Page, tmp_path: Path) -> None:
    page.goto(f"http://{hub.http}/#/sites")
    a_site_that_receives(hub, tmp_path / "near")
    site = page.get_by_test_id("site near.example")
    expect(site).to_contain_text("up to date")
    expect(site).to_contain_text("<b onmouseover=alert(1)>Near</b>")
    for number in range(20):
        hub.put("TEST", f"product-{number}", os.urandom(20_000))
    expect(site.locator("[data-label=Stored]")).to_have_text("20")
    expect(figure(open_row(page, "Sites", "near.example"), "Clock offset ± bound")).to_contain_text("±")
    drawer = open_row(page, "Feeds", "TEST")
    expect(page.get_by_test_id("feed TEST")).to_contain_text("unicast")
    expect(figure(drawer, "Products")).to_contain_text("20 products")
    for label in ("p50", "p99", "Worst"):
        expect(figure(drawer, label)).to_have_text(A_LATENCY)
    drawer.get_by_role("link", name="Open TEST").click()
    expect(page).to_have_url(re.compile("#/feeds/TEST$"))
    expect(page.get_by_role("heading", name="TEST", exact=True)).to_be_focused()
    expect(page.get_by_role("img", name=re.compile("Latency of TEST at all sites per minute"))).to_be_visible()


def test_a_site_that_is_away_is_wrong_and_a_hub_that_is_away_is_told(hub: Hub, page: Page, tmp_path: Path) -> None:
    a_site_that_receives(hub, tmp_path / "near")
    page.goto(f"http://{hub.http}/#/sites")
    expect(page.get_by_test_id("site near.example")).to_contain_text("up to date")
    go(page, "Feeds")
    expect(page.get_by_test_id("feed TEST")).to_be_visible()
    go(page, "Now")
    hub.receivers[0].terminate()
    expect(page.get_by_test_id("faults")).to_contain_text("near.example")
    expect(page.get_by_test_id("faults")).to_contain_text("Next step")
    hub.stop(how=signal.SIGKILL)
    expect(page.get_by_test_id("link")).to_contain_text("The hub does not answer")
    go(page, "Feeds")
    expect(page.get_by_test_id("feed TEST")).to_be_visible()
    hub.start()
    expect(page.get_by_test_id("link")).to_be_empty()


@pytest.mark.smoke
def test_a_product_is_traced_to_who_has_it_and_who_does_not_want_it(hub: Hub, page: Page, tmp_path: Path) -> None:
    a_site_that_receives(hub, tmp_path / "near")
    hub.post("sites", site="far.example")
    hub.post("sites/far.example/subscriptions", feed="TEST", pattern="^other/")
    page.goto(f"http://{hub.http}/#/sites")
    site = page.get_by_test_id("site near.example")
    expect(site).to_contain_text("up to date")
    hub.put("TEST", "path/of a product#1", b"content")
    expect(site.locator("[data-label=Stored]")).to_have_text("1")
    go(page, "Now")
    page.get_by_role("searchbox", name="Trace a product").fill("path/of a product#1")
    page.get_by_role("button", name="Trace product").click()
    trace = page.get_by_test_id("trace")
    expect(trace.get_by_role("heading", name="path/of a product#1")).to_be_visible()
    expect(trace.get_by_role("row", name="near.example")).to_contain_text("stored")
    far = trace.get_by_role("row", name="far.example")
    expect(far).to_contain_text("not subscribed")
    expect(far).to_contain_text("its subscription does not include this id of TEST")
    expect(trace).to_contain_text("1 of 1 site had it within the objective")
    near = trace.get_by_role("row", name="near.example")
    expect(near.get_by_role("img", name=re.compile("transfer .* site disk"))).to_be_visible()
    near.get_by_role("button", name="near.example").click()
    expect(trace.get_by_test_id("stages of near.example").get_by_role("row")).not_to_have_count(1)
    expect(trace.get_by_test_id("reason at near.example")).to_contain_text("stored by unicast")
    expect(trace.locator("[aria-live=polite]")).to_have_count(1)
    no_serious_finding(page)
    page.reload()
    expect(far).to_contain_text("not subscribed")
    hub.post("sites", site="idle.example")
    page.get_by_role("textbox", name="Site").fill("idle.example")
    page.get_by_role("button", name="Trace product").click()
    idle = trace.get_by_role("row", name="idle.example")
    expect(idle).to_contain_text("the site has no subscription to TEST")
    expect(idle).to_contain_text("Next: if it should get it: downburst subscriptions add idle.example 'TEST'")
    expect(far).to_have_count(0)
    page.get_by_role("textbox", name="Site").fill("")
    page.get_by_role("searchbox", name="Trace a product").fill("never/put")
    page.keyboard.press("Enter")
    expect(trace.get_by_role("row", name="near.example")).to_have_count(0)
    expect(trace).to_contain_text("never/put")


def test_a_site_that_another_hub_serves_and_an_upstream_are_told(
    hub: Hub, other: Hub, page: Page, tmp_path: Path
) -> None:
    for one in (hub, other):
        one.post("feeds", feed="TEST")
        one.post("sites", site="near.example")
        one.post("sites/near.example/subscriptions", feed="TEST")
    other.receive("near.example", tmp_path / "near", hub)
    other.post("sites", site="hub.example")
    other.post("sites/hub.example/subscriptions", feed="TEST")
    token = other.post("sites/hub.example/tokens")["token"]
    hub.post("upstreams", upstream="above", address=other.sites, token=token, feeds=["TEST"])
    page.goto(f"http://{hub.http}/#/sites")
    site, upstream = page.get_by_test_id("site near.example"), page.get_by_test_id("upstream above")
    expect(site).to_contain_text("stands by")
    go(page, "Now")
    expect(upstream).to_contain_text("connected")
    expect(upstream).to_contain_text("reports the name other")
    expect(page.get_by_test_id("faults")).to_contain_text("none open")
    other.process.kill()
    expect(upstream).to_contain_text("away")
    expect(page.get_by_test_id("faults")).to_contain_text("No connection to the upstream above")
    go(page, "Sites")
    expect(site).to_contain_text("up to date")


def test_without_events_the_page_asks(hub: Hub, page: Page) -> None:
    page.route("**/v1/events", lambda route: route.abort())
    page.goto(f"http://{hub.http}/")
    expect(page.get_by_test_id("link")).to_contain_text("polls the hub every second")
    hub.post("feeds", feed="LATER")
    go(page, "Feeds")
    expect(page.get_by_test_id("feed LATER")).to_be_visible()


def test_the_page_is_read_aloud_and_used_by_keyboard(hub: Hub, page: Page, tmp_path: Path) -> None:
    a_site_that_receives(hub, tmp_path / "near")
    for address, row in (("#/feeds", "feed TEST"), ("#/sites", "site near.example")):
        page.goto(f"http://{hub.http}/{address}")
        expect(page.get_by_test_id(row)).to_be_visible()
        table = page.get_by_role("table")
        expect(table.locator("caption")).not_to_be_empty()
        assert table.locator("thead th").count() == table.locator("thead th[scope=col]").count() > 0
        assert table.locator("tbody th[scope=row]").count() == table.locator("tbody tr").count() == 1
    page.goto(f"http://{hub.http}/?fresh#/")
    expect(page.get_by_test_id("status")).to_be_visible()
    assert page.locator("[aria-live=polite]").count() == 2
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="All alarms")).to_be_focused()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")])
def test_the_page_fits_its_screen(hub: Hub, browser: Browser, tmp_path: Path, width: int, scheme: str) -> None:
    a_site_that_receives(hub, tmp_path / "near")
    dark = scheme == "dark"
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme="dark" if dark else "light")
    page = context.new_page()
    shown = {"#/feeds": "feed TEST", "#/sites": "site near.example", "#/": "status"}
    for address, part in shown.items():
        page.goto(f"http://{hub.http}/{address}")
        page.get_by_test_id(part).wait_for(timeout=PATIENCE_MS)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(map(int, re.findall(r"\d+", ground)[:3])) / 3
    assert brightness < 60 if dark else brightness > 200
    context.close()


def test_the_page_fetches_nothing_from_elsewhere(hub: Hub, page: Page) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"http://{hub.http}/")
    expect(page.get_by_role("heading", name="Next steps")).to_be_visible()
    deadline_s = time.monotonic() + PATIENCE_MS / 1000
    while not any("/v1/events" in url for url in asked):
        assert time.monotonic() < deadline_s, asked
        page.wait_for_timeout(50)
    assert [url for url in asked if not url.startswith(f"http://{hub.http}/")] == []
