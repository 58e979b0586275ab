"""The reservation desk in a real browser: the calendar by pointer and keys, the form, a reservation's page, roles."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from kit.axe import every_page_fits, no_serious_finding
from kit.capabilities import needs
from kit.page_hub import Hub, go

pytestmark = [pytest.mark.system, pytest.mark.browser]
# No host has this interface, so a node of the test changes nothing on the machine.
NOWHERE = {"interface": "none0", "first_vlan": 100, "last_vlan": 199, "rate_bps": 1_000_000_000}


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    """A hub with a port, a site with one, and two switches between them; the far one changes tags."""
    needs("chromium")
    with Hub(tmp_path / "hub") as started:
        started.post("sites", site="unl.edu", organisation="University")
        started.post("ports", port="hub-eth0", underlay="192.0.2.1", **NOWHERE)
        started.post("ports", port="unl-eth1", site="unl.edu", underlay="192.0.2.9", **NOWHERE)
        started.client.put("/v1/topology", json=_topology()).raise_for_status()
        yield started


def test_an_operator_reserves_by_form_and_by_pointer_and_sees_path_and_tags(hub: Hub, page: Page) -> None:
    _open_as_admin(hub, page)
    page.get_by_role("button", name="Reserve", exact=True).click()
    form = page.get_by_test_id("reservation form")
    expect(form).to_contain_text("Choose both ends.")
    form.get_by_role("combobox", name="To", exact=True).select_option("unl-eth1")
    form.get_by_label("Rate to the far end").fill("600")
    _path_has_tags(form)
    expect(form.get_by_test_id("verdict")).to_contain_text("It fits.")
    no_serious_finding(page)
    form.get_by_role("button", name="Reserve").click()
    expect(page.get_by_test_id("state")).to_contain_text("reserved")
    _path_has_tags(page.locator("main"))
    first = _newest(hub)
    assert (first["rate_out_bps"], first["state"]) == (600_000_000, "admitted")
    _a_second_does_not_fit_and_takes_the_nearest_window(hub, page, first)
    no_serious_finding(page)


def _path_has_tags(place: Locator) -> None:
    path = place.get_by_test_id("path")
    expect(path).to_contain_text("3 hops, 1 domain")
    expect(path.get_by_test_id("hop link up")).to_contain_text("VLAN 100")
    # The far switch changes the tag, as the last link has others.
    changed = path.get_by_test_id("hop link unl").locator("strong")
    expect(changed).to_have_text("100 → 150")
    expect(path.get_by_test_id("hop link up")).to_contain_text(re.compile(r"1 Gb/s|400 Mb/s"))


def _a_second_does_not_fit_and_takes_the_nearest_window(hub: Hub, page: Page, first: dict[str, Any]) -> None:
    """Drawn by the pointer on the site's row, over the window of the first."""
    page.get_by_role("link", name="Calendar", exact=True).click()
    bar = page.get_by_test_id("row unl-eth1 both").get_by_role("link", name=f"{first['circuit']} unl.edu")
    box, track = bar.bounding_box(), page.get_by_test_id("row unl-eth1 both").locator(".track").bounding_box()
    assert box is not None
    assert track is not None
    below = track["y"] + track["height"] - 3
    page.mouse.move(box["x"] + 2, below)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 2, below, steps=5)
    page.mouse.up()
    form = page.get_by_test_id("reservation form")
    expect(form.get_by_role("combobox", name="To", exact=True)).to_have_value("unl-eth1")
    form.get_by_label("Rate to the far end").fill("700")
    verdict = form.get_by_test_id("verdict")
    expect(verdict).to_contain_text(f"Circuit {first['circuit']} holds 600 Mb/s out")
    expect(form.get_by_role("button", name="Reserve")).to_be_disabled()
    verdict.get_by_role("button", name="Take").click()
    expect(verdict).to_contain_text("It fits.")
    form.get_by_role("button", name="Reserve").click()
    expect(page.get_by_test_id("state")).to_contain_text("reserved")
    second = _newest(hub)
    assert second["begin"] >= first["end"] or second["end"] <= first["begin"]


