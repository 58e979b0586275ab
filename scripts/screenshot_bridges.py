"""Takes docs/bridges.png, the picture of the page *Bridges* in the operator guide, and stamps it.

It starts a hub whose source listens at two real brokers, plays notifications of three centres, one of them above its
budget, and prepares a publisher. Run it after `make setup-test`, and commit the picture with docs/pictures.json:

    PYTHONPATH=tests .venv/bin/python scripts/screenshot_bridges.py [OUT.png]

With a path it takes the picture of the page as it was built last, and leaves docs alone.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from pictures import BRIDGES, ROOT, stamp
from playwright.sync_api import Page, expect, sync_playwright

from kit.page_hub import Hub
from kit.wis2.bridged_hub import ABOVE, GTS, WITHIN, BridgedHub

WIDTH, HEIGHT = 1440, 900
BULLETIN = b"SMVX52 TJSJ 291200\r\r\nAAXX 29121\r\r\n78526 11/// 81005 10268 20231 40147"


def main() -> int:
    """Takes the picture of a hub's page, and stamps the picture of the documents."""
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else BRIDGES.path
    if out == BRIDGES.path:
        subprocess.run(["npm", "run", "build", "--silent", "--prefix", str(ROOT / "services/dashboard")], check=True)
    with (
        tempfile.TemporaryDirectory() as directory,
        Hub(Path(directory) / "hub", "hub.example") as hub,
        BridgedHub(hub) as bridged,
    ):
        play(bridged)
        shoot(bridged, out)
    if out == BRIDGES.path:
        stamp(BRIDGES)
    print(out)
    return 0


def play(bridged: BridgedHub) -> None:
    """A hole that the other broker fills, failures, a centre that waits, and a broker that ends."""
    bridged.announce(WITHIN, 5, 4_000, broker=1)
    bridged.until(held=5)
    bridged.lose_sessions(1)
    bridged.may_ask_private(allowed=False)
    bridged.announce("jp-jma", 1, 2_000)
    bridged.until(coming=0, failed=1)
    bridged.may_ask_private(allowed=True)
    bridged.announce(WITHIN, 80, 4_000)
    bridged.announce(ABOVE, 9, 100_000)
    bridged.announce("jp-jma", 12, 9_000)
    bridged.refused()
    bridged.until(coming=0, held=102, waiting=4)
    bridged.hub.put(GTS, "SMVX52 TJSJ 291200", BULLETIN)
    bridged.brokers[1].stop()


def shoot(bridged: BridgedHub, out: Path) -> None:
    """Takes the whole page once it shows all of that, and the preview of a notification."""
    expect.set_options(timeout=60_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(
            viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light", locale="en-GB", reduced_motion="reduce"
        )
        page.goto(bridged.hub.command("login", "--link").stdout.strip())
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("navigation", name="Pages").get_by_role("link", name="Bridges").click()
        check(page)
        page.screenshot(path=str(out), animations="disabled", full_page=True)
        browser.close()


def check(page: Page) -> None:
    """Fails unless the page shows both bridges with their signals."""
    expect(page.locator("header [data-state=live]")).to_be_visible()
    source, publisher = page.get_by_test_id("bridge-global"), page.get_by_test_id("publisher-synop")
    expect(source).to_contain_text("1 of 2 brokers in order.")
    expect(source.get_by_test_id(f"centre {ABOVE}").locator(".warn")).to_contain_text("4 products")
    expect(source.get_by_test_id("holes").locator(".good")).to_contain_text("filled")
    expect(source.get_by_test_id("failed")).to_contain_text("private network")
    source.get_by_text("Refused and passed over").click()
    publisher.get_by_role("button", name="Preview notification").click()
    expect(publisher.get_by_test_id("preview")).to_contain_text("Valid")
    page.get_by_role("heading", name="Bridges").hover()


if __name__ == "__main__":
    sys.exit(main())
