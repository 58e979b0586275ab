"""Own vectors through a real broker to a real hub and its site: each stored, or refused with its reason."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pytest

from downburst.foundation.file_names import decode
from integration.conftest import RunningHub, Starter, until
from kit.wis2.files import FileServer
from kit.wis2.mosquitto import Mosquitto
from kit.wis2.vectors import DENIED, OURS, Vector, Vectors

FEED, SITE = "WIS2", "a.example"


@dataclass(frozen=True, slots=True)
class Seen:
    """The fate of a vector."""

    vector: Vector
    outcome: str
    reason: str
    contents: tuple[bytes, ...]

    @property
    def agrees(self) -> bool:
        """True if it is the expected one."""
        wanted = self.vector
        same = self.outcome == wanted.expected and wanted.reason in self.reason
        return same and sorted(self.contents) == sorted(wanted.contents)


class Judge:
    """A hub with a source, a site, and a publisher of its own centre."""

    def __init__(self, starter: Starter, broker: Mosquitto, server: FileServer) -> None:
        self.server = server
        server.failures[DENIED] = [403] * 10
        self._starter, self._broker = starter, broker
        self._hub = starter.hub()
        self._hub.ask("POST", "/v1/feeds", 201, json={"feed": FEED, "retention_hours": 24})
        self._hub.ask("POST", "/v1/sites", 201, json={"site": SITE})
        self._hub.ask("POST", f"/v1/sites/{SITE}/subscriptions", 201, json={"feed": FEED})
        token = self._hub.ask("POST", f"/v1/sites/{SITE}/tokens", 201)["token"]
        starter.receiver(self._hub, SITE, token)
        publishes(self._hub, broker)
        wanted = {
            "bridge": "all",
            "feed": FEED,
            "brokers": [{"url": broker.url}],
            "topics": ["cache/a/wis2/#", "origin/a/wis2/+/data/recommended/#", "origin/a/wis2/+/metadata"],
            "may_ask_private": True,
        }
        self._hub.ask("POST", "/v1/bridges", 201, json=wanted)
        until("a subscription", lambda: self._shown()["brokers"][0]["bound"] == 3)

    def judge(self, vectors: list[Vector], patience_s: float = 60.0) -> list[Seen]:
        """Publishes them, and returns their fates once nothing is under way any more."""
        for vector in vectors:
            self.server.files.update(vector.files)
        self._broker.publish_all([(one.topic, json.dumps(first).encode()) for one in vectors for first in one.before])
        until("those before", lambda: self._is_counted(sum(len(one.before) for one in vectors)))
        self._broker.publish_all([(one.topic, one.sent) for one in vectors])
        until("their ends", lambda: self._is_counted(sum(len(one.before) + 1 for one in vectors)), patience_s)
        stored = sum(len(one.contents) for one in vectors)
        until("all files at the site", lambda: sum(map(len, self._files().values())) >= stored)
        return [self._seen(one) for one in vectors]

    def _is_counted(self, messages: int) -> bool:
        """True once each message has its end."""
        names = ("products", "copies", "refused")
        counted = sum(one[name] for one in self._centres().values() for name in names)
        withdrawn = sum(one["verdict"] == "delete" for one in self._passed_over())
        return bool(counted + withdrawn >= messages and self._shown()["products"]["coming"] == 0)

    def _seen(self, vector: Vector) -> Seen:
        account = self._centres()[vector.centre]
        contents = tuple(self._files().get(f"{vector.centre}/synop/1", ()))
        passed_over = [one for one in self._passed_over() if one["topic"] == vector.topic]
        if passed_over:
            (last,) = passed_over
            return Seen(vector, last["verdict"], last["sentence"], contents)
        failed = self._hub.ask("GET", "/v1/bridges/all/failed")
        for one in failed:
            if one["topic"] == vector.topic:
                return Seen(vector, "failed", one["reason"], contents)
        return Seen(vector, "copy" if account["copies"] else "stored", "", contents)

    def _shown(self) -> dict[str, Any]:
        found: dict[str, Any] = self._hub.ask("GET", "/v1/bridges/all")
        return found

    def _passed_over(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._hub.ask("GET", "/v1/bridges/all/passed-over")
        return found

    def _centres(self) -> dict[str, dict[str, Any]]:
        return {one["centre"]: one for one in self._hub.ask("GET", "/v1/bridges/all/centres")}

    def _files(self) -> dict[str, list[bytes]]:
        """The contents at the site, by product id."""
        found = sorted((decode(path).product_id, content) for path, content in self._starter.received(SITE).items())
        return {name: [one for _, one in some] for name, some in groupby(found, lambda one: one[0])}


def publishes(hub: RunningHub, broker: Mosquitto) -> None:
    """Has the hub publish for a centre."""
    wanted = {
        "publisher": "synop",
        "feed": FEED,
        "pattern": "^SM",
        "centre": OURS,
        "topic": "core/weather/surface-based-observations/synop",
        "metadata_id": f"urn:wmo:md:{OURS}:synop",
        "broker": {"url": broker.url},
        "base_url": f"http://{hub.http}",
        "enabled": True,
    }
    hub.ask("POST", "/v1/publishers", 201, json=wanted)


@pytest.fixture
def judge(starter: Starter) -> Iterator[Judge]:
    with ExitStack() as stack:
        yield Judge(starter, stack.enter_context(Mosquitto()), stack.enter_context(FileServer()))


def check(found: list[Seen]) -> None:
    """Prints the table, and compares each row."""
    print(f"{'vector':44} {'expected':9} {'seen':9} reason")
    for one in found:
        print(f"{one.vector.name:44} {one.vector.expected:9} {one.outcome:9} {one.reason}")
    assert [one for one in found if not one.agrees] == []
    print(Counter(one.outcome for one in found))


def test_each_vector_is_stored_or_refused_with_its_reason(judge: Judge) -> None:
    vectors = Vectors(judge.server.url).quick()
    assert len({one.centre for one in vectors}) == len(vectors)
    check(judge.judge(vectors))


@pytest.mark.all
def test_bytes_that_differ_at_each_attempt_are_never_stored(judge: Judge) -> None:
    check(judge.judge(Vectors(judge.server.url).slow(), patience_s=150.0))
