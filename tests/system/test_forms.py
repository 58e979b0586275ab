"""Forms of the page in a browser: few interactions, the hub does what they say, and so does the command they show."""

import json
import re
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from kit.axe import no_serious_finding
from kit.capabilities import needs
from kit.hands import Hands
from kit.node import node_binary
from kit.page_hub import Hub
from kit.patience import wait_for

pytestmark = [pytest.mark.system, pytest.mark.browser]


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    needs("chromium")
    with Hub(tmp_path / "hub") as started:
        yield started


@pytest.fixture
def signed_in(hub: Hub, page: Page) -> Page:
    page.goto(hub.command("login", "--link").stdout.strip())
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
    return page


def drawer(page: Page, title: str) -> Locator:
    return page.get_by_role("dialog", name=title)


def commands(form: Locator) -> list[list[str]]:
    """The words of the commands that a form shows, without the first one."""
    shown = form.get_by_role("region", name="The same by command").inner_text()
    return [shlex.split(line)[1:] for line in shown.splitlines()]


def run(hub: Hub, argv: list[str]) -> str:
    done = hub.command(*argv)
    assert done.returncode == 0, f"{argv}: {done.stderr}"
    return done.stdout


def test_a_feed_is_added_in_five_interactions(hub: Hub, signed_in: Page) -> None:
    hands = Hands(signed_in)
    hands.go("Feeds")
    hands.click(signed_in.get_by_role("button", name="Add feed"))
    form = drawer(signed_in, "Add feed")
    expect(form.get_by_role("textbox", name="Name")).to_be_focused()
    expect(signed_in).to_have_url(re.compile(r"#/feeds\?form=feed\.add$"))
    hands.fill(form.get_by_role("textbox", name="Name"), "IDS|DDPLUS")
    hands.click(form.get_by_role("radio", name="warning"))
    shown = commands(form)
    no_serious_finding(signed_in)
    hands.press("Enter")
    expect(form).to_have_count(0)
    assert hands.count <= 5
    expect(signed_in.get_by_test_id("form notice")).to_contain_text("Feed IDS|DDPLUS exists")
    expect(signed_in.get_by_role("button", name="Add feed")).to_be_focused()
    expect(signed_in).to_have_url(re.compile("#/feeds$"))
    assert shown == [["feeds", "add", "IDS|DDPLUS", "--class", "warning"]]
    run(hub, [word.replace("IDS|DDPLUS", "NGRID") for word in shown[0]])
    one, other = (hub.client.get(f"/v1/feeds/{feed}").json() for feed in ("IDS|DDPLUS", "NGRID"))
    own = ("feed", "created_at", "unicast_leg")
    assert {name: value for name, value in one.items() if name not in own} == {
        name: value for name, value in other.items() if name not in own
    }


def test_a_form_keeps_what_was_typed(hub: Hub, signed_in: Page) -> None:
    """Refusals stand at their field or above the buttons; Escape asks; Back closes."""
    hub.post("feeds", feed="NGRID")
    signed_in.goto(f"{hub.url}#/feeds?form=feed.add")
    form = drawer(signed_in, "Add feed")
    name = form.get_by_role("textbox", name="Name")
    form.get_by_role("button", name="Add feed").click()
    expect(name).to_have_attribute("aria-invalid", "true")
    expect(form).to_contain_text("Name is needed.")
    name.fill("NGRID")
    form.get_by_role("textbox", name="Kept at the hub").fill("two")
    name.press("Enter")
    expect(form).to_contain_text("Kept at the hub is a number from 0.001 to 8,784 hours.")
    expect(form.get_by_role("textbox", name="Kept at the hub")).to_be_focused()
    form.get_by_role("textbox", name="Kept at the hub").fill("3")
    name.press("Enter")
    expect(form.get_by_role("alert")).to_contain_text("NGRID")
    expect(name).to_have_value("NGRID")
    no_serious_finding(signed_in)
    signed_in.keyboard.press("Escape")
    expect(form.get_by_role("alert")).to_contain_text("Discard the changes?")
    expect(form.get_by_role("button", name="Keep editing")).to_be_focused()
    signed_in.keyboard.press("Enter")
    expect(name).to_have_value("NGRID")
    form.get_by_role("button", name="Cancel").click()
    form.get_by_role("button", name="Discard").click()
    expect(form).to_have_count(0)
    expect(signed_in).to_have_url(re.compile("#/feeds$"))
    signed_in.get_by_role("button", name="Add feed").click()
    expect(name).to_have_value("")
    signed_in.go_back()
    expect(form).to_have_count(0)
    signed_in.get_by_role("button", name="Add feed").click()
    # The script of a form is loaded when the form opens.
    expect(name).to_be_focused()
    signed_in.keyboard.press("Escape")
    expect(form).to_have_count(0)


