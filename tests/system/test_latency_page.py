"""The page *Latency* in a browser: lines of several sites, the week before, zoom, keys, files, the address."""

import csv
import io
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from downburst.domain.feeds import TrafficMinute
from downburst.ledger import Ledger
from factories import sketch_row
from kit.axe import every_page_fits, no_serious_finding
from kit.capabilities import needs
from kit.page_hub import Hub

pytestmark = [pytest.mark.system, pytest.mark.browser]

WEEK = 7 * 1_440
NEAR_MS, FAR_MS, EARLIER_MS = 200, 40_000, 500
"""Of unl.edu and snu.ac.kr in the last two hours, and of both a week before."""


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    """A hub with two hours of latencies of two sites, and the same two hours a week before; one site has a gap."""
    needs("chromium")
    with Hub(tmp_path / "hub") as started:
        started.post("feeds", feed="NGRID")
        started.post("feeds", feed="HDS")
        for site in ("unl.edu", "snu.ac.kr"):
            started.post("sites", site=site)
            for feed in ("NGRID", "HDS"):
                started.post(f"sites/{site}/subscriptions", feed=feed)
        _measure(tmp_path / "hub" / "ledger.sqlite")
        yield started


def _measure(path: Path) -> None:
    now = int(time.time()) // 60
    took = {"unl.edu": NEAR_MS, "snu.ac.kr": FAR_MS}
    ledger = Ledger.open(f"sqlite:///{path}")
    with ledger.transaction() as tx:
        for back in range(1, 120):
            tx.measured.traffic.add([TrafficMinute("NGRID", now - back, 30, 30_000, 1_000)])
            # snu.ac.kr has no report in half an hour.
            some = {site: ms for site, ms in took.items() if site == "unl.edu" or not 40 <= back < 70}
            tx.measured.latency.add(
                *(sketch_row([ms] * 30, minute=now - back, site=site) for site, ms in some.items()),
                *(sketch_row([EARLIER_MS] * 30, minute=now - WEEK - back, site=site) for site in took),
            )
    ledger.close()


@pytest.fixture
def signed_in(hub: Hub, page: Page) -> Page:
    page.goto(hub.command("login", "--link").stdout.strip())
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
    return page


def test_last_week_of_two_sites_is_compared_and_saved_in_seven_interactions(signed_in: Page) -> None:
    interactions: list[Locator] = []

    def click(locator: Locator) -> None:
        locator.click()
        interactions.append(locator)

    click(signed_in.get_by_role("navigation", name="Pages").get_by_role("link", name="Latency", exact=True))
    click(signed_in.get_by_role("button", name="Add", exact=True))
    lines = signed_in.get_by_role("dialog", name="Lines of the chart")
    click(lines.get_by_label("unl.edu"))
    click(lines.get_by_label("snu.ac.kr"))
    click(signed_in.get_by_role("group", name="Week before").get_by_role("link", name="Week before"))
    expect(signed_in.get_by_role("heading", name="Latency of NGRID at unl.edu and snu.ac.kr")).to_be_visible()
    with signed_in.expect_download() as download:
        click(signed_in.get_by_role("button", name="Save PNG"))
    assert len(interactions) <= 7
    assert Path(download.value.path()).read_bytes().startswith(b"\x89PNG\r\n")
    assert download.value.suggested_filename.startswith("latency-NGRID-unl.edu-NGRID-snu.ac.kr-")


def test_the_address_reproduces_the_view_and_files_hold_its_figures(hub: Hub, signed_in: Page) -> None:
    signed_in.goto(f"{hub.url}{TWO_SITES}&minutes=360&before=week&scale=linear&show=p50")
    _has_two_lines(signed_in)
    svg = _saved(signed_in, "SVG").decode()
    assert "Latency of NGRID at unl.edu and snu.ac.kr" in svg
    assert "the same range 7 days before" in svg
    rows = list(csv.DictReader(io.StringIO(_saved(signed_in, "CSV").decode())))
    assert {row["series"] for row in rows} == {"range", "7 days before"}
    assert _values(rows, "unl.edu", "range") == {NEAR_MS}
    assert _values(rows, "snu.ac.kr", "range") == {FAR_MS}
    assert _values(rows, "snu.ac.kr", "7 days before") == {EARLIER_MS}
    # The whole range is in the file, with empty values where nothing was reported.
    assert 360 <= len([row for row in rows if row["site"] == "unl.edu" and row["series"] == "range"]) <= 361
    silent = [row for row in rows if row["site"] == "snu.ac.kr" and row["series"] == "range" and row["p99_ms"] == ""]
    assert len(silent) >= 240 + 30
    signed_in.reload()
    _has_two_lines(signed_in)
    expect(signed_in.get_by_role("group", name="Scale").get_by_role("link", name="Linear")).to_have_attribute(
        "aria-current", "true"
    )


