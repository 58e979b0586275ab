"""Products of a feed, announced by a whole hub at a real broker and fetched from its origin server."""

import base64
import hashlib
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.parse import quote, urlsplit

import pytest

from integration.conftest import RunningHub, Starter, until
from kit.wis2.mosquitto import Mosquitto
from kit.wis2.subscriber import Heard

FEED = "IDS|DDPLUS"
RIGHTS = "user node\ntopic readwrite origin/#\nuser everyone\ntopic read #\n"


@pytest.fixture
def broker() -> Iterator[Mosquitto]:
    with Mosquitto(passwords={"node": "secret", "everyone": "everyone"}, rights=RIGHTS) as started:
        yield started


@pytest.fixture
def heard(broker: Mosquitto) -> Iterator[Heard]:
    with Heard(broker) as subscriber:
        yield subscriber


@pytest.fixture
def hub(starter: Starter, broker: Mosquitto) -> RunningHub:
    return hub_that_publishes(starter, broker)


def hub_that_publishes(starter: Starter, broker: Mosquitto) -> RunningHub:
    """A hub whose publisher has begun."""
    running = starter.hub()
    running.ask("POST", "/v1/feeds", 201, json={"feed": FEED, "class": "observation", "retention_hours": 24})
    wanted = {
        "publisher": "synop",
        "feed": FEED,
        "pattern": "^SM",
        "centre": "us-unidata-test",
        "topic": "core/weather/surface-based-observations/synop",
        "metadata_id": "urn:wmo:md:us-unidata-test:synop",
        "broker": {"url": broker.url, "user": "node", "password": "secret"},
        "base_url": f"http://{running.http}",
        "enabled": True,
    }
    running.ask("POST", "/v1/publishers", 201, json=wanted)
    until("its begin", lambda: running.ask("GET", "/v1/publishers/synop")["products"]["looked_at"] is not None)
    return running


def put(hub: RunningHub, name: str, content: bytes) -> None:
    hub.ask("PUT", f"/v1/feeds/{quote(FEED, safe='')}/products/{quote(name, safe='')}", 201, content=content)


def content(number: int) -> bytes:
    return b"\x01\r\r\n%03d\r\r\nSMVX%02d TJSJ 291200\r\r\n" % (number, number) + b"AAXX 29121 " * (number * 40)


def test_announced_products_are_fetched_with_equal_bytes(hub: RunningHub, heard: Heard) -> None:
    contents = {f"SMVX{number:02} TJSJ 291200": content(number) for number in range(1, 30)}
    for name, product in contents.items():
        put(hub, name, product)
    put(hub, "FTUS80 KWBC 291200", b"TAF")
    messages = heard.next(29)
    until("all announced", lambda: hub.ask("GET", "/v1/publishers/synop")["products"]["announced"] == 29)
    for message, (name, product) in zip(messages, contents.items(), strict=True):
        properties, (link,) = message["properties"], message["links"]
        assert properties["data_id"] == f"us-unidata-test/synop/{name.replace(' ', '+')}"
        assert properties["gts"] == {"ttaaii": name[:6], "cccc": "TJSJ"}
        found = hub.client.get(urlsplit(link["href"]).path, headers={"authorization": ""})
        assert found.content == product
        assert len(product) == link["length"]
        digest = hashlib.sha512(product).digest()
        assert properties["integrity"]["value"] == base64.b64encode(digest).decode()


def test_a_killed_hub_announces_the_rest_with_the_same_ids(hub: RunningHub, heard: Heard, starter: Starter) -> None:
    for number in range(60):
        put(hub, f"SM{number:02}", b"%d" % number)
    until("some announced", lambda: hub.ask("GET", "/v1/publishers/synop")["products"]["announced"] >= 5)
    hub.stop(signal.SIGKILL)
    again = starter.hub(http=hub.http, sites=hub.sites)
    until("all announced", lambda: again.ask("GET", "/v1/publishers/synop")["products"]["announced"] == 60)
    ids: dict[str, set[str]] = {}
    with ExitStack() as stack:
        stack.callback(again.stop)
        while len(ids) < 60:
            (message,) = heard.next(1)
            ids.setdefault(message["properties"]["data_id"], set()).add(message["id"])
    assert all(len(known) == 1 for known in ids.values()), "a repeated announcement has the id of the first"