def test_a_viewer_gets_no_form(hub: Hub, page: Page) -> None:
    link = run(hub, ["users", "add", "vera", "--role", "viewer", "--json"])
    page.goto(f"{hub.url}{json.loads(link)['fragment']}")
    page.get_by_role("textbox", name="Password").fill("four words are long")
    page.get_by_role("button", name="Save password").click()
    expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
    page.goto(f"{hub.url}#/feeds?form=feed.add")
    expect(page.get_by_role("heading", name="Feeds", exact=True)).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="Add feed")).to_have_count(0)


FIVE = ["CONDUIT", "HDS", "IDS|DDPLUS", "NEXRAD2", "NGRID"]


def test_a_request_is_approved_and_its_site_enrolled_in_nine_interactions(
    hub: Hub, signed_in: Page, tmp_path: Path
) -> None:
    for feed in FIVE:
        hub.post("feeds", feed=feed)
    for site in ("unl.edu", "otago.ac.nz"):
        asked = {"site": site, "organisation": "University", "contact": f"ops@{site}"}
        assert httpx.post(f"{hub.url}v1/access-requests", json=asked).is_success
    hands = Hands(signed_in)
    hands.go("Admin")
    hands.click(signed_in.get_by_role("button", name="Approve request of unl.edu"))
    form = drawer(signed_in, "Approve unl.edu")
    for feed in FIVE:
        hands.click(form.get_by_role("checkbox", name=feed))
    expect(form.get_by_test_id("form preview")).to_be_visible()
    shown = commands(form)
    no_serious_finding(signed_in)
    hands.click(form.get_by_role("button", name="Approve request"))
    enrolment = form.get_by_role("region", name=re.compile("Enrolment token"))
    expect(enrolment).to_contain_text("downburst-node receive")
    no_serious_finding(signed_in)
    told = enrolment.inner_text()
    hands.click(form.get_by_role("button", name="Done"))
    assert hands.count <= 9
    expect(signed_in.get_by_role("article", name="unl.edu")).to_have_count(0)
    _enrol(hub, told, tmp_path)
    _run_for_another_site(hub, shown, tmp_path)
    one, other = (hub.client.get(f"/v1/sites/{site}").json() for site in ("unl.edu", "otago.ac.nz"))
    for site in (one, other):
        assert (sorted(site["allow"]), [it["feed"] for it in site["subscriptions"]]) == (FIVE, FIVE)
        assert len(site["tokens"]) == 1


def _enrol(hub: Hub, told: str, directory: Path) -> None:
    """Does what the page tells the site, with the names of this machine."""
    found = re.search(r"echo '(\S+)' > unl\.edu\.token\ndownburst-node (receive .*)", told)
    assert found, told
    token_file = directory / "unl.edu.token"
    token_file.write_text(found[1])
    command = found[2].replace("unl.edu.token", str(token_file)).replace("/data/downburst", str(directory / "near"))
    hub.receivers.append(subprocess.Popen([node_binary(), *command.split()], stderr=subprocess.DEVNULL))
    wait_for("the site", lambda: hub.client.get("/v1/sites/unl.edu").json()["connected"], seconds=60)


def _run_for_another_site(hub: Hub, shown: Sequence[list[str]], directory: Path) -> None:
    assert [argv[:2] for argv in shown] == [["requests", "approve"], ["subscriptions", "add"], ["sites", "token"]]
    waiting = hub.client.get("/v1/access-requests").json()
    shown[0][2] = str(next(one["number"] for one in waiting if one["site"] == "otago.ac.nz"))
    for argv in shown:
        words = [word.replace("unl.edu.token", str(directory / "other.token")) for word in argv]
        run(hub, [word.replace("unl.edu", "otago.ac.nz") for word in words])


