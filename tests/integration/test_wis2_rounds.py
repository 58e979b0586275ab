"""One object by several ways is one product: by LDM and by WIS2, and heard again after it was published."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from copy import deepcopy
from typing import Any

import pytest

from integration.conftest import Starter, until
from integration.test_wis2_out import content
from kit.ldm.wire import IDS, Product, Serving
from kit.wis2.announced import TOPIC, announcement
from kit.wis2.files import FileServer
from kit.wis2.mosquitto import Mosquitto
from kit.wis2.subscriber import Heard
from kit.wis2.vectors import OURS

FEED, SITE = "GTS", "a.example"
OUR_TOPIC = f"origin/a/wis2/{OURS}/data/core/weather/surface-based-observations/synop"


class Scene:
    """A hub that takes bulletins by LDM and WIS2 into one feed, and publishes all of it again."""

    def __init__(self, stack: ExitStack, starter: Starter, server: FileServer, upstream: Serving) -> None:
        broker = stack.enter_context(Mosquitto())
        self.broker, self.server, self.upstream = broker, server, upstream
        self._starter = starter
        self._number = 0
        self.hub = starter.hub()
        feed = {"feed": FEED, "duplicate_rule": "content-without-wmo-start", "ldm_feed_type": "IDS|DDPLUS"}
        self.hub.ask("POST", "/v1/feeds", 201, json=feed | {"retention_hours": 24})
        self.hub.ask("POST", "/v1/sites", 201, json={"site": SITE})
        self.hub.ask("POST", f"/v1/sites/{SITE}/subscriptions", 201, json={"feed": FEED})
        token = self.hub.ask("POST", f"/v1/sites/{SITE}/tokens", 201)["token"]
        starter.receiver(self.hub, SITE, token)
        self._publish_and_ask()
        self.heard = stack.enter_context(Heard(broker))

    def _publish_and_ask(self) -> None:
        publisher = {
            "publisher": "synop",
            "feed": FEED,
            "centre": OURS,
            "topic": OUR_TOPIC.split("/data/")[1],
            "metadata_id": f"urn:wmo:md:{OURS}:synop",
            "broker": {"url": self.broker.url},
            "base_url": f"http://{self.hub.http}",
            "republishes": True,
            "enabled": True,
        }
        self.hub.ask("POST", "/v1/publishers", 201, json=publisher)
        until("its begin", lambda: self.counted()["looked_at"] is not None)
        ldm = {"source": "above", "feeds": "IDS|DDPLUS", "pattern": ".*", "upstreams": [self.upstream.address]}
        self.hub.ask("POST", "/v1/ldm/sources", 201, json=ldm)
        source = {"bridge": "all", "feed": FEED, "brokers": [{"url": self.broker.url}], "topics": ["cache/a/wis2/#"]}
        self.hub.ask("POST", "/v1/bridges", 201, json=source | {"may_ask_private": True})
        until("a subscription", lambda: self.hub.ask("GET", "/v1/bridges/all")["brokers"][0]["bound"])

    def announce(self, content: bytes) -> dict[str, Any]:
        """Has another centre announce a file."""
        self._number += 1
        path = f"/{self._number}"
        self.server.files[path] = content
        message = announcement(self._number, f"{self.server.url}{path}", content)
        self.broker.publish(TOPIC, [json.dumps(message).encode()])
        return message

    def again(self, message: dict[str, Any], topic: str) -> None:
        """Sends a notification as a Global Cache does: with an id of its own, from its own server."""
        self._number += 1
        copy = deepcopy(message)
        copy["id"] = announcement(self._number, "", b"")["id"]
        copy["links"][0]["href"] = f"{self.server.url}/{self._number}"
        self.broker.publish(topic.replace("origin/", "cache/"), [json.dumps(copy).encode()])

    def counted(self) -> dict[str, Any]:
        """The publisher's products."""
        found: dict[str, Any] = self.hub.ask("GET", "/v1/publishers/synop")["products"]
        return found

    def held(self) -> int:
        """Products of WIS2 whose bytes the feed has."""
        return int(self.hub.ask("GET", "/v1/bridges/all")["products"]["held"])

    def centre(self, name: str) -> dict[str, Any]:
        """The account of a centre."""
        found = self.hub.ask("GET", "/v1/bridges/all/centres")
        return next((one for one in found if one["centre"] == name), {"copies": 0, "refused": 0})

    def ids(self) -> list[str]:
        """The ids of the feed's products, newest first."""
        items = self.hub.ask("GET", f"/v1/products?feed={FEED}")["items"]
        return [one["product_id"] for one in items]

    def files(self) -> list[bytes]:
        """The contents at the site."""
        return sorted(self._starter.received(SITE).values())


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with ExitStack() as stack:
        upstream = Serving()
        stack.callback(upstream.close)
        starter = Starter(tmp_path_factory.mktemp("rounds"), stack)
        yield Scene(stack, starter, stack.enter_context(FileServer()), upstream)


