"""A hub and a site with all their files, as they are on the disk after a stop and after `kill -9`."""

import hashlib
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from downburst.foundation.file_names import decode
from kit import running
from kit.node import SiteNode
from kit.patience import wait_for
from kit.whole_hub import DOWNBURST, WholeHub

SITE = "a.example"
FEEDS = tuple(f"FEED{number}" for number in range(14))
"""A feed for each file of a log or of a site's state, so that each report says which damage it is about."""
IN_ORDER = "FEED9"
RULES = 'ANY\t^.*good.*\tFILE\t-close\tfiled/\\0\nANY\t^bad\tEXEC\t-wait sh -c "exit 3"\n'
Content = dict[tuple[str, str], str]
"""SHA-256 of products by feed and identifier."""


@dataclass
class Pair:
    """A hub and its site in a directory, with the products acknowledged so far."""

    home: Path
    acknowledged: Content = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.hub = WholeHub(self.home / "hub", top="scrub_hours = 0.0005")
        arguments = ("--actions", str(self.home / "pqact.conf"), "--action-attempts", "1", "--scrub-hours", "0.0005")
        self.site = SiteNode(self.home / "site", self.hub.sites, arguments=arguments)

    def copied_to(self, home: Path) -> "Pair":
        """A copy of everything in another directory, with nothing running."""
        subprocess.run(["cp", "-a", "--sparse=always", str(self.home), str(home)], check=True)
        for log in (home / "hub" / "hub.log", home / "site" / "site.log"):
            log.write_bytes(b"")
        return Pair(home, dict(self.acknowledged))

    def directory(self, place: str) -> Path:
        """The directory of the hub's data, or of the site."""
        return self.hub.directory / "data" if place == "hub" else self.site.directory

    def put(self, feed: str, product_id: str) -> None:
        """Puts a product and notes that it was acknowledged."""
        content = f"{feed} {product_id} ".encode() * 400
        self.hub.ask("PUT", f"/v1/feeds/{feed}/products/{product_id}", content=content)
        self.acknowledged[feed, product_id] = hashlib.sha256(content).hexdigest()

    def put_everywhere(self, word: str, count: int) -> None:
        """Some products into every feed."""
        for feed in FEEDS:
            for number in range(count):
                self.put(feed, f"{word}-{number}")

    def received(self) -> Content:
        """The files for local software."""
        found: Content = {}
        root = self.site.directory / "received"
        for path in root.rglob("*"):
            # The names of damaged files and of files in preparation are not those of products.
            with suppress(ValueError, FileNotFoundError):
                name = decode(str(path.relative_to(root)))
                if path.is_file():
                    found[name.feed, name.product_id] = hashlib.sha256(path.read_bytes()).hexdigest()
        return found

    def missing(self) -> set[tuple[str, str]]:
        """Acknowledged products that the site lacks or has with other content."""
        received = self.received()
        return {key for key, digest in self.acknowledged.items() if received.get(key) != digest}

    def try_hub(self) -> bool:
        """Starts the hub once; False if it refuses."""
        settings = self.hub.write_settings()
        with (self.hub.directory / "hub.log").open("ab") as log:
            argv = [DOWNBURST, "hub", "--settings", str(settings)]
            self.hub.process = subprocess.Popen(argv, stdout=log, stderr=log)
        running.note(self.hub.process)
        wait_for("a hub that is up or has ended", lambda: self._answers() or self._has_ended(), START_S)
        return not self._has_ended()

    def stop(self) -> Iterator[str]:
        """Stops the running processes; returns the failed exits as sentences."""
        site = getattr(self.site, "process", None)
        for name, ended, stop in (
            ("site", site is None or site.poll() is not None, self.site.stop),
            ("hub", self._has_ended(), self.hub.stop),
        ):
            if not ended and (code := stop()) != 0:
                yield f"the {name} ended with {code} when it was stopped"

    def kill(self) -> None:
        """Kills both and the node."""
        self.site.kill()
        pids = self.hub.node_pids()
        self.hub.kill_node()
        self.hub.kill_api()
        wait_for("the end of the node", lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))

    def _has_ended(self) -> bool:
        return self.hub.process.poll() is not None

    def _answers(self) -> bool:
        # A hub that reports damage has started as well.
        with suppress(httpx.TransportError):
            return httpx.get(f"http://{self.hub.http}/readyz", timeout=5).is_success
        return False


def stopped(home: Path) -> Pair:
    """A pair that was stopped, the site some products before the hub."""
    pair = Pair(home)
    _begin(pair)
    assert pair.site.stop() == 0
    pair.put_everywhere("missed-good", 2)
    assert pair.hub.stop() == 0
    return pair


def killed(pair: Pair, home: Path) -> Pair:
    """The same pair after another period, killed with `kill -9` during its work."""
    pair = pair.copied_to(home)
    assert pair.try_hub()
    pair.site.start()
    pair.put_everywhere("later-good", 2)
    wait_for("all products at the site", lambda: not pair.missing(), 60)
    pair.hub.ask("POST", "/v1/sites", json={"site": "late.example"})
    pair.kill()
    return pair


def _begin(pair: Pair) -> None:
    pair.home.mkdir(parents=True)
    (pair.home / "pqact.conf").write_text(RULES)
    pair.hub.start()
    pair.hub.ask("POST", "/v1/sites", json={"site": SITE, "multicast_interface": "127.0.0.1"})
    for feed in FEEDS:
        pair.hub.ask("POST", "/v1/feeds", json={"feed": feed, "class": "observation"})
        wish = {"feed": feed, "in_order": feed == IN_ORDER}
        pair.hub.ask("POST", f"/v1/sites/{SITE}/subscriptions", json=wish)
    pair.site.directory.mkdir()
    pair.site.token_file.write_text(pair.hub.ask("POST", f"/v1/sites/{SITE}/tokens", json={})["token"])
    pair.site.start()
    checkpoints = pair.site.directory / "state" / "positions"
    wait_for("a checkpoint of each feed", lambda: len(list(checkpoints.glob("*.cbor"))) >= len(FEEDS), 60)
    pair.put_everywhere("good", 4)
    pair.put(FEEDS[0], "bad")
    wait_for("all products at the site", lambda: not pair.missing(), 60)
    wait_for("the failed action", lambda: list((pair.site.directory / "failed").glob("*.json")), 60)


START_S = 60
"""The longest that any start may take beside damage."""
