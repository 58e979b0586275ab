"""Products that a receiving site announces at its own broker, by one line of its rules."""

import base64
import hashlib
import json
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from downburst.wis2.notifications import read_notification
from downburst.wis2.properties import properties_of
from downburst.wis2.topics import read_topic
from integration.test_wis2_out import RIGHTS, content
from kit.node import HubNode, SiteNode, node_binary
from kit.patience import wait_for
from kit.ports import free_port
from kit.wis2.announced import TOPIC, announcement
from kit.wis2.mosquitto import Mosquitto
from kit.wis2.subscriber import Heard
from system.test_site_actions import failed_action

FEED = "IDS|DDPLUS"
BASE_URL = "https://wis2.example/data"
METADATA_ID = "urn:wmo:md:us-unidata-test:synop"


@pytest.fixture
def broker() -> Iterator[Mosquitto]:
    with Mosquitto(passwords={"node": "secret", "everyone": "everyone"}, rights=RIGHTS) as started:
        yield started


@pytest.fixture
def heard(broker: Mosquitto) -> Iterator[Heard]:
    with Heard(broker) as subscriber:
        yield subscriber


class Scene:
    """A hub, a site whose rules publish, and the site's broker."""

    def __init__(
        self, home: Path, broker: Mosquitto, base_url: str = BASE_URL, url: str = "", rules: str = ""
    ) -> None:
        self.broker, self.served, self.base_url = broker, home / "served", base_url
        self.password, self.rules = home / "password", home / "rules.yaml"
        self.password.write_text("secret\n")
        self.url = url or f"mqtt://node@127.0.0.1:{broker.port}"
        self.rules.write_text(rules) if rules else self.publish()
        self.hub = HubNode(home / "hub").start()
        self.hub.feed(FEED)
        self.site = SiteNode(home / "site", self.hub.address, arguments=("--actions", str(self.rules)))
        selection = {"feed": FEED, "pattern": ".*", "not_pattern": None}
        self.hub.site("one", selection, token_file=self.site.token_file)
        self.site.start()
        self.hub.wait_connected("one")
        self.site.wait_begun(FEED)

    def publish(self, **more: Any) -> None:
        """Writes the rules."""
        settings = {
            "broker": self.url,
            "password-file": str(self.password),
            "centre": "us-unidata-test",
            "topic": "core/weather/surface-based-observations/synop",
            "metadata-id": METADATA_ID,
            "directory": str(self.served),
            "base-url": self.base_url,
        }
        text = json.dumps(settings | more)
        self.rules.write_text(f"actions:\n  - match: '^(SM|de-dwd)'\n    do:\n      - publish: {text}\n")

    def put(self, numbers: range) -> list[bytes]:
        """Puts bulletins into the feed."""
        contents = [content(number) for number in numbers]
        for number, product in zip(numbers, contents, strict=True):
            self.hub.put(FEED, f"SMVX{number:02} TJSJ 291200", product)
        return contents

    def wis2(self, number: int, topic: str) -> None:
        """Puts a product into the feed that came by WIS2 on this topic."""
        content = b"%d" % number
        notification = json.dumps(announcement(number, "https://files.example/1", content)).encode()
        properties = properties_of(read_topic(topic), notification).decode()
        self.hub.put(FEED, f"de-dwd/synop/{number}", content, properties=properties)

    def file(self, message: dict[str, Any]) -> bytes:
        """The file that a web server has at the address of a notification."""
        (link,) = message["links"]
        assert link["href"].startswith(f"{BASE_URL}/")
        path: Path = self.served / link["href"].removeprefix(f"{BASE_URL}/")
        return path.read_bytes()

    def tool(self, *argv: str, code: int = 0) -> str:
        """A tool of the node."""
        found = subprocess.run([node_binary(), *argv], capture_output=True, text=True, timeout=60, check=False)
        assert found.returncode == code, found.stdout + found.stderr
        return found.stdout

    def stop(self) -> None:
        self.site.stop()
        self.hub.stop()


class Live:
    """A subscriber without a session of its own, which comes back after each loss."""

    def __init__(self, broker: Mosquitto) -> None:
        self.messages: list[dict[str, Any]] = []
        self._subscribed = threading.Event()
        self._client = mqtt.Client(CallbackAPIVersion.VERSION2, "live", protocol=MQTTProtocolVersion.MQTTv5)
        self._client.username_pw_set("everyone", "everyone")
        self._client.reconnect_delay_set(min_delay=1, max_delay=1)
        self._client.on_connect = lambda client, *_: client.subscribe("origin/a/wis2/#", qos=1)
        self._client.on_subscribe = lambda *_: self._subscribed.set()
        self._client.on_message = lambda _client, _userdata, message: self.messages.append(
            json.loads(message.payload)
        )
        self._client.connect_async("127.0.0.1", broker.port)

    def wait(self, count: int) -> None:
        """Waits for so many notifications in all."""
        wait_for(f"{count} notifications", lambda: len(self.messages) >= count, 60)

    def ids(self) -> dict[str, set[str]]:
        """The ids of notifications by the data ids of their products."""
        found: dict[str, set[str]] = {}
        for message in list(self.messages):
            found.setdefault(message["properties"]["data_id"], set()).add(message["id"])
        return found

    def __enter__(self) -> Self:
        self._client.loop_start()
        assert self._subscribed.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._client.disconnect()
        self._client.loop_stop()


