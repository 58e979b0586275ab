"""Takes docs/page.png, the picture of the README, and stamps it in docs/pictures.json, which tests compare.

It builds the page, runs `downburst demo` (five sites, built-in feeds), and waits until the scheduler has moved feeds
to multicast and the page has figures to show. Run it after `make setup-test`, on a quiet machine, and commit both:

    .venv/bin/python scripts/screenshot.py [OUT.png]

With a path it takes the picture of the page as it was built last, and leaves docs alone.
"""

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
from pictures import PAGE, ROOT, stamp
from playwright.sync_api import Page, expect, sync_playwright

DASHBOARD = ROOT / "services" / "dashboard"
WIDTH, HEIGHT = 1440, 900
SCALE = 0.75
"""Of the picture beside a window on a large screen: the first screen shows all cards of Now."""

SITES = 5
BY_MULTICAST = 3
"""Of five feeds: one site alone takes the warnings, and a busy machine may plan one feed otherwise."""

SECONDS_OF_RATES = 60
"""Enough for the line of a feed's rate to have a shape."""

PATIENCE_S = 400


def main() -> int:
    """Takes the picture of a demo's page, and stamps the picture of the documents."""
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE.path
    if out == PAGE.path:
        subprocess.run(["npm", "run", "build", "--silent", "--prefix", str(DASHBOARD)], check=True)
    elif not (DASHBOARD / "dist" / "index.html").exists():
        raise SystemExit("the page is not built; run: make setup-test")
    port = free_port()
    downburst = Path(sys.executable).with_name("downburst")
    demo = subprocess.Popen(
        [str(downburst), "demo", "--sites", str(SITES), "--http", str(port)], stdout=subprocess.DEVNULL
    )
    try:
        shown = wait_for_figures(f"http://127.0.0.1:{port}", demo)
        shoot(f"http://127.0.0.1:{port}/", out, shown)
    finally:
        demo.send_signal(signal.SIGINT)
        demo.wait(timeout=60)
    if out == PAGE.path:
        stamp(PAGE)
    feeds = [feed["plan"]["transport"] for feed in shown["feeds"]]
    print(f"{out}: {len(feeds)} feeds, {feeds.count('multicast')} by multicast, {len(shown['sites'])} sites")
    return 0


def wait_for_figures(hub: str, demo: "subprocess.Popen[bytes]") -> dict[str, Any]:
    """The hub's overview, once every feed has a plan and a latency, and every site stores products."""
    lacking = "the hub did not answer"
    give_up = time.monotonic() + PATIENCE_S
    while time.monotonic() < give_up and demo.poll() is None:
        try:
            overview: dict[str, Any] = httpx.get(f"{hub}/v1/overview", timeout=5).json()
        except (httpx.HTTPError, ValueError):
            overview = {"feeds": [], "sites": []}
        lacking = first_lack(overview)
        if not lacking:
            return overview
        time.sleep(0.5)
    raise SystemExit(f"no picture within {PATIENCE_S} s: {lacking}; run `downburst demo` and look at its page")


def first_lack(overview: dict[str, Any]) -> str:
    """The first thing that a telling picture needs and the page does not have yet; empty if it has all."""
    feeds, sites = overview["feeds"], overview["sites"]
    if sum(bool(site["connected"] and site["stored"]) for site in sites) < SITES:
        return f"not all {SITES} sites store products"
    if not all(feed["plan"] and feed["latency"]["distribution_ms"] for feed in feeds):
        return "a feed has no plan or no latency"
    if sum(feed["plan"]["transport"] == "multicast" for feed in feeds) < BY_MULTICAST:
        return f"fewer than {BY_MULTICAST} feeds travel by multicast"
    if min(len(feed["rate_history"]) for feed in feeds) < SECONDS_OF_RATES:
        return f"a feed is younger than {SECONDS_OF_RATES} s"
    return ""


def shoot(address: str, out: Path, shown: dict[str, Any]) -> None:
    """Takes the first screen of the page once it is live."""
    expect.set_options(timeout=60_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(
            viewport={"width": round(WIDTH / SCALE), "height": round(HEIGHT / SCALE)},
            device_scale_factor=SCALE,
            color_scheme="light",
            locale="en-GB",
        )
        page.goto(address)
        check(page, shown)
        expect(page.get_by_test_id("strip")).to_be_visible()
        page.screenshot(path=str(out), animations="disabled")
        browser.close()


def check(page: Page, shown: dict[str, Any]) -> None:
    """Fails unless the page is live and shows the feeds and sites of the hub."""
    expect(page.locator("header [data-state=live]")).to_be_visible()
    for feed in shown["feeds"]:
        expect(page.get_by_role("main")).to_contain_text(feed["feed"])
    for site in shown["sites"]:
        expect(page.get_by_test_id("strip")).to_contain_text(site["site"])


def free_port() -> int:
    """A port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