def test_a_site_is_subscribed_to_many_feeds(hub: Hub, signed_in: Page) -> None:
    for feed in FIVE:
        hub.post("feeds", feed=feed)
    signed_in.goto(f"{hub.url}#/sites?form=site.add")
    form = drawer(signed_in, "Add site")
    form.get_by_role("textbox", name="Name", exact=True).fill("unl.edu")
    form.get_by_role("textbox", name="Organisation").fill("University of Nebraska")
    form.get_by_role("textbox", name="Latitude").fill("140.8")
    form.get_by_role("button", name="Add site").click()
    expect(form).to_contain_text("Latitude is a number from -90 to 90 degrees north.")
    form.get_by_role("textbox", name="Latitude").fill("40.8")
    form.get_by_role("textbox", name="Longitude").fill("-96.7")
    shown = commands(form)
    no_serious_finding(signed_in)
    form.get_by_role("button", name="Add site").click()
    expect(signed_in.get_by_test_id("form notice")).to_contain_text("Site unl.edu exists")
    run(hub, [word.replace("unl.edu", "otago.ac.nz") for word in shown[0]])

    signed_in.goto(f"{hub.url}#/sites/unl.edu")
    signed_in.get_by_role("button", name="Add subscriptions").click()
    form = drawer(signed_in, "Subscriptions of unl.edu")
    for feed in ("NGRID", "HDS"):
        form.get_by_role("checkbox", name=feed).check()
    form.get_by_role("textbox", name="Pattern").fill("(")
    expect(form.get_by_test_id("form preview")).to_contain_text("at character 1")
    form.get_by_role("textbox", name="Pattern").fill("^nam")
    expect(form.get_by_test_id("form preview")).to_contain_text("0 products with 0 B an hour more")
    shown = commands(form)
    no_serious_finding(signed_in)
    form.get_by_role("button", name="Add subscriptions").click()
    expect(signed_in.get_by_test_id("form notice")).to_contain_text("unl.edu is subscribed to HDS, NGRID.")
    expect(signed_in.get_by_test_id("subscriptions")).to_contain_text("^nam")
    run(hub, [word.replace("unl.edu", "otago.ac.nz") for word in shown[0]])
    one, other = (hub.client.get(f"/v1/sites/{site}").json() for site in ("unl.edu", "otago.ac.nz"))
    for site in (one, other):
        assert [(it["feed"], it["pattern"]) for it in site["subscriptions"]] == [("HDS", "^nam"), ("NGRID", "^nam")]
        assert (site["organisation"], site["place"]["latitude"]) == ("University of Nebraska", 40.8)


def test_a_transport_is_pinned_in_four_interactions(hub: Hub, signed_in: Page, tmp_path: Path) -> None:
    hub.post("sites", site="unl.edu")
    for feed in ("NGRID", "HDS"):
        hub.post("feeds", feed=feed)
        hub.post("sites/unl.edu/subscriptions", feed=feed)
        hub.put(feed, "first", b"grid")
    hub.receive("unl.edu", tmp_path / "near")
    wait_for("plans", lambda: len(_plans(hub)) == 2, seconds=60)
    signed_in.reload()
    hands = Hands(signed_in)
    hands.go("Feeds")
    hands.click(signed_in.get_by_test_id("feed NGRID").get_by_role("link", name="NGRID"))
    hands.click(signed_in.get_by_role("button", name="Pin unicast"))
    form = drawer(signed_in, "Transport of NGRID")
    expect(form.get_by_role("radio", name="unicast")).to_be_checked()
    expect(form.get_by_test_id("form preview").get_by_role("row", name="Transport")).to_contain_text("unicast")
    shown = commands(form)
    no_serious_finding(signed_in)
    hands.click(form.get_by_role("button", name="Pin transport"))
    assert hands.count <= 4
    expect(signed_in.get_by_test_id("form notice")).to_contain_text("NGRID is pinned to unicast.")
    expect(signed_in.get_by_test_id("transport of NGRID")).to_contain_text("pinned")
    run(hub, [word.replace("NGRID", "HDS") for word in shown[0]])
    plans = _plans(hub)
    assert [plans[feed]["pin"]["transport"] for feed in ("NGRID", "HDS")] == ["unicast", "unicast"]
    assert plans["NGRID"]["pin"]["by"] == plans["HDS"]["pin"]["by"]
    signed_in.get_by_role("link", name="Open NGRID").click()
    expect(signed_in.get_by_test_id("legs")).to_contain_text("pinned")
    # An address may fill fields in, and sends nothing.
    signed_in.goto(f"{hub.url}#/feeds/NGRID?form=feed.pin&of=NGRID&form.transport=hub")
    expect(form.get_by_role("radio", name="chosen by the hub")).to_be_checked()
    run(hub, [word.replace("NGRID", "HDS") for word in commands(form)[0]])
    form.get_by_role("button", name="Pin transport").click()
    expect(form).to_have_count(0)
    assert [one["pin"] for one in _plans(hub).values()] == [None, None]


