"""Tasks of an operator from the landing page, counted: the reason of a late product, the silence of one alarm.

The other tasks are counted where their pages are tested: test_forms (feed, site, pin), test_latency_page (two sites
compared), test_what_if.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from kit.capabilities import needs
from kit.hands import Hands
from kit.page_hub import Hub
from kit.patience import wait_for

pytestmark = [pytest.mark.system, pytest.mark.browser]


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    """A hub whose only site received a product and then ended."""
    needs("chromium")
    with Hub(tmp_path / "hub") as started:
        started.post("feeds", feed="NGRID")
        started.post("sites", site="unl.edu")
        started.post("sites/unl.edu/subscriptions", feed="NGRID")
        started.receive("unl.edu", tmp_path / "unl")
        wait_for("the site connects", lambda: _is_connected(started))
        started.receivers[0].terminate()
        wait_for("the site is away", lambda: not _is_connected(started))
        started.put("NGRID", "grid/12Z", b"late")
        yield started


@pytest.fixture
def hands(hub: Hub, page: Page) -> Hands:
    """Those of an operator who has just signed in."""
    page.goto(hub.command("login", "--link").stdout.strip())
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_test_id("faults")).to_contain_text("unl.edu")
    return Hands(page)


def test_the_reason_of_a_late_product_takes_four_interactions(hands: Hands) -> None:
    hands.fill(hands.page.get_by_role("searchbox", name="Trace a product"), "grid/12Z")
    hands.press("Enter")
    late = hands.page.get_by_test_id("trace").get_by_role("row", name="unl.edu")
    expect(late).to_contain_text("waiting")
    expect(late).to_contain_text("the site is offline since")
    assert hands.count <= 4


def test_one_alarm_is_silenced_in_three_interactions(hub: Hub, hands: Hands) -> None:
    incident = hands.page.get_by_test_id("faults").get_by_role("listitem").filter(has_text="unl.edu")
    hands.click(incident.get_by_role("button", name="Silence"))
    menu = hands.page.get_by_role("menu").get_by_role("group", name="This alarm")
    hands.click(menu.get_by_role("menuitem", name="For 1 hour"))
    expect(hands.page.get_by_test_id("faults").get_by_text("1 silenced", exact=True)).to_be_visible()
    assert hands.count <= 3
    (made,) = hub.client.get("/v1/silences").json()
    assert made["site"] == "unl.edu"


def _is_connected(hub: Hub) -> bool:
    (site,) = hub.client.get("/v1/overview").json()["sites"]
    return bool(site["connected"])
