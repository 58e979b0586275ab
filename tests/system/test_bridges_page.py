"""The page of bridges on a hub with real brokers: signals that are true, and switches that work."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from kit.axe import every_page_fits, no_serious_finding
from kit.capabilities import needs
from kit.page_hub import Hub, go
from kit.wis2.bridged_hub import ABOVE, BUDGET, GTS, WITHIN, BridgedHub
from system.test_words_on_pages import GLUED

pytestmark = [pytest.mark.system, pytest.mark.browser]
BULLETIN = b"SMVX52 TJSJ 291200\r\r\nAAXX 29121\r\r\n78526 11/// 81005"


@pytest.fixture
def bridged(tmp_path: Path) -> Iterator[BridgedHub]:
    needs("chromium")
    with Hub(tmp_path / "hub") as hub, BridgedHub(hub) as made:
        yield made


def opened(bridged: BridgedHub, page: Page) -> tuple[Locator, Locator]:
    """The panels of the source and of the publisher."""
    page.goto(bridged.hub.command("login", "--link").stdout.strip())
    page.get_by_role("button", name="Sign in").click()
    go(page, "Bridges")
    return page.get_by_test_id("bridge-global"), page.get_by_test_id("publisher-synop")


@pytest.mark.smoke
def test_the_page_shows_which_centre_waits_and_what_was_refused(bridged: BridgedHub, page: Page) -> None:
    source, publisher = opened(bridged, page)
    first = source.get_by_test_id(f"broker {bridged.brokers[0].url}")
    expect(source).to_contain_text("2 brokers connected, all topics bound.")
    expect(first).to_contain_text("none since the connection")
    bridged.announce(WITHIN, 20, 4_000)
    bridged.announce(ABOVE, 9, 100_000)
    bridged.refused()
    bridged.until(coming=0, held=25, waiting=4)
    _the_centres(source)
    expect(first.locator("[data-label=Messages]")).to_contain_text("/min")
    expect(first.locator("[data-label='Last message']")).to_contain_text("ago")
    source.get_by_text("Refused and passed over").click()
    expect(source.get_by_test_id("passed over")).to_contain_text("refused")
    expect(publisher).to_contain_text("Switched off: nothing is announced.")
    no_serious_finding(page)
    assert page.evaluate(GLUED) == []


def _the_centres(source: Locator) -> None:
    """Bytes of one centre above its budget wait, others do not."""
    above, within = (source.get_by_test_id(f"centre {name}") for name in (ABOVE, WITHIN))
    expect(above).to_contain_text(f"{BUDGET // 1_000} kB of {BUDGET // 1_000} kB")
    expect(above.locator("[data-label=Waiting] .warn")).to_contain_text("4 products (400 kB) above the budget")
    expect(within).to_contain_text(f"80.0 kB of {BUDGET // 1_000} kB")
    expect(within.locator("[data-label=Waiting]")).to_contain_text("none")
    expect(within.locator("[data-label=Products]")).to_have_text("20")


def test_holes_and_a_broker_that_is_away_are_not_green(bridged: BridgedHub, page: Page, browser: Browser) -> None:
    source, _ = opened(bridged, page)
    bridged.announce(WITHIN, 1, 1_000, broker=1)
    bridged.until(held=1)
    bridged.lose_sessions(1)
    holes = source.get_by_test_id("holes")
    expect(holes).to_contain_text("the broker did not keep the session")
    expect(holes.locator(".good")).to_contain_text("filled")
    bridged.brokers[1].stop()
    away = source.get_by_test_id(f"broker {bridged.brokers[1].url}").locator("[data-label=State]")
    expect(away.locator(".bad")).to_contain_text("takes no connection at port")
    expect(source).to_contain_text("1 of 2 brokers in order.")
    bridged.lose_sessions(0)
    expect(holes.locator(".bad")).to_contain_text("not filled")
    every_page_fits(page, browser, bridged.hub.url, ["#/bridges"])


def test_failed_products_are_fetched_again_by_a_button(bridged: BridgedHub, page: Page) -> None:
    source, _ = opened(bridged, page)
    bridged.may_ask_private(allowed=False)
    bridged.announce(WITHIN, 2, 1_000)
    bridged.until(coming=0, failed=2)
    failed = source.get_by_test_id("failed")
    expect(failed.locator("tbody tr")).to_have_count(2)
    expect(failed).to_contain_text("127.0.0.1 is in a private network")
    bridged.may_ask_private(allowed=True)
    source.get_by_role("button", name="Fetch failed products again").click()
    expect(source.get_by_role("status")).to_have_text("All failed products are fetched again.")
    expect(failed).to_have_text("No failed products.")
    bridged.until(held=2, failed=0)


def test_a_notification_is_looked_at_before_a_publisher_is_switched_on(bridged: BridgedHub, page: Page) -> None:
    _, publisher = opened(bridged, page)
    switch = publisher.get_by_role("button", name="Switch on publisher synop")
    expect(switch).to_be_disabled()
    bridged.hub.put(GTS, "SMVX52 TJSJ 291200", BULLETIN)
    publisher.get_by_role("button", name="Preview notification").click()
    preview = publisher.get_by_test_id("preview")
    expect(preview).to_contain_text("Valid: a notification as WIS2 requires it. Nothing was sent.")
    expect(preview).to_contain_text("us-unidata-test/synop/SMVX52+TJSJ+291200")
    expect(preview).to_contain_text('"ttaaii": "SMVX52"')
    no_serious_finding(page)
    switch.click()
    expect(publisher.get_by_role("status")).to_contain_text("it begins with the next product")
    expect(publisher).to_contain_text("Connected for")
    bridged.hub.put(GTS, "SMVX53 TJSJ 291200", BULLETIN)
    expect(publisher).to_contain_text("no client is subscribed at the broker, as a Global Broker would be")
    bridged.subscriber()
    expect(publisher).to_contain_text("reason 0 (success)")
    expect(publisher.get_by_test_id("products")).to_contain_text("announced")
    publisher.get_by_role("button", name="Switch off publisher synop").click()
    expect(publisher).to_contain_text("Switched off: nothing is announced.")
