"""Brokers and servers behind TLS with certificates of an own authority, and a sentence for each that refuses."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from downburst.foundation.errors import Failure
from downburst_bridges.web import Web
from integration.conftest import RunningHub, Starter, until
from kit.nsi.server import Authority
from kit.wis2.announced import TOPIC, announcement
from kit.wis2.mosquitto import Mosquitto
from kit.wis2.nginx import Nginx

FEED = "WIS2"
RIGHTS = "user node\ntopic readwrite origin/a/wis2/us-unidata-test/#\ntopic readwrite cache/#\n" \
    "user everyone\ntopic read #\n"  # fmt: skip


class Scene:
    """A broker by TLS, by WebSocket behind nginx, and by TLS of an authority that the hub does not know."""

    def __init__(self, stack: ExitStack, directory: Path) -> None:
        known = Authority(directory, "known").make()
        self.ca_file = known.certificate
        unknown = Authority(directory, "unknown").make()
        passwords = {"node": "secret", "everyone": "everyone"}
        self.broker = Mosquitto(passwords=passwords, rights=RIGHTS)
        self.tls = f"mqtts://127.0.0.1:{self.broker.encrypted(known.sign('broker'))}"
        self.strange = f"mqtts://127.0.0.1:{self.broker.encrypted(unknown.sign('broker'))}"
        websocket = self.broker.with_websockets()
        stack.enter_context(self.broker)
        self.nginx = stack.enter_context(Nginx(directory / "nginx", known.sign("nginx"), websocket))
        self.wss = f"wss://127.0.0.1:{self.nginx.port}/mqtt"
        settings = directory / "hub.toml"
        settings.write_text(f'bridges_ca_file = "{known.certificate}"\n')
        starter = Starter(directory, stack)
        self.hub: RunningHub = starter.hub(arguments=["--settings", str(settings)])
        self.hub.ask("POST", "/v1/feeds", 201, json={"feed": FEED, "retention_hours": 24})

    def source(self, name: str, *urls: str, **broker: Any) -> None:
        """Adds a source at some addresses."""
        brokers = [{"url": url} | broker for url in urls]
        wanted = {"bridge": name, "feed": FEED, "brokers": brokers, "topics": ["cache/a/wis2/#"]}
        self.hub.ask("POST", "/v1/bridges", 201, json=wanted | {"may_ask_private": True})

    def publisher(self, name: str, centre: str, url: str) -> None:
        """Adds a publisher for a centre, at work."""
        wanted = {
            "publisher": name,
            "feed": FEED,
            "centre": centre,
            "topic": "core/weather/surface-based-observations/synop",
            "metadata_id": f"urn:wmo:md:{centre}:synop",
            "broker": {"url": url, "user": "node", "password": "secret"},
            "base_url": f"http://{self.hub.http}",
            "pattern": "^SM",
            "enabled": True,
        }
        self.hub.ask("POST", "/v1/publishers", 201, json=wanted)

    def faults(self, name: str) -> list[str]:
        """The reasons for which the brokers of a source are not connected."""
        return [one["fault"] for one in self.hub.ask("GET", f"/v1/bridges/{name}")["brokers"]]

    def products(self, name: str) -> dict[str, Any]:
        """The products of a publisher."""
        found: dict[str, Any] = self.hub.ask("GET", f"/v1/publishers/{name}")["products"]
        return found


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with ExitStack() as stack:
        yield Scene(stack, tmp_path_factory.mktemp("tls"))


def test_a_source_by_tls_and_websocket_fetches_from_a_server_of_an_own_authority(scene: Scene) -> None:
    scene.source("both", scene.wss, scene.tls)
    until("both brokers", lambda: scene.faults("both") == ["", ""])
    until("topics", lambda: all(one["bound"] for one in scene.hub.ask("GET", "/v1/bridges/both")["brokers"]))
    (scene.nginx.root / "1").write_bytes(b"a file behind TLS")
    message = announcement(1, f"https://127.0.0.1:{scene.nginx.port}/1", b"a file behind TLS")
    scene.broker.publish_all([(TOPIC, json.dumps(message).encode())], "node", "secret")
    until("the product", lambda: scene.hub.ask("GET", "/v1/bridges/both")["products"]["held"] == 1)
    until("its copy", lambda: scene.hub.ask("GET", "/v1/bridges/both/centres")[0]["copies"] == 1)
    items = scene.hub.ask("GET", f"/v1/products?feed={FEED}")["items"]
    assert [one["product_id"] for one in items] == ["de-dwd/synop/1"]
    shown = scene.hub.command("bridges", "show", "both").stdout
    assert shown.count(" good ") == 2, shown


async def test_a_replay_service_of_an_own_authority_is_asked_once_its_file_is_named(scene: Scene) -> None:
    (scene.nginx.root / "items").write_bytes(b"{}")
    url = f"https://127.0.0.1:{scene.nginx.port}/items"
    knowing, strange = (Web(allows_private=True, ca_file=ca_file) for ca_file in (scene.ca_file, None))
    try:
        assert await knowing.get(url, {"f": "json"}) == b"{}"
        with pytest.raises(Failure, match=r"127\.0\.0\.1 can't be asked: .*certificate"):
            await strange.get(url, {"f": "json"})
    finally:
        await knowing.close()
        await strange.close()


@pytest.mark.all
def test_each_refusal_is_one_sentence(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = scene.broker.url.replace("mqtt://", "mqtts://")
    scene.source("steady", scene.wss)
    until("a subscription", lambda: scene.hub.ask("GET", "/v1/bridges/steady")["brokers"][0]["bound"])
    scene.source("strange", scene.strange, plain, scene.wss.replace("/mqtt", "/nowhere"))
    scene.source("stranger", scene.tls, password="wrong")
    host, port = "127.0.0.1", scene.broker.port
    wanted = [
        f"the certificate of {host} is of an unknown authority; name its file in the setting bridges_ca_file",
        f"{host} speaks no TLS at port {port}, or another version of it",
        f"{host} has no WebSocket of MQTT at port {scene.nginx.port} and path /nowhere",
    ]
    until("their faults", lambda: scene.faults("strange") == wanted)
    until("the refusal", lambda: scene.faults("stranger") == ["the broker refuses user everyone: not authorized"])
    assert "0 of 3" in scene.hub.command("bridges", "list").stdout
    monkeypatch.setenv("DOWNBURST_HTTP", scene.hub.http)
    found = json.loads(scene.hub.command("doctor", "--data-dir", str(scene.hub.directory), "--json").stdout)
    by_sentence = {one["sentence"]: one for one in found if one["about"] == "bridges"}
    strange = by_sentence[f"source strange: {scene.strange} is away: {wanted[0]}"]
    assert (strange["state"], strange["remedy"].split(" to ")[0]) == ("bad", "set bridges_ca_file")
    assert any(one.startswith(f"source steady: {scene.wss} is connected, 1 topics bound") for one in by_sentence)


@pytest.mark.all
def test_a_publisher_by_tls_is_announced_and_one_that_is_denied_says_so(scene: Scene) -> None:
    scene.source("hears", scene.tls)
    scene.hub.ask("PATCH", "/v1/bridges/hears", json={"topics": ["origin/a/wis2/#"]})
    until("a subscriber", lambda: scene.hub.ask("GET", "/v1/bridges/hears")["brokers"][0]["bound"])
    scene.publisher("good", "us-unidata-test", scene.tls)
    scene.publisher("denied", "us-other-test", scene.wss)
    until("their begin", lambda: all(scene.products(one)["looked_at"] is not None for one in ("good", "denied")))
    scene.hub.ask("PUT", f"/v1/feeds/{FEED}/products/SM1", 201, content=b"bulletin")
    until("its announcement", lambda: scene.products("good")["announced"] == 1)
    denied = "the broker refuses it: not authorized (135)"
    until("the refusal", lambda: scene.products("denied")["refusal"] == denied)
    assert scene.products("denied")["announced"] == 0
