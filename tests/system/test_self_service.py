"""A site requests access on the page and gets it; its administrator and the operator work in a browser."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from kit.axe import every_page_fits, no_serious_finding
from kit.node import node_binary
from kit.page_hub import PATIENCE_MS, Hub, go, open_whole
from kit.patience import wait_for

pytestmark = [pytest.mark.system, pytest.mark.browser]
PASSWORD = "four words are long"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub with the traffic of a busy one, made small."""
    monkeypatch.setenv("DOWNBURST_ALARMS__OBJECTIVE_PRODUCTS", "10")
    monkeypatch.setenv("DOWNBURST_ALARMS__LOOK_S", "1")
    with Hub(tmp_path / "hub") as started:
        started.play(rate=0.2, size=0.02)
        wait_for("products of NGRID", lambda: _products(started, "NGRID") > 20, seconds=60)
        yield started


def _products(hub: Hub, feed: str) -> int:
    found = hub.client.get("/v1/overview").json()["feeds"]
    return sum(int(one["products"]) for one in found if one["feed"] == feed)


def fill(page: Page, **fields: str) -> None:
    for label, value in fields.items():
        page.get_by_role("textbox", name=label.replace("_", " ")).fill(value)


def go_at_site(page: Page, title: str) -> None:
    page.get_by_role("navigation", name="Pages").get_by_role("link", name=title, exact=True).click()


@pytest.mark.long(28)
def test_a_site_serves_itself_and_an_operator_rules(hub: Hub, page: Page, browser: Browser, tmp_path: Path) -> None:
    operators = browser.new_context().new_page()
    operators.set_default_timeout(PATIENCE_MS)
    operators.goto(hub.command("login", "--link").stdout.strip())
    operators.get_by_role("button", name="Sign in").click()
    go(operators, "Feeds")
    expect(operators.get_by_test_id("feed NGRID")).to_be_visible()

    _asks(hub, page)
    _is_approved(operators)
    _signs_in(page)
    _tests_a_pattern_and_subscribes(page)
    page.get_by_role("button", name="Create enrolment token").click()
    _receive_as_the_page_says(hub, page, tmp_path / "near")
    expect(page.get_by_test_id("own-state").get_by_role("heading")).to_have_text("Connected")
    _replaces_its_credential(page)
    _sees_its_first_product(page)
    _reads_its_p99_and_follows_a_trace(page)
    _registers_its_endpoint(hub, page)
    _sets_its_own_alarms(hub, page)
    every_page_fits(page, browser, hub.url, ["#/", "#/alarms", "#/latency", "#/products?feed=NGRID&since=1h"])

    _pins_a_feed(operators)
    _limits_the_site(hub, operators)
    _silences_an_alarm(hub, operators)
    _revokes_the_site(operators)
    expect(page.get_by_test_id("own-state").get_by_role("heading")).to_have_text("Not connected")
    expect(page.get_by_test_id("receivers")).to_contain_text("revoked")
    expect(page.get_by_test_id("limits")).to_contain_text("^NGRID")


def _asks(hub: Hub, page: Page) -> None:
    page.goto(hub.url)
    no_serious_finding(page)
    page.get_by_role("link", name="Request access for your site").click()
    fill(page, Site_name="unl.edu", Organisation="University", Contact="ops@unl.edu", Requested_feeds="NGRID")
    no_serious_finding(page)
    page.get_by_role("button", name="Send request").click()
    expect(page.get_by_test_id("request-state")).to_contain_text("is pending")


def _is_approved(operators: Page) -> None:
    go(operators, "Requests")
    request = operators.get_by_test_id("requests").get_by_role("article", name="unl.edu")
    expect(request).to_contain_text("ops@unl.edu")
    no_serious_finding(operators)
    request.get_by_role("button", name="Approve request").click()
    # The site's administrator does the rest.
    form = operators.get_by_role("dialog", name="Approve unl.edu")
    expect(form.get_by_role("checkbox", name="NGRID")).to_be_checked()
    form.get_by_role("checkbox", name="Subscribe it to these feeds").uncheck()
    form.get_by_role("checkbox", name="Create an enrolment token").uncheck()
    form.get_by_role("button", name="Approve request").click()
    expect(operators.get_by_text("No pending requests.")).to_be_visible()


def _signs_in(page: Page) -> None:
    page.get_by_role("link", name="Choose a password").click()
    fill(page, Password=PASSWORD)
    page.get_by_role("button", name="Save password").click()
    expect(page.get_by_role("heading", name="unl.edu", exact=True)).to_be_visible()