def _has_two_lines(page: Page) -> None:
    expect(page.get_by_role("heading", name="Latency of NGRID at unl.edu and snu.ac.kr")).to_be_visible()
    near, far = (page.get_by_test_id(f"line NGRID@{site}") for site in ("unl.edu", "snu.ac.kr"))
    expect(near.locator("[data-label=p50]")).to_have_text(re.compile(r"^(19\d|20\d) ms$"))
    expect(far.locator("[data-label=p99]")).to_have_text("40.0 s")
    expect(far.locator("[data-label=over]")).to_have_text(str(89 * 30))
    expect(near.locator("[data-label=before]")).to_contain_text(re.compile(r"50\d ms|49\d ms"))
    expect(
        page.get_by_role("img", name=re.compile(r"per minute, p50, with the week before, .*unl.edu: worst"))
    ).to_be_visible()
    expect(page.get_by_test_id("chart").locator("svg path").first).to_be_attached()


def _saved(page: Page, ending: Literal["PNG", "SVG", "CSV"]) -> bytes:
    with page.expect_download() as download:
        page.get_by_role("button", name=f"Save {ending}").click()
    return Path(download.value.path()).read_bytes()


def _values(rows: list[dict[str, str]], site: str, series: str) -> set[int]:
    """The p50 of the steps with a report, to the sketch's 2 %."""
    found = {float(row["p50_ms"]) for row in rows if (row["site"], row["series"]) == (site, series) and row["p50_ms"]}
    expected = (NEAR_MS, FAR_MS, EARLIER_MS)
    return {next((ms for ms in expected if abs(value / ms - 1) <= 0.02), int(value)) for value in found}


def test_keys_move_the_crosshair_and_zoom_and_the_legend_switches_lines(hub: Hub, signed_in: Page) -> None:
    signed_in.goto(f"{hub.url}{TWO_SITES}&minutes=120")
    chart = signed_in.get_by_test_id("chart")
    expect(chart.locator("svg path").first).to_be_attached()
    chart.focus()
    signed_in.keyboard.press("End")
    for _ in range(3):
        signed_in.keyboard.press("ArrowLeft")
    said = signed_in.get_by_role("status").filter(has_text="snu.ac.kr")
    expect(said).to_have_text(re.compile(r"UTC\. unl\.edu (19\d|20\d) ms; snu\.ac\.kr 40\.0 s"))
    for _ in range(4):
        signed_in.keyboard.press("Shift+PageUp")
    expect(said).to_contain_text("snu.ac.kr no report")
    signed_in.keyboard.press("Enter")
    expect(signed_in).to_have_url(re.compile(r"from=.*&to="))
    expect(signed_in.get_by_role("link", name="24 h")).not_to_have_attribute("aria-current", "true")
    signed_in.get_by_role("button", name="snu.ac.kr", exact=True).click()
    expect(signed_in).to_have_url(re.compile("off=NGRID%40snu.ac.kr"))
    expect(signed_in.get_by_role("img", name=re.compile("snu.ac.kr: worst"))).to_have_count(0)
    signed_in.get_by_test_id("values").locator("summary").click()
    expect(signed_in.get_by_test_id("values").get_by_role("row").nth(1)).to_contain_text("ms")
    no_serious_finding(signed_in)


def test_a_drag_zooms_and_the_heat_map_and_the_spread_show_the_same_sites(hub: Hub, signed_in: Page) -> None:
    signed_in.goto(f"{hub.url}{TWO_SITES}&minutes=120")
    heat = signed_in.get_by_test_id("heat")
    expect(heat.get_by_role("row")).to_contain_text(["Site", "snu.ac.kr", "unl.edu"])
    expect(heat.get_by_role("img", name=re.compile(r"^highest p99 40\.0 s, objective .* late"))).to_be_visible()
    spread = signed_in.get_by_test_id("spread")
    expect(spread.get_by_role("img", name=re.compile("unl.edu: most of .* above the objective"))).to_be_visible()
    expect(spread).to_contain_text("objective")
    chart = signed_in.get_by_test_id("chart")
    expect(chart.locator("svg path").first).to_be_attached()
    box = chart.bounding_box()
    assert box is not None
    signed_in.mouse.move(box["x"] + 300, box["y"] + 100)
    signed_in.mouse.down()
    signed_in.mouse.move(box["x"] + 500, box["y"] + 100, steps=5)
    signed_in.mouse.up()
    expect(signed_in).to_have_url(re.compile(r"from=.*&to="))
    signed_in.get_by_role("link", name="Zoom out").click()
    signed_in.get_by_role("button", name="Remove snu.ac.kr").click()
    expect(signed_in.get_by_role("heading", name="Latency of NGRID at unl.edu", exact=True)).to_be_visible()


def test_the_page_fits_a_desk_and_a_phone_in_both_schemes(hub: Hub, signed_in: Page, browser: Browser) -> None:
    addresses = ["#/latency", f"{TWO_SITES}&minutes=360&before=week", "#/latency?feed=HDS&minutes=60"]
    every_page_fits(signed_in, browser, hub.url, addresses)


TWO_SITES = "#/latency?site=unl.edu&feed=NGRID&with=NGRID@snu.ac.kr"