def test_a_draft_and_a_reservation_are_moved_and_resized_by_keys(hub: Hub, page: Page) -> None:
    made = _reserve(hub, 3, 5)
    _open_as_admin(hub, page)
    page.get_by_role("button", name="Reserve", exact=True).click()
    form = page.get_by_test_id("reservation form")
    begin, end = form.get_by_label("Begin (UTC)"), form.get_by_label("End (UTC)")
    before = begin.input_value(), end.input_value()
    draft = page.get_by_test_id("draft")
    draft.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    expect(begin).to_have_value(_later(before[0], 15))
    expect(end).to_have_value(_later(before[1], 30))
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("draft")).to_have_count(0)
    bar = page.get_by_test_id("row hub-eth0 both").get_by_role("link", name=f"{made['circuit']} unl.edu")
    bar.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    proposal = page.get_by_test_id("proposal")
    expect(proposal.get_by_test_id("verdict")).to_contain_text("It fits.")
    no_serious_finding(page)
    proposal.get_by_role("button", name="Modify window").click()
    expect(proposal).to_have_count(0)
    kept = hub.client.get(f"/v1/circuits/{made['circuit']}").json()
    assert _minutes(made["begin"], kept["begin"]) == 15
    assert _minutes(made["end"], kept["end"]) == 30


