"""The demonstration's own hub: its settings, its command, and its HTTP client."""

import asyncio
import random
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from downburst.foundation.errors import Failure
from downburst.host.local_token import authorization
from downburst_app.demo.scene import FeedSpec, SiteSpec

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class HubPlace:
    """Directory and addresses of a demonstration's hub."""

    data_dir: Path
    settings: Path
    http: str
    sites: str

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{self.http}"

    def argv(self) -> list[str]:
        """The command that starts the hub, as an operator would type it."""
        return [*downburst_command(), "hub", "--settings", str(self.settings)]


def settle(home: Path, *, http_port: int, time_scale: float, node: Path) -> HubPlace:
    """Chooses free ports and groups of its own, and writes the settings file."""
    place = HubPlace(
        data_dir=home / "hub",
        settings=home / "settings.toml",
        http=f"127.0.0.1:{http_port or free_port()}",
        sites=f"127.0.0.1:{free_port()}",
    )
    # Groups and ports are random, so that two demonstrations on one machine do not hear each other.
    dice = random.Random(time.time_ns())  # noqa: S311 - no secret
    place.settings.write_text(
        _SETTINGS.format(
            data_dir=place.data_dir,
            http=place.http,
            sites=place.sites,
            time_scale=time_scale,
            node=node,
            third_byte=dice.randrange(256),
            port_base=1000 * dice.randrange(18, 32),
        ),
        encoding="utf-8",
    )
    return place


def downburst_command() -> list[str]:
    """The `downburst` command of this installation."""
    script = Path(sys.executable).with_name("downburst")
    return [str(script)] if script.exists() else [sys.executable, "-c", "from downburst_app.cli import main; main()"]


def free_port() -> int:
    """A TCP port that is free at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class HubApi:
    """The few routes that a demonstration uses."""

    def __init__(self, url: str, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._url = url
        self._client = httpx.AsyncClient(base_url=url, timeout=30.0, transport=transport)

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.aclose()

    async def up(self) -> bool:
        """True if the hub answers that it is healthy."""
        try:
            return (await self._client.get("/healthz")).is_success
        except httpx.TransportError:
            return False

    async def add_feed(self, feed: FeedSpec) -> None:
        """Creates a feed."""
        await self._call("POST", "/v1/feeds", {"feed": feed.name, "class": feed.feed_class})

    async def add_site(self, site: SiteSpec) -> str:
        """Creates a site with its subscriptions, and returns an enrolment token for it."""
        shape = {"site": site.name, "organisation": "Downburst demonstration", "multicast_interface": "127.0.0.1"}
        await self._call("POST", "/v1/sites", shape)
        for wish in site.subscriptions:
            body = {"feed": wish.feed, "pattern": wish.pattern}
            if wish.not_pattern is not None:
                body["not_pattern"] = wish.not_pattern
            await self._call("POST", f"/v1/sites/{site.name}/subscriptions", body)
        return str((await self._call("POST", f"/v1/sites/{site.name}/tokens", {}))["token"])

    async def overview(self) -> Document:
        """The content of the page."""
        return dict(await self._call("GET", "/v1/overview"))

    async def heads(self) -> dict[str, int]:
        """The last sequence of each feed, as the node has it now."""
        status = await self._call("GET", "/v1/status")
        return {feed["feed"]: int(feed["head"]) for feed in status["feeds"]}

    async def plans(self, feed: str) -> list[Document]:
        """The plans of a feed, oldest first, each with its legs' traffic."""
        newest_first = await self._call("GET", f"/v1/feeds/{quote(feed, safe='')}/plans?limit=1000")
        return list(reversed(newest_first))

    async def egress_bytes(self) -> int:
        """Bytes sent by all legs, with repair and control."""
        return int((await self._call("GET", "/v1/totals"))["egress_bytes"])

    async def _call(self, method: str, path: str, body: Document | None = None) -> Any:
        try:
            answer = await self._client.request(method, path, json=body, headers=authorization(self._url))
        except httpx.TransportError as error:
            raise Failure(f"the demonstration's hub does not answer {method} {path} ({error!r})") from error
        if not answer.is_success:
            raise Failure(f"the demonstration's hub refused {method} {path}: {answer.text}")
        return answer.json() if answer.content else None


async def until_true(
    condition: Callable[[], Awaitable[bool]], *, limit_s: float, what: str, every_s: float = 0.1
) -> None:
    """Polls until the condition is true; gives up with a sentence after so many seconds."""
    give_up_s = time.monotonic() + limit_s
    while not await condition():
        if time.monotonic() > give_up_s:
            raise Failure(f"{what} within {limit_s:g} s; see the logs, or run with --keep DIR and see the logs there")
        await asyncio.sleep(every_s)


_SETTINGS = """\
# The settings of a demonstration's hub; an operator's file looks the same.
data_dir = "{data_dir}"
http = "{http}"
sites = "{sites}"
node = "{node}"
# Windows and dwell below are in played time and shrink by this factor.
time_scale = {time_scale}

[access]
# All data here is made up, and only this machine can connect.
without_login = "page"

[multicast]
interface = "127.0.0.1"
network = "239.77.{third_byte}.0/24"
port_base = {port_base}

[scheduler]
window_s = 120
dwell_s = 60
"""
