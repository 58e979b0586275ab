"""A drill on hosts of their own: a hub that sends a feed to a group, its members, and a browser at the hub."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from kit.drill.scene import SteadySource
from kit.namespaces import Lab
from kit.node import SiteNode
from kit.page_hub import PATIENCE_MS
from kit.patience import wait_for
from kit.whole_hub import DOWNBURST, WholeHub

HUB, FEED = "hub", "GROUP"


class GroupScene:
    """A feed that is pinned to multicast, with a source and some members."""

    def __init__(self, lab: Lab, directory: Path, members: Sequence[str]) -> None:
        self.lab = lab
        self.hub = WholeHub(
            directory / "hub",
            sites="0.0.0.0:7370",
            prefix=lab.command(HUB, ["env", "DOWNBURST_MULTICAST__INTERFACE=eth0"]),
            inside=partial(lab.inside, HUB),
            more='[access]\nwithout_login = "page"\n',
        ).start()
        self.hub.ask("POST", "/v1/feeds", json={"feed": FEED, "class": "observation"})
        self.sites = {name: self._site(name, directory / name) for name in members}
        self.hub.ask("PUT", f"/v1/feeds/{FEED}/pin", json={"transport": "multicast"})
        with lab.inside(HUB):
            self.source = SteadySource(self.hub, FEED, pause_s=0.02)
        wait_for("members of the group", lambda: self.hearing() == set(members), 120)

    def hearing(self) -> set[str]:
        """The sites that receive the feed by multicast."""
        sites = self.hub.ask("GET", "/v1/overview")["sites"]
        return {
            one["site"]
            for one in sites
            for feed in one["feeds"]
            if feed["transport"] == "multicast" and one["stored"]
        }

    def command(self, *argv: str) -> str:
        """The output of a command for the hub's operator."""
        command = self.lab.command(HUB, [DOWNBURST, *argv, "--hub", f"http://{self.hub.http}"])
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout

    def close(self) -> None:
        """Ends everything."""
        self.source.fall_silent()
        for site in self.sites.values():
            site.stop()
        self.hub.stop()

    def _site(self, name: str, directory: Path) -> SiteNode:
        prefix = self.lab.command(name, [])
        site = SiteNode(directory, f"{self.lab.address(HUB)}:7370", prefix=prefix)
        site.directory.mkdir()
        self.hub.ask("POST", "/v1/sites", json={"site": name, "allow": [FEED]})
        self.hub.ask("POST", f"/v1/sites/{name}/subscriptions", json={"feed": FEED})
        site.token_file.write_text(self.hub.ask("POST", f"/v1/sites/{name}/tokens")["token"])
        return site.start()


@contextmanager
def page_at_the_hub(lab: Lab, directory: Path) -> Iterator[Page]:
    """A page of a browser that runs on the hub's host."""
    browser = directory / "browser"
    browser.write_text(f'#!/bin/sh\nexec {" ".join(lab.command(HUB, ["/usr/bin/chromium"]))} "$@"\n')
    browser.chmod(0o755)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        opened = launched.new_page(viewport={"width": 1280, "height": 900})
        opened.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        yield opened
        launched.close()
