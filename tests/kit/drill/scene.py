"""A hub under the load of a busy one, with its sites: the system that a drill breaks and repairs."""

import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import httpx

from kit import running
from kit.node import SiteNode
from kit.patience import wait_for
from kit.whole_hub import DOWNBURST, WholeHub

FEEDS = 10


class Scene:
    """`play --mix idd-2024` into a hub, and sites that take all of it."""

    def __init__(self, directory: Path, *, ledger_url: str = "", more: str = "") -> None:
        self.directory = directory
        self.hub = WholeHub(directory / "hub", ledger_url=ledger_url, more=SETTINGS + more).start()
        self.sites: dict[str, SiteNode] = {}
        self.player = self._play()
        wait_for("the feeds of the mix", lambda: len(self.feeds()) >= FEEDS, 60)

    def site(self, name: str, directory: Path | None = None, *, feeds: Sequence[str] = ()) -> SiteNode:
        """Starts a site with its data in the directory, and waits until it has some products."""
        site = self.sites[name] = SiteNode(directory or self.directory / name, self.hub.sites)
        site.directory.mkdir(exist_ok=True)
        wanted = feeds or self.feeds()
        self.hub.ask("POST", "/v1/sites", json={"site": name, "allow": list(wanted)})
        for feed in wanted:
            self.hub.ask("POST", f"/v1/sites/{name}/subscriptions", json={"feed": feed})
        site.token_file.write_text(self.hub.ask("POST", f"/v1/sites/{name}/tokens")["token"])
        site.start()
        wait_for(f"products at {name}", lambda: self.stands(name)["stored"], 60)
        return site

    def source(self, feed: str) -> "SteadySource":
        """Creates a feed and starts a source of its own, which puts ten products per second."""
        self.hub.ask("POST", "/v1/feeds", json={"feed": feed, "class": "observation"})
        return SteadySource(self.hub, feed)

    def feeds(self) -> list[str]:
        """The names of the feeds."""
        return [one["feed"] for one in self.hub.ask("GET", "/v1/feeds")]

    def stands(self, name: str) -> Any:
        """The state of a site, as the hub shows it."""
        return next(one for one in self.hub.ask("GET", "/v1/overview")["sites"] if one["site"] == name)

    def command(self, *argv: str) -> str:
        """The output of a command for the hub's operator."""
        done = subprocess.run(
            [DOWNBURST, *argv, "--hub", f"http://{self.hub.http}"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.stdout

    def close(self) -> None:
        """Ends everything."""
        self.player.kill()
        self.player.wait(timeout=30)
        for site in self.sites.values():
            site.stop()
        self.hub.stop()

    def _play(self) -> "subprocess.Popen[bytes]":
        argv = [DOWNBURST, "play", "--mix", "idd-2024", "--create-feeds", "--rate", "0.5", "--size", "0.1"]
        argv += ["--hub", f"http://{self.hub.http}"]
        player = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        running.note(player)
        return player


class SteadySource:
    """Puts products into one feed until it is stopped; it can be restarted."""

    def __init__(self, hub: WholeHub, feed: str, *, pause_s: float = 0.1) -> None:
        self._hub, self._feed, self._pause_s = hub, feed, pause_s
        self._number = count()
        self._began_s = time.monotonic()
        self.go_on()

    @property
    def seconds(self) -> float:
        """The time since its start."""
        return time.monotonic() - self._began_s

    def go_on(self) -> None:
        """Starts or restarts it."""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def fall_silent(self) -> None:
        """Stops without notice."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        with httpx.Client(base_url=f"http://{self._hub.http}", headers=self._hub.authorization, timeout=30) as client:
            while not self._over.wait(self._pause_s):
                # Products that a broken hub does not take are not sent again: other tests count losses.
                with suppress(httpx.TransportError):
                    client.put(f"/v1/feeds/{self._feed}/products/p{next(self._number)}", content=b"x" * 5_000)


@contextmanager
def scene(directory: Path, *, ledger_url: str = "", more: str = "") -> Iterator[Scene]:
    """A scene that is ended in every case; `more` are further sections of the hub's settings."""
    made = Scene(directory, ledger_url=ledger_url, more=more)
    try:
        yield made
    finally:
        made.close()


SETTINGS = """\
[access]
without_login = "page"
"""