def _plans(hub: Hub) -> dict[str, dict[str, dict[str, str]]]:
    return {one["feed"]: one for one in hub.client.get("/v1/plans").json()}


def test_objectives_and_sources_by_form_and_by_command(hub: Hub, signed_in: Page, tmp_path: Path) -> None:
    for feed in ("NGRID", "HDS"):
        hub.post("feeds", feed=feed, ldm_feed_type=feed)
    signed_in.goto(f"{hub.url}#/feeds/NGRID?form=feed.objective&of=NGRID")
    argv = _filled(signed_in, "Objective of NGRID", "Set objective", {"Latency": "750"})
    run(hub, [word.replace("NGRID", "HDS") for word in argv])
    assert {one["objective_ms"] for one in hub.client.get("/v1/feeds").json()} == {750}

    signed_in.goto(f"{hub.url}#/feeds?form=ldm.ask")
    fields = {"Name here": "near", "Feed types": "NGRID", "LDMs": "127.0.0.1:1 localhost:1"}
    argv = _filled(signed_in, "Add LDM source", "Add LDM source", fields)
    run(hub, [word.replace("near", "far").replace("NGRID", "HDS") for word in argv])
    sources = hub.client.get("/v1/ldm/sources").json()
    assert {(one["source"], one["feeds"], len(one["upstreams"])) for one in sources} == {
        ("near", "NGRID", 2),
        ("far", "HDS", 2),
    }

    signed_in.goto(f"{hub.url}#/feeds?form=ldm.accept")
    fields = {"Feed types": "NGRID", "Host": "^ldm\\.near\\.edu$"}
    argv = _filled(signed_in, "Let an LDM push", "Permit pushes", fields)
    run(hub, [word.replace("near", "far") for word in argv])
    accepts = hub.client.get("/v1/ldm/accepts").json()
    assert [one["host"] for one in accepts] == ["^ldm\\.near\\.edu$", "^ldm\\.far\\.edu$"]

    token = f"dbt1.{'a' * 64}.c2VjcmV0"
    (tmp_path / "far.token").write_text(token)
    signed_in.goto(f"{hub.url}#/feeds?form=upstream.add")
    fields = {"Name here": "near", "Address": "127.0.0.1:1", "Enrolment token": token}
    argv = _filled(signed_in, "Add upstream", "Add upstream", fields)
    assert token not in argv
    run(hub, [word.replace("near.token", str(tmp_path / "far.token")).replace("near", "far") for word in argv])
    upstreams = hub.client.get("/v1/upstreams").json()
    assert {(one["upstream"], one["address"]) for one in upstreams} == {
        ("near", "127.0.0.1:1"),
        ("far", "127.0.0.1:1"),
    }


def _filled(page: Page, title: str, verb: str, fields: dict[str, str]) -> list[str]:
    """Fills a form and sends it; the words of its command."""
    form = drawer(page, title)
    for label, text in fields.items():
        form.get_by_label(re.compile(f"^{label}")).fill(text)
    shown = commands(form)
    no_serious_finding(page)
    form.get_by_role("button", name=verb).click()
    expect(form).to_have_count(0)
    return shown[0]


