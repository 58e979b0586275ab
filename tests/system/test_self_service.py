"""A site comes by itself: it asks on the page, is approved there, enrols its receiver, and reads its latency."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from kit.axe import no_serious_finding
from kit.node import node_binary
from kit.page_hub import PATIENCE_MS, Hub

pytestmark = [pytest.mark.system, pytest.mark.browser]
PASSWORD = "four words are long"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    started = Hub(tmp_path / "hub").start()
    try:
        yield started
    finally:
        started.close()


def fill(page: Page, **fields: str) -> None:
    for label, value in fields.items():
        page.get_by_role("textbox", name=label.replace("_", " ")).fill(value)


def test_a_site_asks_is_approved_enrols_and_reads_its_latency(
    hub: Hub, page: Page, browser: Browser, tmp_path: Path
) -> None:
    hub.post("feeds", feed="NGRID")
    page.goto(hub.url)
    page.get_by_role("link", name="Ask for access for your site").click()
    fill(page, Name_of_the_site="unl.edu", Organisation="University", Contact="ops@unl.edu", Feeds_you_want="NGRID")
    no_serious_finding(page)
    page.get_by_role("button", name="Ask").click()
    expect(page.get_by_test_id("request-state")).to_contain_text("waits for the operator")

    operators = browser.new_context().new_page()
    operators.set_default_timeout(PATIENCE_MS)
    operators.goto(hub.command("login", "--link").stdout.strip())
    operators.get_by_role("button", name="Sign in").click()
    operators.get_by_role("link", name="Requests").click()
    request = operators.get_by_test_id("requests").get_by_role("article", name="unl.edu")
    expect(request).to_contain_text("ops@unl.edu")
    no_serious_finding(operators)
    request.get_by_role("button", name="Approve").click()
    expect(operators.get_by_text("Nobody waits for an answer.")).to_be_visible()

    page.get_by_role("link", name="Choose a password").click()
    fill(page, Password=PASSWORD)
    page.get_by_role("button", name="Choose it").click()
    expect(page.get_by_role("heading", name="unl.edu")).to_be_visible()
    page.get_by_role("button", name="Subscribe").click()
    expect(page.get_by_role("button", name="Remove")).to_be_visible()
    page.get_by_role("button", name="Make an enrolment token").click()
    _receive_as_the_page_says(hub, page, tmp_path / "near")
    expect(page.get_by_test_id("own-state")).to_contain_text("Connected")
    for number in range(3):
        hub.put("NGRID", f"product-{number}", b"x" * 1_000)
    _a_pattern_is_tried(page)
    row = page.get_by_test_id("own-latency").get_by_role("row", name="NGRID by unicast").first
    expect(row.locator("[data-label=Products]")).to_have_text("3")
    expect(row.locator("[data-label=p99]")).to_have_text(re.compile(r"[\d.]+ (ms|s)"))
    no_serious_finding(page)
    _latency_and_trace_are_read(page)

    operators.get_by_role("link", name="Sites", exact=True).click()
    operators.get_by_test_id("site unl.edu").get_by_role("link", name="unl.edu").click()
    operators.get_by_role("button", name="Revoke all of unl.edu").click()
    expect(operators.get_by_test_id("receivers")).to_contain_text("revoked")
    no_serious_finding(operators)
    operators.get_by_role("link", name="Now").click()
    operators.get_by_role("button", name="Silence unl.edu for an hour").click()
    expect(operators.get_by_text("Nobody is told of unl.edu for an hour.")).to_be_visible()
    silences = hub.client.get("/v1/silences").json()
    assert [(one["site"], one["by"]) for one in silences] == [("unl.edu", "local")]
    no_serious_finding(operators)
    expect(page.get_by_test_id("own-state")).to_contain_text("Not connected")
    expect(page.get_by_text("revoked")).to_be_visible()


def _a_pattern_is_tried(page: Page) -> None:
    """The site's administrator sees what a pattern would have brought."""
    wishes = page.get_by_test_id("subscriptions")
    wishes.get_by_role("textbox", name="Pattern").fill("-[12]$")
    wishes.get_by_role("button", name="Test this pattern").click()
    tested = page.get_by_test_id("pattern-test")
    expect(tested).to_contain_text("2 of 3 products of NGRID match")
    expect(tested.get_by_role("link")).to_have_text(["product-2", "product-1"])
    expect(tested.get_by_role("listitem").last).to_have_text("product-0")
    wishes.get_by_role("textbox", name="Pattern").fill("(")
    wishes.get_by_role("button", name="Test this pattern").click()
    expect(wishes.get_by_role("alert")).to_contain_text("at character 1")


def _latency_and_trace_are_read(page: Page) -> None:
    """From the row of the table to the history, from an id to where the product is, and back."""
    page.get_by_test_id("own-latency").get_by_role("link", name="NGRID").first.click()
    expect(page.get_by_role("heading", name="Latency of NGRID at unl.edu")).to_be_focused()
    expect(page.get_by_test_id("figures")).to_contain_text(re.compile(r"p99\s*[\d.]+ (ms|s)"))
    expect(page.get_by_role("img", name=re.compile("Latency of NGRID at unl.edu per minute"))).to_be_visible()
    no_serious_finding(page)
    page.get_by_role("link", name="Site", exact=True).click()
    wishes = page.get_by_test_id("subscriptions")
    wishes.get_by_role("button", name="Test", exact=True).click()
    page.get_by_test_id("pattern-test").get_by_role("link", name="product-0").click()
    trace = page.get_by_test_id("trace")
    expect(trace.get_by_role("row", name="unl.edu")).to_contain_text("stored")
    no_serious_finding(page)
    page.get_by_role("link", name="Site", exact=True).click()


def _receive_as_the_page_says(hub: Hub, page: Page, directory: Path) -> None:
    """Does what the page tells to copy, with the names of this machine's node and directories."""
    told = page.get_by_test_id("enrolment").inner_text()
    found = re.search(r"echo '(\S+)' > unl\.edu\.token\n(downburst-node receive --hub (\S+) .*)", told)
    assert found, told
    assert found[3] == hub.sites
    directory.mkdir()
    token_file = directory / "unl.edu.token"
    token_file.write_text(found[1])
    command = found[2].replace("downburst-node", node_binary(), 1).replace("unl.edu.token", str(token_file))
    argv = command.replace("/data/downburst", str(directory)).split()
    hub.receivers.append(subprocess.Popen(argv, stderr=subprocess.DEVNULL))