def test_a_held_reservation_is_committed_modified_cloned_and_cancelled(hub: Hub, page: Page) -> None:
    held = _reserve(hub, 2, 4, hold_s=600)
    _open_as_admin(hub, page, f"#/circuits/{held['circuit']}")
    state = page.get_by_test_id("state")
    expect(state).to_contain_text("held until")
    _act(page, "Commit", "Commit", "would be reserved")
    expect(state).to_contain_text("reserved")
    page.get_by_role("button", name="Modify", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Rate to the far end").fill("2000")
    expect(dialog.get_by_test_id("verdict")).to_contain_text("ask for less")
    expect(dialog.get_by_role("button", name="Modify circuit")).to_be_disabled()
    dialog.get_by_label("Rate to the far end").fill("800")
    expect(dialog.get_by_test_id("outcome")).to_contain_text("from 500 Mb/s to 800 Mb/s")
    no_serious_finding(page)
    dialog.get_by_role("button", name="Modify circuit").click()
    expect(page.get_by_test_id("reservation")).to_contain_text("800 Mb/s out")
    expect(page.get_by_test_id("events")).to_contain_text("500 Mb/s -> 800 Mb/s")
    page.get_by_role("button", name="Clone").click()
    dialog.get_by_label("Begin (UTC)").fill(f"{datetime.now(UTC) + timedelta(days=2):%Y-%m-%dT%H:%M}")
    expect(dialog.get_by_test_id("outcome")).to_contain_text("A copy would have 800 Mb/s")
    dialog.get_by_role("button", name="Reserve copy").click()
    expect(page.get_by_role("heading", name=f"Circuit {held['circuit'] + 1}")).to_be_visible()
    _act(page, "Cancel", "Cancel circuit", "would be cancelled")
    expect(state).to_contain_text("cancelled")
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
    page.get_by_role("link", name="Draw a copy on the calendar").click()
    expect(page.get_by_test_id("reservation form").get_by_label("Rate to the far end")).to_have_value("800")
    expect(page.get_by_test_id("draft")).to_contain_text("800 Mb/s")


def test_a_path_is_created_torn_down_and_created_again_and_the_state_overridden(hub: Hub, page: Page) -> None:
    made = _reserve(hub, 0, 2, creation="by-hand")
    _open_as_admin(hub, page, f"#/circuits/{made['circuit']}")
    state = page.get_by_test_id("state")
    expect(state).to_contain_text("waiting")
    for _ in range(2):
        _act(page, "Create path", "Create path now", "would be created now")
        expect(page.get_by_role("button", name="Tear down path")).to_be_visible()
        _act(page, "Tear down path", "Tear down path now", "would be torn down")
        expect(state).to_contain_text("waiting")
    _act(page, "Create path", "Create path now", "would be created now")
    page.get_by_role("button", name="Override state").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Override", exact=True)).to_be_disabled()
    dialog.get_by_label("Reason").fill("its probe is wrong")
    dialog.get_by_label("State").select_option("active")
    expect(dialog.get_by_test_id("outcome")).to_contain_text("only while its probes allow that")
    dialog.get_by_role("button", name="Override", exact=True).click()
    expect(state).to_contain_text("set to active by")
    # No probe passed, so it is not shown as active, and no feed may use it.
    kept = hub.client.get(f"/v1/circuits/{made['circuit']}").json()
    assert (kept["overridden"], kept["state"] == "active") == ("active", False)
    _act(page, "Clear override", "Clear", "that of its probes again")
    expect(state).not_to_contain_text("set to active by")


def test_a_viewer_sees_the_calendar_and_no_buttons(hub: Hub, page: Page, browser: Browser) -> None:
    made = _reserve(hub, 1, 3)
    held = _reserve(hub, 4, 6, hold_s=900)
    page.goto(hub.url + hub.post("users", user="vera", role="viewer")["fragment"])
    page.get_by_role("textbox", name="Password").fill("correct horse battery")
    page.get_by_role("button", name="Save password").click()
    _go_to_circuits(page)
    row = page.get_by_test_id("row link up out")
    expect(row.get_by_role("link", name=f"{held['circuit']} unl.edu held")).to_be_visible()
    expect(page.get_by_test_id("counts")).to_have_text("1 held, 1 reserved")
    expect(page.get_by_role("button", name="Reserve")).to_have_count(0)
    row.get_by_role("link", name=f"{made['circuit']} unl.edu reserved").click()
    expect(page.get_by_test_id("state")).to_contain_text("reserved")
    for name in ("Modify", "Clone", "Cancel", "Commit", "Override state"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
    answer = page.evaluate(f"fetch('./v1/circuits/{made['circuit']}', {{method: 'DELETE'}}).then(it => it.status)")
    assert answer == 403
    addresses = ["#/circuits", "#/circuits?span=month", "#/circuits?view=topology", f"#/circuits/{made['circuit']}"]
    every_page_fits(page, browser, hub.url, addresses)


def test_the_topology_is_drawn_with_its_states_and_maintenance(hub: Hub, page: Page) -> None:
    now = datetime.now(UTC)
    window = {"begin": now.isoformat(), "end": (now + timedelta(hours=2)).isoformat(), "reason": "a new amplifier"}
    closed = _topology() | {"maintenance": [{"name": "fibre-work", "of": ["unl"], **window}]}
    hub.client.put("/v1/topology", json=closed).raise_for_status()
    _open_as_admin(hub, page, "#/circuits?view=topology")
    drawing = page.get_by_test_id("topology")
    for spot in ("hub-eth0", "chic", "linc", "unl-eth1"):
        expect(drawing.get_by_test_id(f"spot {spot}")).to_be_visible()
    expect(drawing.get_by_role("row", name="unl linc")).to_contain_text("maintenance")
    expect(drawing).to_contain_text("Maintenance fibre-work of unl")
    no_serious_finding(page)
    page.get_by_role("link", name="Calendar", exact=True).click()
    bar = page.get_by_test_id("row link unl out").get_by_role("img", name="Maintenance fibre-work: a new amplifier")
    expect(bar).to_be_visible()


def test_tests_with_load_ports_of_senders_and_the_address_of_the_feed_are_shown(
    hub: Hub, page: Page, browser: Browser
) -> None:
    hub.post("ports", port="cloud-eth0", sender="cloud", underlay="192.0.2.3", **NOWHERE)
    ends = {"near": {"port": "hub-eth0"}, "far": {"site": "unl.edu"}}
    hub.post("test-bookings", rate_out_bps=300_000_000, seconds=900, **ends)
    _open_as_admin(hub, page)
    row = page.get_by_test_id("row link up out")
    expect(row.get_by_role("img", name="Test by-hand 300 Mb/s")).to_be_visible()
    expect(page.get_by_test_id("row link up in").get_by_role("img")).to_have_count(0)
    expect(page.get_by_test_id("row cloud-eth0 both")).to_contain_text("the sender cloud")
    address = re.compile(r"http://[^/]+/v1/circuits\.ics\?token=TOKEN")
    expect(page.get_by_test_id("subscription").locator("code").first).to_have_text(address)
    no_serious_finding(page)
    page.get_by_role("button", name="Reserve", exact=True).click()
    near = page.get_by_test_id("reservation form").get_by_role("combobox", name="From", exact=True)
    expect(near.get_by_role("option", name="cloud-eth0 of the sender cloud")).to_have_count(1)
    every_page_fits(page, browser, hub.url, ["#/circuits"])


def test_a_lost_hub_leaves_the_figures_and_takes_the_buttons(hub: Hub, page: Page) -> None:
    _reserve(hub, 1, 3)
    _open_as_admin(hub, page)
    row = page.get_by_test_id("row link up out")
    expect(row.get_by_role("link")).to_have_count(1)
    hub.stop()
    expect(page.get_by_role("button", name="Reserve", exact=True)).to_be_disabled()
    expect(page.get_by_text("The calendar could not be read")).to_be_visible()
    expect(row.get_by_role("link")).to_have_count(1)


def _topology() -> dict[str, Any]:
    rates = {"az_bps": 1_000_000_000, "za_bps": 1_000_000_000}
    near, far = {"kind": "vlan", "first": 100, "last": 149}, {"kind": "vlan", "first": 150, "last": 199}
    switches = [
        {"name": "chic", "domain": "campus", "ports": ["chic-1", "chic-2"]},
        {"name": "linc", "domain": "campus", "ports": ["linc-1", "linc-2"], "translates": True},
    ]
    links = [
        {"name": "up", "a": "hub-eth0", "z": "chic-1", "tags": near, **rates},
        {"name": "mid", "a": "chic-2", "z": "linc-1", "tags": near, **rates},
        {"name": "unl", "a": "linc-2", "z": "unl-eth1", "tags": far, **rates},
    ]
    hosts = [{"name": "hub-1", "ports": ["hub-eth0"], "nic_bps": 10_000_000_000}]
    return {"domains": [{"name": "campus"}], "switches": switches, "links": links, "hosts": hosts}


def _reserve(hub: Hub, begin_h: float, end_h: float, **more: Any) -> dict[str, Any]:
    """500 Mb/s between whole quarters of an hour, so that the pointer's steps keep them."""
    now = datetime.now(UTC)
    quarter = now.replace(minute=now.minute // 15 * 15, second=0, microsecond=0)
    begin = "now" if begin_h == 0 else (quarter + timedelta(hours=begin_h)).isoformat()
    window = {"begin": begin, "end": (quarter + timedelta(hours=end_h)).isoformat()}
    wish = {"sites": [{"port": "unl-eth1"}], "rate_out_bps": 500_000_000, **window, **more}
    answer = hub.client.post("/v1/circuits", json=wish)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def _newest(hub: Hub) -> dict[str, Any]:
    found: dict[str, Any] = hub.client.get("/v1/circuits").json()[0]
    return found


def _act(page: Page, button: str, yes: str, outcome: str) -> None:
    """Opens an action, waits for the sentence of its dry run, and acts."""
    page.get_by_role("button", name=button, exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_test_id("outcome")).to_contain_text(outcome)
    dialog.get_by_role("button", name=yes, exact=True).click()
    expect(dialog).to_have_count(0)


def _open_as_admin(hub: Hub, page: Page, address: str = "") -> None:
    page.goto(hub.command("login", "--link").stdout.strip())
    page.get_by_role("button", name="Sign in").click()
    _go_to_circuits(page)
    if address:
        page.evaluate(f"location.hash = '{address}'")


def _go_to_circuits(page: Page) -> None:
    go(page, "Circuits")
    expect(page.get_by_role("heading", name="All circuits")).to_be_visible()


def _later(field: str, minutes: int) -> str:
    return f"{datetime.fromisoformat(field) + timedelta(minutes=minutes):%Y-%m-%dT%H:%M}"


def _minutes(before: str, after: str) -> float:
    return (datetime.fromisoformat(after) - datetime.fromisoformat(before)).total_seconds() / 60