def _tests_a_pattern_and_subscribes(page: Page) -> None:
    """The products that a pattern would have selected are shown before it is saved."""
    wishes = page.get_by_test_id("subscriptions")
    wishes.get_by_role("textbox", name="Pattern").fill("(")
    wishes.get_by_role("button", name="Test pattern").click()
    expect(wishes.get_by_role("alert")).to_contain_text("at character 1")
    wishes.get_by_role("textbox", name="Pattern").fill("[02468] [^ ]*$")
    tested = wishes.get_by_test_id("pattern-test")
    wishes.get_by_role("button", name="Test pattern").click()
    expect(tested).to_contain_text(re.compile(r"[1-9]\d* of \d+ products of NGRID match"))
    expect(tested.get_by_role("link").first).to_have_text(re.compile(r"^NGRID .*[02468] \S+$"))
    wishes.get_by_role("button", name="Add subscription").click()
    expect(wishes.get_by_role("button", name="Remove subscription")).to_be_visible()


def _receive_as_the_page_says(hub: Hub, page: Page, directory: Path) -> None:
    """Follows the page's commands for copying, with the names of this machine's node and directories."""
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


def _sees_its_first_product(page: Page) -> None:
    row = page.get_by_test_id("own-latency").get_by_role("row", name="NGRID by unicast").first
    expect(row.locator("[data-label=Products]")).to_have_text(re.compile(r"^[1-9]\d*$"))
    no_serious_finding(page)


def _reads_its_p99_and_follows_a_trace(page: Page) -> None:
    """From the row of the table to the history, from an id to the product's location, and back."""
    page.get_by_test_id("own-latency").get_by_role("link", name="NGRID").first.click()
    expect(page.get_by_role("heading", name="Latency of NGRID at unl.edu")).to_be_focused()
    p99 = page.get_by_test_id("line NGRID@unl.edu").locator("[data-label=p99]")
    expect(p99).to_have_text(re.compile(r"^(not known \()?[\d.]+ (ms|s)"))
    expect(page.get_by_role("img", name=re.compile("Latency of NGRID at unl.edu per 5 minutes"))).to_be_visible()
    no_serious_finding(page)
    go_at_site(page, "Site")
    wishes = page.get_by_test_id("subscriptions")
    wishes.get_by_role("button", name="Test subscription").click()
    wishes.get_by_test_id("pattern-test").get_by_role("link").first.click()
    trace = page.get_by_test_id("trace")
    expect(trace.get_by_role("row", name="unl.edu")).to_contain_text(re.compile("stored|not subscribed"))
    no_serious_finding(page)
    go_at_site(page, "Site")


def _registers_its_endpoint(hub: Hub, page: Page) -> None:
    endpoint = page.get_by_test_id("endpoint")
    endpoint.get_by_text("Edit endpoint").click()
    form = endpoint.get_by_role("form", name="Endpoint")
    expect(form.get_by_role("textbox", name="Contact")).to_have_value("ops@unl.edu")
    form.get_by_role("textbox", name="Contact").fill("night@unl.edu")
    form.get_by_role("spinbutton", name="Access rate, Mb/s").fill("200")
    form.get_by_role("button", name="Save endpoint").click()
    expect(endpoint.get_by_role("status")).to_have_text("Endpoint saved.")
    expect(endpoint.get_by_role("definition").nth(1)).to_have_text("night@unl.edu")
    kept = hub.client.get("/v1/sites/unl.edu").json()
    assert (kept["organisation"], kept["access_rate_bps"]) == ("University", 200e6)


def _sets_its_own_alarms(hub: Hub, page: Page) -> None:
    go_at_site(page, "Alarms")
    windows = page.get_by_test_id("silences")
    windows.get_by_role("textbox", name="Reason").fill("new disk")
    windows.get_by_role("button", name="Schedule maintenance").click()
    expect(windows.get_by_role("listitem")).to_contain_text("new disk, by admin@unl.edu")
    overview = hub.client.get("/v1/overview").json()
    assert overview["sites"][0]["maintenance"]["reason"] == "new disk"
    windows.get_by_role("button", name="End maintenance").click()
    expect(windows.get_by_role("listitem")).to_have_text("No maintenance scheduled.")
    receivers = page.get_by_test_id("alarm-receivers")
    form = receivers.get_by_role("form", name="Add recipient")
    form.get_by_role("textbox", name="Name").fill("us")
    form.get_by_role("textbox", name="Address").fill("ops@unl.edu")
    form.get_by_role("button", name="Add recipient").click()
    expect(receivers.get_by_role("listitem")).to_contain_text("us (mail to ops@unl.edu): all alarms")
    receivers.get_by_role("button", name="Test us").click()
    # This hub has no mail server.
    expect(receivers.get_by_role("alert")).to_contain_text("smtp_url")
    expect(page.get_by_test_id("objectives").get_by_role("button")).to_have_count(0)
    no_serious_finding(page)
    go_at_site(page, "Site")