def test_properties_by_form_and_by_command(hub: Hub, signed_in: Page) -> None:
    for feed in ("NGRID", "HDS"):
        hub.post("feeds", feed=feed)
    for site in SITES:
        hub.post("sites", site=site)
    signed_in.goto(f"{hub.url}#/feeds/NGRID?form=feed.set&of=NGRID")
    form = drawer(signed_in, "Properties of NGRID")
    form.get_by_text("Further properties").click()
    form.get_by_role("radio", name="a power cut").check()
    argv = _filled(signed_in, "Properties of NGRID", "Save properties", {"Kept at the hub": "6"})
    run(hub, [word.replace("NGRID", "HDS") for word in argv])
    feeds = hub.client.get("/v1/feeds").json()
    assert [(one["retention_hours"], one["durability"]) for one in feeds] == [(6, "power"), (6, "power")]

    signed_in.goto(f"{hub.url}#/sites/unl.edu?form=site.set&of=unl.edu")
    form = drawer(signed_in, "Properties of unl.edu")
    form.get_by_role("checkbox", name="Multicast may serve it").uncheck()
    fields = {"Contact": "noc@example.edu", "Latitude": "40.8", "Longitude": "-96.7"}
    argv = _filled(signed_in, "Properties of unl.edu", "Save properties", fields)
    run(hub, [word.replace("unl.edu", "otago.ac.nz") for word in argv])

    signed_in.get_by_role("button", name="Permit feeds").click()
    form = drawer(signed_in, "Permitted feeds of unl.edu")
    form.get_by_role("checkbox", name="It may take all feeds").uncheck()
    form.get_by_role("button", name="Save permitted feeds").click()
    expect(form).to_contain_text("Permitted feeds: choose at least one.")
    expect(form.get_by_role("checkbox", name="HDS")).to_be_focused()
    form.get_by_role("checkbox", name="HDS").check()
    argv = _filled(signed_in, "Permitted feeds of unl.edu", "Save permitted feeds", {})
    run(hub, [word.replace("unl.edu", "otago.ac.nz") for word in argv])
    own = ("contact", "place", "multicast", "allow")
    one, other = ([hub.client.get(f"/v1/sites/{site}").json()[name] for name in own] for site in SITES)
    assert one == other == ["noc@example.edu", {"text": "", "latitude": 40.8, "longitude": -96.7}, False, ["HDS"]]


SITES = ("unl.edu", "otago.ac.nz")


def test_feeds_and_sites_are_removed_by_form_and_by_command(hub: Hub, signed_in: Page) -> None:
    for feed in ("NGRID", "HDS", "EXP"):
        hub.post("feeds", feed=feed)
    for site in SITES:
        hub.post("sites", site=site)
        hub.post(f"sites/{site}/subscriptions", feed="NGRID")
    signed_in.goto(f"{hub.url}#/sites/unl.edu")
    signed_in.get_by_role("button", name="Remove site").click()
    form = drawer(signed_in, "Remove unl.edu")
    expect(form).to_contain_text("unl.edu no longer receives NGRID.")
    form.get_by_role("textbox", name="Type unl.edu").fill("otago.ac.nz")
    form.get_by_role("button", name="Remove site").click()
    expect(form).to_contain_text("Type unl.edu to remove it.")
    assert len(hub.client.get("/v1/sites").json()) == 2
    argv = _filled(signed_in, "Remove unl.edu", "Remove site", {"Type unl.edu": "unl.edu"})
    expect(signed_in).to_have_url(re.compile("#/sites$"))
    expect(signed_in.get_by_test_id("form notice")).to_contain_text("Site unl.edu is removed.")
    run(hub, [word.replace("unl.edu", "otago.ac.nz") for word in argv])
    assert hub.client.get("/v1/sites").json() == []

    signed_in.goto(f"{hub.url}#/feeds/NGRID?form=feed.remove&of=NGRID")
    argv = _filled(signed_in, "Remove NGRID", "Remove feed", {"Type NGRID": "NGRID"})
    expect(signed_in).to_have_url(re.compile("#/feeds$"))
    expect(signed_in.get_by_test_id("form notice")).to_contain_text("Feed NGRID is removed.")
    run(hub, [word.replace("NGRID", "HDS") for word in argv])
    assert [one["feed"] for one in hub.client.get("/v1/feeds").json()] == ["EXP"]