@pytest.fixture
def scene(tmp_path: Path, broker: Mosquitto) -> Iterator[Scene]:
    made = Scene(tmp_path, broker)
    yield made
    made.stop()


def test_products_of_wis2_keep_their_facts_and_do_not_go_round(scene: Scene, heard: Heard) -> None:
    scene.publish(republishes=True)
    scene.site.process.send_signal(signal.SIGHUP)
    wait_for("the new rules", lambda: "the rules were read again" in scene.site.log())
    own = TOPIC.replace("de-dwd", "us-unidata-test")
    scene.wis2(1, own)
    scene.wis2(2, TOPIC.replace("cache", "origin").replace("core", "recommended"))
    scene.wis2(3, TOPIC)
    (message,) = heard.next(1)
    properties = message["properties"]
    assert (properties["data_id"], properties["producer"]) == ("de-dwd/synop/3", "de-dwd")
    assert properties["pubtime"] == "2026-11-23T04:00:00.000Z"
    failed = wait_for("the refusal", lambda: failed_action(scene.hub))
    assert failed["last_error"] == "it is recommended data of de-dwd, and the topic is one of core data"
    listed = scene.tool("actions", "failed", "--json", "--dir", str(scene.site.directory), code=1)
    assert [one["product"]["id"] for one in json.loads(listed)["failed"]] == ["de-dwd/synop/2"]


@pytest.mark.all
def test_a_refused_user_waits_for_the_right_password_and_rules_are_checked(scene: Scene, heard: Heard) -> None:
    scene.password.write_text("wrong\n")
    (product,) = scene.put(range(1, 2))
    wait_for("a report", lambda: "refuses user node: not authorized" in _sentence(scene.hub))
    scene.password.write_text("secret\n")
    (message,) = heard.next(1)
    assert scene.file(message) == product
    scene.publish(centre="US")
    found = scene.tool("actions", "check", str(scene.rules), code=1)
    assert "no centre-id; write a domain's end and a name, as us-unidata (set aside)" in found


@pytest.mark.all
def test_the_record_of_the_dataset_is_served_and_announced_after_each_change(
    scene: Scene, heard: Heard, tmp_path: Path
) -> None:
    record = tmp_path / "record.json"
    wrong, first = _record("urn:wmo:md:us-unidata-test:other"), _record(METADATA_ID)
    record.write_bytes(wrong)
    scene.publish(record=str(record))
    scene.site.process.send_signal(signal.SIGHUP)
    wait_for("a report", lambda: "has the id" in _sentence(scene.hub))
    record.write_bytes(first)
    (message,) = heard.next(1)
    assert read_notification(json.dumps(message).encode()).faults == ()
    assert message["properties"]["data_id"] == "us-unidata-test/metadata/synop"
    assert (scene.file(message), message["links"][0]["rel"]) == (first, "canonical")
    wait_for("the end of the report", lambda: failed_action(scene.hub) is None)
    scene.site.stop()
    scene.site.start()
    (again,) = heard.next(1)
    assert again == message, "the same day, the same notification"
    record.write_bytes(first + b" ")
    (changed,) = heard.next(1)
    assert (scene.file(changed), changed["links"][0]["rel"]) == (first + b" ", "update")
    assert scene.file(message) == first, "an address never gets other bytes"


def _record(metadata_id: str) -> bytes:
    """The begin of a record, by which it is known."""
    core = "http://wis.wmo.int/spec/wcmp/2/conf/core"
    return json.dumps({"id": metadata_id, "type": "Feature", "conformsTo": [core]}).encode()


@pytest.mark.all
def test_a_broker_by_tls_needs_a_known_authority(tmp_path: Path) -> None:
    # Started as root the broker goes on as its own user, which may not look into pytest's directory.
    port, files = free_port(), Path(tempfile.mkdtemp(prefix="downburst-tls."))
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    make += ["-keyout", f"{files}/key", "-out", f"{files}/ca", "-days", "2", "-subj", "/CN=downburst test broker"]
    make += ["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"]
    subprocess.run(make, check=True, timeout=60, capture_output=True)
    for path in (files, files / "key", files / "ca"):
        path.chmod(0o755)
    lines = (f"listener {port} 127.0.0.1", f"certfile {files}/ca", f"keyfile {files}/key")
    passwords = {"node": "secret", "everyone": "everyone"}
    with Mosquitto(*lines, passwords=passwords, rights=RIGHTS) as broker, Live(broker) as live:
        scene = Scene(tmp_path, broker, url=f"mqtts://node@localhost:{port}")
        scene.put(range(1, 3))
        wait_for("a report", lambda: "of an unknown authority" in _sentence(scene.hub))
        scene.publish(**{"ca-file": str(files / "ca")})
        scene.site.process.send_signal(signal.SIGHUP)
        live.wait(2)
        scene.stop()


