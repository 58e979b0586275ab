"""A hub with both kinds of bridges at real brokers: for a look at its page."""

import json
import os
import subprocess
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Self

from kit.page_hub import Hub
from kit.patience import wait_for
from kit.wis2.announced import TOPIC, announcement
from kit.wis2.files import FileServer
from kit.wis2.mosquitto import Mosquitto

FEED, GTS = "WIS2", "IDS|DDPLUS"
BUDGET = 500_000
"""Bytes of a centre in a day."""
WITHIN, ABOVE = "de-dwd", "fr-meteofrance"


class BridgedHub:
    """A source with two brokers, and a publisher that is switched off."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self._numbers = 0
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self.brokers = self._stack.enter_context(Mosquitto()), self._stack.enter_context(Mosquitto())
        self.server = self._stack.enter_context(FileServer())
        for feed in (FEED, GTS):
            self.hub.post("feeds", feed=feed, retention_hours=48)
        self._add_source()
        self._add_publisher()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def announce(self, centre: str, count: int, size_bytes: int, *, broker: int = 0) -> None:
        """Announces new files of a centre."""
        messages = [self._announced(centre, size_bytes) for _ in range(count)]
        payloads = [json.dumps(one).encode() for one in messages]
        self.brokers[broker].publish(TOPIC.replace(WITHIN, centre), payloads)

    def may_ask_private(self, *, allowed: bool) -> None:
        """Lets the source fetch from this machine, or not."""
        answer = self.hub.client.patch("/v1/bridges/global", json={"may_ask_private": allowed})
        assert answer.is_success, answer.text
        self._until_bound()

    def refused(self) -> None:
        """Sends a message that is passed over."""
        self.brokers[0].publish(TOPIC, [b'{"type": "Feature"}'])

    def until(self, **counts: int) -> None:
        """Waits for these numbers of the source's products."""
        wait_for(str(counts), lambda: counts.items() <= self.shown()["products"].items())

    def shown(self) -> dict[str, Any]:
        """The source."""
        found: dict[str, Any] = self.hub.client.get("/v1/bridges/global").json()
        return found

    def holes(self) -> list[dict[str, Any]]:
        """Its holes."""
        found: list[dict[str, Any]] = self.hub.client.get("/v1/bridges/global/holes").json()
        return found

    def lose_sessions(self, broker: int) -> None:
        """Has a broker lose what it kept."""
        before = len(self.holes())
        self.brokers[broker].lose_sessions()
        wait_for("a hole", lambda: len(self.holes()) > before)

    def subscriber(self) -> None:
        """A client at the publisher's broker, as a Global Broker is."""
        argv = ["mosquitto_sub", "-p", str(self.brokers[0].port), "-V", "mqttv5", "-q", "1", "-t", "origin/#"]
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
        self._stack.callback(process.wait, timeout=30)
        self._stack.callback(process.terminate)

    def _announced(self, centre: str, size_bytes: int) -> dict[str, Any]:
        self._numbers += 1
        content = os.urandom(size_bytes)
        path = f"/{centre}/{self._numbers}"
        self.server.files[path] = content
        at = datetime.now(UTC) - timedelta(milliseconds=800)
        published = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        named = {"data_id": f"{centre}/synop/{self._numbers}", "metadata_id": f"urn:wmo:md:{centre}:synop"}
        return announcement(self._numbers, self.server.url + path, content, pubtime=published, **named)

    def _add_source(self) -> None:
        self.hub.post(
            "bridges",
            bridge="global",
            feed=FEED,
            brokers=[{"url": broker.url} for broker in self.brokers],
            topics=["cache/a/wis2/+/data/core/weather/#"],
            bytes_per_day=BUDGET,
            may_ask_private=True,
        )
        self._until_bound()

    def _until_bound(self) -> None:
        wait_for("subscriptions", lambda: all(one["bound"] for one in self.shown()["brokers"]))

    def _add_publisher(self) -> None:
        self.hub.post(
            "publishers",
            publisher="synop",
            feed=GTS,
            pattern="^SM",
            centre="us-unidata-test",
            topic="core/weather/surface-based-observations/synop",
            metadata_id="urn:wmo:md:us-unidata-test:synop",
            media_type="application/octet-stream",
            broker={"url": self.brokers[0].url},
            base_url="https://hub.example",
        )
