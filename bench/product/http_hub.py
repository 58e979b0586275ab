"""The product as its operator runs it: `downburst hub` with its node, fed by HTTP, and one site that writes files."""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx

from bench.harness.delivery import digest
from bench.product.fleet import RETAINED_BYTES, Arrivals, check, stamps_in
from downburst.foundation.file_names import decode, feed_directory
from kit.node import SiteNode
from kit.patience import wait_for
from kit.whole_hub import WholeHub

SITE = "site.example"
PIECE_BYTES = 1 << 20


class HttpHub:
    """A hub and a site on the loopback interface, every product by an upload."""

    def __init__(self, directory: Path, feeds: Mapping[str, str]) -> None:
        """Describe it: feeds by name with their class."""
        self._feeds = dict(feeds)
        self._sent: dict[str, str] = {}
        self.hub = WholeHub(directory / "hub", top=TOP, more=SETTINGS)
        self.site = SiteNode(directory / "site", self.hub.sites, arguments=("--retention-bytes", str(RETAINED_BYTES)))

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End all remaining processes."""
        for one in (self.site, self.hub):
            process = getattr(one, "process", None)
            if process is not None and process.poll() is None:
                one.stop()

    def pids(self) -> dict[str, int]:
        """The processes by their part: the hub's `api` and `node`, and the `site`."""
        [node] = self.hub.node_pids()
        return {"api": self.hub.process.pid, "node": node, "site": self.site.process.pid}

    def client(self) -> httpx.Client:
        """A connection of one source."""
        address = f"http://{self.hub.http}"
        return httpx.Client(base_url=address, headers=self.hub.authorization, timeout=PATIENCE_S)

    def put(self, client: httpx.Client, feed: str, name: str, pieces: Iterable[bytes], size_bytes: int) -> Any:
        """Upload a product in pieces and remember its digest; give the hub's answer."""
        hashed = hashlib.sha256()

        def body() -> Iterator[bytes]:
            for piece in pieces:
                hashed.update(piece)
                yield piece

        path = f"/v1/feeds/{feed}/products/{quote(name, safe='')}"
        answer = client.put(path, content=body(), headers={"Content-Length": str(size_bytes)})
        if answer.status_code != httpx.codes.CREATED:
            raise RuntimeError(f"the hub did not take {name}: {answer.status_code} {answer.text[:500]}")
        self._sent[name] = hashed.hexdigest()
        return answer.json()

    def files(self, feed: str) -> int:
        """Count the files of a feed at the site."""
        directory = self.site.directory / "received" / feed_directory(feed)
        return sum(1 for _ in directory.iterdir()) if directory.is_dir() else 0

    def wait_files(self, feed: str, files: int) -> None:
        """Wait until the site has this number of files of a feed."""
        wait_for(f"{files} files of {feed}", lambda: self.files(feed) >= files, PATIENCE_S)

    def wait_accounted(self, products: int) -> None:
        """Wait until the hub's ledger has the site's receipts of this number of products."""
        wait_for(f"receipts of {products} products", lambda: self._accounted() >= products, PATIENCE_S)

    def finish(self) -> Arrivals:
        """End both; fails unless files and logs hold the uploaded products, each once, with the right bytes."""
        wrong = differences(self._sent, received(self.site.directory / "received"))
        if wrong:
            raise RuntimeError(f"the site's files differ from the uploads: {'; '.join(wrong[:5])}")
        self.site.kill()
        self.hub.stop()
        at_hub = stamps_in(self.hub.directory / "data" / "node" / "log")
        arrivals = Arrivals(at_hub, {SITE: stamps_in(self.site.directory / "log")})
        # The hub's own proof of its disk is a feed there that no site takes.
        check(arrivals, {SITE: tuple(self._feeds)})
        stored = sum(len(at_hub.of(feed).rows) for feed in self._feeds)
        if stored != len(self._sent) or at_hub.damaged:
            raise RuntimeError(f"the hub has {stored} products of {len(self._sent)}, {at_hub.damaged} damaged")
        return arrivals

    def _accounted(self) -> int:
        sites = self.hub.ask("GET", "/v1/overview")["sites"]
        return sum(int(one["stored"]) for one in sites)

    def _start(self) -> None:
        self.hub.start()
        self.hub.ask("POST", "/v1/sites", json={"site": SITE})
        for feed, feed_class in self._feeds.items():
            described = {"feed": feed, "class": feed_class}
            limits = {"retention_bytes": RETAINED_BYTES, "max_product_bytes": RETAINED_BYTES}
            self.hub.ask("POST", "/v1/feeds", json={**described, **limits})
            self.hub.ask("POST", f"/v1/sites/{SITE}/subscriptions", json={"feed": feed})
        self.site.directory.mkdir(parents=True)
        self.site.token_file.write_text(self.hub.ask("POST", f"/v1/sites/{SITE}/tokens", json={})["token"])
        self.site.start()
        # A site gets what comes after its subscription.
        wait_for("a subscribed site", self._is_subscribed, START_S)
        with self.client() as client:
            for feed in self._feeds:
                self.put(client, feed, f"the first product of {feed}", [b"first"], 5)
        wait_for("the first files", lambda: all(self.files(feed) for feed in self._feeds), START_S)

    def _is_subscribed(self) -> bool:
        log = self.site.log()
        return all(f'subscribed feed="{feed}"' in log for feed in self._feeds)


def noise(number: int, size_bytes: int) -> Iterator[bytes]:
    """Give the bytes of a product in pieces: noise, with the numbers of product and piece in front of each."""
    for place, start in enumerate(range(0, size_bytes, PIECE_BYTES)):
        mark = number.to_bytes(8, "little") + place.to_bytes(8, "little")
        yield (mark + _NOISE)[: min(PIECE_BYTES, size_bytes - start)]


def received(root: Path) -> list[tuple[str, str]]:
    """List the id and the SHA-256 of each file at a site."""
    files = (path for path in root.rglob("*") if path.is_file())
    return [(decode(path.relative_to(root).as_posix()).product_id, digest(path).hex()) for path in files]


def differences(sent: Mapping[str, str], found: Iterable[tuple[str, str]]) -> list[str]:
    """Compare the products that were sent with those that were found, by id and digest; one sentence for each."""
    left, wrong = dict(sent), []
    for name, sha256 in found:
        expected = left.pop(name, None)
        if expected != sha256:
            wrong.append(f"{name} is there twice or was not sent" if expected is None else f"{name} has other bytes")
    return wrong + [f"{name} is missing" for name in left]


PATIENCE_S = 900.0
"""For a whole run; a product of gigabytes takes minutes on a slow disk."""
START_S = 60.0
TOP = f"max_product_bytes = {RETAINED_BYTES}"
SETTINGS = "[alarms]\nheartbeat_s = 0\n"
"""Heartbeats would be further products in the logs."""
_NOISE = os.urandom(PIECE_BYTES - 16)
