"""Products announced by real brokers, from their server through the real node to a site."""

import base64
import hashlib
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from integration.conftest import Starter, until
from kit.wis2.announced import TOPIC, announcement
from kit.wis2.files import FileServer
from kit.wis2.mosquitto import Mosquitto

FEED = "WIS2"
SITE = "a.example"


class Scene:
    def __init__(self, starter: Starter, brokers: tuple[Mosquitto, Mosquitto], server: FileServer) -> None:
        self.starter, self.brokers, self.server = starter, brokers, server
        self.hub = starter.hub()
        self.hub.ask("POST", "/v1/feeds", 201, json={"feed": FEED})
        self.hub.ask("POST", "/v1/sites", 201, json={"site": SITE})
        self.hub.ask("POST", f"/v1/sites/{SITE}/subscriptions", 201, json={"feed": FEED})
        token = self.hub.ask("POST", f"/v1/sites/{SITE}/tokens", 201)["token"]
        starter.receiver(self.hub, SITE, token)

    def bridge(self, **more: Any) -> None:
        urls = [{"url": broker.url} for broker in self.brokers]
        wanted = {
            "bridge": "dwd",
            "feed": FEED,
            "brokers": urls,
            "topics": ["cache/a/wis2/#"],
            "may_ask_private": True,
        }
        self.hub.ask("POST", "/v1/bridges", 201, json=wanted | more)
        self.until_connected()

    def until_connected(self) -> None:
        until("subscriptions", lambda: all(one["bound"] for one in self.shown()["brokers"]))

    def shown(self) -> dict[str, Any]:
        found: dict[str, Any] = self.hub.ask("GET", "/v1/bridges/dwd")
        return found

    def counts(self) -> tuple[int, int, int]:
        """Products that come, are held, and failed."""
        now = self.shown()["products"]
        return now["coming"], now["held"], now["failed"]

    def serve(self, number: int, content: bytes) -> dict[str, Any]:
        """Puts a file there; returns its announcement."""
        self.server.files[f"/{number}"] = content
        return announcement(number, f"{self.server.url}/{number}", content)

    def announce(self, *messages: dict[str, Any], broker: int = 0) -> None:
        self.brokers[broker].publish(TOPIC, [json.dumps(one).encode() for one in messages])

    def ids_in_feed(self) -> list[str]:
        """The products of the feed, as often as it has them."""
        found, cursor = list[str](), dict[str, str]()
        asked = {"feed": FEED, "contains": "de-dwd/", "since": "30000d", "limit": 200}
        while True:
            page = self.hub.ask("GET", "/v1/products", params=asked | cursor)
            found += [one["product_id"] for one in page["items"]]
            if not page["next"]:
                return sorted(found)
            cursor = {"cursor": page["next"]}

    def received(self) -> list[bytes]:
        return sorted(self.starter.received(SITE).values())


@pytest.fixture
def scene(starter: Starter) -> Iterator[Scene]:
    with ExitStack() as stack:
        brokers = stack.enter_context(Mosquitto()), stack.enter_context(Mosquitto())
        yield Scene(starter, brokers, stack.enter_context(FileServer()))


def test_each_announced_product_is_at_the_site_once_with_equal_bytes(scene: Scene) -> None:
    scene.bridge()
    contents = [b"%d" % number * (number * 400 + 1) for number in range(1, 60)]
    messages = [scene.serve(number, content) for number, content in enumerate(contents)]
    for broker in (0, 1):
        scene.announce(*messages, broker=broker)
    until("all files", lambda: scene.received() == sorted(contents))
    until("the ends of all", lambda: scene.counts() == (0, 59, 0))
    assert max(scene.server.asked.values()) == 1, "each file is asked for once"
    way = scene.hub.command("why", messages[7]["properties"]["data_id"], SITE).stdout
    assert f"notification {messages[7]['id']} (canonical)" in way
    assert "published 2026-11-23T04:00:00, heard by dwd" in way
    assert scene.server.most_at_once <= 5, "connections to a host"


