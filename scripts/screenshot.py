"""Makes docs/page.png: the page of a demo hub, once its scheduler has moved a feed to multicast.

Run it after `make setup-test`:  .venv/bin/python scripts/screenshot.py [OUT.png]
"""

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
SETTLE_S = 45
"""Long enough for sparklines and latency curves to have a shape."""


def main() -> int:
    """Starts the demo, waits for a multicast plan, takes the picture, ends the demo."""
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "page.png"
    port = free_port()
    downburst = Path(sys.executable).with_name("downburst")
    demo = subprocess.Popen([str(downburst), "demo", "--sites", "5", "--http", str(port)], stdout=subprocess.DEVNULL)
    try:
        wait_for_multicast(f"http://127.0.0.1:{port}", demo)
        time.sleep(SETTLE_S)
        shoot(f"http://127.0.0.1:{port}/", out)
    finally:
        demo.send_signal(signal.SIGINT)
        demo.wait(timeout=60)
    print(out)
    return 0


def wait_for_multicast(hub: str, demo: "subprocess.Popen[bytes]") -> None:
    """Returns once a feed travels by multicast."""
    give_up = time.monotonic() + 180
    while time.monotonic() < give_up and demo.poll() is None:
        try:
            feeds = httpx.get(f"{hub}/v1/overview", timeout=5).json()["feeds"]
        except (httpx.HTTPError, KeyError, ValueError):
            feeds = []
        if any((feed["plan"] or {}).get("transport") == "multicast" for feed in feeds):
            return
        time.sleep(0.5)
    raise SystemExit("no feed went to multicast within 3 minutes; run the demo by hand and look")


def shoot(address: str, out: Path) -> None:
    """Takes the whole page, 1280 pixels wide."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(address)
        page.get_by_role("table").first.wait_for()
        page.wait_for_timeout(3_000)
        page.screenshot(path=str(out), full_page=True)
        browser.close()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