def _pins_a_feed(operators: Page) -> None:
    open_whole(operators, "Feeds", "NGRID")
    operators.get_by_role("button", name="Pin transport", exact=True).click()
    form = operators.get_by_role("dialog", name="Transport of NGRID")
    form.get_by_role("radio", name="unicast").check()
    form.get_by_role("button", name="Pin transport", exact=True).click()
    expect(operators.get_by_test_id("form notice")).to_contain_text("NGRID is pinned to unicast.")
    expect(operators.get_by_test_id("legs")).to_contain_text("pinned")


def _limits_the_site(hub: Hub, operators: Page) -> None:
    open_whole(operators, "Sites", "unl.edu")
    limits = operators.get_by_test_id("limits")
    form = limits.get_by_role("form", name="Add limit")
    form.get_by_role("textbox", name="OK").fill("^NGRID")
    form.get_by_role("textbox", name="NOT").fill("0 [^ ]*$")
    form.get_by_role("button", name="Test limit on the last hour").click()
    expect(limits.get_by_test_id("pattern-test")).to_contain_text(re.compile(r"[1-9]\d* of \d+ products of NGRID"))
    form.get_by_role("button", name="Add limit").click()
    expect(limits.get_by_role("row", name="NGRID ^NGRID 0 [^ ]*$")).to_be_visible()
    kept = hub.client.get("/v1/sites/unl.edu").json()["limits"]
    assert kept == [{"feed": "NGRID", "pattern": "^NGRID", "not_pattern": "0 [^ ]*$"}]
    no_serious_finding(operators)


def _silences_an_alarm(hub: Hub, operators: Page) -> None:
    """An impossible objective soon raises an alarm."""
    objectives = operators.get_by_test_id("objectives")
    objectives.get_by_role("button", name="Set objective").click()
    form = operators.get_by_role("dialog", name="Objective at unl.edu")
    form.get_by_role("combobox", name="Feed").select_option("NGRID")
    form.get_by_role("textbox", name="Latency").fill("0.1")
    form.get_by_role("textbox", name="Deliveries").fill("90")
    form.get_by_role("button", name="Set objective").click()
    expect(objectives.get_by_role("listitem")).to_contain_text("NGRID: 90 % within 0.10 ms")
    go(operators, "Alarms")
    alarm = operators.get_by_test_id("alarms").get_by_role("listitem").filter(has_text="NGRID reaches unl.edu late")
    expect(alarm).to_contain_text("objective 0.1 ms")
    alarm.get_by_role("button", name="Silence alarm for 1 hour").click()
    operators.get_by_test_id("alarms").locator("summary").click()
    expect(alarm).to_contain_text("silenced until")
    silence = operators.get_by_test_id("silences").get_by_role("listitem")
    expect(silence).to_contain_text("objective alarms of NGRID at unl.edu")
    assert [(one["site"], one["by"]) for one in hub.client.get("/v1/silences").json()] == [("unl.edu", "local")]
    no_serious_finding(operators)


def _replaces_its_credential(page: Page) -> None:
    """The session continues with another one, and the page reports it without a reload."""
    receivers = page.get_by_test_id("receivers")
    receivers.get_by_role("button", name="Replace credential of unl.edu").click()
    expect(receivers).to_contain_text(re.compile(r",\s+replaced \d{4}-\d\d-\d\d"))
    expect(page.get_by_test_id("own-state").get_by_role("heading")).to_have_text("Connected")


def _revokes_the_site(operators: Page) -> None:
    """The dialog is answered; the cut-off site is listed among the faults, and is silenced there."""
    open_whole(operators, "Sites", "unl.edu")
    receivers = operators.get_by_test_id("receivers")
    receivers.get_by_role("button", name="Revoke all credentials of unl.edu").click()
    dialog = receivers.get_by_role("dialog")
    expect(dialog).to_contain_text("disconnects all receivers of unl.edu now")
    no_serious_finding(operators)
    dialog.get_by_role("button", name="Revoke all credentials").click()
    expect(receivers).to_contain_text("revoked")
    go(operators, "Now")
    incident = operators.get_by_test_id("faults").get_by_role("listitem").filter(has_text="unl.edu is down")
    incident.get_by_role("button", name="Silence").click()
    this_alarm = operators.get_by_role("menu").get_by_role("group", name="This alarm")
    this_alarm.get_by_role("menuitem", name="For 1 hour").click()
    expect(operators.get_by_text("Silenced: unl.edu is down")).to_be_visible()
    no_serious_finding(operators)