@pytest.mark.all
def test_a_file_that_is_late_comes_and_one_that_differs_is_never_stored(scene: Scene) -> None:
    scene.bridge()
    late, wrong, longer = (scene.serve(number, b"x" * 1_000 + b"%d" % number) for number in range(3))
    scene.server.failures["/0"] = [404]
    scene.server.files["/1"] = b"y" * 1_001
    scene.server.files["/2"] += b"more"
    gone = announcement(3, f"{scene.server.url}/3", b"z")
    gone["links"][0]["href"] = "ftp://files.example/3"
    scene.announce(late, wrong, longer, gone)
    until("the late one", lambda: scene.received() == [b"x" * 1_000 + b"0"])
    (passed_over,) = until("the ftp one", lambda: scene.hub.ask("GET", "/v1/bridges/dwd/passed-over"))
    assert "ftp" in passed_over["sentence"]
    assert len(scene.received()) == 1


@pytest.mark.all
def test_private_networks_are_asked_only_where_the_source_allows_them(scene: Scene) -> None:
    scene.bridge(may_ask_private=False)
    scene.announce(scene.serve(1, b"secret of this machine"))
    until("its end", lambda: scene.counts() == (0, 0, 1))
    (failed,) = scene.hub.ask("GET", "/v1/bridges/dwd/failed")
    assert failed["reason"] == "127.0.0.1 is in a private network, which this source may not ask"
    assert not scene.server.asked
    scene.hub.ask("PATCH", "/v1/bridges/dwd", json={"may_ask_private": True})
    assert scene.hub.ask("POST", "/v1/bridges/dwd/failed/retry")["products"] == 1
    until("the file", lambda: scene.received() == [b"secret of this machine"])


@pytest.mark.all
def test_redirects_are_followed_within_bounds(scene: Scene) -> None:
    scene.bridge()
    near, far = (scene.serve(number, b"%d" % number) for number in range(2))
    scene.server.failures["/0"] = [f"{scene.server.url}/0", "/0"]
    scene.server.failures["/1"] = [f"{scene.server.url}/1"] * 40
    scene.announce(near, far)
    until("the near one", lambda: scene.received() == [b"0"])
    until("the other's end", lambda: scene.counts() == (0, 1, 1))
    (failed,) = scene.hub.ask("GET", "/v1/bridges/dwd/failed")
    assert failed["reason"] == "the server redirects more than 5 times"


@pytest.mark.parametrize("count", [400, pytest.param(2_000, marks=pytest.mark.all)])
def test_a_hub_killed_amid_its_downloads_has_every_data_id_once(scene: Scene, count: int) -> None:
    scene.bridge()
    contents = [b"%06d" % number for number in range(count)]
    scene.announce(*(scene.serve(number, content) for number, content in enumerate(contents)))
    until("some files", lambda: scene.counts()[1] > count // 10)
    hub = scene.hub
    hub.stop(signal.SIGKILL)
    scene.hub = scene.starter.hub(http=hub.http, sites=hub.sites)
    until("all of them", lambda: scene.counts() == (0, count, 0))
    until("all files", lambda: scene.received() == contents)
    assert scene.ids_in_feed() == sorted(f"de-dwd/synop/{number}" for number in range(count))


@pytest.mark.all
def test_2000_files_of_85_kb_are_at_the_site_a_minute_after_the_last_announcement(scene: Scene) -> None:
    """The level of wmo-im/wis2-global-services-testing; the node verifies each announced digest."""
    scene.bridge()
    contents = sorted(os.urandom(85_000) for _ in range(2_000))
    scene.announce(*(scene.serve(number, content) for number, content in enumerate(contents)))
    announced_s = time.monotonic()
    until("the ends of all", lambda: scene.counts() == (0, 2_000, 0), 60)
    until("all files", lambda: len(scene.received()) == len(contents), 60)
    print(f"{time.monotonic() - announced_s:.1f} s after the last announcement")
    assert scene.received() == contents
    assert len(scene.ids_in_feed()) == len(contents)


@pytest.mark.all
def test_bytes_within_a_notification_need_no_server(scene: Scene) -> None:
    scene.bridge()
    content = b"METAR EDDF 291650Z"
    message = announcement(1, "https://nowhere.example/1", content)
    value = base64.b64encode(content).decode()
    message["properties"]["content"] = {"encoding": "base64", "value": value, "size": len(content)}
    scene.announce(message)
    until("the file", lambda: scene.received() == [content])
    digest = hashlib.sha512(content).digest()
    assert message["properties"]["integrity"]["value"] == base64.b64encode(digest).decode()
