"""An operator's settings on the pages of alarms and of a site: receivers with their test, silences, limits."""

import json
import queue
import re
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from kit.axe import no_serious_finding
from kit.node import node_binary
from kit.page_hub import Hub, go

pytestmark = [pytest.mark.system, pytest.mark.browser]


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with Hub(tmp_path / "hub") as started:
        yield started


@pytest.fixture
def operators(hub: Hub, page: Page) -> Page:
    """An administrator's page, on a hub with a feed and a site that never connected."""
    hub.post("feeds", feed="NGRID")
    hub.post("sites", site="unl.edu", organisation="University", allow=["NGRID"])
    hub.post("sites/unl.edu/subscriptions", feed="NGRID")
    page.goto(hub.command("login", "--link").stdout.strip())
    page.get_by_role("button", name="Sign in").click()
    go(page, "Sites")
    expect(page.get_by_test_id("site unl.edu")).to_be_visible()
    return page


@pytest.fixture
def chat() -> Iterator[tuple[str, "queue.Queue[dict[str, Any]]"]]:
    """A receiver of webhooks."""
    told: queue.Queue[dict[str, Any]] = queue.Queue()

    class Chat(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.put(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object, **__: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Chat)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/hook/secret", told
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_receiver_is_made_tested_and_removed(
    hub: Hub, operators: Page, chat: tuple[str, "queue.Queue[dict[str, Any]]"]
) -> None:
    address, told = chat
    operators.goto(f"{hub.url}#/alarms")
    receivers = operators.get_by_test_id("alarm-receivers")
    form = receivers.get_by_role("form", name="Add recipient")
    form.get_by_role("textbox", name="Name").fill("chat")
    form.get_by_role("combobox", name="Channel").select_option("webhook")
    form.get_by_role("textbox", name="Address").fill(address)
    form.get_by_text("Limit to certain alarms").click()
    form.get_by_role("checkbox", name="site-down").check()
    form.get_by_role("textbox", name="Feeds").fill("NGRID")
    no_serious_finding(operators)
    form.get_by_role("button", name="Add recipient").click()
    listed = receivers.get_by_role("listitem")
    expect(listed).to_contain_text("chat (webhook to http://127.0.0.1:")
    expect(listed).to_contain_text("site-down alarms of NGRID")
    assert "secret" not in listed.inner_text()
    receivers.get_by_role("button", name="Test chat").click()
    expect(receivers.get_by_role("status")).to_have_text("Test notification sent to chat.")
    assert "test" in json.dumps(told.get(timeout=10))
    form.get_by_role("button", name="Add recipient").click()
    expect(receivers.get_by_role("alert")).to_contain_text("chat")
    receivers.get_by_role("button", name="Remove chat").click()
    expect(listed).to_have_text("None.")


def test_silencing_one_alarm_leaves_the_others_loud_and_names_end_and_author(hub: Hub, operators: Page) -> None:
    hub.post("sites", site="ucar.edu", allow=["NGRID"])
    hub.post("sites/ucar.edu/subscriptions", feed="NGRID")
    operators.goto(hub.url)
    faults = operators.get_by_test_id("faults")
    status = operators.get_by_test_id("status")
    expect(status).to_contain_text("2 info")
    faults.get_by_text("2 info", exact=True).click()
    faults.get_by_role("listitem").filter(has_text="ucar.edu").get_by_role("button", name="Silence").click()
    this_alarm = operators.get_by_role("menu").get_by_role("group", name="This alarm")
    this_alarm.get_by_role("menuitem", name="For 1 hour").click()
    expect(faults.get_by_text("1 silenced", exact=True)).to_be_visible()
    expect(status).to_contain_text("1 info")
    (made,) = hub.client.get("/v1/silences").json()
    assert (made["kind"], made["site"]) == ("site-down", "ucar.edu")
    faults.get_by_text("1 silenced", exact=True).click()
    expect(faults.get_by_role("group").filter(has_text="ucar.edu")).to_contain_text(f"UTC by {made['by']}")
    expect(faults).not_to_contain_text("aintenance")
    no_serious_finding(operators)
    operators.reload()
    expect(status).to_contain_text("1 info")
    expect(faults).to_contain_text("1 silenced")


def test_a_silence_begins_now_or_later_and_is_ended(hub: Hub, operators: Page) -> None:
    operators.goto(f"{hub.url}#/alarms")
    silences = operators.get_by_test_id("silences")
    form = silences.get_by_role("form", name="Silences")
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    form.get_by_label("Start").fill(f"{tomorrow:%Y-%m-%dT%H:%M}")
    form.get_by_role("combobox", name="Duration").select_option("1 day")
    form.get_by_role("combobox", name="Alarm kind").select_option("clock")
    form.get_by_role("textbox", name="Site").fill("unl.edu")
    form.get_by_role("button", name="Create silence").click()
    ahead = silences.get_by_role("listitem")
    day_after = tomorrow + timedelta(days=1)
    window = f"{tomorrow:%Y-%m-%d %H:%M} to {day_after:%Y-%m-%d %H:%M}"
    expect(ahead).to_contain_text(f"clock alarms of unl.edu, {window} (scheduled)")
    no_serious_finding(operators)
    silences.get_by_role("button", name="Cancel silence").click()
    expect(silences.get_by_role("listitem")).to_have_text("No silences.")
    assert hub.client.get("/v1/silences").json() == []


def test_a_limit_that_was_changed_by_somebody_else_is_not_written_over(hub: Hub, operators: Page) -> None:
    operators.goto(f"{hub.url}#/sites/unl.edu")
    limits = operators.get_by_test_id("limits")
    expect(limits).to_contain_text("Feeds: NGRID.")
    form = limits.get_by_role("form", name="Add limit")
    form.get_by_role("textbox", name="OK").fill("(")
    form.get_by_role("button", name="Add limit").click()
    expect(limits.get_by_role("alert")).to_contain_text("at character 1")
    form.get_by_role("textbox", name="OK").fill("^nam")
    form.get_by_role("button", name="Add limit").click()
    expect(limits.get_by_role("row", name="NGRID ^nam none")).to_be_visible()

    # This page's view of the site stays as it is while another session changes the site.
    def only_changes(route: Route) -> None:
        route.continue_() if route.request.method != "GET" else route.abort()

    operators.route(re.compile(r"/v1/sites/unl\.edu$"), only_changes)
    others = {"limits": [{"feed": "NGRID", "pattern": "^gfs"}]}
    assert hub.client.patch("/v1/sites/unl.edu", json=others).is_success
    limits.get_by_role("button", name="Remove limit").click()
    expect(limits.get_by_role("alert")).to_contain_text("changed by another request")
    operators.unroute_all()
    expect(limits.get_by_role("row", name="NGRID ^gfs none")).to_be_visible()
    limits.get_by_role("button", name="Remove limit").click()
    expect(limits).to_contain_text("No pattern limits.")
    assert hub.client.get("/v1/sites/unl.edu").json()["limits"] == []


def test_a_rule_that_fails_at_a_site_is_on_its_page_until_it_is_looked_after(
    hub: Hub, operators: Page, tmp_path: Path
) -> None:
    rules = tmp_path / "pqact.conf"
    rules.write_text("ANY\t.*\tEXEC\t-wait\tfalse\n")
    hub.receive("unl.edu", tmp_path / "near", options=["--actions", str(rules), "--action-attempts", "1"])
    go(operators, "Sites")
    expect(operators.get_by_test_id("site unl.edu")).to_contain_text("up to date")
    hub.put("NGRID", "nam/1.grib2", b"content")
    operators.goto(f"{hub.url}#/sites/unl.edu")
    failed = operators.get_by_test_id("failed actions").get_by_role("row", name="NGRID")
    expect(failed).to_contain_text("pqact.conf:1")
    expect(failed).to_contain_text("(status 1)")
    no_serious_finding(operators)
    failed.get_by_role("link", name="nam/1.grib2").click()
    expect(operators.get_by_test_id("trace").get_by_role("row", name="unl.edu")).to_contain_text("stored")
    drop = [node_binary(), "actions", "drop", "--dir", str(tmp_path / "near")]
    assert subprocess.run(drop, capture_output=True, check=False, timeout=60).returncode == 0
    operators.goto(f"{hub.url}#/sites/unl.edu")
    expect(operators.get_by_test_id("failed actions")).to_have_count(0)