@pytest.mark.all
def test_two_thousand_products_are_announced_over_a_kill(scene: Scene, broker: Mosquitto) -> None:
    with Live(broker) as live:
        for number in range(2_000):
            scene.hub.put(FEED, f"SM{number:04}", b"%d" % number)
        live.wait(300)
        scene.site.kill()
        scene.site.start()
        wait_for("all of them", lambda: len(live.ids()) == 2_000)
    assert all(len(known) == 1 for known in live.ids().values())


def digest(message: dict[str, Any]) -> str:
    value: str = message["properties"]["integrity"]["value"]
    return value


def test_each_product_of_a_site_is_announced_once_and_its_file_is_served(scene: Scene, heard: Heard) -> None:
    contents = scene.put(range(1, 30))
    scene.hub.put(FEED, "FTUS80 KWBC 291200", b"TAF")
    messages = heard.next(29)
    for number, (message, product) in enumerate(zip(messages, contents, strict=True), 1):
        read = read_notification(json.dumps(message).encode())
        assert read.faults == ()
        assert read.data_id == f"us-unidata-test/synop/SMVX{number:02}+TJSJ+291200"
        assert message["properties"]["gts"] == {"ttaaii": f"SMVX{number:02}", "cccc": "TJSJ"}
        assert scene.file(message) == product
        assert digest(message) == base64.b64encode(hashlib.sha512(product).digest()).decode()
        assert read.inline in (None, product)
    scene.hub.put(FEED, "SMVX01 TJSJ 291200", b"corrected")
    (update,) = heard.next(1)
    assert (update["links"][0]["rel"], scene.file(update)) == ("update", b"corrected")
    assert len({message["id"] for message in [*messages, update]}) == 30


def test_a_killed_site_announces_the_rest_with_the_same_ids(scene: Scene, broker: Mosquitto) -> None:
    with Live(broker) as live:
        contents = scene.put(range(1, 61))
        live.wait(3)
        scene.site.kill()
        scene.site.start()
        wait_for("all of them", lambda: len(live.ids()) == 60)
    assert all(len(known) == 1 for known in live.ids().values()), "a repeated one has the id of the first"
    assert {scene.file(message) for message in live.messages} == set(contents)


def test_a_broker_that_is_away_is_a_reported_failure_until_it_has_everything(scene: Scene, broker: Mosquitto) -> None:
    with Live(broker) as live:
        contents = scene.put(range(1, 3))
        live.wait(2)
        broker.stop()
        contents += scene.put(range(3, 9))
        failed = wait_for("a report", lambda: failed_action(scene.hub))
        assert failed["rule"].endswith("rules.yaml:4")
        scene.site.stop()
        scene.site.start()
        contents += scene.put(range(9, 11))
        wait_for("a report after a start", lambda: "takes no connection" in _sentence(scene.hub))
        broker.start()
        live.wait(10)
    wait_for("the end of the report", lambda: failed_action(scene.hub) is None)
    ids = [message["id"] for message in live.messages]
    assert len(ids) == len(set(ids)) == 10, "each once"
    assert sorted(scene.file(message) for message in live.messages) == sorted(contents)
    assert scene.tool("actions", "failed", "--dir", str(scene.site.directory)) == "0 failed\n"


def _sentence(hub: HubNode) -> str:
    return str((failed_action(hub) or {"last_error": ""})["last_error"])


def test_metadata_of_a_rule_ends_with_the_notification(broker: Mosquitto, tmp_path: Path) -> None:
    out = tmp_path / "out"
    rules = f"actions:\n  - match: .*\n    do:\n      - file: '{out}/\\0'\n        metadata: true\n"
    with ExitStack() as stack:
        scene = Scene(tmp_path, broker, rules=rules)
        stack.callback(scene.stop)
        scene.wis2(1, TOPIC)
        written = wait_for("the product", lambda: _complete(out))
    length = int.from_bytes(written[:4], sys.byteorder)
    begin = written.index(b'{"source"', written.index(b"de-dwd/synop/1"))
    assert int.from_bytes(written[begin - 4 : begin], sys.byteorder) == length - begin
    assert json.loads(written[begin:length])["notification"]["properties"]["data_id"] == "de-dwd/synop/1"


def _complete(directory: Path) -> bytes | None:
    """The only file, once it has its metadata and the product `1` behind them."""
    for path in directory.rglob("*"):
        if path.is_file() and (found := path.read_bytes())[int.from_bytes(found[:4], sys.byteorder) :] == b"1":
            return found
    return None
