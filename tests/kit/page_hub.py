"""A hub whose page is looked at in a browser."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

import httpx
from playwright.sync_api import Locator, Page

from kit.node import node_binary

PATIENCE_MS = 60_000
ROOT = Path(__file__).resolve().parents[2]


def go(page: Page, title: str) -> None:
    """Opens a page by its title, as a user does: by the rail, and from there by the links of its section."""
    pages = page.get_by_role("navigation", name="Pages")
    pages.get_by_role("link", name=SECTIONS.get(title, title), exact=True).click()
    if title == "Alarms":
        page.get_by_role("link", name="All alarms").click()
    elif title in SECTIONS:
        link = page.get_by_role("navigation", name="In this section").get_by_role("link", name=title, exact=True)
        # A section begins with one of its pages. A click on the link to the open page would only take the focus.
        if link.get_attribute("aria-current") is None:
            link.click()


def open_row(page: Page, title: str, name: str) -> Locator:
    """Opens the drawer of a feed or a site, from the page with its row."""
    go(page, title)
    page.get_by_test_id(f"{title[:-1].lower()} {name}").get_by_role("link", name=name).click()
    return page.get_by_role("dialog", name=name, exact=True)


def open_whole(page: Page, title: str, name: str) -> None:
    """Opens the page of a feed or a site by way of its drawer."""
    open_row(page, title, name).get_by_role("link", name=f"Open {name}").click()


def figure(drawer: Locator, label: str) -> Locator:
    """A figure of a drawer, in its tab of figures."""
    drawer.get_by_role("tab", name="Figures").click()
    return drawer.locator(f"[data-label='{label}'] dd")


SECTIONS = {
    "Alarms": "Now",
    "Volume": "Latency",
    "Circuits": "Network",
    "Distribution tree": "Network",
    "Relays": "Network",
    "Requests": "Admin",
    "Users": "Admin",
    "Audit": "Admin",
}
"""Sections of pages that are not in the rail themselves, for a user who sees several pages of each."""


class Hub:
    """`downburst hub` as a child, with a client for its api."""

    def __init__(
        self,
        data_dir: Path,
        name: str = "hub",
        *,
        without_login: str = "nothing",
        http: str = "127.0.0.1:0",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.data_dir, self.name, self.without_login = data_dir, name, without_login
        self.http, self.sites = http, "127.0.0.1:0"
        self.environment = dict(environment or {})
        self.receivers: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> Self:
        assert (ROOT / "services/dashboard/dist/index.html").exists(), "the page is not built; run: make setup"
        argv = [str(Path(sys.executable).with_name("downburst")), "hub", "--data-dir", str(self.data_dir)]
        argv += ["--http", self.http, "--sites", self.sites]
        environment = {**os.environ, "DOWNBURST_NODE": node_binary(), "DOWNBURST_NAME": self.name, **self.environment}
        environment["DOWNBURST_ACCESS__WITHOUT_LOGIN"] = self.without_login
        self.process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env=environment)
        self.http, self.sites = self._addresses()
        token = (self.data_dir / "operator.token").read_text().strip()
        url, authorization = f"http://{self.http}", {"Authorization": f"Bearer {token}"}
        self.client = httpx.Client(base_url=url, timeout=10, headers=authorization)
        return self

    def stop(self, *, how: signal.Signals = signal.SIGTERM) -> None:
        self.client.close()
        self.process.send_signal(how)
        self.process.wait(timeout=60)
        self.reader.join()

    def receive(self, site: str, directory: Path, *stand_by: "Hub", options: Sequence[str] = ()) -> None:
        """Starts a site of this hub, with the others as its standby hubs."""
        directory.mkdir()
        argv = [node_binary(), "receive", "--dir", str(directory), *options]
        for hub in (self, *stand_by):
            token_file = directory / f"token-{hub.name}"
            token_file.write_text(hub.post(f"sites/{site}/tokens")["token"])
            argv += ["--hub", hub.sites, "--token-file", str(token_file)]
        self.receivers.append(subprocess.Popen(argv, stderr=subprocess.DEVNULL))

    def play(self, *, rate: float, size: float) -> None:
        """Plays the mix of a busy hub to its end: ten feeds, created if they are missing."""
        argv = [str(Path(sys.executable).with_name("downburst")), "play", "--mix", "idd-2024", "--create-feeds"]
        argv += ["--rate", str(rate), "--size", str(size), "--hub", self.url]
        self.receivers.append(subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    @property
    def url(self) -> str:
        return f"http://{self.http}/"

    def post(self, path: str, **fields: object) -> dict[str, str]:
        answer = self.client.post(f"/v1/{path}", json=fields)
        assert answer.is_success, answer.text
        made: dict[str, str] = answer.json()
        return made

    def put(self, feed: str, product_id: str, content: bytes) -> None:
        answer = self.client.put(f"/v1/feeds/{feed}/products/{quote(product_id)}", content=content)
        assert answer.status_code == 201, answer.text

    def command(self, *argv: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [str(Path(sys.executable).with_name("downburst")), *argv]
        wanted = {**os.environ, "DOWNBURST_HUB": self.url, **environment}
        return subprocess.run(command, capture_output=True, text=True, env=wanted, timeout=60, check=False)

    def close(self) -> None:
        children: list[subprocess.Popen[bytes] | subprocess.Popen[str]] = [*self.receivers, self.process]
        for process in children:
            if process.poll() is None:
                process.terminate()
                process.wait(timeout=60)
        self.client.close()

    def _addresses(self) -> tuple[str, str]:
        """Read the log up to the line with both addresses; keep reading, so that the pipe never fills."""
        log = self.process.stderr
        assert log is not None
        seen = []
        for line in log:
            seen.append(line)
            if found := re.search(r"becomes the first: (\S+)", line):
                self.first_link = found[1]
            if found := re.search(r"page and api at http://(\S+), sites connect to (\S+)", line):
                self.reader = threading.Thread(target=lambda: [None for _ in log] and log.close(), daemon=True)
                self.reader.start()
                return found[1], found[2]
        raise AssertionError(f"the hub ended before it listened: {''.join(seen)}")
