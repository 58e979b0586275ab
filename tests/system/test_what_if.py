"""Other conditions of a feed on its page: a real hub's planner answers, and the page shows its figures."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Response, expect

from kit.axe import no_serious_finding
from kit.capabilities import needs
from kit.page_hub import Hub
from kit.patience import wait_for

pytestmark = [pytest.mark.system, pytest.mark.browser]
SITES = tuple(f"site-{number}.edu" for number in range(1, 6))


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    """A hub with a feed that five sites take, and products of the last seconds."""
    needs("chromium")
    with Hub(tmp_path / "hub") as started:
        started.post("feeds", feed="NGRID", **{"class": "grid"})
        for site in SITES:
            started.post("sites", site=site)
            started.post(f"sites/{site}/subscriptions", feed="NGRID")
        for number in range(20):
            started.put("NGRID", f"product {number}", number.to_bytes(4, "big") * 25_000)
        wait_for("a planner with the products", lambda: _asked(started).get("products") == 20)
        yield started


@pytest.fixture
def landing(hub: Hub, page: Page) -> Page:
    """An administrator's first page."""
    page.goto(hub.command("login", "--link").stdout.strip())
    page.get_by_role("button", name="Sign in").click()
    return page


def test_conditions_are_tried_on_the_page_by_the_hubs_planner(hub: Hub, landing: Page) -> None:
    _by_field_in_four_interactions(landing)
    _by_slider(landing)
    _from_the_address(landing)
    _on_the_busiest_arrivals(landing)
    _back_to_today(hub, landing)
    _on_the_command_line(hub)
    _on_a_phone(landing)


def _by_field_in_four_interactions(landing: Page) -> None:
    expect(landing.get_by_test_id("status")).to_be_visible()
    landing.keyboard.press("/")
    landing.keyboard.type("NGRID")
    expect(landing.get_by_role("option", name="NGRID grid")).to_be_visible()
    landing.keyboard.press("Enter")
    with landing.expect_response(_with_flips(sites=104)) as answered:
        landing.get_by_label("Sites, value").fill("104")
    answer = answered.value.json()
    _shows(landing, answer)
    assert answer["tried"]["sites"] == 104
    assert any(flip["condition"] == "sites" and flip["below"] for flip in answer["flips"])
    no_serious_finding(landing)


def _by_slider(landing: Page) -> None:
    """Keys move it; the field beside it follows, and takes a value of its own."""
    slider = landing.get_by_role("slider", name="Objective, p99")
    before = landing.get_by_label("Objective, p99, value").input_value()
    with landing.expect_response(_with_flips(sites=104)) as answered:
        for _ in range(10):
            slider.press("ArrowLeft")
    answer = answered.value.json()
    assert answer["tried"]["objective_ms"] < answer["today"]["objective_ms"]
    assert landing.get_by_label("Objective, p99, value").input_value() != before
    expect(slider).to_have_attribute("aria-valuetext", re.compile(" m?s$"))
    _shows(landing, answer)
    field = landing.get_by_label("Free egress, value")
    field.fill("200")
    expect(landing.get_by_text("Free egress: enter a value from 1 Mb/s to 400 Gb/s")).to_be_visible()
    with landing.expect_response(_with_flips(egress_bps=200e6)) as answered:
        field.fill("200 Mb/s")
    _shows(landing, answered.value.json())


def _from_the_address(landing: Page) -> None:
    assert "sites=104" in landing.url
    assert "egress=200M" in landing.url
    with landing.expect_response(_with_flips(sites=104, egress_bps=200e6)) as answered:
        landing.reload()
    _shows(landing, answered.value.json())


def _on_the_busiest_arrivals(landing: Page) -> None:
    landing.get_by_label("Arrivals: Present arrivals").click()
    with landing.expect_response(_with_flips(sites=104, traffic="busiest")) as answered:
        landing.get_by_role("option", name="Busiest of the last day").click()
    _shows(landing, answered.value.json())
    assert "traffic=busiest" in landing.url


def _back_to_today(hub: Hub, landing: Page) -> None:
    with landing.expect_response(_with_flips()) as answered:
        landing.get_by_role("button", name="Back to today").click()
    answer = answered.value.json()
    assert answer["tried"] == answer["today"]
    _shows(landing, answer)
    assert "sites=" not in landing.url
    mine = _asked(hub)
    assert mine["then"]["transport"] == answer["then"]["transport"]
    assert [one["transport"] for one in mine["then"]["candidates"]] == [
        one["transport"] for one in answer["then"]["candidates"]
    ]


def _on_the_command_line(hub: Hub) -> None:
    tried = hub.command("plans", "what-if", "NGRID", "--sites", "104", "--objective", "5s", COLUMNS="120")
    assert tried.stdout.startswith("NGRID with 104 sites"), tried.stderr
    assert "an objective of 5 s" in tried.stdout


def _on_a_phone(landing: Page) -> None:
    landing.set_viewport_size({"width": 390, "height": 844})
    landing.wait_for_function("document.documentElement.scrollWidth <= 390")
    no_serious_finding(landing)


def _shows(landing: Page, answer: dict[str, Any]) -> None:
    """The page has the transports, figures, flips and the sentence of this answer."""
    card = landing.get_by_test_id("what if")
    then = answer["then"]
    expect(card).to_contain_text(then["sentence"])
    expect(card.get_by_test_id("verdict")).to_contain_text(f"{answer['tried']['sites']} sites: ")
    for one in then["candidates"]:
        row = card.get_by_test_id(f"candidate {one['transport']}")
        if one["egress_bps"] is not None:
            expect(row).to_contain_text(_three_digits(one["egress_bps"] / 1e6))
    expect(card.get_by_test_id(f"candidate {then['transport']}")).to_contain_text("(chosen)")
    for flip in answer["flips"]:
        if flip["condition"] == "sites":
            count = f"{flip['at']} sites" if flip["at"] != 1 else "1 site"
            expect(card).to_contain_text(f"at {count}: {flip['transport']}")


def _three_digits(value: float) -> str:
    """As the page writes megabits."""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 0.1 else 3
    return f"{value:.{digits}f}"


def _with_flips(**wanted: float | str) -> Any:
    """The answer to these conditions, with its flips."""

    def matches(response: Response) -> bool:
        if not response.url.endswith("/what-if"):
            return False
        asked = response.request.post_data_json or {}
        return bool(asked["flips"]) and all(asked.get(name) == value for name, value in wanted.items())

    return matches


def _asked(hub: Hub) -> dict[str, Any]:
    answer: dict[str, Any] = hub.client.post("/v1/feeds/NGRID/what-if", json={}).json()
    return answer
