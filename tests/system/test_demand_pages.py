"""The page of circuits on demand in a real browser: offers, providers, and the orders of a day."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from downburst.domain.ordering import DemandOrder, OrderStep, OrderTimes, OrderUse
from downburst.ledger import Ledger
from kit.axe import every_page_fits, no_serious_finding
from kit.capabilities import needs
from kit.page_hub import Hub, go

pytestmark = [pytest.mark.system, pytest.mark.browser]
ORDERS_ASKED, DRY_RUNS = 100, 101


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    needs("chromium")
    with Hub(tmp_path / "hub") as started:
        started.post("sites", site="unl.edu", organisation="University")
        yield started


def test_an_operator_adds_changes_and_removes_an_offer(hub: Hub, page: Page) -> None:
    hub.post("ports", port="hub-eth0", rate_bps=1_000_000_000)
    hub.post("ports", port="unl-eth0", rate_bps=500_000_000, site="unl.edu")
    _open_as_operator(hub, page)
    offers = page.get_by_test_id("offers")
    form = offers.get_by_role("form", name="Offer")
    used = offers.get_by_test_id("offer campus").locator("[data-label='Used today']")
    _an_offer_is_refused_with_a_sentence(page, offers, form)
    _fill(form, {"Provider": "linux", "Orders a day": "40"})
    _save(form, "offer")
    expect(offers.get_by_role("status")).to_have_text("Offer campus saved.")
    row = offers.get_by_test_id("offer campus")
    for shown in ("hub-eth0 to unl-eth0", "100, 200, 500", "60 s stated", "not measured yet"):
        expect(row).to_contain_text(shown)
    expect(used).to_contain_text(re.compile(r"0 circuit-hours, no limit\s*0 of 40 orders"))
    _its_budget_is_changed(hub, row, form)
    expect(used).to_contain_text("0 of 12 circuit-hours")
    no_serious_finding(page)
    _remove(row, "campus", "offer")
    assert hub.client.get("/v1/circuit-offers").json() == {"offers": []}


def _an_offer_is_refused_with_a_sentence(page: Page, offers: Locator, form: Locator) -> None:
    expect(offers).to_contain_text("No offers. The scheduler orders no circuits.")
    offers.get_by_text("Add offer").click()
    _fill(form, {"Name": "campus", "Provider": "elsewhere", "Port of the hub": "hub-eth0"})
    _fill(form, {"Ports of sites": "unl-eth0", "Rates": "200 fast"})
    _save(form, "offer")
    expect(offers.get_by_role("alert")).to_have_text("The rate “fast” is not a number of Mb/s.")
    _fill(form, {"Rates": "200 100 500"})
    _save(form, "offer")
    expect(offers.get_by_role("alert")).to_contain_text("no provider 'elsewhere'")
    no_serious_finding(page)


def _its_budget_is_changed(hub: Hub, row: Locator, form: Locator) -> None:
    row.get_by_role("button", name="Change campus").click()
    expect(form.get_by_label("Rates")).to_have_value("100 200 500")
    _fill(form, {"Circuit-hours a day": "12"})
    _save(form, "offer")
    expect(form).to_be_hidden()
    kept = hub.client.get("/v1/circuit-offers/campus").json()
    assert (kept["circuit_hours_a_day"], kept["orders_a_day"], kept["setup_s"]) == (12, 40, 60)


def test_an_operator_adds_and_removes_a_provider(hub: Hub, page: Page) -> None:
    _open_as_operator(hub, page)
    providers = page.get_by_test_id("providers")
    form = providers.get_by_role("form", name="Provider")
    providers.get_by_text("Add provider").click()
    _fill(form, {"Name": "surf", "URL": "http://nsi.example.net/provider"})
    nsa = {"NSA of the provider": "urn:ogf:network:example.net:nsa", "NSA of this hub": "urn:ogf:network:hub:nsa"}
    _fill(form, nsa)
    form.get_by_label("Dialect").select_option("p2ps")
    _save(form, "provider")
    expect(providers.get_by_role("alert")).to_contain_text("would be reached without TLS")
    _fill(form, {"URL": "https://nsi.example.net/provider", "Authorities file": "/etc/nsi/ca.pem"})
    _fill(form, {"Certificate file": "/etc/nsi/hub.pem", "Key file": "/etc/nsi/hub.key"})
    _save(form, "provider")
    row = providers.get_by_test_id("provider surf")
    for shown in ("asked as urn:ogf:network:hub:nsa", "p2ps", "/etc/nsi/hub.key"):
        expect(row).to_contain_text(shown)
    no_serious_finding(page)
    _remove(row, "surf", "provider")


def test_a_viewer_sees_the_orders_of_a_day_and_no_forms(hub: Hub, page: Page, browser: Browser) -> None:
    hub.post("feeds", feed="NGRID")
    hub.stop()
    _write_orders(hub.data_dir)
    hub.start()
    _make_an_offer_with_a_provider(hub)
    _open_as_viewer(hub, page)
    expect(page.get_by_test_id("offer campus")).to_contain_text("measured: median 2.00 s, p90 2.00 s (2 orders)")
    expect(page.get_by_text("Add offer")).to_have_count(0)
    expect(page.get_by_text("Add provider")).to_have_count(0)
    orders = page.get_by_test_id("orders")
    _orders_are_told_and_drawn(orders)
    expect(orders.get_by_role("rowheader")).to_have_count(ORDERS_ASKED)
    orders.get_by_role("button", name="Load older orders").click()
    expect(orders.get_by_role("rowheader")).to_have_count(DRY_RUNS + 3)
    expect(orders.get_by_role("button", name="Load older orders")).to_have_count(0)
    orders.get_by_label("Feed").select_option("NGRID")
    expect(orders.get_by_role("rowheader")).to_have_count(2)
    expect(page).to_have_url(re.compile(r"#/circuits\?feed=NGRID$"))
    every_page_fits(page, browser, hub.url, ["#/circuits?feed=NGRID", "#/circuits?view=list"])


def _orders_are_told_and_drawn(orders: Locator) -> None:
    served = orders.get_by_test_id(f"order {DRY_RUNS + 1}")
    expect(served.get_by_role("rowheader")).to_contain_text("NGRID to unl.edu")
    cells = {"Set-up": "2.00 s", "Reserved": "8 min", "Used": "47 %", "Products": "120", "Gained": "85.0 ms"}
    for label, text in cells.items():
        expect(served.locator(f"[data-label='{label}']")).to_have_text(text)
    refused = orders.get_by_test_id(f"order {DRY_RUNS + 2}")
    expect(refused).to_contain_text(re.compile(r"refused[\s\S]*no capacity is left"))
    name = "Orders in the last 24 h: NGRID 2 orders, 1 of them refused or failed; WARN 1 order"
    expect(orders.get_by_role("img", name=name)).to_be_visible()


def _write_orders(data_dir: Path) -> None:
    """Dry runs, then one order that was served, one that was refused, and one of another feed."""
    at = datetime.now(UTC) - timedelta(hours=2)
    begun, until, up, released, ended = (at + timedelta(seconds=seconds) for seconds in (0, 600, 2, 497, 500))
    use = OrderUse(used_share=0.47, products=120, gained_ms=85.0)
    served = DemandOrder(0, "campus", "NGRID", "unl.edu", 100_000_000, "a train", OrderTimes(begun, until))
    served = replace(served, times=OrderTimes(begun, until, up, released, ended), step=OrderStep.ENDED, use=use)
    refused = replace(served, times=OrderTimes(begun, until, ended_at=begun), step=OrderStep.REFUSED, use=None)
    dry_run = replace(refused, feed="DRY", times=OrderTimes(begun, until), step=OrderStep.WOULD)
    ledger = Ledger.open(f"sqlite:///{data_dir / 'ledger.sqlite'}")
    with ledger.transaction() as tx:
        for order in (*[dry_run] * DRY_RUNS, served, replace(refused, outcome="no capacity is left")):
            tx.planning.orders.add(order)
        tx.planning.orders.add(replace(served, feed="WARN"))
    ledger.close()


def _make_an_offer_with_a_provider(hub: Hub) -> None:
    hub.post("ports", port="hub-eth0", rate_bps=1_000_000_000)
    hub.post("ports", port="unl-eth0", rate_bps=500_000_000, site="unl.edu")
    nsa = {"provider_nsa": "urn:ogf:network:example.net:nsa", "requester_nsa": "urn:ogf:network:hub:nsa"}
    provider = {"url": "http://127.0.0.1:9080/soap/connection/provider", **nsa}
    hub.client.put("/v1/circuit-providers/surf", json=provider).raise_for_status()
    ends = {"hub_port": "hub-eth0", "ports": ["unl-eth0"]}
    offer = {**ends, "rates_bps": [100_000_000], "circuit_hours_a_day": 12, "orders_a_day": 40}
    hub.client.put("/v1/circuit-offers/campus", json=offer).raise_for_status()


def _open_as_viewer(hub: Hub, page: Page) -> None:
    page.goto(hub.url + hub.post("users", user="vera", role="viewer")["fragment"])
    page.get_by_role("textbox", name="Password").fill("correct horse battery")
    page.get_by_role("button", name="Save password").click()
    _go_to_circuits(page)


def _open_as_operator(hub: Hub, page: Page) -> None:
    page.goto(hub.command("login", "--link").stdout.strip())
    page.get_by_role("button", name="Sign in").click()
    _go_to_circuits(page)


def _go_to_circuits(page: Page) -> None:
    go(page, "Circuits")
    expect(page.get_by_role("heading", name="All circuits")).to_be_focused()
    page.get_by_role("navigation", name="View of circuits").get_by_role("link", name="List").click()


def _fill(form: Locator, values: dict[str, str]) -> None:
    for label, value in values.items():
        form.get_by_label(label).fill(value)


def _save(form: Locator, noun: str) -> None:
    form.get_by_role("button", name=f"Save {noun}").click()


def _remove(row: Locator, name: str, noun: str) -> None:
    row.get_by_role("button", name=f"Remove {name}").click()
    row.get_by_role("dialog").get_by_role("button", name=f"Remove {noun}").click()
    expect(row).to_have_count(0)