def test_an_object_by_ldm_and_by_wis2_is_one_product(scene: Scene) -> None:
    first, second = content(1), content(2)
    scene.upstream.put(_by_ldm("SMVX01 TJSJ 291200", first))
    until("the first, by LDM", lambda: scene.ids() == ["SMVX01 TJSJ 291200"])
    scene.announce(first)
    until("its copy, by WIS2", lambda: scene.held() == 1)
    assert scene.ids() == ["SMVX01 TJSJ 291200"]
    message = scene.announce(second)
    until("the second, by WIS2", lambda: scene.held() == 2)
    longer_number = second.replace(b"\x01\r\r\n002", b"\x01\r\r\n00002")
    scene.upstream.put(_by_ldm("SMVX02 TJSJ 291200", longer_number), _by_ldm("END", b"no bulletin"))
    until("the copy, by LDM", lambda: scene.ids()[0] == "END")
    assert scene.ids() == ["END", message["properties"]["data_id"], "SMVX01 TJSJ 291200"]
    until("all at the site", lambda: scene.files() == sorted([first, second, b"no bulletin"]))
    assert [one["properties"]["data_id"] for one in scene.heard.next(3)] == [
        f"{OURS}/synop/SMVX01+TJSJ+291200", message["properties"]["data_id"], f"{OURS}/synop/END"
    ]  # fmt: skip


def test_an_own_product_that_is_heard_again_adds_nothing(scene: Scene) -> None:
    scene.hub.ask("PUT", f"/v1/feeds/{FEED}/products/SMVX03", 201, content=content(3))
    (message,) = scene.heard.next(1)
    assert message["properties"]["data_id"] == f"{OURS}/synop/SMVX03"
    before, announced, refused = scene.ids(), scene.counted()["announced"], scene.centre(OURS)["refused"]
    scene.again(message, OUR_TOPIC)
    until("its refusal", lambda: scene.centre(OURS)["refused"] == refused + 1)
    (last, *_) = reversed(scene.hub.ask("GET", "/v1/bridges/all/passed-over"))
    assert last["sentence"] == f"it is of {OURS}, for which this hub publishes: it would come round again"
    _nothing_more(scene, before, announced)


def test_a_product_of_another_centre_that_is_published_and_heard_again_adds_nothing(scene: Scene) -> None:
    held = scene.held()
    taken = scene.announce(content(4))
    until("the product", lambda: scene.held() == held + 1)
    (message,) = scene.heard.next(1)
    assert message["properties"]["data_id"] == taken["properties"]["data_id"]
    assert message["properties"]["producer"] == "de-dwd"
    before, announced = scene.ids(), scene.counted()["announced"]
    refused, copies = scene.centre(OURS)["refused"], scene.centre("de-dwd")["copies"]
    scene.again(message, OUR_TOPIC)
    scene.again(message, TOPIC)
    until("its refusal", lambda: scene.centre(OURS)["refused"] == refused + 1)
    until("the copy", lambda: scene.centre("de-dwd")["copies"] == copies + 1)
    _nothing_more(scene, before, announced)


def _nothing_more(scene: Scene, ids: list[str], announced: int) -> None:
    """Another product comes and is announced next, so that whatever came before it would be here."""
    scene.hub.ask("PUT", f"/v1/feeds/{FEED}/products/SENTINEL-{announced}", 201, content=b"%d" % announced)
    (message,) = scene.heard.next(1)
    assert message["properties"]["data_id"] == f"{OURS}/synop/SENTINEL-{announced}"
    assert scene.ids() == [f"SENTINEL-{announced}", *ids]
    until("the count", lambda: scene.counted()["announced"] == announced + 1)


def _by_ldm(ident: str, content: bytes) -> Product:
    return Product.of(ident, content, feed=IDS)
