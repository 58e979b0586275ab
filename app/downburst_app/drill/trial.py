"""A hub started on a restored directory: checks of its api, its node, and a site that it serves."""

import asyncio
import hashlib
import json
import secrets
import ssl
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from downburst.foundation.clock import from_us
from downburst.foundation.errors import Failure
from downburst.host.local_token import authorization
from downburst.settings.addresses import split_address
from downburst_app.backup import Manifest, rows
from downburst_app.demo.children import Children
from downburst_app.demo.hub import downburst_command, free_port, until_true
from downburst_app.drill.report import Finding


@dataclass(frozen=True, slots=True)
class _Product:
    """A product put into a feed, and its assigned sequence."""

    feed: str
    sha256: str
    sequence: int


class Trial:
    """The processes of one trial, and its checks."""

    def __init__(self, place: Path, node: Path, patience_s: float) -> None:
        self._place = place
        self._node = node
        self._patience_s = patience_s
        self._children = Children(place / "logs")
        self._http, self._sites = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
        self._client = httpx.AsyncClient(base_url=f"http://{self._http}", timeout=patience_s)

    async def run(self, backup: Path, manifest: Manifest) -> AsyncIterator[Finding]:
        """Starts the hub in `place`, checks it from outside, and ends it."""
        try:
            await self.start(manifest.hub)
            yield Finding(
                "start", good=True, sentence=f"the hub runs on a ledger that had schema {manifest.revision}"
            )
            for about, path, key in LISTS:
                yield await self.lists(backup, about, path, key)
            yield await self.has_plans(backup)
            yield await self.has_latency(backup)
            yield await self.is_the_same_authority()
            yield await self.serves_a_site(backup)
        finally:
            unclean = await self.end()
        sentence = f"{', '.join(unclean)} did not end cleanly" if unclean else "hub and site ended cleanly"
        yield Finding("end", good=not unclean, sentence=sentence)

    async def start(self, name: str) -> None:
        """Starts the hub and waits until it answers."""
        settings = self._place / "settings.toml"
        given = {
            "name": name,
            "data_dir": str(self._place / "hub"),
            "http": self._http,
            "sites": self._sites,
            "node": str(self._node),
        }
        lines = [f"{key} = {json.dumps(value)}" for key, value in given.items()]
        settings.write_text("\n".join([*lines, "[multicast]", "enabled = false", ""]), encoding="utf-8")
        hub = await self._children.start("hub", [*downburst_command(), "hub", "--settings", str(settings)])

        async def up() -> bool:
            if not hub.running:
                raise await hub.ended()
            try:
                return (await self._client.get("/healthz")).is_success
            except httpx.TransportError:
                return False

        await self._until(up, "the restored hub did not answer")
        self._client.headers.update(authorization(f"http://{self._http}"))

    async def end(self) -> list[str]:
        """Ends site and hub; returns those that did not end cleanly."""
        await self._client.aclose()
        return await self._children.stop()

    async def lists(self, backup: Path, about: str, path: str, key: str) -> Finding:
        """Checks that a list of the api has the backup's names."""
        shown = {one[key] for one in await self._every(path)}
        kept = {row["name"] for _, row in rows(backup, {about})}
        if missing := sorted(kept - shown):
            return Finding(f"{about} of the hub", good=False, sentence=f"the hub does not show {missing[0]}")
        return Finding(f"{about} of the hub", good=True, sentence=f"the hub shows {len(kept)} of {len(kept)}")

    async def has_plans(self, backup: Path) -> Finding:
        """Checks that each feed with a plan has one at least as new."""
        newest: dict[str, int] = {}
        for _, row in rows(backup, {"plans"}):
            newest[row["feed"]] = max(newest.get(row["feed"], 0), row["version"])
        for feed, version in newest.items():
            plans = await self._ask("GET", f"/v1/feeds/{quote(feed, safe='')}/plans", params={"limit": 1})
            if not plans or plans[0]["version"] < version:
                return Finding("plans of the hub", good=False, sentence=f"feed {feed} has no plan {version}")
        return Finding("plans of the hub", good=True, sentence=f"{len(newest)} feeds have their plans")

    async def has_latency(self, backup: Path) -> Finding:
        """Checks that the api returns the newest latencies of the backup."""
        feeds = {row["name"] for _, row in rows(backup, {"feeds"})}
        kept = rows(backup, {"latency_minutes", "latency_sheets"})
        newest = max(
            ((row["minute"], row["feed"], row["kind"]) for _, row in kept if row["feed"] in feeds), default=None
        )
        if newest is None:
            return Finding("latencies of the hub", good=True, sentence="the backup has no latencies")
        minute, feed, kind = newest
        until = from_us((minute + 60) * 60_000_000).isoformat()
        asked = {"feed": feed, "kind": kind, "until": until, "minutes": 24 * 60, "step": "hour"}
        points = (await self._ask("GET", "/v1/latency/history", params=asked))["points"]
        counted = sum(point["count"] for point in points)
        sentence = f"{counted} deliveries of {feed} in the day that ends at {until}"
        return Finding("latencies of the hub", good=counted > 0, sentence=sentence)

    async def is_the_same_authority(self) -> Finding:
        """Checks that the node shows sites a certificate of the authority that they know."""
        authority = (self._place / "hub" / "node" / "tls" / "ca.pem").read_text()
        context = ssl.create_default_context(cadata=authority)
        context.check_hostname = False
        host, port = split_address(self._sites)
        digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(authority)).hexdigest()
        try:
            _, writer = await asyncio.open_connection(host, port, ssl=context)
        except (OSError, ssl.SSLError) as error:
            return Finding("node", good=False, sentence=f"sites would reject the node: {error}")
        writer.close()
        return Finding("node", good=True, sentence=f"sites trust it by the authority of SHA-256 {digest[:16]}...")

    async def serves_a_site(self, backup: Path) -> Finding:
        """Enrols a site, gives each feed a product, and waits for their files at the site."""
        site = f"drill-{secrets.token_hex(4)}.invalid"
        received = await self._enrol(site)
        feeds = [feed["feed"] for feed in await self._every("/v1/feeds")]
        if not feeds:
            await self._ask("POST", "/v1/feeds", json={"feed": "DRILL"})
            feeds = ["DRILL"]
        for feed in feeds:
            await self._ask("POST", f"/v1/sites/{site}/subscriptions", json={"feed": feed})
        await self._until(lambda: self._knows(site, set(feeds)), f"site {site} did not connect")
        products = [await self._put(feed) for feed in feeds]

        async def all_received() -> bool:
            return await asyncio.to_thread(_digests, received) >= {product.sha256 for product in products}

        await self._until(all_received, f"products are missing at site {site}")
        given = {row["feed"]: row["sequence"] for _, row in rows(backup, {"heads"})}
        again = [product for product in products if product.sequence <= given.get(product.feed, 0)]
        sentence = (
            f"a new site received a product of each of {len(products)} feeds, with sequences never assigned before"
        )
        if again:
            sentence = f"feed {again[0].feed} gave the number {again[0].sequence} a second time"
        return Finding("site", good=not again, sentence=sentence)

    async def _enrol(self, site: str) -> Path:
        """Creates a site and starts its receiver; returns the directory of its products."""
        await self._ask("POST", "/v1/sites", json={"site": site, "organisation": "restore drill"})
        token = str((await self._ask("POST", f"/v1/sites/{site}/tokens"))["token"])
        directory = self._place / "site"
        directory.mkdir(mode=0o700)
        (directory / "token").write_text(token + "\n", encoding="utf-8")
        where = ("--hub", self._sites, "--token-file", str(directory / "token"), "--dir", str(directory))
        await self._children.start("site", [str(self._node), "receive", *where])
        return directory / "received"

    async def _knows(self, site: str, feeds: set[str]) -> bool:
        sites = (await self._ask("GET", "/v1/overview"))["sites"]
        return any(
            one["site"] == site and one["connected"] and {feed["feed"] for feed in one["feeds"]} >= feeds
            for one in sites
        )

    async def _put(self, feed: str) -> _Product:
        content = secrets.token_bytes(PRODUCT_BYTES)
        path = f"/v1/feeds/{quote(feed, safe='')}/products/restore-drill-{secrets.token_hex(8)}"
        answer = await self._ask("PUT", path, content=content)
        return _Product(feed, hashlib.sha256(content).hexdigest(), int(answer["sequence"]))

    async def _every(self, path: str) -> list[dict[str, Any]]:
        """All items of a list, page by page."""
        items: list[dict[str, Any]] = []
        url: str | None = path
        while url is not None:
            answer = await self._answer("GET", url)
            items += answer.json()
            url = answer.links.get("next", {}).get("url")
        return items

    async def _ask(self, method: str, path: str, **request: Any) -> Any:
        return (await self._answer(method, path, **request)).json()

    async def _answer(self, method: str, path: str, **request: Any) -> httpx.Response:
        try:
            answer = await self._client.request(method, path, **request)
        except httpx.TransportError as error:
            raise Failure(f"the restored hub does not answer {method} {path} ({error!r}); check its log") from error
        if not answer.is_success:
            raise Failure(f"the restored hub refused {method} {path}: {answer.text}")
        return answer

    async def _until(self, condition: Any, what: str) -> None:
        await until_true(condition, limit_s=self._patience_s, what=what)


def _digests(folder: Path) -> set[str]:
    return {hashlib.sha256(path.read_bytes()).hexdigest() for path in _files(folder)}


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        relative = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in relative.parts):
            yield path


LISTS = (("users", "/v1/users", "user"), ("feeds", "/v1/feeds", "feed"), ("sites", "/v1/sites", "site"))
"""Table of the ledger, list of the api, and the naming field of its items."""
PRODUCT_BYTES = 4_096