def test_sources_are_removed_and_a_part_of_a_feed_is_set(hub: Hub, signed_in: Page) -> None:
    hub.post("feeds", feed="NGRID", ldm_feed_type="NGRID")
    for source in ("near", "far"):
        hub.post("ldm/sources", source=source, feeds="NGRID", upstreams=["127.0.0.1:1"])
    for site in SITES:
        hub.post("sites", site=site)
    signed_in.goto(f"{hub.url}#/feeds")
    signed_in.get_by_role("button", name="Remove source").click()
    form = drawer(signed_in, "Remove source")
    expect(form).to_contain_text("The hub takes NGRID from it no longer.")
    form.get_by_role("radio", name="LDM source near").check()
    argv = _filled(signed_in, "Remove source", "Remove source", {})
    run(hub, [word.replace("near", "far") for word in argv])
    assert hub.client.get("/v1/ldm/sources").json() == []
    signed_in.goto(f"{hub.url}#/feeds?form=source.remove")
    expect(signed_in.get_by_role("dialog")).to_contain_text("This hub has no upstream, no LDM source")

    signed_in.goto(f"{hub.url}#/sites/unl.edu?form=site.limit&of=unl.edu")
    argv = _filled(signed_in, "Limits of unl.edu", "Save limit", {"Only ids": "^YZ", "Except": "TEST"})
    run(hub, [word.replace("unl.edu", "otago.ac.nz") for word in argv])
    expected = [{"feed": "NGRID", "pattern": "^YZ", "not_pattern": "TEST"}]
    assert [hub.client.get(f"/v1/sites/{site}").json()["limits"] for site in SITES] == [expected, expected]


def test_rights_of_users_by_form_and_by_command(hub: Hub, signed_in: Page) -> None:
    for user in ("anna", "bert"):
        run(hub, ["users", "add", user, "--role", "viewer"])
    signed_in.goto(f"{hub.url}#/users")
    signed_in.get_by_role("button", name="Change rights of anna").click()
    form = drawer(signed_in, "Rights of anna")
    form.get_by_role("radio", name="operator").check()
    form.get_by_role("checkbox", name="May sign in").uncheck()
    argv = _filled(signed_in, "Rights of anna", "Save rights", {})
    run(hub, [word.replace("anna", "bert") for word in argv])
    kept = {one["user"]: (one["role"], one["active"]) for one in hub.client.get("/v1/users").json()}
    assert (kept["anna"], kept["bert"]) == (("operator", False), ("operator", False))
    expect(signed_in.get_by_test_id("users").get_by_role("row", name="anna")).to_contain_text("disabled")

    signed_in.get_by_role("button", name="Remove user of anna").click()
    argv = _filled(signed_in, "Remove anna", "Remove user", {})
    expect(signed_in.get_by_test_id("users").get_by_role("row", name="anna")).to_have_count(0)
    run(hub, [word.replace("anna", "bert") for word in argv])
    assert not {"anna", "bert"} & {one["user"] for one in hub.client.get("/v1/users").json()}


def test_a_form_fits_a_phone(hub: Hub, signed_in: Page) -> None:
    hub.post("feeds", feed="NGRID")
    signed_in.set_viewport_size({"width": 390, "height": 844})
    for form in ("site.add", "ldm.ask", "user.invite"):
        signed_in.goto(f"{hub.url}#/feeds?form={form}")
        expect(signed_in.get_by_role("dialog")).to_be_visible()
        box = signed_in.get_by_role("dialog").bounding_box()
        assert box is not None
        assert (box["x"], box["width"]) == (0, 390)
        assert signed_in.evaluate("document.documentElement.scrollWidth") <= 390
        no_serious_finding(signed_in)
